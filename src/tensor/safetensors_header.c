#include "tensor/safetensors_header.h"
#include "smelt/tensor.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int element;
} dtypes[] = {{"BOOL", SMELT_BOOL},        {"U8", SMELT_UINT8},      {"I8", SMELT_INT8},
              {"U16", SMELT_UINT16},       {"I16", SMELT_INT16},     {"U32", SMELT_UINT32},
              {"I32", SMELT_INT32},        {"U64", SMELT_UINT64},    {"I64", SMELT_INT64},
              {"F16", SMELT_FLOAT16},      {"BF16", SMELT_BFLOAT16}, {"F32", SMELT_FLOAT32},
              {"F64", SMELT_FLOAT64},      {"C64", SMELT_COMPLEX64}, {"F8_E4M3", SMELT_FP8_E4M3},
              {"F8_E5M2", SMELT_FP8_E5M2}, {"F8_E8M0", SMELT_UE8M0}, {"F4", SMELT_FP4_E2M1}};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

const char *safetensors_dtype(int element) {
    for (int i = 0; i < DTYPES; i++)
        if (dtypes[i].element == element) return dtypes[i].name;
    return NULL;
}

/* ---- JSON: objects, arrays of numbers, strings. The first failure is kept: later reads do nothing. */

struct parser {
    const char *path, *begin, *at, *end;
    struct arena *arena;
    smelt_status status;
};

static void damaged(struct parser *p, const char *expected) {
    if (p->status != SMELT_OK) return;
    p->status = fail(SMELT_ERROR_FORMAT, "file '%s' is damaged: at byte %zu of its header, expected %s",
                     p->path, (size_t)(p->at - p->begin), expected);
}

static void skip_space(struct parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')) p->at++;
}

static bool accept(struct parser *p, char c) {
    skip_space(p);
    if (p->status != SMELT_OK || p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static void expect(struct parser *p, char c, const char *expected) {
    if (!accept(p, c)) damaged(p, expected);
}

/* Four hexadecimal digits. */
static unsigned read_hex(struct parser *p) {
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = p->at < p->end ? *p->at : 0;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) {
            damaged(p, "a hexadecimal digit");
            return 0;
        }
        value = value * 16 + (unsigned)digit;
        p->at++;
    }
    return value;
}

static size_t put_utf8(char *out, unsigned code) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[more] | code >> 6 * more);
    for (int i = 1; i <= more; i++) out[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3f));
    return (size_t)more + 1;
}

/* Behind "\u". Halves of pairs must come together; 0 ends C's strings and is refused. */
static size_t read_unicode(struct parser *p, char *out) {
    unsigned code = read_hex(p);
    if (code >= 0xd800 && code < 0xdc00) {
        bool pair = p->end - p->at >= 2 && p->at[0] == '\\' && p->at[1] == 'u';
        if (pair) p->at += 2;
        unsigned low = pair ? read_hex(p) : 0;
        if (low < 0xdc00 || low > 0xdfff) damaged(p, "the second half of a pair");
        code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    } else if (code == 0 || (code >= 0xdc00 && code < 0xe000)) {
        damaged(p, "a character");
    }
    return p->status == SMELT_OK ? put_utf8(out, code) : 0;
}

static char read_escape(struct parser *p) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = p->at < p->end ? *p->at : 0;
    const char *found = c ? strchr(from, c) : NULL;
    if (!found) {
        damaged(p, "an escape");
        return ' ';
    }
    p->at++;
    return to[found - from];
}

/* The longest well-formed UTF-8 sequence at `at`; 0: there is none. */
static size_t utf8_length(const char *at, const char *end) {
    const unsigned char *c = (const unsigned char *)at;
    size_t left = (size_t)(end - at);
    if (c[0] < 0x80) return 1;
    size_t length = c[0] >= 0xc2 && c[0] < 0xe0   ? 2
                    : c[0] >= 0xe0 && c[0] < 0xf0 ? 3
                    : c[0] >= 0xf0 && c[0] < 0xf5 ? 4
                                                  : 0;
    if (!length || length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    bool overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool outside = (c[0] == 0xed && c[1] >= 0xa0) || (c[0] == 0xf4 && c[1] >= 0x90);
    return overlong || outside ? 0 : length;
}

/* "" after a failure. */
static const char *read_string(struct parser *p) {
    skip_space(p);
    if (p->status != SMELT_OK || p->at == p->end || *p->at != '"') {
        damaged(p, "a string");
        return "";
    }
    const char *close = ++p->at;
    while (close < p->end && *close != '"') close += *close == '\\' && close + 1 < p->end ? 2 : 1;
    /* No escape has fewer bytes than what it stands for. */
    char *out = close < p->end ? arena_alloc(p->arena, (size_t)(close - p->at) + 1) : NULL;
    if (!out) {
        if (close >= p->end) damaged(p, "a string with an end");
        return "";
    }
    size_t count = 0;
    while (p->at < close && p->status == SMELT_OK) {
        size_t length = utf8_length(p->at, close);
        if (*p->at == '\\') {
            p->at++;
            if (p->at < close && *p->at == 'u')
                p->at++, count += read_unicode(p, out + count);
            else
                out[count++] = read_escape(p);
        } else if (!length || (unsigned char)*p->at < 0x20) {
            damaged(p, "a character");
        } else {
            memcpy(out + count, p->at, length);
            count += length, p->at += length;
        }
    }
    if (p->at != close) damaged(p, "the end of a string");
    p->at = close + 1;
    return p->status == SMELT_OK ? out : "";
}

/* A whole number below 2^63, without sign, fraction and exponent. */
static uint64_t read_number(struct parser *p) {
    uint64_t value = 0;
    skip_space(p);
    const char *first = p->at;
    while (p->status == SMELT_OK && p->at < p->end && *p->at >= '0' && *p->at <= '9') {
        if (value > (INT64_MAX - 9) / 10) damaged(p, "a number below 2^63");
        value = value * 10 + (uint64_t)(*p->at++ - '0');
    }
    if (p->at == first || (*first == '0' && p->at > first + 1)) damaged(p, "a whole number");
    return p->status == SMELT_OK ? value : 0;
}

/* ---- The header's objects. */

static void read_metadata(struct parser *p, struct safetensors_header *header) {
    expect(p, '{', "'{'");
    if (accept(p, '}')) return;
    do {
        const char *pair[2];
        pair[0] = read_string(p);
        expect(p, ':', "':'");
        pair[1] = read_string(p);
        for (int i = 0; i < 2 && p->status == SMELT_OK; i++) {
            size_t used = 2 * header->metadata_count + (size_t)i;
            const char **list = arena_one_more(p->arena, header->metadata, used, sizeof *list);
            if (!list) return;
            header->metadata = list;
            list[used] = pair[i];
        }
        header->metadata_count++;
    } while (accept(p, ','));
    expect(p, '}', "',' or '}'");
}

static int read_dtype(struct parser *p, const char *name) {
    const char *dtype = read_string(p);
    for (int i = 0; i < DTYPES; i++)
        if (strcmp(dtype, dtypes[i].name) == 0) return dtypes[i].element;
    if (p->status == SMELT_OK)
        p->status = fail(SMELT_ERROR_FORMAT,
                         "file '%s': array '%s' has the element type '%s', which is not supported", p->path,
                         name, dtype);
    return 0;
}

static void read_shape(struct parser *p, const char *name, smelt_shape *shape) {
    expect(p, '[', "'['");
    if (accept(p, ']')) return;
    do {
        if (shape->ndim == SMELT_MAX_DIMENSIONS) {
            if (p->status == SMELT_OK)
                p->status = fail(SMELT_ERROR_FORMAT, "file '%s': array '%s' has more than %d dimensions",
                                 p->path, name, SMELT_MAX_DIMENSIONS);
            return;
        }
        shape->size[shape->ndim++] = (int64_t)read_number(p);
    } while (accept(p, ','));
    expect(p, ']', "',' or ']'");
}

static void read_item(struct parser *p, struct safetensors_item *item) {
    unsigned found = 0;
    expect(p, '{', "'{'");
    do {
        const char *key = read_string(p);
        unsigned which = strcmp(key, "dtype") == 0          ? 1
                         : strcmp(key, "shape") == 0        ? 2
                         : strcmp(key, "data_offsets") == 0 ? 4
                                                            : 0;
        if (!which || found & which) damaged(p, "the keys dtype, shape and data_offsets, each once");
        found |= which;
        expect(p, ':', "':'");
        if (which == 1) item->element = read_dtype(p, item->name);
        if (which == 2) read_shape(p, item->name, &item->shape);
        if (which == 4) {
            expect(p, '[', "'['");
            item->begin = read_number(p);
            expect(p, ',', "','");
            item->end = read_number(p);
            expect(p, ']', "']'");
        }
    } while (accept(p, ','));
    expect(p, '}', "',' or '}'");
    if (found != 7) damaged(p, "dtype, shape and data_offsets");
}

static void read_items(struct parser *p, struct safetensors_header *header) {
    bool has_metadata = false;
    expect(p, '{', "'{'");
    if (accept(p, '}')) return;
    do {
        const char *name = read_string(p);
        expect(p, ':', "':'");
        if (p->status != SMELT_OK || p->arena->failed) return;
        if (strcmp(name, "__metadata__") == 0) {
            if (has_metadata) damaged(p, "__metadata__ only once");
            has_metadata = true;
            read_metadata(p, header);
            continue;
        }
        struct safetensors_item *list = arena_one_more(p->arena, header->items, header->count, sizeof *list);
        if (!list) return;
        header->items = list;
        list[header->count] = (struct safetensors_item){.name = name};
        read_item(p, &list[header->count++]);
    } while (p->status == SMELT_OK && accept(p, ','));
    expect(p, '}', "',' or '}'");
}

/* ---- Checks. */

/* Empty arrays first among those that begin at one place. */
static int by_place(const void *a, const void *b) {
    const struct safetensors_item *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static smelt_status check_size(const char *path, const struct safetensors_item *item) {
    uint64_t bits = (uint64_t)smelt_element_bits(item->element);
    for (int d = 0; d < item->shape.ndim; d++)
        if (__builtin_mul_overflow(bits, (uint64_t)item->shape.size[d], &bits) || bits > INT64_MAX)
            return fail(SMELT_ERROR_FORMAT,
                        "file '%s': the shape of array '%s' has more bytes than 64 bits count", path,
                        item->name);
    int last = item->shape.ndim - 1;
    /* Of the row's elements, those beyond whole groups of 8. */
    int64_t beyond = last < 0 ? 1 : item->shape.size[last] % 8;
    if (bits % 8 || beyond * smelt_element_bits(item->element) % 8)
        return fail(SMELT_ERROR_FORMAT, "file '%s': a row of array '%s' is not a whole number of bytes", path,
                    item->name);
    if (item->begin > item->end || item->end - item->begin != bits / 8)
        return fail(SMELT_ERROR_FORMAT,
                    "file '%s': array '%s' has bytes %llu to %llu; expected %llu of them for its shape", path,
                    item->name, (unsigned long long)item->begin, (unsigned long long)item->end,
                    (unsigned long long)(bits / 8));
    return SMELT_OK;
}

static smelt_status check_places(const char *path, struct safetensors_header *header, uint64_t data_bytes) {
    uint64_t at = 0;
    if (header->count) qsort(header->items, header->count, sizeof *header->items, by_place);
    for (size_t i = 0; i < header->count; i++) {
        const struct safetensors_item *item = &header->items[i];
        TRY(check_size(path, item));
        if (item->begin != at)
            return fail(SMELT_ERROR_FORMAT,
                        "file '%s': array '%s' begins at byte %llu of the data; expected %llu: %s", path,
                        item->name, (unsigned long long)item->begin, (unsigned long long)at,
                        item->begin < at ? "it overlaps the one before" : "there is a gap");
        at = item->end;
    }
    if (at != data_bytes)
        return fail(SMELT_ERROR_FORMAT, "file '%s' is %s: its arrays take %llu bytes; it has %llu", path,
                    at > data_bytes ? "truncated" : "damaged", (unsigned long long)at,
                    (unsigned long long)data_bytes);
    return SMELT_OK;
}

/* `names` are sorted. */
static smelt_status check_unique(const char *path, const char *what, const char **names, size_t count) {
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return fail(SMELT_ERROR_FORMAT, "file '%s': %s '%s' is there twice", path, what, names[i]);
    return SMELT_OK;
}

static smelt_status check_names(const char *path, const struct safetensors_header *header,
                                struct arena *arena) {
    size_t most = header->count > header->metadata_count ? header->count : header->metadata_count;
    const char **names = arena_alloc(arena, (most + 1) * sizeof *names);
    if (!names) return fail_out_of_memory(most * sizeof *names);
    for (size_t i = 0; i < header->count; i++) names[i] = header->items[i].name;
    TRY(check_unique(path, "array", names, header->count));
    for (size_t i = 0; i < header->metadata_count; i++) names[i] = header->metadata[2 * i];
    return check_unique(path, "metadata", names, header->metadata_count);
}

smelt_status safetensors_read_header(const char *path, const char *json, size_t size, uint64_t data_bytes,
                                     struct arena *arena, struct safetensors_header *header) {
    struct parser p = {path, json, json, json + size, arena, SMELT_OK};
    *header = (struct safetensors_header){0};
    read_items(&p, header);
    skip_space(&p);
    if (p.at != p.end) damaged(&p, "the end of the header");
    if (p.arena->failed) return fail_out_of_memory(size);
    TRY(p.status);
    TRY(check_places(path, header, data_bytes));
    return check_names(path, header, arena);
}

void safetensors_add_string(struct text *text, const char *string) {
    text_add(text, "\"");
    for (const char *c = string; *c; c++) {
        if (*c == '"' || *c == '\\')
            text_addf(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            text_addf(text, "\\u%04x", (unsigned)*c);
        else
            text_append(text, c, 1);
    }
    text_add(text, "\"");
}
