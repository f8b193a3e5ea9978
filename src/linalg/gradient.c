/* Vector-Jacobian products of the factorisations and solves, from operations on arrays and solves of their
 * own. They are those of Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
 * differentiation" (2008), and of Walter and Lehmann, "Algorithmic differentiation of linear algebra
 * functions" (2010).
 */
#include "linalg/gradient.h"
#include "ops/expression.h"

#include <stdlib.h>

#define OP(upper) SMELT_OPERATION_##upper

/* ---- Expressions of matrices. NULL stands for an earlier failure. */

static smelt_array *transpose(struct expression *e, smelt_array *x) {
    int axes[SMELT_MAX_DIMENSIONS];
    if (!x) return NULL;
    int last = x->shape.ndim - 1;
    for (int i = 0; i <= last; i++) axes[i] = i;
    axes[last] = last - 1, axes[last - 1] = last;
    return expr_transpose(e, x, axes);
}

static smelt_array *multiply(struct expression *e, smelt_array *x, smelt_array *y) {
    return expr_binary(e, OP(MATMUL), x, y);
}

static smelt_array *triangle(struct expression *e, smelt_operation which, smelt_array *x, int diagonal) {
    return x ? expr_apply(e, &(smelt_apply_desc){.operation = which, .inputs = {x}, .offset = diagonal})
             : NULL;
}

static smelt_array *negative(struct expression *e, smelt_array *x) {
    return expr_unary(e, OP(NEGATIVE), x);
}

/* The result of a solve. */
static smelt_array *keep(struct expression *e, smelt_status status, smelt_array *const *made) {
    if (status == SMELT_OK) return expr_keep(e, *made);
    if (e->status == SMELT_OK) e->status = status;
    return NULL;
}

static smelt_array *solve_triangle(struct expression *e, smelt_array *t, smelt_array *b, bool upper,
                                   bool transposed, bool right, bool unit) {
    smelt_array *x = NULL;
    if (!t || !b || e->status != SMELT_OK) return NULL;
    smelt_linalg_desc desc = {.upper = upper,
                              .transpose = transposed,
                              .right = right,
                              .unit = unit,
                              .on_failure = SMELT_LINALG_IGNORE};
    return keep(e, smelt_triangular_solve(t, b, &desc, &x), &x);
}

/* A vector as a matrix of one column. */
static smelt_array *as_column(struct expression *e, smelt_array *x, bool vector) {
    if (!x || !vector) return x;
    return expr_reshape(e, x, &(smelt_shape){2, {x->shape.size[0], 1}});
}

/* A gradient in the shape and dtype of its input: summed over broadcast batches. */
static smelt_array *fit(struct expression *e, smelt_array *g, smelt_array *input) {
    if (!g) return NULL;
    if (input->shape.ndim == 1) g = expr_reshape(e, g, &input->shape);
    g = expr_sum_to(e, g, &input->shape);
    return g ? expr_astype(e, g, input->dtype) : NULL;
}

/* Ends an expression of two gradients. */
static smelt_status close_two(struct expression *e, smelt_array *first, smelt_array *second,
                              smelt_array **gradients) {
    smelt_array *kept = first && second && e->status == SMELT_OK ? smelt_array_retain(second) : NULL;
    smelt_status status = expr_close(e, first, &gradients[0]);
    if (status == SMELT_OK)
        gradients[1] = kept;
    else
        smelt_array_release(kept);
    return status;
}

/* ---- What a tape keeps of a call. */

struct flags {
    bool upper, transpose, right, unit;
};

static smelt_status record(const char *name, const smelt_linalg_desc *desc, smelt_array **inputs,
                           int input_count, smelt_array **outputs, int output_count,
                           smelt_status (*vjp)(void *, smelt_array *const *, smelt_array *const *,
                                               smelt_array *const *, smelt_array **)) {
    bool tracked = false;
    for (int i = 0; i < input_count; i++) tracked |= smelt_tape_tracks(NULL, inputs[i]);
    if (!tracked) return SMELT_OK;
    struct flags *flags = malloc(sizeof *flags);
    if (!flags) return fail_out_of_memory(sizeof *flags);
    *flags = (struct flags){desc->upper, desc->transpose, desc->right, desc->unit};
    return smelt_tape_record(&(smelt_record_desc){.name = name,
                                                  .inputs = inputs,
                                                  .input_count = input_count,
                                                  .outputs = outputs,
                                                  .output_count = output_count,
                                                  .vjp = vjp,
                                                  .release = free,
                                                  .context = flags});
}

/* ---- Cholesky: S = L⁻ᵀ Φ(Lᵀ g) L⁻¹, where Φ takes the lower triangle and halves the diagonal. The gradient
 * is its symmetric part, as if a were perturbed symmetrically. */

static smelt_status cholesky_vjp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                                 smelt_array *const *cotangents, smelt_array **gradients) {
    const struct flags *flags = context;
    struct expression e = {0};
    smelt_array *l = flags->upper ? transpose(&e, outputs[0]) : outputs[0];
    smelt_array *g = flags->upper ? transpose(&e, cotangents[0]) : cotangents[0];
    smelt_array *p = multiply(&e, transpose(&e, l), triangle(&e, OP(TRIL), g, 0));
    p = expr_with(&e, OP(MULTIPLY),
                  expr_binary(&e, OP(ADD), triangle(&e, OP(TRIL), p, 0), triangle(&e, OP(TRIL), p, -1)), 0.5);
    smelt_array *s = solve_triangle(&e, l, p, false, true, false, false);
    s = solve_triangle(&e, l, s, false, false, true, false);
    s = expr_with(&e, OP(MULTIPLY), expr_binary(&e, OP(ADD), s, transpose(&e, s)), 0.5);
    return expr_close(&e, fit(&e, s, inputs[0]), &gradients[0]);
}

smelt_status gradient_record_cholesky(const smelt_linalg_desc *desc, smelt_array *a, smelt_array *l) {
    return record("cholesky", desc, &a, 1, &l, 1, cholesky_vjp);
}

/* ---- QR: (gQ + Q copyltu(M)) R⁻ᵀ with M = R gRᵀ - gQᵀ Q; copyltu copies the lower triangle to the upper
 * one. */

static smelt_status derive_qr(smelt_array *a, smelt_array *q, smelt_array *r, smelt_array *g_q,
                              smelt_array *g_r, smelt_array **gradient) {
    struct expression e = {0};
    const smelt_shape *shape = &a->shape;
    if (shape->size[shape->ndim - 2] < shape->size[shape->ndim - 1] ||
        r->shape.size[r->shape.ndim - 2] != r->shape.size[r->shape.ndim - 1])
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "qr: a derivative by a of shape %s, expected at least as many rows as columns, and q not "
                    "complete",
                    shape_print(shape).text);
    smelt_array *m = multiply(&e, r, transpose(&e, triangle(&e, OP(TRIU), g_r, 0)));
    if (!q) q = solve_triangle(&e, r, a, true, false, true, false);
    if (g_q) m = expr_binary(&e, OP(SUBTRACT), m, multiply(&e, transpose(&e, g_q), q));
    smelt_array *copied =
        expr_binary(&e, OP(ADD), triangle(&e, OP(TRIL), m, 0), transpose(&e, triangle(&e, OP(TRIL), m, -1)));
    smelt_array *sum = multiply(&e, q, copied);
    if (g_q) sum = expr_binary(&e, OP(ADD), g_q, sum);
    return expr_close(&e, fit(&e, solve_triangle(&e, r, sum, true, true, true, false), a), gradient);
}

static smelt_status qr_vjp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                           smelt_array *const *cotangents, smelt_array **gradients) {
    (void)context;
    return derive_qr(inputs[0], outputs[0], outputs[1], cotangents[0], cotangents[1], &gradients[0]);
}

static smelt_status r_vjp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                          smelt_array *const *cotangents, smelt_array **gradients) {
    (void)context;
    return derive_qr(inputs[0], NULL, outputs[0], NULL, cotangents[0], &gradients[0]);
}

smelt_status gradient_record_qr(const smelt_linalg_desc *desc, smelt_array *a, smelt_array *q,
                                smelt_array *r) {
    smelt_array *outputs[2] = {q, r};
    return q ? record("qr", desc, &a, 1, outputs, 2, qr_vjp) : record("qr", desc, &a, 1, &r, 1, r_vjp);
}

/* ---- Solves: gb = a⁻ᵀ g, ga = -gb xᵀ. */

static smelt_status solve_vjp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                              smelt_array *const *cotangents, smelt_array **gradients) {
    (void)context;
    struct expression e = {0};
    bool vector = inputs[1]->shape.ndim == 1;
    smelt_array *g = as_column(&e, cotangents[0], vector), *x = as_column(&e, outputs[0], vector),
                *made = NULL;
    smelt_array *flipped = transpose(&e, inputs[0]);
    smelt_linalg_desc desc = {.on_failure = SMELT_LINALG_IGNORE};
    smelt_array *by_b = g && flipped ? keep(&e, smelt_solve(flipped, g, &desc, &made), &made) : NULL;
    smelt_array *by_a = negative(&e, multiply(&e, by_b, transpose(&e, x)));
    return close_two(&e, fit(&e, by_a, inputs[0]), fit(&e, by_b, inputs[1]), gradients);
}

smelt_status gradient_record_solve(const smelt_linalg_desc *desc, smelt_array *a, smelt_array *b,
                                   smelt_array *x) {
    return record("solve", desc, (smelt_array *[]){a, b}, 2, &x, 1, solve_vjp);
}

static smelt_status triangular_vjp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                                   smelt_array *const *cotangents, smelt_array **gradients) {
    const struct flags *flags = context;
    struct expression e = {0};
    bool vector = inputs[1]->shape.ndim == 1;
    smelt_array *g = as_column(&e, cotangents[0], vector), *x = as_column(&e, outputs[0], vector);
    smelt_array *by_b =
        solve_triangle(&e, inputs[0], g, flags->upper, !flags->transpose, flags->right, flags->unit);
    /* Of the matrix that stands in the equation: a, or aᵀ. */
    smelt_array *by_a =
        flags->right ? multiply(&e, transpose(&e, x), by_b) : multiply(&e, by_b, transpose(&e, x));
    if (flags->transpose) by_a = transpose(&e, by_a);
    int diagonal = !flags->unit ? 0 : flags->upper ? 1 : -1;
    by_a = triangle(&e, flags->upper ? OP(TRIU) : OP(TRIL), negative(&e, by_a), diagonal);
    return close_two(&e, fit(&e, by_a, inputs[0]), fit(&e, by_b, inputs[1]), gradients);
}

smelt_status gradient_record_triangular(const smelt_linalg_desc *desc, smelt_array *a, smelt_array *b,
                                        smelt_array *x) {
    return record("triangular_solve", desc, (smelt_array *[]){a, b}, 2, &x, 1, triangular_vjp);
}

/* ---- Least squares, of full rank. With m >= n and y = (aᵀ a)⁻¹ g: gb = a y, ga = (b - a x) yᵀ - gb xᵀ. With
 * m < n, h = (a aᵀ)⁻¹ a g and w = (a aᵀ)⁻¹ b: gb = h, ga = w (g - aᵀ h)ᵀ - h xᵀ. */

/* (rᵀ r)⁻¹ b */
static smelt_array *solve_square(struct expression *e, smelt_array *r, smelt_array *b) {
    return solve_triangle(e, r, solve_triangle(e, r, b, true, true, false, false), true, false, false, false);
}

static smelt_status lstsq_vjp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                              smelt_array *const *cotangents, smelt_array **gradients) {
    (void)context;
    struct expression e = {0};
    smelt_array *a = inputs[0], *made = NULL;
    bool vector = inputs[1]->shape.ndim == 1,
         tall = a->shape.size[a->shape.ndim - 2] >= a->shape.size[a->shape.ndim - 1];
    smelt_array *b = as_column(&e, inputs[1], vector), *x = as_column(&e, outputs[0], vector),
                *g = as_column(&e, cotangents[0], vector), *flipped = transpose(&e, a), *by_a, *by_b;
    smelt_linalg_desc desc = {.on_failure = SMELT_LINALG_IGNORE};
    smelt_array *long_one = tall ? a : flipped;
    smelt_array *r = long_one ? keep(&e, smelt_qr(long_one, &desc, NULL, &made), &made) : NULL;
    if (tall) {
        smelt_array *y = solve_square(&e, r, g);
        by_b = multiply(&e, a, y);
        by_a =
            expr_binary(&e, OP(SUBTRACT),
                        multiply(&e, expr_binary(&e, OP(SUBTRACT), b, multiply(&e, a, x)), transpose(&e, y)),
                        multiply(&e, by_b, transpose(&e, x)));
    } else {
        smelt_array *w = solve_square(&e, r, b);
        by_b = solve_square(&e, r, multiply(&e, a, g));
        by_a = expr_binary(
            &e, OP(SUBTRACT),
            multiply(&e, w, transpose(&e, expr_binary(&e, OP(SUBTRACT), g, multiply(&e, flipped, by_b)))),
            multiply(&e, by_b, transpose(&e, x)));
    }
    return close_two(&e, fit(&e, by_a, inputs[0]), fit(&e, by_b, inputs[1]), gradients);
}

smelt_status gradient_record_lstsq(const smelt_linalg_desc *desc, smelt_array *a, smelt_array *b,
                                   smelt_array *x) {
    return record("lstsq", desc, (smelt_array *[]){a, b}, 2, &x, 1, lstsq_vjp);
}
