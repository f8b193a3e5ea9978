#include "source/attribute.h"

#include <limits.h>
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

#define LONGEST_NAME 40

/* Letters to insert, drop or change; of longer names, INT_MAX. */
static int distance(const char *a, const char *b) {
    int rows[2][LONGEST_NAME + 1], length = (int)strlen(b);
    if (strlen(a) > LONGEST_NAME || length > LONGEST_NAME) return INT_MAX;
    for (int j = 0; j <= length; j++) rows[0][j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int *row = rows[i % 2], *above = rows[(i + 1) % 2];
        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int changed = above[j - 1] + (a[i - 1] != b[j - 1]);
            int moved = 1 + (above[j] < row[j - 1] ? above[j] : row[j - 1]);
            row[j] = changed < moved ? changed : moved;
        }
    }
    return rows[strlen(a) % 2][length];
}

static void consider(const char *name, const char *one, int *best, const char **found) {
    int steps = distance(name, one);
    if (steps >= *best) return;
    *best = steps;
    *found = one;
}

/* A third of the letters may be wrong. */
const char *attribute_nearest(const char *name) {
    const char *found = NULL;
    int best = (int)strlen(name) / 3 + 1;
    for (const struct attribute *a = attributes; a->name; a++) consider(name, a->name, &best, &found);
    consider(name, "buffer", &best, &found);
    consider(name, "threadgroup", &best, &found);
    return found;
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
