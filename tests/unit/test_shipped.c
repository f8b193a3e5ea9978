/* The functions of smelt/shipped.h: each gives what smelt_apply gives for the settings that its header names,
 * and what is easily computed otherwise. */
#include "graph.h"

#include "smelt/shipped.h"

static smelt_array *floats(smelt_shape shape) {
    return random_array(SMELT_FLOAT32, shape, CONTIGUOUS, -2, 2);
}

/* Releases both. */
static void same(smelt_array *made, smelt_array *wanted, const char *what) {
    assert_int_equal(made->dtype, wanted->dtype);
    assert_shape(made, wanted->shape);
    if (made->dtype == SMELT_COMPLEX64) {
        for (int part = 0; part < 2; part++) {
            smelt_operation operation = part ? OP(IMAG) : OP(REAL);
            same(APPLY(.operation = operation, .inputs = {made}),
                 APPLY(.operation = operation, .inputs = {wanted}), what);
        }
    } else {
        double *a = numbers_of(made), *b = numbers_of(wanted);
        for (int64_t i = 0; i < made->size; i++)
            if (!close_to(a[i], b[i], 1e-6, 1e-6))
                FAIL_TEST("%s: element %lld is %.9g, expected %.9g", what, (long long)i, a[i], b[i]);
        free(a);
        free(b);
    }
    smelt_array_release(made);
    smelt_array_release(wanted);
}

#define SAME(call, ...)                          \
    do {                                         \
        smelt_array *made = NULL, **out = &made; \
        OK(call);                                \
        same(made, APPLY(__VA_ARGS__), #call);   \
    } while (0)
#define LAST .axes = {-1}, .axis_count = 1
#define FIRST .axes = {0}, .axis_count = 1

static void networks(void **state) {
    (void)state;
    smelt_array *x = floats((smelt_shape){2, {3, 8}}), *w = floats((smelt_shape){1, {8}}),
                *b = floats((smelt_shape){1, {8}});
    SAME(smelt_softmax(x, 0, out), .operation = OP(SOFTMAX), .inputs = {x}, FIRST);
    SAME(smelt_log_softmax(x, -1, out), .operation = OP(LOG_SOFTMAX), .inputs = {x}, LAST);
    SAME(smelt_layer_norm(x, w, b, 0.1, out), .operation = OP(LAYER_NORM), .inputs = {x, w, b},
         .numbers = {0.1});
    SAME(smelt_layer_norm(x, NULL, NULL, 0.1, out), .operation = OP(LAYER_NORM), .inputs = {x},
         .numbers = {0.1});
    SAME(smelt_rms_norm(x, w, 0.2, out), .operation = OP(RMS_NORM), .inputs = {x, w}, .numbers = {0.2});
    smelt_array *made = NULL, *plain = NULL;
    OK(smelt_layer_norm(x, NULL, b, 0.1, &made));
    OK(smelt_layer_norm(x, NULL, NULL, 0.1, &plain));
    same(made, APPLY(.operation = OP(ADD), .inputs = {plain, b}), "layer norm with a bias alone");
    smelt_array_release(plain);

    const int32_t five = 5, zero = 0;
    smelt_array *rows = floats((smelt_shape){3, {2, 4, 6}}), *offset = NULL, *none = NULL;
    OK(smelt_array_from_values(SMELT_INT32, (smelt_shape){0}, &five, &offset));
    OK(smelt_array_from_values(SMELT_INT32, (smelt_shape){0}, &zero, &none));
    SAME(smelt_rope(
             &(smelt_rope_desc){
                 .x = rows, .offset = offset, .dims = 4, .traditional = true, .base = 100, .scale = 0.5},
             out),
         .operation = OP(ROPE), .inputs = {rows, offset}, .starts = {4, 1}, .numbers = {100, 0.5});
    SAME(smelt_rope(&(smelt_rope_desc){.x = rows, .dims = 6, .base = 100}, out), .operation = OP(ROPE),
         .inputs = {rows, none}, .starts = {6, 0}, .numbers = {100, 1});

    smelt_array *image = floats((smelt_shape){4, {1, 6, 5, 4}}),
                *kernel = floats((smelt_shape){4, {6, 3, 2, 2}});
    SAME(smelt_convolve(&(smelt_convolve_desc){.x = image,
                                               .weight = kernel,
                                               .stride = {2, 1},
                                               .before = {1, 0},
                                               .after = {0, 2},
                                               .dilation = {1, 2},
                                               .input_dilation = {2, 1},
                                               .groups = 2,
                                               .flip = true},
                        out),
         .operation = OP(CONV_GENERAL), .inputs = {image, kernel}, .steps = {2, 1}, .starts = {1, 0},
         .stops = {0, 2}, .shape = {2, {1, 2}}, .axes = {2, 1}, .axis_count = 2, .offset = 2,
         .reverse = true);
    smelt_array *whole = floats((smelt_shape){4, {6, 3, 2, 4}});
    SAME(smelt_convolve(&(smelt_convolve_desc){.x = image, .weight = whole}, out),
         .operation = OP(CONV_GENERAL), .inputs = {image, whole});

    smelt_array *grid = floats((smelt_shape){4, {1, 2, 3, 2}});
    SAME(smelt_sample_grid(image, grid, true, false, true, out), .operation = OP(GRID_SAMPLE),
         .inputs = {image, grid}, .starts = {1, 0, 1});
    SAME(smelt_sample_grid(image, grid, false, true, false, out), .operation = OP(GRID_SAMPLE),
         .inputs = {image, grid}, .starts = {0, 1, 0});
    smelt_array *chunks = floats((smelt_shape){4, {1, 6, 2, 3}});
    SAME(smelt_chunk_inverse(chunks, out), .operation = OP(CHUNK_INVERSE), .inputs = {chunks});
    smelt_array *all[] = {x, w, b, rows, offset, none, image, kernel, whole, grid, chunks};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) smelt_array_release(all[i]);
}

static void rows_and_signals(void **state) {
    (void)state;
    smelt_array *x = floats((smelt_shape){2, {3, 8}});
    SAME(smelt_cumsum(x, 1, true, out), .operation = OP(CUMSUM), .inputs = {x}, LAST, .reverse = true);
    SAME(smelt_cumprod(x, 0, false, out), .operation = OP(CUMPROD), .inputs = {x}, FIRST);
    SAME(smelt_cummax(x, -1, false, out), .operation = OP(CUMMAX), .inputs = {x}, LAST);
    SAME(smelt_cummin(x, 0, true, out), .operation = OP(CUMMIN), .inputs = {x}, FIRST, .reverse = true);
    SAME(smelt_sort(x, 0, out), .operation = OP(SORT), .inputs = {x}, FIRST);
    SAME(smelt_argsort(x, -1, out), .operation = OP(ARGSORT), .inputs = {x}, LAST);
    smelt_array *sorted = APPLY(.operation = OP(SORT), .inputs = {x}, LAST);
    SAME(smelt_topk(x, 3, -1, out), .operation = OP(SLICE), .inputs = {sorted}, .starts = {0, 5},
         .stops = {3, 8}, .steps = {1, 1});
    smelt_array_release(sorted);
    smelt_array *made = NULL;
    assert_int_equal(smelt_topk(x, 9, 1, &made), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(), "topk: k is 9; expected 1 to 8");

    SAME(smelt_fft(x, 6, 1, false, out), .operation = OP(FFT), .inputs = {x}, LAST, .offset = 6);
    SAME(smelt_fft(x, 0, 0, true, out), .operation = OP(FFT), .inputs = {x}, FIRST, .reverse = true);
    SAME(smelt_rfft(x, 5, -1, out), .operation = OP(RFFT), .inputs = {x}, LAST, .offset = 5);
    smelt_array *half = NULL;
    OK(smelt_rfft(x, 0, -1, &half));
    OK(smelt_irfft(half, 8, -1, &made));
    same(made, smelt_array_retain(x), "irfft of rfft");
    smelt_array_release(half);
    SAME(smelt_hadamard_transform(x, 0.5, out), .operation = OP(HADAMARD_TRANSFORM), .inputs = {x},
         .numbers = {0.5});
    smelt_array_release(x);
}

static void packed_numbers(void **state) {
    (void)state;
    smelt_array *x = floats((smelt_shape){2, {3, 64}}), *w = NULL, *scales = NULL, *biases = NULL,
                *back = NULL;
    for (int bits = 5; bits <= 8; bits += 3) {
        OK(smelt_quantize(&(smelt_quantize_desc){.x = x, .bits = bits, .group_size = 32}, &w, &scales,
                          &biases));
        assert_shape(w, ((smelt_shape){2, {3, 2 * bits}}));
        assert_shape(biases, ((smelt_shape){2, {3, 2}}));
        OK(smelt_dequantize(w, scales, biases, bits, 32, SMELT_QUANTIZED_AFFINE, SMELT_NO_DTYPE, &back));
        double *a = numbers_of(x), *b = numbers_of(back);
        for (int i = 0; i < 192; i++) assert_true(fabs(a[i] - b[i]) <= 1.6 * 4 / ((1 << bits) - 1));
        free(a);
        free(b);
        smelt_array *all[] = {w, scales, biases, back};
        for (int i = 0; i < 4; i++) smelt_array_release(all[i]);
    }
    OK(smelt_quantize(
        &(smelt_quantize_desc){.x = x, .bits = 8, .group_size = 32, .mode = SMELT_QUANTIZED_MXFP8}, &w,
        &scales, NULL));
    OK(smelt_dequantize(w, scales, NULL, 8, 32, SMELT_QUANTIZED_MXFP8, SMELT_FLOAT16, &back));
    assert_int_equal(back->dtype, SMELT_FLOAT16);
    double *a = numbers_of(x), *b = numbers_of(back);
    for (int i = 0; i < 192; i++) assert_true(fabs(a[i] - b[i]) <= fabs(a[i]) / 7 + 0.01);
    free(a);
    free(b);
    smelt_array *made[] = {w, scales, back};
    for (int i = 0; i < 3; i++) smelt_array_release(made[i]);
    assert_int_equal(
        smelt_quantize(&(smelt_quantize_desc){.x = x, .bits = 8, .group_size = 32}, &w, &scales, NULL),
        SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(), "quantize: biases is NULL; expected an address, as mode is affine");
    smelt_array_release(x);
}

#define SHAPE ((smelt_shape){2, {3, 7}})

static void random_numbers(void **state) {
    (void)state;
    smelt_array *key = NULL, *p = floats((smelt_shape){1, {7}}), *low = floats((smelt_shape){1, {1}}),
                *made = NULL;
    OK(smelt_random_key(UINT64_C(0x123456789abcdef0), &key));
    assert_int_equal(((uint32_t *)smelt_array_data(key))[0], 0x9abcdef0);
    assert_int_equal(((uint32_t *)smelt_array_data(key))[1], 0x12345678);
    /* The key is the seed of smelt_array_uniform. */
    OK(smelt_random_bits(key, SMELT_INT16, SHAPE, &made));
    smelt_array *plain = NULL;
    OK(smelt_array_uniform(SMELT_INT16, SHAPE, UINT64_C(0x123456789abcdef0), &plain));
    same(made, plain, "bits");
    SAME(smelt_random_split(key, 3, out), .operation = OP(RANDOM_SPLIT), .inputs = {key}, .offset = 3);
    SAME(smelt_random_uniform(key, SMELT_FLOAT16, SHAPE, -1, 2, out), .operation = OP(RANDOM_UNIFORM),
         .inputs = {key}, .dtype = SMELT_FLOAT16, .shape = SHAPE, .numbers = {-1, 2});
    SAME(smelt_random_integers(key, SMELT_NO_DTYPE, SHAPE, -1, 20, out), .operation = OP(RANDOM_INTEGERS),
         .inputs = {key}, .shape = SHAPE, .starts = {-1}, .stops = {20});
    SAME(smelt_random_normal(key, SMELT_NO_DTYPE, SHAPE, out), .operation = OP(RANDOM_NORMAL),
         .inputs = {key}, .shape = SHAPE);
    SAME(smelt_random_gumbel(key, SMELT_BFLOAT16, SHAPE, out), .operation = OP(RANDOM_GUMBEL),
         .inputs = {key}, .dtype = SMELT_BFLOAT16, .shape = SHAPE);
    smelt_array *high = APPLY(.operation = OP(EXP), .inputs = {p});
    SAME(smelt_random_truncated_normal(key, low, high, SMELT_NO_DTYPE, SHAPE, out),
         .operation = OP(RANDOM_TRUNCATED_NORMAL), .inputs = {key, low, high}, .shape = SHAPE);
    SAME(smelt_random_bernoulli(key, p, (smelt_shape){0}, out), .operation = OP(RANDOM_BERNOULLI),
         .inputs = {key, p});
    SAME(smelt_random_categorical(key, p, 0, 4, out), .operation = OP(RANDOM_CATEGORICAL), .inputs = {key, p},
         FIRST, .offset = 4);
    SAME(smelt_random_permutation(key, 9, out), .operation = OP(RANDOM_PERMUTATION), .inputs = {key},
         .offset = 9);
    assert_int_equal(smelt_random_uniform(key, SMELT_NO_DTYPE, SHAPE, 0, 0, &made),
                     SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(), "random_uniform: low is 0 and high is 0; expected low < high");
    smelt_array *all[] = {key, p, low, high};
    for (int i = 0; i < 4; i++) smelt_array_release(all[i]);
}

int main(void) {
    test_quick_code();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks),
        cmocka_unit_test(rows_and_signals),
        cmocka_unit_test(packed_numbers),
        cmocka_unit_test(random_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
