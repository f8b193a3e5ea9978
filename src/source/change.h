/* The changes to each token of a text: text before it, and text in its place. The files that rewrite fill it;
 * the rewriter writes it out. */
#ifndef SMELT_SOURCE_CHANGE_H
#define SMELT_SOURCE_CHANGE_H

#include "base/arena.h"
#include "base/text.h"
#include "source/token.h"

struct change {
    const char *before, *instead; /* NULL: nothing, and the token itself */
};

struct changes {
    const struct tokens *tokens;
    struct arena *arena; /* a failed allocation is seen in it */
    struct change *items;
};

void change_before(struct changes *changes, uint32_t token, const char *text);
void change_instead(struct changes *changes, uint32_t token, const char *text);
/* After the token as it was written. */
void change_after(struct changes *changes, uint32_t token, const char *text);

/* Appends a token with its changes to `out`, and a blank if there is something between it and the next token,
 * unless that is `last`. */
void change_write(const struct changes *changes, uint32_t token, uint32_t last, struct text *out);

#endif
