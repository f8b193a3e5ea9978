#include "source/global.h"
#include "source/attribute.h"

#include <string.h>

struct global {
    uint32_t first, name, end; /* of the declaration; its last token is the ; */
    uint32_t type;
    const struct attribute *attribute;
};

/* `[const] [static] TYPE name [[attribute]];` with the name before the list at `list`. */
static bool read_global(const struct tokens *t, uint32_t list, struct global *global) {
    static const char *const specifiers[] = {"const", "constant", "static", "constexpr", "metal", ":", NULL};
    global->attribute = attribute_of_thread(t, list);
    global->end = attribute_list_end(t, list) + 1;
    if (!global->attribute || list < 2 || !token_is(t, global->end, ";")) return false;
    global->name = list - 1;
    uint32_t at = list - 2;
    while (at > 0 && token_is_one_of(t, at, specifiers) && !token_is(t, at, ":")) at--;
    global->type = at;
    global->first = at;
    while (global->first > 0 && token_is_one_of(t, global->first - 1, specifiers)) global->first--;
    return token_is_identifier(t, global->name) && token_is_identifier(t, global->type);
}

static bool same_name(const struct tokens *t, uint32_t a, uint32_t b) {
    const struct token *p = &t->items[a], *q = &t->items[b];
    return q->kind == TOKEN_IDENTIFIER && p->length == q->length &&
           memcmp(t->text + p->start, t->text + q->start, p->length) == 0;
}

/* After a type, the name is declared again: a parameter, a variable or a member; or further on in the list.
 */
static bool declares_again(const struct tokens *t, const struct structure *structure, uint32_t i) {
    static const char *const statements[] = {"return", "else", "case", "do",  "sizeof",
                                             "and",    "or",   "not",  "xor", NULL};
    if (token_is_identifier(t, i - 1)) return !token_is_one_of(t, i - 1, statements);
    if (!token_is(t, i - 1, ",")) return false;
    bool member = structure->scopes[i] == SCOPE_CLASS && t->items[i].outer != NO_PLACE &&
                  token_is(t, t->items[i].outer, "{");
    return member || (token_is(t, i + 1, "=") && !token_is(t, i + 2, "="));
}

/* The last token of the scope in which a declaration at `i` hides the variable: its braces, or its
 * function's. */
static uint32_t hidden_until(const struct tokens *t, uint32_t i) {
    uint32_t open = t->items[i].outer;
    if (open == NO_PLACE || t->items[open].partner <= open) return i;
    uint32_t close = t->items[open].partner;
    if (token_is(t, open, "{")) return close;
    uint32_t body = close + 1;
    while (body < t->count && body < close + FARTHEST_LOOK && !token_is(t, body, "{") &&
           !token_is(t, body, ";"))
        body++;
    return token_is(t, body, "{") && t->items[body].partner > body ? t->items[body].partner : close;
}

static bool is_member(const struct tokens *t, uint32_t i) {
    return token_is(t, i - 1, ".") || token_pair(t, i - 2, '-', '>') || token_pair(t, i - 2, ':', ':');
}

static void rewrite_uses(const struct tokens *t, const struct structure *structure,
                         const struct global *global, struct changes *changes) {
    const struct token *type = &t->items[global->type];
    const char *value = arena_printf(changes->arena, "__smelt::attribute<%.*s>(__smelt_%s())",
                                     (int)type->length, t->text + type->start, global->attribute->name);
    for (uint32_t i = global->end + 1; value && i < t->count; i++) {
        uint32_t list = attribute_list_end(t, i);
        if (list) {
            i = list;
        } else if (same_name(t, global->name, i) && !is_member(t, i)) {
            if (declares_again(t, structure, i))
                i = hidden_until(t, i);
            else
                change_instead(changes, i, value);
        }
    }
}

/* Replaces the declaration by a check that the attribute can have this type. */
static void rewrite_declaration(const struct tokens *t, const struct global *global,
                                struct changes *changes) {
    const struct token *type = &t->items[global->type], *name = &t->items[global->name];
    for (uint32_t i = global->first; i < global->end; i++) {
        changes->items[i].before = NULL;
        change_instead(changes, i, "");
    }
    change_instead(
        changes, global->type,
        arena_printf(changes->arena,
                     "static_assert(__smelt::is_attribute<%.*s, %d>, \"variable '%.*s' has a type that "
                     "[[%s]] cannot have; expected %s\")",
                     (int)type->length, t->text + type->start, global->attribute->dimensions,
                     (int)name->length, t->text + name->start, global->attribute->name,
                     global->attribute->dimensions == 3 ? "ushort, ushort2, ushort3, uint, uint2 or uint3"
                                                        : "ushort or uint"));
}

/* There are twenty attributes; each variable requires a pass over all tokens. */
#define MOST_GLOBALS 100

void rewrite_globals(const struct tokens *t, const struct structure *structure, struct changes *changes) {
    int count = 0;
    for (uint32_t i = 0; i < t->count && count < MOST_GLOBALS; i++) {
        struct global global;
        if (!token_is(t, i, "[") || structure->scopes[i] != SCOPE_NAMESPACE || t->items[i].outer != NO_PLACE)
            continue;
        if (attribute_list_end(t, i) && read_global(t, i, &global)) {
            count++;
            rewrite_declaration(t, &global, changes);
            rewrite_uses(t, structure, &global, changes);
        }
    }
}
