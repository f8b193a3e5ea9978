/* Shared by the tests of traces: the file of a trace, read and searched. */
#ifndef SMELT_TESTS_TRACE_FILE_H
#define SMELT_TESTS_TRACE_FILE_H

#include "unit.h"

#include "base/file.h"
#include "smelt/smelt.h"

#include <stdlib.h>
#include <string.h>

static inline void ok(smelt_status status) {
    if (status != SMELT_OK) FAIL_TEST("%s: %s", smelt_status_name(status), smelt_error());
}

/* ---- A strict reader of JSON. */

static inline const char *value(const char *at);

static inline const char *space(const char *at) {
    return at + strspn(at, " \n\t");
}

static inline const char *string(const char *at) {
    if (*at++ != '"') FAIL_TEST("a string was expected at: %.60s", at - 1);
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20) FAIL_TEST("a control character stands in a string: %.60s", at);
        if (*at != '\\') continue;
        at++;
        if (!*at || !strchr("\"\\/bfnrtu", *at)) FAIL_TEST("no escape: %.60s", at - 1);
        if (*at == 'u' && strspn(at + 1, "0123456789abcdef") < 4) FAIL_TEST("no number: %.60s", at);
    }
    return space(at + 1);
}

static inline const char *list(const char *at, char end, bool named) {
    at = space(at + 1);
    if (*at == end) return space(at + 1);
    for (;;) {
        if (named) {
            at = string(at);
            if (*at++ != ':') FAIL_TEST("a colon was expected at: %.60s", at - 1);
        }
        at = value(space(at));
        if (*at == end) return space(at + 1);
        if (*at++ != ',') FAIL_TEST("a comma was expected at: %.60s", at - 1);
        at = space(at);
    }
}

static inline const char *value(const char *at) {
    static const char *const words[] = {"true", "false", "null"};
    if (*at == '{') return list(at, '}', true);
    if (*at == '[') return list(at, ']', false);
    if (*at == '"') return string(at);
    for (int i = 0; i < 3; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0) return space(at + strlen(words[i]));
    char *end;
    (void)strtod(at, &end);
    if (end == at) FAIL_TEST("a value was expected at: %.60s", at);
    return space(end);
}

/* The file's text, which is JSON. */
static inline struct text read_trace(const char *path) {
    struct text text = {0};
    ok(file_read(path, &text));
    const char *end = value(space(text_string(&text)));
    if (*end) FAIL_TEST("behind the JSON stands: %.60s", end);
    return text;
}

static inline int count_of(const struct text *text, const char *words) {
    int count = 0;
    for (const char *at = text_string(text); (at = strstr(at, words)); at++) count++;
    return count;
}

static inline void expect_in(const struct text *text, const char *words) {
    if (!strstr(text_string(text), words))
        FAIL_TEST("'%s' is not in the trace:\n%s", words, text_string(text));
}

/* The number after `name` in the line that contains `words`. */
static inline double number_at(const struct text *text, const char *words, const char *name) {
    const char *line = strstr(text_string(text), words);
    if (!line) FAIL_TEST("'%s' is not in the trace:\n%s", words, text_string(text));
    while (line > text->data && line[-1] != '\n') line--;
    return strtod(strstr(line, name) + strlen(name), NULL);
}

#endif
