/* How the work of attention's kernels is divided: tiles of rows and keys, parts of the keys, threadgroups. By
 * rules that were measured, or as tuned. */
#include "ops/attention.h"
#include "ops/program.h"
#include "tune/setting.h"

#include <string.h>

#define FEW_ROWS 16
#define SPLIT_ROWS 4        /* of a threadgroup of attention_split.metal */
#define SPLIT_GROUPS 264    /* enough for two per multiprocessor of the GPUs measured */
#define SPLIT_LEAST_KEYS 64 /* of a part: smaller parts cost more to join than they save */

static int64_t tiles_with(const struct attention *a, int rows) {
    return (int64_t)a->batches * a->size.heads * ((a->size.rows + (int64_t)rows - 1) / rows);
}

/* Rows of a tile. With heads of 64 elements, a tile of 192 rows takes 4/3 of the time of one of 128, or less:
 * a third warpgroup computes exponentials while others multiply. (H200, 2026-11-30, bfloat16, µs with 192
 * and with 128 rows: 4 × 16 heads of 4096 rows 537 and 623; 2 × 16 of 2000 rows, 3 and 4 rounds, 83 and 88.
 * Causal, 4 × 16 of 4096 rows, in turns, 307 and 332; but 8 × 32 of 1024 rows, 12 and 16 rounds, 128 and
 * 116.) */
static int warpgroup_rows(const struct attention *a) {
    if (attention_depth(a) > 64 || a->mask != MASK_NONE) return 128;
    int64_t most = program_warpgroup_multiprocessors(a->call.device);
    if (most < 1) return 128;
    int64_t large = (tiles_with(a, 192) + most - 1) / most, small = (tiles_with(a, 128) + most - 1) / most;
    return large * 4 < small * 3 + !a->size.causal ? 192 : 128;
}

int64_t attention_tiles(const struct attention *a) {
    return tiles_with(a, warpgroup_rows(a));
}

bool attention_is_by_warpgroups(const struct attention *a) {
    return attention_tiles(a) <= INT32_MAX && program_has_warpgroups(a->call.device) &&
           a->dtype != SMELT_FLOAT32 && a->size.rows > FEW_ROWS && attention_depth(a) <= 128 &&
           attention_is_aligned(a);
}

static struct tune_job job_of(const struct attention *a) {
    return (struct tune_job){
        "attention",
        a->call.device,
        a->dtype,
        {(int64_t)a->batches * a->size.heads, a->size.rows, a->size.keys, attention_depth(a)},
        4};
}

/* Threadgroups that SPLIT would run without parts. */
static int64_t split_groups(const struct attention *a) {
    int lines = a->size.heads / a->size.key_heads * a->size.rows;
    return (int64_t)attention_round_up(lines, SPLIT_ROWS) / SPLIT_ROWS * a->size.key_heads * a->batches;
}

bool attention_choose_parts(struct attention *a) {
    struct tune_job job = job_of(a);
    int64_t tuned[SETTING_NUMBERS] = {0}, groups = split_groups(a), parts;
    if (tune_setting(&job, tuned) && tuned[2] > 0)
        parts = tuned[2];
    else if (program_is_host(a->call.device) || a->size.rows > FEW_ROWS)
        return false;
    else
        parts = (SPLIT_GROUPS + groups - 1) / groups;
    int64_t most = (a->size.keys + SPLIT_LEAST_KEYS - 1) / SPLIT_LEAST_KEYS;
    if (tuned[2] <= 0 && parts > most) parts = most;
    if (parts > a->size.keys) parts = a->size.keys;
    a->size.part_keys = (int)((a->size.keys + parts - 1) / parts);
    a->size.parts = (a->size.keys + a->size.part_keys - 1) / a->size.part_keys;
    return true;
}

#define TILE_STEP 16  /* attention_kernel.c counts rows and keys of a tile in these steps */
#define MOST_TILE 128 /* the most rows and keys that tuning tries on GPUs (tuned.c) */
/* The largest tiles of ON_HOST: attention_host.metal's threadgroup memory has room for this many rows and
 * keys with heads of 256 elements. Larger blocks of keys need fewer products and fewer passes over the sums.
 */
#define HOST_ROWS 64
#define HOST_KEYS 512
#define HOST_TILE 64 /* rows and keys, of the derivative on CPUs */

/* Lines of a threadgroup of ON_HOST_FEW: 1, 2 or 4. More share a row of keys; fewer give all threads work. */
static int host_few_lines(const struct attention *a) {
    int64_t lines = (int64_t)a->size.heads / a->size.key_heads * a->size.rows,
            groups = (int64_t)a->size.key_heads * a->batches, threads = smelt_device_threads(a->call.device);
    int count = 4;
    while (count > 1 && (count / 2 >= lines || (lines + count - 1) / count * groups < threads)) count /= 2;
    return count;
}

static bool is_tile_size(enum attention_kernel kernel, const int64_t tile[2]) {
    bool host = kernel == ON_HOST;
    int64_t row_step = host ? 32 : TILE_STEP; /* 32: the lanes of a simdgroup are rows */
    return tile[0] > 0 && tile[0] % row_step == 0 && tile[0] <= (host ? HOST_ROWS : MOST_TILE) &&
           tile[1] > 0 && tile[1] % TILE_STEP == 0 && tile[1] <= (host ? HOST_KEYS : MOST_TILE);
}

/* The size of the tiles that cover `size` rows or keys with the fewest in excess; up to 112 take one tile.
 * From 512 on it is always HOST_TILE, so that a program with many sizes compiles few kernels. */
static int host_tile(int size) {
    int best = HOST_TILE;
    if (size >= 8 * HOST_TILE) return best;
    if (size <= 2 * HOST_TILE - TILE_STEP) return attention_round_up(size ? size : 1, TILE_STEP);
    for (int tile = HOST_TILE; tile < 2 * HOST_TILE; tile += TILE_STEP)
        if (attention_round_up(size, tile) < attention_round_up(size, best)) best = tile;
    return best;
}

void attention_choose_tile(const struct attention *a, enum attention_kernel kernel, int *rows, int *keys) {
    int depth = attention_depth(a);
    bool few = a->size.rows <= FEW_ROWS;
    struct tune_job job = job_of(a);
    int64_t tuned[SETTING_NUMBERS];
    if (kernel == SPLIT || kernel == JOIN) {
        *rows = SPLIT_ROWS, *keys = 16;
    } else if (attention_is_warpgroups(kernel)) {
        *rows = kernel == BY_WARPGROUPS ? warpgroup_rows(a) : depth <= 64 ? 128 : 64, *keys = 128;
    } else if (kernel == ON_HOST_FEW) {
        *rows = host_few_lines(a), *keys = HOST_KEYS;
    } else if ((kernel == FORWARD || kernel == ON_HOST) && tune_setting(&job, tuned) &&
               is_tile_size(kernel, tuned)) {
        *rows = (int)tuned[0], *keys = (int)tuned[1];
    } else if (kernel == ON_HOST) {
        *rows = HOST_ROWS, *keys = HOST_KEYS;
    } else if (program_is_host(a->call.device)) {
        *rows = host_tile(a->size.rows), *keys = host_tile(a->size.keys);
    } else if (kernel != FORWARD) {
        *rows = *keys = depth <= 64 && !few ? 32 : 16;
    } else {
        *rows = few || depth > 128 ? 16 : 32;
        *keys = depth <= 64 ? 64 : 32;
    }
}

/* Pairs are preferred even if idle multiprocessors cost the time of this many blocks of keys, since they read
 * fewer heads at a time. (H200, 2026-11-30, bfloat16, causal; µs in pairs, and in turns: 4 × 16 heads of 4096
 * rows and 128 elements 448 and 490, of 64 elements 337 and 332; 8 × 32 of 1024 rows and 64 elements 116 and
 * 122. But 2 × 20 of 2000 rows and 64 elements 75 and 65, 20 of 2000 rows and 128 elements 68 and 51; 8 of
 * 16384 rows and 128 elements 790 and 786.) */
#define BLOCKS_OF_TURNS 3
#define BLOCKS_OF_LARGE_TURNS 1 /* tiles of 192 rows: 4 × 16 heads as above take 338 and 307 µs */

/* The threadgroups of BY_WARPGROUPS: one for each multiprocessor, which copies its next tile while it
 * computes one. Tiles of a causal mask take different times; in pairs (tiles_of_group in the kernel) all take
 * that of row_blocks + 1 blocks of keys. Where that leaves too many multiprocessors idle in the last round,
 * threadgroups take tiles of all heads in turns. */
static int64_t warpgroup_groups(struct attention *a) {
    int64_t tiles = attention_tiles(a), most = program_warpgroup_multiprocessors(a->call.device);
    if (tiles < most || !a->size.causal) return tiles < most ? tiles : most;
    int rows = warpgroup_rows(a);
    int64_t row_blocks = (a->size.rows + (int64_t)rows - 1) / rows;
    int64_t pairs = tiles / row_blocks * ((row_blocks + 1) / 2), rounds = (pairs + most - 1) / most;
    int64_t blocks = rows > 128 ? BLOCKS_OF_LARGE_TURNS : BLOCKS_OF_TURNS;
    bool balanced = rounds * most * (row_blocks + 1) <= pairs * (row_blocks + 1 + blocks);
    a->size.turns = !balanced;
    return most;
}

void attention_choose_groups(struct attention *a, enum attention_kernel kernel, int rows, int keys,
                             smelt_dispatch_desc *dispatch) {
    int64_t row_blocks = attention_round_up(a->size.rows, rows) / rows,
            key_blocks = attention_round_up(a->size.keys, keys) / keys;
    int64_t heads = (int64_t)a->size.heads * a->batches, key_heads = (int64_t)a->size.key_heads * a->batches;
    int64_t groups[3] = {row_blocks, a->size.heads, a->batches}, threads = 32;
    if (kernel == BY_WARPGROUPS) groups[0] = warpgroup_groups(a), groups[1] = groups[2] = 1;
    if (kernel == DOTS) groups[0] = a->arrays[SUMS]->size, groups[1] = groups[2] = 1;
    if (kernel == BY_KV) groups[0] = key_blocks, groups[1] = a->size.key_heads;
    if (kernel == ON_HOST_FEW) {
        int64_t lines = (int64_t)a->size.heads / a->size.key_heads * a->size.rows;
        groups[0] = (lines + rows - 1) / rows, groups[1] = a->size.key_heads;
    }
    if (kernel == SPLIT) {
        groups[0] = split_groups(a) / key_heads * a->size.parts, groups[1] = a->size.key_heads, threads = 128;
    } else if (kernel == JOIN) {
        groups[0] = heads * a->size.rows, groups[1] = groups[2] = 1, threads = 128;
    }
    if (kernel == BY_WARPGROUPS) threads = 128 + 2 * rows;
    if (kernel > BY_WARPGROUPS) {
        threads = 256;
        groups[0] = kernel == VJP_NOTES   ? heads * row_blocks * rows / 8
                    : kernel == VJP_ROUND ? heads * row_blocks
                                          : key_heads * key_blocks;
        groups[1] = groups[2] = 1;
    }
    memcpy(dispatch->groups, groups, sizeof groups);
    dispatch->threadgroup[0] = threads;
    if (kernel == ON_HOST || kernel == ON_HOST_FEW) /* scores: LINE floats (attention_host.metal) per key */
        dispatch->threadgroup_memory[0] = sizeof(float) * (size_t)(kernel == ON_HOST ? rows + 16 : rows) *
                                          (size_t)(a->size.keys < keys ? a->size.keys : keys);
}
