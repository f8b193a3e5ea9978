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

void change_write(const struct changes *changes, uint32_t token, uint32_t last, struct text *out) {
    const struct token *t = &changes->tokens->items[token];
    const struct change *change = &changes->items[token];
    if (change->before) text_add(out, change->before);
    if (change->instead)
        text_add(out, change->instead);
    else
        text_append(out, changes->tokens->text + t->start, t->length);
    /* Adjacent tokens, as in ::, stay together. */
    if (token + 1 < last && t[1].start > t->start + t->length) text_add(out, " ");
}
