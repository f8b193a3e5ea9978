#include "unit.h"

#include "source/token.h"

#include <string.h>

static void tokens_of(const char *text, struct tokens *tokens) {
    assert_int_equal(tokens_read(text, strlen(text), tokens), SMELT_OK);
}

static void splits_words_numbers_and_punctuation(void **state) {
    (void)state;
    struct tokens t;
    tokens_of("a1 + 0x1e+2.5h // comment\n\"x\\\"y\"", &t);
    assert_int_equal(t.count, 6);
    assert_true(token_is(&t, 0, "a1"));
    assert_true(token_is(&t, 2, "0x1e"));
    assert_true(token_is(&t, 4, "2.5h"));
    assert_true(token_is(&t, 5, "\"x\\\"y\""));
    tokens_free(&t);
}

static void matches_brackets(void **state) {
    (void)state;
    struct tokens t;
    tokens_of("f(a[1], {b})", &t);
    assert_int_equal(t.items[1].partner, t.count - 1);
    assert_int_equal(t.items[3].partner, 5);
    tokens_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_words_numbers_and_punctuation),
        cmocka_unit_test(matches_brackets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
