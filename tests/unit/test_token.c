#include "unit.h"

#include "source/token.h"

#include <string.h>

static void tokens_of(const char *text, struct tokens *tokens) {
    assert_int_equal(tokens_read(text, strlen(text), tokens), SMELT_OK);
}

/* The tokens, one after the other with spaces in between. */
static void assert_tokens(const char *text, const char *const *expected, uint32_t count) {
    struct tokens t;
    tokens_of(text, &t);
    for (uint32_t i = 0; i < count && i < t.count; i++)
        if (!token_is(&t, i, expected[i]))
            FAIL_TEST("token %u of \"%s\" is \"%.*s\", expected \"%s\"", i, text, (int)t.items[i].length,
                      t.text + t.items[i].start, expected[i]);
    assert_int_equal(t.count, count);
    tokens_free(&t);
}
#define EXPECT(text, ...)                                                              \
    do {                                                                               \
        const char *const expected[] = {__VA_ARGS__};                                  \
        assert_tokens(text, expected, (uint32_t)(sizeof expected / sizeof *expected)); \
    } while (0)

static void splits_words_numbers_and_punctuation(void **state) {
    (void)state;
    EXPECT("a1 + 0x1e+2.5h // comment\n\"x\\\"y\"", "a1", "+", "0x1e", "+", "2.5h", "\"x\\\"y\"");
    EXPECT("1e+3f 1.e-3h .5bf 0x1p-3 1'000u x.y", "1e+3f", "1.e-3h", ".5bf", "0x1p-3", "1'000u", "x", ".",
           "y");
    EXPECT("_a ünïcode a\xc3\xa9", "_a", "ünïcode", "a\xc3\xa9");
}

static void comments_and_strings_hide_their_contents(void **state) {
    (void)state;
    EXPECT("a /* ( \" ' \n # */ b", "a", "b");
    EXPECT("a // ( \\\n still the comment\nb", "a", "b");
    EXPECT("\"// no\" '\"' \"/*\" c", "\"// no\"", "'\"'", "\"/*\"", "c");
    EXPECT("R\"x(\" )y\" )x\" d", "R\"x(\" )y\" )x\"", "d");
}

static void directives_are_single_tokens(void **state) {
    (void)state;
    EXPECT("#define A(x) \\\n (x\na", "#define A(x) \\\n (x", "a");
    EXPECT("  # pragma unroll /* over\n lines */ (4)\na", "# pragma unroll /* over\n lines */ (4)", "a");
    EXPECT("a # b", "a", "#", "b");
}

static void matches_brackets(void **state) {
    (void)state;
    struct tokens t;
    tokens_of("f(a[1], {b})", &t);
    assert_int_equal(t.items[1].partner, t.count - 1);
    assert_int_equal(t.items[3].partner, 5);
    assert_int_equal(t.items[4].outer, 3);
    assert_int_equal(t.items[0].outer, NO_PLACE);
    tokens_free(&t);
    /* An unmatched bracket stays alone; the rest still matches. */
    tokens_of("{ ( } )", &t);
    assert_int_equal(t.items[0].partner, 2);
    assert_int_equal(t.items[1].partner, 1);
    assert_int_equal(t.items[3].partner, 3);
    tokens_free(&t);
}

static void notes_what_is_never_closed(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t unclosed;
    } cases[] = {
        {"a \"b\nc", 2}, {"a 'b", 2}, {"ab /* c", 3}, {"R\"(x)", 0}, {"a \"b\" 'c' /* d */", NO_PLACE}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct tokens t;
        tokens_of(cases[c].text, &t);
        assert_int_equal(t.unclosed, cases[c].unclosed);
        tokens_free(&t);
    }
    /* An unclosed literal ends with its line. */
    EXPECT("\"b\nc", "\"b", "c");
}

static void template_lists_end_where_cxx_ends_them(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t end; /* the token after it; 0: a comparison */
    } cases[] = {{"< a, b<c> > d", 8}, {"< a, b<c>> d", 8}, {"< (a > b), c > d", 9},
                 {"< a <= b > d", 6},  {"< a << 2 > d", 6}, {"< a >= b > d", 6},
                 {"< a", 0},           {"< a; b > c", 0},   {"< decltype(a > b) > d", 8},
                 {"< a -> b > c", 6}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct tokens t;
        tokens_of(cases[c].text, &t);
        uint32_t end = tokens_angle_end(&t, 0, t.count);
        if (end != cases[c].end)
            FAIL_TEST("\"%s\" ends at %u, expected %u", cases[c].text, end, cases[c].end);
        tokens_free(&t);
    }
}

static void identifiers_are_found_outside_comments_and_strings(void **state) {
    (void)state;
    struct tokens t;
    tokens_of("a_b /* c */ \"d\" e // f", &t);
    assert_true(tokens_contain(&t, "a_b"));
    assert_true(tokens_contain(&t, "e"));
    tokens_free(&t);
    tokens_of("#define X y_shape\n#undef y_shap", &t);
    assert_true(tokens_contain(&t, "y_shape"));
    assert_false(tokens_contain(&t, "shape"));
    for (const char *word = "acdf"; *word; word++) assert_false(tokens_contain(&t, (char[]){*word, 0}));
    tokens_free(&t);
}

static void a_text_of_nothing_has_no_tokens(void **state) {
    (void)state;
    struct tokens t;
    tokens_of("", &t);
    assert_int_equal(t.count, 0);
    assert_false(token_is(&t, 0, "a"));
    assert_false(token_pair(&t, UINT32_MAX, '[', '['));
    assert_false(token_pair(&t, UINT32_MAX - 1, '[', '['));
    tokens_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_words_numbers_and_punctuation),
        cmocka_unit_test(comments_and_strings_hide_their_contents),
        cmocka_unit_test(directives_are_single_tokens),
        cmocka_unit_test(matches_brackets),
        cmocka_unit_test(notes_what_is_never_closed),
        cmocka_unit_test(template_lists_end_where_cxx_ends_them),
        cmocka_unit_test(identifiers_are_found_outside_comments_and_strings),
        cmocka_unit_test(a_text_of_nothing_has_no_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
