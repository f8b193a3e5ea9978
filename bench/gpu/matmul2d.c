/* Products by matmul2d of Metal 4's tensor operations, bfloat16, compared with cuBLAS. */
#include "bench/gpu/product.h"
#include "bench/kernel_text.h"

/* A threadgroup's part of the product, by this many threads. */
static const struct tile {
    const char *name, *entry;
    uint32_t rows, columns, threads;
} tiles[] = {{"smelt, tile 64 x 64", "tile_64_64", 64, 64, 128},
             {"smelt, tile 128 x 128", "tile_128_128", 128, 128, 128},
             {"smelt, tile 128 x 256", "tile_128_256", 128, 256, 256}};
enum { TILES = sizeof tiles / sizeof *tiles };

static smelt_status measure(struct gpu_product *product, const char *name) {
    struct contest contest = gpu_product_contest(product, name);
    struct launches launches[TILES] = {0};
    smelt_status status = SMELT_OK;
    const char *anchor = gpu_product_enter_cublas(&contest, product, "cuBLAS, bf16");
    for (int i = 0; i < TILES && status == SMELT_OK; i++) {
        smelt_dispatch_desc desc =
            gpu_product_dispatch(product, tiles[i].rows, tiles[i].columns, tiles[i].threads);
        status = gpu_add_launch(product->gpu, &launches[i], "gpu_matmul2d.metal", kernel_text_gpu_matmul2d,
                                tiles[i].entry, &desc);
        if (status != SMELT_OK) break;
        contest_enter(&contest, (struct variant){.name = tiles[i].name,
                                                 .run = launches_run,
                                                 .context = &launches[i],
                                                 .anchor = anchor});
    }
    if (status == SMELT_OK) status = gpu_contest_run(&contest);
    for (int i = 0; i < TILES; i++) launches_release(&launches[i]);
    return status;
}

smelt_status bench_gpu_matmul2d_4096(struct bench *bench, const char *name) {
    return gpu_product_run(bench->shared, name, SMELT_BFLOAT16, bench->quick ? 256 : 4096, measure);
}

smelt_status bench_gpu_matmul2d_8192(struct bench *bench, const char *name) {
    return gpu_product_run(bench->shared, name, SMELT_BFLOAT16, bench->quick ? 520 : 8192, measure);
}
