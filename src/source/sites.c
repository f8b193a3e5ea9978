/* Collects the kernels of a text and the instantiations of its templates while structure.c reads
 * declarations. */
#include "source/sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The attributes before a function's parameters, and the keyword `kernel`. */
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

static void read_template_head(const struct finder *f, const struct declaration *d,
                               struct kernel_site *site) {
    uint32_t open = d->start + 1, close = tokens_angle_end(f->tokens, open, d->open);
    int optional = 0, count = close ? finder_count_list(f, open + 1, close - 1, &optional) : 0;
    site->is_template = true;
    site->most_arguments = optional >= ANY_NUMBER ? ANY_NUMBER : count;
    /* Arguments may also be deduced if the instantiation repeats the parameters. */
    site->least_arguments = optional >= ANY_NUMBER ? count - 1 : count - optional;
}

bool sites_add_kernel(struct finder *f, const struct declaration *d, const char *path) {
    struct kernel_site site = {.start = d->start, .open = d->open, .close = d->close, .body = d->brace};
    if (!read_kernel_attributes(f, d, &site)) return false;
    if (d->is_template) read_template_head(f, d, &site);
    uint32_t name = finder_name_before(f, d->open);
    char *text = tokens_text(f->tokens, name, name + 1, f->arena);
    site.name = arena_printf(f->arena, "%s%s", path, text ? text : "");
    site.end = d->end;
    site.scope = path;
    int optional;
    site.parameter_count = finder_count_list(f, d->open + 1, d->close, &optional);
    struct kernel_site *kept = add_kernel(f);
    if (kept) *kept = site;
    return true;
}

/* `name` in namespace `scope`, which is "" or "ns::". */
static const char *join(struct arena *arena, const char *scope, const char *name) {
    if (!*scope || !name) return name; /* NULL: out of memory */
    size_t size = strlen(scope) + strlen(name) + 1;
    char *joined = arena_alloc(arena, size);
    if (joined) snprintf(joined, size, "%s%s", scope, name);
    return joined;
}

void sites_add_instantiation(struct finder *f, uint32_t start, uint32_t end, const char *path) {
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
    kernel |= finder_has_word(f, start, end, "kernel");
    if (!host_name && !kernel) return;
    uint32_t open = 0;
    if (last > start && token_is(f->tokens, last - 1, ")") && partner(f, last - 1) > start)
        open = partner(f, last - 1);
    if (open) last = finder_before_attributes(f, open);
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
    site->argument_count = name < last ? finder_count_list(f, name + 1, last - 1, &optional) : 0;
    site->parameter_count = open ? finder_count_list(f, open + 1, partner(f, open), &optional) : -1;
    site->open = open;
    site->close = open ? partner(f, open) : 0;
    site->name = tokens_text(f->tokens, first, name, f->arena);
    site->expression = tokens_text(f->tokens, first, last, f->arena);
    site->host_name = host_name ? host_name : join(f->arena, path, site->name);
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

void sites_note_overloads(struct finder *f) {
    size_t count = (size_t)f->out->function_count;
    struct named *names = arena_alloc(f->arena, (count + 1) * sizeof *names);
    if (!names) return;
    for (size_t i = 0; i < count; i++) names[i] = named_at(f, f->out->functions[i]);
    qsort(names, count, sizeof *names, compare_names);
    for (int k = 0; k < f->out->kernel_count; k++) {
        struct kernel_site *site = &f->out->kernels[k];
        struct named wanted = named_at(f, finder_name_before(f, site->open));
        const struct named *found = bsearch(&wanted, names, count, sizeof *names, compare_names);
        if (!found) continue;
        bool more = found > names && compare_names(found - 1, found) == 0;
        more |= found + 1 < names + count && compare_names(found, found + 1) == 0;
        site->overloaded = more;
    }
}
