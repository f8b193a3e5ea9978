/* matmul2d on the CPU: floats next to OpenBLAS; bfloats in math mode relaxed, and bytes, next to floats. */
#include "bench/tensor/tensor.h"
#include "bench/cpu/product.h"
#include "bench/kernel_text.h"

#define FLOATS "smelt float"

#define TOLERANCE 2e-4 /* sums of up to 2048 products in [-1, 1] */

static smelt_dispatch_desc dispatch_of(smelt_array *a, smelt_array *b, smelt_array *c, const uint32_t *n,
                                       uint32_t rows, uint32_t columns) {
    return (smelt_dispatch_desc){
        .buffers = {{.array = a}, {.array = b}, {.array = c}, {.bytes = n, .size = sizeof *n}},
        .groups = {(*n + columns - 1) / columns, (*n + rows - 1) / rows, 1},
        .threadgroup = {128},
        .device = "cpu"};
}

/* A kernel of tensor_product.metal in a math mode. */
static smelt_status prepare(struct launches *launches, const char *name, smelt_math_mode math,
                            smelt_dispatch_desc desc) {
    smelt_library *library;
    smelt_status status = smelt_library_create(&(smelt_library_desc){.path = "tensor_product.metal",
                                                                     .source = kernel_text_tensor_product,
                                                                     .math = math},
                                               &library);
    if (status != SMELT_OK) return status;
    status = smelt_library_function(library, &(smelt_function_desc){.name = name}, &launches->functions[0]);
    smelt_library_release(library);
    launches->descs[0] = desc;
    launches->count = status == SMELT_OK;
    return status;
}

static void enter(struct contest *contest, struct launches *launches, const char *name, const char *anchor,
                  struct bench_bar bar) {
    contest_enter(contest,
                  (struct variant){
                      .name = name, .run = launches_run, .context = launches, .anchor = anchor, .bar = bar});
}

static smelt_status measure_floats(struct bench *bench, const char *name, struct cpu_product *product) {
    struct contest contest = cpu_product_contest(bench, name, product, TOLERANCE);
    struct launches small = {0}, large = {0};
    cpu_product_enter_openblas(&contest, product);
    smelt_status status = prepare(&small, "float 64 x 32", SMELT_MATH_SAFE,
                                  dispatch_of(product->a, product->b, product->c, &product->n, 64, 32));
    if (status == SMELT_OK)
        status = prepare(&large, "float 128 x 128", SMELT_MATH_SAFE,
                         dispatch_of(product->a, product->b, product->c, &product->n, 128, 128));
    if (status == SMELT_OK) {
        enter(&contest, &small, "smelt, tiles of 64 x 32", OPENBLAS,
              product->n == 1024 ? (struct bench_bar){BENCH_SPEED_AT_LEAST, 0.6} : NO_BAR);
        enter(&contest, &large, "smelt, tiles of 128 x 128", OPENBLAS, NO_BAR);
        status = contest_run(&contest);
    }
    launches_release(&small);
    launches_release(&large);
    return status;
}

/* The elements of `values` as bfloats, which replace them. */
static smelt_status round_to_bfloats(smelt_array **values, smelt_array **bfloats) {
    smelt_array *rounded;
    smelt_status status = smelt_array_convert(*values, SMELT_BFLOAT16, bfloats);
    if (status == SMELT_OK) status = smelt_array_convert(*bfloats, SMELT_FLOAT32, &rounded);
    if (status != SMELT_OK) return status;
    smelt_array_release(*values);
    *values = rounded;
    return SMELT_OK;
}

static smelt_status measure_launches(void *context, double *seconds) {
    double start = bench_now();
    smelt_status status = launches_run(context);
    *seconds = bench_now() - start;
    return status;
}

struct narrow {
    smelt_array *a, *b, *bytes, *sums;
    struct launches floats, bfloats, relaxed, bytes_run;
};

static smelt_status prepare_narrow(struct narrow *narrow, const struct cpu_product *product) {
    smelt_shape shape = SHAPE_OF(product->n, product->n);
    smelt_dispatch_desc bfloats = dispatch_of(narrow->a, narrow->b, product->c, &product->n, 128, 128);
    smelt_status status = smelt_array_uniform(SMELT_INT8, shape, 10, &narrow->bytes);
    if (status == SMELT_OK) status = smelt_array_create(SMELT_INT32, shape, &narrow->sums);
    if (status == SMELT_OK)
        status = prepare(&narrow->floats, "float 128 x 128", SMELT_MATH_SAFE,
                         dispatch_of(product->a, product->b, product->c, &product->n, 128, 128));
    if (status == SMELT_OK) status = prepare(&narrow->bfloats, "bfloat 128 x 128", SMELT_MATH_SAFE, bfloats);
    if (status == SMELT_OK)
        status = prepare(&narrow->relaxed, "bfloat 128 x 128", SMELT_MATH_RELAXED, bfloats);
    if (status == SMELT_OK)
        status = prepare(&narrow->bytes_run, "int8 128 x 128", SMELT_MATH_SAFE,
                         dispatch_of(narrow->bytes, narrow->bytes, narrow->sums, &product->n, 128, 128));
    return status;
}

/* AMX is the only way to three times the floats' speed. */
static struct bench_bar relaxed_bar(void) {
    bool tiles = false;
#ifdef __x86_64__
    tiles = __builtin_cpu_supports("avx512bf16");
#endif
    return tiles ? (struct bench_bar){BENCH_SPEED_AT_LEAST, 3} : NO_BAR;
}

static smelt_status measure_narrow(struct bench *bench, const char *name, struct cpu_product *product) {
    struct narrow narrow = {0};
    smelt_status status = round_to_bfloats(&product->a, &narrow.a);
    if (status == SMELT_OK) status = round_to_bfloats(&product->b, &narrow.b);
    if (status == SMELT_OK) status = prepare_narrow(&narrow, product);
    if (status == SMELT_OK) {
        struct contest contest = cpu_product_contest(bench, name, product, TOLERANCE);
        enter(&contest, &narrow.floats, FLOATS, NULL, NO_BAR);
        enter(&contest, &narrow.bfloats, "smelt bfloat", FLOATS, NO_BAR);
        enter(&contest, &narrow.relaxed, "smelt bfloat, relaxed", FLOATS, relaxed_bar());
        contest_add(&contest, (struct bench_case){.variant = "smelt int8",
                                                  .anchor = FLOATS,
                                                  .measure = measure_launches,
                                                  .context = &narrow.bytes_run,
                                                  .work = contest.work,
                                                  .work_unit = contest.work_unit});
        status = contest_run(&contest);
    }
    struct launches *launches[] = {&narrow.floats, &narrow.bfloats, &narrow.relaxed, &narrow.bytes_run};
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) launches_release(launches[i]);
    smelt_array *arrays[] = {narrow.a, narrow.b, narrow.bytes, narrow.sums};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) smelt_array_release(arrays[i]);
    return status;
}

static uint32_t side(const struct bench *bench, uint32_t n) {
    return bench->quick ? 128 : n;
}

smelt_status bench_tensor_float_256(struct bench *bench, const char *name) {
    return cpu_product_run(bench, name, side(bench, 256), measure_floats);
}

smelt_status bench_tensor_float_1024(struct bench *bench, const char *name) {
    return cpu_product_run(bench, name, side(bench, 1024), measure_floats);
}

smelt_status bench_tensor_float_2048(struct bench *bench, const char *name) {
    return cpu_product_run(bench, name, side(bench, 2048), measure_floats);
}

smelt_status bench_tensor_bfloat_1024(struct bench *bench, const char *name) {
    return cpu_product_run(bench, name, side(bench, 1024), measure_narrow);
}
