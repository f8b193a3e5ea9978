#include "unit.h"

#include "frontend/diagnostic.h"

#include <stdio.h>
#include <string.h>

/* A translation of `source` (as preprocessed) with the user's text `user` in "k.metal". */
static struct translation translation_of(const char *source, const char *user) {
    struct translation t = {.texts = {{"k.metal", user}}};
    text_add(&t.source, source);
    assert_int_equal(program_create(text_string(&t.source), t.source.length, &t.program), SMELT_OK);
    return t;
}

static void assert_described(const struct translation *t, const char *messages, const char *expected) {
    struct text out = {0};
    diagnostics_describe(t, messages, &out);
    if (strcmp(text_string(&out), expected) != 0)
        FAIL_TEST("clang's\n%s\nbecame\n%s\nexpected\n%s", messages, text_string(&out), expected);
    text_free(&out);
}

/* The column of `word` in line `line` of the rewritten text, as clang would report it. */
static int column_in_rewritten(const struct translation *t, const char *word) {
    const char *at = strstr(t->program.text.data, word), *start = at;
    assert_non_null(at);
    while (start > t->program.text.data && start[-1] != '\n') start--;
    return (int)(at - start) + 1;
}

static void columns_are_those_of_the_text_as_written(void **state) {
    (void)state;
    const char *user =
        "kernel void k(device float *a) {\n\tthreadgroup half x = 1.0h + static_cast<half>(nix);\n}";
    char source[300], message[100];
    snprintf(source, sizeof source, "#line 1 \"k.metal\"\n%s", user);
    struct translation t = translation_of(source, user);
    snprintf(message, sizeof message, "k.metal:2:%d: error: use of 'nix'\n", column_in_rewritten(&t, "nix"));
    assert_described(&t, message,
                     "k.metal:2:48: error: use of 'nix'\n"
                     "  \tthreadgroup half x = 1.0h + static_cast<half>(nix);\n"
                     "  \t                                              ^");
    translation_free(&t);
}

static void macros_are_traced_to_their_use(void **state) {
    (void)state;
    const char *user = "#define SUM(x) ((x) + hidden(x))\n#define ONE 1\n"
                       "void f() { a = SUM(shown) /* c */ + ONE   + last; }";
    const char *source = "# 1 \"k.metal\"\n\n\nvoid f() { a = ((shown) + hidden(shown)) + 1 + last; }";
    struct translation t = translation_of(source, user);
    static const struct {
        const char *word;
        int column;
    } cases[] = {{"hidden", 16}, {"shown", 20}, {"1 +", 37}, {"last", 45}, {"a =", 12}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char message[100], expected[300];
        snprintf(message, sizeof message, "k.metal:3:%d: error: x\n", column_in_rewritten(&t, cases[c].word));
        snprintf(expected, sizeof expected, "k.metal:3:%d: error: x\n  %s\n  %*s", cases[c].column,
                 "void f() { a = SUM(shown) /* c */ + ONE   + last; }", cases[c].column, "^");
        assert_described(&t, message, expected);
    }
    translation_free(&t);
}

static void errors_in_the_prelude_move_to_the_users_line(void **state) {
    (void)state;
    const char *user = "void f() { g(1); }";
    struct translation t = translation_of("#line 1 \"k.metal\"\nvoid f() { g(1); }", user);
    assert_described(
        &t,
        "<smelt prelude: metal_math>:7:3: error: static assertion failed: no such type\n"
        "<smelt prelude: metal_math>:9:1: note: in instantiation of 'h' requested here\n"
        "k.metal:1:12: note: in instantiation of 'g' requested here\n"
        "k.metal:1:1: note: another\n",
        "k.metal:1:12: error: static assertion failed: no such type\n  void f() { g(1); }\n             ^");
    /* Not a line of the user: the message alone. */
    assert_described(&t, "<smelt prelude: metal_math>:7:3: error: broken\n", "broken");
    translation_free(&t);
}

static void words_of_ours_become_metals(void **state) {
    (void)state;
    struct translation t = translation_of("", "");
    assert_described(
        &t, "x.h:1:1: error: no conversion from '__global_device _Float16 *' to '__local __bf16 *'\n",
        "x.h:1:1: error: no conversion from 'device half *' to 'threadgroup bfloat *'");
    assert_described(&t, "./x.h:1:1: error: undeclared 'fmo'; did you mean '__smelt_float::fma'?\n",
                     "x.h:1:1: error: undeclared 'fmo'");
    assert_described(&t, "x.h:1:1: error: undeclared 'fmo'; did you mean 'fma'?\n",
                     "x.h:1:1: error: undeclared 'fmo'; did you mean 'fma'?");
    assert_described(&t, "x.h:1:1: error: should return [-Wreturn-type]\n", "x.h:1:1: error: should return");
    assert_described(&t, "x.h:1:1: warning: unused\nx.h:2:1: fatal error: gone\n1 error generated.\n",
                     "x.h:2:1: error: gone");
    translation_free(&t);
}

static void anything_may_be_said(void **state) {
    (void)state;
    struct translation t = translation_of("#line 1 \"k.metal\"\nint a;", "int a;");
    static const char *const messages[] = {"",
                                           "\n\n",
                                           ":",
                                           ":1:1: error:",
                                           "k.metal:99999:1: error: far\n",
                                           "k.metal:1:99999: error: wide\n",
                                           "k.metal:-1:-1: error: x\n",
                                           "k.metal:0:0: error: zero\n",
                                           "a:1:b: error: x\n",
                                           "no place at all\n"};
    for (size_t m = 0; m < sizeof messages / sizeof *messages; m++) {
        struct text out = {0};
        diagnostics_describe(&t, messages[m], &out);
        text_free(&out);
    }
    assert_described(&t, "no place at all\nsecond\n", "no place at all");
    assert_described(&t, "k.metal:99999:1: error: far\n", "k.metal:99999:1: error: far");
    translation_free(&t);
}

static void our_own_messages_name_the_place(void **state) {
    (void)state;
    const char *user = "int a;\nint ba;";
    struct translation t = translation_of("# 1 \"k.metal\"\nint a;\n# 2 \"k.metal\"\nint ba;", user);
    struct text out = {0};
    diagnostics_add(&t, (uint32_t)(strstr(t.source.data, "ba") - t.source.data), "this is it", &out);
    assert_string_equal(text_string(&out), "k.metal:2:5: error: this is it\n  int ba;\n      ^");
    text_free(&out);
    translation_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_those_of_the_text_as_written),
        cmocka_unit_test(macros_are_traced_to_their_use),
        cmocka_unit_test(errors_in_the_prelude_move_to_the_users_line),
        cmocka_unit_test(words_of_ours_become_metals),
        cmocka_unit_test(anything_may_be_said),
        cmocka_unit_test(our_own_messages_name_the_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
