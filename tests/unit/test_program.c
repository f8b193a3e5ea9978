#include "unit.h"

#include "source/program.h"

#include <string.h>

static void program_of(const char *text, struct program *program) {
    assert_int_equal(program_create(text, strlen(text), program), SMELT_OK);
}

/* "host=scope|expression" of every entry, in order, separated by spaces. */
static void assert_entries(const char *text, const char *expected) {
    struct program program;
    struct text found = {0};
    program_of(text, &program);
    for (int e = 0; e < program.entry_count; e++)
        text_addf(&found, "%s%s=%s|%s", e ? " " : "", program.entries[e].host_name, program.entries[e].scope,
                  program.entries[e].expression);
    if (strcmp(text_string(&found), expected) != 0)
        FAIL_TEST("%s\nhas the entries\n%s\nexpected\n%s", text, text_string(&found), expected);
    text_free(&found);
    program_free(&program);
}

static void kernels_in_every_spelling(void **state) {
    (void)state;
    assert_entries("kernel void a(device int *x) {}", "a=|a");
    assert_entries("[[kernel]] void a() {} [[ kernel ]] void b() {}", "a=|a b=|b");
    assert_entries("[[kernel, max_total_threads_per_threadgroup(64)]] void a() {}", "a=|a");
    assert_entries("[[max_total_threads_per_threadgroup(64)]] kernel void a() {}", "a=|a");
    assert_entries("kernel [[max_total_threads_per_threadgroup(64)]] void a() {}", "a=|a");
    assert_entries("[[host_name(\"x\")]] kernel void a() {}", "x=|a");
    assert_entries("extern \"C\" { kernel void a() {} } extern \"C\" kernel void b() {}", "a=|a b=|b");
    assert_entries(
        "static inline __attribute__((always_inline)) int f() { return 1; } kernel void a() { f(); }",
        "a=|a");
}

static void what_is_no_kernel(void **state) {
    (void)state;
    assert_entries("void f() {} struct S { int kernel_size; void g() {} }; enum class E { a }; int x = f(1);",
                   "");
    assert_entries("kernel void a(device int *x);", "");
    assert_entries("kernel void a(device int *x); kernel void a(device int *x) {}", "a=|a");
    assert_entries("template <class T> kernel void a(device T *x) {}", "");
    assert_entries("vertex int a() { return 1; } [[fragment]] int b() { return 1; }", "");
    assert_entries("// kernel void a() {}\nchar s[] = \"kernel void b() {}\";", "");
}

static void namespaces(void **state) {
    (void)state;
    assert_entries("namespace n { kernel void a() {} }", "n::a=n::|a");
    assert_entries("namespace n::m { inline namespace i { kernel void a() {} } }", "n::m::i::a=n::m::i::|a");
    assert_entries("namespace { kernel void a() {} } namespace b = n; kernel void c() {}", "a=|a c=|c");
    assert_entries("namespace n { namespace { template <class T> kernel void a() {} }\n"
                   "template [[host_name(\"x\")]] kernel void a<int>(); }",
                   "x=n::|a<int>");
    assert_entries("namespace n { template <class T> kernel void a() {} }\n"
                   "template [[host_name(\"x\")]] kernel void n::a<int>();",
                   "x=|n::a<int>");
}

static void instantiations_in_every_form(void **state) {
    (void)state;
#define TEMPLATE "template <typename T, int N = 4> [[kernel]] void f(device T *a [[buffer(0)]]) {}\n"
    assert_entries(TEMPLATE "template [[host_name(\"n\")]] [[kernel]] decltype(f<float>) f<float>;",
                   "n=|f<float>");
    assert_entries(TEMPLATE
                   "template [[host_name(\"n\")]] kernel void f<float, 4>(device float *a [[buffer(0)]]);",
                   "n=|f<float, 4>");
    assert_entries(TEMPLATE
                   "typedef decltype(f<float>) f_t; template [[host_name(\"n\")]] kernel f_t f<float>;",
                   "n=|f<float>");
    assert_entries(TEMPLATE
                   "using f_t = decltype(f<float>);\ntemplate [[host_name(\"n\")]] [[kernel]] f_t f<float>;",
                   "n=|f<float>");
    assert_entries(TEMPLATE "template [[kernel]] [[host_name(\"n\")]] void f<vec<float, 4>, (2 > 1 ? 8 : "
                            "4)>(device vec<float, 4> *);",
                   "n=|f<vec<float, 4>, (2 > 1 ? 8 : 4)>");
    assert_entries(TEMPLATE
                   "template [[host_name(\"a\" \"_\"\n R\"(b)\")]] kernel void f<int>(device int *);",
                   "a_b=|f<int>");
    assert_entries(TEMPLATE "template [[host_name(\"n\")]] kernel void f<float, // so\n# 3 \"x\"\n 4 /* it "
                            "is */>(device float *);",
                   "n=|f<float, 4 >");
    assert_entries(TEMPLATE "template kernel void f<int>(device int *);", "f=|f<int>");
    /* Instantiations of something that is not a kernel here. */
    assert_entries(TEMPLATE
                   "template [[host_name(\"n\")]] kernel void g<int>(device int *); template struct S<int>;",
                   "");
}

static const struct entry *entry_named(const struct program *program, const char *name) {
    for (int e = 0; e < program->entry_count; e++)
        if (strcmp(program->entries[e].host_name, name) == 0) return &program->entries[e];
    FAIL_TEST("no entry '%s'", name);
    return NULL;
}

static void overloads_are_told_apart(void **state) {
    (void)state;
    struct program program;
    program_of(
        "template <typename T> kernel void f(device T *one) {}\n"
        "template <typename T, int N> kernel void f(device T *a, device T *two) {}\n"
        "template <typename T, int... N> kernel void g(device T *pack) {}\n"
        "template <typename T, typename U> kernel void h(device T *a, device U *b, device U *three) {}\n"
        "template <typename T, typename U = T> kernel void h(device T *a, uint four "
        "[[thread_index_in_simdgroup]]) {}\n"
        "template <> kernel void f<bool>(device bool *special) {}\n"
        "template [[host_name(\"f1\")]] kernel void f<int>(device int *);\n"
        "template [[host_name(\"f2\")]] kernel decltype(f<int, 2>) f<int, 2>;\n"
        "template [[host_name(\"g3\")]] kernel decltype(g<int, 1, 2, 3>) g<int, 1, 2, 3>;\n"
        "template [[host_name(\"h2\")]] kernel void h<int>(device int *, uint);\n"
        "template [[host_name(\"h3\")]] kernel void h<int, int>(device int *, device int *, device int *);\n",
        &program);
    static const struct {
        const char *host_name, *last;
        int count;
    } cases[] = {
        {"f1", "one", 1}, {"f2", "two", 2}, {"g3", "pack", 1}, {"h2", "four", 2}, {"h3", "three", 3}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct entry *entry = entry_named(&program, cases[c].host_name);
        assert_int_equal(entry->parameter_count, cases[c].count);
        assert_string_equal(entry->parameters[cases[c].count - 1].name, cases[c].last);
    }
    program_free(&program);
}

static void parameters_and_their_bindings(void **state) {
    (void)state;
    struct program program;
    program_of(
        "kernel void k(const device array<float, 4> &a [[buffer(3)]], constant P &b [[ buffer(kB) ]], device "
        "int *c,\n"
        "  threadgroup float (*d)[4] [[threadgroup(1)]], threadgroup int *e, device int (&f)[2],\n"
        "  device int *g [[buffer(9), function_constant(flag)]], [[buffer(10)]] device int *h,\n"
        "  uint2 i [[thread_position_in_grid]], ushort j [[thread_index_in_simdgroup]],\n"
        "  texture2d<float, access::read> t [[texture(0)]], device int *[[buffer(11)]], device int *l) {}",
        &program);
    static const struct {
        const char *name;
        enum parameter_kind kind;
        const char *index;
    } expected[] = {{"a", PARAMETER_BUFFER, "3"},           {"b", PARAMETER_BUFFER, "kB"},
                    {"c", PARAMETER_BUFFER, "int(kB) + 1"}, {"d", PARAMETER_THREADGROUP, "1"},
                    {"e", PARAMETER_THREADGROUP, "2"},      {"f", PARAMETER_BUFFER, "int(kB) + 2"},
                    {"g", PARAMETER_BUFFER, "9"},           {"h", PARAMETER_BUFFER, "10"},
                    {"i", PARAMETER_ATTRIBUTE, NULL},       {"j", PARAMETER_ATTRIBUTE, NULL},
                    {"t", PARAMETER_UNSUPPORTED, NULL},     {"", PARAMETER_BUFFER, "11"},
                    {"l", PARAMETER_BUFFER, "12"}};
    const struct entry *entry = entry_named(&program, "k");
    assert_int_equal(entry->parameter_count, sizeof expected / sizeof *expected);
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *found = &entry->parameters[i];
        assert_string_equal(found->name, expected[i].name);
        assert_int_equal(found->kind, expected[i].kind);
        if (expected[i].index) assert_string_equal(found->index, expected[i].index);
    }
    assert_string_equal(entry->parameters[6].guard, "flag");
    assert_null(entry->parameters[5].guard);
    assert_string_equal(entry->parameters[8].attribute, "thread_position_in_grid");
    assert_string_equal(entry->parameters[10].attribute, "texture");
    program_free(&program);
}

static void the_entry_point_stands_in_the_kernels_namespace(void **state) {
    (void)state;
    struct program program;
    struct text text = {0};
    program_of("namespace a::b { kernel void k(device int *x, threadgroup int *y, uint i "
               "[[thread_index_in_simdgroup]]) {} }",
               &program);
    assert_int_equal(program_add_entry_point(&program, &program.entries[0], &text), SMELT_OK);
    static const char *const parts[] = {
        "namespace a::b {",
        "__smelt_function = &k;",
        "#line 1 \"<at 31>\"\nconstexpr int __smelt_index_0 = int(0);",
        "(__SMELT_BIND_BUFFER, ::a::b::__smelt_index_0)",
        "(__SMELT_BIND_THREADGROUP, ::a::b::__smelt_index_1)",
        "(__SMELT_BIND_ATTRIBUTE, 0)",
        "__smelt::buffer<__smelt_signature::argument<0>>(::a::b::__smelt_index_0)",
        "__smelt::threadgroup_memory<__smelt_signature::argument<1>>(::a::b::__smelt_index_1)",
        "(__smelt_thread_index_in_simdgroup())"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text_string(&text), parts[i]))
            FAIL_TEST("no \"%s\" in\n%s", parts[i], text_string(&text));
    text_free(&text);
    program_free(&program);
}

static void bodies_of_other_kernels_are_left_out(void **state) {
    (void)state;
    struct program program;
    struct text text = {0};
    program_of("kernel void one(device int *x) { x[0] = a<1>(); }\n"
               "kernel void two(device int *x) {\n#line 7 \"f\"\n#pragma unroll\n  x[0] = a<2>(); } int m;\n"
               "kernel void called(device int *x) { x[0] = a<3>(); }\n"
               "kernel void image(texture2d<float> t) { }\n"
               "namespace n { void one(device int *x); }\n"
               "kernel void three(device int *x) { called(x); } template <class T> kernel void four(device T "
               "*x) { }\n"
               "template [[host_name(\"f\")]] kernel void four<int>(device int *);\n",
               &program);
    program_add_text(&program, entry_named(&program, "three"), &text);
    assert_int_equal(text.length, program.text.length);
    static const char *const there[] = {"a<1>", /* another function has its name */
                                        "(__smelt_device int *x)  \n#line 7 \"f\"\n",
                                        "\n                 ; int m;",
                                        "a<3>",
                                        "{ called(x); }",
                                        "four(__smelt_device T *x) { }"};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (!strstr(text_string(&text), there[i]))
            FAIL_TEST("no \"%s\" in\n%s", there[i], text_string(&text));
    assert_null(strstr(text_string(&text), "a<2>"));
    assert_null(strstr(text_string(&text), "#pragma"));
    text_free(&text);
    program_add_text(&program, entry_named(&program, "f"), &text);
    assert_non_null(strstr(text_string(&text), "a<3>"));
    assert_null(strstr(text_string(&text), "{ called(x); }"));
    text_free(&text);
    program_free(&program);
}

/* Nested, repeated and broken far beyond real programs: it ends, soon, and within the stack. */
static void texts_made_to_hurt(void **state) {
    (void)state;
    static const char *const units[] = {"{",
                                        "(",
                                        "[",
                                        "[[",
                                        "namespace{",
                                        "struct S{",
                                        "[]{",
                                        "=[]<",
                                        "template<",
                                        "threadgroup ",
                                        "constant a ",
                                        "return ",
                                        "kernel void f(",
                                        "[[function_constant(0)]] ",
                                        "operator",
                                        "a<",
                                        ":a{}",
                                        "struct ",
                                        "void f(){",
                                        "x)",
                                        "if(a)[&]{",
                                        "device\n",
                                        "\"",
                                        "/*",
                                        "#",
                                        "R\"("};
    enum { REPEAT = 20000 };
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        struct text text = {0};
        struct program program;
        text_add(&text, "kernel void k() {");
        for (int i = 0; i < REPEAT; i++) text_add(&text, units[u]);
        program_of(text_string(&text), &program);
        program_free(&program);
        program_of(text_string(&text) + strlen("kernel void k() {"), &program);
        program_free(&program);
        text_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_in_every_spelling),
        cmocka_unit_test(what_is_no_kernel),
        cmocka_unit_test(namespaces),
        cmocka_unit_test(instantiations_in_every_form),
        cmocka_unit_test(overloads_are_told_apart),
        cmocka_unit_test(parameters_and_their_bindings),
        cmocka_unit_test(the_entry_point_stands_in_the_kernels_namespace),
        cmocka_unit_test(bodies_of_other_kernels_are_left_out),
        cmocka_unit_test(texts_made_to_hurt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
