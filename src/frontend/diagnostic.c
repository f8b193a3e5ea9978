#include "frontend/diagnostic.h"
#include "base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGES 20

/* file:line:column: kind: message */
struct message {
    char file[512];
    int line, column;
    char kind[32];
    const char *text;
    size_t length;
};

static bool parse(const char *line, size_t length, struct message *out) {
    /* From the left the first ":N:N: " is the place: file names may hold colons. */
    for (size_t i = 0; i + 6 < length; i++) {
        int used = 0;
        if (line[i] != ':' || !isdigit((unsigned char)line[i + 1])) continue;
        if (sscanf(line + i, ":%d:%d: %31[a-z ]:%n", &out->line, &out->column, out->kind, &used) != 3 || !used) continue;
        if (i + (size_t)used > length || i >= sizeof out->file) return false;
        memcpy(out->file, line, i);
        out->file[i] = 0;
        out->text = line + i + used;
        out->length = length - i - (size_t)used;
        while (out->length && *out->text == ' ') {
            out->text++;
            out->length--;
        }
        return true;
    }
    return false;
}

static bool is_ours(const char *file) { return file[0] == '<' || !*file; }

static const char *line_of(const char *text, int line, size_t *length) {
    for (; text && line > 1; line--) {
        text = strchr(text, '\n');
        if (text) text++;
    }
    if (text) *length = strcspn(text, "\r\n");
    return text;
}

/* The user's own text under this name: one of the translation's, else a file. */
static const char *user_text(const struct translation *t, const char *name, struct text *storage) {
    for (int i = 0; i < TRANSLATION_MAX_TEXTS; i++)
        if (t->texts[i].name && strcmp(t->texts[i].name, name) == 0) return t->texts[i].text;
    if (file_read(name, storage) == SMELT_OK) return text_string(storage);
    return NULL;
}

/* The line of `text` that #line directives and line markers call file:line; its bytes [*start, *end). */
static bool physical_line(const struct text *text, const char *file, int line, size_t *start, size_t *end) {
    char current[512] = "";
    int number = 1;
    for (size_t at = 0; at < text->length;) {
        size_t stop = at + strcspn(text->data + at, "\n");
        const char *l = text->data + at;
        char name[512];
        int next, used = 0;
        bool marker = *l == '#' && (sscanf(l, "#line %d \"%511[^\"\n]\"%n", &next, name, &used) == 2 ||
                                    sscanf(l, "# %d \"%511[^\"\n]\"%n", &next, name, &used) == 2);
        if (marker) {
            snprintf(current, sizeof current, "%s", name);
            number = next;
        } else {
            if (number == line && strcmp(current, file) == 0) {
                *start = at;
                *end = stop;
                return true;
            }
            number++;
        }
        at = stop + 1;
    }
    return false;
}

/* The column in the user's line: through the rewriter's map back to the preprocessed line, then token by token to
 * the line as it was written. 0 if it cannot be told. */
static int user_column(const struct translation *t, const struct message *m, const char *user, size_t user_length) {
    size_t start, end;
    if (!t->program.text.data || !physical_line(&t->program.text, m->file, m->line, &start, &end)) return m->column;
    uint32_t position = (uint32_t)(start + (size_t)(m->column > 0 ? m->column - 1 : 0));
    uint32_t origin = program_origin(&t->program, position);
    const char *source = t->source.data;
    size_t line_start = origin;
    while (line_start > 0 && source[line_start - 1] != '\n') line_start--;
    size_t column = origin - line_start;
    if (column < user_length && line_start + user_length <= t->source.length &&
        memcmp(source + line_start, user, user_length) == 0)
        return (int)column + 1;
    /* Preprocessed: white space differs. The same word, counted from the left. */
    struct tokens ours = {0}, theirs = {0};
    size_t length = strcspn(source + line_start, "\n");
    int result = 0;
    if (tokens_read(source + line_start, length, &ours) == SMELT_OK &&
        tokens_read(user, user_length, &theirs) == SMELT_OK) {
        uint32_t index = 0;
        while (index + 1 < ours.count && ours.items[index + 1].start <= column) index++;
        if (index < ours.count) {
            const struct token *token = &ours.items[index];
            int nth = 0;
            for (uint32_t i = 0; i < index; i++)
                nth += ours.items[i].length == token->length &&
                       memcmp(ours.text + ours.items[i].start, ours.text + token->start, token->length) == 0;
            for (uint32_t i = 0; i < theirs.count && !result; i++)
                if (theirs.items[i].length == token->length &&
                    memcmp(theirs.text + theirs.items[i].start, ours.text + token->start, token->length) == 0 && nth-- == 0)
                    result = (int)theirs.items[i].start + 1;
        }
    }
    tokens_free(&ours);
    tokens_free(&theirs);
    return result;
}

/* Our words for address spaces become Metal's again. */
static void add_message_text(const char *text, size_t length, struct text *out) {
    static const char *const words[][2] = {
        {"__attribute__((opencl_global_device))", "device"}, {"__attribute__((opencl_local))", "threadgroup"},
        {"__attribute__((opencl_global_host))", "constant"}, {"__global_device", "device"},
        {"__global_host", "constant"},                       {"__local", "threadgroup"},
        {"SYdevice", "device"},                              {"_Float16", "half"},
        {"__bf16", "bfloat"}};
    for (size_t i = 0; i < length;) {
        size_t w = 0, count = sizeof words / sizeof *words;
        for (; w < count; w++) {
            size_t n = strlen(words[w][0]);
            if (i + n <= length && memcmp(text + i, words[w][0], n) == 0) {
                text_add(out, words[w][1]);
                i += n;
                break;
            }
        }
        if (w == count) text_append(out, text + i++, 1);
    }
}

static void describe(const struct translation *t, const struct message *m, const char *text, size_t length,
                     struct text *out) {
    struct text storage = {0};
    const char *user = user_text(t, m->file, &storage);
    size_t line_length = 0;
    const char *line = line_of(user, m->line, &line_length);
    int column = line ? user_column(t, m, line, line_length) : m->column;
    text_addf(out, "%s%s:%d", out->length ? "\n" : "", m->file, m->line);
    if (column > 0) text_addf(out, ":%d", column);
    text_add(out, ": error: ");
    add_message_text(text, length, out);
    if (line) {
        text_add(out, "\n  ");
        text_append(out, line, line_length);
        if (column > 0) {
            text_add(out, "\n  ");
            for (int i = 0; i + 1 < column; i++) text_add(out, (size_t)i < line_length && line[i] == '\t' ? "\t" : " ");
            text_add(out, "^");
        }
    }
    text_free(&storage);
}

void diagnostics_describe(const struct translation *t, const char *messages, struct text *out) {
    struct message pending = {.text = NULL};
    bool waiting = false; /* an error in the prelude, for which a note may name the user's line */
    int count = 0;
    const char *first_line = messages;
    for (const char *at = messages; *at && count < MAX_MESSAGES;) {
        size_t length = strcspn(at, "\n");
        struct message m;
        if (parse(at, length, &m)) {
            bool error = strstr(m.kind, "error") != NULL;
            if (error && !is_ours(m.file)) {
                describe(t, &m, m.text, m.length, out);
                waiting = false;
                count++;
            } else if (error) {
                pending = m;
                waiting = true;
            } else if (waiting && !is_ours(m.file)) {
                describe(t, &m, pending.text, pending.length, out);
                waiting = false;
                count++;
            }
        }
        at += length + (at[length] == '\n');
    }
    if (!count && waiting) text_append(out, pending.text, pending.length);
    if (!out->length) text_append(out, first_line, strcspn(first_line, "\n"));
}
