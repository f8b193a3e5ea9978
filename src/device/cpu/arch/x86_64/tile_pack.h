/* Packing operands and converting results: included by each level's file, and compiled for that level. The
 * level's file defines halves_to_floats and floats_to_halves; tile_level.h PANEL, the lines of a panel. */
#include "device/cpu/arch/x86_64/tile.h"

#include <immintrin.h>
#include <string.h>

/* Elements at data[at + i * stride], i < count; for formats narrower than a byte `at` counts elements. */
struct run {
    enum tile_kind kind;
    const char *data;
    int64_t at, stride;
    int count;
};

static inline uint32_t code_at(const struct run *run, int i, unsigned bits) {
    uint64_t at = (uint64_t)(run->at + i * run->stride);
    uint32_t byte = (uint8_t)run->data[at * bits / 8];
    return byte >> (unsigned)(at * bits % 8) & ((1u << bits) - 1);
}

/* ---- To floats. */

static void halves(const struct run *run, float *out) {
    const uint16_t *in = (const uint16_t *)run->data + run->at;
    if (run->stride == 1) {
        halves_to_floats(in, run->count, out);
        return;
    }
    for (int i = 0; i < run->count; i++) halves_to_floats(in + i * run->stride, 1, out + i);
}

typedef uint16_t eight_shorts __attribute__((vector_size(16)));
typedef uint32_t eight_words __attribute__((vector_size(32)));

static void brains(const struct run *run, float *out) {
    const uint16_t *in = (const uint16_t *)run->data + run->at;
    int64_t stride = run->stride;
    int i = 0;
    for (; stride == 1 && i + 8 <= run->count; i += 8) {
        eight_shorts codes;
        memcpy(&codes, in + i, sizeof codes);
        eight_words words = __builtin_convertvector(codes, eight_words) << 16;
        memcpy(out + i, &words, sizeof words);
    }
    for (; i < run->count; i++) {
        uint32_t word = (uint32_t)in[i * stride] << 16;
        memcpy(out + i, &word, sizeof word);
    }
}

static void floats(const struct run *run, float *out) {
    const float *in = (const float *)run->data + run->at;
    if (run->stride == 1)
        memcpy(out, in, (size_t)run->count * sizeof *out);
    else
        for (int i = 0; i < run->count; i++) out[i] = in[i * run->stride];
}

static void to_floats(const struct run *run, float *restrict out) {
    const int8_t *bytes = (const int8_t *)run->data + run->at;
    int64_t stride = run->stride;
    switch (run->kind) {
    case TILE_FLOAT:
        floats(run, out);
        break;
    case TILE_HALF:
        halves(run, out);
        break;
    case TILE_BFLOAT:
        brains(run, out);
        break;
    case TILE_INT8:
        for (int i = 0; i < run->count; i++) out[i] = bytes[i * stride];
        break;
    case TILE_UINT8:
        for (int i = 0; i < run->count; i++) out[i] = (uint8_t)bytes[i * stride];
        break;
    case TILE_INT32:
        for (int i = 0; i < run->count; i++)
            out[i] = (float)((const int32_t *)run->data)[run->at + i * stride];
        break;
    default: {
        const struct tile_table *table = tile_table(run->kind);
        for (int i = 0; i < run->count; i++) out[i] = table->values[code_at(run, i, table->bits)];
    }
    }
}

/* ---- To other terms. Values are small whole numbers, or bfloats. */

static void to_shorts(const struct run *run, int16_t *out) {
    const uint8_t *bytes = (const uint8_t *)run->data + run->at;
    if (run->kind == TILE_INT8 || run->kind == TILE_UINT8) {
        int flip = run->kind == TILE_INT8 ? 128 : 0; /* the upper half is negative */
        for (int i = 0; i < run->count; i++) out[i] = (int16_t)((bytes[i * run->stride] ^ flip) - flip);
    } else if (run->kind == TILE_INT32) { /* held in slots */
        for (int i = 0; i < run->count; i++)
            out[i] = (int16_t)((const int32_t *)run->data)[run->at + i * run->stride];
    } else {
        const struct tile_table *table = tile_table(run->kind);
        for (int i = 0; i < run->count; i++) out[i] = (int16_t)table->values[code_at(run, i, table->bits)];
    }
}

static void to_bytes(const struct run *run, int8_t *out) {
    const int8_t *bytes = (const int8_t *)run->data + run->at;
    if (run->kind == TILE_INT8 || run->kind == TILE_UINT8) {
        if (run->stride == 1)
            memcpy(out, bytes, (size_t)run->count);
        else
            for (int i = 0; i < run->count; i++) out[i] = bytes[i * run->stride];
    } else if (run->kind == TILE_INT32) {
        for (int i = 0; i < run->count; i++)
            out[i] = (int8_t)((const int32_t *)run->data)[run->at + i * run->stride];
    } else {
        const struct tile_table *table = tile_table(run->kind);
        for (int i = 0; i < run->count; i++) out[i] = (int8_t)table->values[code_at(run, i, table->bits)];
    }
}

static void to_brains(const struct run *run, uint16_t *out) {
    const uint16_t *in = (const uint16_t *)run->data + run->at;
    if (run->kind == TILE_BFLOAT) {
        if (run->stride == 1)
            memcpy(out, in, (size_t)run->count * sizeof *out);
        else
            for (int i = 0; i < run->count; i++) out[i] = in[i * run->stride];
        return;
    }
    for (struct run part = *run; part.count > 0;) {
        float values[64];
        int count = part.count;
        part.count = count < 64 ? count : 64;
        to_floats(&part, values);
        for (int i = 0; i < part.count; i++) {
            uint32_t bits;
            memcpy(&bits, &values[i], sizeof bits);
            *out++ = (uint16_t)(bits >> 16);
        }
        part.at += part.count * part.stride;
        part.count = count - part.count;
    }
}

/* ---- Runs of an operand. */

static int smaller(int64_t a, int64_t b) {
    int64_t least = a < b ? a : b;
    return least < 0 ? 0 : (int)least;
}

static float scale_at(const struct tile_source *s, int64_t line, int64_t term) {
    uint8_t code = s->scales[line / s->line_block * s->scale_line + term / s->term_block * s->scale_term];
    uint32_t bits = code == 255 ? 0x7fc00000u : code ? (uint32_t)code << 23 : 0x400000u;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return scale;
}

/* `count` terms in the pack's format from (line, term) on, along the terms or along the lines. */
static void convert(const struct tile_pack *pack, int64_t line, int64_t term, bool along_terms, int count,
                    void *out) {
    const struct tile_source *s = pack->source;
    struct run run = {s->kind, s->data, s->first + line * s->line_stride + term * s->term_stride,
                      along_terms ? s->term_stride : s->line_stride, count};
    float *values = out;
    switch (pack->format) {
    case TILE_UNIT_SHORT:
        to_shorts(&run, out);
        return;
    case TILE_UNIT_BYTE:
        to_bytes(&run, out);
        return;
    case TILE_UNIT_BRAIN:
        to_brains(&run, out);
        return;
    default:
        to_floats(&run, out);
    }
    if (!s->scales) return;
    for (int i = 0; i < count; i++)
        values[i] *= along_terms ? scale_at(s, line, term + i) : scale_at(s, line + i, term);
}

static int terms_of(enum tile_format format) {
    return format == TILE_UNIT_BYTE ? 4 : format == TILE_UNIT_SHORT || format == TILE_UNIT_BRAIN ? 2 : 1;
}

/* Units of one line, from `unit` of the part on. */
static void fill_line(const struct tile_pack *pack, int line, int unit, int units, uint32_t *out) {
    int terms = terms_of(pack->format), first = unit * terms;
    bool exists = line < pack->lines && pack->first_line + line < pack->source->lines;
    int count = exists ? smaller(pack->terms - first, units * terms) : 0;
    size_t bytes = (size_t)count * (4 / (size_t)terms);
    if (count) convert(pack, pack->first_line + line, pack->first_term + first, true, count, out);
    if (bytes < (size_t)units * 4) memset((char *)out + bytes, 0, (size_t)units * 4 - bytes);
}

#define CHUNK 64 /* units or lines that are converted at once; a multiple of every panel's width */

/* One unit of `lines` lines, at most CHUNK, of which `exist` exist. */
static void fill_unit(const struct tile_pack *pack, int unit, int line, int lines, int exist, uint32_t *out) {
    int terms = terms_of(pack->format), size = 4 / terms;
    union {
        uint32_t words[4][CHUNK];
        uint16_t shorts[4][2 * CHUNK];
        uint8_t bytes[4][4 * CHUNK];
    } parts;
    for (int t = 0; t < terms; t++) {
        int term = unit * terms + t;
        int some = term < pack->terms ? exist : 0;
        char *into = terms == 1 ? (char *)out : (char *)parts.words[t];
        if (some) convert(pack, pack->first_line + line, pack->first_term + term, false, some, into);
        if (some < lines)
            memset(into + (size_t)some * (size_t)size, 0, (size_t)(lines - some) * (size_t)size);
    }
    if (terms == 2)
        for (int i = 0; i < lines; i++) out[i] = parts.shorts[0][i] | (uint32_t)parts.shorts[1][i] << 16;
    if (terms == 4)
        for (int i = 0; i < lines; i++)
            out[i] = parts.bytes[0][i] | (uint32_t)parts.bytes[1][i] << 8 |
                     (uint32_t)parts.bytes[2][i] << 16 | (uint32_t)parts.bytes[3][i] << 24;
}

/* out[i][j] = in[j][i], 4 × 4. */
static inline void transpose_4(const uint32_t *in, int64_t in_row, uint32_t *out, int64_t out_row) {
    __m128 a = _mm_loadu_ps((const float *)in), b = _mm_loadu_ps((const float *)(in + in_row)),
           c = _mm_loadu_ps((const float *)(in + 2 * in_row)),
           d = _mm_loadu_ps((const float *)(in + 3 * in_row));
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps((float *)out, a);
    _mm_storeu_ps((float *)(out + out_row), b);
    _mm_storeu_ps((float *)(out + 2 * out_row), c);
    _mm_storeu_ps((float *)(out + 3 * out_row), d);
}

static int exist_from(const struct tile_pack *pack, int line, int lines) {
    return smaller(pack->source->lines - pack->first_line - line, smaller(pack->lines - line, lines));
}

/* Where a line's units begin in its panel. */
static uint32_t *panel_at(const struct tile_pack *pack, int line) {
    return pack->out + (int64_t)(line / PANEL) * pack->units * PANEL + line % PANEL;
}

/* Units that are read from one line of a panel before the next: a cache line of floats. */
#define TURN_UNITS 16

/* If all elements exist and are floats, packs them without an intermediate copy, four lines at a time.
 * Returns the number of lines that it packed. */
static int float_lines_to_panels(const struct tile_pack *pack) {
    const struct tile_source *s = pack->source;
    bool exist = pack->units == pack->terms && pack->first_line + pack->lines <= s->lines;
    bool floats = s->kind == TILE_FLOAT && !s->scales && s->term_stride == 1 && terms_of(pack->format) == 1;
    if (!exist || !floats) return 0;
    const uint32_t *in =
        (const uint32_t *)s->data + s->first + pack->first_line * s->line_stride + pack->first_term;
    int lines = pack->lines / 4 * 4;
    for (int panel = 0; panel < lines; panel += PANEL)
        for (int first = 0; first < pack->units; first += TURN_UNITS) {
            int last = first + smaller(pack->units - first, TURN_UNITS);
            for (int line = panel; line < smaller(panel + PANEL, lines); line += 4) {
                const uint32_t *from = in + line * s->line_stride;
                uint32_t *out = panel_at(pack, line);
                int unit = first;
                for (; unit + 4 <= last; unit += 4)
                    transpose_4(from + unit, s->line_stride, out + unit * PANEL, PANEL);
                for (; unit < last; unit++)
                    for (int l = 0; l < 4; l++) out[unit * PANEL + l] = from[l * s->line_stride + unit];
            }
        }
    return lines;
}

/* Lines of consecutive terms to panels. */
static void lines_to_panels(const struct tile_pack *pack) {
    uint32_t part[4][CHUNK];
    int lines = (pack->lines + PANEL - 1) / PANEL * PANEL;
    for (int line = float_lines_to_panels(pack); line < lines; line += 4)
        for (int unit = 0; unit < pack->units; unit += CHUNK) {
            int count = smaller(pack->units - unit, CHUNK), at = 0;
            for (int l = 0; l < 4; l++) fill_line(pack, line + l, unit, count, part[l]);
            uint32_t *out = panel_at(pack, line) + unit * PANEL;
            for (; at + 4 <= count; at += 4) transpose_4(&part[0][at], CHUNK, out + at * PANEL, PANEL);
            for (; at < count; at++)
                for (int l = 0; l < 4; l++) out[at * PANEL + l] = part[l][at];
        }
}

/* Units of consecutive lines to lines of units. */
static void units_to_lines(const struct tile_pack *pack) {
    uint32_t part[4][CHUNK];
    for (int line = 0; line < pack->lines; line += CHUNK)
        for (int unit = 0; unit < pack->units; unit += 4) {
            int count = smaller(pack->lines - line, CHUNK), here = smaller(pack->units - unit, 4), at = 0;
            int exist = exist_from(pack, line, count);
            for (int u = 0; u < here; u++) fill_unit(pack, unit + u, line, count, exist, part[u]);
            uint32_t *out = pack->out + line * pack->line_stride + unit;
            for (; here == 4 && at + 4 <= count; at += 4)
                transpose_4(&part[0][at], CHUNK, out + at * pack->line_stride, pack->line_stride);
            for (; at < count; at++)
                for (int u = 0; u < here; u++) out[at * pack->line_stride + u] = part[u][at];
        }
}

/* Terms ahead, whose elements lie in other pages: no hardware fetches them in advance. */
#define PREFETCH_TERMS 8

static void prefetch(const struct tile_pack *pack, int64_t line, int64_t term, int lines) {
    const struct tile_source *s = pack->source;
    int bits = tile_bits(s->kind);
    int64_t at = (s->first + line * s->line_stride + term * s->term_stride) * bits / 8;
    for (int64_t byte = 0; byte < (int64_t)lines * bits / 8; byte += 64)
        __builtin_prefetch(s->data + at + byte);
}

/* `lines` of a panel's unit from consecutive elements, at most PANEL; kind and format are constants where
 * this is inlined, and so is `lines` where it is PANEL. */
static inline __attribute__((always_inline)) void dense_unit(enum tile_kind kind, enum tile_format format,
                                                             const char *row, int64_t term_bytes, int lines,
                                                             uint32_t *out) {
    uint16_t codes[2][PANEL];
    if (kind == TILE_FLOAT) {
        memcpy(out, row, (size_t)lines * 4);
    } else if (kind == TILE_HALF) {
        halves_to_floats((const uint16_t *)row, lines, (float *)out);
    } else if (format == TILE_UNIT_BRAIN) {
        memcpy(codes[0], row, (size_t)lines * 2);
        memcpy(codes[1], row + term_bytes, (size_t)lines * 2);
        for (int i = 0; i < lines; i++) out[i] = codes[0][i] | (uint32_t)codes[1][i] << 16;
    } else {
        memcpy(codes[0], row, (size_t)lines * 2);
        for (int i = 0; i < lines; i++) out[i] = (uint32_t)codes[0][i] << 16;
    }
}

/* The last panel's unit, of which `lines` lines exist. */
static inline __attribute__((always_inline)) void last_unit(enum tile_kind kind, enum tile_format format,
                                                            const char *row, int64_t term_bytes, int lines,
                                                            uint32_t *out) {
    int size = kind == TILE_FLOAT ? 4 : 2, at = 0;
    memset(out, 0, (size_t)PANEL * 4);
    for (; at + PANEL / 2 <= lines; at += PANEL / 2)
        dense_unit(kind, format, row + at * size, term_bytes, PANEL / 2, out + at);
    for (; at + 4 <= lines; at += 4) dense_unit(kind, format, row + at * size, term_bytes, 4, out + at);
    for (; at < lines; at++) dense_unit(kind, format, row + at * size, term_bytes, 1, out + at);
}

/* Elements of 2 or 4 bytes that all exist. */
static inline __attribute__((always_inline)) void dense_panels(const struct tile_pack *pack,
                                                               enum tile_kind kind, enum tile_format format) {
    const struct tile_source *s = pack->source;
    int size = kind == TILE_FLOAT ? 4 : 2, terms = format == TILE_UNIT_BRAIN ? 2 : 1;
    int64_t term_bytes = s->term_stride * size;
    const char *row = s->data + pack->first_line * size + pack->first_term * term_bytes;
    for (int unit = 0; unit < pack->units; unit++, row += term_bytes * terms) {
        for (int line = 0; line < pack->lines; line += 64 / size)
            for (int t = 0; t < terms; t++)
                __builtin_prefetch(row + (PREFETCH_TERMS * terms + t) * term_bytes + line * size);
        uint32_t *out = pack->out + (int64_t)unit * PANEL;
        int line = 0;
        for (; line + PANEL <= pack->lines; line += PANEL, out += (int64_t)pack->units * PANEL)
            dense_unit(kind, format, row + line * size, term_bytes, PANEL, out);
        if (line < pack->lines)
            last_unit(kind, format, row + line * size, term_bytes, pack->lines - line, out);
    }
}

/* Whether the part was packed so. */
static bool pack_dense(const struct tile_pack *pack) {
    const struct tile_source *s = pack->source;
    bool whole =
        pack->first_line + pack->lines <= s->lines && pack->units * terms_of(pack->format) == pack->terms;
    bool brains = pack->format == TILE_UNIT_BRAIN && s->kind == TILE_BFLOAT;
    bool dense = whole && !s->scales && s->line_stride == 1;
    if (!dense || (!brains && terms_of(pack->format) != 1)) return false;
    if (brains)
        dense_panels(pack, TILE_BFLOAT, TILE_UNIT_BRAIN);
    else if (s->kind == TILE_FLOAT)
        dense_panels(pack, TILE_FLOAT, TILE_UNIT_FLOAT);
    else if (s->kind == TILE_HALF)
        dense_panels(pack, TILE_HALF, TILE_UNIT_FLOAT);
    else if (s->kind == TILE_BFLOAT)
        dense_panels(pack, TILE_BFLOAT, TILE_UNIT_FLOAT);
    else
        return false;
    return true;
}

/* Units of consecutive lines to panels. */
static void units_to_panels(const struct tile_pack *pack) {
    int lines = (pack->lines + PANEL - 1) / PANEL * PANEL, terms = terms_of(pack->format);
    if (pack_dense(pack)) return;
    uint32_t part[CHUNK];
    for (int line = 0; line < lines; line += CHUNK) {
        int count = smaller(lines - line, CHUNK), exist = exist_from(pack, line, count);
        for (int unit = 0; unit < pack->units; unit++) {
            for (int t = 0; t < terms; t++)
                prefetch(pack, pack->first_line + line,
                         pack->first_term + unit * terms + t + PREFETCH_TERMS * terms, exist);
            fill_unit(pack, unit, line, count, exist, part);
            for (int at = 0; at < count; at += PANEL)
                memcpy(panel_at(pack, line + at) + unit * PANEL, part + at, (size_t)PANEL * 4);
        }
    }
}

static void pack_part(const struct tile_pack *pack) {
    bool along_terms = pack->source->term_stride == 1 || pack->source->line_stride != 1;
    if (along_terms && pack->panels)
        lines_to_panels(pack);
    else if (pack->panels)
        units_to_panels(pack);
    else if (along_terms)
        for (int line = 0; line < pack->lines; line++)
            fill_line(pack, line, 0, pack->units, pack->out + line * pack->line_stride);
    else
        units_to_lines(pack);
}

/* ---- Results. */

/* Rounds to nearest even; a NaN stays a NaN. */
static uint16_t float_to_brain(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((value != value ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void store_sums(const void *sums, int count, enum tile_kind kind, char *out, int64_t stride) {
    const float *values = sums;
    if (kind == TILE_HALF && stride == 1) {
        floats_to_halves(values, count, (uint16_t *)out);
    } else if (kind == TILE_HALF) {
        for (int i = 0; i < count; i++) floats_to_halves(values + i, 1, (uint16_t *)out + i * stride);
    } else if (kind == TILE_BFLOAT) {
        for (int i = 0; i < count; i++) ((uint16_t *)out)[i * stride] = float_to_brain(values[i]);
    } else if (stride == 1) {
        memcpy(out, sums, (size_t)count * 4);
    } else {
        for (int i = 0; i < count; i++) ((uint32_t *)out)[i * stride] = ((const uint32_t *)sums)[i];
    }
}

static void load_sums(void *sums, int count, enum tile_kind kind, const char *in, int64_t stride) {
    struct run run = {kind == TILE_INT32 ? TILE_FLOAT : kind, in, 0, stride, count};
    to_floats(&run, sums);
}
