#include "base/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Wider fields and more digits than this are never meant. */
#define WIDEST_FIELD 256
#define CUT_MARK "…"

/* One conversion as the format has it. */
struct conversion {
    char flags[6]; /* each of "-+ #0" at most once */
    int width;     /* -1: none */
    int precision; /* -1: none */
    int vector;    /* components; 0: none given */
    int bytes;     /* an integer is taken as this many (hh, h); 0: as many as it has */
    char letter;
};

struct line {
    struct text *text;
    const struct format_argument *arguments;
    int count, next; /* arguments, and which comes next */
};

static const struct format_argument *take(struct line *line) {
    return line->next < line->count ? &line->arguments[line->next++] : NULL;
}

/* ---- Reading a conversion. */

struct cursor {
    const char *at, *end;
};

static char peek(const struct cursor *c) {
    return (char)(c->at < c->end ? *c->at : 0);
}

static bool skip(struct cursor *c, char wanted) {
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static int read_number(struct cursor *c) {
    int number = 0;
    for (; peek(c) >= '0' && peek(c) <= '9'; c->at++)
        if (number <= WIDEST_FIELD) number = 10 * number + (*c->at - '0');
    return number < WIDEST_FIELD ? number : WIDEST_FIELD;
}

/* A number, or * for an argument. */
static int read_size(struct cursor *c, struct line *line) {
    if (!skip(c, '*')) return read_number(c);
    const struct format_argument *argument = take(line);
    bool integer = argument && (argument->kind == FORMAT_SIGNED || argument->kind == FORMAT_UNSIGNED);
    int64_t size = integer ? (int64_t)argument->words[0] : 0;
    return size > WIDEST_FIELD ? WIDEST_FIELD : size < -WIDEST_FIELD ? -WIDEST_FIELD : (int)size;
}

static void read_flags(struct cursor *c, struct conversion *conversion) {
    size_t count = 0;
    for (; peek(c) && strchr("-+ #0", peek(c)); c->at++)
        if (!strchr(conversion->flags, *c->at)) conversion->flags[count++] = *c->at;
}

static void read_length(struct cursor *c, struct conversion *conversion) {
    if (skip(c, 'h')) {
        conversion->bytes = skip(c, 'h') ? 1 : skip(c, 'l') ? 0 : 2; /* hl: 32 bits, of vectors */
        return;
    }
    while (peek(c) && strchr("lqjztL", peek(c))) c->at++;
}

/* Behind the %. False if this is not a conversion; then no argument has been consumed. */
static bool read_conversion(struct cursor *c, struct line *line, struct conversion *conversion) {
    *conversion = (struct conversion){.width = -1, .precision = -1};
    if (peek(c) == '{') {
        const char *close = memchr(c->at, '}', (size_t)(c->end - c->at));
        if (!close) return false;
        c->at = close + 1;
    }
    read_flags(c, conversion);
    if (peek(c) == '*' || (peek(c) >= '0' && peek(c) <= '9')) conversion->width = read_size(c, line);
    if (conversion->width < -1) {
        conversion->width = -conversion->width;
        if (!strchr(conversion->flags, '-')) conversion->flags[strlen(conversion->flags)] = '-';
    }
    if (skip(c, '.')) conversion->precision = read_size(c, line);
    if (skip(c, 'v')) conversion->vector = read_number(c);
    read_length(c, conversion);
    conversion->letter = peek(c);
    if (!conversion->letter || !strchr("diouxXfFeEgGaAcsp", conversion->letter)) return false;
    c->at++;
    return true;
}

/* ---- Printing. */

/* The parts of a conversion as one of printf's own, whose type is `length` and `letter`. */
static void spell(const struct conversion *conversion, const char *without, const char *length, char letter,
                  char spelled[64]) {
    char *at = spelled;
    *at++ = '%';
    for (const char *f = conversion->flags; *f; f++)
        if (!strchr(without, *f)) *at++ = *f;
    if (conversion->width >= 0) at += snprintf(at, 16, "%d", conversion->width);
    if (conversion->precision >= 0) at += snprintf(at, 16, ".%d", conversion->precision);
    snprintf(at, 16, "%s%c", length, letter);
}

/* Only spell() writes `spelled`: flags, sizes within bounds, and a type that is the value's. */
#define PRINT(line, spelled, ...)                                         \
    do {                                                                  \
        char field[2 * WIDEST_FIELD + 128];                               \
        int used = snprintf(field, sizeof field, (spelled), __VA_ARGS__); \
        if (used > 0) text_add((line)->text, field);                      \
    } while (0)

static void print_real(struct line *line, const struct conversion *conversion, char letter, double value) {
    char spelled[64];
    spell(conversion, "", "", letter, spelled);
    PRINT(line, spelled, value);
}

static uint64_t low_bytes(uint64_t word, int bytes) {
    return bytes >= 8 ? word : word & ((UINT64_C(1) << 8 * bytes) - 1);
}

static void print_integer(struct line *line, const struct conversion *conversion, char letter, uint64_t word,
                          int bytes) {
    char spelled[64];
    /* As in C, types smaller than int are passed as int. */
    bytes = bytes < 4 ? 4 : bytes;
    if (conversion->bytes) bytes = conversion->bytes;
    word = low_bytes(word, bytes);
    if (letter == 'd' || letter == 'i') {
        int unused = 64 - 8 * bytes;
        int64_t number = (int64_t)(word << unused) >> unused;
        spell(conversion, "#", "ll", 'd', spelled);
        PRINT(line, spelled, (long long)number);
    } else {
        spell(conversion, letter == 'u' ? "+ #" : "+ ", "ll", letter, spelled);
        PRINT(line, spelled, (unsigned long long)word);
    }
}

static void print_string(struct line *line, const struct conversion *conversion, const char *string,
                         size_t length) {
    char spelled[64], copy[WIDEST_FIELD + 1];
    /* Long ones have no use for a width. */
    if (length > WIDEST_FIELD && conversion->precision < 0) {
        text_append(line->text, string, length);
        return;
    }
    length = length > WIDEST_FIELD ? WIDEST_FIELD : length;
    memcpy(copy, string, length);
    copy[length] = 0;
    spell(conversion, "+ #0", "", 's', spelled);
    PRINT(line, spelled, copy);
}

static void print_address(struct line *line, const struct conversion *conversion, uint64_t word) {
    char address[32];
    struct conversion field = *conversion;
    field.precision = -1;
    int length = snprintf(address, sizeof address, "0x%llx", (unsigned long long)word);
    print_string(line, &field, address, (size_t)length);
}

static float real_of(uint64_t word) {
    uint32_t bits = (uint32_t)word;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* One component, by its own type where the conversion is for another. */
static void print_component(struct line *line, const struct conversion *conversion,
                            const struct format_argument *argument, int component) {
    uint64_t word = argument->words[component];
    bool for_real = strchr("fFeEgGaA", conversion->letter) != NULL;
    char letter = conversion->letter;
    if (argument->kind == FORMAT_TEXT && letter == 's') {
        print_string(line, conversion, argument->text, argument->text_length);
    } else if (letter == 'p' || ((argument->kind == FORMAT_TEXT || argument->kind == FORMAT_POINTER) &&
                                 !strchr("uoxX", letter))) {
        print_address(line, conversion, word);
    } else if (argument->kind == FORMAT_FLOAT) {
        print_real(line, conversion, for_real ? letter : 'g', real_of(word));
    } else if (for_real) {
        bool negative = argument->kind == FORMAT_SIGNED && (int64_t)word < 0;
        print_real(line, conversion, letter, negative ? (double)(int64_t)word : (double)word);
    } else if (letter == 'c') {
        char character = (char)word;
        print_string(line, conversion, &character, character != 0);
    } else {
        if (letter == 's') letter = argument->kind == FORMAT_SIGNED ? 'd' : 'u';
        print_integer(line, conversion, letter, word, argument->bytes);
    }
}

static void print_argument(struct line *line, const struct conversion *conversion) {
    const struct format_argument *argument = take(line);
    if (!argument) {
        text_add(line->text, "(missing)");
        return;
    }
    int count = argument->count;
    if (conversion->vector && conversion->vector < count) count = conversion->vector;
    for (int i = 0; i < count && i < FORMAT_MAX_COMPONENTS; i++) {
        if (i) text_add(line->text, ",");
        print_component(line, conversion, argument, i);
    }
}

/* ---- The line. */

/* Cut where a character of UTF-8 begins. */
static void cut(struct text *text, size_t start) {
    size_t end = start + FORMAT_LONGEST_LINE - strlen(CUT_MARK);
    while (end > start && ((unsigned char)text->data[end] & 0xC0) == 0x80) end--;
    text->length = end;
    text_add(text, CUT_MARK);
}

void format_line(const char *format, size_t length, const struct format_argument *arguments, int count,
                 struct text *text) {
    struct line line = {.text = text, .arguments = arguments, .count = count};
    size_t start = text->length;
    const char *zero = length ? memchr(format, 0, length) : NULL;
    struct cursor c = {format, zero ? zero : format + length};
    while (c.at < c.end && text->length - start <= FORMAT_LONGEST_LINE && !text->failed) {
        const char *percent = memchr(c.at, '%', (size_t)(c.end - c.at));
        text_append(text, c.at, (size_t)((percent ? percent : c.end) - c.at));
        if (!percent) break;
        c.at = percent + 1;
        if (skip(&c, '%')) {
            text_add(text, "%");
            continue;
        }
        struct conversion conversion;
        if (read_conversion(&c, &line, &conversion))
            print_argument(&line, &conversion);
        else
            text_append(text, percent, (size_t)(c.at - percent));
    }
    if (!text->failed && text->length - start > FORMAT_LONGEST_LINE) cut(text, start);
    /* Whoever prints lines ends them. */
    if (!text->failed && text->length > start && text->data[text->length - 1] == '\n')
        text->data[--text->length] = 0;
}
