/* The pieces of a stored graph, read and written. Nothing is read past the end, whatever the file says. */
#include "graph/stored.h"

int64_t stored_read_number(struct stored_reader *r) {
    int64_t value = 0;
    if (r->end - r->at < (ptrdiff_t)sizeof value) {
        r->damaged = true;
        return 0;
    }
    memcpy(&value, r->at, sizeof value);
    r->at += sizeof value;
    return value;
}

int64_t stored_read_bounded(struct stored_reader *r, int64_t most) {
    int64_t value = stored_read_number(r);
    if (value < 0 || value > most) r->damaged = true;
    return r->damaged ? 0 : value;
}

double stored_read_real(struct stored_reader *r) {
    int64_t bits = stored_read_number(r);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

const char *stored_read_bytes(struct stored_reader *r, size_t *count) {
    *count = (size_t)stored_read_bounded(r, r->end - r->at);
    const char *start = r->at;
    r->at += *count;
    return start;
}

char *stored_read_string(struct stored_reader *r) {
    size_t count;
    const char *start = stored_read_bytes(r, &count);
    if (!r->damaged && memchr(start, 0, count)) r->damaged = true;
    char *copy = r->damaged ? NULL : string_copy(start, count);
    if (!copy) r->damaged = true;
    return copy;
}

/* ---- Structures. Both counts of a piece are numbers of two bytes, so it is short: larger ones are cut. */

#define MOST_OF_PIECE 0xffff

static void write_piece(struct text *out, size_t zeros, const char *bytes, size_t count) {
    uint16_t counts[2] = {(uint16_t)zeros, (uint16_t)count};
    text_append(out, (const char *)counts, sizeof counts);
    text_append(out, bytes, count);
}

void stored_structure(struct text *out, const void *structure, size_t size) {
    const char *bytes = structure;
    struct text pieces = {0};
    int64_t count = 0;
    for (size_t at = 0; at < size;) {
        size_t zeros = 0, others = 0;
        while (at + zeros < size && zeros < MOST_OF_PIECE && !bytes[at + zeros]) zeros++;
        at += zeros;
        while (at + others < size && others < MOST_OF_PIECE && bytes[at + others]) others++;
        write_piece(&pieces, zeros, bytes + at, others);
        at += others;
        count++;
    }
    stored_number(out, count);
    text_append(out, pieces.data, pieces.length);
    out->failed |= pieces.failed;
    text_free(&pieces);
}

void stored_read_structure(struct stored_reader *r, void *structure, size_t size) {
    int64_t count = stored_read_bounded(r, (int64_t)size);
    size_t at = 0;
    memset(structure, 0, size);
    for (int64_t i = 0; i < count && !r->damaged; i++) {
        uint16_t counts[2] = {0};
        if (r->end - r->at >= (ptrdiff_t)sizeof counts) {
            memcpy(counts, r->at, sizeof counts);
            r->at += sizeof counts;
        } else {
            r->damaged = true;
        }
        if (r->end - r->at < counts[1] || size - at < (size_t)counts[0] + counts[1]) r->damaged = true;
        if (r->damaged) return;
        at += counts[0];
        memcpy((char *)structure + at, r->at, counts[1]);
        at += counts[1];
        r->at += counts[1];
    }
}
