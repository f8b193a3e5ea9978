/* The rewriter: Metal's words that C++ does not have become the attributes and macros of
 * prelude/smelt_dialect.h.
 *
 *   device, constant, threadgroup, thread    → __smelt_device, …; variables inside functions become static
 *   AS T name[N] as a parameter              → AS T (*name): the address space belongs to what is pointed to
 *   trailing `const device` of methods       → an enable_if ranking, or the object as a parameter
 *   S() = default; as the only constructor   → removed
 *   [[…]]                                    → removed, or read by the entry finder
 *   kernel, explicit instantiations          → removed; one entry point is appended for the entry asked for
 *   return in a kernel                       → marks the thread as gone, for barriers
 *   return; elsewhere                        → the same, where nothing but the kernel's end follows
 *   return in a method with a qualifier      → __smelt_returned, if it gives a place in its object
 *   1.0h, 2bf                                → half and bfloat literals
 *   casts between half and bfloat            → see cast.h
 *   c ? p[i] : x                             → arms that are objects are copied out of their address space
 *   "text" as a value                        → __smelt_text("text"), in the constant address space
 *   coherent(device), coherent               → removed: the CPU's memory always is
 */
#include "abi/entry_names.h"
#include "source/cast.h"
#include "source/change.h"
#include "source/conditional.h"
#include "source/global.h"
#include "source/literal.h"
#include "source/program.h"
#include "source/resource.h"
#include "source/rewriter.h"
#include "source/structure.h"

#include <stdio.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Directives that set lines stay. */
static void erase(struct rewriter *r, uint32_t first, uint32_t last) {
    for (uint32_t i = first; i < last && i < r->tokens->count; i++) {
        const struct token *token = &r->tokens->items[i];
        if (token->kind == TOKEN_DIRECTIVE && directive_is_line(r->tokens, token)) continue;
        r->changes.items[i].instead = "";
        r->changes.items[i].before = NULL;
    }
}

static const char *address_space_macro(const struct rewriter *r, uint32_t i) {
    static const char *const words[][2] = {{"device", "__smelt_device"},
                                           {"constant", "__smelt_constant"},
                                           {"threadgroup", "__smelt_threadgroup"},
                                           {"thread", ""}};
    if (!token_is_identifier(r->tokens, i)) return NULL;
    /* After . -> or :: it is the user's name; Metal does not allow it elsewhere. In a trailing return type,
     * the type follows. */
    bool arrow = token_pair(r->tokens, i - 2, '-', '>') && !token_is_identifier(r->tokens, i + 1);
    if (i && (token_is(r->tokens, i - 1, ".") || token_pair(r->tokens, i - 2, ':', ':') || arrow))
        return NULL;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (token_is(r->tokens, i, words[w][0])) return words[w][1];
    return NULL;
}

/* Whether a declaration, from its type on, declares a pointer or reference, so that the address space is the
 * pointee's. *stop is the token after the first declarator's name. */
static bool declares_pointer(const struct rewriter *r, uint32_t i, uint32_t *stop) {
    uint32_t end = r->tokens->count - i > FARTHEST_LOOK ? i + FARTHEST_LOOK : r->tokens->count;
    for (; i < end; i++) {
        uint32_t angle = token_is(r->tokens, i, "<") ? tokens_angle_end(r->tokens, i, end) : 0;
        if (angle) {
            i = angle - 1;
        } else if (token_is(r->tokens, i, "*") || token_is(r->tokens, i, "&")) {
            *stop = i;
            return true;
        } else if (token_is(r->tokens, i, "(")) {
            *stop = i;
            bool type = token_is(r->tokens, i - 1, "decltype") || token_is(r->tokens, i - 1, "alignas") ||
                        token_is(r->tokens, i - 1, "__attribute__");
            if (!type || partner(r, i) < i)
                return token_is(r->tokens, i + 1, "*") || token_is(r->tokens, i + 1, "&");
            i = partner(r, i);
        } else if (attribute_list_end(r->tokens, i)) {
            i = attribute_list_end(r->tokens, i);
        } else if (token_is(r->tokens, i, ";") || token_is(r->tokens, i, "=") ||
                   token_is(r->tokens, i, "[") || token_is(r->tokens, i, ",") ||
                   token_is(r->tokens, i, "{") || token_is(r->tokens, i, ")")) {
            break;
        }
    }
    *stop = i;
    return false;
}

static bool starts_statement(const struct rewriter *r, uint32_t i) {
    return i == 0 || token_is(r->tokens, i - 1, ";") || token_is(r->tokens, i - 1, "{") ||
           token_is(r->tokens, i - 1, "}") ||
           (token_is(r->tokens, i - 1, ":") && !token_pair(r->tokens, i - 2, ':', ':') &&
            !token_pair(r->tokens, i - 1, ':', ':')) ||
           r->tokens->items[i - 1].kind == TOKEN_DIRECTIVE;
}

/* The first token of the statement whose declaration specifiers contain token `i`; `i` itself if anything
 * except a type is between them, or if it is a template argument of the type. */
static uint32_t specifiers_start(const struct rewriter *r, uint32_t i, bool *already_static) {
    uint32_t first = i, lowest = i > FARTHEST_LOOK ? i - FARTHEST_LOOK : 0;
    int closed = 0; /* '>' without their '<' so far */
    while (first > lowest && !starts_statement(r, first)) {
        uint32_t at = first - 1;
        closed += token_is(r->tokens, at, ">") - token_is(r->tokens, at, "<");
        if (closed < 0) return i;
        if (token_is(r->tokens, at, ")") && partner(r, at) > 0 && partner(r, at) < at) {
            /* alignas(16) threadgroup float x[4]; */
            at = partner(r, at);
            if (!token_is(r->tokens, at - 1, "alignas") && !token_is(r->tokens, at - 1, "decltype") &&
                !token_is(r->tokens, at - 1, "__attribute__"))
                return i;
            at--;
        } else if (token_is(r->tokens, at, "]") && attribute_list_end(r->tokens, partner(r, at)) == at) {
            at = partner(r, at);
        } else {
            bool part_of_type = token_is_identifier(r->tokens, at) || token_is(r->tokens, at, ":") ||
                                token_is(r->tokens, at, "<") || token_is(r->tokens, at, ">") ||
                                token_is(r->tokens, at, ",") || r->tokens->items[at].kind == TOKEN_NUMBER;
            bool statement = token_is(r->tokens, at, "return") || token_is(r->tokens, at, "else") ||
                             token_is(r->tokens, at, "do") || token_is(r->tokens, at, "case");
            if (!part_of_type || statement) return i;
        }
        *already_static |= token_is(r->tokens, at, "static");
        first = at;
    }
    return first;
}

/* threadgroup and constant variables in function bodies have one instance: static. */
static void make_static(struct rewriter *r, uint32_t i) {
    bool already = token_is(r->tokens, i + 1, "static");
    uint32_t first = specifiers_start(r, i, &already), stop;
    if (already || !starts_statement(r, first) || declares_pointer(r, i + 1, &stop)) return;
    put_before(r, i, "static ");
}

/* Whether the declarator before the bracket at `stop` has a name. `first` is the first token of its type:
 * `float x[4]` has one; `T[4]`, `const metal::float4[4]`, `vec<float, 4>[4]` and `unsigned int[4]` have none.
 */
static bool declarator_has_name(const struct rewriter *r, uint32_t first, uint32_t stop) {
    static const char *const types[] = {"bool", "char",     "short", "int",  "long", "signed",
                                        "half", "unsigned", "float", "void", NULL};
    static const char *const qualifiers[] = {"const", "volatile", "struct", "typename", NULL};
    uint32_t name = stop - 1;
    if (!token_is_identifier(r->tokens, name) || token_is_one_of(r->tokens, name, types) ||
        token_is(r->tokens, name - 1, ":"))
        return false;
    for (uint32_t i = first; i < name; i++)
        if (!token_is_one_of(r->tokens, i, qualifiers)) return true;
    return false;
}

/* Whether the tokens from the address space at `i` to the brackets at `stop` are a parameter of the list that
 * `open` opens: not the operand of sizeof, and not a template argument in the list. */
static bool is_parameter(const struct rewriter *r, uint32_t i, uint32_t stop, uint32_t open) {
    static const char *const operators[] = {"sizeof",   "alignof",       "alignas",
                                            "decltype", "static_assert", NULL};
    static const char *const qualifiers[] = {"const", "volatile", NULL};
    while (token_is_one_of(r->tokens, i - 1, qualifiers)) i--;
    while (token_is(r->tokens, stop, "[") && partner(r, stop) > stop) stop = partner(r, stop) + 1;
    return (token_is(r->tokens, i - 1, "(") || token_is(r->tokens, i - 1, ",")) &&
           (token_is(r->tokens, stop, ")") || token_is(r->tokens, stop, ",")) && open > 0 &&
           !token_is_one_of(r->tokens, open - 1, operators);
}

/* Parameter `threadgroup float name[N][M]` → `threadgroup float (*name)[M]`; the name may be missing. */
static void rewrite_array_parameter(struct rewriter *r, uint32_t i, uint32_t open) {
    uint32_t stop;
    if (declares_pointer(r, i + 1, &stop) || !token_is(r->tokens, stop, "[") || stop <= i + 1 ||
        stop > partner(r, open) || attribute_list_end(r->tokens, stop))
        return;
    bool named = declarator_has_name(r, i + 1, stop);
    if (!named && !is_parameter(r, i, stop, open)) return;
    /* Not a member or call expression. */
    if (named && (token_is(r->tokens, stop - 2, ".") || token_is(r->tokens, stop - 2, ",") ||
                  token_is(r->tokens, stop - 2, "(")))
        return;
    if (named) put_before(r, stop - 1, "(*");
    erase(r, stop, partner(r, stop) + 1);
    put_instead(r, stop, named ? ")" : "(*)");
}

static void rewrite_address_space(struct rewriter *r, uint32_t i, const char *macro, uint32_t open) {
    if (rewrite_method_qualifier(r, i)) return;
    bool shared = token_is(r->tokens, i, "threadgroup") || token_is(r->tokens, i, "constant");
    if (open)
        rewrite_array_parameter(r, i, open);
    else if (shared && in_function(r, i))
        make_static(r, i);
    put_instead(r, i, macro);
}

/* 1.5h → 1.5f16, 1.5bf → ((bfloat)1.5f): Metal's suffixes of decimal and hexadecimal real numbers. A number
 * without a suffix is a float: 1.5 → 1.5f. (clang's mode for this is lost when it instantiates templates.) */
static void rewrite_number(struct rewriter *r, uint32_t i) {
    const struct token *token = &r->tokens->items[i];
    const char *digits = r->tokens->text + token->start;
    uint32_t length = token->length;
    bool hexadecimal = length > 1 && digits[0] == '0' && (digits[1] | 32) == 'x';
    if (hexadecimal && !memchr(digits, 'p', length) && !memchr(digits, 'P', length)) return;
    bool half = length > 1 && (digits[length - 1] | 32) == 'h';
    bool bfloat = length > 2 && (digits[length - 2] | 32) == 'b' && (digits[length - 1] | 32) == 'f';
    bool real = hexadecimal || memchr(digits, '.', length) || memchr(digits, 'e', length) ||
                memchr(digits, 'E', length);
    /* 6.5504e+4F16 is how clang spells __FLT16_MAX__. */
    bool suffixed =
        length > 3 && (digits[length - 3] | 32) == 'f' && memcmp(digits + length - 2, "16", 2) == 0;
    if (suffixed) return;
    if (half || bfloat) {
        length -= half ? 1 : 2;
        put_instead(r, i,
                    arena_printf(r->arena, half ? "%.*s%sf16" : "((bfloat)%.*s%sf)", (int)length, digits,
                                 real ? "" : ".0"));
    } else if (real && (isdigit((unsigned char)digits[length - 1]) || digits[length - 1] == '.')) {
        put_instead(r, i, arena_printf(r->arena, "%.*sf", (int)length, digits));
    }
}

static bool kept_attribute(const struct rewriter *r, uint32_t name) {
    static const char *const names[] = {"likely",   "unlikely", "maybe_unused", "nodiscard", "fallthrough",
                                        "noreturn", NULL};
    return token_is_one_of(r->tokens, name, names);
}

/* More tokens than the declaration of a function constant has. */
#define LONGEST_CONSTANT 100

static bool is_digits(const char *text) {
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && text[digits] == 0;
}

/* After the statement: smelt_constant_type_<index>_<k>, an integer with the type of the constant. */
static void add_constant_type(struct rewriter *r, uint32_t list, const char *index, const char *name) {
    uint32_t end = list;
    while (end < r->tokens->count && end < list + LONGEST_CONSTANT && !token_is(r->tokens, end, ";")) end++;
    if (!token_is(r->tokens, end, ";") || !index) return;
    put_after(r, end,
              arena_printf(r->arena,
                           " extern \"C\" __attribute__((used)) const int " CONSTANT_TYPE_NAME "%u "
                           "__asm__(\"" CONSTANT_TYPE_NAME
                           "%s_%u\") = __smelt::constant_code<decltype(%s)>();",
                           list, index, list, name));
}

#define MAX_CONSTANT_INDEX 65535

/* Before everything else inserted there. */
static void check_constant_index(struct rewriter *r, uint32_t first, const char *index, const char *name) {
    if (is_digits(index) && strlen(index) < 5) return;
    put_before(r, first,
               arena_printf(r->arena,
                            "static_assert(__smelt::is_index(%s, %d), \"'[[function_constant(%s)]]' of '%s': "
                            "expected an index from 0 to %d\"); ",
                            index, MAX_CONSTANT_INDEX, strpbrk(index, "\"\\\n") ? "…" : index, name,
                            MAX_CONSTANT_INDEX));
}

/* constant T x [[function_constant(3)]]; becomes a declaration of the symbol "smelt_constant_<index> <name>",
 * which src/compiler/ gives its value. If the index is an expression, clang evaluates it into the integer
 * smelt_constant_index_<k>, and the symbol is "smelt_constant_#<k> <name>". */
static void rewrite_function_constant(struct rewriter *r, uint32_t list, const struct attribute_use *use) {
    uint32_t first = list, lowest = list > LONGEST_CONSTANT ? list - LONGEST_CONSTANT : 0;
    while (first > lowest && !starts_statement(r, first)) first--;
    for (uint32_t i = first; i < list; i++)
        if (token_is(r->tokens, i, "constexpr") || token_is(r->tokens, i, "static") ||
            token_is(r->tokens, i, "inline"))
            put_instead(r, i, "");
    const char *index = tokens_text(r->tokens, use->first, use->last, r->arena);
    const char *name = list > first ? tokens_text(r->tokens, list - 1, list, r->arena) : "";
    if (!index || !name) return;
    add_constant_type(r, list, is_digits(index) ? index : arena_printf(r->arena, "#%u", list), name);
    /* Several may be declared in one statement. */
    if (r->last_constant != first + 1) put_before(r, first, "extern ");
    r->last_constant = first + 1;
    if (is_digits(index)) {
        put_instead(r, list, arena_printf(r->arena, " __asm__(\"" CONSTANT_NAME "%s %s\")", index, name));
        check_constant_index(r, first, index, name);
        return;
    }
    put_instead(r, list, arena_printf(r->arena, " __asm__(\"" CONSTANT_NAME "#%u %s\")", list, name));
    put_before(r, first,
               arena_printf(r->arena,
                            "extern \"C\" __attribute__((used)) const int " CONSTANT_INDEX_NAME
                            "%u = (int)(%s); ",
                            list, index));
    check_constant_index(r, first, index, name);
}

static uint32_t rewrite_attribute_list(struct rewriter *r, uint32_t list, uint32_t end, bool in_parameters) {
    struct text kept = {0};
    struct attribute_use use;
    uint32_t cursor = 0;
    erase(r, list, end + 1);
    while (attribute_list_next(r->tokens, list, &cursor, &use)) {
        if (kept_attribute(r, use.name))
            text_addf(&kept, "%s%s", kept.length ? ", " : "",
                      tokens_text(r->tokens, use.name, use.name + 1, r->arena));
        /* On a structure's member, it decides whether a pipeline stage has the member. */
        if (token_is(r->tokens, use.name, "function_constant") && !in_parameters &&
            scope_of(r, list) == SCOPE_NAMESPACE)
            rewrite_function_constant(r, list, &use);
    }
    if (kept.length) put_instead(r, list, arena_printf(r->arena, "[[%s]]", text_string(&kept)));
    text_free(&kept);
    return end;
}

/* A `return` in a kernel evaluates its operand, and then ends the thread. One in a function that the kernel
 * calls may do so, too: src/compiler/passes/returns.c decides. */
static void rewrite_return(struct rewriter *r, uint32_t i) {
    bool kernel = scope_of(r, i) == SCOPE_KERNEL;
    if (token_is(r->tokens, i + 1, ";")) {
        put_instead(r, i,
                    kernel ? "do { __smelt_thread_return(); return; } while (0)"
                           : "do { __smelt_leave(); return; } while (0)");
        return;
    }
    if (!kernel) return;
    uint32_t end = i + 1;
    while (end < r->tokens->count && !token_is(r->tokens, end, ";")) {
        if (token_is(r->tokens, end, "return") || token_is(r->tokens, end, "}") ||
            token_is(r->tokens, end, ")"))
            return;
        end = partner(r, end) > end ? partner(r, end) + 1 : end + 1;
    }
    if (end >= r->tokens->count) return;
    put_instead(r, i, "do { (void)(");
    put_instead(r, end, "); __smelt_thread_return(); return; } while (0);");
}

/* Whether the token at `last` is the name of any bit-field: no reference can be bound to one. */
static bool is_bit_field(const struct rewriter *r, uint32_t last) {
    const struct token *token = &r->tokens->items[last];
    for (int i = 0; i < r->structure->bit_field_count; i++) {
        const struct token *name = &r->tokens->items[r->structure->bit_fields[i]];
        if (name->length == token->length &&
            memcmp(r->tokens->text + name->start, r->tokens->text + token->start, name->length) == 0)
            return true;
    }
    return false;
}

/* c ? p[i] : float4(0) → c ? __smelt_arm(p[i]) : float4(0) */
static void rewrite_conditional(struct rewriter *r, uint32_t i) {
    struct conditional_arm arms[2];
    int count = conditional_arms(r->tokens, i, arms);
    for (int a = 0; a < count; a++) {
        if (is_bit_field(r, arms[a].last)) continue;
        put_before(r, arms[a].first, "__smelt_arm(");
        put_before(r, arms[a].last + 1, ")");
    }
}

/* Rewrites a run of literals; returns its last token. */
static uint32_t rewrite_literal(struct rewriter *r, uint32_t i, uint32_t last) {
    put_before(r, i, "__smelt_text(");
    put_after(r, last, ")");
    return last;
}

/* The last token of `coherent` or `coherent(device)`, a qualifier next to an address space; NO_PLACE if the
 * word is the user's name. */
static uint32_t coherent_end(const struct rewriter *r, uint32_t i) {
    if (!token_is(r->tokens, i, "coherent")) return NO_PLACE;
    bool scoped = token_is(r->tokens, i + 1, "(") && partner(r, i + 1) == i + 3 &&
                  (token_is(r->tokens, i + 2, "device") || token_is(r->tokens, i + 2, "threadgroup") ||
                   token_is(r->tokens, i + 2, "thread") || token_is(r->tokens, i + 2, "system"));
    if (scoped) return i + 3;
    bool before_space = token_is(r->tokens, i + 1, "device") || token_is(r->tokens, i + 1, "const") ||
                        token_is(r->tokens, i + 1, "volatile");
    bool behind_space =
        i > 0 && token_is(r->tokens, i - 1, "device") && token_is_identifier(r->tokens, i + 1);
    return before_space || behind_space ? i : NO_PLACE;
}

static void rewrite_tokens(struct rewriter *r) {
    for (uint32_t i = 0; i < r->tokens->count; i++) {
        const struct token *token = &r->tokens->items[i];
        bool bracketed = token->outer != NO_PLACE && partner(r, token->outer) > i;
        uint32_t open = bracketed && token_is(r->tokens, token->outer, "(") ? token->outer : 0;
        uint32_t list = attribute_list_end(r->tokens, i);
        uint32_t literal = literal_value_end(r->tokens, i), coherent = coherent_end(r, i);
        if (token->kind == TOKEN_DIRECTIVE) {
            rewrite_directive(r, i);
        } else if (literal != NO_PLACE) {
            i = rewrite_literal(r, i, literal);
        } else if (coherent != NO_PLACE) {
            erase(r, i, coherent + 1);
            i = coherent;
        } else if (list) {
            i = rewrite_attribute_list(r, i, list, open != 0);
        } else if (token->kind == TOKEN_NUMBER) {
            rewrite_number(r, i);
        } else if (token_is(r->tokens, i, "?")) {
            rewrite_conditional(r, i);
        } else if (token->kind == TOKEN_IDENTIFIER) {
            const char *macro = address_space_macro(r, i);
            if (macro)
                rewrite_address_space(r, i, macro, open);
            else if (token_is(r->tokens, i, "return") && in_function(r, i))
                rewrite_return(r, i);
            else if (token_is(r->tokens, i, "template"))
                rewrite_deduced(r, i);
            else if (token_is(r->tokens, i + 1, "("))
                rewrite_defaulted(r, i);
        }
    }
}

/* Whether no entry can bind a parameter, such as a texture: the kernel is left out, so that the others in the
 * file compile. */
static bool has_unsupported_parameter(const struct rewriter *r, const struct kernel_site *site) {
    for (uint32_t i = site->open; i < site->close; i++) {
        uint32_t list = attribute_list_end(r->tokens, i), cursor = 0;
        struct attribute_use use;
        while (list && attribute_list_next(r->tokens, i, &cursor, &use))
            if (resource_attribute(r->tokens, use.name)) return true;
    }
    return resource_type(r->tokens, site->open + 1, site->close) != NO_PLACE;
}

/* `kernel` or [[kernel]] becomes `inline`: clang then generates code only for the requested kernel. */
static void rewrite_kernel_word(struct rewriter *r, const struct kernel_site *site) {
    const char *instead = site->is_template ? "" : "inline";
    for (uint32_t i = site->start; i < site->open; i++) {
        uint32_t list = attribute_list_end(r->tokens, i);
        bool erased = r->changes.items[i].instead && !*r->changes.items[i].instead;
        if (token_is(r->tokens, i, "kernel") || (list && erased)) {
            put_instead(r, i, instead);
            instead = "";
        }
        if (list) i = list;
    }
}

/* The rewritten tokens [first, last) on one line, without default arguments. NULL: out of memory. */
static const char *rewritten_list(const struct rewriter *r, uint32_t first, uint32_t last) {
    struct text list = {0};
    bool in_default = false;
    for (uint32_t i = first; i < last; i++) {
        const struct token *token = &r->tokens->items[i];
        bool top = token->outer != NO_PLACE && token->outer + 1 == first;
        if (top && (token_is(r->tokens, i, "=") || token_is(r->tokens, i, ",")))
            in_default = token_is(r->tokens, i, "=");
        if (token->kind == TOKEN_DIRECTIVE || in_default) continue;
        change_write(&r->changes, i, last, &list);
    }
    r->arena->failed |= list.failed;
    const char *copy = arena_copy(r->arena, text_string(&list), list.length);
    text_free(&list);
    return copy;
}

/* A return in a lambda is not the method's. */
static bool has_lambda(const struct rewriter *r, const struct method_site *method) {
    for (uint32_t i = method->open; i < method->close; i++)
        if (token_is(r->tokens, i, "[") && !attribute_list_end(r->tokens, i) &&
            (token_is(r->tokens, i + 1, "&") || token_is(r->tokens, i + 1, "=") ||
             token_is(r->tokens, i + 1, "]")))
            return true;
    return false;
}

/* In a method, every member is in the default address space, which `this` points to. A method that returns a
 * pointer or reference into its object's space states this at its returns. */
static void rewrite_methods(struct rewriter *r) {
    for (int m = 0; m < r->structure->method_count; m++) {
        const struct method_site *method = &r->structure->methods[m];
        const char *type = has_lambda(r, method) ? NULL : rewritten_list(r, method->first, method->last);
        for (uint32_t i = method->open; type && i < method->close; i++) {
            uint32_t end = i + 1;
            if (!token_is(r->tokens, i, "return") || token_is(r->tokens, end, "{") ||
                token_is(r->tokens, end, ";"))
                continue;
            while (end < method->close && !token_is(r->tokens, end, ";"))
                end = partner(r, end) > end ? partner(r, end) + 1 : end + 1;
            if (end >= method->close) break;
            put_after(r, i, arena_printf(r->arena, " __smelt_returned<%s>(", type));
            put_before(r, end, ")");
        }
    }
}

static void rewrite_kernels(struct rewriter *r) {
    for (int k = 0; k < r->structure->kernel_count; k++) {
        struct kernel_site *site = &r->structure->kernels[k];
        if (site->graphics || has_unsupported_parameter(r, site)) {
            erase(r, site->start, site->end + 1);
            site->left_out = true;
            continue;
        }
        rewrite_kernel_word(r, site);
        if (site->overloaded) site->types = rewritten_list(r, site->open + 1, site->close);
        if (site->max_threads && site->body)
            put_after(r, site->body, arena_printf(r->arena, " __smelt_max_threads(%s);", site->max_threads));
        if (site->required_threads && site->body)
            put_after(r, site->body,
                      arena_printf(r->arena, " __smelt_required_threads(%s);", site->required_threads));
    }
    for (int k = 0; k < r->structure->instantiation_count; k++) {
        struct instantiation_site *site = &r->structure->instantiations[k];
        if (site->open) site->types = rewritten_list(r, site->open + 1, site->close);
        erase(r, site->start, site->end);
    }
}

/* Copies the text with its changes. White space and comments between tokens stay, so lines stay. */
static void write_text(const struct rewriter *r, struct text *out, uint32_t *positions) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < r->tokens->count; i++) {
        const struct token *token = &r->tokens->items[i];
        text_append(out, r->tokens->text + at, token->start - at);
        if (r->changes.items[i].before) text_add(out, r->changes.items[i].before);
        positions[i] = (uint32_t)out->length;
        if (r->changes.items[i].instead)
            text_add(out, r->changes.items[i].instead);
        else
            text_append(out, r->tokens->text + token->start, token->length);
        at = token->start + token->length;
    }
    text_append(out, r->tokens->text + at, r->tokens->text_length - at);
    text_add(out, "\n");
}

smelt_status rewrite(const struct tokens *tokens, const struct structure *structure, struct arena *arena,
                     struct text *out, uint32_t *positions, bool *objects) {
    struct rewriter r = {.tokens = tokens, .structure = structure, .arena = arena};
    r.changes = (struct changes){.tokens = tokens, .arena = arena};
    r.changes.items = arena_alloc(arena, (tokens->count + 1) * sizeof *r.changes.items);
    if (!r.changes.items) return fail_out_of_memory(tokens->count * sizeof *r.changes.items);
    casts_rewrite(&r.changes);
    rewrite_tokens(&r);
    rewrite_methods(&r);
    rewrite_globals(tokens, structure, &r.changes);
    rewrite_kernels(&r);
    write_text(&r, out, positions);
    *objects = r.objects;
    if (arena->failed || out->failed)
        return fail(SMELT_ERROR_OUT_OF_MEMORY, "the rewritten source does not fit in memory");
    return SMELT_OK;
}
