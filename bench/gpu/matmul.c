/* Matrix products by simdgroup matrices, compared with cuBLAS. */
#include "bench/gpu/product.h"
#include "bench/kernel_text.h"

/* A kernel, and what the variants are called. */
static const struct form {
    const char *file, *entry, *own, *blas, *torch, *peer;
    uint32_t tile, threads; /* outputs a group is wide and high */
} forms[] = {{"matmul_simdgroup.metal", "matmul_simdgroup", "smelt, f32", "cuBLAS, f32", "PyTorch, f32",
              "matmul-f32", 64, 128},
             {"gpu_matmul_half.metal", "matmul_half", "smelt, f16", "cuBLAS, f16", "PyTorch, f16",
              "matmul-f16", 128, 256}};

static smelt_status measure(struct gpu_product *product, const char *name) {
    bool half = product->dtype == SMELT_FLOAT16;
    const struct form *form = &forms[half];
    struct contest contest = gpu_product_contest(product, name);
    struct launches launches = {0};
    smelt_dispatch_desc desc = gpu_product_dispatch(product, form->tile, form->tile, form->threads);
    smelt_status status =
        gpu_add_launch(product->gpu, &launches, form->file,
                       half ? kernel_text_gpu_matmul_half : kernel_text_matmul_simdgroup, form->entry, &desc);
    if (status == SMELT_OK) {
        const char *blas = gpu_product_enter_cublas(&contest, product, form->blas);
        gpu_enter_peer(&contest, form->torch, form->peer);
        contest_enter(&contest, (struct variant){.name = form->own,
                                                 .run = launches_run,
                                                 .context = &launches,
                                                 .anchor = blas ? blas : form->torch});
        status = gpu_contest_run(&contest);
    }
    launches_release(&launches);
    return status;
}

smelt_status bench_gpu_matmul(struct bench *bench, const char *name) {
    struct gpu *gpu = bench->shared;
    uint32_t n = bench->quick ? 256 : 4096;
    smelt_status status = gpu_product_run(gpu, name, SMELT_FLOAT32, n, measure);
    if (status != SMELT_OK) bench_fail(gpu->bench, name, "float32", BENCH_WRONG_RESULT, gpu_error());
    return gpu_product_run(gpu, name, SMELT_FLOAT16, n, measure);
}
