/* Derivatives of factorisations and solves against finite differences in float64, and float32 against
 * float64. */
#include "graph.h"

#include "smelt/linalg.h"

/* A function of one or two arrays: the sum of its results times fixed weights. */
struct problem {
    const char *name;
    /* Computes up to two results. */
    smelt_status (*run)(const struct problem *problem, smelt_array *const *inputs, smelt_array **outputs);
    int inputs, outputs;
    smelt_shape shapes[2];
    smelt_linalg_desc desc;
    bool definite;   /* input 0 is a symmetric positive definite matrix, and is perturbed symmetrically */
    bool triangular; /* input 0 gets a strong diagonal */
};

static smelt_status run_cholesky(const struct problem *p, smelt_array *const *in, smelt_array **out) {
    return smelt_cholesky(in[0], &p->desc, &out[0]);
}
static smelt_status run_qr(const struct problem *p, smelt_array *const *in, smelt_array **out) {
    return smelt_qr(in[0], &p->desc, &out[0], &out[1]);
}
static smelt_status run_r(const struct problem *p, smelt_array *const *in, smelt_array **out) {
    return smelt_qr(in[0], &p->desc, NULL, &out[0]);
}
static smelt_status run_solve(const struct problem *p, smelt_array *const *in, smelt_array **out) {
    return smelt_solve(in[0], in[1], &p->desc, &out[0]);
}
static smelt_status run_triangular(const struct problem *p, smelt_array *const *in, smelt_array **out) {
    return smelt_triangular_solve(in[0], in[1], &p->desc, &out[0]);
}
static smelt_status run_lstsq(const struct problem *p, smelt_array *const *in, smelt_array **out) {
    return smelt_lstsq(in[0], in[1], &p->desc, &out[0]);
}

#define MATRIX(m, n) \
    {                \
        2, {         \
            m, n     \
        }            \
    }
#define MATRICES(b, m, n) \
    {                     \
        3, {              \
            b, m, n       \
        }                 \
    }

static const struct problem problems[] = {
    {"cholesky", run_cholesky, 1, 1, {MATRICES(2, 6, 6)}, {0}, true, false},
    {"upper cholesky", run_cholesky, 1, 1, {MATRIX(5, 5)}, {.upper = true}, true, false},
    {"qr", run_qr, 1, 2, {MATRICES(2, 7, 4)}, {0}, false, false},
    {"square qr", run_qr, 1, 2, {MATRIX(5, 5)}, {0}, false, false},
    {"r", run_r, 1, 1, {MATRIX(6, 3)}, {0}, false, false},
    {"solve", run_solve, 2, 1, {MATRICES(2, 5, 5), MATRICES(2, 5, 3)}, {0}, false, true},
    {"solve of a vector", run_solve, 2, 1, {MATRIX(6, 6), {1, {6}}}, {0}, false, true},
    {"solve, b broadcast", run_solve, 2, 1, {MATRICES(3, 4, 4), MATRIX(4, 2)}, {0}, false, true},
    {"solve, a broadcast", run_solve, 2, 1, {MATRIX(4, 4), MATRICES(3, 4, 2)}, {0}, false, true},
    {"triangular solve", run_triangular, 2, 1, {MATRIX(5, 5), MATRIX(5, 3)}, {0}, false, true},
    {"triangular solve, upper, transposed",
     run_triangular,
     2,
     1,
     {MATRIX(5, 5), MATRIX(5, 3)},
     {.upper = true, .transpose = true},
     false,
     true},
    {"triangular solve, right, unit",
     run_triangular,
     2,
     1,
     {MATRIX(5, 5), MATRIX(3, 5)},
     {.right = true, .unit = true},
     false,
     true},
    {"triangular solve, right, upper, transposed",
     run_triangular,
     2,
     1,
     {MATRICES(2, 4, 4), MATRICES(2, 3, 4)},
     {.right = true, .upper = true, .transpose = true},
     false,
     true},
    {"triangular solve of a vector",
     run_triangular,
     2,
     1,
     {MATRIX(5, 5), {1, {5}}},
     {.upper = true},
     false,
     true},
    {"lstsq", run_lstsq, 2, 1, {MATRICES(2, 7, 3), MATRICES(2, 7, 2)}, {0}, false, false},
    {"wide lstsq", run_lstsq, 2, 1, {MATRIX(3, 6), MATRIX(3, 2)}, {0}, false, false},
    {"lstsq of a vector", run_lstsq, 2, 1, {MATRIX(6, 4), {1, {6}}}, {0}, false, false},
};
#define PROBLEMS ((int)(sizeof problems / sizeof *problems))

static double *elements(smelt_array *array) {
    return (double *)array->data;
}

static void create_inputs(const struct problem *p, smelt_array **inputs) {
    for (int i = 0; i < p->inputs; i++) {
        inputs[i] = random_array(SMELT_FLOAT64, p->shapes[i], CONTIGUOUS, -1, 1);
        int64_t n = p->shapes[i].size[p->shapes[i].ndim - 1], square = n * n;
        if (i || !(p->definite || p->triangular)) continue;
        double *a = elements(inputs[i]);
        for (int64_t e = 0; e < inputs[i]->size; e++) {
            int64_t row = e % square / n, column = e % n;
            if (p->definite && column < row) a[e] = a[e - row * n - column + column * n + row];
            if (row == column) a[e] += 2 + (double)n / 2;
        }
    }
}

static void create_weights(const struct problem *p, smelt_array *const *inputs, smelt_array **weights) {
    smelt_array *out[2];
    OK(p->run(p, inputs, out));
    for (int o = 0; o < p->outputs; o++) {
        weights[o] = random_array(SMELT_FLOAT64, out[o]->shape, CONTIGUOUS, -1, 1);
        smelt_array_release(out[o]);
    }
}

static double value_of(const struct problem *p, smelt_array *const *inputs, smelt_array *const *weights) {
    smelt_array *out[2];
    double sum = 0;
    OK(p->run(p, inputs, out));
    for (int o = 0; o < p->outputs; o++) {
        for (int64_t i = 0; i < out[o]->size; i++) sum += elements(out[o])[i] * elements(weights[o])[i];
        smelt_array_release(out[o]);
    }
    return sum;
}

static void derive(const struct problem *p, smelt_array *const *inputs, smelt_array *const *weights,
                   smelt_array **gradients) {
    smelt_tape *tape;
    smelt_array *out[2];
    OK(smelt_tape_begin(&tape));
    for (int i = 0; i < p->inputs; i++) OK(smelt_tape_watch(tape, inputs[i]));
    OK(p->run(p, inputs, out));
    OK(smelt_tape_end(tape));
    OK(smelt_tape_vjp(tape, out, p->outputs, weights, inputs, p->inputs, gradients));
    smelt_tape_release(tape);
    for (int o = 0; o < p->outputs; o++) smelt_array_release(out[o]);
}

static void gradients_are_those_of_differences(void **state) {
    (void)state;
    for (int n = 0; n < PROBLEMS; n++) {
        const struct problem *p = &problems[n];
        smelt_array *inputs[2], *weights[2], *gradients[2];
        create_inputs(p, inputs);
        create_weights(p, inputs, weights);
        derive(p, inputs, weights, gradients);
        for (int i = 0; i < p->inputs; i++) {
            int64_t side = p->shapes[i].size[p->shapes[i].ndim - 1];
            assert_shape(gradients[i], p->shapes[i]);
            for (int64_t e = 0; e < inputs[i]->size; e++) {
                double *at = elements(inputs[i]) + e, was = *at, step = 1e-6, values[2],
                       got = elements(gradients[i])[e];
                int64_t row = e % (side * side) / side, column = e % side;
                double *twin =
                    p->definite && row != column ? at + (column - row) * side + row - column : NULL;
                for (int s = 0; s < 2; s++) {
                    *at = was + (s ? step : -step);
                    if (twin) *twin = *at;
                    values[s] = value_of(p, inputs, weights);
                }
                *at = was;
                if (twin)
                    *twin = was, got += elements(gradients[i])[e + (column - row) * side + row - column];
                double want = (values[1] - values[0]) / (2 * step);
                if (!close_to(got, want, 1e-6, 1e-7))
                    FAIL_TEST("%s: element %lld of gradient %d is %.9g, expected %.9g", p->name, (long long)e,
                              i, got, want);
            }
        }
        /* In float32, on the test's device. */
        smelt_array *single[2], *cotangents[2], *others[2];
        struct problem own = *p;
        own.desc.device = test_device();
        for (int i = 0; i < p->inputs; i++) OK(smelt_array_convert(inputs[i], SMELT_FLOAT32, &single[i]));
        for (int o = 0; o < p->outputs; o++)
            OK(smelt_array_convert(weights[o], SMELT_FLOAT32, &cotangents[o]));
        derive(&own, single, cotangents, others);
        for (int i = 0; i < p->inputs; i++) {
            OK(test_to_host(&others[i]));
            assert_int_equal(others[i]->dtype, SMELT_FLOAT32);
            double *got = numbers_of(others[i]), part = 0, whole = 0;
            for (int64_t e = 0; e < others[i]->size; e++) {
                part += (got[e] - elements(gradients[i])[e]) * (got[e] - elements(gradients[i])[e]);
                whole += elements(gradients[i])[e] * elements(gradients[i])[e];
            }
            if (!(part <= 1e-8 * whole))
                FAIL_TEST("%s: gradient %d in float32 is off by %g", p->name, i, sqrt(part / whole));
            free(got);
            smelt_array_release(others[i]), smelt_array_release(single[i]);
            smelt_array_release(gradients[i]), smelt_array_release(inputs[i]);
        }
        for (int o = 0; o < p->outputs; o++)
            smelt_array_release(cotangents[o]), smelt_array_release(weights[o]);
    }
}

/* The derivative of a derivative: of the sum of the gradient of a solve, by differences of that gradient. */
static void gradients_have_gradients(void **state) {
    (void)state;
    const struct problem *p = &problems[5];
    smelt_array *inputs[2], *weights[1], *out, *first[2], *second[1];
    smelt_tape *outer, *inner;
    create_inputs(p, inputs);
    create_weights(p, inputs, weights);
    OK(smelt_tape_begin(&outer));
    OK(smelt_tape_watch(outer, inputs[0]));
    OK(smelt_tape_begin(&inner));
    OK(smelt_tape_watch(inner, inputs[0]));
    OK(smelt_solve(inputs[0], inputs[1], NULL, &out));
    OK(smelt_tape_end(inner));
    OK(smelt_tape_vjp(inner, &out, 1, weights, inputs, 1, first));
    OK(smelt_tape_end(outer));
    OK(smelt_tape_vjp(outer, first, 1, NULL, inputs, 1, second));
    smelt_tape_release(inner);
    smelt_tape_release(outer);
    for (int64_t e = 0; e < inputs[0]->size; e++) {
        double sums[2] = {0}, step = 1e-5, was = elements(inputs[0])[e];
        for (int s = 0; s < 2; s++) {
            smelt_array *gradients[2];
            elements(inputs[0])[e] = was + (s ? step : -step);
            derive(p, inputs, weights, gradients);
            for (int64_t i = 0; i < gradients[0]->size; i++) sums[s] += elements(gradients[0])[i];
            smelt_array_release(gradients[0]), smelt_array_release(gradients[1]);
        }
        elements(inputs[0])[e] = was;
        double want = (sums[1] - sums[0]) / (2 * step), got = elements(second[0])[e];
        if (!close_to(got, want, 1e-5, 1e-7))
            FAIL_TEST("element %lld is %g, expected %g", (long long)e, got, want);
    }
    smelt_array_release(inputs[0]), smelt_array_release(inputs[1]), smelt_array_release(weights[0]);
    smelt_array_release(out), smelt_array_release(first[0]), smelt_array_release(second[0]);
}

static void what_has_no_derivative_says_so(void **state) {
    (void)state;
    smelt_array *a = random_array(SMELT_FLOAT32, (smelt_shape)MATRIX(3, 5), CONTIGUOUS, -1, 1), *q, *r,
                *gradient, *lu, *pivots;
    smelt_tape *tape;
    OK(smelt_tape_begin(&tape));
    OK(smelt_tape_watch(tape, a));
    OK(smelt_qr(a, NULL, &q, &r));
    OK(smelt_lu(a, NULL, &lu, &pivots));
    OK(smelt_tape_end(tape));
    assert_int_equal(smelt_tape_vjp(tape, &r, 1, NULL, &a, 1, &gradient), SMELT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(smelt_error(), "at least as many rows as columns"));
    assert_int_equal(smelt_tape_vjp(tape, &lu, 1, NULL, &a, 1, &gradient), SMELT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(smelt_error(), "lu has no derivative"));
    smelt_tape_release(tape);
    smelt_array_release(a), smelt_array_release(q), smelt_array_release(r), smelt_array_release(lu),
        smelt_array_release(pivots);
}

int main(void) {
    test_quick_code();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(gradients_have_gradients),
        cmocka_unit_test(what_has_no_derivative_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
