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
#include "source/cast.h"
#include "source/change.h"
#include "source/conditional.h"
#include "source/global.h"
#include "source/literal.h"
#include "source/resource.h"
#include "source/rewriter.h"
#include "source/structure.h"

#include <string.h>

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
            rewrite_erase(r, i, coherent + 1);
            i = coherent;
        } else if (list) {
            i = rewrite_attribute_list(r, i, list, open != 0);
        } else if (token->kind == TOKEN_NUMBER) {
            rewrite_number(r, i);
        } else if (token_is(r->tokens, i, "?")) {
            rewrite_conditional(r, i);
        } else if (token->kind == TOKEN_IDENTIFIER && !rewrite_address_space(r, i, open)) {
            if (token_is(r->tokens, i, "return") && in_function(r, i))
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

/* Whether nothing but attributes stands between the token and the kernel's arguments: its name is before. */
static bool is_after_name(const struct rewriter *r, const struct kernel_site *site, uint32_t i) {
    for (uint32_t list; (list = attribute_list_end(r->tokens, i)) != 0;) i = list + 1;
    return i == site->open;
}

/* `kernel` or [[kernel]] becomes `inline`: clang then generates code only for the requested kernel. */
static void rewrite_kernel_word(struct rewriter *r, const struct kernel_site *site) {
    const char *instead = site->is_template ? "" : "inline";
    for (uint32_t i = site->start; i < site->open; i++) {
        uint32_t list = attribute_list_end(r->tokens, i);
        bool erased = r->changes.items[i].instead && !*r->changes.items[i].instead;
        if (list && erased && is_after_name(r, site, i)) {
            if (*instead) put_before(r, site->start, "inline ");
            instead = "";
        } else if (token_is(r->tokens, i, "kernel") || (list && erased)) {
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
            rewrite_erase(r, site->start, site->end + 1);
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
        rewrite_erase(r, site->start, site->end);
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
