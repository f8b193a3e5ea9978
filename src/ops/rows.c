/* Softmax, layer norm and RMS norm of rows, and their gradients: by the kernels of kernels/nn. */
#include "kernels/kernel_text.h"
#include "ops/program.h"
#include "ops/rows_long.h"

#include <string.h>

/* Shared with the kernels. */
struct row_size {
    uint32_t rows, columns;
};
struct norm_size {
    struct row_size size;
    float eps;
};

static smelt_status row_size_of(const struct call *call, const struct routine_rows *rows,
                                struct row_size *size) {
    if (rows->rows > UINT32_MAX - 32 || rows->columns > UINT32_MAX - 1024)
        return fail(SMELT_ERROR_LIMIT, "%s: %lld rows of %lld elements; expected fewer than 2^32 of each",
                    call->name, (long long)rows->rows, (long long)rows->columns);
    *size = (struct row_size){(uint32_t)rows->rows, (uint32_t)rows->columns};
    return SMELT_OK;
}

/* ---- Softmax. */

static bool is_logarithm(const struct call *call) {
    return call->desc->operation == SMELT_OPERATION_LOG_SOFTMAX ||
           call->desc->operation == SMELT_OPERATION_LOG_SOFTMAX_VJP;
}

/* Two stages: sums of the chunks, then the result. */
static smelt_status run_long_softmax(const struct call *call, const struct long_rows *cut,
                                     const struct routine *routine, smelt_array *x, smelt_array *more,
                                     smelt_array *out) {
    smelt_array *parts;
    TRY(rows_long_parts(call, cut, SMELT_FLOAT32, more ? 1 : 2, &parts));
    smelt_status status =
        more ? rows_long_run(call, cut, *routine, "smelt_softvjp_parts", (smelt_array *[]){x, more, parts}, 3)
             : rows_long_run(call, cut, *routine, "smelt_softmax_parts", (smelt_array *[]){x, parts}, 2);
    if (status == SMELT_OK)
        status = more ? rows_long_run(call, cut, *routine, "smelt_softvjp_long",
                                      (smelt_array *[]){x, more, out, parts}, 4)
                      : rows_long_run(call, cut, *routine, "smelt_softmax_long",
                                      (smelt_array *[]){x, out, parts}, 3);
    smelt_array_release(parts);
    return status;
}

static smelt_status run_softmax(const struct call *call, const struct routine_rows *rows, smelt_array *more,
                                smelt_array *out) {
    struct row_size size;
    struct long_rows cut;
    TRY(row_size_of(call, rows, &size));
    bool is_long = rows_long_cut(call, rows->rows, rows->columns, &cut);
    struct routine_team team = routine_team_of(call, rows->rows, rows->columns);
    const struct routine routine = {.entry = more ? "smelt_softmax_vjp" : "smelt_softmax",
                                    .texts = {kernel_text_team, kernel_text_softmax},
                                    .types = {{"T", out->dtype}},
                                    .sizes = {{"SIMDGROUPS", is_long ? cut.simdgroups : team.simdgroups},
                                              {"LOGARITHM", is_logarithm(call)}}};
    if (is_long) return run_long_softmax(call, &cut, &routine, rows->array, more, out);
    smelt_dispatch_desc dispatch = {
        .buffers = {{.array = rows->array}}, .groups = {team.groups}, .threadgroup = {team.threads}};
    int next = 1;
    if (more) dispatch.buffers[next++].array = more;
    dispatch.buffers[next++].array = out;
    dispatch.buffers[next] = (smelt_buffer){.bytes = &size, .size = sizeof size};
    return routine_run(call, &routine, &dispatch);
}

smelt_status evaluate_softmax(const struct call *call, smelt_array **result) {
    struct routine_rows rows;
    smelt_array *x = call->inputs[0], *made = NULL;
    uint32_t axes;
    TRY(call_axes(call, x->shape.ndim, &axes));
    TRY(routine_rows_open(call, x, axes, x->dtype, &rows));
    smelt_status status = call_output(call, x->dtype, &rows.shape, &made);
    if (status == SMELT_OK) status = run_softmax(call, &rows, NULL, made);
    return routine_rows_close(call, &rows, status, made, result);
}

/* y and the cotangent. */
smelt_status evaluate_softmax_vjp(const struct call *call, smelt_array **result) {
    struct routine_rows rows, other = {0};
    smelt_array *y = call->inputs[0], *g = call->inputs[1], *made = NULL;
    uint32_t axes;
    TRY(call_axes(call, y->shape.ndim, &axes));
    if (!shape_equal(&y->shape, &g->shape))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: the cotangent has shape %s; expected %s", call->name,
                    shape_print(&g->shape).text, shape_print(&y->shape).text);
    TRY(routine_rows_open(call, y, axes, y->dtype, &rows));
    smelt_status status = routine_rows_open(call, g, axes, y->dtype, &other);
    if (status == SMELT_OK) status = call_output(call, y->dtype, &rows.shape, &made);
    if (status == SMELT_OK) status = run_softmax(call, &rows, other.array, made);
    smelt_array_release(other.array);
    return routine_rows_close(call, &rows, status, made, result);
}

/* ---- Norms over the last dimension. */

/* Inputs of a norm and of its gradient: x, weight, bias; x, cotangent, weight. */
static smelt_status check_norm(const struct call *call, int vectors) {
    const smelt_shape *shape = &call->inputs[0]->shape;
    if (call->count > 3 || shape->ndim < 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: %d inputs are given and x has %d dimensions; expected at most 3 inputs, at least 1 "
                    "dimension",
                    call->name, call->count, shape->ndim);
    for (int i = vectors; i < call->count; i++) {
        const smelt_shape *given = &call->inputs[i]->shape;
        if (given->ndim != 1 || given->size[0] != shape->size[shape->ndim - 1])
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %s has shape %s; expected %lld, as x has shape %s",
                        call->name, i == 1 || vectors == 2 ? "weight" : "bias", shape_print(given).text,
                        (long long)shape->size[shape->ndim - 1], shape_print(shape).text);
    }
    return SMELT_OK;
}

static bool is_centred(const struct call *call) {
    return call->desc->operation == SMELT_OPERATION_LAYER_NORM ||
           call->desc->operation == SMELT_OPERATION_LAYER_NORM_VJP;
}

/* Rows of a team, of a forward norm: on a CPU several, if there are enough for all threads. */
static int rows_together(const struct call *call, const struct routine_rows *rows) {
    if (!program_is_host(call->device)) return 1;
    return rows->rows >= 1024 ? 8 : rows->rows >= 256 ? 2 : 1;
}

/* Stages: sums of the chunks, for a gradient also its own sums, then the result. arrays: x, weight, second
 * and out of run_norm. */
static smelt_status run_long_norm(const struct call *call, const struct long_rows *cut,
                                  const struct routine *routine, bool forward, smelt_array *const arrays[4]) {
    smelt_array *x = arrays[0], *weight = arrays[1], *second = arrays[2], *out = arrays[3], *parts,
                *more = NULL;
    TRY(rows_long_parts(call, cut, SMELT_FLOAT32, 2, &parts));
    smelt_status status =
        rows_long_run(call, cut, *routine, "smelt_norm_parts", (smelt_array *[]){x, parts}, 2);
    if (status == SMELT_OK && forward)
        status = rows_long_run(call, cut, *routine, "smelt_norm_long",
                               (smelt_array *[]){x, weight, second, out, parts}, 5);
    if (status == SMELT_OK && !forward) status = rows_long_parts(call, cut, SMELT_FLOAT32, 2, &more);
    if (status == SMELT_OK && !forward)
        status = rows_long_run(call, cut, *routine, "smelt_normvjp_parts",
                               (smelt_array *[]){x, weight, second, parts, more}, 5);
    if (status == SMELT_OK && !forward)
        status = rows_long_run(call, cut, *routine, "smelt_normvjp_long",
                               (smelt_array *[]){x, weight, second, out, parts, more}, 6);
    smelt_array_release(parts);
    smelt_array_release(more);
    return status;
}

/* x, weight, second (bias, or the cotangent), out; weight and bias may be NULL. */
static smelt_status run_norm(const struct call *call, const char *entry, const struct routine_rows *rows,
                             smelt_array *weight, smelt_array *second, smelt_array *out) {
    struct norm_size size = {.eps = (float)call->desc->numbers[0]};
    struct long_rows cut;
    TRY(row_size_of(call, rows, &size.size));
    bool forward = strcmp(entry, "smelt_norm") == 0;
    bool is_long = rows_long_cut(call, rows->rows, rows->columns, &cut);
    int together = forward ? rows_together(call, rows) : 1;
    struct routine_team team = routine_team_of(call, (rows->rows + together - 1) / together, rows->columns);
    const struct routine routine = {.entry = entry,
                                    .texts = {kernel_text_team, kernel_text_norm},
                                    .types = {{"T", out->dtype}},
                                    .sizes = {{"SIMDGROUPS", is_long ? cut.simdgroups : team.simdgroups},
                                              {"CENTRED", is_centred(call)},
                                              {"WEIGHT", weight != NULL},
                                              {"BIAS", second != NULL},
                                              {"ROWS", together}}};
    /* What the code does not use is bound to something. */
    smelt_array *const arrays[] = {rows->array, weight ? weight : rows->array, second ? second : rows->array,
                                   out};
    if (is_long) {
        cut.size.eps = size.eps;
        return run_long_norm(call, &cut, &routine, forward, arrays);
    }
    smelt_dispatch_desc dispatch = {.groups = {team.groups}, .threadgroup = {team.threads}};
    for (int i = 0; i < 4; i++) dispatch.buffers[i].array = arrays[i];
    dispatch.buffers[4] = (smelt_buffer){.bytes = &size, .size = sizeof size};
    return routine_run(call, &routine, &dispatch);
}

smelt_status evaluate_norm(const struct call *call, smelt_array **result) {
    struct routine_rows rows;
    smelt_array *x = call->inputs[0], *weight = NULL, *bias = NULL, *made = NULL;
    smelt_dtype dtype;
    TRY(check_norm(call, 1));
    TRY(call_dtype(call, 0, call->count, &dtype));
    TRY(routine_rows_open(call, x, UINT32_C(1) << (x->shape.ndim - 1), dtype, &rows));
    smelt_status status = call_output(call, dtype, &rows.shape, &made);
    if (status == SMELT_OK && call->count > 1) status = routine_input(call, call->inputs[1], dtype, &weight);
    if (status == SMELT_OK && call->count > 2) status = routine_input(call, call->inputs[2], dtype, &bias);
    if (status == SMELT_OK) status = run_norm(call, "smelt_norm", &rows, weight, bias, made);
    smelt_array_release(weight);
    smelt_array_release(bias);
    return routine_rows_close(call, &rows, status, made, result);
}

smelt_status evaluate_norm_vjp(const struct call *call, smelt_array **result) {
    struct routine_rows rows;
    smelt_array *x = call->inputs[0], *weight = NULL, *g = NULL, *made = NULL;
    TRY(check_norm(call, 2));
    if (call->count < 2 || !shape_equal(&x->shape, &call->inputs[1]->shape))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: expected a cotangent of x's shape %s", call->name,
                    shape_print(&x->shape).text);
    TRY(routine_rows_open(call, x, UINT32_C(1) << (x->shape.ndim - 1), x->dtype, &rows));
    smelt_status status = call_output(call, x->dtype, &rows.shape, &made);
    if (status == SMELT_OK) status = routine_input(call, call->inputs[1], x->dtype, &g);
    if (status == SMELT_OK && call->count > 2)
        status = routine_input(call, call->inputs[2], x->dtype, &weight);
    if (status == SMELT_OK) status = run_norm(call, "smelt_norm_vjp", &rows, weight, g, made);
    smelt_array_release(weight);
    smelt_array_release(g);
    return routine_rows_close(call, &rows, status, made, result);
}
