#include "device/cpu_shape.h"

#include "abi/cpu_context.h"

/* Positions of threads that are not there, in the last gang of a masked group, must fit in 31 bits too. */
#define SMALL_GRID ((uint32_t)INT32_MAX - 1023)

static struct code_shape any_size(const uint32_t size[3], bool masked) {
    bool line = size[1] == 1 && size[2] == 1;
    return (struct code_shape){.engine = ENGINE_SIMD, .masked = masked, .size = {0, line, line}};
}

static struct code_shape exact_size(const uint32_t size[3]) {
    return (struct code_shape){.engine = ENGINE_SIMD, .size = {size[0], size[1], size[2]}};
}

#define LARGE_GANG (4 * SIMDGROUP_LANES) /* larger gangs have less to do for each thread */

static struct code_shape line_shape(const uint32_t size[3]) {
    struct code_shape shape = any_size(size, false);
    uint32_t multiple = LARGE_GANG;
    while (size[0] % multiple) multiple /= 2;
    shape.multiple = multiple > SIMDGROUP_LANES ? multiple : 0;
    return shape;
}

/* A gang lies in one row, or takes whole rows of one plane. Only code for whole rows depends on their
 * length, so groups of many sizes share the rest. */
static struct code_shape rows_shape(const uint32_t size[3]) {
    struct code_shape shape = {.engine = ENGINE_SIMD, .rows = 1};
    for (uint32_t lanes = LARGE_GANG; lanes > SIMDGROUP_LANES && !shape.multiple; lanes /= 2) {
        bool whole = lanes % size[0] == 0 && size[1] % (lanes / size[0]) == 0;
        if (size[0] % lanes && !whole) continue;
        shape.multiple = lanes;
        if (size[0] % lanes) shape.size[0] = size[0];
    }
    return shape;
}

/* Gangs that lie in one row each load and store neighbours, and their threads' positions need no division.
 * That makes up for lanes without a thread: half of them or, with masks of 512 bits, some more. */
static uint8_t by_rows(const uint32_t size[3], uint32_t row) {
    if (size[1] == 1 && size[2] == 1) return 0;
    return row >= 16 ? BY_ROWS : row >= 12 ? BY_SHORT_ROWS : 0;
}

static struct code_shape full_shape(const uint32_t size[3], bool barrier_hint) {
    bool masked = size[0] * size[1] * size[2] % SIMDGROUP_LANES;
    bool whole = size[0] % SIMDGROUP_LANES == 0 || (SIMDGROUP_LANES % size[0] == 0 && !masked);
    if (!whole && by_rows(size, size[0])) {
        struct code_shape shape = barrier_hint && !masked ? exact_size(size) : any_size(size, masked);
        shape.by_rows = by_rows(size, size[0]);
        return shape;
    }
    if (masked) return any_size(size, true);
    if (barrier_hint) return exact_size(size);
    if (size[1] == 1 && size[2] == 1) return line_shape(size);
    if (size[0] % SIMDGROUP_LANES == 0) return rows_shape(size);
    if (SIMDGROUP_LANES % size[0] == 0) return exact_size(size);
    return any_size(size, false);
}

/* Of groups cut off at the grid's edge. Their rows are as long as those of full groups, or shorter, or of
 * both lengths. */
static struct code_shape edge_shape(const struct launch *launch) {
    const uint32_t *size = launch->group_size;
    struct code_shape shape = any_size(size, true);
    uint32_t last = launch->grid[0] % size[0], longest = 0, shortest = UINT32_MAX;
    bool cut = launch->grid[1] % size[1] || launch->grid[2] % size[2];
    if (last) longest = shortest = last;
    if (cut && launch->grid[0] >= size[0]) {
        longest = size[0];
        if (size[0] < shortest) shortest = size[0];
    }
    /* Quick code of this shape runs full groups, too. */
    bool whole = (size[0] | longest | shortest) % SIMDGROUP_LANES == 0;
    bool line = size[1] == 1 && size[2] == 1;
    if (whole && !line) return (struct code_shape){.engine = ENGINE_SIMD, .rows = 1};
    shape.by_rows = by_rows(size, shortest);
    return shape;
}

#define LEAST_JOINED 8u        /* as many lanes as make up for the mask of the others */
#define LARGE_JOIN (128u * 64) /* threads of a grid that has groups for many CPUs even if they are large */

static bool has_groups_of_one(const struct launch *launch) {
    return launch->group_size[0] * launch->group_size[1] * launch->group_size[2] == 1;
}

bool launch_join(const struct launch *launch, struct launch *joined) {
    if (!has_groups_of_one(launch) || launch->grid[0] < LEAST_JOINED) return false;
    uint64_t threads = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    *joined = *launch;
    joined->joined = true;
    joined->group_size[0] = (threads < LARGE_JOIN ? 1 : 4) * SIMDGROUP_LANES;
    launch_count_groups(joined);
    return true;
}

void launch_shapes(const struct launch *launch, bool barrier_hint, struct launch_shapes *shapes) {
    bool small = !launch->large;
    *shapes = (struct launch_shapes){.has_full = true};
    for (int d = 0; d < 3; d++) {
        if (launch->grid[d] < launch->group_size[d]) shapes->has_full = false;
        if (launch->grid[d] % launch->group_size[d]) shapes->has_edge = true;
        small &= launch->grid[d] < SMALL_GRID;
    }
    if (shapes->has_full) {
        shapes->full = full_shape(launch->group_size, barrier_hint);
        shapes->full.polled = launch->timeout > 0;
        shapes->full.small = small;
        shapes->full.joined = launch->joined || has_groups_of_one(launch);
        shapes->full.tested = launch->tested;
        shapes->full.distinct = !launch->overlapping;
    }
    if (shapes->has_edge) {
        shapes->edge = edge_shape(launch);
        shapes->edge.polled = launch->timeout > 0;
        shapes->edge.small = small;
        shapes->edge.joined = launch->joined;
        shapes->edge.tested = launch->tested;
        shapes->edge.distinct = !launch->overlapping;
    }
}
