#include "source/structure.h"
#include "source/declaration.h"
#include "source/sites.h"

#include <string.h>

/* clang refuses brackets nested deeper than 256; deeper scopes are unchanged. */
#define DEEPEST_SCOPE 256

const char *structure_last_part(const char *name) {
    const char *colon = strrchr(name, ':');
    return colon ? colon + 1 : name;
}

static void mark(struct finder *f, uint32_t first, uint32_t last, enum scope scope) {
    if (last > first) memset(f->out->scopes + first, scope, last - first);
}

/* ---- Inside functions: blocks inherit, lambdas and local classes do not. */

static void scan_class(struct finder *f, uint32_t first, uint32_t last, const char *path);

/* Whether the [ at `i` introduces a lambda: it follows something that cannot be subscripted. */
static bool starts_lambda(const struct finder *f, uint32_t i) {
    if (attribute_list_end(f->tokens, i) || i == 0) return false;
    const struct token *before = &f->tokens->items[i - 1];
    if (before->kind == TOKEN_DIRECTIVE) return true;
    if (before->kind == TOKEN_IDENTIFIER)
        return token_is(f->tokens, i - 1, "return") || token_is(f->tokens, i - 1, "else") ||
               token_is(f->tokens, i - 1, "do");
    if (before->kind != TOKEN_PUNCTUATION) return false;
    char c = f->tokens->text[before->start];
    if (c != ')') return c != ']' && c != '[';
    /* if (…) [&] { … }(); */
    uint32_t open = before->partner;
    return open > 0 && open < i &&
           (token_is(f->tokens, open - 1, "if") || token_is(f->tokens, open - 1, "for") ||
            token_is(f->tokens, open - 1, "while"));
}

/* The { of the lambda whose [ is at `i`, or 0. */
static uint32_t lambda_body(const struct finder *f, uint32_t i, uint32_t last) {
    uint32_t at = partner(f, i) + 1;
    if (last > at && last - at > FARTHEST_LOOK) last = at + FARTHEST_LOOK;
    if (token_is(f->tokens, at, "<")) at = finder_angle_end(f, at, last);
    if (token_is(f->tokens, at, "(") && partner(f, at) > at) at = partner(f, at) + 1;
    for (; at < last && !token_is(f->tokens, at, "{"); at++) {
        uint32_t list = attribute_list_end(f->tokens, at);
        uint32_t angle = token_is(f->tokens, at, "<") ? tokens_angle_end(f->tokens, at, last) : 0;
        if (list)
            at = list;
        else if (angle)
            at = angle - 1;
        else if ((token_is(f->tokens, at, "(") || token_is(f->tokens, at, "[")) &&
                 finder_names_no_function(f, at - 1) && partner(f, at) > at)
            at = partner(f, at);
        else if (token_is(f->tokens, at, ";") || token_is(f->tokens, at, ")") ||
                 token_is(f->tokens, at, ",") || token_is(f->tokens, at, "(") ||
                 token_is(f->tokens, at, "[") || token_is(f->tokens, at, "="))
            return 0;
    }
    return at < last ? at : 0;
}

/* The { of the local class whose keyword is at `i`, or 0. */
static uint32_t local_class_body(const struct finder *f, uint32_t i, uint32_t last) {
    if (token_is(f->tokens, i - 1, "<") || token_is(f->tokens, i - 1, ",") || token_is(f->tokens, i - 1, "("))
        return 0;
    if (last - i > FARTHEST_LOOK) last = i + FARTHEST_LOOK;
    for (uint32_t at = i + 1; at < last; at++) {
        if (token_is(f->tokens, at, "{")) return partner(f, at) > at ? at : 0;
        if (token_is(f->tokens, at, "(") && (!finder_names_no_function(f, at - 1) || partner(f, at) < at))
            return 0;
        if (token_is(f->tokens, at, ";") || token_is(f->tokens, at, "=") || token_is(f->tokens, at, "*") ||
            token_is(f->tokens, at, "&") || token_is(f->tokens, at, "}"))
            return 0;
    }
    return 0;
}

static void scan_function(struct finder *f, uint32_t first, uint32_t last, enum scope scope,
                          const char *path) {
    mark(f, first, last, scope);
    if (f->depth >= DEEPEST_SCOPE) return;
    f->depth++;
    for (uint32_t i = first; i < last; i++) {
        uint32_t body = 0;
        bool lambda = token_is(f->tokens, i, "[") && partner(f, i) > i && starts_lambda(f, i);
        if (lambda)
            body = lambda_body(f, i, last);
        else if (finder_is_class_word(f, i))
            body = local_class_body(f, i, last);
        if (!body || partner(f, body) < body) continue;
        if (lambda)
            scan_function(f, body + 1, partner(f, body), SCOPE_FUNCTION, path);
        else
            scan_class(f, body + 1, partner(f, body), path);
        i = partner(f, body);
    }
    f->depth--;
}

/* ---- Declarations at namespace and class scope. */

/* Words that may precede the return type of a function. */
static bool is_function_specifier(const struct finder *f, uint32_t i) {
    static const char *const words[] = {"inline", "constexpr", "static", "explicit", "friend", NULL};
    return token_is_one_of(f->tokens, i, words);
}

static void note_method(struct finder *f, const struct declaration *d) {
    static const char *const spaces[] = {"threadgroup", "device", "constant"};
    const char *space = NULL;
    for (size_t s = 0; s < sizeof spaces / sizeof *spaces; s++)
        if (finder_has_word(f, d->close, d->brace, spaces[s])) space = spaces[s];
    if (!space || d->brace - d->close > 8) return;
    uint32_t first = d->start, last = d->open - 1;
    for (; first < d->open; first++) {
        bool attribute = token_is(f->tokens, first, "__attribute__") && partner(f, first + 1) > first;
        if (token_is(f->tokens, first, "template") && token_is(f->tokens, first + 1, "<"))
            first = finder_angle_end(f, first + 1, d->open) - 1;
        else if (attribute_list_end(f->tokens, first))
            first = attribute_list_end(f->tokens, first);
        else if (attribute)
            first = partner(f, first + 1);
        else if (!is_function_specifier(f, first))
            break;
    }
    for (uint32_t i = first; i < d->open; i++)
        if (token_is(f->tokens, i, "operator")) last = i;
    bool refers = last > first && (token_is(f->tokens, last - 1, "&") || token_is(f->tokens, last - 1, "*"));
    if (!refers || !finder_has_word(f, first, last, space)) return;
    struct method_site *methods =
        arena_one_more(f->arena, f->out->methods, f->out->method_count, sizeof *methods);
    if (!methods) return;
    f->out->methods = methods;
    methods[f->out->method_count++] = (struct method_site){first, last, d->brace, partner(f, d->brace)};
}

static void add_function(struct finder *f, const struct declaration *d) {
    uint32_t *functions =
        arena_one_more(f->arena, f->out->functions, f->out->function_count, sizeof *functions);
    if (!functions) return;
    f->out->functions = functions;
    functions[f->out->function_count++] = finder_name_before(f, d->open);
}

static void scan_declaration(struct finder *f, const struct declaration *d, const char *path, bool in_class) {
    if (d->open && !in_class) add_function(f, d);
    if (d->open && in_class && d->brace) note_method(f, d);
    if (d->open && !in_class && sites_add_kernel(f, d, path)) {
        if (d->brace) scan_function(f, d->brace + 1, d->end, SCOPE_KERNEL, path);
        return;
    }
    if (!d->brace) return;
    uint32_t close = partner(f, d->brace);
    if (d->open)
        scan_function(f, d->brace + 1, close, SCOPE_FUNCTION, path);
    else if (!token_is(f->tokens, d->class_word, "enum"))
        scan_class(f, d->brace + 1, close, path);
}

/* `uint name : 3;` or `name : 3, other : 4;` */
static void note_bit_fields(struct finder *f, const struct declaration *d) {
    if (d->open || d->brace || d->class_word) return;
    for (uint32_t i = d->start + 1; i < d->end; i++) {
        bool colon = token_is(f->tokens, i + 1, ":") && !token_pair(f->tokens, i + 1, ':', ':') &&
                     !token_pair(f->tokens, i, ':', ':');
        if (!colon || !token_is_identifier(f->tokens, i)) continue;
        uint32_t *fields =
            arena_one_more(f->arena, f->out->bit_fields, f->out->bit_field_count, sizeof *fields);
        if (!fields) return;
        f->out->bit_fields = fields;
        fields[f->out->bit_field_count++] = i;
    }
}

static void scan_class(struct finder *f, uint32_t first, uint32_t last, const char *path) {
    mark(f, first, last, SCOPE_CLASS);
    if (f->depth >= DEEPEST_SCOPE) return;
    f->depth++;
    for (uint32_t i = first; i < last; i++) {
        if (token_is(f->tokens, i, ";") || f->tokens->items[i].kind == TOKEN_DIRECTIVE) continue;
        if ((token_is(f->tokens, i, "public") || token_is(f->tokens, i, "private") ||
             token_is(f->tokens, i, "protected")) &&
            token_is(f->tokens, i + 1, ":")) {
            i++;
            continue;
        }
        struct declaration d = declaration_read(f, i, last);
        note_bit_fields(f, &d);
        scan_declaration(f, &d, path, true);
        i = d.end;
    }
    f->depth--;
}

/* Words of declarations that do not declare variables, or whose variables are in a stated address space. */
static bool names_no_variable(const struct finder *f, uint32_t i) {
    static const char *const words[] = {"constant", "threadgroup", "device",  "sampler",  "operator",
                                        "friend",   "template",    "concept", "requires", "asm",
                                        "__asm__",  "typedef",     NULL};
    return token_is_one_of(f->tokens, i, words);
}

static bool is_specifier(const struct finder *f, uint32_t i) {
    static const char *const words[] = {"static", "const", "constexpr", "inline", "volatile", "extern", NULL};
    return token_is_one_of(f->tokens, i, words);
}

/* `static const T<4> name = …`, `int name[2];`: simple forms only, to avoid false matches. */
static void note_variable(struct finder *f, const struct declaration *d) {
    if (f->out->loose_variable || d->is_template || d->open || d->class_word) return;
    uint32_t name = 0;
    int types = 0;
    for (uint32_t i = d->start; i < d->end; i++) {
        uint32_t angle = token_is(f->tokens, i, "<") ? tokens_angle_end(f->tokens, i, d->end) : 0;
        if (names_no_variable(f, i)) return;
        if (attribute_list_end(f->tokens, i)) {
            if (attribute_of_thread(f->tokens, i)) return;
            i = attribute_list_end(f->tokens, i);
        } else if (token_is(f->tokens, i, "=") || token_is(f->tokens, i, "[") ||
                   token_is(f->tokens, i, "{") || token_is(f->tokens, i, ",")) {
            break;
        } else if (token_pair(f->tokens, i, ':', ':')) {
            i++;
            types--;
        } else if (angle) {
            i = angle - 1;
        } else if (!token_is_identifier(f->tokens, i)) {
            return;
        } else if (!is_specifier(f, i)) {
            name = i;
            types++;
        }
    }
    if (name && types >= 2 && token_is(f->tokens, d->end, ";")) f->out->loose_variable = name;
}

static void scan_namespace(struct finder *f, uint32_t first, uint32_t last, const char *path) {
    mark(f, first, last, SCOPE_NAMESPACE);
    if (f->depth >= DEEPEST_SCOPE) return;
    f->depth++;
    for (uint32_t i = first; i < last; i++) {
        if (token_is(f->tokens, i, ";") || f->tokens->items[i].kind == TOKEN_DIRECTIVE) continue;
        if (token_is(f->tokens, i, "inline") && token_is(f->tokens, i + 1, "namespace")) i++;
        if (token_is(f->tokens, i, "namespace")) {
            uint32_t brace = i + 1;
            while (brace < last && !token_is(f->tokens, brace, "{") && !token_is(f->tokens, brace, ";"))
                brace++;
            if (token_is(f->tokens, brace, "{") && partner(f, brace) > brace) {
                const char *inner = path;
                const char *name = tokens_text(f->tokens, i + 1, brace, f->arena);
                if (name && *name) inner = arena_printf(f->arena, "%s%s::", path, name);
                if (!inner) inner = "";
                scan_namespace(f, brace + 1, partner(f, brace), inner);
                i = partner(f, brace);
            } else {
                i = brace;
            }
        } else if (token_is(f->tokens, i, "extern") && i + 2 < last &&
                   f->tokens->items[i + 1].kind == TOKEN_STRING && token_is(f->tokens, i + 2, "{") &&
                   partner(f, i + 2) > i + 2) {
            scan_namespace(f, i + 3, partner(f, i + 2), path);
            i = partner(f, i + 2);
        } else if (token_is(f->tokens, i, "template") && !token_is(f->tokens, i + 1, "<")) {
            uint32_t end = finder_statement_end(f, i, last);
            sites_add_instantiation(f, i, end, path);
            i = end;
        } else if (token_is(f->tokens, i, "using") || token_is(f->tokens, i, "typedef") ||
                   token_is(f->tokens, i, "static_assert")) {
            struct declaration d = declaration_read(f, i, last);
            if (d.brace && d.class_word) scan_declaration(f, &d, path, false);
            i = finder_statement_end(f, i, last);
        } else {
            struct declaration d = declaration_read(f, i, last);
            note_variable(f, &d);
            scan_declaration(f, &d, path, false);
            i = d.end;
        }
    }
    f->depth--;
}

smelt_status structure_find(const struct tokens *tokens, struct arena *arena, struct structure *structure) {
    *structure = (struct structure){.scopes = arena_alloc(arena, tokens->count + 1)};
    if (!structure->scopes) return fail_out_of_memory(tokens->count);
    struct finder finder = {.tokens = tokens, .arena = arena, .out = structure};
    scan_namespace(&finder, 0, tokens->count, "");
    sites_note_overloads(&finder);
    return arena->failed ? fail(SMELT_ERROR_OUT_OF_MEMORY, "the source's structure does not fit in memory")
                         : SMELT_OK;
}
