/* base/format.c: against printf for what both support, and the additions for kernels. */
#include "unit.h"

#include "base/format.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct format_argument integer(int64_t value, int bytes) {
    return (struct format_argument){
        .kind = FORMAT_SIGNED, .bytes = bytes, .count = 1, .words = {(uint64_t)value}};
}

static struct format_argument natural(uint64_t value, int bytes) {
    return (struct format_argument){.kind = FORMAT_UNSIGNED, .bytes = bytes, .count = 1, .words = {value}};
}

static uint64_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static struct format_argument real(float value) {
    return (struct format_argument){.kind = FORMAT_FLOAT, .bytes = 4, .count = 1, .words = {bits_of(value)}};
}

static struct format_argument string(const char *text) {
    return (struct format_argument){.kind = FORMAT_TEXT,
                                    .bytes = 8,
                                    .count = 1,
                                    .words = {0x1000},
                                    .text = text,
                                    .text_length = strlen(text)};
}

static void assert_line(const char *format, const struct format_argument *arguments, int count,
                        const char *expected) {
    struct text text = {0};
    format_line(format, strlen(format), arguments, count, &text);
    if (strcmp(text_string(&text), expected) != 0)
        FAIL_TEST("'%s' gives '%s', expected '%s'", format, text_string(&text), expected);
    text_free(&text);
}

#define FLAG_SETS 10
#define SIZES 8
static const char *const flag_sets[FLAG_SETS] = {"", "-", "+", " ", "0", "#", "-+", "+0", " 0", "#0"};
static const char *const sizes[SIZES] = {"", "1", "7", "20", ".0", ".3", "9.2", "12.8"};

static bool has_any(const char *text, const char *characters) {
    return strpbrk(text, characters) != NULL;
}

static void integers_are_those_of_printf(void **state) {
    (void)state;
    static const int64_t values[] = {0, 1, -1, 42, -37, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    static const char letters[] = "diuoxX";
    char ours[32], theirs[32], expected[128];
    for (size_t v = 0; v < sizeof values / sizeof *values; v++)
        for (int f = 0; f < FLAG_SETS; f++)
            for (int s = 0; s < SIZES; s++)
                for (const char *letter = letters; *letter; letter++) {
                    bool of_signed = *letter == 'd' || *letter == 'i';
                    /* What C leaves undefined is not compared. */
                    if (has_any(flag_sets[f], of_signed || *letter == 'u' ? "#" : "+ ")) continue;
                    for (int bytes = 4; bytes <= 8; bytes += 4) {
                        int64_t value = bytes == 4 ? (int32_t)values[v] : values[v];
                        snprintf(ours, sizeof ours, "%%%s%s%s%c", flag_sets[f], sizes[s],
                                 bytes == 4 ? "" : "l", *letter);
                        snprintf(theirs, sizeof theirs, "%%%s%s%s%c", flag_sets[f], sizes[s],
                                 bytes == 4 ? "" : "l", *letter);
                        if (bytes == 4)
                            snprintf(expected, sizeof expected, theirs, (int)value);
                        else
                            snprintf(expected, sizeof expected, theirs, (long)value);
                        struct format_argument argument = integer(value, bytes);
                        assert_line(ours, &argument, 1, expected);
                        argument = natural(bytes == 4 ? (uint32_t)value : (uint64_t)value, bytes);
                        assert_line(ours, &argument, 1, expected);
                    }
                }
}

static void reals_are_those_of_printf(void **state) {
    (void)state;
    static const float values[] = {0,       -0.0f,  1,        -2.5f,     3.14159274f, 1e30f,
                                   -1e-30f, 1e-42f, INFINITY, -INFINITY, 65504,       0.1f};
    char spelled[32], expected[256];
    for (size_t v = 0; v < sizeof values / sizeof *values; v++)
        for (int f = 0; f < FLAG_SETS; f++)
            for (int s = 0; s < SIZES; s++)
                for (const char *letter = "fFeEgGaA"; *letter; letter++) {
                    snprintf(spelled, sizeof spelled, "%%%s%s%c", flag_sets[f], sizes[s], *letter);
                    snprintf(expected, sizeof expected, spelled, (double)values[v]);
                    struct format_argument argument = real(values[v]);
                    assert_line(spelled, &argument, 1, expected);
                }
}

static void short_integers_are_taken_as_c_does(void **state) {
    (void)state;
    struct format_argument minus = integer(-1, 1), large = integer(0x12345, 4), byte = natural(200, 1);
    assert_line("%d %hhd", (struct format_argument[]){minus, minus}, 2, "-1 -1");
    assert_line("%u", &minus, 1, "4294967295");
    assert_line("%x %hx %hhx", (struct format_argument[]){minus, minus, minus}, 3, "ffffffff ffff ff");
    assert_line("%hd %hhu", (struct format_argument[]){large, large}, 2, "9029 69");
    assert_line("%d %hhd", (struct format_argument[]){byte, byte}, 2, "200 -56");
}

static void sizes_may_be_arguments(void **state) {
    (void)state;
    assert_line("[%*d]", (struct format_argument[]){integer(5, 4), integer(42, 4)}, 2, "[   42]");
    assert_line("[%*d]", (struct format_argument[]){integer(-5, 4), integer(42, 4)}, 2, "[42   ]");
    assert_line("[%-.*f]", (struct format_argument[]){integer(1, 4), real(2.25f)}, 2, "[2.2]");
    assert_line("[%.*f]", (struct format_argument[]){integer(-1, 4), real(0.5f)}, 2, "[0.500000]");
    /* A width that no line could hold is limited. */
    struct format_argument one = integer(1, 4);
    struct text text = {0};
    format_line("%999999999d", 11, &one, 1, &text);
    assert_int_equal(text.length, 256);
    text_free(&text);
}

static void vectors_are_printed_with_commas(void **state) {
    (void)state;
    struct format_argument v = {.kind = FORMAT_FLOAT,
                                .bytes = 4,
                                .count = 4,
                                .words = {bits_of(1), bits_of(-2.5f), bits_of(0), bits_of(8)}};
    assert_line("%v4f", &v, 1, "1.000000,-2.500000,0.000000,8.000000");
    assert_line("%5.1v4hlf|", &v, 1, "  1.0, -2.5,  0.0,  8.0|");
    assert_line("%v2g", &v, 1, "1,-2.5");
    assert_line("%g", &v, 1, "1,-2.5,0,8");
    struct format_argument u = {.kind = FORMAT_UNSIGNED, .bytes = 1, .count = 3, .words = {1, 128, 255}};
    assert_line("(%v3hhu) %d", (struct format_argument[]){u, integer(3, 4)}, 2, "(1,128,255) 3");
    assert_line("%#v3hhx", &u, 1, "0x1,0x80,0xff");
    struct format_argument one = real(7);
    assert_line("%v3f", &one, 1, "7.000000");
}

static void texts_characters_and_addresses(void **state) {
    (void)state;
    struct format_argument pointer = {.kind = FORMAT_POINTER, .bytes = 8, .count = 1, .words = {0xabc}};
    assert_line("%s!", (struct format_argument[]){string("text")}, 1, "text!");
    assert_line("[%6s][%-6s][%.2s]", (struct format_argument[]){string("abc"), string("abc"), string("abc")},
                3, "[   abc][abc   ][ab]");
    assert_line("%c%c%3c|", (struct format_argument[]){integer('x', 1), natural('y', 4), integer('z', 1)}, 3,
                "xy  z|");
    assert_line("%p %12p", (struct format_argument[]){pointer, pointer}, 2, "0xabc        0xabc");
    assert_line("%p", (struct format_argument[]){string("abc")}, 1, "0x1000");
    assert_line("%x %lu", (struct format_argument[]){pointer, pointer}, 2, "abc 2748");
    assert_line("%{public}s %{private, mask}d 100%%", (struct format_argument[]){string("a"), integer(1, 4)},
                2, "a 1 100%");
}

static void what_does_not_suit_is_printed_by_its_own_type(void **state) {
    (void)state;
    struct format_argument pointer = {.kind = FORMAT_POINTER, .bytes = 8, .count = 1, .words = {0xabc}};
    assert_line("%d %x %s %c", (struct format_argument[]){real(1.5f), real(-2), real(3), real(4)}, 4,
                "1.5 -2 3 4");
    assert_line("%f %.1e %g", (struct format_argument[]){integer(-3, 4), natural(~0ull, 8), integer(7, 1)}, 3,
                "-3.000000 1.8e+19 7");
    assert_line("%s %s", (struct format_argument[]){integer(-3, 4), natural(3000000000u, 4)}, 2,
                "-3 3000000000");
    assert_line("%d %s %f", (struct format_argument[]){string("abc"), pointer, pointer}, 3,
                "0x1000 0xabc 0xabc");
    assert_line("%p", (struct format_argument[]){natural(255, 4)}, 1, "0xff");
}

static void what_is_no_conversion_stays(void **state) {
    (void)state;
    struct format_argument one = integer(1, 4);
    assert_line("50%; %d", &one, 1, "50%; 1");
    assert_line("%n %d", &one, 1, "%n 1");
    assert_line("%y %", &one, 1, "%y %");
    assert_line("%5", &one, 1, "%5");
    assert_line("%{unclosed d", &one, 1, "%{unclosed d");
    assert_line("%d %d %s", &one, 1, "1 (missing) (missing)");
    assert_line("none", &one, 1, "none");
    assert_line("", &one, 1, "");
    assert_line("line\n", NULL, 0, "line");
    assert_line("%c|", (struct format_argument[]){integer(0, 1)}, 1, "|");
}

static void lines_are_bounded(void **state) {
    (void)state;
    char format[1000], long_text[2000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    for (int i = 0; i < 999; i++) format[i] = "\xc3\xa9%s"[i % 4];
    format[999] = 0;
    struct format_argument arguments[4] = {string(long_text), string(long_text), string(long_text),
                                           string(long_text)};
    struct text text = {0};
    text_add(&text, "before");
    format_line(format, strlen(format), arguments, 4, &text);
    assert_int_equal(text.length - 6, FORMAT_LONGEST_LINE);
    assert_string_equal(text_string(&text) + text.length - 4, "x…");
    text_free(&text);
    /* The format ends at its length, not at a zero. */
    format_line("abcdef", 3, NULL, 0, &text);
    assert_string_equal(text_string(&text), "abc");
    text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_those_of_printf),
        cmocka_unit_test(reals_are_those_of_printf),
        cmocka_unit_test(short_integers_are_taken_as_c_does),
        cmocka_unit_test(sizes_may_be_arguments),
        cmocka_unit_test(vectors_are_printed_with_commas),
        cmocka_unit_test(texts_characters_and_addresses),
        cmocka_unit_test(what_does_not_suit_is_printed_by_its_own_type),
        cmocka_unit_test(what_is_no_conversion_stays),
        cmocka_unit_test(lines_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
