#include "source/structure.h"
#include "base/text.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

/* Larger than the length of any argument list. */
#define ANY_NUMBER 10000

struct finder {
    const struct tokens *tokens;
    struct arena *arena;
    struct structure *out;
    int depth; /* depth of nested scopes */
};

/* clang refuses brackets nested deeper than 256; deeper scopes are unchanged. */
#define DEEPEST_SCOPE 256

char *tokens_text(const struct tokens *tokens, uint32_t first, uint32_t last, struct arena *arena) {
    struct text joined = {0};
    for (uint32_t i = first; i < last && i < tokens->count; i++) {
        const struct token *token = &tokens->items[i];
        if (token->kind == TOKEN_DIRECTIVE) continue;
        bool apart = i > first && tokens->items[i - 1].start + tokens->items[i - 1].length != token->start;
        if (apart && joined.length) text_add(&joined, " ");
        text_append(&joined, tokens->text + token->start, token->length);
    }
    arena->failed |= joined.failed;
    char *copy = arena_copy(arena, text_string(&joined), joined.length);
    /* A literal may contain an escaped line end. */
    for (char *c = copy; c && *c; c++)
        if (*c == '\n') *c = ' ';
    text_free(&joined);
    return copy;
}

char *tokens_string(const struct tokens *tokens, uint32_t first, uint32_t last, struct arena *arena) {
    struct text joined = {0};
    for (uint32_t i = first; i < last; i++) {
        const struct token *token = &tokens->items[i];
        const char *start = tokens->text + token->start, *end = start + token->length;
        if (token->kind != TOKEN_STRING || token->length < 2) continue;
        bool raw = *start == 'R';
        start = raw ? memchr(start, '(', token->length) : start;
        end = raw ? memrchr(tokens->text + token->start, ')', token->length) : end - 1;
        if (start && end && end > start) text_append(&joined, start + 1, (size_t)(end - start - 1));
    }
    arena->failed |= joined.failed;
    char *copy = arena_copy(arena, text_string(&joined), joined.length);
    text_free(&joined);
    return copy;
}

static uint32_t partner(const struct finder *f, uint32_t i) {
    return f->tokens->items[i].partner;
}

static void mark(struct finder *f, uint32_t first, uint32_t last, enum scope scope) {
    if (last > first) memset(f->out->scopes + first, scope, last - first);
}

/* The token after the > that closes the < at `open`; if there is none, the token after the <. */
static uint32_t angle_end(const struct finder *f, uint32_t open, uint32_t end) {
    uint32_t close = tokens_angle_end(f->tokens, open, end);
    return close ? close : open + 1;
}

static uint32_t statement_end(const struct finder *f, uint32_t from, uint32_t end) {
    for (uint32_t i = from; i < end; i++) {
        if (token_is(f->tokens, i, ";")) return i;
        if (partner(f, i) > i) i = partner(f, i);
    }
    return end;
}

/* Words before a parenthesis that are not the name of a function. */
static bool names_no_function(const struct finder *f, uint32_t i) {
    static const char *const words[] = {"alignas", "decltype", "__attribute__", "noexcept", "explicit",
                                        "sizeof",  "requires", "__declspec",    "asm",      "__asm__",
                                        NULL};
    return token_is_one_of(f->tokens, i, words);
}

static bool is_class_word(const struct finder *f, uint32_t i) {
    return token_is(f->tokens, i, "struct") || token_is(f->tokens, i, "class") ||
           token_is(f->tokens, i, "union") || token_is(f->tokens, i, "enum");
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
    if (token_is(f->tokens, at, "<")) at = angle_end(f, at, last);
    if (token_is(f->tokens, at, "(") && partner(f, at) > at) at = partner(f, at) + 1;
    for (; at < last && !token_is(f->tokens, at, "{"); at++) {
        uint32_t list = attribute_list_end(f->tokens, at);
        uint32_t angle = token_is(f->tokens, at, "<") ? tokens_angle_end(f->tokens, at, last) : 0;
        if (list)
            at = list;
        else if (angle)
            at = angle - 1;
        else if ((token_is(f->tokens, at, "(") || token_is(f->tokens, at, "[")) &&
                 names_no_function(f, at - 1) && partner(f, at) > at)
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
        if (token_is(f->tokens, at, "(") && (!names_no_function(f, at - 1) || partner(f, at) < at)) return 0;
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
        else if (is_class_word(f, i))
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

struct declaration {
    uint32_t start;
    uint32_t class_word;  /* 0: none */
    uint32_t open, close; /* parameter list; 0: none */
    uint32_t brace;       /* opening brace of the body; 0: none */
    uint32_t end;         /* the last token: ; or } */
    bool is_template;
};

/* In a constructor's initialiser list `: a{1}, b(2) {`, member braces are followed by , or {. */
static bool is_member_initialiser(const struct finder *f, uint32_t brace, bool after_colon) {
    if (!after_colon) return false;
    uint32_t after = partner(f, brace) + 1;
    return token_is(f->tokens, after, ",") || token_is(f->tokens, after, "{");
}

static struct declaration read_declaration(const struct finder *f, uint32_t start, uint32_t end) {
    struct declaration d = {.start = start, .end = end};
    uint32_t i = start;
    while (token_is(f->tokens, i, "template") && token_is(f->tokens, i + 1, "<")) {
        d.is_template = true;
        i = angle_end(f, i + 1, end);
    }
    bool initialised = false, after_colon = false, after_operator = false;
    for (; i < end; i++) {
        uint32_t list = attribute_list_end(f->tokens, i);
        if (list) {
            i = list;
        } else if (token_is(f->tokens, i, ";")) {
            d.end = i;
            return d;
        } else if (token_is(f->tokens, i, "=") && !token_is(f->tokens, i - 1, "operator") && !d.open) {
            initialised = true;
        } else if (is_class_word(f, i) && !d.open && !d.class_word && !initialised) {
            d.class_word = i;
        } else if (token_is(f->tokens, i, "operator")) {
            /* Its symbol may be () or []: skips it. */
            i++;
            while (i + 1 < end && !token_is(f->tokens, i + 1, "(") && !token_is(f->tokens, i + 1, ";")) i++;
            after_operator = true;
        } else if (token_is(f->tokens, i, "(") && partner(f, i) > i) {
            bool function =
                !d.open && !initialised && i > start && !names_no_function(f, i - 1) &&
                (token_is_identifier(f->tokens, i - 1) || token_is(f->tokens, i - 1, ">") || after_operator);
            after_operator = false;
            if (function) {
                d.open = i;
                d.close = partner(f, i);
                d.class_word = 0;
            }
            i = partner(f, i);
        } else if (token_is(f->tokens, i, ":") && !token_pair(f->tokens, i, ':', ':') &&
                   !token_pair(f->tokens, i - 1, ':', ':')) {
            after_colon |= d.open != 0;
        } else if (token_is(f->tokens, i, "<") && !initialised) {
            i = angle_end(f, i, end) - 1;
        } else if (token_is(f->tokens, i, "[") && partner(f, i) > i) {
            i = partner(f, i);
        } else if (token_is(f->tokens, i, "{") && partner(f, i) > i) {
            if (initialised || is_member_initialiser(f, i, after_colon) || (!d.open && !d.class_word)) {
                i = partner(f, i);
                continue;
            }
            d.brace = i;
            d.end = partner(f, i);
            /* A class may declare variables after its body. */
            if (!d.open) d.end = statement_end(f, d.end, end);
            return d;
        }
    }
    return d;
}

static bool word_in(const struct finder *f, uint32_t first, uint32_t last, const char *word) {
    for (uint32_t i = first; i < last; i++)
        if (token_is(f->tokens, i, word)) return true;
    return false;
}

static struct kernel_site *add_kernel(struct finder *f) {
    struct kernel_site *kernels =
        arena_one_more(f->arena, f->out->kernels, (size_t)f->out->kernel_count, sizeof *kernels);
    if (!kernels) return NULL;
    f->out->kernels = kernels;
    return &kernels[f->out->kernel_count++];
}

static struct instantiation_site *add_instantiation(struct finder *f) {
    struct instantiation_site *instantiations = arena_one_more(
        f->arena, f->out->instantiations, (size_t)f->out->instantiation_count, sizeof *instantiations);
    if (!instantiations) return NULL;
    f->out->instantiations = instantiations;
    return &instantiations[f->out->instantiation_count++];
}

/* Stages other than compute: their functions are left out. */
static bool is_graphics_word(const struct finder *f, uint32_t i, bool attribute) {
    return token_is(f->tokens, i, "vertex") || token_is(f->tokens, i, "fragment") ||
           (attribute && (token_is(f->tokens, i, "mesh") || token_is(f->tokens, i, "object") ||
                          token_is(f->tokens, i, "intersection")));
}

/* The attributes before a function's name, and the keyword `kernel`. */
static bool read_kernel_attributes(struct finder *f, const struct declaration *d, struct kernel_site *site) {
    bool kernel = false;
    for (uint32_t i = d->start; i < d->open; i++) {
        uint32_t list = attribute_list_end(f->tokens, i);
        if (!list) {
            /* `kernel` is a keyword in Metal: anywhere before the name, it has only this meaning. */
            if (token_is(f->tokens, i, "kernel") && i + 1 < d->open) kernel = true;
            if (is_graphics_word(f, i, false) && i + 1 < d->open) {
                site->graphics = true;
                site->stage = i;
            }
            continue;
        }
        uint32_t cursor = 0;
        struct attribute_use use;
        while (attribute_list_next(f->tokens, i, &cursor, &use)) {
            if (token_is(f->tokens, use.name, "kernel")) kernel = true;
            if (is_graphics_word(f, use.name, true)) {
                site->graphics = true;
                site->stage = use.name;
            }
            if (token_is(f->tokens, use.name, "host_name"))
                site->host_name = tokens_string(f->tokens, use.first, use.last, f->arena);
            if (token_is(f->tokens, use.name, "required_threads_per_threadgroup")) {
                site->required_threads = tokens_text(f->tokens, use.first, use.last, f->arena);
                site->required_token = use.name;
            }
            if (token_is(f->tokens, use.name, "max_total_threads_per_threadgroup"))
                site->max_threads = tokens_text(f->tokens, use.first, use.last, f->arena);
        }
        i = list;
    }
    return kernel || site->graphics;
}

/* Items separated by commas in [first, last), skipping template lists and brackets. Items with a default, and
 * packs (`…`), are counted in *optional; a pack counts as ANY_NUMBER. */
static int count_list(const struct finder *f, uint32_t first, uint32_t last, int *optional) {
    int count = first < last;
    bool counted = false;
    *optional = 0;
    for (uint32_t i = first; i < last; i++) {
        uint32_t close = token_is(f->tokens, i, "<") ? tokens_angle_end(f->tokens, i, last) : 0;
        if (close) {
            i = close - 1;
        } else if (partner(f, i) > i) {
            i = partner(f, i);
        } else if (token_is(f->tokens, i, ",")) {
            count++;
            counted = false;
        } else if (!counted && (token_is(f->tokens, i, "=") || token_pair(f->tokens, i, '.', '.'))) {
            *optional += token_is(f->tokens, i, "=") ? 1 : ANY_NUMBER;
            counted = true;
        }
    }
    return count;
}

static void read_template_head(const struct finder *f, const struct declaration *d,
                               struct kernel_site *site) {
    uint32_t open = d->start + 1, close = tokens_angle_end(f->tokens, open, d->open);
    int optional = 0, count = close ? count_list(f, open + 1, close - 1, &optional) : 0;
    site->is_template = true;
    site->most_arguments = optional >= ANY_NUMBER ? ANY_NUMBER : count;
    /* Arguments may also be deduced if the instantiation repeats the parameters. */
    site->least_arguments = optional >= ANY_NUMBER ? count - 1 : count - optional;
}

/* The name before a parameter list: the token f of "f(" and of "f<float>(". */
static uint32_t name_before(const struct finder *f, uint32_t open) {
    uint32_t at = open - 1;
    if (!token_is(f->tokens, at, ">")) return at;
    uint32_t lowest = open > FARTHEST_LOOK ? open - FARTHEST_LOOK : 0;
    int depth = 0;
    for (; at > lowest; at--) {
        if (partner(f, at) < at)
            at = partner(f, at);
        else if (token_is(f->tokens, at, ">"))
            depth++;
        else if (token_is(f->tokens, at, "<") && --depth == 0)
            return at - 1;
        if (at == 0) break;
    }
    return open - 1;
}

/* Words that may precede the return type of a function. */
static bool is_function_specifier(const struct finder *f, uint32_t i) {
    static const char *const words[] = {"inline", "constexpr", "static", "explicit", "friend", NULL};
    return token_is_one_of(f->tokens, i, words);
}

static void note_method(struct finder *f, const struct declaration *d) {
    static const char *const spaces[] = {"threadgroup", "device", "constant"};
    const char *space = NULL;
    for (size_t s = 0; s < sizeof spaces / sizeof *spaces; s++)
        if (word_in(f, d->close, d->brace, spaces[s])) space = spaces[s];
    if (!space || d->brace - d->close > 8) return;
    uint32_t first = d->start, last = d->open - 1;
    for (; first < d->open; first++) {
        bool attribute = token_is(f->tokens, first, "__attribute__") && partner(f, first + 1) > first;
        if (token_is(f->tokens, first, "template") && token_is(f->tokens, first + 1, "<"))
            first = angle_end(f, first + 1, d->open) - 1;
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
    if (!refers || !word_in(f, first, last, space)) return;
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
    functions[f->out->function_count++] = name_before(f, d->open);
}

static void scan_declaration(struct finder *f, const struct declaration *d, const char *path, bool in_class) {
    if (d->open && !in_class) add_function(f, d);
    if (d->open && in_class && d->brace) note_method(f, d);
    if (d->open && !in_class) {
        struct kernel_site site = {.start = d->start, .open = d->open, .close = d->close, .body = d->brace};
        if (read_kernel_attributes(f, d, &site)) {
            if (d->is_template) read_template_head(f, d, &site);
            uint32_t name = name_before(f, d->open);
            char *text = tokens_text(f->tokens, name, name + 1, f->arena);
            site.name = arena_printf(f->arena, "%s%s", path, text ? text : "");
            site.end = d->end;
            site.scope = path;
            int optional;
            site.parameter_count = count_list(f, d->open + 1, d->close, &optional);
            struct kernel_site *kept = add_kernel(f);
            if (kept) *kept = site;
            if (d->brace) scan_function(f, d->brace + 1, d->end, SCOPE_KERNEL, path);
            return;
        }
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
        struct declaration d = read_declaration(f, i, last);
        note_bit_fields(f, &d);
        scan_declaration(f, &d, path, true);
        i = d.end;
    }
    f->depth--;
}

/* `name` in namespace `scope`, which is "" or "ns::". */
static const char *join(struct arena *arena, const char *scope, const char *name) {
    if (!*scope || !name) return name; /* NULL: out of memory */
    size_t size = strlen(scope) + strlen(name) + 1;
    char *joined = arena_alloc(arena, size);
    if (joined) snprintf(joined, size, "%s%s", scope, name);
    return joined;
}

/* The last name<…> of an explicit instantiation, before an optional parameter list. */
static void scan_instantiation(struct finder *f, uint32_t start, uint32_t end, const char *path) {
    const char *host_name = NULL;
    bool kernel = false;
    uint32_t last = end;
    for (uint32_t i = start; i < end; i++) {
        uint32_t list = attribute_list_end(f->tokens, i);
        if (!list) continue;
        uint32_t cursor = 0;
        struct attribute_use use;
        while (attribute_list_next(f->tokens, i, &cursor, &use)) {
            if (token_is(f->tokens, use.name, "host_name"))
                host_name = tokens_string(f->tokens, use.first, use.last, f->arena);
            if (token_is(f->tokens, use.name, "kernel")) kernel = true;
        }
        i = list;
    }
    kernel |= word_in(f, start, end, "kernel");
    if (!host_name && !kernel) return;
    uint32_t open = 0;
    if (last > start && token_is(f->tokens, last - 1, ")") && partner(f, last - 1) > start)
        last = open = partner(f, last - 1);
    uint32_t name = last;
    if (last > start && token_is(f->tokens, last - 1, ">")) {
        int depth = 0;
        for (uint32_t i = last; i-- > start;) {
            if (partner(f, i) < i)
                i = partner(f, i);
            else if (token_is(f->tokens, i, ">"))
                depth++;
            else if (token_is(f->tokens, i, "<") && --depth == 0) {
                name = i;
                break;
            }
        }
    }
    uint32_t first = name ? name - 1 : 0;
    while (first >= start + 3 && token_pair(f->tokens, first - 2, ':', ':') &&
           token_is_identifier(f->tokens, first - 3))
        first -= 3;
    struct instantiation_site *site = add_instantiation(f);
    if (!site) return;
    *site = (struct instantiation_site){.start = start, .end = end, .scope = path};
    int optional;
    site->argument_count = name < last ? count_list(f, name + 1, last - 1, &optional) : 0;
    site->parameter_count = open ? count_list(f, open + 1, partner(f, open), &optional) : -1;
    site->open = open;
    site->close = open ? partner(f, open) : 0;
    site->name = tokens_text(f->tokens, first, name, f->arena);
    site->expression = tokens_text(f->tokens, first, last, f->arena);
    site->host_name = host_name ? host_name : join(f->arena, path, site->name);
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
            uint32_t end = statement_end(f, i, last);
            scan_instantiation(f, i, end, path);
            i = end;
        } else if (token_is(f->tokens, i, "using") || token_is(f->tokens, i, "typedef") ||
                   token_is(f->tokens, i, "static_assert")) {
            struct declaration d = read_declaration(f, i, last);
            if (d.brace && d.class_word) scan_declaration(f, &d, path, false);
            i = statement_end(f, i, last);
        } else {
            struct declaration d = read_declaration(f, i, last);
            note_variable(f, &d);
            scan_declaration(f, &d, path, false);
            i = d.end;
        }
    }
    f->depth--;
}

struct named {
    const char *start;
    uint32_t length, token;
};

static int compare_names(const void *a, const void *b) {
    const struct named *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return memcmp(x->start, y->start, x->length);
}

static struct named named_at(const struct finder *f, uint32_t i) {
    const struct token *token = &f->tokens->items[i];
    return (struct named){f->tokens->text + token->start, token->length, i};
}

/* Kernels that share their name with another function: a kernel or a helper. */
static void note_overloads(struct finder *f) {
    size_t count = (size_t)f->out->function_count;
    struct named *names = arena_alloc(f->arena, (count + 1) * sizeof *names);
    if (!names) return;
    for (size_t i = 0; i < count; i++) names[i] = named_at(f, f->out->functions[i]);
    qsort(names, count, sizeof *names, compare_names);
    for (int k = 0; k < f->out->kernel_count; k++) {
        struct kernel_site *site = &f->out->kernels[k];
        struct named wanted = named_at(f, name_before(f, site->open));
        const struct named *found = bsearch(&wanted, names, count, sizeof *names, compare_names);
        if (!found) continue;
        bool more = found > names && compare_names(found - 1, found) == 0;
        more |= found + 1 < names + count && compare_names(found, found + 1) == 0;
        site->overloaded = more;
    }
}

smelt_status structure_find(const struct tokens *tokens, struct arena *arena, struct structure *structure) {
    *structure = (struct structure){.scopes = arena_alloc(arena, tokens->count + 1)};
    if (!structure->scopes) return fail_out_of_memory(tokens->count);
    struct finder finder = {.tokens = tokens, .arena = arena, .out = structure};
    scan_namespace(&finder, 0, tokens->count, "");
    note_overloads(&finder);
    return arena->failed ? fail(SMELT_ERROR_OUT_OF_MEMORY, "the source's structure does not fit in memory")
                         : SMELT_OK;
}
