#include "warnings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE "SM026"

static bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, word, length) == 0) return true;
    return false;
}

/* Kinds of warnings that are printed on request only, by the end of their name, and the word of --also. */
static const struct {
    const char *end, *word;
} requested[] = {{"conversion]", "conversions"},
                 {"-Wsign-compare]", "conversions"},
                 {"-Wshorten-64-to-32]", "conversions"},
                 {"-Wunreachable-code]", "advice"}};

static bool asks_for(const char *list, const char *word) {
    return has_word(list, word) || has_word(list, "all");
}

/* The name of its kind is at the end of the message. */
static bool is_wanted(const char *message, const char *also) {
    size_t length = strlen(message);
    for (size_t i = 0; i < sizeof requested / sizeof *requested; i++) {
        size_t end = strlen(requested[i].end);
        if (length < end || strcmp(message + length - end, requested[i].end) != 0) continue;
        return asks_for(also, requested[i].word) || asks_for(getenv("SMELT_CHECK_ALSO"), requested[i].word);
    }
    return true;
}

/* Of a line "file:3:7: warning: words", which is cut into its parts. The column may be missing. */
static bool read_warning(char *line, smelt_finding *finding) {
    char *mark = strstr(line, ": warning: ");
    if (!mark) return false;
    finding->message = mark + strlen(": warning: ");
    *mark = 0;
    int numbers[2] = {0, 0}, count = 0;
    for (char *colon; count < 2 && (colon = strrchr(line, ':')) && colon[1]; count++) {
        char *end;
        long number = strtol(colon + 1, &end, 10);
        if (*end || number < 1 || number > 1000000000) break;
        numbers[count] = (int)number;
        *colon = 0;
    }
    finding->line = count == 2 ? numbers[1] : numbers[0];
    finding->column = count == 2 ? numbers[0] : 0;
    finding->file = line;
    return count > 0;
}

smelt_status warnings_collect(struct session *session, const struct options *options,
                              struct findings *findings) {
    char *text;
    if (options->package_size) return SMELT_OK;
    smelt_status status = session_show(session, SMELT_STAGE_WARNINGS, &text);
    if (status != SMELT_OK) return status;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        smelt_finding finding = {.code = CODE, .kind = "advice", .index = -1, .count = 1};
        bool is_source = strncmp(line, "  ", 2) == 0; /* a line of it, or the caret below */
        if (is_source || !read_warning(line, &finding)) continue;
        if (is_wanted(finding.message, options->also)) findings_add_one(findings, &finding);
    }
    smelt_free(text);
    return SMELT_OK;
}
