/* grid_sample and its gradients: by the kernels of kernels/vision/sample.metal, or composed of gathers, which
 * also serves float64 and derivatives of derivatives. */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/expression.h"
#include "ops/program.h"
#include "ops/routine_input.h"

#include <limits.h>

/* Shared with the kernels. */
struct sample_size {
    uint32_t batches, points, height, width, channels;
};

struct sample {
    smelt_shape x, grid, out;
    struct sample_size size;
    bool nearest, border, align;
};

/* Shapes: x (batches, height, width, channels), grid (batches, rows, columns, 2). */
static smelt_status read(const struct call *call, const smelt_shape *x, const smelt_shape *grid,
                         struct sample *s) {
    const smelt_apply_desc *desc = call->desc;
    if (x->ndim != 4 || grid->ndim != 4 || grid->size[3] != 2 || grid->size[0] != x->size[0])
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "%s: x has shape %s and grid %s; expected (batches, height, width, channels) and (batches, rows, "
            "columns, 2)",
            call->name, shape_print(x).text, shape_print(grid).text);
    *s = (struct sample){.x = *x, .grid = *grid, .out = *grid};
    s->out.size[3] = x->size[3];
    s->nearest = desc->starts[0] != 0;
    s->border = desc->starts[1] != 0;
    s->align = desc->starts[2] != 0;
    int64_t points = grid->size[1] * grid->size[2];
    if (points > INT_MAX || x->size[1] > INT_MAX / 4 || x->size[2] > INT_MAX / 4 || x->size[3] > INT_MAX)
        return fail(SMELT_ERROR_LIMIT, "%s: x has shape %s and grid %s; sizes are below 2^29", call->name,
                    shape_print(x).text, shape_print(grid).text);
    if (shape_product(&s->out) && !(x->size[1] && x->size[2]))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: x has shape %s; expected images with pixels",
                    call->name, shape_print(x).text);
    s->size = (struct sample_size){(uint32_t)x->size[0], (uint32_t)points, (uint32_t)x->size[1],
                                   (uint32_t)x->size[2], (uint32_t)x->size[3]};
    return SMELT_OK;
}

static smelt_status check_cotangent(const struct call *call, const struct sample *s, const smelt_array *g) {
    if (shape_equal(&g->shape, &s->out)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: the cotangent has shape %s; expected %s", call->name,
                shape_print(&g->shape).text, shape_print(&s->out).text);
}

/* ---- Kernels. */

/* arrays: x or g, grid, the result, x or NULL. */
static smelt_status run(const struct call *call, const char *entry, const struct sample *s, smelt_dtype dtype,
                        smelt_array *const arrays[4], bool by_points) {
    const struct routine routine = {
        .entry = entry,
        .texts = {kernel_text_sample},
        .types = {{"T", dtype}},
        .sizes = {{"NEAREST", s->nearest}, {"BORDER", s->border}, {"ALIGN", s->align}}};
    smelt_dispatch_desc dispatch = {.buffers = {{.array = arrays[0]},
                                                {.array = arrays[1]},
                                                {.array = arrays[2]},
                                                {.bytes = &s->size, .size = sizeof s->size},
                                                {.array = arrays[3]}}};
    if (by_points) {
        dispatch.groups[0] = (s->size.points + 3) / 4;
        dispatch.groups[1] = s->size.batches;
        dispatch.groups[2] = 1;
        dispatch.threadgroup[0] = 128;
        dispatch.threadgroup[1] = dispatch.threadgroup[2] = 1;
    } else {
        const int64_t grid[3] = {s->size.channels, s->size.points, s->size.batches};
        for (int d = 0; d < 3; d++) dispatch.grid[d] = grid[d];
        routine_group(call, grid, dispatch.threadgroup);
    }
    return routine_run(call, &routine, &dispatch);
}

smelt_status evaluate_sample(const struct call *call, smelt_array **result) {
    struct sample s;
    smelt_array *x = NULL, *grid = NULL, *made = NULL;
    smelt_dtype dtype = call->inputs[0]->dtype;
    TRY(read(call, &call->inputs[0]->shape, &call->inputs[1]->shape, &s));
    smelt_status status = routine_input(call, call->inputs[0], dtype, &x);
    if (status == SMELT_OK) status = routine_input(call, call->inputs[1], SMELT_FLOAT32, &grid);
    if (status == SMELT_OK) status = call_output(call, dtype, &s.out, &made);
    if (status == SMELT_OK && made->size)
        status = run(call, "smelt_sample", &s, dtype, (smelt_array *[4]){x, grid, made, x}, false);
    smelt_array_release(x);
    smelt_array_release(grid);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

/* Inputs: the cotangent and the grid; `shape`: x's. */
smelt_status evaluate_sample_by_x(const struct call *call, smelt_array **result) {
    struct sample s;
    smelt_array *g = NULL, *grid = NULL, *made = NULL;
    smelt_dtype dtype = call->inputs[0]->dtype;
    TRY(read(call, &call->desc->shape, &call->inputs[1]->shape, &s));
    TRY(check_cotangent(call, &s, call->inputs[0]));
    smelt_status status = routine_input(call, call->inputs[0], dtype, &g);
    if (status == SMELT_OK) status = routine_input(call, call->inputs[1], SMELT_FLOAT32, &grid);
    if (status == SMELT_OK)
        status = program_filled(call->device, call->desc->stream, SMELT_FLOAT32, &s.x, 0, &made);
    if (status == SMELT_OK && g->size)
        status = run(call, "smelt_sample_by_x", &s, dtype, (smelt_array *[4]){g, grid, made, g}, false);
    smelt_array_release(g);
    smelt_array_release(grid);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

/* Inputs: the cotangent, the grid and x. */
smelt_status evaluate_sample_by_grid(const struct call *call, smelt_array **result) {
    struct sample s;
    smelt_array *g = NULL, *grid = NULL, *x = NULL, *made = NULL;
    smelt_dtype dtype = call->inputs[2]->dtype;
    TRY(read(call, &call->inputs[2]->shape, &call->inputs[1]->shape, &s));
    TRY(check_cotangent(call, &s, call->inputs[0]));
    smelt_status status = routine_input(call, call->inputs[0], dtype, &g);
    if (status == SMELT_OK) status = routine_input(call, call->inputs[1], SMELT_FLOAT32, &grid);
    if (status == SMELT_OK) status = routine_input(call, call->inputs[2], dtype, &x);
    if (status == SMELT_OK) status = call_output(call, SMELT_FLOAT32, &s.grid, &made);
    if (status == SMELT_OK && made->size)
        status = run(call, "smelt_sample_by_grid", &s, dtype, (smelt_array *[4]){g, grid, made, x}, true);
    smelt_array_release(g);
    smelt_array_release(grid);
    smelt_array_release(x);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

/* ---- Composed. */

/* One coordinate of all points, (batches, rows, columns): in pixels, the pixel at or before it, the distance
 * from that, the derivative of pixels by the coordinate. */
struct line {
    smelt_array *pixel, *first, *beyond, *slope;
};

static struct line line_of(struct expression *e, const struct sample *s, smelt_array *grid, int coordinate) {
    struct line line = {0};
    smelt_apply_desc slice = {.operation = SMELT_OPERATION_SLICE, .inputs = {grid}};
    double size = (double)s->x.size[coordinate ? 1 : 2];
    for (int d = 0; d < 4; d++) {
        slice.starts[d] = d == 3 ? coordinate : 0;
        slice.stops[d] = d == 3 ? coordinate + 1 : s->grid.size[d];
        slice.steps[d] = 1;
    }
    smelt_shape shape = {3, {s->grid.size[0], s->grid.size[1], s->grid.size[2]}};
    smelt_array *c = expr_reshape(e, expr_apply(e, &slice), &shape);
    double slope = s->align ? 0.5 * (size - 1) : 0.5 * size;
    smelt_array *p = expr_with(e, SMELT_OPERATION_ADD, expr_with(e, SMELT_OPERATION_MULTIPLY, c, slope),
                               s->align ? slope : 0.5 * (size - 1));
    smelt_array *moves =
        expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_LOGICAL_AND,
                                          .inputs = {expr_with(e, SMELT_OPERATION_GREATER, p, 0),
                                                     expr_with(e, SMELT_OPERATION_LESS, p, size - 1)}});
    line.pixel =
        s->border
            ? expr_with(e, SMELT_OPERATION_MINIMUM, expr_with(e, SMELT_OPERATION_MAXIMUM, p, 0), size - 1)
            : expr_with(e, SMELT_OPERATION_MINIMUM, expr_with(e, SMELT_OPERATION_MAXIMUM, p, -2), size + 1);
    line.first = expr_unary(e, s->nearest ? SMELT_OPERATION_ROUND : SMELT_OPERATION_FLOOR, line.pixel);
    line.beyond = expr_binary(e, SMELT_OPERATION_SUBTRACT, line.pixel, line.first);
    smelt_array *by = expr_with(e, SMELT_OPERATION_ADD, expr_with(e, SMELT_OPERATION_MULTIPLY, c, 0), slope);
    line.slope = s->border ? expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                                                               .inputs = {moves, by, expr_number(e, 0)},
                                                               .weak = 4})
                           : by;
    return line;
}

/* A corner along one line: its place, whether it is inside, its weight. */
struct step {
    smelt_array *place, *inside, *weight;
};

static struct step step_of(struct expression *e, const struct sample *s, const struct line *line,
                           int64_t size, bool next) {
    struct step step;
    step.place = next ? expr_with(e, SMELT_OPERATION_ADD, line->first, 1) : line->first;
    step.inside = expr_binary(e, SMELT_OPERATION_LOGICAL_AND,
                              expr_with(e, SMELT_OPERATION_GREATER_EQUAL, step.place, 0),
                              expr_with(e, SMELT_OPERATION_LESS, step.place, (double)size));
    smelt_array *zero = expr_with(e, SMELT_OPERATION_MULTIPLY, line->first, 0);
    step.weight = s->nearest ? expr_with(e, SMELT_OPERATION_ADD, zero, 1)
                  : next     ? line->beyond
                             : expr_from(e, SMELT_OPERATION_SUBTRACT, 1, line->beyond);
    return step;
}

struct corner {
    smelt_array *indices[3];    /* of batches, rows, columns of x */
    smelt_array *across, *down; /* weights, 0 outside */
    smelt_array *weight;        /* their product; all (batches, rows, columns) */
    smelt_array *inside;
};

static smelt_array *index_of(struct expression *e, smelt_array *place, int64_t size) {
    smelt_array *kept = expr_with(e, SMELT_OPERATION_MINIMUM, expr_with(e, SMELT_OPERATION_MAXIMUM, place, 0),
                                  (double)(size - 1));
    return expr_astype(e, kept, SMELT_INT32);
}

static struct corner corner_of(struct expression *e, const struct sample *s, const struct line lines[2],
                               int which) {
    struct corner c;
    struct step x = step_of(e, s, &lines[0], s->x.size[2], which & 1),
                y = step_of(e, s, &lines[1], s->x.size[1], which >> 1);
    c.indices[0] =
        expr_reshape(e,
                     expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ARANGE,
                                                       .dtype = SMELT_INT32,
                                                       .device = x.place ? smelt_array_device(x.place) : NULL,
                                                       .numbers = {0, (double)s->x.size[0], 1}}),
                     &(smelt_shape){3, {s->x.size[0], 1, 1}});
    c.indices[1] = index_of(e, y.place, s->x.size[1]);
    c.indices[2] = index_of(e, x.place, s->x.size[2]);
    c.inside = expr_binary(e, SMELT_OPERATION_LOGICAL_AND, x.inside, y.inside);
    c.across = x.weight, c.down = y.weight;
    c.weight = expr_apply(
        e,
        &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                            .inputs = {c.inside, expr_binary(e, SMELT_OPERATION_MULTIPLY, c.across, c.down),
                                       expr_number(e, 0)},
                            .weak = 4});
    return c;
}

static smelt_array *pixels(struct expression *e, const struct corner *c, smelt_array *x) {
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_GATHER,
                                             .inputs = {x, c->indices[0], c->indices[1], c->indices[2]},
                                             .axes = {0, 1, 2},
                                             .axis_count = 3});
}

/* (batches, rows, columns) with one channel. */
static smelt_array *with_channel(struct expression *e, const struct sample *s, smelt_array *a) {
    return expr_reshape(e, a, &(smelt_shape){4, {s->grid.size[0], s->grid.size[1], s->grid.size[2], 1}});
}

static smelt_array *wide(struct expression *e, smelt_array *a) {
    return a->dtype == SMELT_FLOAT64 ? a : expr_astype(e, a, SMELT_FLOAT32);
}

static struct expression open(const struct call *call) {
    return (struct expression){.device = call->desc->device, .stream = call->desc->stream};
}

smelt_status compose_sample(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    struct sample s;
    smelt_array *sum = NULL, *x = call->inputs[0];
    TRY(read(call, &x->shape, &call->inputs[1]->shape, &s));
    smelt_dtype dtype = dtype_is_float(x->dtype) ? x->dtype : SMELT_FLOAT32;
    smelt_array *grid = wide(&e, call->inputs[1]);
    const struct line lines[2] = {line_of(&e, &s, grid, 0), line_of(&e, &s, grid, 1)};
    for (int k = 0; k < (s.nearest ? 1 : 4); k++) {
        struct corner c = corner_of(&e, &s, lines, k);
        smelt_array *part = expr_binary(&e, SMELT_OPERATION_MULTIPLY, pixels(&e, &c, wide(&e, x)),
                                        with_channel(&e, &s, c.weight));
        sum = sum ? expr_binary(&e, SMELT_OPERATION_ADD, sum, part) : part;
    }
    return expr_close(&e, expr_astype(&e, sum, dtype), result);
}

smelt_status compose_sample_by_x(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    struct sample s;
    smelt_array *sum = NULL, *g = call->inputs[0];
    TRY(read(call, &call->desc->shape, &call->inputs[1]->shape, &s));
    TRY(check_cotangent(call, &s, g));
    smelt_array *grid = wide(&e, call->inputs[1]);
    const struct line lines[2] = {line_of(&e, &s, grid, 0), line_of(&e, &s, grid, 1)};
    for (int k = 0; k < (s.nearest ? 1 : 4); k++) {
        struct corner c = corner_of(&e, &s, lines, k);
        smelt_array *part =
            expr_binary(&e, SMELT_OPERATION_MULTIPLY, wide(&e, g), with_channel(&e, &s, c.weight));
        part = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_SCATTER_SUM,
                                                  .inputs = {part, c.indices[0], c.indices[1], c.indices[2]},
                                                  .axes = {0, 1, 2},
                                                  .axis_count = 3,
                                                  .shape = s.x});
        sum = sum ? expr_binary(&e, SMELT_OPERATION_ADD, sum, part) : part;
    }
    return expr_close(&e, sum, result);
}

smelt_status compose_sample_by_grid(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    struct sample s;
    smelt_array *sums[2] = {0}, *g = call->inputs[0], *x = call->inputs[2];
    TRY(read(call, &x->shape, &call->inputs[1]->shape, &s));
    TRY(check_cotangent(call, &s, g));
    smelt_array *grid = wide(&e, call->inputs[1]);
    const struct line lines[2] = {line_of(&e, &s, grid, 0), line_of(&e, &s, grid, 1)};
    for (int k = 0; k < (s.nearest ? 1 : 4); k++) {
        struct corner c = corner_of(&e, &s, lines, k);
        smelt_array *along = expr_reduce(
            &e, SMELT_OPERATION_SUM,
            expr_binary(&e, SMELT_OPERATION_MULTIPLY, pixels(&e, &c, wide(&e, x)), wide(&e, g)), 8, false);
        along = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                                                   .inputs = {c.inside, along, expr_number(&e, 0)},
                                                   .weak = 4});
        if (s.nearest) along = expr_with(&e, SMELT_OPERATION_MULTIPLY, along, 0);
        for (int d = 0; d < 2; d++) {
            smelt_array *part = expr_binary(&e, SMELT_OPERATION_MULTIPLY, along, d ? c.across : c.down);
            if (!(d ? k >> 1 : k & 1)) part = expr_unary(&e, SMELT_OPERATION_NEGATIVE, part);
            sums[d] = sums[d] ? expr_binary(&e, SMELT_OPERATION_ADD, sums[d], part) : part;
        }
    }
    for (int d = 0; d < 2; d++) sums[d] = expr_binary(&e, SMELT_OPERATION_MULTIPLY, sums[d], lines[d].slope);
    return expr_close(&e,
                      expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_STACK,
                                                         .inputs = {sums[0], sums[1]},
                                                         .axes = {-1},
                                                         .axis_count = 1}),
                      result);
}
