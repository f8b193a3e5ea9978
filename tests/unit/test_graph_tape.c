/* Tapes: zeros, dtypes, ties; custom functions and errors in them. */
#include "graph.h"

/* ---- The tape. */

static smelt_array *vector(smelt_dtype dtype, int count, const double *numbers) {
    smelt_array *wide, *array;
    OK(smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){1, {count}}, numbers, &wide));
    OK(smelt_array_convert(wide, dtype, &array));
    smelt_array_release(wide);
    return array;
}

static void what_does_not_depend_has_zeros(void **state) {
    (void)state;
    smelt_array *x = vector(SMELT_FLOAT32, 3, (double[]){1, 2, 3}),
                *y = vector(SMELT_FLOAT32, 2, (double[]){4, 5});
    smelt_array *gradients[2];
    smelt_tape *tape;
    OK(smelt_tape_begin(&tape));
    OK(smelt_tape_watch(tape, x));
    smelt_array *square = APPLY(.operation = OP(SQUARE), .inputs = {x});
    smelt_array *stopped = APPLY(.operation = OP(STOP_GRADIENT), .inputs = {square});
    smelt_array *z = APPLY(.operation = OP(MULTIPLY), .inputs = {stopped, x});
    smelt_array *whole = APPLY(.operation = OP(GREATER), .inputs = {x, z});
    assert_true(smelt_tape_tracks(tape, z) && smelt_tape_tracks(NULL, square) &&
                !smelt_tape_tracks(tape, stopped));
    OK(smelt_tape_end(tape));
    assert_false(smelt_tape_tracks(NULL, square));
    OK(smelt_tape_vjp(tape, &z, 1, NULL, (smelt_array *[]){x, y}, 2, gradients));
    assert_numbers(gradients[0], (double[]){1, 4, 9}, 0, 0);
    assert_numbers(gradients[1], (double[]){0, 0}, 0, 0);
    smelt_array *none;
    assert_int_equal(smelt_tape_vjp(tape, &whole, 1, NULL, &x, 1, &none), SMELT_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(smelt_error(), "output 0 is bool"));
    assert_int_equal(smelt_tape_vjp(tape, &z, 1, &y, &x, 1, &none), SMELT_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(smelt_error(), "cotangent 0 has shape 2, expected 3"));
    smelt_tape_release(tape);
    smelt_array *arrays[] = {x, y, square, stopped, z, whole, gradients[0], gradients[1]};
    for (int i = 0; i < 8; i++) smelt_array_release(arrays[i]);
}

/* Gradients of halfs are halfs; those of an array that is used twice are added; those of intermediate arrays
 * are found. */
static void dtypes_uses_and_middles(void **state) {
    (void)state;
    smelt_array *x = vector(SMELT_FLOAT16, 2, (double[]){1, 2}), *gradients[2];
    smelt_tape *tape;
    OK(smelt_tape_begin(&tape));
    OK(smelt_tape_watch(tape, x));
    smelt_array *wide = APPLY(.operation = OP(ASTYPE), .inputs = {x}, .dtype = SMELT_FLOAT32);
    smelt_array *square = APPLY(.operation = OP(MULTIPLY), .inputs = {wide, wide});
    smelt_array *z = APPLY(.operation = OP(ADD), .inputs = {square, x});
    OK(smelt_tape_vjp(tape, &z, 1, NULL, (smelt_array *[]){x, square}, 2, gradients));
    assert_int_equal(gradients[0]->dtype, SMELT_FLOAT16);
    assert_numbers(gradients[0], (double[]){3, 5}, 0, 0);
    assert_numbers(gradients[1], (double[]){1, 1}, 0, 0);
    smelt_tape_release(tape);
    smelt_array *arrays[] = {x, wide, square, z, gradients[0], gradients[1]};
    for (int i = 0; i < 6; i++) smelt_array_release(arrays[i]);
}

static void ties_share(void **state) {
    (void)state;
    smelt_array *x = vector(SMELT_FLOAT32, 4, (double[]){1, 3, 3, 2}), *gradient;
    smelt_tape *tape;
    OK(smelt_tape_begin(&tape));
    OK(smelt_tape_watch(tape, x));
    smelt_array *y = APPLY(.operation = OP(MAX), .inputs = {x});
    OK(smelt_tape_vjp(tape, &y, 1, NULL, &x, 1, &gradient));
    assert_numbers(gradient, (double[]){0, 0.5, 0.5, 0}, 0, 0);
    smelt_tape_release(tape);
    smelt_array_release(gradient);
    smelt_array_release(y);
    smelt_array_release(x);
}

/* A product in which one factor is 0. */
static void products_with_zeros(void **state) {
    (void)state;
    smelt_array *x = vector(SMELT_FLOAT32, 4, (double[]){2, 0, 3, 5}), *gradient;
    smelt_tape *tape;
    OK(smelt_tape_begin(&tape));
    OK(smelt_tape_watch(tape, x));
    smelt_array *y = APPLY(.operation = OP(PROD), .inputs = {x});
    OK(smelt_tape_vjp(tape, &y, 1, NULL, &x, 1, &gradient));
    assert_numbers(gradient, (double[]){0, 30, 0, 0}, 0, 0);
    smelt_tape_release(tape);
    smelt_array_release(gradient);
    smelt_array_release(y);
    smelt_array_release(x);
}

/* ---- Custom functions. */

struct cube {
    int vjp_calls, jvp_calls, releases;
};

static smelt_status cube_vjp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                             smelt_array *const *cotangents, smelt_array **gradients) {
    (void)outputs;
    ((struct cube *)context)->vjp_calls++;
    smelt_array *square = APPLY(.operation = OP(SQUARE), .inputs = {inputs[0]});
    smelt_array *three, *slope;
    OK(smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){0}, &(double){3}, &three));
    slope = APPLY(.operation = OP(MULTIPLY), .inputs = {square, three}, .weak = 2);
    gradients[0] = APPLY(.operation = OP(MULTIPLY), .inputs = {slope, cotangents[0]});
    smelt_array_release(square);
    smelt_array_release(three);
    smelt_array_release(slope);
    return SMELT_OK;
}

static smelt_status cube_jvp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                             smelt_array *const *tangents, smelt_array **output_tangents) {
    struct cube *cube = context;
    cube->jvp_calls++;
    cube->vjp_calls--;
    return cube_vjp(context, inputs, outputs, tangents, output_tangents);
}

static void cube_release(void *context) {
    ((struct cube *)context)->releases++;
}

/* x³, computed while no tape records. */
static smelt_array *cube_of(smelt_array *x, struct cube *context, bool with_vjp, bool with_jvp) {
    smelt_tape_pause();
    smelt_array *square = APPLY(.operation = OP(SQUARE), .inputs = {x});
    smelt_array *cube = APPLY(.operation = OP(MULTIPLY), .inputs = {square, x});
    smelt_tape_resume();
    smelt_array_release(square);
    OK(smelt_tape_record(&(smelt_record_desc){.name = "cube",
                                              .inputs = &x,
                                              .input_count = 1,
                                              .outputs = &cube,
                                              .output_count = 1,
                                              .vjp = with_vjp ? cube_vjp : NULL,
                                              .jvp = with_jvp ? cube_jvp : NULL,
                                              .release = cube_release,
                                              .context = context}));
    return cube;
}

static void custom_functions(void **state) {
    (void)state;
    for (int with_jvp = 0; with_jvp < 2; with_jvp++) {
        struct cube context = {0};
        smelt_array *x = vector(SMELT_FLOAT32, 2, (double[]){2, -3}),
                    *v = vector(SMELT_FLOAT32, 2, (double[]){1, 10});
        smelt_array *gradient, *second, *tangent;
        smelt_tape *outer, *inner;
        OK(smelt_tape_begin(&outer));
        OK(smelt_tape_watch(outer, x));
        OK(smelt_tape_begin(&inner));
        OK(smelt_tape_watch(inner, x));
        smelt_array *cube = cube_of(x, &context, true, with_jvp);
        smelt_array *y = APPLY(.operation = OP(NEGATIVE), .inputs = {cube});
        OK(smelt_tape_end(inner));
        OK(smelt_tape_vjp(inner, &y, 1, NULL, &x, 1, &gradient));
        assert_numbers(gradient, (double[]){-12, -27}, 1e-6, 0);
        assert_int_equal(context.vjp_calls, 1);
        OK(smelt_tape_vjp(outer, &gradient, 1, NULL, &x, 1, &second));
        assert_numbers(second, (double[]){-12, 18}, 1e-6, 0);
        OK(smelt_tape_jvp(inner, &x, 1, &v, &y, 1, &tangent));
        assert_numbers(tangent, (double[]){-12, -270}, 1e-6, 0);
        assert_int_equal(context.jvp_calls, with_jvp);
        smelt_tape_release(inner);
        assert_int_equal(context.releases, 0);
        smelt_tape_release(outer);
        assert_int_equal(context.releases, 1);
        smelt_array *arrays[] = {x, v, cube, y, gradient, second, tangent};
        for (int i = 0; i < 7; i++) smelt_array_release(arrays[i]);
    }
}

static void what_has_no_vjp_says_so(void **state) {
    (void)state;
    struct cube context = {0};
    smelt_array *x = vector(SMELT_FLOAT32, 2, (double[]){2, -3}),
                *z = vector(SMELT_FLOAT32, 2, (double[]){1, 1});
    smelt_array *gradient = NULL;
    smelt_tape *tape;
    OK(smelt_tape_begin(&tape));
    OK(smelt_tape_watch(tape, x));
    OK(smelt_tape_watch(tape, z));
    smelt_array *cube = cube_of(x, &context, false, false);
    smelt_array *y = APPLY(.operation = OP(ADD), .inputs = {cube, z});
    assert_int_equal(smelt_tape_vjp(tape, &y, 1, NULL, &x, 1, &gradient), SMELT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(smelt_error(), "'cube', which has no VJP"));
    assert_null(gradient);
    assert_int_equal(smelt_tape_jvp(tape, &x, 1, NULL, &y, 1, &gradient), SMELT_ERROR_UNSUPPORTED);
    /* The derivative with respect to z does not need it. */
    OK(smelt_tape_vjp(tape, &y, 1, NULL, &z, 1, &gradient));
    assert_numbers(gradient, (double[]){1, 1}, 0, 0);
    smelt_tape_release(tape);
    smelt_array *arrays[] = {x, z, cube, y, gradient};
    for (int i = 0; i < 5; i++) smelt_array_release(arrays[i]);
    /* Without a tape the context is released at once. */
    x = vector(SMELT_FLOAT32, 2, (double[]){2, -3});
    cube = cube_of(x, &context, true, true);
    assert_int_equal(context.releases, 2);
    smelt_array_release(x);
    smelt_array_release(cube);
}

static smelt_status wrong_vjp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                              smelt_array *const *cotangents, smelt_array **gradients) {
    (void)inputs;
    (void)outputs;
    (void)cotangents;
    if (context) return SMELT_ERROR_LIMIT;
    gradients[0] = vector(SMELT_FLOAT32, 3, (double[]){1, 2, 3});
    return SMELT_OK;
}

static void mistakes_in_a_vjp(void **state) {
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        smelt_array *x = vector(SMELT_FLOAT32, 2, (double[]){2, -3}), *gradient = NULL;
        smelt_tape *tape;
        OK(smelt_tape_begin(&tape));
        OK(smelt_tape_watch(tape, x));
        smelt_array *y = vector(SMELT_FLOAT32, 1, (double[]){1});
        OK(smelt_tape_record(&(smelt_record_desc){.name = "odd",
                                                  .inputs = &x,
                                                  .input_count = 1,
                                                  .outputs = &y,
                                                  .output_count = 1,
                                                  .vjp = wrong_vjp,
                                                  .context = fails ? &fails : NULL}));
        assert_int_equal(smelt_tape_vjp(tape, &y, 1, NULL, &x, 1, &gradient),
                         fails ? SMELT_ERROR_LIMIT : SMELT_ERROR_INVALID_ARGUMENT);
        if (!fails)
            assert_non_null(strstr(
                smelt_error(), "the VJP of 'odd' returned a gradient of shape 3 for input 0, expected 2"));
        assert_int_equal(
            smelt_tape_record(&(smelt_record_desc){
                .name = "same", .inputs = &x, .input_count = 1, .outputs = &x, .output_count = 1}),
            SMELT_ERROR_INVALID_ARGUMENT);
        smelt_tape_release(tape);
        smelt_array_release(x);
        smelt_array_release(y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_depend_has_zeros),
        cmocka_unit_test(dtypes_uses_and_middles),
        cmocka_unit_test(ties_share),
        cmocka_unit_test(products_with_zeros),
        cmocka_unit_test(custom_functions),
        cmocka_unit_test(what_has_no_vjp_says_so),
        cmocka_unit_test(mistakes_in_a_vjp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
