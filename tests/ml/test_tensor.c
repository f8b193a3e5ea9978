/* Metal 4's tensors: products of every pair of element types against float64, a sum of K terms being wrong by
 * at most (K + 4)·u·Σ|a·b| and half a unit of the result's type; what slots hold; reductions; formats, all
 * codes of them. */
#include "ml.h"

#include <stdio.h>

#define FILE_ .file = "tensor.metal"
#define SINGLE .file = "tensor_single.metal"

/* ---- Element types, by definition. */

static double real_value(uint32_t code, int exponent_bits, int mantissa_bits, int bias) {
    uint32_t mantissa = code & ((1u << mantissa_bits) - 1);
    int exponent = (int)(code >> mantissa_bits & ((1u << exponent_bits) - 1));
    double magnitude = exponent ? ldexp(1 + ldexp(mantissa, -mantissa_bits), exponent - bias)
                                : ldexp(mantissa, 1 - bias - mantissa_bits);
    return code >> (exponent_bits + mantissa_bits) & 1 ? -magnitude : magnitude;
}

static double int4b(uint32_t code) {
    return code < 8 ? code : (double)code - 16;
}
static double int2b(uint32_t code) {
    return code < 2 ? code : (double)code - 4;
}
static double itself(uint32_t code) {
    return code;
}
static double fp4(uint32_t code) {
    return real_value(code, 2, 1, 1);
}
static double e4m3(uint32_t code) {
    return (code & 127) == 127 ? NAN : real_value(code, 4, 3, 7);
}
static double e5m2(uint32_t code) {
    if ((code & 127) < 124) return real_value(code, 5, 2, 15);
    return (code & 3) ? NAN : code >> 7 ? -INFINITY : INFINITY;
}
static double ue8m0(uint32_t code) {
    return code == 255 ? NAN : ldexp(1, (int)code - 127);
}

static const struct format {
    const char *name;
    int bits;
    double (*value)(uint32_t code);
} formats[] = {{"int4b", 4, int4b}, {"uint4b", 4, itself}, {"int2b", 2, int2b}, {"uint2b", 2, itself},
               {"fp4", 4, fp4},     {"e4m3", 8, e4m3},     {"e5m2", 8, e5m2},   {"ue8m0", 8, ue8m0}};
enum { FORMATS = sizeof formats / sizeof *formats };

static const struct plain {
    const char *name;
    smelt_dtype dtype;
} plains[] = {{"half", SMELT_FLOAT16}, {"float", SMELT_FLOAT32}, {"bfloat", SMELT_BFLOAT16},
              {"char", SMELT_INT8},    {"uchar", SMELT_UINT8},   {"int", SMELT_INT32}};

static smelt_dtype dtype_of(const char *name) {
    for (size_t i = 0; i < sizeof plains / sizeof *plains; i++)
        if (strcmp(plains[i].name, name) == 0) return plains[i].dtype;
    return SMELT_NO_DTYPE;
}

/* Code number `index` of those packed at `bytes`. */
static uint32_t code_at(const uint8_t *bytes, int bits, int64_t index) {
    int64_t bit = index * bits;
    return bytes[bit / 8] >> bit % 8 & ((1u << bits) - 1);
}

/* Random elements, and their values. */
static struct tensor *elements(const char *name, int64_t count, double **values) {
    smelt_dtype dtype = dtype_of(name);
    if (dtype != SMELT_NO_DTYPE) {
        bool whole = dtype == SMELT_INT8 || dtype == SMELT_UINT8;
        struct tensor *t =
            whole ? uniform(dtype, count, dtype == SMELT_INT8 ? -128 : 0, dtype == SMELT_INT8 ? 128 : 256)
                  : normal(dtype, count, 1);
        *values = t->value;
        return t;
    }
    const struct format *f = formats;
    while (strcmp(f->name, name) != 0) f++;
    struct tensor *t = uniform(SMELT_UINT8, (count * f->bits + 7) / 8, 0, 256);
    uint8_t *bytes = t->data;
    for (int64_t i = 0; f->bits == 8 && i < t->count; i++)
        while (!isfinite(f->value(bytes[i]))) bytes[i] = (uint8_t)random_below(256);
    changed(t);
    *values = doubles(count);
    for (int64_t i = 0; i < count; i++) (*values)[i] = f->value(code_at(bytes, f->bits, i));
    return t;
}

/* ---- Products. */

struct problem {
    const char *entry, *left, *right, *out;
    int m, n; /* the tile */
    bool transposed_left, transposed_right, adds;
    int simdgroups;
};

/* Relative to the sum of the terms' magnitudes. Relaxed sums of small floats have fewer bits on GPUs
 * (docs/tensors.md): each of 32 products is cut at about 2^-13 of the largest. */
static double error_of_terms(const struct problem *p, int terms) {
    return strncmp(p->entry, "relaxed", 7) == 0 ? 0x1p-9 : (terms + 4) * 0x1p-24;
}

/* C = A B of M × K and K × N elements, on top of what is in `expected`. */
static void multiply(const struct problem *p, const int size[3], const double *a, const double *b,
                     double *expected, double *bound) {
    int M = size[0], N = size[1], K = size[2];
    bool whole = strcmp(p->out, "int") == 0;
    for (int r = 0; r < M; r++)
        for (int c = 0; c < N; c++) {
            double sum = expected[r * N + c], absolute = fabs(sum);
            for (int k = 0; k < K; k++) {
                double term = a[p->transposed_left ? k * M + r : r * K + k] *
                              b[p->transposed_right ? c * K + k : k * N + c];
                sum += term, absolute += fabs(term);
            }
            expected[r * N + c] = sum;
            bound[r * N + c] = whole ? 0
                                     : error_of_terms(p, K) * absolute +
                                           fabs(sum) * roundoff(dtype_of(p->out)) * 1.01 + 1e-7;
        }
}

static void run_product(const struct problem *p, int M, int N, int K) {
    const int size[3] = {M, N, K};
    double *a, *b, *expected = doubles(M * N), *bound = doubles(M * N);
    struct tensor *left = elements(p->left, M * K, &a), *right = elements(p->right, K * N, &b);
    struct tensor *out = p->adds ? normal(dtype_of(p->out), M * N, 1) : room(dtype_of(p->out), M * N);
    if (p->adds && out->dtype == SMELT_INT32) out = uniform(SMELT_INT32, M * N, -1000000, 1000000);
    if (p->adds) memcpy(expected, out->value, (size_t)(M * N) * sizeof *expected);
    multiply(p, size, a, b, expected, bound);
    struct launch l = {FILE_,
                       .entry = p->entry,
                       .in = {left, right},
                       .bytes = {[3] = {size, sizeof size}},
                       .groups = {(N + p->n - 1) / p->n, (M + p->m - 1) / p->m, 1},
                       .threadgroup = {32 * p->simdgroups}};
    *(p->adds ? &l.update[2] : &l.out[2]) = out;
    launch(l);
    check_bounds(p->entry, out, expected, bound);
}

static void products(void **s) {
    (void)s;
    static const struct problem problems[] = {
        {"nn", "half", "half", "float", 32, 48, false, false, false, 1},
        {"tn", "half", "float", "float", 16, 32, true, false, false, 2},
        {"nt_adds", "float", "bfloat", "float", 64, 16, false, true, true, 4},
        {"tt", "half", "half", "half", 48, 32, true, true, false, 3},
        {"row", "half", "half", "float", 8, 32, false, false, false, 1},
        {"odd", "float", "float", "float", 20, 24, false, true, false, 2},
        {"wide", "half", "half", "float", 16, 96, false, false, true, 4}};
    static const int sizes[][3] = {{1, 1, 1}, {64, 96, 32}, {70, 51, 37}, {16, 48, 15}, {33, 97, 80}};
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            run_product(&problems[p], sizes[i][0], sizes[i][1], sizes[i][2]);
}

/* Tiles that GPUs multiply by warpgroups: whole ones with many terms, whose rows lie at multiples of 16
 * bytes, and others. */
static void large(void **s) {
    (void)s;
    static const struct problem problems[] = {
        {"large nn", "half", "half", "float", 64, 64, false, false, false, 4},
        {"large tt", "bfloat", "bfloat", "float", 128, 64, true, true, true, 8},
        {"large nt", "half", "half", "half", 64, 128, false, true, false, 4},
        {"large tn", "bfloat", "bfloat", "bfloat", 64, 128, true, false, true, 8},
        {"large char", "half", "char", "float", 64, 64, false, false, true, 4},
        {"large e4m3", "e4m3", "e4m3", "float", 64, 80, false, true, false, 4},
        {"relaxed e4m3", "e4m3", "e4m3", "float", 64, 80, false, true, false, 4},
        {"relaxed e5m2", "e5m2", "e5m2", "float", 128, 64, false, true, true, 4}};
    static const int sizes[][3] = {{136, 200, 272}, {64, 128, 1024}, {65, 67, 259}, {70, 64, 16}};
    /* A CPU's code for these differs from that for smaller tiles in its size alone, so make check runs
     * three of them. */
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p += runs_all() ? 1 : 3)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            run_product(&problems[p], sizes[i][0], sizes[i][1], sizes[i][2]);
    if (!runs_all()) return;
    const struct problem largest = {
        "relaxed large e4m3", "e4m3", "e4m3", "float", 128, 256, false, true, false, 8};
    run_product(&largest, 130, 300, 400);
    /* More threadgroups than a GPU has multiprocessors. Rows of 519 elements do not begin at multiples of 16
     * bytes. */
    run_product(&problems[2], 776, 1544, 256);
    run_product(&problems[2], 776, 1544, 519);
}

/* Every row of the table of types; in make check every second: each type and format is an operand there. */
static void types(void **s) {
    (void)s;
    static const char *const rows[] = {
        "half half half",       "half char half",         "half uchar float T",    "char half float",
        "uchar half half T",    "float half float",       "float char float T",    "uchar float float",
        "char char int",        "uchar uchar int T",      "bfloat bfloat bfloat",  "bfloat bfloat float T",
        "bfloat float float",   "float bfloat float T",   "bfloat char bfloat",    "uchar bfloat float T",
        "bfloat half half",     "half bfloat bfloat T",   "half int4b half T",     "half uint4b float T",
        "bfloat int4b float T", "bfloat uint4b bfloat T", "char int4b int T",      "uchar uint4b int T",
        "half int2b float T",   "half uint2b half T",     "bfloat int2b bfloat T", "bfloat uint2b float T",
        "char int2b int T",     "uchar uint2b int T",     "half e4m3 half T",      "half fp4 float T",
        "half e5m2 float T",    "fp4 fp4 float T",        "e5m2 e5m2 float T",     "e4m3 e4m3 float T"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if ((i + i / 2) % 2 && !runs_all()) continue;
        char left[16], right[16], out[16], t[4] = "", entry[64];
        assert_true(sscanf(rows[i], "%15s %15s %15s %3s", left, right, out, t) >= 3);
        snprintf(entry, sizeof entry, "types %s %s %s", left, right, out);
        struct problem p = {entry, left, right, out, 16, 16, false, *t, *t, 1};
        run_product(&p, 16, 32, 32);
        run_product(&p, 21, 19, 24);
    }
}

static void alone(void **s) {
    (void)s;
    struct problem p = {"alone", "half", "half", "float", 3, 5, false, false, false, 0};
    const int size[3] = {7, 11, 9};
    double *a, *b, *expected = doubles(77), *bound = doubles(77);
    struct tensor *left = elements("half", 63, &a), *right = elements("half", 99, &b),
                  *out = room(SMELT_FLOAT32, 77);
    multiply(&p, size, a, b, expected, bound);
    RUN(SINGLE, .entry = "alone", .in = {left, right}, .out = {[2] = out},
        .bytes = {[3] = {size, sizeof size}}, .grid = {3, 3}, .threadgroup = {3, 3});
    check_bounds("alone", out, expected, bound);
}

static void run_scaled(const char *entry, int m, int n, int simdgroups, int M, int N, int K) {
    struct problem p = {entry, "e4m3", "e4m3", "float", m, n, false, true, false, simdgroups};
    const int size[3] = {M, N, K};
    double *a, *b, *expected = doubles(M * N), *bound = doubles(M * N);
    struct tensor *left = elements("e4m3", M * K, &a), *right = elements("e4m3", N * K, &b),
                  *of_left = uniform(SMELT_UINT8, M * K / 32, 120, 134),
                  *of_right = uniform(SMELT_UINT8, N * K / 32, 120, 134), *out = room(SMELT_FLOAT32, M * N);
    for (int i = 0; i < M * K; i++) a[i] *= ue8m0(((uint8_t *)of_left->data)[i / 32]);
    for (int i = 0; i < N * K; i++) b[i] *= ue8m0(((uint8_t *)of_right->data)[i / 32]);
    multiply(&p, size, a, b, expected, bound);
    RUN(FILE_, .entry = entry, .in = {left, right, [4] = of_left, [5] = of_right}, .out = {[2] = out},
        .bytes = {[3] = {size, sizeof size}}, .groups = {(N + n - 1) / n, (M + m - 1) / m},
        .threadgroup = {32 * simdgroups});
    check_bounds(entry, out, expected, bound);
}

static void scales(void **s) {
    (void)s;
    run_scaled("scaled", 32, 32, 2, 40, 50, 160);
    run_scaled("scaled large", 64, 64, 4, 40, 50, 160);
    if (!runs_all()) return;
    run_scaled("scaled largest", 128, 256, 8, 256, 512, 512);
    run_scaled("scaled largest", 128, 256, 8, 150, 300, 416);
}

/* Every code of a scale: row `r` has one element that is not 0, in a block of scale r. */
static void scale_codes(void **s) {
    (void)s;
    enum { M = 256, N = 64, K = 64 };
    const int size[3] = {M, N, K};
    struct tensor *left = uniform(SMELT_UINT8, M * K, 0, 1), *right = uniform(SMELT_UINT8, N * K, 0, 1),
                  *of_left = uniform(SMELT_UINT8, M * K / 32, 127, 128),
                  *of_right = uniform(SMELT_UINT8, N * K / 32, 127, 128), *out = room(SMELT_FLOAT32, M * N);
    uint8_t *codes = left->data, *units = right->data, *scales_of_left = of_left->data;
    for (int i = 0; i < M; i++)
        codes[i * K] = (uint8_t)(i * 37 % 127 | i % 2 << 7), scales_of_left[i * 2] = (uint8_t)i;
    for (int i = 0; i < N; i++) units[i * K] = 0x38;
    changed(left), changed(right), changed(of_left);
    RUN(FILE_, .entry = "scaled large", .in = {left, right, [4] = of_left, [5] = of_right},
        .out = {[2] = out}, .bytes = {[3] = {size, sizeof size}}, .groups = {N / 64, M / 64},
        .threadgroup = {128});
    for (int i = 0; i < M * N; i++) {
        float found = ((float *)out->data)[i],
              expected = (float)(e4m3(codes[i / N * K]) * ue8m0((uint32_t)(i / N)));
        /* GPUs convert operands to bfloat, which may lose what lies below 2^-126. */
        if (isnan(expected) ? !isnan(found) : found != expected && !(fabsf(found - expected) <= 0x1p-126f))
            FAIL_TEST("scale %d, element %d: %g, expected %g", i / N, i % N, (double)found, (double)expected);
    }
}

static void registers(void **s) {
    (void)s;
    static const struct {
        struct problem p;
        int k;
    } cases[] = {{{"registers nn", "half", "half", "float", 16, 32, false, false, true, 1}, 16},
                 {{"registers nt", "half", "half", "float", 16, 32, false, true, true, 1}, 32},
                 {{"registers tn", "float", "float", "float", 32, 16, true, false, true, 1}, 16},
                 {{"registers tt", "bfloat", "bfloat", "float", 16, 16, true, true, true, 1}, 24},
                 {{"registers few", "float", "float", "float", 8, 24, false, true, true, 1}, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct problem *p = &cases[i].p;
        const int size[3] = {p->m, p->n, cases[i].k};
        double *a, *b, *expected = doubles(p->m * p->n), *bound = doubles(p->m * p->n);
        struct tensor *left = elements(p->left, p->m * cases[i].k, &a),
                      *right = elements(p->right, p->n * cases[i].k, &b),
                      *bias = normal(SMELT_FLOAT32, p->n, 1), *out = room(SMELT_FLOAT32, p->m * p->n);
        for (int j = 0; j < p->m * p->n; j++) expected[j] = bias->value[j % p->n];
        multiply(p, size, a, b, expected, bound);
        RUN(FILE_, .entry = p->entry, .in = {left, right, [4] = bias}, .out = {[2] = out}, .groups = {1},
            .threadgroup = {32});
        check_bounds(p->entry, out, expected, bound);
    }
}

/* As kernel "spaces". */
static void spaces(void **s) {
    (void)s;
    struct problem p = {"spaces", "half", "half", "float", 16, 32, false, false, false, 1};
    const int size[3] = {16, 32, 24};
    double *a, *b, *expected = doubles(16 * 32), *bound = doubles(16 * 32), *of_threads = doubles(3 * 32),
                   *own_bound = doubles(3 * 32);
    struct tensor *left = elements("half", 16 * 24, &a), *right = elements("half", 24 * 32, &b),
                  *out = room(SMELT_FLOAT32, 16 * 32), *own = room(SMELT_FLOAT32, 3 * 32);
    multiply(&p, size, a, b, expected, bound);
    for (int i = 0; i < 32; i++)
        for (int e = 0; e < 3 * 16; e++) {
            double factor = e % 7 - 3, term = factor * expected[e % 16 * 32 + i];
            of_threads[e / 16 * 32 + i] += term;
            own_bound[e / 16 * 32 + i] += fabs(factor) * bound[e % 16 * 32 + i] + 20 * 0x1p-24 * fabs(term);
        }
    RUN(SINGLE, .entry = "spaces", .in = {left, right}, .out = {[2] = out, [3] = own}, .groups = {1},
        .threadgroup = {32});
    check_bounds("spaces", out, expected, bound);
    check_bounds("spaces, by thread", own, of_threads, own_bound);
}

/* Words of a thread as kernel "lanes" writes them. */
enum { WORDS = 24 };
static uint32_t number(unsigned lane) {
    return lane * 7 + 3;
}
static uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void words_of_lane(unsigned thread, unsigned group, uint32_t word[WORDS]) {
    unsigned lane = thread % 32;
    uint32_t n = number(lane), most = 0, vote = 0, below = 0, sum_of_eights = 0, active = 0, all = 0,
             active_below = 0, least = 8;
    float product = 1, tree[32];
    for (unsigned l = 0; l < 32; l++) {
        uint32_t eight = number(l) % 8;
        most = (number(l) ^ 21) > most ? number(l) ^ 21 : most;
        vote |= (uint32_t)(l % 3 == 0) << l;
        below += l < lane ? number(l) : 0;
        sum_of_eights += l <= lane ? eight : 0;
        tree[l] = (float)number(l) * 0.1f;
        if (l % 3 != 1) continue;
        active |= 1u << l;
        all += number(l);
        active_below += l <= lane ? number(l) : 0;
        least = eight < least ? eight : least;
        product *= (float)(eight + 1);
    }
    for (int step = 1; step < 32; step *= 2) /* neighbours first */
        for (int l = 0; l + step < 32; l += 2 * step) tree[l] += tree[l + step];
    unsigned quad = lane & ~3u;
    uint32_t all_lanes[16] = {thread % 8,
                              thread / 8,
                              group * 8 + thread % 8,
                              thread,
                              lane,
                              number((lane * 5 + 1) & 31),
                              number(lane ^ 13),
                              number((lane + 29) & 31),
                              vote,
                              below + n,
                              below,
                              most,
                              float_bits(tree[0]),
                              float_bits((float)sum_of_eights),
                              number(quad) + number(quad + 1) + number(quad + 2) + number(quad + 3),
                              number(lane ^ 1)};
    uint32_t some[8] = {
        number(1),          active, active_below, lane == 1, number(4), all, float_bits((float)least),
        float_bits(product)};
    memcpy(word, all_lanes, sizeof all_lanes);
    for (int k = 0; k < 8; k++) word[16 + k] = lane % 3 == 1 ? some[k] : 0;
}

static void lanes(void **s) {
    (void)s;
    enum { GROUPS = 3, THREADS = 64 };
    const int size[3] = {16, 16, 16};
    struct problem p = {"lanes", "half", "half", "float", 16, 16, false, false, false, 1};
    double *a, *b, *expected = doubles(GROUPS * 512), *bound = doubles(GROUPS * 512);
    struct tensor *left = elements("half", 512, &a), *right = elements("half", 256, &b),
                  *out = room(SMELT_FLOAT32, GROUPS * 512),
                  *words = room(SMELT_UINT32, GROUPS * THREADS * WORDS);
    for (int g = 0; g < 2 * GROUPS; g++)
        multiply(&p, size, a + g % 2 * 256, b, expected + g * 256, bound + g * 256);
    RUN(SINGLE, .entry = "lanes", .in = {left, right}, .out = {[2] = out, [3] = words}, .groups = {GROUPS},
        .threadgroup = {8, 8});
    check_bounds("lanes", out, expected, bound);
    const uint32_t *found = words->data;
    for (unsigned t = 0; t < GROUPS * THREADS; t++) {
        uint32_t word[WORDS];
        words_of_lane(t % THREADS, t / THREADS, word);
        for (int k = 0; k < WORDS; k++)
            if (found[t * WORDS + (unsigned)k] != word[k])
                FAIL_TEST("thread %u, word %d: %u, expected %u", t, k, found[t * WORDS + (unsigned)k],
                          word[k]);
    }
}

/* ---- Convolutions. */

static void convolve(const char *entry, const char *type, const char *result, const int kernel[2],
                     const int stride[2], const int dilation[2], const int pad[2], bool adds,
                     int simdgroups) {
    enum { C = 5, W = 9, H = 8, N = 2, O = 7 };
    const int size[2] = {(W + 2 * pad[0] - (kernel[0] - 1) * dilation[0] - 1) / stride[0] + 1,
                         (H + 2 * pad[1] - (kernel[1] - 1) * dilation[1] - 1) / stride[1] + 1};
    int count = O * size[0] * size[1] * N;
    double *a, *w, *expected = doubles(count), *bound = doubles(count);
    struct tensor *in = elements(type, C * W * H * N, &a),
                  *weights = elements(type, O * C * kernel[0] * kernel[1], &w);
    struct tensor *out = adds ? uniform(dtype_of(result), count, -5, 5) : room(dtype_of(result), count);
    if (adds) memcpy(expected, out->value, (size_t)count * sizeof *expected);
    for (int i = 0; i < count; i++) {
        int o = i % O, x = i / O % size[0], y = i / O / size[0] % size[1], n = i / O / size[0] / size[1];
        double absolute = fabs(expected[i]);
        for (int k = 0; k < kernel[0] * kernel[1] * C; k++) {
            int kx = k / C % kernel[0], ky = k / C / kernel[0], c = k % C;
            int ix = x * stride[0] - pad[0] + kx * dilation[0],
                iy = y * stride[1] - pad[1] + ky * dilation[1];
            if (ix < 0 || ix >= W || iy < 0 || iy >= H) continue;
            double term = a[((n * H + iy) * W + ix) * C + c] * w[((ky * kernel[0] + kx) * C + c) * O + o];
            expected[i] += term, absolute += fabs(term);
        }
        bound[i] = strcmp(result, "int") == 0 ? 0 : 60 * 0x1p-24 * absolute + 1e-6;
        if (!adds && o == 6) expected[i] += x % 4 + 10 * (y % 2), bound[i] += 1e-5;
    }
    struct launch l = {FILE_,
                       .entry = entry,
                       .in = {in, weights},
                       .bytes = {[3] = {pad, 8}, [4] = {size, sizeof size}},
                       .groups = {(size[0] + 3) / 4, (size[1] + 1) / 2, N},
                       .threadgroup = {32 * simdgroups}};
    *(adds ? &l.update[2] : &l.out[2]) = out;
    launch(l);
    check_bounds(entry, out, expected, bound);
}

static void convolutions(void **s) {
    (void)s;
    convolve("convolve 3 3", "half", "float", (int[]){3, 3}, (int[]){1, 1}, (int[]){1, 1}, (int[]){1, 1},
             false, 1);
    convolve("convolve 2 3", "float", "float", (int[]){2, 3}, (int[]){2, 1}, (int[]){1, 2}, (int[]){0, 2},
             true, 2);
    convolve("convolve bytes", "char", "int", (int[]){4, 1}, (int[]){1, 2}, (int[]){1, 1}, (int[]){2, 0},
             true, 1);
}

/* ---- What slots hold. */

/* The fragments of Apple's GPUs, which kernels rely on. */
static void fragments(void **s) {
    (void)s;
    struct tensor *held = constant_of(SMELT_INT32, 32 * 16, -2);
    RUN(FILE_, .entry = "slots 16 32 1", .update = {[2] = held}, .groups = {1}, .threadgroup = {32});
    for (int lane = 0; lane < 32; lane++)
        for (int slot = 0; slot < 16; slot++) {
            int row = (lane >> 4 & 1) * 4 + (lane >> 1 & 3) + (slot >> 2 & 1) * 8,
                column = (lane >> 3 & 1) * 8 + (lane & 1) * 4 + (slot & 3) + slot / 8 * 16;
            assert_int_equal(((int32_t *)held->data)[lane * 16 + slot], row * 1000 + column);
        }
}

/* Whatever the tile and the number of simdgroups. */
static void every_element_once(void **s) {
    (void)s;
    static const int cases[][3] = {{16, 32, 1}, {64, 64, 4}, {16, 48, 2}, {8, 40, 1}, {50, 20, 3}};
    for (int i = 0; i < 5; i++) {
        int m = cases[i][0], n = cases[i][1], threads = 32 * cases[i][2], most = 64 * threads;
        char entry[32];
        snprintf(entry, sizeof entry, "slots %d %d %d", m, n, cases[i][2]);
        struct tensor *held = constant_of(SMELT_INT32, most, -1);
        RUN(FILE_, .entry = entry, .update = {[2] = held}, .groups = {1}, .threadgroup = {threads});
        int *seen = scratch((size_t)(m * n) * sizeof *seen);
        for (int slot = 0; slot < most; slot++) {
            int32_t at = ((int32_t *)held->data)[slot];
            if (at < 0) continue;
            assert_true(at / 1000 < m && at % 1000 < n);
            seen[at / 1000 * n + at % 1000]++;
        }
        for (int e = 0; e < m * n; e++) assert_int_equal(seen[e], 1);
    }
}

/* ---- Reductions. */

/* Softmax of rows, as kernel "rows"; row 1 of the left matrix may be all -inf, so that every score is. */
static void softmax(const char *entry, const char *type, int m, int n, int d, bool masked, double low) {
    double *a, *b, *v;
    struct tensor *q = elements(type, m * d, &a), *k = elements(type, n * d, &b),
                  *values = elements(type, n * d, &v), *out = room(SMELT_FLOAT32, m * d),
                  *statistics = room(SMELT_FLOAT32, 2 * n + m);
    if (masked) {
        double *left = doubles(m * d), *right = doubles(n * d);
        for (int i = 0; i < m * d; i++) left[i] = i / d == 1 ? -INFINITY : a[i];
        for (int i = 0; i < n * d; i++) right[i] = fabs(b[i]) + 0.01;
        q = rounded(dtype_of(type), m * d, left), k = rounded(dtype_of(type), n * d, right);
        a = q->value, b = k->value;
    }
    double *score = doubles(m * n), *expected = doubles(m * d), *expected_statistics = doubles(2 * n + m);
    for (int c = 0; c < n; c++) expected_statistics[n + c] = INFINITY;
    for (int r = 0; r < m; r++) {
        double top = low, sum = 0;
        for (int c = 0; c < n; c++) {
            for (int j = 0; j < d; j++) score[r * n + c] += a[r * d + j] * b[c * d + j];
            expected_statistics[c] += score[r * n + c];
            expected_statistics[n + c] = fmin(expected_statistics[n + c], score[r * n + c]);
            top = fmax(top, score[r * n + c]);
        }
        expected_statistics[2 * n + r] = top;
        for (int c = 0; c < n; c++) sum += exp(score[r * n + c] - top);
        for (int j = 0; j < d; j++) {
            for (int c = 0; c < n; c++) expected[r * d + j] += exp(score[r * n + c] - top) * v[c * d + j];
            expected[r * d + j] /= sum;
        }
    }
    float start = (float)low;
    RUN(FILE_, .entry = entry, .in = {q, k, [4] = values}, .out = {[2] = out, [3] = statistics},
        .bytes = {[5] = {&start, sizeof start}}, .groups = {1}, .threadgroup = {32});
    check("statistics", statistics, expected_statistics, 1e-4, 1e-4);
    check(entry, out, expected, 1e-4, 1e-4);
}

static void reductions(void **s) {
    (void)s;
    softmax("rows half", "half", 16, 32, 16, false, -INFINITY);
    softmax("rows float", "float", 32, 24, 24, false, -INFINITY);
    /* A row without any value: the identity comes back unchanged, and with -inf exp makes NaN of it. */
    softmax("rows float", "float", 32, 24, 24, true, -INFINITY);
    softmax("rows float", "float", 32, 24, 24, true, -(double)3.402823466e38);
}

/* ---- Formats. */

static void decodes(void **s) {
    (void)s;
    for (int f = 0; f < FORMATS; f++) {
        int in_byte = 8 / formats[f].bits, count = 256 * in_byte;
        uint8_t codes[256];
        double *expected = doubles(count);
        for (int i = 0; i < 256; i++) codes[i] = (uint8_t)i;
        for (int i = 0; i < count; i++) expected[i] = formats[f].value(code_at(codes, formats[f].bits, i));
        char entry[32];
        snprintf(entry, sizeof entry, "decode %s", formats[f].name);
        struct tensor *out = room(SMELT_FLOAT32, count);
        RUN(FILE_, .entry = entry, .in = {copy_of(SMELT_UINT8, 256, codes)}, .out = {[2] = out},
            .grid = {count}, .threadgroup = {64});
        check(entry, out, expected, 0, 0);
    }
}

/* The finite code nearest to `value`, of two the even one; or, `down`, the nearest that is not larger in
 * magnitude. */
static uint32_t nearest(const struct format *f, double value, bool down) {
    uint32_t best = 0;
    double distance = INFINITY;
    for (uint32_t code = 0; code < 1u << f->bits; code++) {
        double v = f->value(code), off = fabs(v - value);
        if (!isfinite(v) || signbit(v) != signbit(value) * (f->value(1u << (f->bits - 1)) <= 0)) continue;
        if (down && fabs(v) > fabs(value)) continue;
        if (off < distance || (off == distance && !(code & 1))) best = code, distance = off;
    }
    return best;
}

/* Every value of a format, what lies half-way between two, next to that, beyond all, and random ones. */
static void encodes(void **s) {
    (void)s;
    for (int f = 0; f < FORMATS; f++) {
        const struct format *format = &formats[f];
        bool whole = f < 4, is_signed = format->value(1u << (format->bits - 1)) <= 0;
        double least = whole || is_signed ? 0 : format->value(0); /* of formats without 0, the smallest */
        enum { MOST = 2048 };
        float values[MOST];
        int count = 0;
        for (uint32_t code = 0; code < 1u << format->bits; code++) {
            float v = (float)format->value(code),
                  next = (float)format->value(code + 1 < 1u << format->bits ? code + 1 : code);
            if (!isfinite(v)) continue;
            float middle = isfinite(next) ? (v + next) / 2 : v;
            values[count++] = v, values[count++] = middle;
            values[count++] = nextafterf(middle, INFINITY), values[count++] = nextafterf(middle, -INFINITY);
        }
        while (count % 4 || count < 1200)
            values[count++] =
                (float)(ldexp(random_unit() * 2 - (is_signed ? 1 : 0), (int)random_below(14) - 8));
        double largest = 0;
        for (uint32_t code = 0; code < 1u << format->bits; code++)
            if (isfinite(format->value(code))) largest = fmax(largest, format->value(code));
        values[0] = (float)largest * 1.5f, values[1] = INFINITY, values[2] = whole ? 0.5f : -0.0f,
        values[3] = (float)largest;
        int bytes = count * format->bits / 8;
        struct tensor *in = copy_of(SMELT_FLOAT32, count, values), *out = room(SMELT_UINT8, bytes),
                      *truncated = room(SMELT_UINT8, bytes), *unpacked = room(SMELT_FLOAT32, 2 * count);
        char entry[32];
        snprintf(entry, sizeof entry, "encode %s", format->name);
        RUN(FILE_, .entry = entry, .in = {in}, .out = {[2] = out, [3] = truncated, [4] = unpacked},
            .grid = {count / 4}, .threadgroup = {32});
        for (int i = 0; i < count; i++) {
            double value = fmax(fmin((double)values[i], largest), is_signed ? -1e30 : least);
            if (whole)
                value = fmax(value, format->value(1u << (format->bits - 1)) < 0
                                        ? format->value(1u << (format->bits - 1))
                                        : 0);
            uint32_t got = code_at(out->data, format->bits, i), want = nearest(format, value, false);
            if (whole) want = (uint32_t)(int)rint(value) & ((1u << format->bits) - 1);
            if (got != want) FAIL_TEST("%s of %.9g is %u, expected %u", entry, (double)values[i], got, want);
            double back = format->value(got), again = unpacked->value[i / 4 * 8 + i % 4];
            bool is_half = fabs(back) <= 65504 && (back == 0 || fabs(back) >= 0x1p-24);
            if (again != back || (is_half && unpacked->value[i / 4 * 8 + 4 + i % 4] != back))
                FAIL_TEST("%s: unpack of %u is %.9g, expected %.9g", entry, got, again, back);
            if (fabs((double)values[i]) > largest) continue;
            got = code_at(truncated->data, format->bits, i), want = nearest(format, value, true);
            if (whole) want = (uint32_t)(int)trunc(value) & ((1u << format->bits) - 1);
            if (got != want)
                FAIL_TEST("%s toward zero of %.9g is %u, expected %u", entry, (double)values[i], got, want);
        }
    }
}

static void views(void **s) {
    (void)s;
    int32_t numbers[90];
    for (int i = 0; i < 90; i++) numbers[i] = i;
    struct tensor *out = constant_of(SMELT_INT32, 12, -1);
    RUN(SINGLE, .entry = "views", .in = {copy_of(SMELT_INT32, 90, numbers)}, .update = {[2] = out},
        .grid = {1}, .threadgroup = {1});
    /* The slice of a slice starts at (2, 1, 1): 2 + 7 + 30. */
    static const int32_t expected[] = {4 + 21 + 60, 39 + 1 + 14 + 30, 2, 7, 0, 4 + 7 + 60, 1, 92, -1, -1, 39,
                                       -5};
    check_exact("views", out, expected);
}

ML_MAIN(ML_TEST(products), ML_TEST(large), ML_TEST(types), ML_TEST(alone), ML_TEST(scales),
        ML_TEST(scale_codes), ML_TEST(registers), ML_TEST(spaces), ML_TEST(lanes), ML_TEST(convolutions),
        ML_TEST(fragments), ML_TEST(every_element_once), ML_TEST(reductions), ML_TEST(decodes),
        ML_TEST(encodes), ML_TEST(views))
