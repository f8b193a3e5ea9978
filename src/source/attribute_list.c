/* Lists of attributes, of which clang keeps a few; the entry finder reads the others. The attribute
 * function_constant makes a declaration one of a symbol that src/compiler/ gives its value. */
#include "abi/entry_names.h"
#include "source/attribute.h"
#include "source/rewriter.h"
#include "source/structure.h"

#include <string.h>

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
    while (first > lowest && !rewrite_starts_statement(r, first)) first--;
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

uint32_t rewrite_attribute_list(struct rewriter *r, uint32_t list, uint32_t end, bool in_parameters) {
    struct text kept = {0};
    struct attribute_use use;
    uint32_t cursor = 0;
    rewrite_erase(r, list, end + 1);
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
