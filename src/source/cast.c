#include "source/cast.h"
#include "source/structure.h"

#include <string.h>

/* ---- Names of types, each with the last token where it is one. Filled while the tokens are walked, so that
 * every name found is in scope. */

struct type_name {
    const char *start;
    uint32_t length;
    uint32_t end;
};

struct caster {
    struct changes *changes;
    const struct tokens *tokens;
    struct type_name *names; /* open addressing; `capacity` is a power of two */
    uint32_t capacity, count;
    uint32_t last_cast; /* the ) of the last (T) that is a cast */
};

static uint32_t partner(const struct caster *c, uint32_t i) {
    return c->tokens->items[i].partner;
}

static struct type_name *slot_of(struct caster *c, uint32_t i) {
    const struct token *token = &c->tokens->items[i];
    const char *start = c->tokens->text + token->start;
    uint32_t hash = 2166136261u;
    for (uint32_t k = 0; k < token->length; k++) hash = (hash ^ (unsigned char)start[k]) * 16777619u;
    for (uint32_t at = hash & (c->capacity - 1);; at = (at + 1) & (c->capacity - 1)) {
        struct type_name *name = &c->names[at];
        if (!name->start || (name->length == token->length && memcmp(name->start, start, token->length) == 0))
            return name;
    }
}

static void add_name(struct caster *c, uint32_t i, uint32_t end) {
    struct type_name *name = slot_of(c, i);
    if (!name->start) {
        /* At least half of the table stays empty, so searches end. */
        if (2 * (c->count + 1) > c->capacity) return;
        c->count++;
        *name =
            (struct type_name){c->tokens->text + c->tokens->items[i].start, c->tokens->items[i].length, end};
    } else if (end > name->end) {
        name->end = end;
    }
}

static bool is_type(struct caster *c, uint32_t i) {
    if (!token_is_identifier(c->tokens, i)) return false;
    if (token_is(c->tokens, i, "half") || token_is(c->tokens, i, "bfloat")) return true;
    const struct type_name *name = slot_of(c, i);
    return name->start && name->end > i;
}

/* The end of the declaration after a template head. */
static uint32_t template_end(const struct caster *c, uint32_t from) {
    uint32_t i = from;
    for (uint32_t steps = 0; i < c->tokens->count && steps < FARTHEST_LOOK; i++, steps++) {
        if (token_is(c->tokens, i, ";")) return i;
        if (token_is(c->tokens, i, "{") && partner(c, i) > i) return partner(c, i);
        if (partner(c, i) > i) i = partner(c, i);
    }
    return i;
}

/* template <typename T, class U = …, typename... V> */
static void add_parameters(struct caster *c, uint32_t i) {
    uint32_t close =
        token_is(c->tokens, i + 1, "<") ? tokens_angle_end(c->tokens, i + 1, c->tokens->count) : 0;
    uint32_t end = close ? template_end(c, close) : 0;
    for (uint32_t at = i + 2; at + 1 < close; at++) {
        bool word = token_is(c->tokens, at, "typename") || token_is(c->tokens, at, "class");
        bool first = token_is(c->tokens, at - 1, "<") || token_is(c->tokens, at - 1, ",");
        if (word && first && token_is_identifier(c->tokens, at + 1)) add_name(c, at + 1, end);
    }
}

/* typedef … name; */
static void add_typedef(struct caster *c, uint32_t i) {
    for (uint32_t at = i + 1; at < c->tokens->count && at < i + FARTHEST_LOOK; at++) {
        if (partner(c, at) > at) at = partner(c, at);
        if (!token_is(c->tokens, at, ";")) continue;
        if (token_is_identifier(c->tokens, at - 1)) add_name(c, at - 1, UINT32_MAX);
        return;
    }
}

/* ---- Casts. */

/* Types whose casts stay as they are: none is half or bfloat, or an alias of one. */
static bool is_other_type(const struct caster *c, uint32_t first, uint32_t last) {
    static const char *const words[] = {"float",    "int",      "uint",    "bool",    "char",    "uchar",
                                        "short",    "ushort",   "long",    "ulong",   "size_t",  "unsigned",
                                        "int8_t",   "int16_t",  "int32_t", "int64_t", "uint8_t", "uint16_t",
                                        "uint32_t", "uint64_t", NULL};
    if (token_is(c->tokens, first, "vec")) return true;
    for (uint32_t i = first; i < last; i++)
        if (token_is(c->tokens, i, "*") || token_is(c->tokens, i, "&") ||
            c->tokens->items[i].kind == TOKEN_DIRECTIVE)
            return true;
    if (last != first + 1) return false;
    if (token_is_one_of(c->tokens, first, words)) return true;
    return c->tokens->items[first].kind != TOKEN_IDENTIFIER;
}

/* (x) → ((__smelt_from_t<type>)(x)), for the type at [first, last). */
static void pass_through(struct caster *c, uint32_t open, uint32_t first, uint32_t last) {
    const char *type = tokens_text(c->tokens, first, last, c->changes->arena);
    if (!type) return;
    change_after(c->changes, open, arena_printf(c->changes->arena, "(__smelt_from_t<%s>)(", type));
    change_before(c->changes, partner(c, open), ")");
}

static void rewrite_static_cast(struct caster *c, uint32_t i) {
    uint32_t close =
        token_is(c->tokens, i + 1, "<") ? tokens_angle_end(c->tokens, i + 1, c->tokens->count) : 0;
    if (!close || !token_is(c->tokens, close, "(") || partner(c, close) <= close + 1) return;
    if (!is_other_type(c, i + 2, close - 1)) pass_through(c, close, i + 2, close - 1);
}

/* Whether [open + 1, close) is one expression. */
static bool is_one_argument(const struct caster *c, uint32_t open) {
    uint32_t close = partner(c, open);
    if (close <= open + 1 || token_is(c->tokens, close - 1, ".")) return false;
    /* A declarator: half (*p)[4], half (&a)[4]. */
    if ((token_is(c->tokens, open + 1, "*") || token_is(c->tokens, open + 1, "&")) &&
        (token_is(c->tokens, close + 1, "[") || token_is(c->tokens, close + 1, "(")))
        return false;
    if (close == open + 2 && c->tokens->items[open + 1].kind == TOKEN_NUMBER) return false;
    for (uint32_t i = open + 1; i < close; i++) {
        uint32_t angle = token_is(c->tokens, i, "<") ? tokens_angle_end(c->tokens, i, close) : 0;
        if (token_is(c->tokens, i, ",")) return false;
        if (angle)
            i = angle - 1;
        else if (partner(c, i) > i)
            i = partner(c, i);
    }
    return true;
}

static void rewrite_functional(struct caster *c, uint32_t i) {
    static const char *const before[] = {"operator", ".", "~", ">", "class", "struct"};
    if (i && token_is(c->tokens, i - 1, ":") && token_pair(c->tokens, i - 2, ':', ':')) return;
    for (size_t w = 0; i && w < sizeof before / sizeof *before; w++)
        if (token_is(c->tokens, i - 1, before[w]) &&
            !(*before[w] == '>' && !token_pair(c->tokens, i - 2, '-', '>')))
            return;
    /* A function type: S<half(float)>. */
    if (i && token_is(c->tokens, i - 1, "<") && token_is(c->tokens, partner(c, i + 1) + 1, ">")) return;
    if (is_one_argument(c, i + 1)) pass_through(c, i + 1, i, i + 1);
}

/* Whether ( T ) at `open` is a cast: nothing before it makes it an argument list, and an operand follows. */
static bool is_cast(const struct caster *c, uint32_t open) {
    static const char *const words[] = {"return", "case", "else", "do", NULL};
    static const char *const no_operands[] = {"const",    "noexcept",    "override", "thread", "device",
                                              "constant", "threadgroup", "volatile", NULL};
    static const char operands[] = "(-+!~*&\"'";
    const struct token *next = &c->tokens->items[open + 3];
    if (open + 3 >= c->tokens->count || next->kind == TOKEN_DIRECTIVE) return false;
    bool named = next->kind == TOKEN_IDENTIFIER || next->kind == TOKEN_NUMBER;
    if (token_is_one_of(c->tokens, open + 3, no_operands)) return false;
    if (!named && !strchr(operands, c->tokens->text[next->start])) return false;
    if (open == 0) return false;
    const struct token *last = &c->tokens->items[open - 1];
    if (last->kind == TOKEN_IDENTIFIER) {
        if (token_is_one_of(c->tokens, open - 1, words)) return true;
        return false;
    }
    if (token_is(c->tokens, open - 1, ">")) return named;
    /* Another cast: (half)(bfloat)x. */
    if (open - 1 == c->last_cast) return true;
    return last->kind == TOKEN_PUNCTUATION && !token_is(c->tokens, open - 1, ")") &&
           !token_is(c->tokens, open - 1, "]") && !token_is(c->tokens, open - 1, ".");
}

static bool mentions_bfloat(const struct tokens *tokens) {
    for (uint32_t i = 0; i < tokens->count; i++)
        if (token_is_identifier(tokens, i) &&
            memmem(tokens->text + tokens->items[i].start, tokens->items[i].length, "bfloat", 6))
            return true;
    return false;
}

void casts_rewrite(struct changes *changes) {
    const struct tokens *tokens = changes->tokens;
    if (!mentions_bfloat(tokens)) return;
    struct caster c = {.changes = changes, .tokens = tokens, .capacity = 1024};
    while (c.capacity < tokens->count / 4) c.capacity *= 2;
    c.names = arena_alloc(changes->arena, c.capacity * sizeof *c.names);
    if (!c.names) return;
    for (uint32_t i = 0; i < tokens->count; i++) {
        const struct token *token = &tokens->items[i];
        if (token->kind == TOKEN_PUNCTUATION) {
            bool cast =
                token_is(c.tokens, i, "(") && partner(&c, i) == i + 2 && is_type(&c, i + 1) && is_cast(&c, i);
            if (!cast) continue;
            const struct token *type = &tokens->items[i + 1];
            change_after(changes, i + 2,
                         arena_printf(changes->arena, "(__smelt_from_t<%.*s>)", (int)type->length,
                                      tokens->text + type->start));
            c.last_cast = i + 2;
        } else if (token->kind != TOKEN_IDENTIFIER) {
            continue;
        } else if (token_is(c.tokens, i, "template")) {
            add_parameters(&c, i);
        } else if (token_is(c.tokens, i, "typedef")) {
            add_typedef(&c, i);
        } else if (token_is(c.tokens, i, "using") && token_is(c.tokens, i + 2, "=") &&
                   token_is_identifier(tokens, i + 1)) {
            add_name(&c, i + 1, UINT32_MAX);
        } else if (token_is(c.tokens, i, "static_cast")) {
            rewrite_static_cast(&c, i);
        } else if (token_is(c.tokens, i + 1, "(") && partner(&c, i + 1) > i + 1 && is_type(&c, i)) {
            rewrite_functional(&c, i);
        }
    }
}
