#include "unit.h"

#include "source/balance.h"

#include <string.h>

/* The reported place and message; NULL: none. */
static void assert_imbalance(const char *text, const char *place, const char *message) {
    struct tokens tokens;
    struct imbalance found;
    assert_int_equal(tokens_read(text, strlen(text), &tokens), SMELT_OK);
    bool any = imbalance_find(&tokens, &found);
    if (any != (message != NULL)) FAIL_TEST("%s\nis %s", text, any ? found.message : "balanced");
    if (any) {
        assert_string_equal(found.message, message);
        if (found.position != (uint32_t)(strstr(text, place) - text))
            FAIL_TEST("%s\n%s: at byte %u, expected at \"%s\"", text, message, found.position, place);
    }
    tokens_free(&tokens);
}

static void balanced_texts(void **state) {
    (void)state;
    assert_imbalance("", NULL, NULL);
    assert_imbalance("void f(int a[2]) { g({1, 2}); } // }\nchar c = '{', *s = \"(\"; /* [ */", NULL, NULL);
    assert_imbalance("#define OPEN {\nint a;", NULL, NULL);
}

static void brackets_that_match_nothing(void **state) {
    (void)state;
    assert_imbalance("void f() { if (a) { b; }", "{ if", "this '{' is never closed");
    assert_imbalance("void f() { } }\n", "}\n", "this '}' closes nothing");
    assert_imbalance("f(a[1);", "[1", "this '[' is never closed");
    assert_imbalance("f(a]1);", "]1", "this ']' closes nothing");
    assert_imbalance("{ f(a; }", "(a", "this '(' is never closed");
    assert_imbalance("a);", ")", "this ')' closes nothing");
}

static void what_swallows_brackets_comes_first(void **state) {
    (void)state;
    assert_imbalance("f(\"abc);\n}", "\"abc", "this string literal is never closed");
    assert_imbalance("{ /* }", "/*", "this comment is never closed");
    assert_imbalance("{ '} \n", "'}", "this character literal is never closed");
}

#define BODY(text)                                                   \
    "#line 1 \"<signature>\"\nvoid k() {\n#line 1 \"k.body\"\n" text \
    "\n#line 1 \"<signature>\"\n}\nint after() { }\n"
/* The same as clang's preprocessor writes it, with a file included. */
#define PREPROCESSED(text)                                                                            \
    "# 1 \"<signature>\"\nvoid k() {\n# 1 \"k.body\"\n# 1 \"x.h\" 1\nint x;\n# 2 \"k.body\" 2\n" text \
    "\n# 1 \"<signature>\"\n}\n"

static void bodies_and_the_braces_around_them(void **state) {
    (void)state;
    assert_imbalance(BODY("if (a) { b; }"), NULL, NULL);
    assert_imbalance(PREPROCESSED("if (a) { b; }"), NULL, NULL);
    static const char *const closes = "this '}' closes the kernel function itself; the body has one too many";
    assert_imbalance(BODY("if (a) { b; } } c;"), "} c;", closes);
    assert_imbalance(PREPROCESSED("if (a) { b; } } c;"), "} c;", closes);
    /* Closed and opened again: the braces match, the kernel does not. */
    assert_imbalance(BODY("a; } void f() { b;"), "} void", closes);
    assert_imbalance(BODY("if (a) { b;"), "{ b", "this '{' is never closed");
    assert_imbalance(PREPROCESSED("{ if (a) { b; }"), "{ if", "this '{' is never closed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balanced_texts),
        cmocka_unit_test(brackets_that_match_nothing),
        cmocka_unit_test(what_swallows_brackets_comes_first),
        cmocka_unit_test(bodies_and_the_braces_around_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
