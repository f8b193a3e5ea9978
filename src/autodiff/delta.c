/* The gated delta rule: its call, its computation by chunks for float64 and graphs, and its gradient, which
 * goes through the chunks from the last to the first and differentiates each on a tape of its own. */
#include "ops/delta.h"
#include "array/dtype.h"
#include "array/symbolic.h"
#include "base/reserved.h"
#include "ops/expression.h"
#include "ops/program.h"
#include "smelt/autodiff.h"
#include "smelt/nn.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 256
#define MOST_CHUNK 128
#define USUAL_CHUNK 64

static const char *const names[DELTA_ARRAYS] = {"q", "k", "v", "g", "beta", "initial"};

/* ---- The call. */

static smelt_status check_array(const struct delta *d, enum delta_array which, const smelt_shape *shape) {
    const smelt_array *array = d->arrays[which];
    bool fits = which > DELTA_V ? dtype_is_float(array->dtype) : array->dtype == d->dtype;
    if (!fits)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "gated delta: %s has dtype %s; expected %s", names[which],
                    smelt_dtype_name(array->dtype),
                    which > DELTA_V ? "a float dtype" : smelt_dtype_name(d->dtype));
    if (!shape_equal(&array->shape, shape))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "gated delta: %s has shape %s; expected %s", names[which],
                    shape_print(&array->shape).text, shape_print(shape).text);
    return SMELT_OK;
}

static smelt_status check_shapes(struct delta *d) {
    const smelt_shape *q = &d->arrays[DELTA_Q]->shape, *v = &d->arrays[DELTA_V]->shape;
    if (q->ndim != 4 || v->ndim != 4)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "gated delta: q has shape %s and v %s; expected (batches, length, heads, elements)",
                    shape_print(q).text, shape_print(v).text);
    d->batches = q->size[0], d->length = q->size[1], d->heads = q->size[2], d->depth = q->size[3];
    d->values = v->size[3];
    d->dtype = d->arrays[DELTA_Q]->dtype;
    if (!dtype_is_float(d->dtype))
        return fail(SMELT_ERROR_UNSUPPORTED, "gated delta: q has dtype %s; expected a float dtype",
                    smelt_dtype_name(d->dtype));
    if (d->depth < 1 || d->depth > MOST_DEPTH || d->length > INT_MAX || d->values > INT_MAX)
        return fail(SMELT_ERROR_LIMIT, "gated delta: q has shape %s; expected a depth of 1 to %d",
                    shape_print(q).text, MOST_DEPTH);
    smelt_shape keys = *q, values = *q, gates = {3, {d->batches, d->length, d->heads}};
    smelt_shape state = {4, {d->batches, d->heads, d->depth, d->values}};
    values.size[3] = d->values;
    TRY(check_array(d, DELTA_K, &keys));
    TRY(check_array(d, DELTA_V, &values));
    TRY(check_array(d, DELTA_G, &gates));
    TRY(check_array(d, DELTA_BETA, &gates));
    return d->arrays[DELTA_INITIAL] ? check_array(d, DELTA_INITIAL, &state) : SMELT_OK;
}

static smelt_status read(const smelt_gated_delta_desc *desc, struct delta *d) {
    TRY(reserved_check(smelt_gated_delta_desc, desc));
    smelt_array *const given[DELTA_ARRAYS] = {desc->q, desc->k, desc->v, desc->g, desc->beta, desc->initial};
    memcpy(d->arrays, given, sizeof given);
    for (int i = 0; i < DELTA_INITIAL; i++)
        if (!given[i]) return fail(SMELT_ERROR_INVALID_ARGUMENT, "gated delta: %s is NULL", names[i]);
    TRY(check_shapes(d));
    d->chunk = desc->chunk ? desc->chunk : USUAL_CHUNK;
    if (d->chunk < 1 || d->chunk > MOST_CHUNK)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "gated delta: chunk is %d; expected 1 to %d", desc->chunk,
                    MOST_CHUNK);
    d->chunks = (d->length + d->chunk - 1) / d->chunk;
    d->scale = desc->scale != 0 ? desc->scale : 1 / sqrt((double)d->depth);
    d->apply.stream = desc->stream;
    d->call = (struct call){.desc = &d->apply, .name = "gated delta"};
    bool symbolic = false;
    for (int i = 0; i < DELTA_INITIAL; i++) symbolic |= array_is_symbolic(d->arrays[i]);
    d->call.device =
        symbolic ? ARRAY_SYMBOLIC_DEVICE : program_device(desc->device, d->arrays, DELTA_INITIAL);
    return SMELT_OK;
}

/* ---- One chunk: arrays of (batches, heads, tokens …), all of one wide dtype. */

static smelt_array *times(struct expression *e, smelt_array *x, smelt_array *y) {
    return expr_binary(e, SMELT_OPERATION_MULTIPLY, x, y);
}

static smelt_array *product(struct expression *e, smelt_array *x, smelt_array *y) {
    return expr_binary(e, SMELT_OPERATION_MATMUL, x, y);
}

static smelt_array *flipped(struct expression *e, smelt_array *x) {
    return expr_transpose(e, x, (int[]){0, 1, 3, 2});
}

static smelt_array *lower(struct expression *e, smelt_array *x, int64_t diagonal) {
    return expr_apply(
        e, &(smelt_apply_desc){.operation = SMELT_OPERATION_TRIL, .inputs = {x}, .offset = diagonal});
}

/* A dimension of size 1 in front of the last, or behind it. */
static smelt_array *as_row(struct expression *e, smelt_array *x, bool column) {
    if (!x) return NULL;
    smelt_shape shape = {
        4,
        {x->shape.size[0], x->shape.size[1], column ? x->shape.size[2] : 1, column ? 1 : x->shape.size[2]}};
    return expr_reshape(e, x, &shape);
}

/* Elements first … of a dimension. */
static smelt_array *part(struct expression *e, smelt_array *x, int dimension, int64_t first, int64_t count) {
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_SLICE, .inputs = {x}};
    if (!x) return NULL;
    for (int d = 0; d < x->shape.ndim; d++) desc.stops[d] = x->shape.size[d], desc.steps[d] = 1;
    desc.starts[dimension] = first;
    desc.stops[dimension] = first + count;
    return expr_apply(e, &desc);
}

/* x: q, k, v, g, beta and the state before the chunk. With decay[i][j] = exp(g[j + 1] + … + g[i]) below the
 * diagonal, the changes u of the state satisfy (I + beta k kᵀ decay) u = beta (v - exp(g) Sᵀ k): one lower
 * triangular system. */
static void compute_chunk(struct expression *e, smelt_array *const x[DELTA_ARRAYS], double scale,
                          smelt_array **out, smelt_array **state) {
    smelt_array *q = x[DELTA_Q], *k = x[DELTA_K], *beta = as_row(e, x[DELTA_BETA], true),
                *s = x[DELTA_INITIAL];
    *out = *state = NULL;
    smelt_array *gates = expr_cumulate(e, SMELT_OPERATION_CUMSUM, x[DELTA_G], 2, false, false);
    if (!gates || !beta) return;
    int64_t tokens = gates->shape.size[2];
    smelt_array *column = as_row(e, gates, true), *last = as_row(e, part(e, gates, 2, tokens - 1, 1), true);
    smelt_array *decay =
        lower(e, expr_binary(e, SMELT_OPERATION_SUBTRACT, column, as_row(e, gates, false)), 0);
    decay = lower(e, expr_unary(e, SMELT_OPERATION_EXP, decay), 0);
    smelt_array *grown = expr_unary(e, SMELT_OPERATION_EXP, column);
    smelt_array *system = times(e, beta, times(e, product(e, k, flipped(e, k)), decay));
    if (!system) return;
    smelt_shape square = system->shape;
    smelt_shape squares = {4, {square.size[0] * square.size[1], tokens, 1, tokens}};
    smelt_array *inverse = expr_reshape(
        e, expr_unary(e, SMELT_OPERATION_CHUNK_INVERSE, expr_reshape(e, system, &squares)), &square);
    smelt_array *wanted =
        expr_binary(e, SMELT_OPERATION_SUBTRACT, x[DELTA_V], product(e, times(e, grown, k), s));
    smelt_array *change = product(e, inverse, times(e, beta, wanted));
    smelt_array *within = product(e, times(e, product(e, q, flipped(e, k)), decay), change);
    *out = expr_with(e, SMELT_OPERATION_MULTIPLY,
                     expr_binary(e, SMELT_OPERATION_ADD, product(e, times(e, grown, q), s), within), scale);
    smelt_array *rest =
        expr_unary(e, SMELT_OPERATION_EXP, expr_binary(e, SMELT_OPERATION_SUBTRACT, last, column));
    *state = expr_binary(e, SMELT_OPERATION_ADD, times(e, expr_unary(e, SMELT_OPERATION_EXP, last), s),
                         product(e, flipped(e, times(e, rest, k)), change));
}

/* The call's arrays as (batches, heads, tokens …) of the wide dtype; the initial state as it is, or NULL. */
static void widen(struct expression *e, smelt_array *const given[DELTA_ARRAYS], smelt_dtype wide,
                  smelt_array *x[DELTA_ARRAYS]) {
    for (int i = 0; i < DELTA_ARRAYS; i++) {
        x[i] = given[i] ? expr_astype(e, given[i], wide) : NULL;
        if (i == DELTA_INITIAL) continue;
        x[i] = expr_transpose(e, x[i], i > DELTA_V ? (int[]){0, 2, 1} : (int[]){0, 2, 1, 3});
    }
}

/* Along a dimension, in trees: an operation has few inputs. */
static smelt_array *join(struct expression *e, smelt_array **parts, int64_t count, int axis) {
    enum { MOST = 16 };
    while (count > 1) {
        int64_t joined = 0;
        for (int64_t first = 0; first < count; first += MOST) {
            smelt_apply_desc desc = {
                .operation = SMELT_OPERATION_CONCATENATE, .axes = {axis}, .axis_count = 1};
            int64_t these = count - first < MOST ? count - first : MOST;
            memcpy(desc.inputs, parts + first, (size_t)these * sizeof *parts);
            parts[joined++] = these == 1 ? parts[first] : expr_apply(e, &desc);
        }
        count = joined;
    }
    return parts[0];
}

/* ---- By chunks, forward: for float64 and values of graphs. */

static smelt_array *zeros(struct expression *e, const struct delta *d, const smelt_shape *shape,
                          smelt_dtype dtype) {
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ZEROS,
                                             .dtype = dtype,
                                             .shape = *shape,
                                             .device = d->call.device});
}

static smelt_status run_chunks(const struct delta *d, smelt_array **out, smelt_array **states) {
    struct expression e = {.stream = d->apply.stream};
    smelt_array *x[DELTA_ARRAYS], **outs = calloc(2 * (size_t)d->chunks + 1, sizeof *outs);
    smelt_shape state = {4, {d->batches, d->heads, d->depth, d->values}},
                one = {5, {d->batches, 1, d->heads, d->depth, d->values}};
    if (!outs) return fail_out_of_memory(2 * (size_t)d->chunks * sizeof *outs);
    smelt_array **kept = outs + d->chunks;
    smelt_dtype wide = d->dtype == SMELT_FLOAT64 ? SMELT_FLOAT64 : SMELT_FLOAT32;
    widen(&e, d->arrays, wide, x);
    if (!x[DELTA_INITIAL]) x[DELTA_INITIAL] = zeros(&e, d, &state, wide);
    for (int64_t c = 0; c < d->chunks; c++) {
        smelt_array *here[DELTA_ARRAYS];
        int64_t first = c * d->chunk, count = d->length - first < d->chunk ? d->length - first : d->chunk;
        for (int i = 0; i < DELTA_INITIAL; i++) here[i] = part(&e, x[i], 2, first, count);
        here[DELTA_INITIAL] = x[DELTA_INITIAL];
        kept[c] = expr_reshape(&e, x[DELTA_INITIAL], &one);
        compute_chunk(&e, here, d->scale, &outs[c], &x[DELTA_INITIAL]);
    }
    kept[d->chunks] = expr_reshape(&e, x[DELTA_INITIAL], &one);
    smelt_array *joined =
        d->chunks ? expr_transpose(&e, join(&e, outs, d->chunks, 2), (int[]){0, 2, 1, 3})
                  : zeros(&e, d, &(smelt_shape){4, {d->batches, 0, d->heads, d->values}}, d->dtype);
    joined = expr_astype(&e, expr_unary(&e, SMELT_OPERATION_CONTIGUOUS, joined), d->dtype);
    smelt_array *all = join(&e, kept, d->chunks + 1, 1), *first_result = NULL;
    free(outs);
    if (e.status == SMELT_OK && joined && all) first_result = smelt_array_retain(joined);
    smelt_status status = expr_close(&e, all, states);
    if (status == SMELT_OK)
        *out = first_result;
    else
        smelt_array_release(first_result);
    return status;
}

/* ---- Gradients. */

struct delta_context {
    double scale;
    int64_t chunk;
};

/* The gradients of a chunk's results by its inputs, for their cotangents: arrays of `e`. */
static void differentiate_chunk(struct expression *e, smelt_array *const x[DELTA_ARRAYS], double scale,
                                smelt_array *const cotangents[2], smelt_array *gradients[DELTA_ARRAYS]) {
    struct expression inner = {0};
    smelt_array *results[2] = {0}, *made[DELTA_ARRAYS] = {0};
    smelt_tape *tape = NULL;
    memset(gradients, 0, DELTA_ARRAYS * sizeof *gradients);
    if (e->status == SMELT_OK) e->status = smelt_tape_begin(&tape);
    for (int i = 0; i < DELTA_ARRAYS && e->status == SMELT_OK; i++) e->status = smelt_tape_watch(tape, x[i]);
    if (e->status == SMELT_OK) {
        compute_chunk(&inner, x, scale, &results[0], &results[1]);
        e->status = inner.status;
    }
    if (tape && e->status == SMELT_OK) e->status = smelt_tape_end(tape);
    if (e->status == SMELT_OK)
        e->status = smelt_tape_vjp(tape, results, 2, cotangents, x, DELTA_ARRAYS, made);
    bool found = e->status == SMELT_OK;
    for (int i = 0; i < DELTA_ARRAYS && found; i++) gradients[i] = expr_keep(e, made[i]);
    smelt_tape_release(tape);
    smelt_array *none;
    if (inner.status == SMELT_OK) inner.status = SMELT_ERROR_INTERNAL; /* only its arrays are given back */
    (void)expr_close(&inner, NULL, &none);
}

/* Handles of their own, which the chunk's tape watches. */
static smelt_array *own(struct expression *e, smelt_array *x) {
    return expr_unary(e, SMELT_OPERATION_IDENTITY, x);
}

static smelt_array *state_of(struct expression *e, smelt_array *states, int64_t chunk) {
    if (!states) return NULL;
    const smelt_shape *s = &states->shape;
    smelt_shape shape = {4, {s->size[0], s->size[2], s->size[3], s->size[4]}};
    return expr_reshape(e, part(e, states, 1, chunk, 1), &shape);
}

static void go_back(struct expression *e, const struct delta_context *context, smelt_array *const *inputs,
                    bool initial, smelt_array *const outputs[2], smelt_array *const cotangents[2],
                    smelt_array **parts, smelt_array *results[DELTA_ARRAYS]) {
    smelt_array *given[DELTA_ARRAYS] = {0}, *x[DELTA_ARRAYS], *gradients[DELTA_ARRAYS];
    memcpy(given, inputs, DELTA_INITIAL * sizeof *given);
    int64_t length = inputs[0]->shape.size[1], chunks = outputs[1]->shape.size[1] - 1;
    smelt_dtype wide = outputs[1]->dtype;
    widen(e, given, wide, x);
    smelt_array *g = expr_transpose(e, expr_astype(e, cotangents[0], wide), (int[]){0, 2, 1, 3});
    smelt_array *by_state = state_of(e, cotangents[1], chunks);
    for (int64_t c = chunks - 1; c >= 0 && e->status == SMELT_OK; c--) {
        smelt_array *here[DELTA_ARRAYS];
        int64_t first = c * context->chunk,
                count = length - first < context->chunk ? length - first : context->chunk;
        for (int i = 0; i < DELTA_INITIAL; i++) here[i] = own(e, part(e, x[i], 2, first, count));
        here[DELTA_INITIAL] = own(e, state_of(e, outputs[1], c));
        smelt_array *const both[2] = {part(e, g, 2, first, count), by_state};
        differentiate_chunk(e, here, context->scale, both, gradients);
        for (int i = 0; i < DELTA_INITIAL; i++) parts[i * chunks + c] = gradients[i];
        by_state =
            expr_binary(e, SMELT_OPERATION_ADD, gradients[DELTA_INITIAL], state_of(e, cotangents[1], c));
    }
    for (int i = 0; i < DELTA_INITIAL; i++) {
        smelt_array *all = e->status == SMELT_OK && chunks ? join(e, parts + i * chunks, chunks, 2) : NULL;
        results[i] = expr_transpose(e, all, i > DELTA_V ? (int[]){0, 2, 1} : (int[]){0, 2, 1, 3});
    }
    results[DELTA_INITIAL] = initial ? by_state : NULL;
}

static smelt_status vjp(void *opaque, smelt_array *const *inputs, smelt_array *const *outputs,
                        smelt_array *const *cotangents, smelt_array **gradients) {
    const struct delta_context *context = opaque;
    struct expression e = {0};
    int64_t chunks = outputs[1]->shape.size[1] - 1;
    bool initial = context->chunk < 0;
    struct delta_context plain = {context->scale, initial ? -context->chunk : context->chunk};
    smelt_array *results[DELTA_ARRAYS] = {0},
                **parts = calloc((size_t)(DELTA_INITIAL * chunks) + 1, sizeof(smelt_array *));
    if (!parts) return fail_out_of_memory((size_t)(DELTA_INITIAL * chunks) * sizeof *parts);
    go_back(&e, &plain, inputs, initial, outputs, cotangents, parts, results);
    free(parts);
    int count = initial ? DELTA_ARRAYS : DELTA_INITIAL;
    for (int i = 0; i < count && e.status == SMELT_OK && chunks; i++)
        gradients[i] = smelt_array_retain(results[i]);
    smelt_status status = e.status;
    smelt_array *none;
    if (e.status == SMELT_OK) e.status = SMELT_ERROR_INTERNAL; /* only its arrays are given back */
    (void)expr_close(&e, NULL, &none);
    return status;
}

/* ---- The operation. */

static smelt_status record(const struct delta *d, smelt_array *out, smelt_array *states) {
    struct delta_context *context = malloc(sizeof *context);
    bool initial = d->arrays[DELTA_INITIAL] != NULL;
    smelt_array *inputs[DELTA_ARRAYS], *outputs[] = {out, states};
    if (!context) return fail_out_of_memory(sizeof *context);
    /* A negative chunk: there is an initial state. */
    *context = (struct delta_context){d->scale, initial ? -d->chunk : d->chunk};
    memcpy(inputs, d->arrays, sizeof inputs);
    /* cppcheck-suppress memleak ; the record owns the context */
    return smelt_tape_record(&(smelt_record_desc){.name = "gated_delta",
                                                  .inputs = inputs,
                                                  .input_count = initial ? DELTA_ARRAYS : DELTA_INITIAL,
                                                  .outputs = outputs,
                                                  .output_count = 2,
                                                  .vjp = vjp,
                                                  .release = free,
                                                  .context = context});
}

smelt_status smelt_gated_delta(const smelt_gated_delta_desc *desc, smelt_array **out, smelt_array **states) {
    struct delta d = {0};
    smelt_array *made = NULL, *kept = NULL;
    if (!desc || !out || !states)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "gated delta: %s is NULL",
                    !desc ? "desc"
                    : out ? "states"
                          : "out");
    TRY(read(desc, &d));
    smelt_tape_pause();
    bool by_chunks = d.dtype == SMELT_FLOAT64 || program_is_symbolic(d.call.device);
    smelt_status status = (by_chunks ? run_chunks : delta_run)(&d, &made, &kept);
    smelt_tape_resume();
    if (status == SMELT_OK) status = record(&d, made, kept);
    if (status == SMELT_OK) {
        *out = made;
        *states = kept;
        return SMELT_OK;
    }
    smelt_array_release(made);
    smelt_array_release(kept);
    return status;
}
