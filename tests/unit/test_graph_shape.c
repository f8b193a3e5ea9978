/* Operations that move elements, read and write by indices, create arrays, and multiply matrices, against
 * loops. */
#include "graph.h"

#define RELEASE(...)                                                            \
    do {                                                                        \
        smelt_array *release_list[] = {__VA_ARGS__};                            \
        for (size_t r = 0; r < sizeof release_list / sizeof *release_list; r++) \
            smelt_array_release(release_list[r]);                               \
    } while (0)

static smelt_array *shaped(smelt_dtype dtype, smelt_shape shape, const double *numbers) {
    smelt_array *wide, *array;
    OK(smelt_array_from_values(SMELT_FLOAT64, shape, numbers, &wide));
    OK(smelt_array_convert(wide, dtype, &array));
    smelt_array_release(wide);
    return array;
}

/* Whether two arrays share memory. */
static bool shares(const smelt_array *a, const smelt_array *b) {
    return a->memory == b->memory || test_device_has_memory();
}

static void reshapes(void **state) {
    (void)state;
    static const smelt_shape shapes[] = {{1, {60}},         {2, {12, 5}},          {2, {3, -1}},
                                         {4, {3, 2, 2, 5}}, {5, {1, 3, 1, 20, 1}}, {3, {4, 5, 3}},
                                         {2, {-1, 60}},     {3, {60, 1, 1}}};
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int s = 0; s < 8; s++) {
            if (!in_sample((size_t)(layout + s), 2)) continue;
            smelt_array *x =
                random_array(SMELT_INT32, (smelt_shape){3, {3, 4, 5}}, (enum layout)layout, -99, 99);
            smelt_array *y = APPLY(.operation = OP(RESHAPE), .inputs = {x}, .shape = shapes[s]);
            double *want = numbers_of(x);
            assert_int_equal(y->size, 60);
            assert_numbers(y, want, 0, 0);
            if (layout == CONTIGUOUS) assert_true(shares(x, y));
            free(want);
            RELEASE(x, y);
        }
    /* Adjacent dimensions are joined and split without a copy; others are not. */
    smelt_array *x = random_array(SMELT_FLOAT32, (smelt_shape){3, {4, 5, 6}}, CONTIGUOUS, 0, 1);
    smelt_array *turned =
        APPLY(.operation = OP(TRANSPOSE), .inputs = {x}, .axes = {2, 0, 1}, .axis_count = 3);
    smelt_array *joined = APPLY(.operation = OP(RESHAPE), .inputs = {turned}, .shape = {2, {6, 20}});
    smelt_array *split = APPLY(.operation = OP(RESHAPE), .inputs = {turned}, .shape = {5, {2, 3, 2, 2, 5}});
    smelt_array *copied = APPLY(.operation = OP(RESHAPE), .inputs = {turned}, .shape = {2, {24, 5}});
    double *want = numbers_of(turned);
    assert_true(shares(joined, x) && shares(split, x) && copied->memory != x->memory);
    assert_numbers(joined, want, 0, 0);
    assert_numbers(split, want, 0, 0);
    assert_numbers(copied, want, 0, 0);
    free(want);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "shape 4x5x6 with 120 elements cannot have shape 7x-1",
          .operation = OP(RESHAPE), .inputs = {x}, .shape = {2, {7, -1}});
    smelt_array *empty = random_array(SMELT_FLOAT32, (smelt_shape){2, {0, 4}}, CONTIGUOUS, 0, 1);
    smelt_array *flat = APPLY(.operation = OP(RESHAPE), .inputs = {empty}, .shape = {3, {2, 0, 9}});
    assert_shape(flat, (smelt_shape){3, {2, 0, 9}});
    RELEASE(x, turned, joined, split, copied, empty, flat);
}

static void views(void **state) {
    (void)state;
    smelt_array *x = random_array(SMELT_FLOAT64, (smelt_shape){3, {4, 1, 6}}, SLICED, 0, 1);
    double *n = numbers_of(x);
    smelt_array *t = APPLY(.operation = OP(TRANSPOSE), .inputs = {x});
    smelt_array *b = APPLY(.operation = OP(BROADCAST_TO), .inputs = {x}, .shape = {4, {2, 4, 3, 6}});
    smelt_array *s = APPLY(.operation = OP(SQUEEZE), .inputs = {x});
    smelt_array *e = APPLY(.operation = OP(EXPAND_DIMS), .inputs = {x}, .axes = {-1, 0}, .axis_count = 2);
    smelt_array *f = APPLY(.operation = OP(FLATTEN), .inputs = {x}, .axes = {0, -1}, .axis_count = 2);
    smelt_array *p = APPLY(.operation = OP(SLICE), .inputs = {x}, .starts = {3, 0, 1}, .stops = {-1, 1, 6},
                           .steps = {-2, 1, 3});
    assert_shape(t, (smelt_shape){3, {6, 1, 4}});
    assert_shape(s, (smelt_shape){2, {4, 6}});
    assert_shape(e, (smelt_shape){5, {1, 4, 1, 6, 1}});
    assert_shape(f, (smelt_shape){1, {24}});
    assert_shape(p, (smelt_shape){3, {2, 1, 2}});
    assert_true(shares(x, t) && shares(x, b) && shares(x, s) && shares(x, e) && shares(x, p));
    double *got = numbers_of(t), *wide = numbers_of(b);
    for (int i = 0; i < 24; i++) assert_true(got[i % 6 * 4 + i / 6] == n[i]);
    for (int i = 0; i < 144; i++) assert_true(wide[i] == n[i / 18 % 4 * 6 + i % 6]);
    assert_numbers(p, (double[]){n[19], n[22], n[7], n[10]}, 0, 0);
    assert_numbers(f, n, 0, 0);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "dimension 0 has size 4, expected 1", .operation = OP(SQUEEZE),
          .inputs = {x}, .axes = {0}, .axis_count = 1);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "4x1x6 cannot be broadcast to 6", .operation = OP(BROADCAST_TO),
          .inputs = {x}, .shape = {1, {6}});
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "transpose: 2 axes", .operation = OP(TRANSPOSE), .inputs = {x},
          .axes = {0, 1}, .axis_count = 2);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "slice 0:9:1 of dimension 0", .operation = OP(SLICE), .inputs = {x},
          .stops = {9, 1, 6});
    free(n);
    free(got);
    free(wide);
    RELEASE(x, t, b, s, e, f, p);
}

static void joined_arrays(void **state) {
    (void)state;
    for (int axis = 0; axis < 2; axis++) {
        smelt_array *x =
            random_array(SMELT_INT16, (smelt_shape){2, {axis ? 3 : 2, axis ? 2 : 4}}, TRANSPOSED, -9, 9);
        smelt_array *y =
            random_array(SMELT_FLOAT32, (smelt_shape){2, {axis ? 3 : 0, axis ? 0 : 4}}, CONTIGUOUS, -9, 9);
        smelt_array *z =
            random_array(SMELT_FLOAT32, (smelt_shape){2, {axis ? 3 : 5, axis ? 7 : 4}}, REVERSED, -9, 9);
        smelt_array *w =
            APPLY(.operation = OP(CONCATENATE), .inputs = {x, y, z}, .axes = {axis - 2}, .axis_count = 1);
        double *a = numbers_of(x), *c = numbers_of(z), *got = numbers_of(w);
        assert_int_equal(w->dtype, SMELT_FLOAT32);
        assert_shape(w, (smelt_shape){2, {axis ? 3 : 7, axis ? 9 : 4}});
        for (int i = 0; i < (axis ? 3 : 7); i++)
            for (int j = 0; j < (axis ? 9 : 4); j++) {
                double want = axis ? (j < 2 ? a[i * 2 + j] : c[i * 7 + j - 2])
                                   : (i < 2 ? a[i * 4 + j] : c[(i - 2) * 4 + j]);
                assert_true(got[i * (axis ? 9 : 4) + j] == want);
            }
        free(a);
        free(c);
        free(got);
        RELEASE(x, y, z, w);
    }
    smelt_array *x = random_array(SMELT_FLOAT32, (smelt_shape){2, {2, 3}}, CONTIGUOUS, 0, 1);
    smelt_array *s = APPLY(.operation = OP(STACK), .inputs = {x, x}, .axes = {1}, .axis_count = 1);
    double *n = numbers_of(x);
    assert_shape(s, (smelt_shape){3, {2, 2, 3}});
    assert_numbers(s, (double[]){n[0], n[1], n[2], n[0], n[1], n[2], n[3], n[4], n[5], n[3], n[4], n[5]}, 0,
                   0);
    smelt_array *one = APPLY(.operation = OP(CONCATENATE), .inputs = {x});
    assert_numbers(one, n, 0, 0);
    free(n);
    smelt_array *t = APPLY(.operation = OP(TRANSPOSE), .inputs = {x});
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "input 1 has shape 3x2", .operation = OP(CONCATENATE),
          .inputs = {x, t});
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "stack: input 1 has shape 3x2, input 0 2x3", .operation = OP(STACK),
          .inputs = {x, t});
    RELEASE(x, s, one, t);
}

static void updates_and_padding(void **state) {
    (void)state;
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_BFLOAT16, SMELT_INT8, SMELT_FLOAT64,
                                         SMELT_COMPLEX64};
    for (int d = 0; d < 5; d++) {
        smelt_array *x = random_array(dtypes[d], (smelt_shape){2, {5, 6}}, TRANSPOSED, -9, 9);
        smelt_array *u = random_array(SMELT_INT8, (smelt_shape){2, {2, 1}}, CONTIGUOUS, -9, 9);
        struct keepsake before = remember(x);
        smelt_array *y = APPLY(.operation = OP(SLICE_UPDATE), .inputs = {x, u}, .starts = {4, 1},
                               .stops = {0, 6}, .steps = {-3, 2});
        double *want = numbers_of(x), *v = numbers_of(u);
        assert_int_equal(y->dtype, dtypes[d]);
        for (int j = 1; j < 6; j += 2) want[4 * 6 + j] = v[0], want[1 * 6 + j] = v[1];
        assert_numbers(y, want, 0, 0);
        assert_unchanged(&before);
        smelt_array *p = APPLY(.operation = OP(PAD),
                               .inputs = {x, u = (smelt_array_release(u),
                                                  shaped(SMELT_INT8, (smelt_shape){0}, (double[]){7}))},
                               .starts = {2, 0}, .stops = {1, 3});
        double *n = numbers_of(x), *got = numbers_of(p);
        assert_shape(p, (smelt_shape){2, {8, 9}});
        for (int i = 0; i < 72; i++) {
            int row = i / 9 - 2, column = i % 9;
            assert_true(got[i] == (row < 0 || row > 4 || column > 5 ? 7 : n[row * 6 + column]));
        }
        free(want);
        free(v);
        free(n);
        free(got);
        RELEASE(x, u, y, p);
    }
    smelt_array *x = random_array(SMELT_FLOAT32, (smelt_shape){2, {5, 6}}, CONTIGUOUS, -9, 9);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "updates of shape 5x6 cannot be broadcast to the slice's 1x6",
          .operation = OP(SLICE_UPDATE), .inputs = {x, x}, .stops = {1, 6});
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "pad: the value has shape 5x6", .operation = OP(PAD),
          .inputs = {x, x});
    for (int64_t k = -3; k < 4; k += 2) {
        smelt_array *low = APPLY(.operation = OP(TRIL), .inputs = {x}, .offset = k);
        smelt_array *high = APPLY(.operation = OP(TRIU), .inputs = {x}, .offset = k);
        double *n = numbers_of(x), *l = numbers_of(low), *h = numbers_of(high);
        for (int i = 0; i < 30; i++) {
            assert_true(l[i] == (i % 6 <= i / 6 + k ? n[i] : 0));
            assert_true(h[i] == (i % 6 >= i / 6 + k ? n[i] : 0));
        }
        free(n);
        free(l);
        free(h);
        RELEASE(low, high);
    }
    smelt_array_release(x);
}

/* ---- By indices. */

static int64_t resolve(double index, int64_t size) {
    int64_t i = (int64_t)index;
    if (i < 0) i += size;
    return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/* x[:, i, :, j] with i of 2x3 and j of 3, the indexed dimensions at each position. Some indices are out of
 * range. */
static void gathers(void **state) {
    (void)state;
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_UINT8, SMELT_FLOAT64};
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int64_t place = 0; place < 3; place++) {
            if (!in_sample((size_t)(layout + place), 2)) continue;
            smelt_array *x =
                random_array(dtypes[place], (smelt_shape){4, {2, 5, 3, 4}}, (enum layout)layout, 0, 99);
            smelt_array *i =
                random_array(SMELT_INT64, (smelt_shape){2, {2, 3}}, layout % 2 ? REVERSED : SLICED, -9, 9);
            smelt_array *j =
                random_array(layout % 2 ? SMELT_INT8 : SMELT_UINT32, (smelt_shape){1, {3}}, CONTIGUOUS, 0, 9);
            smelt_array *y = APPLY(.operation = OP(GATHER), .inputs = {x, i, j}, .axes = {1, -1},
                                   .axis_count = 2, .offset = place);
            double *n = numbers_of(x), *a = numbers_of(i), *b = numbers_of(j), *got = numbers_of(y);
            assert_int_equal(y->size, 2 * 3 * 6);
            assert_int_equal(y->dtype, x->dtype);
            for (int p = 0; p < 2; p++)
                for (int q = 0; q < 6; q++)
                    for (int r = 0; r < 3; r++) {
                        int at = place == 0   ? (q * 2 + p) * 3 + r
                                 : place == 1 ? (p * 6 + q) * 3 + r
                                              : (p * 3 + r) * 6 + q;
                        double want = n[((p * 5 + resolve(a[q], 5)) * 3 + r) * 4 + resolve(b[q % 3], 4)];
                        assert_true(got[at] == want);
                    }
            free(n);
            free(a);
            free(b);
            free(got);
            RELEASE(x, i, j, y);
        }
}

static void takes(void **state) {
    (void)state;
    smelt_array *x = random_array(SMELT_FLOAT32, (smelt_shape){2, {4, 6}}, TRANSPOSED, -9, 9);
    smelt_array *i = random_array(SMELT_INT32, (smelt_shape){2, {2, 2}}, CONTIGUOUS, -6, 6);
    smelt_array *y = APPLY(.operation = OP(TAKE), .inputs = {x, i}, .axes = {1}, .axis_count = 1);
    smelt_array *flat = APPLY(.operation = OP(TAKE), .inputs = {x, i});
    smelt_array *k = random_array(SMELT_INT32, (smelt_shape){2, {4, 3}}, CONTIGUOUS, -6, 6);
    smelt_array *along =
        APPLY(.operation = OP(TAKE_ALONG_AXIS), .inputs = {x, k}, .axes = {1}, .axis_count = 1);
    double *n = numbers_of(x), *a = numbers_of(i), *b = numbers_of(k), *got = numbers_of(y),
           *all = numbers_of(flat), *line = numbers_of(along);
    assert_shape(y, (smelt_shape){3, {4, 2, 2}});
    assert_shape(flat, (smelt_shape){2, {2, 2}});
    for (int e = 0; e < 16; e++) assert_true(got[e] == n[e / 4 * 6 + resolve(a[e % 4], 6)]);
    for (int e = 0; e < 4; e++) assert_true(all[e] == n[resolve(a[e], 24)]);
    for (int e = 0; e < 12; e++) assert_true(line[e] == n[e / 3 * 6 + resolve(b[e], 6)]);
    free(n);
    free(a);
    free(b);
    free(got);
    free(all);
    free(line);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "indices 0 are float32, expected integers", .operation = OP(GATHER),
          .inputs = {x, x});
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "3 arrays of indices for 2 dimensions", .operation = OP(GATHER),
          .inputs = {x, i, i, i});
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "offset 2", .operation = OP(GATHER), .inputs = {x, i}, .offset = 2);
    smelt_array *empty = random_array(SMELT_FLOAT32, (smelt_shape){2, {0, 6}}, CONTIGUOUS, 0, 1);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "dimension 0 has no elements to index", .operation = OP(GATHER),
          .inputs = {empty, i});
    RELEASE(x, i, y, flat, k, along, empty);
}

/* Many updates of few elements: the last one wins, and the sum includes all. */
static void scatters(void **state) {
    (void)state;
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_INT32, SMELT_FLOAT16,
                                         SMELT_UINT8,   SMELT_INT64, SMELT_FLOAT64};
    for (int d = 0; d < 6; d++)
        for (int64_t place = 0; place < 2; place++) {
            if (!in_sample((size_t)(d / 2 + d + place), 2)) continue;
            smelt_array *x =
                random_array(dtypes[d], (smelt_shape){3, {4, 3, 5}}, d % 2 ? SLICED : CONTIGUOUS, 0, 9);
            smelt_array *i = random_array(SMELT_INT32, (smelt_shape){1, {40}}, CONTIGUOUS, -4, 4);
            smelt_array *j = random_array(SMELT_INT32, (smelt_shape){1, {40}}, REVERSED, -5, 5);
            smelt_array *u =
                random_array(dtypes[d], (smelt_shape){2, {place ? 3 : 40, place ? 40 : 3}}, TRANSPOSED, 0, 4);
            if (dtypes[d] == SMELT_FLOAT16) { /* sums that halfs hold exactly */
                smelt_array *whole = APPLY(.operation = OP(FLOOR), .inputs = {u});
                smelt_array_release(u);
                u = whole;
            }
            struct keepsake before = remember(x);
            smelt_apply_desc desc = {.operation = OP(SCATTER),
                                     .inputs = {x, u, i, j},
                                     .axes = {0, 2},
                                     .axis_count = 2,
                                     .offset = place};
            smelt_array *set = apply_ok(&desc, __FILE__, __LINE__),
                        *again = apply_ok(&desc, __FILE__, __LINE__);
            desc.operation = OP(SCATTER_ADD);
            smelt_array *sum = apply_ok(&desc, __FILE__, __LINE__);
            double *last = numbers_of(x), *total = numbers_of(x), *a = numbers_of(i), *b = numbers_of(j),
                   *v = numbers_of(u);
            for (int q = 0; q < 40; q++)
                for (int r = 0; r < 3; r++) {
                    int64_t at = (resolve(a[q], 4) * 3 + r) * 5 + resolve(b[q], 5);
                    last[at] = v[place ? r * 40 + q : q * 3 + r];
                    total[at] += v[place ? r * 40 + q : q * 3 + r];
                }
            if (dtypes[d] == SMELT_UINT8)
                for (int e = 0; e < 60; e++) total[e] = fmod(total[e], 256);
            assert_int_equal(set->dtype, dtypes[d]);
            assert_int_equal(sum->dtype, dtypes[d]);
            assert_numbers(set, last, 0, 0);
            assert_numbers(again, last, 0, 0);
            assert_numbers(sum, total, tolerance_of(dtypes[d]) * 2, 0);
            assert_unchanged(&before);
            free(last);
            free(total);
            free(a);
            free(b);
            free(v);
            RELEASE(x, i, j, u, set, again, sum);
        }
    smelt_array *x = random_array(SMELT_FLOAT32, (smelt_shape){1, {4}}, CONTIGUOUS, 0, 1);
    smelt_array *none = random_array(SMELT_INT32, (smelt_shape){1, {0}}, CONTIGUOUS, 0, 1);
    smelt_array *one = random_array(SMELT_FLOAT32, (smelt_shape){0}, CONTIGUOUS, 0, 1);
    smelt_array *same = APPLY(.operation = OP(SCATTER), .inputs = {x, one, none});
    double *n = numbers_of(x);
    assert_numbers(same, n, 0, 0);
    free(n);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "scatter: updates of shape 4 cannot be broadcast to 0",
          .operation = OP(SCATTER), .inputs = {x, x, none});
    RELEASE(x, none, one, same);
}

/* ---- Creating arrays. */

static void made_arrays(void **state) {
    (void)state;
    smelt_array *r = APPLY(.operation = OP(ARANGE), .numbers = {5, -2, -2});
    smelt_array *f = APPLY(.operation = OP(ARANGE), .numbers = {0, 1, 0.25});
    smelt_array *n = APPLY(.operation = OP(ARANGE), .numbers = {3, 3, 1});
    smelt_array *o = APPLY(.operation = OP(ONES), .shape = {2, {2, 1}}, .dtype = SMELT_BFLOAT16);
    smelt_array *u = APPLY(.operation = OP(FULL), .shape = {1, {3}}, .numbers = {-2.5});
    smelt_array *e = APPLY(.operation = OP(EYE), .shape = {2, {2, 3}}, .offset = 1, .dtype = SMELT_INT8);
    assert_int_equal(r->dtype, SMELT_INT32);
    assert_int_equal(f->dtype, SMELT_FLOAT32);
    assert_int_equal(n->size, 0);
    assert_int_equal(r->size, 4);
    assert_numbers(r, (double[]){5, 3, 1, -1}, 0, 0);
    assert_numbers(f, (double[]){0, 0.25, 0.5, 0.75}, 0, 0);
    assert_numbers(o, (double[]){1, 1}, 0, 0);
    assert_numbers(u, (double[]){-2.5, -2.5, -2.5}, 0, 0);
    assert_numbers(e, (double[]){0, 1, 0, 0, 0, 1}, 0, 0);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "eye: shape has 1 dimensions", .operation = OP(EYE),
          .shape = {1, {3}});
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "arange: the range from 0 to", .operation = OP(ARANGE),
          .numbers = {0, INFINITY, 1});
    RELEASE(r, f, n, o, u, e);
}

/* ---- Products. */

static void products(void **state) {
    (void)state;
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_INT32, SMELT_FLOAT64};
    static const int64_t sizes[][3] = {{1, 1, 1},    {3, 5, 7},   {33, 17, 65}, {64, 64, 64},
                                       {1, 300, 40}, {50, 70, 1}, {5, 0, 3}};
    for (int d = 0; d < 4; d++)
        for (int s = 0; s < 7; s++) {
            if (!in_sample((size_t)(d + s), 2)) continue;
            int64_t m = sizes[s][0], k = sizes[s][1], n = sizes[s][2];
            smelt_array *x =
                random_array(dtypes[d], (smelt_shape){3, {2, m, k}}, (enum layout)(s % LAYOUTS), -3, 3);
            smelt_array *y =
                random_array(dtypes[d], (smelt_shape){2, {k, n}}, (enum layout)((s + d) % LAYOUTS), -3, 3);
            smelt_array *z = APPLY(.operation = OP(MATMUL), .inputs = {x, y});
            double *a = numbers_of(x), *b = numbers_of(y),
                   *want = calloc((size_t)(2 * m * n) + 1, sizeof *want);
            for (int64_t i = 0; i < 2 * m; i++)
                for (int64_t j = 0; j < n; j++)
                    for (int64_t l = 0; l < k; l++) want[i * n + j] += a[i * k + l] * b[l * n + j];
            assert_shape(z, (smelt_shape){3, {2, m, n}});
            assert_int_equal(z->dtype, dtypes[d]);
            assert_numbers(z, want, tolerance_of(dtypes[d]),
                           dtypes[d] == SMELT_INT32 ? 0 : 5e-5 + tolerance_of(dtypes[d]) * 0.05);
            free(a);
            free(b);
            free(want);
            RELEASE(x, y, z);
        }
    smelt_array *v = shaped(SMELT_FLOAT32, (smelt_shape){1, {3}}, (double[]){1, 2, 3});
    smelt_array *w = shaped(SMELT_FLOAT32, (smelt_shape){1, {2}}, (double[]){4, 5});
    smelt_array *dot = APPLY(.operation = OP(MATMUL), .inputs = {v, v});
    smelt_array *outer = APPLY(.operation = OP(OUTER), .inputs = {v, w});
    smelt_array *inner = APPLY(.operation = OP(INNER), .inputs = {outer, w});
    assert_shape(dot, (smelt_shape){0});
    assert_numbers(dot, (double[]){14}, 0, 0);
    assert_numbers(outer, (double[]){4, 5, 8, 10, 12, 15}, 0, 0);
    assert_numbers(inner, (double[]){41, 82, 123}, 0, 0);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "3 columns and 2 rows", .operation = OP(MATMUL), .inputs = {v, w});
    RELEASE(v, w, dot, outer, inner);
}

static void comparisons_of_arrays(void **state) {
    (void)state;
    smelt_array *x = shaped(SMELT_FLOAT32, (smelt_shape){1, {4}}, (double[]){1, INFINITY, NAN, 100});
    smelt_array *y = shaped(SMELT_FLOAT32, (smelt_shape){1, {4}}, (double[]){1.000001, INFINITY, NAN, 101});
    smelt_array *near = APPLY(.operation = OP(IS_CLOSE), .inputs = {x, y}, .numbers = {1e-5, 1e-8});
    smelt_array *nans =
        APPLY(.operation = OP(IS_CLOSE), .inputs = {x, y}, .numbers = {1e-5, 1e-8}, .equal_nan = true);
    smelt_array *all =
        APPLY(.operation = OP(ALL_CLOSE), .inputs = {x, y}, .numbers = {0.1, 0}, .equal_nan = true);
    smelt_array *equal = APPLY(.operation = OP(ARRAY_EQUAL), .inputs = {x, x}, .equal_nan = true);
    smelt_array *unequal = APPLY(.operation = OP(ARRAY_EQUAL), .inputs = {x, x});
    smelt_array *one = APPLY(.operation = OP(SUM), .inputs = {x});
    smelt_array *other = APPLY(.operation = OP(ARRAY_EQUAL), .inputs = {x, one});
    assert_numbers(near, (double[]){1, 1, 0, 0}, 0, 0);
    assert_numbers(nans, (double[]){1, 1, 1, 0}, 0, 0);
    assert_true(element_at(all, 0) == 1 && element_at(equal, 0) == 1);
    assert_true(element_at(unequal, 0) == 0 && element_at(other, 0) == 0);
    RELEASE(x, y, near, nans, all, equal, unequal, one, other);
}

int main(void) {
    test_quick_code();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshapes),      cmocka_unit_test(views),
        cmocka_unit_test(joined_arrays), cmocka_unit_test(updates_and_padding),
        cmocka_unit_test(gathers),       cmocka_unit_test(takes),
        cmocka_unit_test(scatters),      cmocka_unit_test(made_arrays),
        cmocka_unit_test(products),      cmocka_unit_test(comparisons_of_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
