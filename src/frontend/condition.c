#include "frontend/condition.h"
#include "frontend/diagnostic.h"
#include "source/token.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static size_t name_length(const char *text) {
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
    return length;
}

/* Whether the list that begins at "<" has a parameter of this name: one in front of "," "=" or ">". */
static bool list_has(const char *list, const char *name, size_t length) {
    int depth = 0;
    for (const char *p = list; *p; p++) {
        depth += (*p == '<') - (*p == '>');
        size_t here = name_length(p);
        const char *end = p + here + strspn(p + here, " \t\n");
        if (here == length && memcmp(p, name, here) == 0 && *end && strchr(",=>", *end)) return true;
        if (here) p += here - 1;
        if (!depth) break;
    }
    return false;
}

static bool is_template_parameter(const char *text, const char *name, size_t length) {
    for (const char *at = text; (at = strstr(at, "template")); at++) {
        const char *list = at + 8 + strspn(at + 8, " \t\n");
        if (*list == '<' && list_has(list, name, length)) return true;
    }
    return false;
}

/* The first template parameter of `program` that an #if or #elif line names; NULL: none, or another line. */
static const char *parameter_named(const char *line, size_t length, const char *program,
                                   size_t *found_length) {
    struct tokens tokens = {0};
    const char *found = NULL, *hash = memchr(line, '#', length);
    if (!hash || tokens_read(hash + 1, length - (size_t)(hash + 1 - line), &tokens) != SMELT_OK) return NULL;
    bool asks = token_is(&tokens, 0, "if") || token_is(&tokens, 0, "elif");
    for (uint32_t i = 1; asks && !found && i < tokens.count; i++) {
        const struct token *token = &tokens.items[i];
        bool defined = token_is(&tokens, i - 1, "defined") ||
                       (i > 1 && token_is(&tokens, i - 1, "(") && token_is(&tokens, i - 2, "defined"));
        if (defined || !token_is_identifier(&tokens, i) ||
            !is_template_parameter(program, hash + 1 + token->start, token->length))
            continue;
        found = hash + 1 + token->start;
        *found_length = token->length;
    }
    tokens_free(&tokens);
    return found;
}

static bool is_macro(const char *text, const char *name, size_t length) {
    for (const char *at = text; (at = strstr(at, "define")); at++) {
        const char *p = at + 6 + strspn(at + 6, " \t");
        if (strncmp(p, name, length) == 0 && name_length(p) == length) return true;
    }
    return false;
}

void conditions_warn(const struct translation *t, struct text *out) {
    for (int i = 0; i < TRANSLATION_MAX_TEXTS; i++) {
        const char *text = t->texts[i].text, *line = text;
        for (int number = 1; line && *line; number++) {
            size_t line_length = strcspn(line, "\n"), length = 0;
            const char *name = line[strspn(line, " \t")] == '#'
                                   ? parameter_named(line, line_length, text_string(&t->source), &length)
                                   : NULL;
            if (name && !is_macro(text, name, length)) {
                char message[300];
                snprintf(message, sizeof message,
                         "'%.*s' is a template parameter, which the preprocessor takes for 0; use if "
                         "constexpr [-Wundef]",
                         (int)(length < 100 ? length : 100), name);
                diagnostics_add_warning(t, t->texts[i].name, number, (int)(name - line) + 1, message, out);
            }
            line += line_length + (line[line_length] == '\n');
        }
    }
}
