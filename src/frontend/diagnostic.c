#include "frontend/diagnostic.h"
#include "frontend/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGES 20

static const char *shown_name(const char *file) {
    return strncmp(file, "./", 2) == 0 ? file + 2 : file;
}

/* Of a line longer than this only the place that is meant is shown. */
#define LONGEST_LINE 400
#define SHOWN_BEFORE 60

/* The line, and a caret under its column, if that is above 0. */
static void add_line(const char *line, size_t length, int column, struct text *out) {
    size_t first = 0;
    if (length > LONGEST_LINE) {
        if (column > SHOWN_BEFORE && (size_t)column <= length) first = (size_t)column - SHOWN_BEFORE;
        if (length - first > LONGEST_LINE) length = first + LONGEST_LINE;
    }
    /* Whole characters of UTF-8. */
    while (first && ((unsigned char)line[first] & 0xc0) == 0x80) first--;
    while (length > first && length - first >= LONGEST_LINE && ((unsigned char)line[length] & 0xc0) == 0x80)
        length--;
    text_add(out, "\n  ");
    text_append(out, line + first, length - first);
    if (column <= 0) return;
    text_add(out, "\n  ");
    for (size_t i = first; i + 1 < (size_t)column; i++)
        text_add(out, i < length && line[i] == '\t' ? "\t" : " ");
    text_add(out, "^");
}

/* An #include or #embed that leads out of the folders clang sees: see overlay.h. */
static bool is_outside(const char *text, size_t length) {
    static const char end[] = "' file not found";
    const char *quote = memmem(text, length, end, sizeof end - 1);
    if (!quote || *text != '\'') return false;
    return text[1] == '/' || memmem(text, (size_t)(quote - text), "..", 2);
}

void diagnostics_add_kind(const char *kind, const char *file, int line_number, int column, const char *text,
                          size_t length, const char *line, size_t line_length, struct text *out) {
    text_addf(out, "%s%s:%d", out->length ? "\n" : "", shown_name(file), line_number);
    if (column > 0) text_addf(out, ":%d", column);
    text_addf(out, ": %s: ", kind);
    message_add_text(text, length, out);
    if (is_outside(text, length))
        text_add(out, ": a source can include files only from its folder and the include paths (-I)");
    if (line) add_line(line, line_length, column, out);
}

static void add_described(const char *file, int line_number, int column, const char *text, size_t length,
                          const char *line, size_t line_length, struct text *out) {
    diagnostics_add_kind("error", file, line_number, column, text, message_useful_length(text, length), line,
                         line_length, out);
}

/* Lines of the entry point are named after the byte of the source that they are about: "<at 120>". */
static bool is_about_byte(const char *file, uint32_t *position) {
    const char *name = strstr(file, "<at ");
    return name && sscanf(name, "<at %u>", position) == 1;
}

/* A static_assert that the rewriter put among the user's lines. */
static bool is_own_assertion(const char *text, size_t length) {
    static const char start[] = "static assertion failed due to requirement '__smelt::is_";
    return length > strlen(start) && memcmp(text, start, strlen(start)) == 0;
}

static void describe(const struct translation *t, const struct message *m, const char *text, size_t length,
                     struct text *out) {
    uint32_t position;
    if (is_about_byte(m->file, &position)) {
        const char *words = message_said(text, length);
        char *message = string_copy(words, message_useful_length(words, length - (size_t)(words - text)));
        if (message) diagnostics_add(t, position, message, out);
        free(message);
        return;
    }
    if (is_own_assertion(text, length)) {
        const char *words = message_said(text, length);
        length -= (size_t)(words - text);
        text = words;
    }
    struct text storage = {0};
    size_t line_length = 0;
    const char *line = user_line(t, m->file, m->line, &storage, &line_length);
    int column = line ? user_line_message_column(t, m, line, line_length) : m->column;
    add_described(m->file, m->line, column, text, length, line, line_length, out);
    text_free(&storage);
}

void diagnostics_add(const struct translation *t, uint32_t position, const char *message, struct text *out) {
    char file[512];
    int number = user_line_place(&t->source, position, file);
    if (!*file && t->texts[0].name) snprintf(file, sizeof file, "%s", t->texts[0].name);
    struct text storage = {0};
    size_t line_length = 0;
    const char *line = user_line(t, file, number, &storage, &line_length);
    int column = line ? user_line_column(t, position, line, line_length) : 0;
    add_described(file, number, column, message, strlen(message), line, line_length, out);
    text_free(&storage);
}

void diagnostics_add_placed(const char *kind, const struct translation *t, const struct message *m,
                            struct text *out) {
    struct text storage = {0}, one = {0};
    size_t length = 0;
    const char *line = user_line(t, m->file, m->line, &storage, &length);
    int column = line ? user_line_message_column(t, m, line, length) : m->column;
    diagnostics_add_kind(kind, m->file, m->line, column, m->text, m->length, line, length, &one);
    if (one.length && !strstr(text_string(out), one.data))
        text_addf(out, "%s%s", out->length ? "\n" : "", one.data);
    text_free(&one);
    text_free(&storage);
}

/* Each instantiation of a template repeats its errors: said once. */
static bool describe_once(const struct translation *t, const struct message *m, const char *text,
                          size_t length, struct text *out) {
    struct text one = {0};
    describe(t, m, text, length, &one);
    bool fresh = one.length && !strstr(text_string(out), one.data);
    if (fresh) text_addf(out, "%s%s", out->length ? "\n" : "", one.data);
    text_free(&one);
    return fresh;
}

#define MOST_NOTES 3 /* for one error */

/* Whether a message is a note that says why, about a place in the user's text. */
static bool explains(const struct message *m) {
    static const char *const starts[] = {"in instantiation of ", "candidate "};
    if (strcmp(m->kind, "note") != 0 || message_is_ours(m->file) || strstr(m->file, "<at ")) return false;
    for (int i = 0; i < 2; i++)
        if (m->length > strlen(starts[i]) && memcmp(m->text, starts[i], strlen(starts[i])) == 0) return true;
    return false;
}

void diagnostics_describe(const struct translation *t, const char *messages, struct text *out) {
    struct text note = {0};
    struct message pending = {.text = NULL}, before = {.text = NULL};
    bool waiting = false; /* an error in the prelude, for which a note may name the user's line */
    int count = 0, notes = MOST_NOTES; /* of the last error; MOST_NOTES where no error was added */
    const char *first_line = messages;
    for (const char *at = messages; *at && count < MAX_MESSAGES;) {
        size_t length = strcspn(at, "\n");
        struct message m;
        if (message_read(at, length, &m)) {
            bool error = strstr(m.kind, "error") != NULL;
            if (error && !message_is_ours(m.file)) {
                hint_log(&m, &note);
                bool fresh = !hint_follows_guess(&m, &before) && describe_once(t, &m, m.text, m.length, out);
                count += fresh;
                notes = fresh ? 0 : MOST_NOTES;
                hint_template(t, &m, &note);
                hint_value(t, &m, &note);
                hint_name(t, &m, &note);
                before = m;
                waiting = false;
            } else if (error) {
                notes = MOST_NOTES;
                pending = m;
                pending.text = message_said(m.text, m.length);
                pending.length -= (size_t)(pending.text - m.text);
                waiting = true;
            } else if (notes < MOST_NOTES && explains(&m)) {
                notes++;
                diagnostics_add_placed("note", t, &m, out);
            } else if (waiting && !message_is_ours(m.file)) {
                count += describe_once(t, &m, pending.text, pending.length, out);
                waiting = false;
            }
        }
        at += length + (at[length] == '\n');
    }
    if (!count && waiting) text_append(out, pending.text, pending.length);
    if (!out->length) text_append(out, first_line, strcspn(first_line, "\n"));
    text_add(out, text_string(&note));
    text_free(&note);
}
