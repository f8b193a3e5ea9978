/* Text made safe for a terminal; paths as clang writes them. */
#include "unit.h"

#include "base/printable.h"
#include "frontend/overlay.h"

#include <string.h>

static void check(const char *text, const char *expected) {
    struct text out = {0};
    text_add_printable(&out, text);
    assert_string_equal(text_string(&out), expected);
    text_free(&out);
}

static void test_printable(void **state) {
    (void)state;
    check("plain text\n\twith a tab", "plain text\n\twith a tab");
    check("caf\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x98\x80");
    check("\x1b[31m\x7f\r", "\\x1b[31m\\x7f\\x0d");
    check("\xc2\x9b", "\\xc2\\x9b");                              /* a control character of two bytes */
    check("\xff \xc3 \xe2\x80", "\\xff \\xc3 \\xe2\\x80");        /* not UTF-8 */
    check("\xc0\xaf \xed\xa0\x80", "\\xc0\\xaf \\xed\\xa0\\x80"); /* overlong; a surrogate */
    check("\xe2\x80\xae", "\\xe2\\x80\\xae");                     /* from right to left */
    check("\\x1b", "\\x1b");
}

static void check_path(const char *folder, const char *expected) {
    struct text path = {0};
    overlay_path(folder, &path);
    assert_string_equal(text_string(&path), expected);
    text_free(&path);
}

static void test_paths(void **state) {
    (void)state;
    check_path("/a/b/", "/a/b");
    check_path("/a//./b/../c", "/a/c");
    check_path("/../a/../../b", "/b");
    check_path("/", "");
}

static void test_folders(void **state) {
    (void)state;
    const char *const folders[] = {"/a/b/", "/c", NULL};
    assert_true(overlay_holds(folders, "/a/b/x.h"));
    assert_true(overlay_holds(folders, "/c/d/../x.h"));
    assert_false(overlay_holds(folders, "/a/b/../x.h"));
    assert_false(overlay_holds(folders, "/a/bc/x.h"));
    assert_false(overlay_holds(folders, "/etc/passwd"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_printable), cmocka_unit_test(test_paths),
                                       cmocka_unit_test(test_folders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
