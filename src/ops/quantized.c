/* Products of few rows with a packed matrix, by the kernel of kernels/tensor/quantized_matmul.metal, or by
 * those of quantized_matmul_fragments.metal and quantized_matmul_few.metal. */
#include "array/dtype.h"
#include "base/reserved.h"
#include "kernels/kernel_text.h"
#include "ops/operation.h"
#include "ops/program.h"

#include <limits.h>
#include <string.h>

#define COLUMNS 4 /* of a simdgroup */
#define SIMDGROUPS 8

/* Shared with the kernel. */
struct quantized_size {
    int rows, columns, terms;
};

enum array_name { X, W, SCALES, BIASES, ARRAY_COUNT };
static const char *const array_names[ARRAY_COUNT] = {"x", "w", "scales", "biases"};

struct product {
    struct call call;
    smelt_apply_desc apply;
    smelt_array *arrays[ARRAY_COUNT];
    smelt_array *own[ARRAY_COUNT]; /* where the kernel reads them */
    struct quantized_size size;
    int bits, group;
    smelt_quantized_mode mode;
};

/* ---- Checks. */

static bool is_float(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 || dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16;
}

static smelt_status check_settings(const struct product *p) {
    bool affine = p->mode == SMELT_QUANTIZED_AFFINE;
    if (p->mode < SMELT_QUANTIZED_AFFINE || p->mode > SMELT_QUANTIZED_MXFP8)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "quantized_matmul: mode is %d; expected 0 (affine), 1 "
                    "(mxfp4) or 2 (mxfp8)",
                    (int)p->mode);
    if (affine ? p->bits != 2 && p->bits != 4 && p->bits != 8
               : p->bits != (p->mode == SMELT_QUANTIZED_MXFP4 ? 4 : 8))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantized_matmul: bits is %d; expected %s", p->bits,
                    affine                             ? "2, 4 or 8"
                    : p->mode == SMELT_QUANTIZED_MXFP4 ? "4 for mxfp4"
                                                       : "8 for mxfp8");
    if (affine ? p->group != 32 && p->group != 64 && p->group != 128 : p->group != 32)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantized_matmul: group_size is %d; expected %s", p->group,
                    affine ? "32, 64 or 128" : "32 for mxfp4 and mxfp8");
    if (affine != (p->arrays[BIASES] != NULL))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantized_matmul: biases is %s; expected %s",
                    affine ? "NULL" : "an array",
                    affine ? "an array, as mode is affine" : "NULL, as mode is not affine");
    return SMELT_OK;
}

static smelt_status check_arrays(struct product *p) {
    const smelt_array *x = p->arrays[X], *w = p->arrays[W];
    if (x->shape.ndim < 1 || !is_float(x->dtype))
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "quantized_matmul: x has shape %s and dtype %s; expected float32, float16 or bfloat16 of one "
            "dimension or more",
            shape_print(&x->shape).text, smelt_dtype_name(x->dtype));
    if (w->shape.ndim != 2 || w->dtype != SMELT_UINT32)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "quantized_matmul: w has shape %s and dtype %s; expected uint32 of two dimensions",
                    shape_print(&w->shape).text, smelt_dtype_name(w->dtype));
    int64_t columns = w->shape.size[0], terms = w->shape.size[1] * 32 / p->bits;
    int64_t rows = terms ? x->size / terms : 0;
    if (x->shape.size[x->shape.ndim - 1] != terms || terms < 1 || terms % p->group)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "quantized_matmul: x has %lld columns and w %lld elements in a row; expected the same, a "
                    "multiple of %d",
                    (long long)x->shape.size[x->shape.ndim - 1], (long long)terms, p->group);
    if (columns > INT_MAX / 2 || terms > INT_MAX / 2 || rows > INT_MAX / 2)
        return fail(SMELT_ERROR_LIMIT,
                    "quantized_matmul: %lld rows, %lld columns, %lld terms; at most %d each", (long long)rows,
                    (long long)columns, (long long)terms, INT_MAX / 2);
    smelt_shape groups = {.ndim = 2, .size = {columns, terms / p->group}};
    for (int i = SCALES; i <= BIASES; i++) {
        const smelt_array *array = p->arrays[i];
        if (!array) continue;
        if (!shape_equal(&array->shape, &groups))
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantized_matmul: %s has shape %s; expected %s",
                        array_names[i], shape_print(&array->shape).text, shape_print(&groups).text);
        if (p->mode == SMELT_QUANTIZED_AFFINE
                ? !is_float(array->dtype) || array->dtype != p->arrays[SCALES]->dtype
                : array->dtype != SMELT_UINT8)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantized_matmul: %s has dtype %s; expected %s",
                        array_names[i], smelt_dtype_name(array->dtype),
                        p->mode == SMELT_QUANTIZED_AFFINE ? "float32, float16 or bfloat16, the same for both"
                                                          : "uint8");
    }
    p->size = (struct quantized_size){(int)rows, (int)columns, (int)terms};
    return SMELT_OK;
}

/* Call end() in any case. */
static smelt_status begin(const smelt_quantized_matmul_desc *desc, struct product *p) {
    if (!desc) return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantized_matmul: desc is NULL");
    TRY(reserved_check(smelt_quantized_matmul_desc, desc));
    smelt_array *const given[ARRAY_COUNT] = {desc->x, desc->w, desc->scales, desc->biases};
    memcpy(p->arrays, given, sizeof given);
    for (int i = X; i < BIASES; i++)
        if (!given[i])
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantized_matmul: %s is NULL", array_names[i]);
    p->bits = desc->bits, p->group = desc->group_size, p->mode = desc->mode;
    TRY(check_settings(p));
    TRY(check_arrays(p));
    p->apply.stream = desc->stream;
    p->call = (struct call){.desc = &p->apply, .name = "quantized_matmul"};
    p->call.device = program_device(desc->device, p->arrays, given[BIASES] ? ARRAY_COUNT : BIASES);
    for (int i = 0; i < ARRAY_COUNT; i++) {
        smelt_array *here;
        if (!given[i]) continue;
        TRY(call_bring(&p->call, given[i], &here));
        smelt_status status = call_contiguous(&p->call, here, &p->own[i]);
        smelt_array_release(here);
        TRY(status);
    }
    return SMELT_OK;
}

static void end(struct product *p) {
    for (int i = 0; i < ARRAY_COUNT; i++) smelt_array_release(p->own[i]);
}

/* ---- The kernel. */

/* The definitions that the texts expect: the key's dtypes, and its operands by name. */
static void define(struct text *text, const struct program_key *key, const char *const *names, int count) {
    text_addf(text, "#define QUANTIZED_TYPE %s\n", program_type((smelt_dtype)key->dtypes[0]));
    text_addf(text, "#define QUANTIZED_SCALE %s\n", program_type((smelt_dtype)key->dtypes[1]));
    for (int i = 0; i < count; i++) text_addf(text, "#define QUANTIZED_%s %d\n", names[i], key->operands[i]);
}

static void write_kernel(struct text *text, const void *context) {
    static const char *const names[] = {"MODE", "BITS", "GROUP", "ROWS", "WORDS"};
    define(text, context, names, 5);
    text_add(text, kernel_text_quantized_matmul);
}

/* Rows of a simdgroup: those there are, up to 4. A weight is unpacked once for all of them. */
static int choose_rows(const struct product *p) {
    return p->size.rows <= 1 ? 1 : p->size.rows == 2 ? 2 : 4;
}

/* ---- By fragments: chunks of 128 terms, several rows at a time. */

#define CHUNK 128
#define FULL_GPU 120 /* groups that occupy it */

static void write_fragments(struct text *text, const void *context) {
    static const char *const names[] = {"MODE", "BITS", "GROUP", "LINES", "EIGHTS", "TEAMS"};
    define(text, context, names, 6);
    text_add(text, kernel_text_quantized_parts);
    text_add(text, kernel_text_quantized_matmul_fragments);
}

static void write_few(struct text *text, const void *context) {
    static const char *const names[] = {"MODE", "BITS", "GROUP", "ROWS", "TILES", "SHARES", "STAGES"};
    define(text, context, names, 7);
    text_add(text, kernel_text_quantized_parts);
    text_add(text, kernel_text_quantized_matmul_few);
}

static bool is_by_fragments(const struct product *p) {
    bool fits = program_has_warpgroups(p->call.device) && p->arrays[X]->dtype != SMELT_FLOAT32 &&
                p->size.terms % CHUNK == 0;
    fits &= (int64_t)p->size.columns * p->size.terms / 8 * p->bits <= UINT32_MAX;
    for (int i = 0; i < ARRAY_COUNT; i++)
        if (p->own[i]) fits &= ((uintptr_t)p->own[i]->data & 15) == 0;
    return fits;
}

static int64_t groups_of(int columns, int lines) {
    return ((int64_t)columns + lines - 1) / lines;
}

/* ---- By fragments: few rows, which stay in threadgroup memory. */

#define MOST_FEW_ROWS 4
#define FEW_TILES 4  /* of 16 columns, in a threadgroup */
#define FEW_SHARES 4 /* simdgroups of a tile */
/* With 2 and 4, 8192 × 8192 weights of 4 bits and one row take 13.8 and 14.5 µs (an H200, 2026-11-29): with
 * fewer, a multiprocessor has room for a threadgroup of the next launch, too. */
#define FEW_STAGES 2
#define FEW_MEMORY (224 << 10) /* bytes; compute capability 9.0 has 227 KiB for a threadgroup */

/* Bytes of the threadgroup argument: the rows, zeros, and the sums of each group. Lanes whose columns are
 * unused read up to six floats behind the last sum. */
static size_t few_memory(const struct product *p, int rows) {
    size_t terms = (size_t)p->size.terms, zeros = (size_t)p->group * 2;
    size_t sums = terms / (size_t)p->group * (size_t)rows + 6;
    return (size_t)p->size.rows * (terms * 2 + 16) + zeros + sums * sizeof(float);
}

/* QUANTIZED_ROWS of the kernel; 0: another kernel is faster, or necessary. */
static int choose_few_rows(const struct product *p) {
    int chunk = p->bits == 2 ? 512 : 256, rows = p->size.rows <= 2 ? p->size.rows : 4;
    size_t scales = (size_t)chunk / (size_t)p->group * smelt_dtype_bytes(p->arrays[SCALES]->dtype);
    size_t stage = 16 * ((size_t)chunk * (size_t)p->bits / 8 + 2 * scales);
    if (p->size.rows > MOST_FEW_ROWS || p->size.terms % chunk) return 0;
    if (groups_of(p->size.columns, FEW_TILES * 16) < FULL_GPU * 3 / 4) return 0;
    return FEW_TILES * FEW_SHARES * FEW_STAGES * stage + few_memory(p, rows) <= FEW_MEMORY ? rows : 0;
}

/* ---- Launches. */

enum form { BY_VECTORS, BY_FRAGMENTS, BY_FEW_ROWS };

static struct program_key key_of(const struct product *p, enum form form) {
    return (struct program_key){.family = PROGRAM_QUANTIZED,
                                .operation = (uint16_t)form,
                                .dtypes = {(uint8_t)p->arrays[X]->dtype, (uint8_t)p->arrays[SCALES]->dtype},
                                .operands = {(uint8_t)p->mode, (uint8_t)p->bits, (uint8_t)p->group}};
}

/* The callers set groups and threads. */
static smelt_dispatch_desc dispatch_of(const struct product *p, smelt_array *out) {
    return (smelt_dispatch_desc){.buffers = {{.array = p->own[X]},
                                             {.array = p->own[W]},
                                             {.array = p->own[SCALES]},
                                             {.array = p->own[p->own[BIASES] ? BIASES : SCALES]},
                                             {.array = out},
                                             {.bytes = &p->size, .size = sizeof p->size}},
                                 .groups = {1, 1, 1},
                                 .threadgroup = {1, 1, 1},
                                 .device = p->call.device,
                                 .stream = p->apply.stream};
}

static smelt_status run_few(const struct product *p, int rows, smelt_array *out) {
    smelt_function *function;
    struct program_key key = key_of(p, BY_FEW_ROWS);
    key.operands[3] = (uint8_t)rows, key.operands[4] = FEW_TILES, key.operands[5] = FEW_SHARES;
    key.operands[6] = FEW_STAGES;
    TRY(program_get(&key, "smelt_quantized_matmul_few", write_few, &key, &function));
    smelt_dispatch_desc dispatch = dispatch_of(p, out);
    dispatch.threadgroup_memory[0] = few_memory(p, rows);
    dispatch.groups[0] = groups_of(p->size.columns, FEW_TILES * 16);
    dispatch.threadgroup[0] = 32 * FEW_TILES * FEW_SHARES;
    return program_run(function, &dispatch);
}

static smelt_status run_fragments(const struct product *p, smelt_array *out) {
    smelt_function *function;
    /* Of a team of simdgroups: fewer lines where otherwise too few groups would read the weights. */
    int eights = p->size.rows <= 8 ? 1 : 2, lines = p->bits * eights > 8 ? 16 : 32, teams = 2;
    int64_t rows = (p->size.rows + eights * 8 - 1) / (eights * 8);
    while (lines * teams > 16 && groups_of(p->size.columns, lines * teams) * rows < FULL_GPU)
        *(teams > 1 ? &teams : &lines) /= 2;
    struct program_key key = key_of(p, BY_FRAGMENTS);
    key.operands[3] = (uint8_t)lines, key.operands[4] = (uint8_t)eights, key.operands[5] = (uint8_t)teams;
    TRY(program_get(&key, "smelt_quantized_matmul_fragments", write_fragments, &key, &function));
    smelt_dispatch_desc dispatch = dispatch_of(p, out);
    dispatch.groups[0] = groups_of(p->size.columns, lines * teams);
    dispatch.groups[1] = rows;
    dispatch.threadgroup[0] = 32 * SIMDGROUPS * teams;
    return program_run(function, &dispatch);
}

static smelt_status run_vectors(const struct product *p, smelt_array *out) {
    smelt_function *function;
    int rows = choose_rows(p), words = program_is_host(p->call.device) ? 1 : p->bits;
    struct program_key key = key_of(p, BY_VECTORS);
    key.operands[3] = (uint8_t)rows, key.operands[4] = (uint8_t)words;
    TRY(program_get(&key, "smelt_quantized_matmul", write_kernel, &key, &function));
    smelt_dispatch_desc dispatch = dispatch_of(p, out);
    dispatch.groups[0] = groups_of(p->size.columns, COLUMNS * SIMDGROUPS);
    dispatch.groups[1] = groups_of(p->size.rows, rows);
    dispatch.threadgroup[0] = 32 * SIMDGROUPS;
    return program_run(function, &dispatch);
}

static smelt_status run(const struct product *p, smelt_array *out) {
    if (!is_by_fragments(p)) return run_vectors(p, out);
    int few = choose_few_rows(p);
    return few ? run_few(p, few, out) : run_fragments(p, out);
}

smelt_status smelt_quantized_matmul(const smelt_quantized_matmul_desc *desc, smelt_array **out) {
    struct product p = {0};
    smelt_array *made = NULL;
    if (!out) return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantized_matmul: out is NULL");
    smelt_status status = begin(desc, &p);
    if (status == SMELT_OK) {
        smelt_shape shape = p.arrays[X]->shape;
        shape.size[shape.ndim - 1] = p.size.columns;
        status = call_output(&p.call, p.arrays[X]->dtype, &shape, &made);
    }
    if (status == SMELT_OK && made->size) status = run(&p, made);
    end(&p);
    if (status != SMELT_OK) {
        smelt_array_release(made);
        return status;
    }
    *out = made;
    return SMELT_OK;
}
