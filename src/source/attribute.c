#include "source/attribute.h"

#include <string.h>

const struct attribute attributes[] = {
#define X(name, dimensions) {#name, dimensions},
    ATTRIBUTE_TABLE(X)
#undef X
        {NULL, 0},
};

const struct attribute *attribute_find(const char *name, size_t count) {
    for (const struct attribute *a = attributes; a->name; a++)
        if (strlen(a->name) == count && memcmp(a->name, name, count) == 0) return a;
    return NULL;
}

uint32_t attribute_list_end(const struct tokens *tokens, uint32_t index) {
    if (!token_pair(tokens, index, '[', '[')) return 0;
    uint32_t outer = tokens->items[index].partner, inner = tokens->items[index + 1].partner;
    return outer > index && inner + 1 == outer ? outer : 0;
}

bool attribute_list_next(const struct tokens *tokens, uint32_t index, uint32_t *cursor,
                         struct attribute_use *use) {
    uint32_t end = attribute_list_end(tokens, index) - 1;
    uint32_t at = *cursor ? *cursor : index + 2;
    while (at < end && token_is(tokens, at, ",")) at++;
    if (at >= end) return false;
    /* A scoped name such as clang::noinline is identified by its last part. */
    while (at + 3 < end && token_pair(tokens, at + 1, ':', ':')) at += 3;
    *use = (struct attribute_use){.name = at, .first = at + 1, .last = at + 1};
    at++;
    if (token_is(tokens, at, "(") && tokens->items[at].partner > at) {
        use->first = at + 1;
        use->last = tokens->items[at].partner;
        at = use->last + 1;
    }
    while (at < end && !token_is(tokens, at, ",")) at++;
    *cursor = at;
    return true;
}

const struct attribute *attribute_of_thread(const struct tokens *t, uint32_t list) {
    struct attribute_use use;
    uint32_t cursor = 0;
    while (attribute_list_end(t, list) && attribute_list_next(t, list, &cursor, &use)) {
        const struct token *name = &t->items[use.name];
        const struct attribute *attribute = attribute_find(t->text + name->start, name->length);
        if (attribute) return attribute;
    }
    return NULL;
}
