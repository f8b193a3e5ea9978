#include "kernel/found.h"
#include "frontend/diagnostic.h"
#include "smelt/check.h"

#include <ctype.h>
#include <string.h>

#define REQUEST "smelt: ignore"

/* ---- What is to be ignored. */

/* Whether the comment of a line asks for it. */
static bool comment_names(const char *comment, const char *code) {
    const char *at = strstr(comment, REQUEST);
    if (!at) return false;
    at += sizeof REQUEST - 1;
    for (;;) {
        at += strspn(at, " \t,");
        size_t length = 0;
        while (isalnum((unsigned char)at[length])) length++;
        if (!length || strncmp(at, "SM", 2) != 0) return false;
        if (strlen(code) == length && strncmp(at, code, length) == 0) return true;
        at += length;
    }
}

static bool line_ignores(const struct translation *translation, const char *file, int line,
                         bool must_be_alone, const char *code) {
    struct text text = {0};
    bool found = false;
    if (diagnostics_line(translation, file, line, &text)) {
        const char *whole = text_string(&text), *comment = strstr(whole, "//");
        bool alone = comment && strspn(whole, " \t") == (size_t)(comment - whole);
        found = comment && (alone || !must_be_alone) && comment_names(comment, code);
    }
    text_free(&text);
    return found;
}

static bool is_ignored(const struct translation *translation, const char *file, int line, const char *code) {
    return line > 0 && (line_ignores(translation, file, line, false, code) ||
                        line_ignores(translation, file, line - 1, true, code));
}

/* ---- Columns. */

static int column_of(const struct translation *translation, const char *file, int line, int column) {
    return translation && line > 0 ? diagnostics_column(translation, file, line, column) : 0;
}

bool found_accept(const struct launch *launch, struct smelt_finding *f) {
    const struct translation *translation = launch->translation;
    if (translation && (is_ignored(translation, f->file, f->line, f->code) ||
                        is_ignored(translation, f->other_file, f->other_line, f->code)))
        return false;
    f->column = column_of(translation, f->file, f->line, f->column);
    f->other_column = column_of(translation, f->other_file, f->other_line, f->other_column);
    return true;
}
