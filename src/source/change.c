#include "source/change.h"

void change_before(struct changes *changes, uint32_t token, const char *text) {
    const char *old = changes->items[token].before;
    changes->items[token].before = old ? arena_printf(changes->arena, "%s%s", text, old) : text;
}

void change_instead(struct changes *changes, uint32_t token, const char *text) {
    changes->items[token].instead = text;
}

void change_after(struct changes *changes, uint32_t token, const char *text) {
    const struct token *t = &changes->tokens->items[token];
    const char *old = changes->items[token].instead;
    change_instead(
        changes, token,
        old ? arena_printf(changes->arena, "%s%s", old, text)
            : arena_printf(changes->arena, "%.*s%s", (int)t->length, changes->tokens->text + t->start, text));
}
