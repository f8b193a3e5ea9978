/* Code for CPUs other than this machine's: which instructions it contains, and which functions it calls. */
#include "unit.h"

#include "frontend/compile.h"
#include "frontend/compiler_library.h"

#include <stdlib.h>
#include <string.h>

#define ZEN3 "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt"

static const char dot_of_bytes[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct block { half scale; int8_t value[32]; };\n"
    "kernel void dot_rows(device const block *w [[buffer(0)]], device const float *x [[buffer(1)]],\n"
    "                     device float *out [[buffer(2)]], constant int &count [[buffer(3)]],\n"
    "                     uint row [[threadgroup_position_in_grid]],\n"
    "                     ushort lane [[thread_index_in_simdgroup]]) {\n"
    "    float sum = 0;\n"
    "    for (int b = lane / 4; b < count; b += 8) {\n"
    "        device const block &k = w[row * count + b];\n"
    "        float part = 0;\n"
    "        for (int i = 0; i < 8; i++)\n"
    "            part += k.value[lane % 4 * 8 + i] * x[b * 32 + lane % 4 * 8 + i];\n"
    "        sum += part * k.scale;\n"
    "    }\n"
    "    sum = simd_sum(sum);\n"
    "    if (lane == 0) out[row] = sum;\n"
    "}\n";

/* An accumulator of bfloat in divergent loops: a float between two blocks had to be rounded again. */
static const char sums_of_bfloats[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct pair { bfloat sum; half count; bfloat most; };\n"
    "static pair step(pair p, bfloat a) {\n"
    "    p.sum += a; p.count += half(1); p.most = p.sum > p.most ? p.sum : p.most;\n"
    "    return p;\n"
    "}\n"
    "kernel void sums(device const bfloat *a, device const uint *n, device bfloat *out,\n"
    "                 uint t [[thread_position_in_grid]]) {\n"
    "    bfloat s = 0, m = a[0];\n"
    "    pair p = {0, 0, 1};\n"
    "    for (uint r = 0; r < n[0]; r++)\n"
    "        for (uint c = 0; c < n[t]; c++) {\n"
    "            s += a[r * 8 + c];\n"
    "            m = metal::max(m, s);\n"
    "            p = step(p, a[c]);\n"
    "        }\n"
    "    out[t] = s + m + p.sum + p.most + bfloat(float(p.count));\n"
    "}\n";

static const char wide_division[] =
    "#include <metal_stdlib>\n"
    "kernel void divide(device ulong *a, uint i [[thread_position_in_grid]]) {\n"
    "    a[i] = (ulong)(((unsigned __int128)a[i] << 64 | i) / (a[i] | 1));\n"
    "}\n";

/* Compiles a kernel for a CPU by LLVM's names. The caller frees the contents of `result`. */
static smelt_status compile(const char *source, struct compile_request *request,
                            struct compile_result *result) {
    const struct compiler *compiler;
    struct translation translation;
    struct entry_bitcode bitcode;
    struct translation_request text = {.text = source, .length = strlen(source)};
    assert_int_equal(compiler_open(&compiler), SMELT_OK);
    assert_int_equal(translation_create(&text, &translation), SMELT_OK);
    if (compile_bitcode(&translation, &translation.program.entries[0], &bitcode) != SMELT_OK)
        FAIL_TEST("%s", smelt_error());
    request->bitcode = bitcode.bytes.data;
    request->bitcode_size = bitcode.bytes.length;
    request->private_limit = 65536;
    request->shape.small = 1;
    smelt_status status = compiler->compile(request, result);
    text_free(&bitcode.bytes);
    translation_free(&translation);
    return status;
}

static void free_result(struct compile_result *result) {
    image_free(&result->image);
    free(result->constants);
    free(result->text);
}

/* The assembler text. The caller frees it. */
static char *assembly(const char *source, enum engine engine, const char *cpu, const char *features) {
    struct compile_result result;
    struct compile_request request = {
        .cpu = cpu, .features = features, .shape = {.engine = engine}, .output = COMPILE_ASM};
    if (compile(source, &request, &result) != SMELT_OK) FAIL_TEST("%s", result.message);
    char *text = result.text;
    result.text = NULL;
    free_result(&result);
    return text;
}

static void assert_contains(const char *text, const char *word, bool expected) {
    if ((strstr(text, word) != NULL) != expected)
        FAIL_TEST("the code %s '%s'", expected ? "lacks" : "has", word);
}

static void no_sse4a_among_wide_code(void **state) {
    (void)state;
    static const char *const slow[] = {"\tinsertq\t", "\textrq\t", "\tmovntss\t", "\tmovntsd\t"};
    char *text = assembly(dot_of_bytes, ENGINE_SIMD, "znver3", ZEN3);
    assert_contains(text, "%ymm", true);
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) assert_contains(text, slow[i], false);
    free(text);
}

static void bfloats_are_never_rounded_by_calls(void **state) {
    (void)state;
    static const char *const cpus[] = {"x86-64", "x86-64-v3", "x86-64-v4", "sapphirerapids"};
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++)
        for (enum engine engine = ENGINE_SCALAR; engine <= ENGINE_SIMD; engine++) {
            char *text = assembly(sums_of_bfloats, engine, cpus[i], NULL);
            assert_contains(text, "__truncsfbf2", false);
            assert_contains(text, "vcvtneps2bf16", false);
            free(text);
        }
}

static void what_the_runtime_lacks_does_not_compile(void **state) {
    (void)state;
    for (enum engine engine = ENGINE_SCALAR; engine <= ENGINE_SIMD; engine++) {
        struct compile_result result;
        struct compile_request request = {.cpu = "x86-64-v3", .shape = {.engine = engine}};
        assert_int_equal(compile(wide_division, &request, &result), SMELT_ERROR_UNSUPPORTED);
        assert_string_equal(result.message, "generated code needs '__udivti3', which the runtime lacks");
        free_result(&result);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_sse4a_among_wide_code),
        cmocka_unit_test(bfloats_are_never_rounded_by_calls),
        cmocka_unit_test(what_the_runtime_lacks_does_not_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
