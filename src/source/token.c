#include "source/token.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool identifier_start(char c) {
    return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}
static bool identifier_part(char c) {
    return identifier_start(c) || isdigit((unsigned char)c);
}

/* The bytes of a backslash and the line end that it escapes, or 0. */
static size_t splice(const char *text, size_t length, size_t at) {
    if (at + 1 < length && text[at] == '\\' && text[at + 1] == '\n') return 2;
    if (at + 2 < length && text[at] == '\\' && text[at + 1] == '\r' && text[at + 2] == '\n') return 3;
    return 0;
}

static size_t line_comment_end(const char *text, size_t length, size_t at) {
    while (at < length && text[at] != '\n') {
        size_t hidden = splice(text, length, at);
        at += hidden ? hidden : 1;
    }
    return at;
}

/* The position after the comment that starts at `at`; *closed is false if the text ends first. */
static size_t block_comment_end(const char *text, size_t length, size_t at, bool *closed) {
    const char *end = at + 2 < length ? memmem(text + at + 2, length - at - 2, "*/", 2) : NULL;
    *closed = end != NULL;
    return end ? (size_t)(end - text) + 2 : length;
}

/* The position after the closing quote, or the end of the line if there is none. */
static size_t quoted_end(const char *text, size_t length, size_t at, char quote, bool *closed) {
    for (at++; at < length && text[at] != quote && text[at] != '\n'; at++)
        if (text[at] == '\\' && at + 1 < length) at += splice(text, length, at) == 3 ? 2 : 1;
    *closed = at < length && text[at] == quote;
    return *closed ? at + 1 : at < length ? at : length;
}

/* The end of a preprocessor line, continued by escaped line ends and by comments over several lines. */
static size_t directive_end(const char *text, size_t length, size_t at) {
    bool closed;
    while (at < length && text[at] != '\n') {
        size_t hidden = splice(text, length, at);
        if (hidden)
            at += hidden;
        else if (text[at] == '/' && at + 1 < length && text[at + 1] == '/')
            return line_comment_end(text, length, at);
        else if (text[at] == '/' && at + 1 < length && text[at + 1] == '*')
            at = block_comment_end(text, length, at, &closed);
        else if (text[at] == '"' || text[at] == '\'')
            at = quoted_end(text, length, at, text[at], &closed);
        else
            at++;
    }
    return at;
}

/* R"tag( … )tag", from the quote on. */
static size_t raw_string_end(const char *text, size_t length, size_t quote, bool *closed) {
    size_t open = quote + 1;
    while (open < length && text[open] != '(' && open - quote <= 17) open++;
    size_t tag = open - quote - 1;
    *closed = true;
    for (size_t at = open; at + tag + 2 <= length; at++)
        if (text[at] == ')' && memcmp(text + at + 1, text + quote + 1, tag) == 0 && text[at + 1 + tag] == '"')
            return at + tag + 2;
    *closed = false;
    return length;
}

/* A pp-number: digits, letters, dots, and signs after an exponent letter. */
static size_t number_end(const char *text, size_t length, size_t at) {
    for (at++; at < length; at++) {
        char before = text[at - 1];
        bool sign = (text[at] == '+' || text[at] == '-') && before && strchr("eEpP", before);
        bool hexadecimal_e = sign && (before == 'e' || before == 'E') && at >= 2;
        if (hexadecimal_e) {
            /* In 0x1e+2 the sign is an operator. */
            size_t first = at - 1;
            while (first > 0 && (identifier_part(text[first - 1]) || text[first - 1] == '.')) first--;
            if (text[first] == '0' && (text[first + 1] | 32) == 'x') break;
        }
        if (!identifier_part(text[at]) && text[at] != '.' && !sign &&
            !(text[at] == '\'' && at + 1 < length && isalnum((unsigned char)text[at + 1])))
            break;
    }
    return at;
}

static void note_unclosed(struct tokens *tokens, size_t at, bool closed) {
    if (!closed && tokens->unclosed == NO_PLACE) tokens->unclosed = (uint32_t)at;
}

static size_t skip_blank(struct tokens *tokens, size_t at, bool *line_start) {
    const char *text = tokens->text;
    size_t length = tokens->text_length;
    while (at < length) {
        bool closed;
        if (text[at] == '\n') {
            *line_start = true;
            at++;
        } else if (isspace((unsigned char)text[at])) {
            at++;
        } else if (splice(text, length, at)) {
            at += splice(text, length, at);
        } else if (text[at] == '/' && at + 1 < length && text[at + 1] == '/') {
            at = line_comment_end(text, length, at);
        } else if (text[at] == '/' && at + 1 < length && text[at + 1] == '*') {
            size_t start = at;
            at = block_comment_end(text, length, at, &closed);
            note_unclosed(tokens, start, closed);
        } else {
            break;
        }
    }
    return at;
}

static void match_brackets(struct tokens *tokens, uint32_t *stack) {
    uint32_t depth = 0;
    for (uint32_t i = 0; i < tokens->count; i++) {
        struct token *token = &tokens->items[i];
        token->partner = i;
        token->outer = depth ? stack[depth - 1] : NO_PLACE;
        if (token->kind != TOKEN_PUNCTUATION) continue;
        char c = tokens->text[token->start];
        if (c && strchr("([{", c)) {
            stack[depth++] = i;
        } else if (c && strchr(")]}", c)) {
            char open = c == ')' ? '(' : c == ']' ? '[' : '{';
            /* A closing bracket that does not match its opener leaves the brackets in between unmatched;
             * clang reports them. */
            uint32_t d = depth;
            while (d > 0 && tokens->text[tokens->items[stack[d - 1]].start] != open) d--;
            if (d == 0) continue;
            depth = d - 1;
            token->partner = stack[depth];
            token->outer = depth ? stack[depth - 1] : NO_PLACE;
            tokens->items[stack[depth]].partner = i;
        }
    }
}

smelt_status tokens_read(const char *text, size_t length, struct tokens *tokens) {
    *tokens = (struct tokens){.text = text, .text_length = length, .unclosed = NO_PLACE};
    if (length >= UINT32_MAX / 2)
        return fail(SMELT_ERROR_LIMIT, "the source has %zu bytes, expected at most 2 GiB", length);
    uint32_t capacity = 0;
    bool line_start = true;
    for (size_t at = skip_blank(tokens, 0, &line_start); at < length;
         at = skip_blank(tokens, at, &line_start)) {
        if (tokens->count == capacity) {
            capacity = capacity ? capacity * 2 : 256;
            struct token *grown = realloc(tokens->items, capacity * sizeof *grown);
            if (!grown) {
                tokens_free(tokens);
                return fail_out_of_memory(capacity * sizeof *grown);
            }
            tokens->items = grown;
        }
        enum token_kind kind = TOKEN_PUNCTUATION;
        size_t end = at + 1;
        bool closed = true;
        char c = text[at];
        if (c == '#' && line_start) {
            kind = TOKEN_DIRECTIVE;
            end = directive_end(text, length, at);
        } else if (c == 'R' && at + 1 < length && text[at + 1] == '"') {
            kind = TOKEN_STRING;
            end = raw_string_end(text, length, at + 1, &closed);
        } else if (identifier_start(c)) {
            kind = TOKEN_IDENTIFIER;
            while (end < length && identifier_part(text[end])) end++;
        } else if (isdigit((unsigned char)c) ||
                   (c == '.' && at + 1 < length && isdigit((unsigned char)text[at + 1]))) {
            kind = TOKEN_NUMBER;
            end = number_end(text, length, at);
        } else if (c == '"' || c == '\'') {
            kind = c == '"' ? TOKEN_STRING : TOKEN_CHARACTER;
            end = quoted_end(text, length, at, c, &closed);
        }
        note_unclosed(tokens, at, closed);
        line_start = false;
        tokens->items[tokens->count++] =
            (struct token){.kind = kind, .start = (uint32_t)at, .length = (uint32_t)(end - at)};
        at = end;
    }
    uint32_t *stack = malloc((tokens->count + 1) * sizeof *stack);
    if (!stack) {
        tokens_free(tokens);
        return fail_out_of_memory(tokens->count * sizeof *stack);
    }
    match_brackets(tokens, stack);
    free(stack);
    return SMELT_OK;
}

void tokens_free(struct tokens *tokens) {
    free(tokens->items);
    tokens->items = NULL;
    tokens->count = 0;
}

bool token_is(const struct tokens *tokens, uint32_t index, const char *spelling) {
    if (index >= tokens->count) return false;
    const struct token *token = &tokens->items[index];
    const char *text = tokens->text + token->start;
    /* Most tokens differ in their first character, so the length is rarely computed. */
    return *text == *spelling && token->length == strlen(spelling) &&
           memcmp(text, spelling, token->length) == 0;
}

bool token_is_one_of(const struct tokens *tokens, uint32_t index, const char *const *spellings) {
    for (; *spellings; spellings++)
        if (token_is(tokens, index, *spellings)) return true;
    return false;
}

bool token_pair(const struct tokens *tokens, uint32_t index, char first, char second) {
    if (index >= tokens->count || index + 1 == tokens->count) return false;
    const struct token *a = &tokens->items[index], *b = a + 1;
    return a->kind == TOKEN_PUNCTUATION && b->kind == TOKEN_PUNCTUATION && tokens->text[a->start] == first &&
           tokens->text[b->start] == second && a->start + 1 == b->start;
}

const char *tokens_behind_mark(const char *text) {
    static const char mark[] = "\xef\xbb\xbf";
    return strncmp(text, mark, strlen(mark)) == 0 ? text + strlen(mark) : text;
}

bool token_is_identifier(const struct tokens *tokens, uint32_t index) {
    return index < tokens->count && tokens->items[index].kind == TOKEN_IDENTIFIER;
}

bool token_is_space(const struct tokens *tokens, uint32_t index) {
    static const char *const words[] = {"device", "constant", "threadgroup", "thread", NULL};
    return token_is_one_of(tokens, index, words);
}

bool tokens_alike(const struct tokens *tokens, uint32_t a, uint32_t a_end, uint32_t b, uint32_t b_end) {
    for (;; a++, b++) {
        while (a < a_end && token_is_space(tokens, a)) a++;
        while (b < b_end && token_is_space(tokens, b)) b++;
        if (a == a_end || b == b_end) return a == a_end && b == b_end;
        const struct token *x = &tokens->items[a], *y = &tokens->items[b];
        if (x->length != y->length) return false;
        if (memcmp(tokens->text + x->start, tokens->text + y->start, x->length) != 0) return false;
    }
}

uint32_t tokens_angle_end(const struct tokens *tokens, uint32_t open, uint32_t end) {
    int depth = 0;
    if (end > open && end - open > FARTHEST_LOOK) end = open + FARTHEST_LOOK;
    for (uint32_t i = open; i < end && i < tokens->count; i++) {
        const struct token *token = &tokens->items[i];
        if (token->partner > i) {
            if (token_is(tokens, i, "{")) break;
            i = token->partner;
            continue;
        }
        if (token->kind != TOKEN_PUNCTUATION) continue;
        char c = tokens->text[token->start];
        if (!c || strchr(";)]}", c)) break;
        if (c == '<' && i > open && (token_pair(tokens, i, '<', '=') || token_pair(tokens, i, '<', '<')))
            i++;
        else if (c == '<')
            depth++;
        else if (c == '>' && !token_pair(tokens, i, '>', '=') && !token_pair(tokens, i - 1, '-', '>') &&
                 --depth == 0)
            return i + 1;
    }
    return 0;
}

/* Whether the text of a directive contains the word, which macros may bring into the code. */
static bool directive_contains(const char *text, size_t length, const char *word) {
    size_t word_length = strlen(word);
    for (size_t at = 0; at < length;) {
        if (!identifier_part(text[at])) {
            at++;
            continue;
        }
        size_t start = at;
        while (at < length && identifier_part(text[at])) at++;
        if (at - start == word_length && memcmp(text + start, word, word_length) == 0) return true;
    }
    return false;
}

bool tokens_contain(const struct tokens *tokens, const char *word) {
    for (uint32_t i = 0; i < tokens->count; i++) {
        const struct token *token = &tokens->items[i];
        if (token->kind == TOKEN_IDENTIFIER && token_is(tokens, i, word)) return true;
        if (token->kind == TOKEN_DIRECTIVE &&
            directive_contains(tokens->text + token->start, token->length, word))
            return true;
    }
    return false;
}

uint32_t tokens_function_name(const struct tokens *tokens, uint32_t open) {
    for (uint32_t i = open; i-- > 0 && open - i <= 4;)
        if (token_is(tokens, i, "operator")) return i;
    return open && token_is_identifier(tokens, open - 1) ? open - 1 : open;
}
