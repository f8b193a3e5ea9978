/* Index spaces are simplified before a kernel is chosen: dimensions that all operands traverse as one are
 * joined. The rest is either one row that every operand holds densely or by one element (no index
 * arithmetic), or any number of dimensions with strides for each operand, of which a thread's position gives
 * the inner two. */
#include "ops/map.h"

#include <stdio.h>
#include <string.h>

/* Shared with the kernel's `struct layout`. Dimension 0 is the innermost. */
struct layout {
    uint32_t rank, pad;
    uint32_t size[SMELT_MAX_DIMENSIONS];
    int64_t values[MAP_MAX_NUMBERS + MAP_MAX_OPERANDS * (1 + SMELT_MAX_DIMENSIONS)]; /* see write_kernel */
};

/* How an operand is addressed: enum in program_key.operands. */
enum {
    ADDRESS_ROW = 1,
    ADDRESS_ONE,
    ADDRESS_BYTES,
    ADDRESS_STRIDED,
    ADDRESS_BYTES_STRIDED,
    ADDRESS_NEIGHBOURS, /* strided, by 1 along the innermost dimension … */
    ADDRESS_REPEATED    /* … or by 0: the compiler then sees plain loads */
};

/* Rows are cut in pieces, so that positions fit 32 bits. */
#define MOST_ELEMENTS (INT64_C(1) << 30)
#define CPU_GROUP 1024
#define GPU_GROUP 256

void map_broadcast(const smelt_array *array, const smelt_shape *space,
                   int64_t strides[SMELT_MAX_DIMENSIONS]) {
    int lead = space->ndim - array->shape.ndim;
    for (int d = 0; d < space->ndim; d++)
        strides[d] = d < lead || array->shape.size[d - lead] == 1 ? 0 : array->strides[d - lead];
}

struct operand map_operand(smelt_array *array, const smelt_shape *space, bool written) {
    struct operand operand = {.array = array, .written = written};
    map_broadcast(array, space, operand.strides);
    return operand;
}

void map_group(const int64_t grid[3], int64_t most, int64_t group[3]) {
    for (int d = 0; d < 3; d++) {
        group[d] = grid[d] < most ? grid[d] : most;
        most /= group[d];
        if (most < 1) most = 1;
    }
}

/* ---- Simplifying. */

/* Dimensions d and d + 1 are one for all operands. */
static bool joins(const struct map *map, int d) {
    for (int j = 0; j < map->operand_count; j++) {
        const int64_t *strides = map->operands[j].strides;
        if (strides[d] != strides[d + 1] * map->space.size[d + 1]) return false;
    }
    return true;
}

static void drop(struct map *map, int d) {
    map->space.ndim--;
    for (int i = d; i < map->space.ndim; i++) {
        map->space.size[i] = map->space.size[i + 1];
        for (int j = 0; j < map->operand_count; j++)
            map->operands[j].strides[i] = map->operands[j].strides[i + 1];
    }
}

static void simplify(struct map *map) {
    for (int d = map->space.ndim - 1; d >= 0; d--)
        if (map->space.size[d] == 1) drop(map, d);
    for (int d = map->space.ndim - 2; d >= 0; d--)
        if (joins(map, d)) {
            map->space.size[d + 1] *= map->space.size[d];
            drop(map, d);
        }
}

/* ---- Addresses. */

static bool is_row(const struct map *map) {
    if (map->space.ndim > 1) return false;
    for (int j = 0; map->space.ndim && j < map->operand_count; j++)
        if (map->operands[j].strides[0] & ~INT64_C(1)) return false;
    return true;
}

/* An operand of one element that a launch takes with it. */
static bool is_bytes(const struct map *map, const struct operand *operand) {
    if (!operand->array || operand->written || program_is_host(map->device) || operand->array->memory->space)
        return false;
    for (int d = 0; d < map->space.ndim; d++)
        if (operand->strides[d]) return false;
    return true;
}

static uint8_t address_of(const struct map *map, const struct operand *operand, bool row) {
    bool bytes = is_bytes(map, operand);
    if (!row && !bytes && map->space.ndim) {
        int64_t inner = operand->strides[map->space.ndim - 1];
        return inner == 1 ? ADDRESS_NEIGHBOURS : inner == 0 ? ADDRESS_REPEATED : ADDRESS_STRIDED;
    }
    if (!row) return bytes ? ADDRESS_BYTES_STRIDED : ADDRESS_STRIDED;
    /* A single element is the first of its row: no code of its own. */
    return bytes ? ADDRESS_BYTES : map->space.ndim && !operand->strides[0] ? ADDRESS_ONE : ADDRESS_ROW;
}

/* ---- Text. */

static void write_parameters(struct text *text, const struct map *map) {
    for (int j = 0; j < map->operand_count; j++) {
        const struct operand *operand = &map->operands[j];
        uint8_t address = map->key.operands[j];
        bool bytes = address == ADDRESS_BYTES || address == ADDRESS_BYTES_STRIDED;
        if (!operand->array) continue;
        const char *type =
            operand->written && map->atomic ? map->atomic : program_type(operand->array->dtype);
        text_addf(text, "%s %s%s *q%d [[buffer(%d)]], ", bytes ? "constant" : "device",
                  operand->written || bytes ? "" : "const ", type, j, j);
    }
    text_addf(text, "constant layout &l [[buffer(%d)]], uint3 point [[thread_position_in_grid]]",
              map->operand_count);
}

/* An operand's first element; in a row the compiler then sees plain neighbours. */
static void write_start(struct text *text, int j) {
    text_addf(text, "  auto p%d = q%d + l.start[%d];\n", j, j, j);
}

/* One element per thread. For GPUs the compiler gives a thread several neighbours, in accesses of 16 bytes
 * where they are aligned (src/compiler/ptx/coarsen/coarsen.c). */
static void write_row(struct text *text, const struct map *map) {
    text_add(text, "  const uint i = point.x;\n");
    for (int j = 0; j < map->operand_count; j++)
        text_addf(text, "  const uint o%d = %s;\n", j, map->key.operands[j] == ADDRESS_ROW ? "i" : "0");
    map->write(text, map);
}

static void write_strided(struct text *text, const struct map *map) {
    for (int j = 0; j < map->operand_count; j++) {
        int first = j * SMELT_MAX_DIMENSIONS;
        text_addf(text, "  long o%d = long(point.y) * l.stride[%d]", j, first + 1);
        if (map->key.operands[j] == ADDRESS_NEIGHBOURS)
            text_add(text, " + long(point.x);\n");
        else if (map->key.operands[j] == ADDRESS_REPEATED)
            text_add(text, ";\n");
        else
            text_addf(text, " + long(point.x) * l.stride[%d];\n", first);
    }
    text_add(text, "  uint rest = point.z;\n"
                   "  for (uint d = 2; d < l.rank; d++) {\n"
                   "    const long c = long(rest % l.size[d]);\n"
                   "    rest /= l.size[d];\n");
    for (int j = 0; j < map->operand_count; j++)
        text_addf(text, "    o%d += c * l.stride[%d + d];\n", j, j * SMELT_MAX_DIMENSIONS);
    text_add(text, "  }\n");
    map->write(text, map);
}

static void write_kernel(struct text *text, const void *context) {
    const struct map *map = context;
    text_addf(text, "struct layout { uint rank, pad; uint size[%d]; long start[%d]; long stride[%d]; ",
              SMELT_MAX_DIMENSIONS, map->operand_count, map->operand_count * SMELT_MAX_DIMENSIONS);
    if (map->number_count) text_addf(text, "long number[%d]; ", map->number_count);
    text_add(text, "};\n");
    if (map->write_before) map->write_before(text, map);
    text_addf(text, "kernel void smelt_%s(", map->name);
    write_parameters(text, map);
    text_add(text, ") {\n");
    for (int j = 0; j < map->operand_count; j++)
        if (map->operands[j].array) write_start(text, j);
    if (map->key.operands[0] >= ADDRESS_STRIDED)
        write_strided(text, map);
    else
        write_row(text, map);
    text_add(text, "}\n");
}

/* ---- Launching. */

/* The starts of the operands are filled in before each launch. Returns the bytes it has. */
static size_t fill_layout(const struct map *map, struct layout *layout) {
    int rank = map->space.ndim;
    int64_t *next = layout->values + map->operand_count;
    layout->rank = (uint32_t)rank;
    layout->pad = 0;
    for (int d = 0; d < SMELT_MAX_DIMENSIONS; d++)
        layout->size[d] = d < rank ? (uint32_t)map->space.size[rank - 1 - d] : 1;
    for (int j = 0; j < map->operand_count; j++)
        for (int d = 0; d < SMELT_MAX_DIMENSIONS; d++)
            *next++ = d < rank ? map->operands[j].strides[rank - 1 - d] : 0;
    for (int i = 0; i < map->number_count; i++) *next++ = map->numbers[i];
    return (size_t)((char *)next - (char *)layout);
}

static smelt_status grid_of(const struct map *map, int64_t grid[3]) {
    int rank = map->space.ndim;
    grid[0] = rank > 0 ? map->space.size[rank - 1] : 1;
    grid[1] = rank > 1 ? map->space.size[rank - 2] : 1;
    grid[2] = 1;
    bool fits = grid[0] <= UINT32_MAX && grid[1] <= UINT32_MAX;
    for (int d = rank - 3; d >= 0; d--)
        fits &= !__builtin_mul_overflow(grid[2], map->space.size[d], &grid[2]) && grid[2] <= UINT32_MAX;
    if (fits) return SMELT_OK;
    return fail(SMELT_ERROR_LIMIT,
                "%s: shape %s has a dimension, or outer dimensions together, of 2^32 or more", map->name,
                shape_print(&map->space).text);
}

struct launch_plan {
    smelt_function *function;
    smelt_dispatch_desc dispatch;
    struct layout layout;
    smelt_array spans[MAP_MAX_OPERANDS];
    int64_t starts[MAP_MAX_OPERANDS];
};

static smelt_status run_rows(const struct map *map, struct launch_plan *plan) {
    int64_t total = map->space.ndim ? map->space.size[0] : 1;
    bool host = program_is_host(map->device);
    for (int64_t first = 0; first < total; first += MOST_ELEMENTS) {
        int64_t count = total - first < MOST_ELEMENTS ? total - first : MOST_ELEMENTS;
        for (int j = 0; j < map->operand_count; j++)
            plan->layout.values[j] = plan->starts[j] + (map->key.operands[j] == ADDRESS_ROW ? first : 0);
        int64_t most = host ? CPU_GROUP : GPU_GROUP;
        plan->dispatch.grid[0] = count;
        plan->dispatch.threadgroup[0] = count < most ? count : most;
        TRY(program_run(plan->function, &plan->dispatch));
    }
    return SMELT_OK;
}

static smelt_status launch(struct map *map, bool row) {
    struct launch_plan plan;
    memset(&plan.dispatch, 0, sizeof plan.dispatch);
    char name[64];
    snprintf(name, sizeof name, "smelt_%s", map->name);
    TRY(program_get(&map->key, name, write_kernel, map, &plan.function));
    size_t bytes = fill_layout(map, &plan.layout);
    for (int j = 0; j < map->operand_count; j++) {
        struct operand *operand = &map->operands[j];
        uint8_t address = map->key.operands[j];
        plan.starts[j] = plan.layout.values[j] = 0;
        if (!operand->array) continue;
        plan.spans[j] = program_span(operand->array, &plan.starts[j]);
        plan.starts[j] += operand->offset;
        plan.layout.values[j] = plan.starts[j];
        if (address == ADDRESS_BYTES || address == ADDRESS_BYTES_STRIDED) {
            size_t width = smelt_dtype_bytes(operand->array->dtype);
            plan.dispatch.buffers[j].bytes = operand->array->data + operand->offset * (int64_t)width;
            plan.dispatch.buffers[j].size = width;
            plan.starts[j] = plan.layout.values[j] = 0;
        } else {
            plan.dispatch.buffers[j].array = &plan.spans[j];
        }
    }
    plan.dispatch.buffers[map->operand_count] = (smelt_buffer){.bytes = &plan.layout, .size = bytes};
    plan.dispatch.device = map->device;
    plan.dispatch.stream = map->stream;
    if (row) return run_rows(map, &plan);
    TRY(grid_of(map, plan.dispatch.grid));
    map_group(plan.dispatch.grid, GPU_GROUP, plan.dispatch.threadgroup);
    return program_run(plan.function, &plan.dispatch);
}

/* Completes the key. Returns whether the space is a row. */
static bool choose_form(struct map *map) {
    simplify(map);
    bool row = !map->lanes && is_row(map);
    map->key.family = PROGRAM_MAP;
    for (int j = 0; j < map->operand_count; j++) {
        if (map->operands[j].array) map->key.dtypes[j] = (uint8_t)map->operands[j].array->dtype;
        map->key.operands[j] = address_of(map, &map->operands[j], row);
    }
    if (!program_is_host(map->device)) map->key.form |= 0x8000;
    return row;
}

void map_text(struct map *map, struct text *text) {
    (void)choose_form(map);
    program_write(&map->key, write_kernel, map, text);
}

smelt_status map_run(struct map *map) {
    if (program_is_symbolic(map->device)) return SMELT_OK;
    for (int d = 0; d < map->space.ndim; d++)
        if (map->space.size[d] == 0) return SMELT_OK;
    bool row = choose_form(map);
    return launch(map, row);
}
