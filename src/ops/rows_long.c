#include "ops/rows_long.h"
#include "ops/program.h"

/* One simdgroup of a CPU or one threadgroup of a GPU computes a row: so many rows use the whole device. */
#define FEW_ROWS 32
#define FEW_ROWS_OF_GPU 128
#define LONG_ROW 16384
/* Chunks per row: few, as each team reads the results of all. */
#define MOST_CHUNKS 64
#define SHORTEST_CHUNK 4096
/* On a GPU: eight teams per multiprocessor of an H200, which has 132; each team has 256 threads, which load
 * eight elements at once. */
#define TEAMS_OF_GPU 1056
#define SIMDGROUPS_OF_GPU 8
#define CHUNK_OF_GPU (SIMDGROUPS_OF_GPU * 32 * 8)

static int64_t ratio_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

bool rows_long_cut(const struct call *call, int64_t rows, int64_t columns, struct long_rows *cut) {
    bool host = program_is_host(call->device);
    if (rows < 1 || rows >= (host ? FEW_ROWS : FEW_ROWS_OF_GPU) || columns < LONG_ROW ||
        columns > UINT32_MAX / 2)
        return false;
    int64_t least = host ? SHORTEST_CHUNK : CHUNK_OF_GPU, step = host ? 32 : CHUNK_OF_GPU;
    int64_t chunk = ratio_up(columns, host ? MOST_CHUNKS : ratio_up(TEAMS_OF_GPU, rows));
    chunk = chunk < least ? least : ratio_up(chunk, step) * step;
    *cut = (struct long_rows){.rows = rows, .simdgroups = host ? 1 : SIMDGROUPS_OF_GPU};
    cut->size.columns = (uint32_t)columns, cut->size.chunk = (uint32_t)chunk;
    cut->size.chunks = (uint32_t)ratio_up(columns, chunk);
    return true;
}

smelt_status rows_long_parts(const struct call *call, const struct long_rows *cut, smelt_dtype dtype,
                             int width, smelt_array **parts) {
    struct call own = *call;
    own.into = NULL;
    return call_output(&own, dtype, &(smelt_shape){2, {cut->rows, width * (int64_t)cut->size.chunks}}, parts);
}

smelt_dispatch_desc rows_long_dispatch(const struct long_rows *cut, smelt_array *const *arrays, int count) {
    smelt_dispatch_desc dispatch = {.groups = {cut->size.chunks, cut->rows, 1},
                                    .threadgroup = {cut->simdgroups * 32, 1, 1}};
    for (int i = 0; i < count; i++) dispatch.buffers[i].array = arrays[i];
    dispatch.buffers[count] = (smelt_buffer){.bytes = &cut->size, .size = sizeof cut->size};
    return dispatch;
}

smelt_status rows_long_run(const struct call *call, const struct long_rows *cut, struct routine routine,
                           const char *entry, smelt_array *const *arrays, int count) {
    smelt_dispatch_desc dispatch = rows_long_dispatch(cut, arrays, count);
    routine.entry = entry;
    return routine_run(call, &routine, &dispatch);
}
