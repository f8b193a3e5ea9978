/* Which codes a launch needs (device/cpu_shape.h). */
#include "unit.h"

#include "device/cpu_shape.h"

#include <string.h>

struct case_of {
    const char *what;
    uint32_t grid[3], group_size[3];
    bool barrier_hint;
    bool has_full, has_edge;
    struct code_shape full, edge;
};

#define SIMD .engine = ENGINE_SIMD, .small = 1
#define NONE {0}

static const struct case_of cases[] = {
    {"a line",
     {1024, 1, 1},
     {256, 1, 1},
     false,
     true,
     false,
     {SIMD, .multiple = 128, .size = {0, 1, 1}},
     NONE},
    {"a line of 64",
     {1024, 1, 1},
     {64, 1, 1},
     false,
     true,
     false,
     {SIMD, .multiple = 64, .size = {0, 1, 1}},
     NONE},
    {"a line of 96", {960, 1, 1}, {96, 1, 1}, false, true, false, {SIMD, .size = {0, 1, 1}}, NONE},
    {"a line with an edge",
     {1000, 1, 1},
     {256, 1, 1},
     false,
     true,
     true,
     {SIMD, .multiple = 128, .size = {0, 1, 1}},
     {SIMD, .masked = 1, .size = {0, 1, 1}}},
    {"an edge only",
     {100, 1, 1},
     {256, 1, 1},
     false,
     false,
     true,
     NONE,
     {SIMD, .masked = 1, .size = {0, 1, 1}}},
    {"a line of groups with a rest",
     {1000, 1, 1},
     {250, 1, 1},
     false,
     true,
     false,
     {SIMD, .masked = 1, .size = {0, 1, 1}},
     NONE},
    {"a line with barriers", {1024, 1, 1}, {256, 1, 1}, true, true, false, {SIMD, .size = {256, 1, 1}}, NONE},
    {"a line with barriers and an edge",
     {1000, 1, 1},
     {256, 1, 1},
     true,
     true,
     true,
     {SIMD, .size = {256, 1, 1}},
     {SIMD, .masked = 1, .size = {0, 1, 1}}},
    {"barriers and a rest",
     {100, 1, 1},
     {50, 1, 1},
     true,
     true,
     false,
     {SIMD, .masked = 1, .size = {0, 1, 1}},
     NONE},
    {"rows of simdgroups",
     {256, 8, 1},
     {64, 4, 1},
     false,
     true,
     false,
     {SIMD, .rows = 1, .multiple = 128, .size = {64}},
     NONE},
    {"rows in a simdgroup", {256, 8, 8}, {8, 4, 2}, false, true, false, {SIMD, .size = {8, 4, 2}}, NONE},
    {"columns", {256, 64, 1}, {1, 32, 1}, false, true, false, {SIMD, .size = {1, 32, 1}}, NONE},
    {"neither", {110, 96, 1}, {11, 32, 1}, false, true, false, {SIMD}, NONE},
    {"short rows", {120, 96, 1}, {12, 32, 1}, false, true, false, {SIMD, .by_rows = BY_SHORT_ROWS}, NONE},
    {"rows of half a gang",
     {32, 6, 1},
     {16, 3, 1},
     false,
     true,
     false,
     {SIMD, .masked = 1, .by_rows = BY_ROWS},
     NONE},
    {"rows, and barriers in the text",
     {96, 8, 1},
     {48, 4, 1},
     true,
     true,
     false,
     {SIMD, .by_rows = BY_ROWS, .size = {48, 4, 1}},
     NONE},
    {"long rows at the edge",
     {56, 56, 1},
     {32, 8, 1},
     false,
     true,
     true,
     {SIMD, .rows = 1, .multiple = 128, .size = {32}},
     {SIMD, .masked = 1, .by_rows = BY_ROWS}},
    {"short rows at one edge of two",
     {44, 31, 1},
     {32, 8, 1},
     false,
     true,
     true,
     {SIMD, .rows = 1, .multiple = 128, .size = {32}},
     {SIMD, .masked = 1, .by_rows = BY_SHORT_ROWS}},
    {"single threads at the edge",
     {33, 31, 1},
     {32, 8, 1},
     false,
     true,
     true,
     {SIMD, .rows = 1, .multiple = 128, .size = {32}},
     {SIMD, .masked = 1}},
    {"whole gangs at the edge of rows with a rest",
     {80, 8, 1},
     {48, 8, 1},
     false,
     true,
     true,
     {SIMD, .by_rows = BY_ROWS},
     {SIMD, .masked = 1, .by_rows = BY_ROWS}},
    {"a plane with barriers",
     {128, 128, 1},
     {16, 16, 1},
     true,
     true,
     false,
     {SIMD, .size = {16, 16, 1}},
     NONE},
    {"a plane with an edge in y only",
     {64, 63, 1},
     {32, 4, 1},
     false,
     true,
     true,
     {SIMD, .rows = 1, .multiple = 128, .size = {32}},
     {SIMD, .rows = 1}},
    {"rows of which two fill a gang, in planes",
     {32, 6, 2},
     {32, 2, 2},
     false,
     true,
     false,
     {SIMD, .rows = 1, .multiple = 64, .size = {32}},
     NONE},
    {"rows of whole gangs",
     {256, 3, 1},
     {128, 3, 1},
     false,
     true,
     false,
     {SIMD, .rows = 1, .multiple = 128},
     NONE},
    {"rows of one and a half gangs", {96, 4, 1}, {96, 4, 1}, false, true, false, {SIMD, .rows = 1}, NONE},
    {"a plane smaller than its group", {64, 3, 1}, {32, 4, 1}, false, false, true, NONE, {SIMD, .rows = 1}},
    {"a plane with a rest",
     {40, 40, 1},
     {20, 10, 1},
     false,
     true,
     false,
     {SIMD, .masked = 1, .by_rows = BY_ROWS},
     NONE},
    /* Many threads, but 31 bits hold each coordinate, also for lanes after the last thread. */
    {"the largest small grid",
     {2147482623, 1, 1},
     {1, 1, 1},
     false,
     true,
     false,
     {SIMD, .masked = 1, .joined = 1, .size = {0, 1, 1}},
     NONE},
    {"the first that is not",
     {1, 2147482624, 1},
     {1, 32, 1},
     false,
     true,
     false,
     {.engine = ENGINE_SIMD, .size = {1, 32, 1}},
     NONE},
};

static void codes_fit_the_groups(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t way = 0; way < 4; way++) {
            const struct case_of *c = &cases[i];
            bool polled = way & 1, overlapping = way & 2;
            struct launch request = {.timeout = polled, .overlapping = overlapping};
            memcpy(request.grid, c->grid, sizeof c->grid);
            memcpy(request.group_size, c->group_size, sizeof c->group_size);
            struct launch_shapes shapes, wanted = {c->has_full, c->has_edge, c->full, c->edge};
            if (wanted.has_full) wanted.full.polled = polled, wanted.full.distinct = !overlapping;
            if (wanted.has_edge) wanted.edge.polled = polled, wanted.edge.distinct = !overlapping;
            launch_shapes(&request, c->barrier_hint, &shapes);
            if (shapes.has_full != wanted.has_full || shapes.has_edge != wanted.has_edge ||
                memcmp(&shapes.full, &wanted.full, sizeof wanted.full) != 0 ||
                memcmp(&shapes.edge, &wanted.edge, sizeof wanted.edge) != 0)
                FAIL_TEST("%s: full %d masked %u rows %u by rows %u size %u %u %u, edge %d masked %u rows %u "
                          "by rows "
                          "%u size %u %u %u",
                          c->what, shapes.has_full, shapes.full.masked, shapes.full.rows, shapes.full.by_rows,
                          shapes.full.size[0], shapes.full.size[1], shapes.full.size[2], shapes.has_edge,
                          shapes.edge.masked, shapes.edge.rows, shapes.edge.by_rows, shapes.edge.size[0],
                          shapes.edge.size[1], shapes.edge.size[2]);
        }
}

static void large_buffers_make_a_launch_no_small_one(void **state) {
    (void)state;
    struct launch request = {.grid = {100, 1, 1}, .group_size = {32, 1, 1}};
    struct launch_shapes shapes;
    launch_shapes(&request, false, &shapes);
    assert_true(shapes.full.small && shapes.edge.small);
    request.large = true;
    launch_shapes(&request, false, &shapes);
    assert_false(shapes.full.small || shapes.edge.small);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(codes_fit_the_groups),
                                       cmocka_unit_test(large_buffers_make_a_launch_no_small_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
