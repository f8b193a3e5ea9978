/* Products of matrices with scales, of which launches on a GPU make copies in bfloat: the same bits as
 * without copies, and sums of products in float64 but for K + 4 units in the last place of float32. Of slices
 * of slices, too. */
#include "unit.h"

#include "../device.h"
#include "smelt/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "#include <metal_stdlib>\n"
    "#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n"
    "using namespace metal;\n"
    "using namespace mpp::tensor_ops;\n"
    "template <class F> using scaled = tensor<device F, dextents<int, 2>, tensor_handle,\n"
    "    tensor_blockwise<tensor_plane_scales, device metal_fp8_ue8m0_format, 32, 1>>;\n"
    "template <class T> using plain = tensor<device T, dextents<int, 2>>;\n"
    "template <class L, class R, int m, int n, bool tl, bool tr> kernel void product(L A [[buffer(0)]],\n"
    "    R B [[buffer(1)]], plain<float> C [[buffer(2)]], constant int *from [[buffer(3)]],\n"
    "    uint2 group [[threadgroup_position_in_grid]]) {\n"
    "  constexpr auto rest = static_cast<int>(dynamic_extent);\n"
    "  matmul2d<matmul2d_descriptor(m, n, rest, tl, tr), execution_simdgroups<4>> op;\n"
    "  auto a = A.slice(from[0], from[1]).slice(from[0], from[1]);\n"
    "  auto b = B.slice(from[0], from[1]).slice(from[0], from[1]);\n"
    "  int x = group.x * n, y = group.y * m;\n"
    "  auto rows = tl ? a.slice(y, 0) : a.slice(0, y);\n"
    "  auto columns = tr ? b.slice(0, x) : b.slice(x, 0);\n"
    "  auto tile = C.slice(x, y);\n"
    "  op.run(rows, columns, tile);\n"
    "}\n"
    "#define PRODUCT(name, L, R, m, n, tl, tr) template [[host_name(name)]] kernel void product<L, R, m, "
    "n,\\\n"
    "    tl, tr>(L, R, plain<float>, constant int *, uint2);\n"
    "using e4m3 = scaled<metal_fp8_e4m3_format>;\n"
    "using e5m2 = scaled<metal_fp8_e5m2_format>;\n"
    "using fp4 = scaled<metal_fp4_e2m1_format>;\n"
    "PRODUCT(\"e4m3\", e4m3, e4m3, 128, 128, false, true)\n"
    "PRODUCT(\"e4m3 tn\", e4m3, e4m3, 64, 128, true, false)\n"
    "PRODUCT(\"e5m2\", e5m2, e5m2, 64, 64, false, true)\n"
    "PRODUCT(\"fp4\", fp4, fp4, 128, 64, false, true)\n"
    "PRODUCT(\"int8\", plain<bfloat>, scaled<char>, 64, 128, false, true)\n"
    "PRODUCT(\"int4\", plain<bfloat>, scaled<int4b_format>, 64, 128, false, true)\n";

static const struct problem {
    const char *name;
    int left, right, m, n;
    bool transposed_left, transposed_right;
} problems[] = {{"e4m3", SMELT_FP8_E4M3, SMELT_FP8_E4M3, 128, 128, false, true},
                {"e4m3 tn", SMELT_FP8_E4M3, SMELT_FP8_E4M3, 64, 128, true, false},
                {"e5m2", SMELT_FP8_E5M2, SMELT_FP8_E5M2, 64, 64, false, true},
                {"fp4", SMELT_FP4_E2M1, SMELT_FP4_E2M1, 128, 64, false, true},
                {"int8", SMELT_BFLOAT16, SMELT_INT8, 64, 128, false, true},
                {"int4", SMELT_BFLOAT16, SMELT_INT4, 64, 128, false, true}};

static uint64_t state = 1;

static unsigned draw(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) % below);
}

struct operand {
    smelt_tensor *tensor;
    double *values;
};

static double value_of_code(int element, unsigned code) {
    if (element == SMELT_INT8) return (double)(int8_t)code;
    if (element != SMELT_BFLOAT16) return smelt_element_decode(element, code);
    uint32_t bits = code << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rows of `width` random elements. */
static struct operand operand(int element, int64_t width, int64_t height) {
    bool scaled = element != SMELT_BFLOAT16;
    struct operand out = {.values = calloc((size_t)(width * height), sizeof(double))};
    smelt_tensor_desc desc = {
        .element = element, .ndim = 2, .dimensions = {width, height}, .device = test_device()};
    if (scaled) desc.scales = (smelt_tensor_plane_desc){.element = SMELT_UE8M0, .block = {32, 1}};
    OK(smelt_tensor_create(&desc, &out.tensor));
    int bits = smelt_element_bits(element);
    size_t bytes = (size_t)(width * height * bits / 8), scale_bytes = (size_t)(width / 32 * height);
    uint8_t *codes = calloc(bytes, 1), *scales = malloc(scale_bytes);
    for (size_t i = 0; i < scale_bytes; i++) scales[i] = (uint8_t)(121 + draw(12));
    for (int64_t i = 0; i < width * height; i++) {
        unsigned code = draw(1u << bits);
        if (!scaled) code = (code & 0x807F) | (126 + draw(2)) << 7;
        while (!isfinite(value_of_code(element, code))) code = draw(1u << bits);
        for (int b = 0; b < bits; b += 4)
            codes[(i * bits + b) / 8] |= (uint8_t)((code >> b & 15) << (i * bits + b) % 8);
        double scale = scaled ? ldexp(1, scales[i / width * (width / 32) + i % width / 32] - 127) : 1;
        out.values[i] = value_of_code(element, code) * scale;
    }
    OK(smelt_tensor_write_slice(out.tensor, NULL, codes, bytes));
    if (scaled) {
        smelt_tensor_slice plane = {.plane = SMELT_PLANE_SCALES, .size = {width / 32, height}};
        OK(smelt_tensor_write_slice(out.tensor, &plane, scales, scale_bytes));
    }
    free(codes);
    free(scales);
    return out;
}

/* Not a number at first. */
static smelt_array *new_result(int64_t M, int64_t N) {
    smelt_array *out;
    OK(smelt_array_create_on(test_device(), SMELT_FLOAT32, (smelt_shape){2, {M, N}}, &out));
    OK(smelt_array_fill(out, NAN));
    return out;
}

static void launch(smelt_function *function, const struct problem *p, const struct operand *a,
                   const struct operand *b, smelt_array *out, const int32_t from[2], smelt_stream *stream) {
    smelt_array *place;
    smelt_tensor *result;
    int64_t M = smelt_array_shape(out).size[0], N = smelt_array_shape(out).size[1];
    OK(smelt_tensor_from_array(out, 0, &result));
    OK(smelt_array_from_values(SMELT_INT32, (smelt_shape){1, {2}}, from, &place));
    smelt_dispatch_desc desc = {
        .buffers = {{.tensor = a->tensor}, {.tensor = b->tensor}, {.tensor = result}, {.array = place}},
        .groups = {(N + p->n - 1) / p->n, (M + p->m - 1) / p->m, 1},
        .threadgroup = {128, 1, 1},
        .device = test_device(),
        .stream = stream};
    OK(smelt_function_run(function, &desc));
    smelt_tensor_release(result);
    smelt_array_release(place);
}

static smelt_array *run(smelt_function *function, const struct problem *p, const struct operand *a,
                        const struct operand *b, int64_t M, int64_t N, const int32_t from[2],
                        const char *setting) {
    smelt_array *out = new_result(M, N);
    setenv("SMELT_GPU_EXPAND", setting, 1);
    launch(function, p, a, b, out, from, NULL);
    OK(test_to_host(&out));
    return out;
}

static void compare(const struct problem *p, const float *found, const struct operand *a,
                    const struct operand *b, int64_t M, int64_t N, int64_t K, const int32_t from[2],
                    int64_t widths[2]) {
    int64_t x = 2 * from[0], y = 2 * from[1];
    for (int64_t r = 0; r < M; r++)
        for (int64_t c = 0; c < N; c++) {
            double sum = 0, absolute = 0;
            for (int64_t k = 0; k < K; k++) {
                double left = p->transposed_left ? a->values[(y + k) * widths[0] + x + r]
                                                 : a->values[(y + r) * widths[0] + x + k];
                double right = p->transposed_right ? b->values[(y + c) * widths[1] + x + k]
                                                   : b->values[(y + k) * widths[1] + x + c];
                sum += left * right, absolute += fabs(left * right);
            }
            double bound = (double)(K + 4) * 0x1p-24 * absolute;
            if (!(fabs((double)found[r * N + c] - sum) <= bound))
                FAIL_TEST("%s, %lld x %lld x %lld from (%d, %d): element (%lld, %lld) is %.9g, expected %.9g",
                          p->name, (long long)M, (long long)N, (long long)K, from[0], from[1], (long long)r,
                          (long long)c, (double)found[r * N + c], sum);
        }
}

/* M, N, K: of the operands, before they are sliced at 2 * from. */
static void check(smelt_library *library, const struct problem *p, int64_t M, int64_t N, int64_t K,
                  const int32_t from[2]) {
    smelt_function *function;
    OK(smelt_library_function(library, &(smelt_function_desc){.name = p->name}, &function));
    int64_t widths[2] = {p->transposed_left ? M : K, p->transposed_right ? K : N};
    struct operand a = operand(p->left, widths[0], p->transposed_left ? K : M);
    struct operand b = operand(p->right, widths[1], p->transposed_right ? N : K);
    M -= 2 * from[!p->transposed_left], N -= 2 * from[p->transposed_right];
    K -= 2 * from[p->transposed_left];
    smelt_array *without = run(function, p, &a, &b, M, N, from, "never");
    smelt_array *with = run(function, p, &a, &b, M, N, from, "always");
    if (memcmp(smelt_array_data(without), smelt_array_data(with), (size_t)(M * N) * sizeof(float)) != 0)
        FAIL_TEST("%s, %lld x %lld x %lld: copies change the bits", p->name, (long long)M, (long long)N,
                  (long long)K);
    compare(p, smelt_array_data(with), &a, &b, M, N, K, from, widths);
    smelt_array_release(without);
    smelt_array_release(with);
    smelt_tensor_release(a.tensor);
    smelt_tensor_release(b.tensor);
    free(a.values);
    free(b.values);
    smelt_function_release(function);
}

static void assert_same(smelt_array *found, smelt_array *expected, const char *what) {
    size_t bytes = (size_t)smelt_array_size(expected) * sizeof(float);
    OK(test_to_host(&found));
    if (memcmp(smelt_array_data(found), smelt_array_data(expected), bytes) != 0)
        FAIL_TEST("%s: other bits", what);
    smelt_array_release(found);
}

/* Launches of different sizes, so that blocks of one are of use to the other. */
static void streams_and_recordings_have_copies_of_their_own(void **unused) {
    (void)unused;
    enum { SIZES = 2, STREAMS = 3, ROUNDS = 4 };
    static const int64_t sides[SIZES] = {256, 512};
    static const int32_t from[2] = {0, 0};
    const struct problem *p = &problems[0];
    smelt_library *library;
    smelt_function *function;
    smelt_stream *streams[STREAMS];
    smelt_recording *recording;
    smelt_array *expected[SIZES], *found[STREAMS][ROUNDS];
    struct operand a[SIZES], b[SIZES];
    if (!test_device_has_memory()) skip();
    OK(smelt_library_create(&(smelt_library_desc){.source = source}, &library));
    OK(smelt_library_function(library, &(smelt_function_desc){.name = p->name}, &function));
    for (int i = 0; i < SIZES; i++) {
        a[i] = operand(p->left, sides[i], sides[i]), b[i] = operand(p->right, sides[i], sides[i]);
        expected[i] = run(function, p, &a[i], &b[i], sides[i], sides[i], from, "never");
    }
    setenv("SMELT_GPU_EXPAND", "always", 1);
    for (int s = 0; s < STREAMS; s++) OK(smelt_stream_create(test_device(), &streams[s]));
    for (int s = 0; s < STREAMS; s++)
        for (int r = 0; r < ROUNDS; r++) found[s][r] = new_result(sides[r % SIZES], sides[r % SIZES]);
    OK(smelt_stream_record_begin(streams[0]));
    for (int r = 0; r < ROUNDS; r++)
        launch(function, p, &a[r % SIZES], &b[r % SIZES], found[0][r], from, streams[0]);
    OK(smelt_stream_record_end(streams[0], &recording));
    for (int r = 0; r < ROUNDS; r++) {
        OK(smelt_recording_replay(recording, streams[r % STREAMS]));
        for (int s = 1; s < STREAMS; s++)
            launch(function, p, &a[r % SIZES], &b[r % SIZES], found[s][r], from, streams[s]);
    }
    for (int s = 0; s < STREAMS; s++)
        for (int r = 0; r < ROUNDS; r++)
            assert_same(found[s][r], expected[r % SIZES], s ? "a launch on a stream" : "a replay");
    for (int i = 0; i < SIZES; i++) {
        smelt_array_release(expected[i]);
        smelt_tensor_release(a[i].tensor), smelt_tensor_release(b[i].tensor);
        free(a[i].values), free(b[i].values);
    }
    smelt_recording_release(recording);
    for (int s = 0; s < STREAMS; s++) smelt_stream_release(streams[s]);
    smelt_function_release(function);
    smelt_library_release(library);
}

static void copies_change_no_bit(void **unused) {
    (void)unused;
    smelt_library *library;
    OK(smelt_library_create(&(smelt_library_desc){.source = source}, &library));
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        check(library, &problems[i], 192, 224, 288, (int32_t[]){0, 0});
        check(library, &problems[i], 160, 96, 416, (int32_t[]){32, 8});
    }
    smelt_library_release(library);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_change_no_bit),
                                       cmocka_unit_test(streams_and_recordings_have_copies_of_their_own)};
    test_quick_code();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
