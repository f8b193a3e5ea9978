/* Reads a DWARF 4 line number program (DWARF standard, section 6.2) far enough to name the line of an
 * address. */
#include "device/cpu/object.h"

#include <string.h>

struct reader {
    const unsigned char *at, *end;
};

static uint64_t fixed(struct reader *r, size_t bytes) {
    uint64_t value = 0;
    if ((size_t)(r->end - r->at) < bytes) {
        r->at = r->end;
        return 0;
    }
    memcpy(&value, r->at, bytes);
    r->at += bytes;
    return value;
}

static uint64_t unsigned_leb(struct reader *r) {
    uint64_t value = 0;
    for (unsigned shift = 0; r->at < r->end; shift += 7) {
        unsigned char byte = *r->at++;
        if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128)) break;
    }
    return value;
}

static int64_t signed_leb(struct reader *r) {
    uint64_t value = 0;
    unsigned shift = 0;
    unsigned char byte = 0;
    while (r->at < r->end) {
        byte = *r->at++;
        if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
        shift += 7;
        if (!(byte & 128)) break;
    }
    if (shift < 64 && (byte & 64)) value |= ~UINT64_C(0) << shift;
    return (int64_t)value;
}

static const char *string(struct reader *r) {
    const char *start = (const char *)r->at;
    const unsigned char *zero = memchr(r->at, 0, (size_t)(r->end - r->at));
    r->at = zero ? zero + 1 : r->end;
    return zero ? start : "";
}

struct header {
    unsigned minimum_length, line_range, opcode_base;
    int line_base;
    const unsigned char *opcode_lengths;
    struct reader files;
};

static bool read_header(struct reader *r, struct reader *program, struct header *h) {
    uint64_t length = fixed(r, 4);
    if (length > (uint64_t)(r->end - r->at)) return false;
    *program = (struct reader){r->at, r->at + length};
    r->at += length;
    if (fixed(program, 2) != 4) return false;
    uint64_t header_length = fixed(program, 4);
    if (header_length > (uint64_t)(program->end - program->at)) return false;
    struct reader rest = {program->at, program->at + header_length};
    program->at += header_length;
    h->minimum_length = (unsigned)fixed(&rest, 1);
    (void)fixed(&rest, 2);                /* operations per instruction, default_is_stmt */
    int line_base = (int)fixed(&rest, 1); /* a signed byte */
    h->line_base = line_base < 128 ? line_base : line_base - 256;
    h->line_range = (unsigned)fixed(&rest, 1);
    h->opcode_base = (unsigned)fixed(&rest, 1);
    h->opcode_lengths = rest.at;
    if (!h->line_range || !h->opcode_base || rest.end - rest.at < (int)h->opcode_base - 1) return false;
    rest.at += h->opcode_base - 1;
    while (*string(&rest)) {
    }
    h->files = rest;
    return true;
}

static const char *file_name(struct header h, uint64_t number) {
    for (uint64_t n = 1; h.files.at < h.files.end; n++) {
        const char *name = string(&h.files);
        if (!*name) break;
        for (int i = 0; i < 3; i++) (void)unsigned_leb(&h.files);
        if (n == number) return name;
    }
    return "";
}

struct row {
    uint64_t address, file;
    int64_t line;
};

/* True when `wanted` lies between the last row and this one. */
static bool covers(const struct row *last, const struct row *now, bool started, uint64_t wanted) {
    return started && last->address <= wanted && wanted < now->address;
}

static bool search(struct reader program, const struct header *h, uint64_t wanted, struct source_line *out) {
    const struct row initial = {0, 1, 1};
    struct row row = initial, last = initial;
    bool started = false, found = false;
    while (program.at < program.end && !found) {
        unsigned opcode = (unsigned)fixed(&program, 1);
        bool emit = false, end = false;
        if (opcode >= h->opcode_base) {
            unsigned adjusted = opcode - h->opcode_base;
            row.address += (uint64_t)(adjusted / h->line_range) * h->minimum_length;
            row.line += h->line_base + (int)(adjusted % h->line_range);
            emit = true;
        } else if (opcode == 0) {
            uint64_t length = unsigned_leb(&program);
            if (length == 0 || length > (uint64_t)(program.end - program.at)) break;
            struct reader extended = {program.at, program.at + length};
            program.at += length;
            switch (fixed(&extended, 1)) {
            case 1: /* end of sequence */
                emit = end = true;
                break;
            case 2: /* set address */
                row.address = fixed(&extended, 8);
                break;
            default:
                break;
            }
        } else if (opcode == 1) {
            emit = true;
        } else if (opcode == 2) {
            row.address += unsigned_leb(&program) * h->minimum_length;
        } else if (opcode == 3) {
            row.line += signed_leb(&program);
        } else if (opcode == 4) {
            row.file = unsigned_leb(&program);
        } else if (opcode == 8) {
            row.address += (uint64_t)((255 - h->opcode_base) / h->line_range) * h->minimum_length;
        } else if (opcode == 9) {
            row.address += fixed(&program, 2);
        } else {
            for (unsigned i = 0; i < h->opcode_lengths[opcode - 1]; i++) (void)unsigned_leb(&program);
        }
        if (!emit) continue;
        if (covers(&last, &row, started, wanted)) {
            *out = (struct source_line){file_name(*h, last.file), (int)last.line};
            found = true;
        }
        /* Line 0 marks code without a line: the previous line applies. */
        uint64_t address = row.address;
        if (row.line != 0 || !started)
            last = row;
        else
            last.address = last.address <= wanted ? last.address : address;
        started = !end;
        if (end) row = last = initial;
    }
    return found;
}

bool object_line(const struct object *object, const void *address, struct source_line *line) {
    struct reader r = {(const unsigned char *)object->line_program,
                       (const unsigned char *)object->line_program + object->line_program_size};
    while (object->line_program && r.at < r.end) {
        struct reader program;
        struct header header;
        if (!read_header(&r, &program, &header)) return false;
        if (search(program, &header, (uint64_t)(uintptr_t)address, line)) return true;
    }
    return false;
}
