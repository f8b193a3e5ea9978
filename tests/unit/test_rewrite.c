#include "unit.h"

#include "source/program.h"

#include <string.h>

/* One text and its result; spaces count as written, the final line end is left out. */
struct rule {
    const char *text, *expected;
};

static void assert_rewritten(const char *text, const char *expected) {
    struct program program;
    assert_int_equal(program_create(text, strlen(text), &program), SMELT_OK);
    size_t length = program.text.length - 1;
    if (length != strlen(expected) || memcmp(program.text.data, expected, length) != 0)
        FAIL_TEST("%s\nbecame\n%s\nexpected\n%s", text, text_string(&program.text), expected);
    program_free(&program);
}

static void assert_rules(const struct rule *rules, size_t count) {
    for (size_t i = 0; i < count; i++) assert_rewritten(rules[i].text, rules[i].expected);
}
#define CHECK(rules) assert_rules(rules, sizeof rules / sizeof *rules)

#define D "__smelt_device"
#define C "__smelt_constant"
#define T "__smelt_threadgroup"
#define IN_FUNCTION(body) "void f() { " body " }"

static void address_spaces_become_attributes(void **state) {
    (void)state;
    static const struct rule rules[] = {
        {"device float *p;", D " float *p;"},
        {"constant int a[2] = {1, 2};", C " int a[2] = {1, 2};"},
        {"using p = const device half4 *;", "using p = const " D " half4 *;"},
        {"U g(thread const U &x, threadgroup U *y);", "U g( const U &x, " T " U *y);"},
        {"auto x = (device const uint4 *)p;", "auto x = (" D " const uint4 *)p;"},
        {"auto x = reinterpret_cast<const device half4 *>(p);",
         "auto x = reinterpret_cast<const " D " half4 *>(p);"},
        {"template <class U> struct S<threadgroup U *> {};", "template <class U> struct S<" T " U *> {};"},
        /* The user's names. */
        {IN_FUNCTION("a.device = b->thread + n::constant;"),
         IN_FUNCTION("a.device = b->thread + n::constant;")},
        {"// device\nint a; /* constant */ char b[] = \"threadgroup\";",
         "// device\nint a; /* constant */ char b[] = \"threadgroup\";"},
    };
    CHECK(rules);
}

static void literals_lie_in_constant_memory(void **state) {
    (void)state;
    static const struct rule rules[] = {
        {IN_FUNCTION("log(\"a\" \"b\", 1);"), IN_FUNCTION("log(__smelt_text(\"a\" \"b\"), 1);")},
        {"constant char *a = \"x\", *b[] = {\"y\", R\"(z)\"};",
         C " char *a = __smelt_text(\"x\"), *b[] = {__smelt_text(\"y\"), __smelt_text(R\"(z)\")};"},
        {"S t[] = {{\"a\", 1}};", "S t[] = {{__smelt_text(\"a\"), 1}};"},
        {IN_FUNCTION("f(__func__);"), IN_FUNCTION("f(__smelt_text(__func__));")},
        /* Arrays of characters are initialised by the literal itself. */
        {"constant char a[] = \"x\";", C " char a[] = \"x\";"},
        {"char a[2][4] = {\"x\", \"y\"};", "char a[2][4] = {\"x\", \"y\"};"},
        {"char const a[]{\"x\"};", "char const a[]{\"x\"};"},
        /* Literals that are part of the language's syntax. */
        {"void f() __asm(\"x\"); static_assert(true, \"y\"); extern \"C\" int g();",
         "void f() __asm(\"x\"); static_assert(true, \"y\"); extern \"C\" int g();"},
        {"int f() __attribute__((annotate(\"x\"))); auto s = u8\"x\" \"y\";",
         "int f() __attribute__((annotate(\"x\"))); auto s = u8\"x\" \"y\";"},
    };
    CHECK(rules);
}

static void coherence_is_no_qualifier(void **state) {
    (void)state;
    static const struct rule rules[] = {
        {"coherent(device) device int *a;", " " D " int *a;"},
        {"device coherent(device) int *a;", D "  int *a;"},
        {"void f(const coherent device int *a, device coherent int *b);",
         "void f(const  " D " int *a, " D "  int *b);"},
        {"int coherent = 1, b = coherent(device_index), c = a.coherent;",
         "int coherent = 1, b = coherent(device_index), c = a.coherent;"},
    };
    CHECK(rules);
}

static void attributes_may_be_variables_of_the_text(void **state) {
    (void)state;
#define LANE "__smelt::attribute<uint>(__smelt_thread_index_in_simdgroup())"
#define LANE_CHECK                                                                     \
    "static_assert(__smelt::is_attribute<uint, 1>, \"variable 'lane' has a type that " \
    "[[thread_index_in_simdgroup]] cannot have; expected ushort or uint\")"
    static const struct rule rules[] = {
        {"uint lane [[thread_index_in_simdgroup]]; int f() { return lane + a.lane + b->lane + n::lane; }",
         LANE_CHECK "  ; int f() { return " LANE " + a.lane + b->lane + n::lane; }"},
        /* Where the name is declared again, it has that meaning. */
        {"uint lane [[thread_index_in_simdgroup]]; void f(int lane) { g(lane); } int h() { return lane; }",
         LANE_CHECK "  ; void f(int lane) { g(lane); } int h() { return " LANE "; }"},
        {"uint lane [[thread_index_in_simdgroup]]; void f() { { int lane = 1; g(lane); } g(lane); }",
         LANE_CHECK "  ; void f() { { int lane = 1; g(lane); } g(" LANE "); }"},
    };
    CHECK(rules);
}

static void variables_in_functions_become_static(void **state) {
    (void)state;
    static const struct rule rules[] = {
        {IN_FUNCTION("threadgroup float a[4], b;"), IN_FUNCTION("static " T " float a[4], b;")},
        {IN_FUNCTION("threadgroup vec<T, A * B> a[N][M];"),
         IN_FUNCTION("static " T " vec<T, A * B> a[N][M];")},
        {IN_FUNCTION("alignas(16) threadgroup half a[4];"),
         IN_FUNCTION("alignas(16) static " T " half a[4];")},
        {IN_FUNCTION("tensor<threadgroup half, array<E<1>, 2>> t(a);"),
         IN_FUNCTION("tensor<" T " half, array<E<1>, 2>> t(a);")},
        {IN_FUNCTION("threadgroup array<T, 2> t;"), IN_FUNCTION("static " T " array<T, 2> t;")},
        {IN_FUNCTION("array<T, 2> threadgroup t;"), IN_FUNCTION("array<T, 2> static " T " t;")},
        {IN_FUNCTION("float threadgroup a[4];"), IN_FUNCTION("float static " T " a[4];")},
        {IN_FUNCTION("constexpr constant int a = 1;"), IN_FUNCTION("constexpr static " C " int a = 1;")},
        {IN_FUNCTION("static constant int a = 1;"), IN_FUNCTION("static " C " int a = 1;")},
        {IN_FUNCTION("constant static int a = 1;"), IN_FUNCTION(C " static int a = 1;")},
        {IN_FUNCTION("case 1: threadgroup int a;"), IN_FUNCTION("case 1: static " T " int a;")},
        {IN_FUNCTION("threadgroup int a = b & c;"), IN_FUNCTION("static " T " int a = b & c;")},
        {IN_FUNCTION("[[maybe_unused]] threadgroup int a;"),
         IN_FUNCTION("[[maybe_unused]] static " T " int a;")},
        /* Pointers and references into an address space are ordinary variables. */
        {IN_FUNCTION("threadgroup float *p = a; constant T &r = b;"),
         IN_FUNCTION(T " float *p = a; " C " T &r = b;")},
        {IN_FUNCTION("threadgroup float (*p)[4] = a;"), IN_FUNCTION(T " float (*p)[4] = a;")},
        {IN_FUNCTION("threadgroup auto &r = a[0];"), IN_FUNCTION(T " auto &r = a[0];")},
        {IN_FUNCTION("for (threadgroup int *p = a; ; ) x;"), IN_FUNCTION("for (" T " int *p = a; ; ) x;")},
        {IN_FUNCTION("x = (threadgroup float *)y;"), IN_FUNCTION("x = (" T " float *)y;")},
        /* Members, and variables outside functions, are unchanged. */
        {"struct S { static constant int n = 1; };", "struct S { static " C " int n = 1; };"},
        {IN_FUNCTION("struct S { constant int *p; };"), IN_FUNCTION("struct S { " C " int *p; };")},
    };
    CHECK(rules);
}

static void array_parameters_become_pointers(void **state) {
    (void)state;
    static const struct rule rules[] = {
        {"void f(threadgroup float a[8]);", "void f(" T " float (*a));"},
        {"void f(constant float a[N][M], int b);", "void f(" C " float (*a)[M], int b);"},
        {"void f(const thread int a[2]);", "void f(const  int (*a));"},
        {"void f(threadgroup float (&a)[8], device int *b);", "void f(" T " float (&a)[8], " D " int *b);"},
        {"void f(threadgroup float (*a)[8]);", "void f(" T " float (*a)[8]);"},
        {"void f(device int *a [[buffer(0)]]);", "void f(" D " int *a );"},
        {IN_FUNCTION("auto g = [](threadgroup int a[2]) { return a[0]; };"),
         IN_FUNCTION("auto g = [](" T " int (*a)) { return a[0]; };")},
    };
    CHECK(rules);
}

static void method_qualifiers_become_ranks(void **state) {
    (void)state;
#define RANK " __smelt_rank"
#define THREAD RANK RANK RANK RANK
    static const struct rule rules[] = {
        {"struct S { int f() const device { return 1; } };",
         "struct S { int f() const " RANK RANK RANK " { return 1; } };"},
        {"struct S { int f() const thread; int f() const constant; int f() threadgroup; };",
         "struct S { int f() const " THREAD "; int f() const " RANK RANK "; int f() " RANK "; };"},
        {"struct S { S() thread : a(1) {} operator int() const thread { return a; } };",
         "struct S { S() " THREAD " : a(1) {} operator int() const " THREAD " { return a; } };"},
        {"struct S { int f() threadgroup const { return 1; } };",
         "struct S { int f()  const" RANK " { return 1; } };"},
        {"struct S { S() thread = default; };", "struct S { S() " THREAD " = default; };"},
        {"struct S { int f() device const { return 1; } };",
         "struct S { int f()  const" RANK RANK RANK " { return 1; } };"},
        {"struct S { auto f() const device -> int { return 1; } };",
         "struct S { auto f() const  -> int " RANK RANK RANK "{ return 1; } };"},
        {"struct S { T operator()(int i) const device { return 1; } };",
         "struct S { T operator()(int i) const " RANK RANK RANK " { return 1; } };"},
        {"struct S { int f() const thread noexcept { return 1; } };",
         "struct S { int f() const  noexcept" THREAD " { return 1; } };"},
        /* A method without a qualifier gets the rank of thread memory if another of its name has a qualifier.
         */
        {"struct S { public: S() : S(0) {} S() threadgroup : S(1) {} int g() { return 1; } };",
         "struct S { public: S() " THREAD " : S(0) {} S() " RANK " : S(1) {} int g() { return 1; } };"},
        {"struct S { int f() device; struct T { int f(); }; int f() const { return f(); } };",
         "struct S { int f() " RANK RANK RANK "; struct T { int f(); }; int f() const " THREAD
         " { return f(); } };"},
        /* Methods that return pointers or references into their object's address space. */
        {";struct S { threadgroup T &at(int i) threadgroup { return v[i]; } };",
         ";struct S { " T " T &at(int i) " RANK " { return __smelt_returned<" T " T &>( v[i]); } };"},
        {";struct S { inline const device T *p() const device { if (a) return q; return v; } };",
         ";struct S { inline const " D " T *p() const " RANK RANK RANK
         " { if (a) return __smelt_returned<const " D " T *>( q); return __smelt_returned<const " D
         " T *>( v); } };"},
        {";struct S { threadgroup T *at(int i) device { return v[i]; } };",
         ";struct S { " T " T *at(int i) " RANK RANK RANK " { return v[i]; } };"},
        /* After a parenthesis in a function, it is a cast or a statement. */
        {IN_FUNCTION("if (a) device int *p = b;"), IN_FUNCTION("if (a) " D " int *p = b;")},
    };
    CHECK(rules);
}

static void attributes_are_taken_out(void **state) {
    (void)state;
    static const struct rule rules[] = {
        {"struct [[x]] S { int a [[id(0)]]; };", "struct  S { int a ; };"},
        {IN_FUNCTION("if (a) [[likely]] b; [[unroll]] for (;;) c;"),
         IN_FUNCTION("if (a) [[likely]] b;  for (;;) c;")},
        {"[[nodiscard, x(1)]] int f();", "[[nodiscard]]  int f();"},
        /* Similar-looking subscripts. */
        {IN_FUNCTION("a[b[0]] = c[d[1][2]];"), IN_FUNCTION("a[b[0]] = c[d[1][2]];")},
        {IN_FUNCTION("a[[]{ return 1; }()];"), IN_FUNCTION("a[[]{ return 1; }()];")},
        {"kernel void f();", "inline void f();"},
        {"[[kernel, max_total_threads_per_threadgroup(A * 2)]] void f() { x; }",
         "inline    void f() { __smelt_max_threads(A * 2); x; }"},
        {"template [[host_name(\"a\")]] [[kernel]] void f<int>(device int *);\nint a;", "      ;\nint a;"},
    };
    CHECK(rules);
}

static void other_stages_are_left_out_line_by_line(void **state) {
    (void)state;
    static const struct rule rules[] = {
        {"vertex float4 f(uint i [[vertex_id]]) {\n  return 1;\n}\nint a;", "\n\n\nint a;"},
        {"[[fragment]] half4 f() { return 1; } int a;", "int a;"},
        {"kernel void f(texture2d<float> t [[texture(0)]]) {\n# 7 \"a\"\n#pragma unroll\n}\nint a;",
         "\n# 7 \"a\"\n\n\nint a;"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct program program;
        assert_int_equal(program_create(rules[i].text, strlen(rules[i].text), &program), SMELT_OK);
        /* White space around removed text stays. */
        struct text squeezed = {0};
        for (const char *c = text_string(&program.text); *c; c++)
            if (*c != ' ' || (c[1] != ' ' && squeezed.length && squeezed.data[squeezed.length - 1] != '\n'))
                text_append(&squeezed, c, 1);
        const char *at = text_string(&squeezed);
        while (*at == ' ') at++;
        size_t length = strlen(rules[i].expected);
        char *space;
        while ((space = strstr(squeezed.data, " \n"))) memmove(space, space + 1, strlen(space));
        if (strncmp(at, rules[i].expected, length) != 0) FAIL_TEST("%s\nbecame\n%s", rules[i].text, at);
        text_free(&squeezed);
        program_free(&program);
    }
}

#define GONE "do { __smelt_thread_return(); return; } while (0)"
#define GONE_WITH(value) "do { (void)( " value "); __smelt_thread_return(); return; } while (0);"

#define LEAVE "do { __smelt_leave(); return; } while (0)"
static void returns_of_kernels_are_marked(void **state) {
    (void)state;
    static const struct rule rules[] = {
        {"kernel void f() { if (a) return; else return; }",
         "inline void f() { if (a) " GONE "; else " GONE "; }"},
        {"kernel void f() { return g(1, 2); }", "inline void f() { " GONE_WITH("g(1, 2)") " }"},
        {"kernel void f() { return [](int x) { return x; }(1), void(); }",
         "inline void f() { " GONE_WITH("[](int x) { return x; }(1), void()") " }"},
        {"kernel void f() { auto g = [&](int x) -> int { if (x) return 1; return 2; }; return; }",
         "inline void f() { auto g = [&](int x) -> int { if (x) return 1; return 2; }; " GONE "; }"},
        {"kernel void f() { if (a) [&] { return; }(); }", "inline void f() { if (a) [&] { " LEAVE "; }(); }"},
        {"kernel void f() { auto g = []() mutable noexcept(true) -> vec<T, 2> { return {}; }; }",
         "inline void f() { auto g = []() mutable noexcept(true) -> vec<T, 2> { return {}; }; }"},
        {"kernel void f() { struct S { int g() { return 1; } }; return; }",
         "inline void f() { struct S { int g() { return 1; } }; " GONE "; }"},
        {"int f() { return 1; } void g() { return; }", "int f() { return 1; } void g() { " LEAVE "; }"},
        {"template <class T, int N = (1 > 0)> [[kernel]] void f() { return; }",
         "template <class T, int N = (1 > 0)>  void f() { " GONE "; }"},
        {"struct S : B<(1)> { int f() const { return 1; } }; kernel void g() { return; }",
         "struct S : B<(1)> { int f() const { return 1; } }; inline void g() { " GONE "; }"},
        {"template <class T> struct S<T, E<(sizeof(T) > 2)>> { int f() { return 1; } };",
         "template <class T> struct S<T, E<(sizeof(T) > 2)>> { int f() { return 1; } };"},
    };
    CHECK(rules);
}

static void literals_of_half_and_bfloat(void **state) {
    (void)state;
    static const struct rule rules[] = {
        {"a = 1.5h + .5H - 2.h * 1e-3h;", "a = 1.5f16 + .5f16 - 2.f16 * 1e-3f16;"},
        {"a = 2.5bf + 1e3BF;", "a = ((bfloat)2.5f) + ((bfloat)1e3f);"},
        {"a = 3h + 0x1p3h;", "a = 3.0f16 + 0x1p3f16;"},
        {"a = 0xbf + 0xABh0 + 1.5f + 2u + 1'000;", "a = 0xbf + 0xABh0 + 1.5f + 2u + 1'000;"},
    };
    CHECK(rules);
}

#define MODE(precise, contract)                         \
    "_Pragma(\"float_control(precise, " precise ")\") " \
    "_Pragma(\"clang fp contract(" contract ")\")"
#define FROM(type) "(__smelt_from_t<" type ">)"
static void casts_includes_and_pragmas(void **state) {
    (void)state;
    static const struct rule rules[] = {
        /* Casts to types that may be half or bfloat, in a text that has both. */
        {"a = static_cast<half>(b) + half(b);", "a = static_cast<half>(b) + half(b);"},
        {"bfloat a = static_cast<half>(b);", "bfloat a = static_cast<half>(" FROM("half") "(b));"},
        {"bfloat a = half(b) + bfloat(x, y) + half(2) + half();",
         "bfloat a = half(" FROM("half") "(b)) + bfloat(x, y) + half(2) + half();"},
        {"bfloat a = (half)b + (half)(bfloat)-c;",
         "bfloat a = (half)" FROM("half") "b + (half)" FROM("half") "(bfloat)" FROM("bfloat") "-c;"},
        {"template <class U> bfloat f(U x) { return U(x) + sizeof(U) + (U)x + (V)x; } int b = (U)x;",
         "template <class U> bfloat f(U x) { return U(" FROM("U") "(x)) + sizeof(U) + (U)" FROM(
             "U") "x + (V)x; } int b = (U)x;"},
        {"using t = bfloat; typedef int u; int a = t(b) + (u)c;",
         "using t = bfloat; typedef int u; int a = t(" FROM("t") "(b)) + (u)" FROM("u") "c;"},
        {"bfloat a = static_cast<float>(b) + static_cast<device half *>(c) + static_cast<vec<half, 2>>(d);",
         "bfloat a = static_cast<float>(b) + static_cast<" D " half *>(c) + static_cast<vec<half, 2>>(d);"},
        {"bfloat a(half); half (*p)[4]; f<half>(x); S<bfloat(int)> s; auto g = [](half) { return 1; };",
         "bfloat a(half); half (*p)[4]; f<half>(x); S<bfloat(int)> s; auto g = [](half) { return 1; };"},
        {"#include <metal_stdlib>\n#include <simd/simd.h>\nint a;", "\n\nint a;"},
        {"#pragma METAL fp contract(off)\n#pragma METAL fp math_mode(fast)\n#pragma unroll\nint a;",
         "#pragma clang fp contract(off)\n" MODE("off", "off") "\n#pragma unroll\nint a;"},
        {"#pragma METAL fp contract(fast)\n#pragma METAL internals : enable\nint a;",
         "#pragma clang fp contract(on)\n\nint a;"},
        {"void f() {\n#pragma METAL fp contract(off)\n}\n#pragma METAL fp math_mode(safe)\nint a;",
         "void f() {\n#pragma clang fp contract(off)\n}\n" MODE("on", "on") "\nint a;"},
        {"#  pragma   METAL fp math_mode( relaxed )\nint a;",
         "_Pragma(\"float_control(precise, on)\") _Pragma(\"clang fp contract(on) reassociate(on) "
         "reciprocal(on)\")\nint a;"},
    };
    CHECK(rules);
}

/* The declaration of a function constant's type. */
#define TYPE(token, index, name)                                               \
    " extern \"C\" __attribute__((used)) const int smelt_constant_type_" token \
    " __asm__(\"smelt_constant_type_" index "_" token "\") = __smelt::constant_code<decltype(" name ")>();"

static void function_constants_become_symbols(void **state) {
    (void)state;
    static const struct rule rules[] = {
        {"constant bool a [[function_constant(3)]];",
         "extern " C " bool a  __asm__(\"smelt_constant_3 a\");" TYPE("3", "3", "a")},
        {"constant constexpr int a [[function_constant(3)]], b [[function_constant(4)]];",
         "extern " C "  int a  __asm__(\"smelt_constant_3 a\"), b  __asm__(\"smelt_constant_4 b\");" TYPE(
             "4", "3", "a") TYPE("14", "4", "b")},
        {"constant bool a [[function_constant(kA)]];",
         "static_assert(__smelt::is_index(kA, 65535), \"'[[function_constant(kA)]]' of 'a': expected an "
         "index from 0 to "
         "65535\"); extern \"C\" __attribute__((used)) const int smelt_constant_index_3 = (int)(kA); "
         "extern " C " bool a  __asm__(\"smelt_constant_#3 a\");" TYPE("3", "#3", "a")},
        {"constant bool c[[function_constant(5)]];",
         "extern " C " bool c __asm__(\"smelt_constant_5 c\");" TYPE("3", "5", "c")},
        {"constant bool c = a && b;", C " bool c = a && b;"},
    };
    CHECK(rules);
}

static void every_line_stays_where_it_is(void **state) {
    (void)state;
    const char *text =
        "#include <metal_stdlib>\nconstant int a\n [[function_constant(0)]];\n"
        "template <class T>\nkernel\nvoid f(device T *x [[\nbuffer(0)]],\nthreadgroup T\ny\n[\n4\n]) {\n"
        "  threadgroup float z[2];\n  if (x) return\n g(\n1);\n}\n"
        "template [[host_name(\"a\"\n\"b\")]]\nkernel void f<int>(\ndevice int *);\nint marker;";
    struct program program;
    assert_int_equal(program_create(text, strlen(text), &program), SMELT_OK);
    int wanted = 0, found = 0;
    for (const char *c = text; *c; c++) wanted += *c == '\n';
    for (const char *c = program.text.data, *end = strstr(c, "int marker"); c < end; c++) found += *c == '\n';
    assert_int_equal(found, wanted);
    /* A byte of the result maps back to its original byte. */
    const char *marker = strstr(program.text.data, "marker");
    assert_int_equal(program_origin(&program, (uint32_t)(marker - program.text.data)),
                     strstr(text, "marker") - text);
    const char *g = strstr(program.text.data, " g(") + 1;
    assert_int_equal(program_origin(&program, (uint32_t)(g - program.text.data)),
                     strstr(text, " g(") + 1 - text);
    program_free(&program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(address_spaces_become_attributes),
        cmocka_unit_test(literals_lie_in_constant_memory),
        cmocka_unit_test(coherence_is_no_qualifier),
        cmocka_unit_test(attributes_may_be_variables_of_the_text),
        cmocka_unit_test(variables_in_functions_become_static),
        cmocka_unit_test(array_parameters_become_pointers),
        cmocka_unit_test(method_qualifiers_become_ranks),
        cmocka_unit_test(attributes_are_taken_out),
        cmocka_unit_test(other_stages_are_left_out_line_by_line),
        cmocka_unit_test(returns_of_kernels_are_marked),
        cmocka_unit_test(literals_of_half_and_bfloat),
        cmocka_unit_test(casts_includes_and_pragmas),
        cmocka_unit_test(function_constants_become_symbols),
        cmocka_unit_test(every_line_stays_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
