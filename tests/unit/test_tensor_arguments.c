/* Tensors as kernel arguments: arrays bound to them, with their shapes and strides; what does not suit.
 * Products are compared with sums in float64 of the same numbers: an error of K + 4 units in the last place
 * of float32. */
#include "unit.h"

#include "../device.h"
#include "smelt/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char source[] =
    "#include <metal_stdlib>\n"
    "#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n"
    "using namespace metal;\n"
    "using namespace mpp::tensor_ops;\n"
    "template <typename T> using table = tensor<device T, dextents<int32_t, 2>>;\n"
    "constant bool wide [[function_constant(0)]];\n"
    "constant bool narrow = !wide;\n"
    /* Tiles of 64 x 32 by four simdgroups. */
    "template <typename T> kernel void product(table<T> A [[buffer(0)]], table<T> B [[buffer(1)]],\n"
    "    table<float> C [[buffer(2)]], uint2 group [[threadgroup_position_in_grid]]) {\n"
    "  constexpr auto tile = matmul2d_descriptor(64, 32, static_cast<int>(dynamic_extent));\n"
    "  matmul2d<tile, execution_simdgroups<4>> op;\n"
    "  auto rows = A.slice(0, group.y * 64);\n"
    "  auto columns = B.slice(group.x * 32, 0);\n"
    "  auto out = C.slice(group.x * 32, group.y * 64);\n"
    "  op.run(rows, columns, out);\n"
    "}\n"
    "template [[host_name(\"product_half\")]] kernel void product<half>(table<half>, table<half>, "
    "table<float>, uint2);\n"
    "template [[host_name(\"product_bfloat\")]] kernel void product<bfloat>(table<bfloat>, table<bfloat>, "
    "table<float>, uint2);\n"
    /* A slice of a slice; a destination in registers, stored to a tensor made in the kernel. */
    "kernel void probe(tensor<device half, dextents<int, 2>> A [[buffer(0)]],\n"
    "    tensor<device half, dextents<int, 2>> B [[buffer(1)]], device float *C [[buffer(2)]],\n"
    "    uint2 group [[threadgroup_position_in_grid]]) {\n"
    "  auto a = A.slice(0, (int)group.y), b = B.slice((int)group.x, 0);\n"
    "  matmul2d<matmul2d_descriptor(16, 16, dynamic_extent), execution_simdgroups<4>> mm;\n"
    "  auto c = mm.get_destination_cooperative_tensor<decltype(a), decltype(b), float>();\n"
    "  auto from_a = a.slice(0, 0), from_b = b.slice(0, 0);\n"
    "  mm.run(from_a, from_b, c);\n"
    "  c.store(tensor<device float, dextents<int, 2>, tensor_inline>(C, dextents<int, 2>(16, 16)));\n"
    "}\n"
    "kernel void layout(tensor<device const uchar, extents<long, 7, dynamic_extent, 3>> A [[buffer(5)]],\n"
    "    tensor<constant float, dextents<ushort, 1>> V [[buffer(3)]], device long *out [[buffer(0)]]) {\n"
    "  for (int r = 0; r < 3; r++) out[r] = A.get_extent(r), out[3 + r] = A.get_stride(r);\n"
    "  out[6] = A[3, 2, 1], out[7] = V.get_extent(0), out[8] = (long)V[4];\n"
    "}\n"
    "kernel void codes(tensor<device uint4b_format, dextents<int, 2>> A [[buffer(0)]],\n"
    "    tensor<device metal_fp8_e4m3_format, dextents<int, 2>> B [[buffer(1)]], device float *out "
    "[[buffer(2)]],\n"
    "    uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {\n"
    "  out[at.y * size.x + at.x] = A.get(at.x, at.y) + B.get(at.x, at.y);\n"
    "}\n"
    "kernel void extent_alone(tensor<device half, dextents<int, 2>> A [[buffer(0)]], device int *out "
    "[[buffer(1)]]) {\n"
    "  out[0] = A.get_extent(0);\n"
    "}\n"
    "kernel void unused(tensor<device half, dextents<int, 2>> A [[buffer(0)]], device int *out "
    "[[buffer(1)]]) {\n"
    "  out[0] = 7;\n"
    "}\n"
    "kernel void guarded(tensor<device float, dextents<int, 2>> A [[buffer(0), function_constant(wide)]],\n"
    "    tensor<device float, dextents<int, 1>> B [[buffer(0), function_constant(narrow)]],\n"
    "    device int *out [[buffer(1)]]) {\n"
    "  if (wide) out[0] = A.get_extent(1);\n"
    "  else out[0] = -B.get_extent(0);\n"
    "}\n"
    "using scaled_codes = tensor<device metal_fp8_e4m3_format, dextents<int, 2>, tensor_handle,\n"
    "    tensor_blockwise<tensor_plane_scales, device metal_fp8_ue8m0_format, 32, 1>>;\n"
    "kernel void scaled_product(scaled_codes A [[buffer(0)]], scaled_codes B [[buffer(1)]], table<float> C "
    "[[buffer(2)]],\n"
    "    uint2 group [[threadgroup_position_in_grid]]) {\n"
    "  matmul2d<matmul2d_descriptor(32, 32, dynamic_extent, false, true), execution_simdgroups<4>> op;\n"
    "  auto rows = A.slice(0, group.y * 32);\n"
    "  auto columns = B.slice(0, group.x * 32);\n"
    "  auto out = C.slice(group.x * 32, group.y * 32);\n"
    "  op.run(rows, columns, out);\n"
    "}\n"
    "kernel void sum_of_bytes(const device uchar *A [[buffer(0)]], device int *out [[buffer(1)]], constant "
    "int &n [[buffer(2)]]) {\n"
    "  int sum = 0;\n"
    "  for (int i = 0; i < n; i++) sum += A[i];\n"
    "  out[0] = sum;\n"
    "}\n"
    "kernel void scaled(tensor<device metal_fp8_e4m3_format, dextents<int, 2>, tensor_handle,\n"
    "    tensor_blockwise<tensor_plane_scales, device metal_fp8_ue8m0_format, 32, 1>> A [[buffer(0)]],\n"
    "    device int *out [[buffer(1)]]) { out[0] = A.get_extent(0); }\n";

static smelt_library *library;

static void succeed(smelt_status status) {
    if (status != SMELT_OK) FAIL_TEST("%s", smelt_error());
}

static uint64_t state = 0x5e1u;
static uint32_t random_below(uint32_t bound) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % bound;
}

/* Random multiples of 1/16 in [-4, 4), which every float type holds. */
static smelt_array *numbers(smelt_dtype dtype, smelt_shape shape) {
    smelt_array *reals, *array;
    succeed(smelt_array_create(SMELT_FLOAT32, shape, &reals));
    float *x = smelt_array_data(reals);
    for (int64_t i = 0; i < smelt_array_size(reals); i++) x[i] = (float)((int)random_below(128) - 64) / 16;
    succeed(smelt_array_convert(reals, dtype, &array));
    smelt_array_release(reals);
    return array;
}

static smelt_array *filled(smelt_dtype dtype, smelt_shape shape, double value) {
    smelt_array *array;
    succeed(smelt_array_create(dtype, shape, &array));
    succeed(smelt_array_fill(array, value));
    return array;
}

/* Columns 3 … 3 + columns - 1 of a wider matrix: rows are `pitch` elements apart. */
static smelt_array *part(smelt_array *whole, int64_t rows, int64_t columns) {
    smelt_array *view;
    const int64_t *strides = smelt_array_strides(whole);
    succeed(smelt_array_view(whole, (smelt_shape){2, {rows, columns}}, strides, 3, &view));
    return view;
}

static double *as_reals(const smelt_array *array) {
    smelt_array *reals;
    size_t bytes = (size_t)smelt_array_size(array) * sizeof(double);
    double *values = malloc(bytes ? bytes : 1);
    succeed(smelt_array_convert(array, SMELT_FLOAT64, &reals));
    memcpy(values, smelt_array_data(reals), bytes);
    smelt_array_release(reals);
    return values;
}

static smelt_function *function_of(smelt_library *from, const char *name) {
    smelt_function *function;
    succeed(smelt_library_function(from, &(smelt_function_desc){.name = name}, &function));
    return function;
}

static void check_product(const smelt_array *a, const smelt_array *b, const smelt_array *c) {
    double *x = as_reals(a), *y = as_reals(b), *z = as_reals(c);
    int64_t M = smelt_array_shape(a).size[0], K = smelt_array_shape(a).size[1],
            N = smelt_array_shape(b).size[1];
    for (int64_t r = 0; r < M; r++)
        for (int64_t q = 0; q < N; q++) {
            double sum = 0, absolute = 0;
            for (int64_t k = 0; k < K; k++)
                sum += x[r * K + k] * y[k * N + q], absolute += fabs(x[r * K + k] * y[k * N + q]);
            if (!(fabs(z[r * N + q] - sum) <= (double)(K + 4) * 0x1p-24 * absolute))
                FAIL_TEST("element (%lld, %lld) is %.9g, expected %.9g", (long long)r, (long long)q,
                          z[r * N + q], sum);
        }
    free(x), free(y), free(z);
}

/* Of matrices within wider ones: what lies between their rows is poison, and stays as it is in C. */
struct tile {
    int m, n, threads;
};
static void run_product(smelt_function *product, struct tile tile, smelt_dtype dtype, const char *device,
                        int M, int N, int K) {
    smelt_array *a_all = numbers(dtype, (smelt_shape){2, {M, K + 9}}),
                *b_all = numbers(dtype, (smelt_shape){2, {K, N + 5}}),
                *c_all = filled(SMELT_FLOAT32, (smelt_shape){2, {M, N + 7}}, -77);
    smelt_array *a = part(a_all, M, K), *b = part(b_all, K, N), *c = part(c_all, M, N);
    succeed(smelt_function_run(
        product, &(smelt_dispatch_desc){.buffers = {{.array = a}, {.array = b}, {.array = c}},
                                        .groups = {(N + tile.n - 1) / tile.n, (M + tile.m - 1) / tile.m},
                                        .threadgroup = {tile.threads},
                                        .device = device}));
    check_product(a, b, c);
    const float *all = smelt_array_data(c_all);
    for (int64_t i = 0; i < M * (N + 7); i++)
        if ((i % (N + 7) < 3 || i % (N + 7) >= N + 3) && all[i] != -77)
            FAIL_TEST("%g was written at %lld, outside the tensor", (double)all[i], (long long)i);
    smelt_array *list[] = {a, b, c, a_all, b_all, c_all};
    for (int i = 0; i < 6; i++) smelt_array_release(list[i]);
}

static const char *devices[2];
static const struct tile small_tile = {64, 32, 128};

static void products_of_strided_arrays(void **s) {
    (void)s;
    static const int sizes[][3] = {{1, 1, 1}, {64, 32, 16}, {70, 51, 37}, {129, 33, 100}};
    smelt_function *half = function_of(library, "product_half"),
                   *bfloat = function_of(library, "product_bfloat");
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 4; i++) {
            run_product(half, small_tile, SMELT_FLOAT16, devices[d], sizes[i][0], sizes[i][1], sizes[i][2]);
            run_product(bfloat, small_tile, SMELT_BFLOAT16, devices[d], sizes[i][0], sizes[i][1],
                        sizes[i][2]);
        }
    smelt_function_release(half);
    smelt_function_release(bfloat);
}

static void slices_of_slices(void **s) {
    (void)s;
    smelt_function *probe = function_of(library, "probe");
    smelt_array *a = numbers(SMELT_FLOAT16, (smelt_shape){2, {16, 24}}),
                *b = numbers(SMELT_FLOAT16, (smelt_shape){2, {24, 16}}),
                *c = filled(SMELT_FLOAT32, (smelt_shape){2, {16, 16}}, NAN);
    for (int d = 0; d < 2; d++) {
        succeed(smelt_function_run(
            probe, &(smelt_dispatch_desc){.buffers = {{.array = a}, {.array = b}, {.array = c}},
                                          .groups = {1},
                                          .threadgroup = {128},
                                          .device = devices[d]}));
        check_product(a, b, c);
    }
    smelt_array_release(a), smelt_array_release(b), smelt_array_release(c), smelt_function_release(probe);
}

static void extents_and_strides_arrive(void **s) {
    (void)s;
    smelt_function *layout = function_of(library, "layout");
    smelt_array *all = filled(SMELT_UINT8, (smelt_shape){3, {3, 6, 10}}, 0), *a,
                *v = numbers(SMELT_FLOAT32, (smelt_shape){1, {65535}}),
                *out = filled(SMELT_INT64, (smelt_shape){1, {9}}, -1);
    for (int i = 0; i < 180; i++) ((uint8_t *)smelt_array_data(all))[i] = (uint8_t)i;
    ((float *)smelt_array_data(v))[4] = 12345;
    succeed(smelt_array_view(all, (smelt_shape){3, {3, 5, 7}}, (int64_t[]){60, 10, 1}, 2, &a));
    for (int d = 0; d < 2; d++) {
        succeed(smelt_array_fill(out, -1));
        succeed(smelt_function_run(
            layout,
            &(smelt_dispatch_desc){.buffers = {[0] = {.array = out}, [3] = {.array = v}, [5] = {.array = a}},
                                   .grid = {1},
                                   .threadgroup = {1},
                                   .device = devices[d]}));
        static const int64_t wanted[] = {7, 5, 3, 1, 10, 60, 2 + 3 + 20 + 60, 65535, 12345};
        assert_memory_equal(smelt_array_data(out), wanted, sizeof wanted);
    }
    smelt_array_release(a), smelt_array_release(all), smelt_array_release(v), smelt_array_release(out);
    smelt_function_release(layout);
}

static double e4m3(unsigned code) {
    double magnitude = code & 120 ? ldexp(8 + (code & 7), (int)(code >> 3 & 15) - 10) : ldexp(code & 7, -9);
    return code & 128 ? -magnitude : magnitude;
}

static void bytes_are_packed_formats(void **s) {
    (void)s;
    smelt_function *codes = function_of(library, "codes");
    smelt_array *a = filled(SMELT_UINT8, (smelt_shape){2, {5, 8}}, 0),
                *b = filled(SMELT_UINT8, (smelt_shape){2, {5, 16}}, 0),
                *out = filled(SMELT_FLOAT32, (smelt_shape){2, {5, 16}}, NAN);
    uint8_t *nibbles = smelt_array_data(a), *bytes = smelt_array_data(b);
    for (int i = 0; i < 40; i++) nibbles[i] = (uint8_t)random_below(256);
    for (int i = 0; i < 80; i++) bytes[i] = (uint8_t)(random_below(127) | random_below(2) << 7);
    for (int d = 0; d < 2; d++) {
        succeed(smelt_function_run(
            codes, &(smelt_dispatch_desc){.buffers = {{.array = a}, {.array = b}, {.array = out}},
                                          .grid = {16, 5},
                                          .threadgroup = {16},
                                          .device = devices[d]}));
        const float *found = smelt_array_data(out);
        for (int i = 0; i < 80; i++) {
            double wanted = (double)(nibbles[i / 2] >> i % 2 * 4 & 15) + e4m3(bytes[i]);
            if (found[i] != (float)wanted)
                FAIL_TEST("element %d is %g, expected %g", i, (double)found[i], wanted);
        }
    }
    smelt_array_release(a), smelt_array_release(b), smelt_array_release(out), smelt_function_release(codes);
}

static smelt_tensor *quantised(smelt_array *reals, int element) {
    smelt_tensor *tensor;
    succeed(smelt_tensor_quantise(reals, &(smelt_quantise_desc){.element = element}, &tensor, NULL));
    return tensor;
}

/* C = A B' of MXFP8 tensors and float32, against float64 of the dequantised values. On a GPU the operands are
 * rounded to what tensor cores take, which holds them exactly. */
static void run_scaled(smelt_function *product, struct tile tile) {
    enum { M = 70, N = 45, K = 96 };
    smelt_array *x = numbers(SMELT_FLOAT32, (smelt_shape){2, {M, K}}),
                *y = numbers(SMELT_FLOAT32, (smelt_shape){2, {N, K}}), *c, *left, *right;
    for (int i = 0; i < M * K; i++) ((float *)smelt_array_data(x))[i] *= (float)(1 << i / 32 % 9);
    for (int i = 0; i < N * K; i++) ((float *)smelt_array_data(y))[i] /= (float)(1 << i / 32 % 7);
    smelt_tensor *a = quantised(x, SMELT_FP8_E4M3), *b = quantised(y, SMELT_FP8_E4M3), *out;
    succeed(smelt_tensor_dequantise(a, SMELT_FLOAT64, &left));
    succeed(smelt_tensor_dequantise(b, SMELT_FLOAT64, &right));
    succeed(smelt_tensor_create(
        &(smelt_tensor_desc){.element = SMELT_FLOAT32, .ndim = 2, .dimensions = {N, M}, .strides = {1, 64}},
        &out));
    const double *p = smelt_array_data(left), *q = smelt_array_data(right);
    for (int d = 0; d < 2; d++) {
        static const char *const names[SMELT_MAX_BUFFERS] = {"C", "A", "B"};
        succeed(smelt_tensor_array(out, SMELT_PLANE_DATA, &c));
        succeed(smelt_array_fill(c, (double)NAN));
        succeed(smelt_function_run(
            product, &(smelt_dispatch_desc){.buffers = {{.tensor = out}, {.tensor = a}, {.tensor = b}},
                                            .names = names,
                                            .groups = {(N + tile.n - 1) / tile.n, (M + tile.m - 1) / tile.m},
                                            .threadgroup = {tile.threads},
                                            .device = devices[d]}));
        double *found = as_reals(c);
        for (int r = 0; r < M; r++)
            for (int n = 0; n < N; n++) {
                double sum = 0, absolute = 0;
                for (int k = 0; k < K; k++)
                    sum += p[r * K + k] * q[n * K + k], absolute += fabs(p[r * K + k] * q[n * K + k]);
                if (!(fabs(found[r * N + n] - sum) <= (K + 4) * 0x1p-24 * absolute))
                    FAIL_TEST("element (%d, %d) is %.9g, expected %.9g", r, n, found[r * N + n], sum);
            }
        free(found);
        smelt_array_release(c);
    }
    smelt_tensor_release(a), smelt_tensor_release(b), smelt_tensor_release(out);
    smelt_array *list[] = {x, y, left, right};
    for (int i = 0; i < 4; i++) smelt_array_release(list[i]);
}

static void tensors_bring_their_scales(void **s) {
    (void)s;
    smelt_function *product = function_of(library, "scaled_product");
    run_scaled(product, (struct tile){32, 32, 128});
    smelt_function_release(product);
}

/* ---- The programs of kernels/tensor with tensors as arguments. */

static smelt_library *shipped(const char *name) {
    smelt_library *from;
    char file[128];
    snprintf(file, sizeof file, "kernels/tensor/%s", name);
    succeed(smelt_library_create(&(smelt_library_desc){.path = test_source(SMELT_SOURCES, file)}, &from));
    return from;
}

static void shipped_products(void **s) {
    (void)s;
    static const struct {
        const char *name;
        struct tile tile;
        smelt_dtype dtype;
    } products[] = {{"matmul_half_64_32", {64, 32, 128}, SMELT_FLOAT16},
                    {"matmul_half_128_256", {128, 256, 256}, SMELT_FLOAT16},
                    {"matmul_bfloat_64_32", {64, 32, 128}, SMELT_BFLOAT16},
                    {"matmul_bfloat_128_256", {128, 256, 256}, SMELT_BFLOAT16},
                    {"matmul_float_64_32", {64, 32, 128}, SMELT_FLOAT32}};
    smelt_library *from = shipped("matmul2d.metal");
    for (int i = 0; i < 5; i++) {
        smelt_function *product = function_of(from, products[i].name);
        for (int d = 0; d < 2; d++)
            run_product(product, products[i].tile, products[i].dtype, devices[d], 150, 300, 77);
        smelt_function_release(product);
    }
    smelt_library_release(from);
}

static void shipped_products_of_buffers(void **s) {
    (void)s;
    static const int32_t size[3] = {150, 300, 264}; /* M, N, K */
    smelt_library *from = shipped("matmul2d.metal");
    smelt_function *product = function_of(from, "matmul_inline_bfloat_128_256");
    smelt_array *a = numbers(SMELT_BFLOAT16, (smelt_shape){2, {size[0], size[2]}}),
                *b = numbers(SMELT_BFLOAT16, (smelt_shape){2, {size[2], size[1]}}),
                *c = filled(SMELT_FLOAT32, (smelt_shape){2, {size[0], size[1]}}, 0);
    for (int d = 0; d < 2; d++) {
        succeed(smelt_array_fill(c, (double)NAN));
        succeed(smelt_function_run(
            product,
            &(smelt_dispatch_desc){
                .buffers = {{.array = a}, {.array = b}, {.array = c}, {.bytes = size, .size = sizeof size}},
                .groups = {2, 2},
                .threadgroup = {256},
                .device = devices[d]}));
        check_product(a, b, c);
    }
    smelt_array_release(a), smelt_array_release(b), smelt_array_release(c);
    smelt_function_release(product), smelt_library_release(from);
}

static void shipped_products_with_scales(void **s) {
    (void)s;
    smelt_library *from = shipped("matmul2d_mx.metal");
    smelt_function *small = function_of(from, "matmul_mx_32_32"),
                   *large = function_of(from, "matmul_mx_128_128");
    run_scaled(small, (struct tile){32, 32, 128});
    run_scaled(large, (struct tile){128, 128, 128});
    smelt_function_release(small), smelt_function_release(large), smelt_library_release(from);
}

static void pointers_take_the_data(void **s) {
    (void)s;
    smelt_function *sum = function_of(library, "sum_of_bytes");
    smelt_array *out = filled(SMELT_INT32, (smelt_shape){1, {1}}, -1);
    smelt_tensor *tensor;
    succeed(smelt_tensor_create(&(smelt_tensor_desc){.element = SMELT_UINT4, .ndim = 1, .dimensions = {64}},
                                &tensor));
    uint8_t bytes[32];
    int wanted = 0, count = 32;
    for (int i = 0; i < 32; i++) wanted += bytes[i] = (uint8_t)random_below(256);
    succeed(smelt_tensor_write_slice(tensor, NULL, bytes, sizeof bytes));
    static const char *const names[SMELT_MAX_BUFFERS] = {NULL, NULL, [5] = "n"};
    succeed(smelt_function_run(
        sum, &(smelt_dispatch_desc){
                 .buffers = {{.tensor = tensor}, {.array = out}, [5] = {.bytes = &count, .size = 4}},
                 .names = names,
                 .grid = {1},
                 .threadgroup = {1},
                 .device = devices[0]}));
    assert_int_equal(*(int *)smelt_array_data(out), wanted);
    smelt_array_release(out), smelt_tensor_release(tensor), smelt_function_release(sum);
}

static void no_tensor(const char *name, smelt_tensor_desc desc, const char *words) {
    smelt_function *function = function_of(library, name);
    smelt_tensor *tensor;
    smelt_array *out = filled(SMELT_INT32, (smelt_shape){1, {4}}, 0);
    succeed(smelt_tensor_create(&desc, &tensor));
    smelt_status status = smelt_function_run(
        function, &(smelt_dispatch_desc){
                      .buffers = {{.tensor = tensor}, {.array = out}}, .grid = {1}, .threadgroup = {1}});
    if (status != SMELT_ERROR_INVALID_ARGUMENT || strcmp(smelt_error(), words) != 0)
        FAIL_TEST("%s: \"%s\", expected \"%s\"", smelt_status_name(status), smelt_error(), words);
    smelt_array_release(out), smelt_tensor_release(tensor), smelt_function_release(function);
}

static void unsuitable_tensors_are_refused(void **s) {
    (void)s;
    no_tensor("extent_alone",
              (smelt_tensor_desc){.element = SMELT_FP8_E4M3, .ndim = 2, .dimensions = {32, 2}},
              "kernel 'extent_alone': buffer 0 ('A') is a tensor of float16; got one of fp8_e4m3");
    no_tensor(
        "extent_alone", (smelt_tensor_desc){.element = SMELT_FLOAT16, .ndim = 1, .dimensions = {32}},
        "kernel 'extent_alone': buffer 0 ('A') is a tensor of rank 2; expected as many dimensions, got 1");
    no_tensor(
        "extent_alone",
        (smelt_tensor_desc){
            .element = SMELT_FLOAT16, .ndim = 2, .dimensions = {32, 2}, .scales = {.element = SMELT_UE8M0}},
        "kernel 'extent_alone': buffer 0 ('A') is a tensor with no scales; got one with scales of ue8m0");
    no_tensor("scaled", (smelt_tensor_desc){.element = SMELT_FP8_E4M3, .ndim = 2, .dimensions = {32, 2}},
              "kernel 'scaled': buffer 0 ('A') is a tensor with scales of ue8m0; got one with no scales");
    no_tensor("scaled",
              (smelt_tensor_desc){.element = SMELT_FP8_E4M3,
                                  .ndim = 2,
                                  .dimensions = {64, 2},
                                  .scales = {.element = SMELT_UE8M0, .block = {64}}},
              "kernel 'scaled': buffer 0 ('A') has a scale per 32 elements of dimension 0 (0 is the "
              "innermost); got one per 64");
    smelt_function *unused = function_of(library, "unused");
    static const char *const names[SMELT_MAX_BUFFERS] = {"x"};
    assert_int_equal(
        smelt_function_run(unused, &(smelt_dispatch_desc){.names = names, .grid = {1}, .threadgroup = {1}}),
        SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(), "kernel 'unused': names[0] is 'x'; expected a buffer's name: A, out");
    smelt_function_release(unused);
}

static void refused(const char *name, smelt_dtype dtype, smelt_shape shape, const int64_t *strides,
                    const char *words) {
    smelt_function *function = function_of(library, name);
    smelt_array *whole = filled(SMELT_UINT8, (smelt_shape){1, {4096}}, 0), *typed, *array;
    smelt_array *out = filled(SMELT_INT32, (smelt_shape){1, {4}}, 0);
    succeed(smelt_array_reinterpret(whole, dtype, &typed));
    succeed(smelt_array_view(typed, shape, strides, 0, &array));
    smelt_status status =
        smelt_function_run(function, &(smelt_dispatch_desc){.buffers = {{.array = array}, {.array = out}},
                                                            .grid = {1},
                                                            .threadgroup = {1},
                                                            .device = devices[0]});
    if (status != SMELT_ERROR_INVALID_ARGUMENT || strcmp(smelt_error(), words) != 0)
        FAIL_TEST("%s: \"%s\", expected \"%s\"", smelt_status_name(status), smelt_error(), words);
    smelt_array_release(array), smelt_array_release(typed), smelt_array_release(whole),
        smelt_array_release(out);
    smelt_function_release(function);
}

static void unsuitable_arrays_are_refused(void **s) {
    (void)s;
    refused("extent_alone", SMELT_FLOAT32, (smelt_shape){2, {4, 4}}, (int64_t[]){4, 1},
            "kernel 'extent_alone': buffer 0 ('A') is a tensor of float16; expected an array of float16, got "
            "float32");
    refused(
        "extent_alone", SMELT_FLOAT16, (smelt_shape){1, {4}}, (int64_t[]){1},
        "kernel 'extent_alone': buffer 0 ('A') is a tensor of rank 2; expected as many dimensions, got 1");
    refused(
        "extent_alone", SMELT_FLOAT16, (smelt_shape){2, {4, 4}}, (int64_t[]){1, 4},
        "kernel 'extent_alone': buffer 0 ('A'): the elements of dimension 0, the innermost, are 4 apart; a "
        "tensor's must be adjacent: copy the array");
    refused(
        "scaled", SMELT_UINT8, (smelt_shape){2, {4, 32}}, (int64_t[]){32, 1},
        "kernel 'scaled': buffer 0 ('A') is a tensor with scales of ue8m0, which an array lacks; expected a "
        "tensor");
    smelt_function *layout = function_of(library, "layout");
    smelt_array *a = filled(SMELT_UINT8, (smelt_shape){3, {3, 5, 8}}, 0),
                *v = filled(SMELT_FLOAT32, (smelt_shape){1, {65536}}, 0),
                *out = filled(SMELT_INT64, (smelt_shape){1, {9}}, 0);
    smelt_dispatch_desc desc = {.buffers = {[0] = {.array = out}, [3] = {.array = v}, [5] = {.array = a}},
                                .grid = {1},
                                .threadgroup = {1}};
    assert_int_equal(smelt_function_run(layout, &desc), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(),
                        "kernel 'layout': buffer 5 ('A') has the static extent 7 in dimension 0 (0 is "
                        "the innermost); got 8");
    smelt_array_release(a);
    a = filled(SMELT_UINT8, (smelt_shape){3, {3, 5, 7}}, 0);
    desc.buffers[5].array = a;
    assert_int_equal(smelt_function_run(layout, &desc), SMELT_ERROR_LIMIT);
    assert_string_equal(smelt_error(),
                        "kernel 'layout': the extent of dimension 0 (0 is the innermost) of buffer 3 ('V') "
                        "is 65536; its index type holds at most 65535");
    desc.buffers[3] = (smelt_buffer){.bytes = &state, .size = sizeof state};
    assert_int_equal(smelt_function_run(layout, &desc), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(
        smelt_error(),
        "kernel 'layout': buffer 3 ('V') is a tensor; expected a tensor or an array, not bytes");
    desc.buffers[3] = (smelt_buffer){0};
    assert_int_equal(smelt_function_run(layout, &desc), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(), "kernel 'layout': buffer 3 ('V') is missing");
    smelt_array_release(a), smelt_array_release(v), smelt_array_release(out), smelt_function_release(layout);
}

static int run_one(smelt_function *function, smelt_array *a) {
    smelt_array *out = filled(SMELT_INT32, (smelt_shape){1, {1}}, 0);
    succeed(smelt_function_run(function, &(smelt_dispatch_desc){.buffers = {{.array = a}, {.array = out}},
                                                                .grid = {1},
                                                                .threadgroup = {1},
                                                                .device = devices[0]}));
    int value = *(int *)smelt_array_data(out);
    smelt_array_release(out);
    return value;
}

static void only_what_the_code_uses_is_bound(void **s) {
    (void)s;
    smelt_function *unused = function_of(library, "unused"), *alone = function_of(library, "extent_alone"),
                   *guarded[2];
    smelt_array *matrix = filled(SMELT_FLOAT32, (smelt_shape){2, {5, 6}}, 0),
                *row = filled(SMELT_FLOAT32, (smelt_shape){1, {9}}, 0),
                *halves = filled(SMELT_FLOAT16, (smelt_shape){2, {5, 6}}, 0),
                *empty = filled(SMELT_FLOAT16, (smelt_shape){2, {5, 0}}, 0);
    assert_int_equal(run_one(unused, NULL), 7);
    assert_int_equal(run_one(alone, halves), 6);
    assert_int_equal(run_one(alone, empty), 0);
    for (int wide = 0; wide < 2; wide++) {
        succeed(smelt_library_function(
            library,
            &(smelt_function_desc){.name = "guarded",
                                   .constants = {{.index = 0, .dtype = SMELT_BOOL, .value.integer = wide}}},
            &guarded[wide]));
        assert_int_equal(run_one(guarded[wide], wide ? matrix : row), wide ? 5 : -9);
        smelt_function_release(guarded[wide]);
    }
    smelt_parameter list[4];
    int count;
    succeed(smelt_function_parameters(alone, &(smelt_dispatch_desc){.grid = {1}, .threadgroup = {1}}, list, 4,
                                      &count));
    assert_int_equal(count, 2);
    assert_true(list[0].used && list[0].rank == 2 && list[0].element == SMELT_FLOAT16 &&
                list[0].dtype == SMELT_FLOAT16);
    assert_true(list[1].used && list[1].rank == 0 && list[1].element == 0);
    smelt_function_release(unused), smelt_function_release(alone);
    smelt_array_release(matrix), smelt_array_release(row), smelt_array_release(halves),
        smelt_array_release(empty);
}

static void packages_keep_tensors(void **s) {
    (void)s;
    char path[] = "/tmp/smelt-test-tensors-XXXXXX", *text;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    smelt_library *packaged;
    succeed(smelt_library_build(
        library,
        &(smelt_build_desc){.path = path, .entries = (const char *const[]){"product_half", "scaled", NULL}}));
    succeed(smelt_library_create(&(smelt_library_desc){.path = path}, &packaged));
    smelt_function *product = function_of(packaged, "product_half");
    run_product(product, small_tile, SMELT_FLOAT16, devices[0], 70, 33, 40);
    succeed(smelt_library_describe(packaged, NULL, &text));
    if (!strstr(text, "buffer 0 'A', tensor of float16, extents any x any\n") ||
        !strstr(text, "buffer 0 'A', tensor of fp8_e4m3, extents any x any, scales of ue8m0 per 32 x 1\n"))
        FAIL_TEST("%s", text);
    smelt_free(text);
    smelt_function_release(product);
    smelt_library_release(packaged);
    unlink(path);
}

static int open_library(void **s) {
    (void)s;
    devices[0] = test_device(), devices[1] = test_oracle();
    return smelt_library_create(&(smelt_library_desc){.source = source}, &library);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_of_strided_arrays),
                                       cmocka_unit_test(slices_of_slices),
                                       cmocka_unit_test(extents_and_strides_arrive),
                                       cmocka_unit_test(bytes_are_packed_formats),
                                       cmocka_unit_test(unsuitable_arrays_are_refused),
                                       cmocka_unit_test(only_what_the_code_uses_is_bound),
                                       cmocka_unit_test(tensors_bring_their_scales),
                                       cmocka_unit_test(pointers_take_the_data),
                                       cmocka_unit_test(unsuitable_tensors_are_refused),
                                       cmocka_unit_test(packages_keep_tensors),
                                       cmocka_unit_test(shipped_products),
                                       cmocka_unit_test(shipped_products_of_buffers),
                                       cmocka_unit_test(shipped_products_with_scales)};
    return cmocka_run_group_tests(tests, open_library, NULL);
}
