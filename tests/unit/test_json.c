/* Strings and numbers of JSON. */
#include "unit.h"

#include "../../cli/json.c"

#include <stdlib.h>

static void printed(const char *text, const char *wanted) {
    char *found;
    size_t size;
    FILE *out = open_memstream(&found, &size);
    json_print_string(out, text);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(found, wanted);
    free(found);
}

static void strings_are_escaped(void **state) {
    (void)state;
    printed(NULL, "null");
    printed("", "\"\"");
    printed("a \"b\" \\ c", "\"a \\\"b\\\" \\\\ c\"");
    printed("line\n\ttab\x01\x7f", "\"line\\u000a\\u0009tab\\u0001\\u007f\"");
}

static void only_utf8_comes_out(void **state) {
    (void)state;
    printed("\u00b5s \u20ac \U0001f600", "\"\u00b5s \u20ac \U0001f600\"");
    printed("a\xff"
            "b",
            "\"a\\ufffdb\"");
    printed("\xc3", "\"\\ufffd\"");                                  /* cut short */
    printed("\xc0\xaf", "\"\\ufffd\\ufffd\"");                       /* overlong */
    printed("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");            /* a surrogate */
    printed("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""); /* past the last character */
    printed("\xe2\x82", "\"\\ufffd\\ufffd\"");
}

static void numbers_that_json_lacks_are_null(void **state) {
    (void)state;
    char *found;
    size_t size;
    FILE *out = open_memstream(&found, &size);
    const double numbers[] = {1.5, (double)NAN, -(double)INFINITY, 1e-300, (double)0.1f};
    for (int i = 0; i < 5; i++) {
        json_print_number(out, numbers[i]);
        fputc(' ', out);
    }
    assert_int_equal(fclose(out), 0);
    assert_string_equal(found, "1.5 null null 1e-300 0.100000001 ");
    free(found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(only_utf8_comes_out),
        cmocka_unit_test(numbers_that_json_lacks_are_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
