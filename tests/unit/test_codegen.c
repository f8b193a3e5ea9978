/* Code for CPUs this machine need not be: which instructions are in it. */
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

/* The assembler text of a kernel, made for a CPU by LLVM's names. The caller frees it. */
static char *assembly(const char *source, const char *entry, enum engine engine, const char *cpu,
                      const char *features) {
    const struct compiler *compiler;
    struct translation translation;
    struct entry_bitcode bitcode;
    struct compile_result result;
    struct translation_request request = {.text = source, .length = strlen(source)};
    assert_int_equal(compiler_open(&compiler), SMELT_OK);
    assert_int_equal(translation_create(&request, &translation), SMELT_OK);
    if (compile_bitcode(&translation, translation_entry(&translation, entry), &bitcode) != SMELT_OK)
        FAIL_TEST("%s", smelt_error());
    struct compile_request wanted = {.bitcode = bitcode.bytes.data,
                                     .bitcode_size = bitcode.bytes.length,
                                     .cpu = cpu,
                                     .features = features,
                                     .private_limit = 65536,
                                     .shape = {.engine = engine, .small = 1},
                                     .output = COMPILE_ASM};
    if (compiler->compile(&wanted, &result) != SMELT_OK) FAIL_TEST("%s", result.message);
    image_free(&result.image);
    free(result.constants);
    text_free(&bitcode.bytes);
    translation_free(&translation);
    return result.text;
}

static void assert_contains(const char *text, const char *word, bool expected) {
    if ((strstr(text, word) != NULL) != expected)
        FAIL_TEST("the code %s '%s'", expected ? "lacks" : "has", word);
}

static void no_sse4a_among_wide_code(void **state) {
    (void)state;
    static const char *const slow[] = {"\tinsertq\t", "\textrq\t", "\tmovntss\t", "\tmovntsd\t"};
    char *text = assembly(dot_of_bytes, "dot_rows", ENGINE_SIMD, "znver3", ZEN3);
    assert_contains(text, "%ymm", true);
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) assert_contains(text, slow[i], false);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_sse4a_among_wide_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
