/* Methods that are overloaded by the address space of their object, and differ in more than that word:
 *
 *     device T &operator[](uint i) device { return v[i]; }      thread T &operator[](uint i) { return v[i]; }
 *     T get() const device { return load(this); }               T get() const thread { return v; }
 *
 * In C++, the object is a parameter of its own (C++23), which has an address space:
 *
 *     … __smelt_device_get(…) const { … }
 *     auto get(this const __smelt_device S &o, …) { return o.__smelt_device_get(…); }
 *
 * The method itself keeps its body under a name of its own, in which `this` points to that address space and
 * methods of the class are called by such names, too. A method for objects in thread memory stays as it is.
 * Templates, conversions, constructors and methods defined elsewhere are ranked instead (method.c).
 * Calls of a base class's methods without an object stay as they are: docs/semantics.md. */
#include "source/overload.h"
#include "source/parameter.h"

static bool is_attribute_word(const struct rewriter *r, uint32_t i) {
    static const char *const words[] = {"alignas", "__attribute__", NULL};
    return token_is_one_of(r->tokens, i, words);
}

/* The first token after the attributes that begin at `i`: alignas(16), __attribute__((packed)), [[…]]. */
static uint32_t after_attributes(const struct rewriter *r, uint32_t i) {
    for (;;) {
        uint32_t open = i + is_attribute_word(r, i);
        bool list = open > i ? token_is(r->tokens, open, "(") : token_is(r->tokens, i, "[");
        if (!list || partner(r, open) <= open) return i;
        i = partner(r, open) + 1;
    }
}

uint32_t structure_name(const struct rewriter *r, uint32_t brace) {
    static const char *const ends[] = {";", "{", "}", "(", ")", NULL};
    static const char *const words[] = {"struct", "class", NULL};
    for (uint32_t i = brace; i-- > 0 && brace - i < FARTHEST_LOOK;) {
        uint32_t open = token_is(r->tokens, i, ")") ? partner(r, i) : i;
        if (open < i && open > 0 && is_attribute_word(r, open - 1)) {
            i = open;
            continue;
        }
        if (token_is_one_of(r->tokens, i, ends)) return 0;
        if (!token_is_one_of(r->tokens, i, words) || token_is(r->tokens, i - 1, "<") ||
            token_is(r->tokens, i - 1, ","))
            continue;
        uint32_t name = after_attributes(r, i + 1);
        return token_is_identifier(r->tokens, name) && name < brace ? name : 0;
    }
    return 0;
}

/* The first token of the declaration in a class that the name belongs to. */
static uint32_t declaration_start(const struct rewriter *r, uint32_t name) {
    static const char *const ends[] = {";", "{", "}", NULL};
    uint32_t first = name;
    for (uint32_t i; first > r->tokens->items[name].outer + 1; first = i) {
        i = first - 1;
        if (token_is_one_of(r->tokens, i, ends)) break;
        if (token_is(r->tokens, i, ":") && !token_is(r->tokens, i - 1, ":") &&
            !token_is(r->tokens, i + 1, ":"))
            break; /* public: */
        if (partner(r, i) < i) i = partner(r, i);
    }
    return first;
}

/* Parses the declaration of the method whose name is the token; false if it is something else. */
static bool read_overload(const struct rewriter *r, const struct group *group, uint32_t name,
                          struct overload *out) {
    static const char *const other[] = {"template", "static", "friend", "volatile", NULL};
    *out = (struct overload){.first = declaration_start(r, name), .name = name, .open = name + group->length};
    out->close = partner(r, out->open);
    uint32_t i = out->close + 1;
    for (; token_is(r->tokens, i, "const") || token_is(r->tokens, i, "noexcept") ||
           token_is_space(r->tokens, i);
         i++) {
        out->constant |= token_is(r->tokens, i, "const");
        if (token_is_space(r->tokens, i) && !token_is(r->tokens, i, "thread")) out->space = i;
    }
    out->body = i;
    for (uint32_t k = out->first; k < name; k++)
        if (token_is_one_of(r->tokens, k, other)) return false;
    return token_is(r->tokens, i, "{") && partner(r, i) > i;
}

/* The next token that is directly in the class. */
static uint32_t next_in_class(const struct rewriter *r, uint32_t i) {
    return (partner(r, i) > i ? partner(r, i) : i) + 1;
}

/* The type of a conversion, `operator half4x2() const device`, which is not the name of a method. */
static bool is_converted(const struct rewriter *r, uint32_t i) {
    for (uint32_t k = declaration_start(r, i); k < i; k++)
        if (token_is(r->tokens, k, "operator")) return true;
    return false;
}

static bool is_named(const struct rewriter *r, const struct group *group, uint32_t i) {
    return r->tokens->items[i].outer == group->brace && token_is(r->tokens, i + group->length, "(") &&
           same_tokens(r, i, group->name, group->length) && !is_converted(r, i);
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
    return parameters_alike(r->tokens, a->open, b->open) &&
           !tokens_alike(r->tokens, a->body, partner(r, a->body), b->body, partner(r, b->body));
}

/* Finds the methods of a class by their name, which is `length` tokens from `name` on; none if one cannot be
 * parsed. True if some do different things, which decides for all. */
static bool find_group(const struct rewriter *r, uint32_t brace, uint32_t name, uint32_t length,
                       struct group *group) {
    *group = (struct group){.brace = brace, .name = name, .length = length};
    bool converts = token_is(r->tokens, name, "operator") && token_is_identifier(r->tokens, name + 1);
    bool needed = false;
    if (length == 0 || converts) return false;
    group->class = structure_name(r, brace);
    if (!group->class || same_token(r, group->class, name)) return false;
    for (uint32_t i = brace + 1; i < partner(r, brace); i = next_in_class(r, i)) {
        if (!is_named(r, group, i)) continue;
        struct overload *one = &group->overloads[group->count];
        if (group->count == MOST_OVERLOADS || !read_overload(r, group, i, one)) {
            group->count = 0;
            return false;
        }
        for (uint32_t k = 0; k < group->count && !needed; k++) needed = differ(r, one, &group->overloads[k]);
        group->count++;
    }
    return needed;
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

/* Finds the methods of that name: true if their objects must be parameters. They must also be if the methods
 * differ only by which methods of their class they call. */
static bool find_objects(struct rewriter *r, uint32_t brace, uint32_t name, uint32_t length,
                         struct group *group) {
    if (find_group(r, brace, name, length, group)) return true;
    bool apart = false;
    for (uint32_t k = 1; k < group->count && !apart; k++)
        apart = !same_space(r, &group->overloads[k], &group->overloads[0]);
    return apart && has_objects(r, brace);
}

/* The name under which a method calls another of its class, if its own object is not in thread memory. */
static const char *name_in_space(const struct rewriter *r, const struct group *group, uint32_t space) {
    for (uint32_t k = 0; k < group->count; k++)
        if (group->overloads[k].space && same_token(r, group->overloads[k].space, space))
            return forwarder_own_name(r, &group->overloads[k]);
    return NULL;
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
                   find_objects(r, brace, i, 1, &group)) {
            const char *name = name_in_space(r, &group, method->space);
            if (name) put_instead(r, i, name);
        }
    }
}

bool rewrite_overload(struct rewriter *r, uint32_t open, uint32_t space) {
    uint32_t name = tokens_function_name(r->tokens, open), brace = r->tokens->items[name].outer;
    if (brace == NO_PLACE || !token_is(r->tokens, brace, "{")) return false;
    struct group group;
    bool found = find_objects(r, brace, name, open - name, &group);
    struct overload method;
    bool readable = group.length > 0 && read_overload(r, &group, name, &method) && method.space;
    if (readable && has_objects(r, brace)) rewrite_body(r, brace, &method);
    if (!found) return false;
    put_instead(r, space, "");
    if (!readable) return true; /* thread */
    put_instead(r, name, forwarder_own_name(r, &method));
    for (uint32_t i = name + 1; i < open; i++) put_instead(r, i, "");
    put_after(r, partner(r, method.body), forwarder_text(r, &group, &method));
    r->objects = true;
    return true;
}
