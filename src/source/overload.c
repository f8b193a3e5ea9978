/* Methods that are overloaded by the address space of their object, and differ in more than that word:
 *
 *     device T &operator[](uint i) device { return v[i]; }      thread T &operator[](uint i) { return v[i]; }
 *     T get() const device { return load(this); }               T get() const thread { return v; }
 *
 * In C++, the object is a parameter of its own (C++23), which has an address space:
 *
 *     … __smelt_device_get(…) const { … }
 *     template <class... A> auto get(this const __smelt_device S &o, A &&...a) {
 *         return o.__smelt_device_get(a...);
 *     }
 *
 * The method itself keeps its body under a name of its own, in which `this` points to that address space and
 * methods of the class are called by such names, too. A method for objects in thread memory stays as it is.
 * Templates, conversions, constructors and methods defined elsewhere are left to the ranking (method.c). */
#include "source/rewriter.h"

#include <string.h>

struct overload {
    uint32_t name, open, close; /* its name, and the parentheses behind */
    uint32_t space;             /* the word of its address space, or 0: thread */
    uint32_t body;              /* its opening brace */
    bool constant;              /* for constant objects */
};

/* More of one name are left to the ranking. */
#define MOST_OVERLOADS 64

/* The methods of one name in a class. */
struct group {
    uint32_t brace;  /* that opens the class */
    uint32_t class;  /* the token of its name */
    uint32_t name;   /* the first token of the methods' name, in one of them */
    uint32_t length; /* of that name, in tokens */
    struct overload overloads[MOST_OVERLOADS];
    uint32_t count;
};

static bool is_space(const struct rewriter *r, uint32_t i) {
    static const char *const words[] = {"device", "constant", "threadgroup", "thread", NULL};
    return token_is_one_of(r->tokens, i, words);
}

/* The same tokens, whatever address spaces they name. */
static bool same_code(const struct rewriter *r, uint32_t a, uint32_t a_end, uint32_t b, uint32_t b_end) {
    for (;; a++, b++) {
        while (a < a_end && is_space(r, a)) a++;
        while (b < b_end && is_space(r, b)) b++;
        if (a == a_end || b == b_end) return a == a_end && b == b_end;
        if (!same_token(r, a, b)) return false;
    }
}

uint32_t structure_name(const struct rewriter *r, uint32_t brace) {
    static const char *const ends[] = {";", "{", "}", "(", ")", NULL};
    static const char *const words[] = {"struct", "class", NULL};
    for (uint32_t i = brace; i-- > 0 && brace - i < FARTHEST_LOOK && !token_is_one_of(r->tokens, i, ends);)
        if (token_is_one_of(r->tokens, i, words) && !token_is(r->tokens, i - 1, "<") &&
            !token_is(r->tokens, i - 1, ","))
            return token_is_identifier(r->tokens, i + 1) && i + 1 < brace ? i + 1 : 0;
    return 0;
}

/* Whether the declaration that the name belongs to has one of the words before the name. */
static bool declared_with(const struct rewriter *r, uint32_t name, const char *const *words) {
    uint32_t outer = r->tokens->items[name].outer;
    for (uint32_t i = name; i-- > outer + 1;) {
        if (partner(r, i) < i && token_is(r->tokens, i, ")")) i = partner(r, i);
        if (token_is(r->tokens, i, ";") || token_is(r->tokens, i, "}") || token_is(r->tokens, i, "{")) break;
        if (token_is_one_of(r->tokens, i, words)) return true;
    }
    return false;
}

/* A declaration of a method, whose name is the token: false if it is none that can be taken apart. */
static bool read_overload(const struct rewriter *r, const struct group *group, uint32_t name,
                          struct overload *out) {
    static const char *const other[] = {"template", "static", "friend", "volatile", NULL};
    *out = (struct overload){.name = name, .open = name + group->length};
    out->close = partner(r, out->open);
    uint32_t i = out->close + 1;
    for (; token_is(r->tokens, i, "const") || token_is(r->tokens, i, "noexcept") || is_space(r, i); i++) {
        out->constant |= token_is(r->tokens, i, "const");
        if (is_space(r, i) && !token_is(r->tokens, i, "thread")) out->space = i;
    }
    out->body = i;
    return token_is(r->tokens, i, "{") && partner(r, i) > i && !declared_with(r, name, other);
}

/* The next token that is directly in the class. */
static uint32_t next_in_class(const struct rewriter *r, uint32_t i) {
    return (partner(r, i) > i ? partner(r, i) : i) + 1;
}

static bool is_named(const struct rewriter *r, const struct group *group, uint32_t i) {
    if (r->tokens->items[i].outer != group->brace || !token_is(r->tokens, i + group->length, "("))
        return false;
    for (uint32_t k = 0; k < group->length; k++)
        if (!same_token(r, i + k, group->name + k)) return false;
    return true;
}

static bool same_space(const struct rewriter *r, const struct overload *a, const struct overload *b) {
    return !a->space || !b->space ? a->space == b->space : same_token(r, a->space, b->space);
}

/* It returns a place in its object: structure.c. */
static bool returns_place(const struct rewriter *r, const struct overload *overload) {
    for (int m = 0; m < r->structure->method_count; m++)
        if (r->structure->methods[m].open == overload->body) return true;
    return false;
}

/* Whether two methods of a group do different things only because of where their objects are. */
static bool differ(const struct rewriter *r, const struct overload *a, const struct overload *b) {
    if (same_space(r, a, b)) return false;
    if (returns_place(r, a) || returns_place(r, b)) return true;
    return a->constant == b->constant && same_code(r, a->open, a->close, b->open, b->close) &&
           !same_code(r, a->body, partner(r, a->body), b->body, partner(r, b->body));
}

/* Finds the methods of a class by their name, which is `length` tokens from `name` on: true if their objects
 * must be parameters, which one pair that differs decides for all. */
static bool find_group(const struct rewriter *r, uint32_t brace, uint32_t name, uint32_t length,
                       struct group *group) {
    *group = (struct group){.brace = brace, .name = name, .length = length};
    bool operator= token_is(r->tokens, name, "operator"), needed = false;
    if (length == 0 || (operator&& token_is_identifier(r->tokens, name + 1))) return false;
    group->class = structure_name(r, brace);
    if (!group->class || same_token(r, group->class, name)) return false;
    for (uint32_t i = brace + 1; i < partner(r, brace); i = next_in_class(r, i)) {
        if (!is_named(r, group, i)) continue;
        struct overload *one = &group->overloads[group->count];
        if (group->count == MOST_OVERLOADS || !read_overload(r, group, i, one)) return false;
        for (uint32_t k = 0; k < group->count && !needed; k++) needed = differ(r, one, &group->overloads[k]);
        group->count++;
    }
    return needed;
}

/* `__smelt_device_get`, `__smelt_device_operator_5b5d` for operator[]. */
static const char *own_name(const struct rewriter *r, const struct overload *overload) {
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

/* An operator other than () and [] has a fixed number of operands. */
static const char *parameter_pack(const struct rewriter *r, const struct overload *overload) {
    bool any = !token_is(r->tokens, overload->name, "operator") ||
               token_is(r->tokens, overload->name + 1, "(") || token_is(r->tokens, overload->name + 1, "[");
    return any ? "..." : overload->close > overload->open + 1 ? "" : NULL;
}

/* The function that has the object as a parameter, and calls the method by its own name. */
static const char *forwarder(const struct rewriter *r, const struct group *group,
                             const struct overload *overload) {
    const struct token *items = r->tokens->items, *class = &items[group->class];
    const char *text = r->tokens->text, *pack = parameter_pack(r, overload);
    const char *own = own_name(r, overload);
    uint32_t start = items[overload->name].start;
    const char *object = arena_printf(
        r->arena, "%.*s(this %s__smelt_%.*s %.*s &__smelt_object", (int)(items[overload->open].start - start),
        text + start, overload->constant ? "const " : "", (int)items[overload->space].length,
        text + items[overload->space].start, (int)class->length, text + class->start);
    if (!object) return "";
    const char *call =
        pack ? arena_printf(r->arena, "__smelt_object.%s(static_cast<__smelt_A &&>(__smelt_a)%s)", own, pack)
             : arena_printf(r->arena, "__smelt_object.%s()", own);
    const char *whole =
        !call  ? NULL
        : pack ? arena_printf(r->arena,
                              " template <class%s __smelt_A> constexpr auto %s, __smelt_A &&%s__smelt_a) -> "
                              "decltype(%s) { return %s; }",
                              pack, object, pack, call, call)
               : arena_printf(r->arena, " constexpr auto %s) -> decltype(%s) { return %s; }", object, call,
                              call);
    return whole ? whole : "";
}

/* The last of those that one forwarder serves has it behind its body: all their names are declared there. */
static bool is_last_of_its_kind(const struct rewriter *r, const struct group *group,
                                const struct overload *overload) {
    for (uint32_t k = 0; k < group->count; k++) {
        const struct overload *other = &group->overloads[k];
        if (other->name > overload->name && same_space(r, overload, other) &&
            overload->constant == other->constant &&
            (parameter_pack(r, overload) == NULL) == (parameter_pack(r, other) == NULL))
            return false;
    }
    return true;
}

/* The name under which a method calls another of its class, if its own object is not in thread memory. */
static const char *name_in_space(const struct rewriter *r, const struct group *group, uint32_t space) {
    for (uint32_t k = 0; k < group->count; k++)
        if (group->overloads[k].space && same_token(r, group->overloads[k].space, space))
            return own_name(r, &group->overloads[k]);
    return NULL;
}

/* Whether objects are parameters of any method of the class. */
static bool has_objects(struct rewriter *r, uint32_t brace) {
    struct group group;
    if (r->asked_class == brace) return r->class_has_objects;
    r->asked_class = brace;
    r->class_has_objects = false;
    for (uint32_t i = brace + 1; i < partner(r, brace) && !r->class_has_objects; i = next_in_class(r, i)) {
        if (!token_is(r->tokens, i, "(")) continue;
        uint32_t name = tokens_function_name(r->tokens, i);
        r->class_has_objects = find_group(r, brace, name, i - name, &group);
    }
    return r->class_has_objects;
}

/* In the body of a method: `this`, and calls of methods without an object. */
static void rewrite_body(struct rewriter *r, uint32_t brace, const struct overload *method) {
    const struct token *items = r->tokens->items;
    const char *text = r->tokens->text;
    uint32_t class = structure_name(r, brace);
    struct group group;
    for (uint32_t i = method->body + 1; class && i < partner(r, method->body); i++) {
        bool member = token_is(r->tokens, i - 1, ".") || token_pair(r->tokens, i - 2, '-', '>') ||
                      token_pair(r->tokens, i - 2, ':', ':');
        if (token_is(r->tokens, i, "this")) {
            put_instead(r, i,
                        arena_printf(r->arena, "((%s__smelt_%.*s %.*s *)this)",
                                     method->constant ? "const " : "", (int)items[method->space].length,
                                     text + items[method->space].start, (int)items[class].length,
                                     text + items[class].start));
        } else if (!member && token_is_identifier(r->tokens, i) && token_is(r->tokens, i + 1, "(") &&
                   find_group(r, brace, i, 1, &group)) {
            const char *name = name_in_space(r, &group, method->space);
            if (name) put_instead(r, i, name);
        }
    }
}

bool rewrite_overload(struct rewriter *r, uint32_t open, uint32_t space) {
    uint32_t name = tokens_function_name(r->tokens, open), brace = r->tokens->items[name].outer;
    if (brace == NO_PLACE || !token_is(r->tokens, brace, "{")) return false;
    struct group group;
    bool found = find_group(r, brace, name, open - name, &group);
    struct overload method;
    bool readable = group.length > 0 && read_overload(r, &group, name, &method) && method.space;
    if (readable && has_objects(r, brace)) rewrite_body(r, brace, &method);
    if (!found) return false;
    put_instead(r, space, "");
    if (!readable) return true; /* thread */
    put_instead(r, name, own_name(r, &method));
    for (uint32_t i = name + 1; i < open; i++) put_instead(r, i, "");
    if (is_last_of_its_kind(r, &group, &method))
        put_after(r, partner(r, method.body), forwarder(r, &group, &method));
    r->objects = true;
    return true;
}
