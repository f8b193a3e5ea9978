/* Attention and its derivative, by the kernels of kernels/tensor/attention.metal, or by those of
 * attention_host.metal and attention_host_few.metal (on CPUs), attention_split.metal,
 * attention_warpgroups.metal and attention_vjp_warpgroups.metal. */
#include "ops/attention.h"
#include "kernels/kernel_text.h"
#include "ops/program.h"
#include "tune/setting.h"

#include <math.h>
#include <string.h>

#define FEW_ROWS 16
#define SPLIT_ROWS 4        /* of a threadgroup of attention_split.metal */
#define SPLIT_GROUPS 264    /* enough for two per multiprocessor of the GPUs measured */
#define SPLIT_LEAST_KEYS 64 /* of a part: smaller parts cost more to join than they save */
#define SUMS_ALIGNMENT 64   /* bytes, of sums that follow a result: a cache line */
#define VJP_BLOCK_SUMS 8192 /* floats, of a block of rows: attention_vjp_warpgroups.metal */

/* ---- Kernels. */

static int round_up(int count, int step) {
    return (count + step - 1) / step * step;
}

enum kernel {
    FORWARD, /* up to ON_HOST_FEW: forward kernels */
    ON_HOST,
    ON_HOST_FEW,
    DOTS,
    BY_Q,
    BY_KV,
    SPLIT,
    JOIN,
    BY_WARPGROUPS,
    VJP_NOTES,
    VJP_BY_WARPGROUPS,
    VJP_ROUND,
    KERNEL_COUNT
};

/* By kernel: its name, and the text that has it. */
static const struct {
    const char *name, *text;
} kernels[KERNEL_COUNT] = {
    [FORWARD] = {"smelt_attention", kernel_text_attention},
    [ON_HOST] = {"smelt_attention_host", kernel_text_attention_host},
    [ON_HOST_FEW] = {"smelt_attention_host_few", kernel_text_attention_host_few},
    [DOTS] = {"smelt_attention_dots", kernel_text_attention},
    [BY_Q] = {"smelt_attention_vjp_q", kernel_text_attention},
    [BY_KV] = {"smelt_attention_vjp_kv", kernel_text_attention},
    [SPLIT] = {"smelt_attention_split", kernel_text_attention_split},
    [JOIN] = {"smelt_attention_join", kernel_text_attention_split},
    [BY_WARPGROUPS] = {"smelt_attention_warpgroups", kernel_text_attention_warpgroups},
    [VJP_NOTES] = {"smelt_attention_vjp_notes", kernel_text_attention_vjp_warpgroups},
    [VJP_BY_WARPGROUPS] = {"smelt_attention_vjp_warpgroups", kernel_text_attention_vjp_warpgroups},
    [VJP_ROUND] = {"smelt_attention_vjp_round", kernel_text_attention_vjp_warpgroups},
};

static bool is_forward(enum kernel kernel) {
    return kernel <= ON_HOST_FEW || kernel == SPLIT || kernel == BY_WARPGROUPS;
}

static bool has_mask(enum kernel kernel) {
    return kernel != DOTS && kernel != JOIN && kernel != VJP_NOTES && kernel != VJP_ROUND;
}

static bool is_warpgroups(enum kernel kernel) {
    return kernel >= BY_WARPGROUPS;
}

/* Whether the kernel finds q, k and v by a->size.places; to the others, they are contiguous. */
static bool is_placed(enum kernel kernel) {
    return kernel == BY_WARPGROUPS || kernel == ON_HOST || kernel == ON_HOST_FEW;
}

/* Whether the rows of a tile are counted one by one, not in steps of 16. */
static bool has_lines(enum kernel kernel) {
    return kernel == SPLIT || kernel == JOIN || kernel == ON_HOST_FEW;
}

static int most_depth(const struct attention *a) {
    return a->size.depth > a->size.value_depth ? a->size.depth : a->size.value_depth;
}

/* Whether rows of q, k, v and the like are multiples of 8 elements that begin at multiples of 16 bytes, and
 * bias_columns, which are loaded in pairs, begin at such a multiple, too. */
static bool is_aligned(const struct attention *a) {
    bool aligned = a->size.depth % 8 == 0 && a->size.value_depth % 8 == 0;
    for (int i = Q; i < ARRAY_COUNT; i++)
        if (a->arrays[i] && (i <= V || i >= COLUMNS)) aligned &= ((uintptr_t)a->arrays[i]->data & 15) == 0;
    return aligned;
}

/* ---- Tiles of BY_WARPGROUPS. */

static int64_t tiles_with(const struct attention *a, int rows) {
    return (int64_t)a->batches * a->size.heads * ((a->size.rows + (int64_t)rows - 1) / rows);
}

/* Rows of a tile. With heads of 64 elements, a tile of 192 rows takes 4/3 of the time of one of 128, and a
 * third warpgroup computes exponentials while others multiply. (H200, 2026-11-30, bfloat16, 4 × 16 heads of
 * 4096 rows: 582 and 636 µs; 2 × 16 of 2000 rows, which takes 3 and 4 rounds: 98 and 97 µs. Causal, in turns:
 * 340 and 347 µs.) */
static int warpgroup_rows(const struct attention *a) {
    if (most_depth(a) > 64 || a->mask != MASK_NONE) return 128;
    int64_t most = program_warpgroup_multiprocessors(a->call.device);
    if (most < 1) return 128;
    int64_t large = (tiles_with(a, 192) + most - 1) / most, small = (tiles_with(a, 128) + most - 1) / most;
    return large * 4 < small * 3 ? 192 : 128;
}

static int64_t tiles_of(const struct attention *a) {
    return tiles_with(a, warpgroup_rows(a));
}

/* Whether kernels of warpgroups can compute it, with rows enough to be faster. */
static bool is_by_warpgroups(const struct attention *a) {
    return tiles_of(a) <= INT32_MAX && program_has_warpgroups(a->call.device) && a->dtype != SMELT_FLOAT32 &&
           a->size.rows > FEW_ROWS && most_depth(a) <= 128 && is_aligned(a);
}

static struct tune_job job_of(const struct attention *a) {
    return (struct tune_job){"attention",
                             a->call.device,
                             a->dtype,
                             {(int64_t)a->batches * a->size.heads, a->size.rows, a->size.keys, most_depth(a)},
                             4};
}

/* Threadgroups that SPLIT would run without parts. */
static int64_t split_groups(const struct attention *a) {
    int lines = a->size.heads / a->size.key_heads * a->size.rows;
    return (int64_t)round_up(lines, SPLIT_ROWS) / SPLIT_ROWS * a->size.key_heads * a->batches;
}

/* Chooses whether the keys are split into parts, and if so stores the parts in a->size: as tuned; otherwise
 * on GPUs, for few rows, as many as give every multiprocessor work. */
static bool choose_parts(struct attention *a) {
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

#define TILE_STEP 16  /* write_kernels counts rows and keys of a tile in these steps */
#define MOST_TILE 128 /* the most rows and keys that tuning tries on GPUs (tuned.c) */
/* The largest tiles of ON_HOST: attention_host.metal's threadgroup memory has room for so many rows and keys
 * with heads of 256 elements. Larger blocks of keys need fewer products and fewer passes over the sums. */
#define HOST_ROWS 64
#define HOST_KEYS 512
#define HOST_TILE 64 /* rows and keys, of the derivative on CPUs */
/* Up to so many rows of a head, ON_HOST_FEW is faster. (Zen 5, 8 heads of 64 elements, 512 keys, one thread;
 * µs of ON_HOST and of ON_HOST_FEW: 1 row 109 and 19, 4 rows 106 and 47.) */
#define HOST_FEW_ROWS 4

/* Lines of a threadgroup of ON_HOST_FEW: 1, 2 or 4. More share a row of keys; fewer give all threads work. */
static int host_few_lines(const struct attention *a) {
    int64_t lines = (int64_t)a->size.heads / a->size.key_heads * a->size.rows,
            groups = (int64_t)a->size.key_heads * a->batches, threads = smelt_device_threads(a->call.device);
    int count = 4;
    while (count > 1 && (count / 2 >= lines || (lines + count - 1) / count * groups < threads)) count /= 2;
    return count;
}

static bool is_tile_size(enum kernel kernel, const int64_t tile[2]) {
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
    if (size <= 2 * HOST_TILE - TILE_STEP) return round_up(size ? size : 1, TILE_STEP);
    for (int tile = HOST_TILE; tile < 2 * HOST_TILE; tile += TILE_STEP)
        if (round_up(size, tile) < round_up(size, best)) best = tile;
    return best;
}

/* Of a tile of scores: what was tuned, else by rule. The registers of GPUs hold small ones; on CPUs, larger
 * ones pay. */
static void choose_tile(const struct attention *a, enum kernel kernel, int *rows, int *keys) {
    int depth = most_depth(a);
    bool few = a->size.rows <= FEW_ROWS;
    struct tune_job job = job_of(a);
    int64_t tuned[SETTING_NUMBERS];
    if (kernel == SPLIT || kernel == JOIN) {
        *rows = SPLIT_ROWS, *keys = 16;
    } else if (is_warpgroups(kernel)) {
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

static void write_kernels(struct text *text, const void *context) {
    const struct program_key *key = context;
    static const char *const names[] = {"DEPTH", "ROWS", "KEYS"};
    text_addf(text, "#define ATTENTION_TYPE %s\n", program_type((smelt_dtype)key->dtypes[0]));
    bool split = key->operation == SPLIT || key->operation == JOIN;
    for (int i = 0; i < 3; i++)
        text_addf(text, "#define ATTENTION_%s %d\n", names[i],
                  (i == 1 && has_lines((enum kernel)key->operation) ? 1 : 16) * key->operands[i]);
    text_addf(text, "#define ATTENTION_MASK %d\n#define ATTENTION_SINKS %d\n", key->operands[3],
              key->operands[4]);
    if (key->operands[3] == MASK_SUMS) text_addf(text, "#define ATTENTION_WIDTH %d\n", key->form);
    text_addf(text, "#define ATTENTION_%s %d\n#define ATTENTION_FULL %d\n", split ? "WIDE" : "PLACED",
              key->operands[5], key->operands[6]);
    text_add(text, kernel_text_attention_parts);
    if (key->operation == BY_WARPGROUPS) text_add(text, kernel_text_attention_exp2);
    text_add(text, kernels[key->operation].text);
}

static smelt_status find_kernel(const struct attention *a, enum kernel kernel, int rows, int keys,
                                smelt_function **function) {
    bool split = kernel == SPLIT || kernel == JOIN;
    int depth = round_up(most_depth(a), is_warpgroups(kernel) || split ? 64 : 16);
    if (split && depth > 128) depth = 256; /* lanes hold equal parts of it */
    struct program_key key = {
        .family = PROGRAM_ATTENTION, .operation = kernel, .dtypes = {(uint8_t)a->dtype}};
    key.operands[0] = (uint8_t)(depth / 16);
    key.operands[1] = (uint8_t)(has_lines(kernel) ? rows : rows / 16), key.operands[2] = (uint8_t)(keys / 16);
    key.operands[3] = (uint8_t)(has_mask(kernel) ? a->mask : MASK_NONE);
    key.operands[4] = is_forward(kernel) && a->arrays[SINKS];
    key.operands[5] = split ? kernel == SPLIT && is_aligned(a) : is_placed(kernel);
    key.operands[6] =
        kernel == ON_HOST_FEW && a->size.depth % 32 == 0 && a->size.depth == a->size.value_depth;
    if (key.operands[3] == MASK_SUMS) key.form = (uint16_t)a->arrays[COLUMNS]->shape.size[3];
    return program_get(&key, kernels[kernel].name, write_kernels, &key, function);
}

/* Pairs are preferred even if idle multiprocessors cost the time of this many blocks of keys, since they read
 * fewer heads at a time. (H200, 2026-11-30, bfloat16, causal; µs in pairs, and in turns: 4 × 16 heads of 4096
 * rows and 128 elements 464 and 531, of 64 elements 350 and 349; 8 × 32 of 1024 rows and 64 elements 131 and
 * 139. But 2 × 20 of 2000 rows and 64 elements 84 and 72, 20 of 2000 rows and 128 elements 76 and 56; 8 of
 * 16384 rows and 128 elements 817 and 819.) */
#define BLOCKS_OF_TURNS 3
#define BLOCKS_OF_LARGE_TURNS 1 /* tiles of 192 rows: 4 × 16 heads as above take 371 and 339 µs */

/* The threadgroups of BY_WARPGROUPS: one for each multiprocessor, which copies its next tile while it
 * computes one. Tiles of a causal mask take different times; in pairs (tiles_of_group in the kernel) all take
 * that of row_blocks + 1 blocks of keys. Where that leaves too many multiprocessors idle in the last round,
 * threadgroups take tiles of all heads in turns. */
static int64_t warpgroup_groups(struct attention *a) {
    int64_t tiles = tiles_of(a), most = program_warpgroup_multiprocessors(a->call.device);
    if (tiles < most || !a->size.causal) return tiles < most ? tiles : most;
    int rows = warpgroup_rows(a);
    int64_t row_blocks = (a->size.rows + (int64_t)rows - 1) / rows;
    int64_t pairs = tiles / row_blocks * ((row_blocks + 1) / 2), rounds = (pairs + most - 1) / most;
    int64_t blocks = rows > 128 ? BLOCKS_OF_LARGE_TURNS : BLOCKS_OF_TURNS;
    bool balanced = rounds * most * (row_blocks + 1) <= pairs * (row_blocks + 1 + blocks);
    a->size.turns = !balanced;
    return most;
}

/* The groups of a kernel, and their threads. */
static void choose_groups(struct attention *a, enum kernel kernel, int rows, int keys,
                          smelt_dispatch_desc *dispatch) {
    int64_t row_blocks = round_up(a->size.rows, rows) / rows,
            key_blocks = round_up(a->size.keys, keys) / keys;
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

/* q, k or v, bound from its lowest element to its highest; where its matrices are goes into a->size. */
static smelt_array place_matrices(struct attention *a, enum array_name name) {
    struct matrices *matrices = &a->size.places[name];
    (void)attention_find_matrices(a->arrays[name], matrices);
    return program_span(a->arrays[name], &matrices->first);
}

#define KERNEL_ARRAYS 9

/* Runs a kernel on arrays by index; the sizes are at 4, the mask or bias_lines at 10, the sinks at 11,
 * bias_columns at 12. */
static smelt_status run(struct attention *a, enum kernel kernel, smelt_array *const arrays[KERNEL_ARRAYS]) {
    int rows, keys;
    smelt_function *function;
    smelt_array mask, spans[3], result;
    int64_t first;
    choose_tile(a, kernel, &rows, &keys);
    TRY(find_kernel(a, kernel, rows, keys, &function));
    smelt_dispatch_desc dispatch = {.device = a->call.device, .stream = a->apply.stream};
    choose_groups(a, kernel, rows, keys, &dispatch);
    if (kernel == BY_WARPGROUPS) a->size.tiles = (int)tiles_of(a);
    for (int i = 0; i < KERNEL_ARRAYS; i++) dispatch.buffers[i].array = arrays[i];
    if (is_forward(kernel) || kernel == JOIN) {
        result = program_span(arrays[3], &first);
        dispatch.buffers[3].array = &result;
    }
    for (int i = Q; i <= V && is_placed(kernel); i++) {
        spans[i] = place_matrices(a, i);
        dispatch.buffers[i].array = &spans[i];
    }
    dispatch.buffers[4] = (smelt_buffer){.bytes = &a->size, .size = sizeof a->size};
    if (a->mask == MASK_SUMS && has_mask(kernel)) {
        dispatch.buffers[10].array = a->arrays[LINES];
        dispatch.buffers[12].array = a->arrays[COLUMNS];
    } else if (a->mask && has_mask(kernel)) {
        mask = program_span(a->arrays[MASK], &a->size.mask_first);
        dispatch.buffers[10].array = &mask;
    }
    if (is_forward(kernel) && a->arrays[SINKS]) dispatch.buffers[11].array = a->arrays[SINKS];
    return program_run(function, &dispatch);
}

/* ---- The operations. */

static smelt_status create(const struct attention *a, const smelt_shape *shape, smelt_dtype dtype,
                           smelt_array **array) {
    return call_output(&a->call, dtype, shape, array);
}

/* Fills results that no kernel writes. */
static smelt_status fill(const struct attention *a, smelt_array *array, double value) {
    return array->size ? array_fill_on(array, a->apply.stream, value) : SMELT_OK;
}

/* Each part of the keys by threadgroups of its own; JOIN then adds the parts. */
static smelt_status attend_by_parts(struct attention *a, smelt_array *out, smelt_array *sums) {
    smelt_array *values = NULL, *states = NULL, **x = a->arrays;
    int64_t lines = sums->size;
    if (a->size.parts == 1)
        return run(a, SPLIT, (smelt_array *[KERNEL_ARRAYS]){x[Q], x[K], x[V], out, NULL, sums, sums, sums});
    smelt_shape shape = {.ndim = 2, .size = {lines, (int64_t)a->size.parts * a->size.value_depth}};
    smelt_status status = create(a, &shape, SMELT_FLOAT32, &values);
    shape.size[1] = (int64_t)a->size.parts * 2;
    if (status == SMELT_OK) status = create(a, &shape, SMELT_FLOAT32, &states);
    if (status == SMELT_OK)
        status =
            run(a, SPLIT, (smelt_array *[KERNEL_ARRAYS]){x[Q], x[K], x[V], out, NULL, sums, values, states});
    if (status == SMELT_OK)
        status = run(a, JOIN, (smelt_array *[KERNEL_ARRAYS]){values, states, NULL, out, NULL, sums});
    smelt_array_release(values);
    smelt_array_release(states);
    return status;
}

static smelt_status attend(struct attention *a, smelt_array *out, smelt_array *sums) {
    if (!out->size) return fill(a, sums, -INFINITY);
    bool parts = a->size.keys && choose_parts(a);
    enum kernel kernel = FORWARD;
    if (parts)
        kernel = SPLIT;
    else if (program_is_host(a->call.device))
        kernel = a->size.rows <= HOST_FEW_ROWS ? ON_HOST_FEW : ON_HOST;
    else if (is_by_warpgroups(a))
        kernel = BY_WARPGROUPS;
    if (!is_placed(kernel)) TRY(attention_make_dense(a));
    if (parts) return attend_by_parts(a, out, sums);
    if (a->size.keys)
        return run(a, kernel,
                   (smelt_array *[KERNEL_ARRAYS]){a->arrays[Q], a->arrays[K], a->arrays[V], out, NULL, sums});
    if (a->arrays[SINKS])
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "attention: k has no rows; with sinks, expected at least 1");
    TRY(fill(a, out, 0));
    return fill(a, sums, -INFINITY);
}

static smelt_shape shape_of_sums(const struct attention *a) {
    return (smelt_shape){.ndim = 3, .size = {a->batches, a->size.heads, a->size.rows}};
}

static smelt_shape shape_of_results(const struct attention *a) {
    smelt_shape shape = shape_of_sums(a);
    shape.size[shape.ndim++] = a->size.value_depth;
    return shape;
}

/* Strides of the results, which the kernels of the forward pass find in a->size, too. */
static void place_results(struct attention *a, int64_t strides[SMELT_MAX_DIMENSIONS]) {
    const smelt_shape shape = shape_of_results(a),
                      by_rows = {
                          .ndim = 4,
                          .size = {a->batches, a->size.rows, a->size.heads, a->size.value_depth},
                      };
    shape_strides(a->rows_first ? &by_rows : &shape, strides);
    if (a->rows_first) {
        int64_t row = strides[1];
        strides[1] = strides[2], strides[2] = row;
    }
    a->size.result.batch = strides[0], a->size.result.head = strides[1], a->size.result.row = strides[2];
}

/* The result, followed in its memory by the sums of its rows, which all kernels write: on a GPU, allocating
 * a second block takes the host as long as a launch. `sums` needs no release. */
static smelt_status create_joined(const struct attention *a, const int64_t strides[SMELT_MAX_DIMENSIONS],
                                  smelt_array **out, smelt_array *sums) {
    const smelt_shape results = shape_of_results(a), rows = shape_of_sums(a);
    const int64_t width = (int64_t)smelt_dtype_bytes(a->dtype), row_count = shape_product(&rows);
    smelt_array *block;
    int64_t size;
    TRY(shape_check("attention", a->dtype, &results, &size));
    if (size > INT64_MAX / 16) return fail_out_of_memory((size_t)size);
    int64_t bytes = (size * width + SUMS_ALIGNMENT - 1) / SUMS_ALIGNMENT * SUMS_ALIGNMENT;
    smelt_shape whole = {.ndim = 1, .size = {(bytes + row_count * (int64_t)sizeof(float)) / width}};
    TRY(create(a, &whole, a->dtype, &block));
    smelt_status status = smelt_array_view(block, results, strides, 0, out);
    *sums = (smelt_array){.references = 1,
                          .dtype = SMELT_FLOAT32,
                          .shape = rows,
                          .size = row_count,
                          .data = block->data + bytes,
                          .memory = block->memory};
    shape_strides(&rows, sums->strides);
    smelt_array_release(block);
    return status;
}

static smelt_status create_both(const struct attention *a, const int64_t strides[SMELT_MAX_DIMENSIONS],
                                smelt_array **out, smelt_array **sums) {
    const smelt_shape results = shape_of_results(a), rows = shape_of_sums(a);
    smelt_array *block;
    TRY(create(a, &results, a->dtype, &block));
    smelt_status status = smelt_array_view(block, results, strides, 0, out);
    smelt_array_release(block);
    TRY(status);
    status = create(a, &rows, SMELT_FLOAT32, sums);
    if (status != SMELT_OK) smelt_array_release(*out);
    return status;
}

smelt_status smelt_attention(const smelt_attention_desc *desc, smelt_array **out, smelt_array **logsumexp) {
    struct attention a = {0};
    smelt_array joined, *made, *sums = &joined;
    int64_t strides[SMELT_MAX_DIMENSIONS];
    if (!out) return fail(SMELT_ERROR_INVALID_ARGUMENT, "attention: out is NULL");
    smelt_status status = attention_begin(desc, &a);
    if (status == SMELT_OK) {
        place_results(&a, strides);
        status =
            logsumexp ? create_both(&a, strides, &made, &sums) : create_joined(&a, strides, &made, &joined);
    }
    if (status == SMELT_OK) {
        status = attend(&a, made, sums);
        if (status != SMELT_OK) {
            smelt_array_release(made);
            if (logsumexp) smelt_array_release(sums);
        }
    }
    attention_end(&a);
    if (status != SMELT_OK) return status;
    *out = made;
    if (logsumexp) *logsumexp = sums;
    return SMELT_OK;
}

/* By blocks of keys and, in passes of their own, of rows. */
static smelt_status derive_twice(struct attention *a, smelt_array *gradients[3]) {
    smelt_array *dots, **x = a->arrays;
    TRY(create(a, &x[SUMS]->shape, SMELT_FLOAT32, &dots));
    smelt_status status = run(a, DOTS, (smelt_array *[KERNEL_ARRAYS]){x[OUT], x[G], NULL, dots});
    if (status == SMELT_OK)
        status =
            run(a, BY_Q,
                (smelt_array *[KERNEL_ARRAYS]){x[Q], x[K], x[V], gradients[Q], NULL, x[SUMS], dots, x[G]});
    if (status == SMELT_OK)
        status = run(a, BY_KV,
                     (smelt_array *[KERNEL_ARRAYS]){x[Q], x[K], x[V], gradients[K], NULL, x[SUMS], dots, x[G],
                                                    gradients[V]});
    smelt_array_release(dots);
    return status;
}

/* By blocks of keys alone, which add to sums by q. */
static smelt_status derive_by_warpgroups(struct attention *a, smelt_array *gradients[3]) {
    smelt_array *notes = NULL, *sums = NULL, **x = a->arrays;
    int rows, keys;
    choose_tile(a, VJP_BY_WARPGROUPS, &rows, &keys);
    int64_t row_blocks = round_up(a->size.rows, rows) / rows, heads = (int64_t)a->batches * a->size.heads;
    smelt_shape note_shape = {.ndim = 2, .size = {heads * row_blocks * rows, 2}};
    smelt_shape sum_shape = {.ndim = 2, .size = {heads * row_blocks, VJP_BLOCK_SUMS}};
    smelt_status status = create(a, &note_shape, SMELT_FLOAT32, &notes);
    if (status == SMELT_OK) status = create(a, &sum_shape, SMELT_FLOAT32, &sums);
    if (status == SMELT_OK)
        status =
            run(a, VJP_NOTES, (smelt_array *[KERNEL_ARRAYS]){x[OUT], x[G], NULL, notes, NULL, x[SUMS], sums});
    if (status == SMELT_OK)
        status = run(a, VJP_BY_WARPGROUPS,
                     (smelt_array *[KERNEL_ARRAYS]){x[Q], x[K], x[V], gradients[K], NULL, notes, sums, x[G],
                                                    gradients[V]});
    if (status == SMELT_OK)
        status = run(a, VJP_ROUND, (smelt_array *[KERNEL_ARRAYS]){sums, NULL, NULL, gradients[Q]});
    smelt_array_release(notes);
    smelt_array_release(sums);
    return status;
}

static smelt_status derive(struct attention *a, smelt_array *gradients[3]) {
    if (!a->arrays[OUT]->size || !a->size.keys) {
        for (int i = 0; i < 3; i++) TRY(fill(a, gradients[i], 0));
        return SMELT_OK;
    }
    return is_by_warpgroups(a) ? derive_by_warpgroups(a, gradients) : derive_twice(a, gradients);
}

smelt_status smelt_attention_vjp(const smelt_attention_desc *desc, smelt_array *out, smelt_array *logsumexp,
                                 smelt_array *cotangent, smelt_array *gradients[3]) {
    struct attention a = {0};
    smelt_array *made[3] = {0};
    if (!gradients || !out || !logsumexp || !cotangent)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "attention: %s is NULL",
                    !gradients   ? "gradients"
                    : !out       ? "out"
                    : !logsumexp ? "logsumexp"
                                 : "cotangent");
    a.arrays[OUT] = out, a.arrays[SUMS] = logsumexp, a.arrays[G] = cotangent;
    smelt_status status = attention_begin(desc, &a);
    if (status == SMELT_OK && a.mask == MASK_SUMS)
        status = fail(SMELT_ERROR_UNSUPPORTED,
                      "attention: bias_lines and bias_columns have no derivative; use a mask");
    for (int i = Q; i <= V && status == SMELT_OK; i++)
        status = create(&a, &a.arrays[i]->shape, a.dtype, &made[i]);
    if (status == SMELT_OK) status = derive(&a, made);
    attention_end(&a);
    for (int i = 0; i < 3; i++)
        if (status == SMELT_OK)
            gradients[i] = made[i];
        else
            smelt_array_release(made[i]);
    return status;
}
