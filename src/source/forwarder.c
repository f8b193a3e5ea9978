/* Functions that have an object as a parameter, and call a method for objects in its address space.
 *
 * Each has the parameters of its method, so that arguments convert as they do for the method, and only the
 * object decides between address spaces. If a method for thread objects has other parameters, these may fit
 * the arguments better: then a second function takes arguments of all types. It also serves methods whose
 * parameters parameter.c cannot parse.
 *
 * A class may take the method from this one by `using Base::get;`. Overload resolution then ranks it with
 * methods of that class, and a conversion of the object to the base would count against it: so the forwarder
 * deduces the object's class. */
#include "source/overload.h"
#include "source/parameter.h"

/* What a forwarder consists of, besides its name and object. */
struct forwarder {
    const char *types;      /* its template parameters: "", "class... A" */
    const char *start;      /* of its declaration: "float ", "constexpr auto " */
    const char *parameters; /* after the object: ", float a, int b = 2" */
    const char *arguments;  /* of the call: "a, b" */
    bool constant;          /* for constant objects */
    bool takes_all;         /* arguments of all types with which the method can be called */
};

static bool is_operator(const struct rewriter *r, const struct overload *overload, char first, char second) {
    return token_is(r->tokens, overload->name, "operator") &&
           token_pair(r->tokens, overload->name + 1, first, second);
}

/* Operators other than () and [] have a fixed number of operands. */
static bool has_any_arity(const struct rewriter *r, const struct overload *overload) {
    return !token_is(r->tokens, overload->name, "operator") || is_operator(r, overload, '(', ')') ||
           is_operator(r, overload, '[', ']');
}

static bool has_parameters(const struct overload *overload) {
    return overload->close > overload->open + 1;
}

static const char *finish(const struct rewriter *r, struct text *text) {
    r->arena->failed |= text->failed;
    const char *copy = arena_copy(r->arena, text_string(text), text->length);
    text_free(text);
    return copy ? copy : "";
}

/* `__smelt_device_get`, `__smelt_device_operator_5b5d` for operator[]. */
const char *forwarder_own_name(const struct rewriter *r, const struct overload *overload) {
    const struct token *space = &r->tokens->items[overload->space], *name = &r->tokens->items[overload->name];
    const char *text = r->tokens->text;
    const char *own = arena_printf(r->arena, "__smelt_%.*s_%.*s", (int)space->length, text + space->start,
                                   (int)name->length, text + name->start);
    for (uint32_t i = overload->name + 1; own && i < overload->open; i++)
        for (uint32_t k = 0; own && k < r->tokens->items[i].length; k++)
            own = arena_printf(r->arena, "%s%s%02x", own, i == overload->name + 1 && k == 0 ? "_" : "",
                               (unsigned char)text[r->tokens->items[i].start + k]);
    return own ? own : "";
}

/* Whether a declaration `using Base::get;` may name the methods. */
static bool is_taken_over(const struct rewriter *r, const struct group *group) {
    static const char *const ends[] = {";", "{", "}", NULL};
    for (uint32_t i = 2; i + group->length < r->tokens->count; i++) {
        if (!token_pair(r->tokens, i - 2, ':', ':') || !same_tokens(r, i, group->name, group->length) ||
            !(token_is(r->tokens, i + group->length, ";") || token_is(r->tokens, i + group->length, ",")))
            continue;
        uint32_t first = i;
        while (first > 0 && i - first < FARTHEST_LOOK && !token_is_one_of(r->tokens, first - 1, ends))
            first--;
        if (token_is(r->tokens, first, "using")) return true;
    }
    return false;
}

/* What precedes its name. */
static const char *head(const struct rewriter *r, const struct forwarder *forwarder, bool deduced) {
    const char *text =
        deduced
            ? arena_printf(
                  r->arena,
                  " template <class __smelt_S, metal::enable_if_t<!__is_const(__smelt_S), int> = 0%s%s> %s",
                  *forwarder->types ? ", " : "", forwarder->types, forwarder->start)
        : *forwarder->types ? arena_printf(r->arena, " template <%s> %s", forwarder->types, forwarder->start)
                            : arena_printf(r->arena, " %s", forwarder->start);
    return text ? text : "";
}

static void add_forwarder(const struct rewriter *r, const struct group *group,
                          const struct overload *overload, const struct forwarder *forwarder,
                          struct text *out) {
    bool deduced = is_taken_over(r, group);
    const char *constant = forwarder->constant ? "const " : "";
    const char *space = tokens_text(r->tokens, overload->space, overload->space + 1, r->arena);
    const char *class = tokens_text(r->tokens, group->class, group->class + 1, r->arena);
    const char *name = tokens_text(r->tokens, overload->name, overload->open, r->arena);
    if (!space || !class || !name) return;
    /* A C-style cast also converts to a private base. */
    const char *object =
        deduced ? arena_printf(r->arena, "((%s__smelt_%s %s &)__smelt_object)", constant, space, class)
                : "__smelt_object";
    const char *call = arena_printf(r->arena, "%s.%s(%s)", object ? object : "",
                                    forwarder_own_name(r, overload), forwarder->arguments);
    const char *signature = arena_printf(r->arena, "(this %s__smelt_%s %s &__smelt_object%s)", constant,
                                         space, deduced ? "__smelt_S" : class, forwarder->parameters);
    if (!object || !call || !signature) return;
    const char *type = forwarder->takes_all ? arena_printf(r->arena, " -> decltype(%s)", call) : "";
    const char *start = head(r, forwarder, deduced);
    text_addf(out, "%s%s%s%s { return %s; }", start, name, signature, type ? type : "", call);
    /* C++ would also call it with its operands reversed, unless a != has the same parameters. This one is
     * never called. */
    if (is_operator(r, overload, '=', '='))
        text_addf(out, "%soperator!=%s __attribute__((enable_if(false, \"\")));", start, signature);
}

static void add_tokens(const struct rewriter *r, uint32_t first, uint32_t last, struct text *out) {
    for (uint32_t i = first; i < last; i++)
        if (r->tokens->items[i].kind != TOKEN_DIRECTIVE) change_write(&r->changes, i, last, out);
}

/* Adds a parameter with its default to the function's, and its name to the call's arguments. */
static void add_parameter(const struct rewriter *r, const struct parameter *p, int index,
                          struct text *parameters, struct text *arguments) {
    const char *name = p->named ? tokens_text(r->tokens, p->name, p->name + 1, r->arena)
                                : arena_printf(r->arena, "__smelt_a%d", index);
    if (!name) return;
    text_add(parameters, ", ");
    add_tokens(r, p->first, p->named ? p->stop : p->name, parameters);
    if (!p->named) {
        text_addf(parameters, " %s ", name);
        add_tokens(r, p->name, p->stop, parameters);
    }
    /* A change at the end of a default is stored before the comma. */
    if (p->end < p->stop && r->changes.items[p->stop].before)
        text_add(parameters, r->changes.items[p->stop].before);
    text_addf(arguments, "%s%s", index ? ", " : "", name);
}

static bool is_readable(const struct rewriter *r, const struct overload *overload) {
    struct parameter p;
    uint32_t i = parameters_start(r->tokens, overload->open, overload->close);
    for (; i < overload->close; i = parameter_next(&p, overload->close))
        if (!parameter_read(r->tokens, i, overload->close, &p)) return false;
    return true;
}

/* A forwarder with the method's own declaration. */
static void copy_declaration(const struct rewriter *r, const struct overload *overload,
                             struct forwarder *forwarder) {
    struct text start = {0}, parameters = {0}, arguments = {0};
    struct parameter p;
    uint32_t i = parameters_start(r->tokens, overload->open, overload->close);
    for (int k = 0; i < overload->close && parameter_read(r->tokens, i, overload->close, &p); k++) {
        add_parameter(r, &p, k, &parameters, &arguments);
        i = parameter_next(&p, overload->close);
    }
    add_tokens(r, overload->first, overload->name, &start);
    text_add(&start, " ");
    *forwarder = (struct forwarder){.types = "",
                                    .start = finish(r, &start),
                                    .parameters = finish(r, &parameters),
                                    .arguments = finish(r, &arguments),
                                    .constant = overload->constant};
}

/* Whether a method in the object's space has the parameters of this one. */
static bool has_partner(const struct rewriter *r, const struct group *group, const struct overload *space,
                        const struct overload *overload) {
    for (uint32_t k = 0; k < group->count; k++)
        if (same_space(r, &group->overloads[k], space) &&
            parameters_alike(r->tokens, group->overloads[k].open, overload->open))
            return true;
    return false;
}

/* Whether a function that takes arguments of all types is needed after this method, the last one that it
 * serves. */
static bool takes_all(const struct rewriter *r, const struct group *group, const struct overload *overload) {
    bool needed = false, any_arity = has_any_arity(r, overload);
    if (!any_arity && !has_parameters(overload)) return false;
    for (uint32_t k = 0; k < group->count; k++) {
        const struct overload *other = &group->overloads[k];
        bool served = same_space(r, overload, other) && overload->constant == other->constant;
        if (!any_arity && !has_parameters(other)) continue;
        if (served && other->name > overload->name) return false;
        needed |= served && !is_readable(r, other);
        needed |= !other->space && has_parameters(other) && !has_partner(r, group, overload, other);
    }
    return needed;
}

/* Whether a method for const objects needs a second function for others, for which the call would be
 * ambiguous: `get()` and `get() const device`. */
static bool serves_variables(const struct rewriter *r, const struct group *group,
                             const struct overload *overload) {
    bool rival = false;
    if (token_is(r->tokens, overload->space, "constant")) return false;
    for (uint32_t k = 0; k < group->count; k++) {
        const struct overload *other = &group->overloads[k];
        if (other->constant || !parameters_alike(r->tokens, overload->open, other->open)) continue;
        if (same_space(r, overload, other)) return false;
        rival |= !other->space;
    }
    return overload->constant && rival;
}

const char *forwarder_text(const struct rewriter *r, const struct group *group,
                           const struct overload *overload) {
    struct text out = {0};
    struct forwarder forwarder;
    if (is_readable(r, overload)) {
        copy_declaration(r, overload, &forwarder);
        add_forwarder(r, group, overload, &forwarder, &out);
        forwarder.constant = false;
        if (serves_variables(r, group, overload)) add_forwarder(r, group, overload, &forwarder, &out);
    }
    if (takes_all(r, group, overload)) {
        const char *pack = has_any_arity(r, overload) ? "..." : "";
        forwarder = (struct forwarder){
            .types = arena_printf(r->arena, "class%s __smelt_A", pack),
            .start = "constexpr auto ",
            .parameters = arena_printf(r->arena, ", __smelt_A &&%s__smelt_a", pack),
            .arguments = arena_printf(r->arena, "static_cast<__smelt_A &&>(__smelt_a)%s", pack),
            .constant = overload->constant,
            .takes_all = true};
        if (forwarder.types && forwarder.parameters && forwarder.arguments)
            add_forwarder(r, group, overload, &forwarder, &out);
    }
    return finish(r, &out);
}
