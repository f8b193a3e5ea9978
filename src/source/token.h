/* C++ tokens of a text, enough for rewriting: offsets into the text, bracket partners, adjacency.
 *
 * Requires: text that is valid up to tokens (anything else becomes one-character punctuation).
 * Comments and white space are not tokens; preprocessor lines are single tokens. */
#ifndef SMELT_SOURCE_TOKEN_H
#define SMELT_SOURCE_TOKEN_H

#include "base/arena.h"
#include "base/error.h"

enum token_kind {
    TOKEN_IDENTIFIER,
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_CHARACTER,
    TOKEN_PUNCTUATION,
    TOKEN_DIRECTIVE /* a whole preprocessor line, continuations included */
};

#define NO_PLACE UINT32_MAX

/* No template argument list, declarator or lambda head is longer than this; a bound keeps every look-ahead,
 * and so the time over any text, linear. */
#define FARTHEST_LOOK 1000

struct token {
    enum token_kind kind;
    uint32_t start, length; /* bytes in the text */
    uint32_t partner;       /* of ( ) [ ] { }: the index of the matching token, else its own index */
    uint32_t outer;         /* the innermost opening bracket it stands behind, or NO_PLACE */
};

struct tokens {
    const char *text;
    size_t text_length;
    struct token *items;
    uint32_t count;
    uint32_t unclosed; /* the byte where the first comment or literal without an end starts, or NO_PLACE */
};

/* Splits a text of less than 2^31 bytes. An unclosed bracket has itself as partner. Free with tokens_free. */
smelt_status tokens_read(const char *text, size_t length, struct tokens *tokens);
void tokens_free(struct tokens *tokens);

/* Whether token `index` is exactly `spelling`; false past either end. */
bool token_is(const struct tokens *tokens, uint32_t index, const char *spelling);
/* One of the spellings, which end with NULL. */
bool token_is_one_of(const struct tokens *tokens, uint32_t index, const char *const *spellings);

/* Whether tokens `index` and `index + 1` touch and spell `first` and `second`, as "[[" or "::". */
bool token_pair(const struct tokens *tokens, uint32_t index, char first, char second);

/* directive.c — whether the directive says where lines come from: #line, or a line marker. */
bool directive_is_line(const struct tokens *tokens, const struct token *token);

/* The text behind a UTF-8 byte order mark, which editors put at its start. */
const char *tokens_behind_mark(const char *text);

bool token_is_identifier(const struct tokens *tokens, uint32_t index);

/* Whether the token names an address space. */
bool token_is_space(const struct tokens *tokens, uint32_t index);

/* Whether the tokens [a, a_end) and [b, b_end) are the same, apart from names of address spaces. */
bool tokens_alike(const struct tokens *tokens, uint32_t a, uint32_t a_end, uint32_t b, uint32_t b_end);

/* Behind the > that closes the template list opened by the < at `open`, looking no further than token `end`;
 * 0 where there is none, as for a comparison. */
uint32_t tokens_angle_end(const struct tokens *tokens, uint32_t open, uint32_t end);

/* The first token of the name of the function whose parameters open at `open`, such as the `operator` of
 * operator[]; `open` if there is none. */
uint32_t tokens_function_name(const struct tokens *tokens, uint32_t open);

/* Whether `word` occurs as an identifier: a token, or in a directive. */
bool tokens_contain(const struct tokens *tokens, const char *word);

/* token_text.c — the tokens from `first` up to and without `last` on one line, without comments and
 * directives. NULL: no memory. */
char *tokens_text(const struct tokens *tokens, uint32_t first, uint32_t last, struct arena *arena);

/* Joined string literals of the tokens [first, last), without quotes. NULL: no memory. */
char *tokens_string(const struct tokens *tokens, uint32_t first, uint32_t last, struct arena *arena);

#endif
