#include "unit.h"

#include "source/attribute.h"
#include "source/signature.h"

#include <stdio.h>
#include <string.h>

static const struct signature_input inputs[] = {{"x", SMELT_FLOAT16, 2, false}};
static const struct signature_output outputs[] = {{"y", SMELT_FLOAT32, false}};

static struct signature_request request_for(const char *body) {
    return (struct signature_request){.name = "k",
                                      .body = body,
                                      .body_label = "k.body",
                                      .header_label = "k.h",
                                      .inputs = inputs,
                                      .input_count = 1,
                                      .outputs = outputs,
                                      .output_count = 1};
}

static void generate(const struct signature_request *request, struct signature *signature) {
    assert_int_equal(signature_generate(request, signature), SMELT_OK);
}

static bool has(const struct signature *signature, const char *text) {
    return strstr(text_string(&signature->text), text) != NULL;
}

static void assert_has(const struct signature *signature, const char *text) {
    if (!has(signature, text)) FAIL_TEST("no \"%s\" in:\n%s", text, text_string(&signature->text));
}

static void the_whole_text_of_a_small_kernel(void **state) {
    (void)state;
    struct signature_request request = request_for("y[thread_position_in_grid.x] = x[0];");
    request.header = "inline void f() {}";
    struct signature s;
    generate(&request, &s);
    assert_string_equal(text_string(&s.text),
                        "#line 1 \"<signature>\"\n"
                        "#line 1 \"k.h\"\n"
                        "inline void f() {}\n"
                        "#line 1 \"<signature>\"\n"
                        "[[kernel]] void custom_kernel_k(\n"
                        "    const device float16_t* x [[buffer(0)]],\n"
                        "    device float* y [[buffer(1)]],\n"
                        "    uint3 thread_position_in_grid [[thread_position_in_grid]]) {\n"
                        "#line 1 \"k.body\"\n"
                        "y[thread_position_in_grid.x] = x[0];\n"
                        "#line 1 \"<signature>\"\n"
                        "}\n");
    assert_string_equal(text_string(&s.host_name), "custom_kernel_k");
    assert_int_equal(s.argument_count, 2);
    assert_int_equal(s.arguments[0].kind, ARGUMENT_DATA);
    assert_int_equal(s.arguments[1].kind, ARGUMENT_OUTPUT);
    signature_free(&s);
}

static void where_an_input_lives_follows_its_size(void **state) {
    (void)state;
    const struct signature_input all[] = {{"scalar", SMELT_INT64, 0, true},
                                          {"few", SMELT_BFLOAT16, 1, true},
                                          {"many", SMELT_COMPLEX64, 3, false},
                                          {"flag", SMELT_BOOL, 0, true}};
    struct signature_request request = request_for("");
    request.inputs = all;
    request.input_count = 4;
    struct signature s;
    generate(&request, &s);
    assert_has(&s, "    const constant int64_t& scalar [[buffer(0)]],\n");
    assert_has(&s, "    const constant bfloat16_t* few [[buffer(1)]],\n");
    assert_has(&s, "    const device complex64_t* many [[buffer(2)]],\n");
    assert_has(&s, "    const constant bool& flag [[buffer(3)]],\n");
    assert_has(&s, "    device float* y [[buffer(4)]])");
    signature_free(&s);
}

static void shape_strides_and_ndim_only_when_mentioned(void **state) {
    (void)state;
    struct signature_request request =
        request_for("// x_shape\nint a = 1; const char *b = \"x_strides\"; int x_ndims;");
    struct signature s;
    generate(&request, &s);
    assert_int_equal(s.argument_count, 2);
    signature_free(&s);

    request = request_for("uint n = x_shape[0] + x_ndim;");
    generate(&request, &s);
    assert_int_equal(s.argument_count, 4);
    signature_free(&s);

    request.header = "#define STEP x_strides[1] /* the macro is looked into */";
    generate(&request, &s);
    assert_int_equal(s.argument_count, 5);
    signature_free(&s);

    request.header = "template <class X> auto f(X x_strides) { return x_strides; }";
    generate(&request, &s);
    assert_has(&s, "    const device float16_t* x [[buffer(0)]],\n"
                   "    const constant int* x_shape [[buffer(1)]],\n"
                   "    const constant int64_t* x_strides [[buffer(2)]],\n"
                   "    const constant int& x_ndim [[buffer(3)]],\n"
                   "    device float* y [[buffer(4)]]");
    const enum argument_kind kinds[] = {ARGUMENT_DATA, ARGUMENT_SHAPE, ARGUMENT_STRIDES, ARGUMENT_NDIM,
                                        ARGUMENT_OUTPUT};
    for (int i = 0; i < 5; i++) assert_int_equal(s.arguments[i].kind, kinds[i]);
    signature_free(&s);
}

static void a_0d_input_has_no_shape(void **state) {
    (void)state;
    const struct signature_input scalar = {"x", SMELT_FLOAT32, 0, true};
    struct signature_request request = request_for("int x_shape = 3, x_strides, x_ndim;");
    request.inputs = &scalar;
    struct signature s;
    generate(&request, &s);
    assert_int_equal(s.argument_count, 2);
    signature_free(&s);
}

static void every_attribute_has_its_type(void **state) {
    (void)state;
    int count = 0;
    for (const struct attribute *a = attributes; a->name; a++, count++) {
        struct signature_request request = request_for(a->name);
        struct signature s;
        char expected[200];
        generate(&request, &s);
        snprintf(expected, sizeof expected, ",\n    %s %s [[%s]]) {", a->dimensions == 3 ? "uint3" : "uint",
                 a->name, a->name);
        assert_has(&s, expected);
        signature_free(&s);
        snprintf(expected, sizeof expected, "// %s", a->name);
        request.body = expected;
        generate(&request, &s);
        assert_false(has(&s, "[[thread") || has(&s, "[[grid") || has(&s, "[[dispatch") || has(&s, "[[simd"));
        signature_free(&s);
    }
    assert_int_equal(count, 20);
}

static void templates_are_rendered_and_instantiated(void **state) {
    (void)state;
    const smelt_template templates[] = {{.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = SMELT_BFLOAT16},
                                        {.name = "N", .kind = SMELT_TEMPLATE_INT, .integer = -7},
                                        {.name = "M", .kind = SMELT_TEMPLATE_INT, .integer = 12},
                                        {.name = "Z", .kind = SMELT_TEMPLATE_INT, .integer = 0},
                                        {.name = "B", .kind = SMELT_TEMPLATE_BOOL, .boolean = true}};
    struct signature_request request = request_for("");
    request.templates = templates;
    request.template_count = 5;
    struct signature s;
    generate(&request, &s);
    assert_has(&s, "template <typename T, int N, int M, int Z, bool B>\n[[kernel]] void custom_kernel_k(");
    assert_has(&s, "template [[host_name(\"custom_kernel_k_bfloat16_t_m7_12_0_true\")]] [[kernel]] "
                   "decltype(custom_kernel_k<bfloat16_t, -7, 12, 0, true>) custom_kernel_k<bfloat16_t, -7, "
                   "12, 0, true>;\n");
    assert_string_equal(text_string(&s.host_name), "custom_kernel_k_bfloat16_t_m7_12_0_true");
    signature_free(&s);
}

static void outputs_are_atomic_one_by_one(void **state) {
    (void)state;
    const struct signature_output some[] = {
        {"a", SMELT_FLOAT32, true}, {"b", SMELT_INT32, false}, {"c", SMELT_UINT32, true}};
    struct signature_request request = request_for("");
    request.outputs = some;
    request.output_count = 3;
    struct signature s;
    generate(&request, &s);
    assert_has(&s, "    device atomic<float>* a [[buffer(1)]],\n    device int32_t* b [[buffer(2)]],\n"
                   "    device atomic<uint32_t>* c [[buffer(3)]]");
    signature_free(&s);
}

static void byte_order_marks_do_not_count(void **state) {
    (void)state;
    struct signature_request request = request_for("\xef\xbb\xbf"
                                                   "y[0] = 1;");
    request.header = "\xef\xbb\xbf"
                     "int a;";
    struct signature s;
    generate(&request, &s);
    assert_has(&s, "#line 1 \"k.h\"\nint a;");
    assert_has(&s, "#line 1 \"k.body\"\ny[0] = 1;");
    signature_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_text_of_a_small_kernel),
        cmocka_unit_test(where_an_input_lives_follows_its_size),
        cmocka_unit_test(shape_strides_and_ndim_only_when_mentioned),
        cmocka_unit_test(a_0d_input_has_no_shape),
        cmocka_unit_test(every_attribute_has_its_type),
        cmocka_unit_test(templates_are_rendered_and_instantiated),
        cmocka_unit_test(outputs_are_atomic_one_by_one),
        cmocka_unit_test(byte_order_marks_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
