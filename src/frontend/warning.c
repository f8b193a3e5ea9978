/* Warnings, and the comments that ask to ignore them or other findings. */
#include "abi/check.h"
#include "frontend/diagnostic.h"
#include "frontend/message.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- What is to be ignored. */

#define REQUEST "smelt: ignore"

/* The list of codes in a comment; NULL: it has none. */
static const char *requested_codes(const char *comment) {
    const char *at = strstr(comment, REQUEST);
    if (!at) return NULL;
    at += sizeof REQUEST - 1;
    return *at == ' ' || *at == '\t' ? at : NULL;
}

/* The next word of such a list, after which *at stands. Words after the first that do not begin like codes
 * are not part of it. NULL: the list ends. */
static const char *next_code(const char **at, bool first, size_t *length) {
    const char *word = *at + strspn(*at, " \t,");
    *length = 0;
    while (isalnum((unsigned char)word[*length])) ++*length;
    *at = word + *length;
    return *length && (first || strncmp(word, "SM", 2) == 0) ? word : NULL;
}

static bool comment_names(const char *comment, const char *code) {
    const char *at = requested_codes(comment), *word;
    size_t length;
    for (bool first = true; at && (word = next_code(&at, first, &length)); first = false)
        if (strlen(code) == length && strncmp(word, code, length) == 0) return true;
    return false;
}

static bool is_code(const char *word, size_t length) {
    for (const char *code = CHECK_CODES; *code; code += 6)
        if (length == 5 && strncmp(word, code, 5) == 0) return true;
    return false;
}

static bool line_ignores(const struct translation *t, const char *file, int line, bool must_be_alone,
                         const char *code) {
    struct text text = {0};
    bool found = false;
    if (diagnostics_line(t, file, line, &text)) {
        const char *whole = text_string(&text), *comment = strstr(whole, "//");
        bool alone = comment && strspn(whole, " \t") == (size_t)(comment - whole);
        found = comment && (alone || !must_be_alone) && comment_names(comment, code);
    }
    text_free(&text);
    return found;
}

bool diagnostics_ignored(const struct translation *t, const char *file, int line, const char *code) {
    return line > 0 &&
           (line_ignores(t, file, line, false, code) || line_ignores(t, file, line - 1, true, code));
}

/* ---- Warnings. */

#define WARNING_CODE "SM026" /* of smelt check */

void diagnostics_warn(const struct translation *t, const char *messages, struct text *out) {
    for (const char *at = messages; *at;) {
        size_t length = strcspn(at, "\n");
        struct message m;
        if (message_read(at, length, &m) && strcmp(m.kind, "warning") == 0 && !message_is_ours(m.file) &&
            !strstr(m.file, "<at ") && !diagnostics_ignored(t, m.file, m.line, WARNING_CODE))
            diagnostics_add_placed("warning", t, &m, out);
        at += length + (at[length] == '\n');
    }
}

void diagnostics_add_warning(const struct translation *t, const char *file, int line, int column,
                             const char *message, struct text *out) {
    struct text storage = {0};
    size_t length = 0;
    const char *text = user_line(t, file, line, &storage, &length);
    if (!diagnostics_ignored(t, file, line, WARNING_CODE))
        diagnostics_add_kind("warning", file, line, column, message, strlen(message), text, length, out);
    text_free(&storage);
}

/* Warns of each unknown code in the comment of the line, which has `length` bytes. */
static void warn_of_codes(const struct translation *t, const char *file, int number, const char *line,
                          size_t length, struct text *out) {
    struct text copy = {0};
    text_append(&copy, line, length);
    const char *whole = text_string(&copy), *comment = strstr(whole, "//");
    const char *at = comment ? requested_codes(comment) : NULL, *word;
    size_t size;
    for (bool first = true; at && (word = next_code(&at, first, &size)); first = false) {
        char message[200];
        if (is_code(word, size)) continue;
        snprintf(message, sizeof message,
                 "'%.*s' is not the code of a finding: this comment does not ignore it",
                 (int)(size < 100 ? size : 100), word);
        diagnostics_add_warning(t, file, number, (int)(word - whole) + 1, message, out);
    }
    text_free(&copy);
}

void diagnostics_warn_of_codes(const struct translation *t, struct text *out) {
    for (int i = 0; i < TRANSLATION_MAX_TEXTS; i++) {
        const char *line = t->texts[i].text;
        for (int number = 1; line && *line; number++) {
            size_t length = strcspn(line, "\n");
            warn_of_codes(t, t->texts[i].name, number, line, length, out);
            line += length + (line[length] == '\n');
        }
    }
}
