/* Finds what a text offers (entries.h), and reads the parameters of its kernels. */
#include "source/entries.h"
#include "source/attribute.h"
#include "source/resource.h"

#include <stdlib.h>
#include <string.h>

/* The declared name: the last identifier before an array bound, a default or the end. "" if there is none. */
static const char *parameter_name(struct program *p, uint32_t first, uint32_t last) {
    uint32_t name = last;
    for (uint32_t i = first; i < last; i++) {
        uint32_t list = attribute_list_end(&p->input, i),
                 angle = token_is(&p->input, i, "<") ? tokens_angle_end(&p->input, i, last) : 0;
        if (token_is(&p->input, i, "=") || (token_is(&p->input, i, "[") && !list)) break;
        if (list)
            i = list;
        else if (angle)
            i = angle - 1;
        else if (token_is_identifier(&p->input, i))
            name = i;
        else if (token_is(&p->input, i, "*") || token_is(&p->input, i, "&"))
            name = last;
    }
    return name < last ? tokens_text(&p->input, name, name + 1, &p->arena) : "";
}

static void read_attribute(struct program *p, const struct attribute_use *use, struct parameter *out,
                           bool *bound) {
    const struct token *name = &p->input.items[use->name];
    const struct attribute *attribute = attribute_find(p->input.text + name->start, name->length);
    bool buffer = token_is(&p->input, use->name, "buffer"),
         threadgroup = token_is(&p->input, use->name, "threadgroup");
    if (token_is(&p->input, use->name, "function_constant")) {
        out->guard = tokens_text(&p->input, use->first, use->last, &p->arena);
        return;
    }
    if (buffer || threadgroup) {
        out->kind = buffer ? PARAMETER_BUFFER : PARAMETER_THREADGROUP;
        out->index = tokens_text(&p->input, use->first, use->last, &p->arena);
    } else if (attribute) {
        out->kind = PARAMETER_ATTRIBUTE;
        out->attribute = attribute->name;
    } else if (token_is(&p->input, use->name, "maybe_unused") || token_is(&p->input, use->name, "access")) {
        return; /* access(read) only repeats how the kernel uses a buffer */
    } else {
        out->kind = PARAMETER_UNSUPPORTED;
        out->attribute = tokens_text(&p->input, use->name, use->name + 1, &p->arena);
    }
    *bound = true;
}

/* Buffers and threadgroup memory without an index take the next one, as in Metal: `past` is one more than
 * `base`. */
struct numbering {
    const char *base;
    int past;
};

static const char *next_index(struct program *p, struct numbering *numbering) {
    int past = numbering->past++;
    return numbering->base ? arena_printf(&p->arena, "int(%s) + %d", numbering->base, past)
                           : arena_printf(&p->arena, "%d", past);
}

static void continue_from(struct numbering *numbering, const char *index) {
    char *end;
    long number = strtol(index, &end, 10);
    bool literal = end != index && !*end && number >= 0 && number < INT32_MAX;
    *numbering = literal ? (struct numbering){NULL, (int)number + 1} : (struct numbering){index, 1};
}

static struct parameter read_parameter(struct program *p, uint32_t first, uint32_t last,
                                       struct numbering *buffers, struct numbering *threadgroups) {
    struct parameter out = {.token = first, .name = parameter_name(p, first, last), .by_value = true};
    bool bound = false, threadgroup_pointer = false;
    for (uint32_t i = first; i < last; i++) {
        uint32_t list = attribute_list_end(&p->input, i);
        threadgroup_pointer |= token_is(&p->input, i, "threadgroup");
        out.is_constant |= token_is(&p->input, i, "constant");
        out.by_reference |= token_is(&p->input, i, "&");
        out.by_value &= !token_is(&p->input, i, "&") && !token_is(&p->input, i, "*");
        if (!list) continue;
        struct attribute_use use;
        uint32_t cursor = 0;
        while (attribute_list_next(&p->input, i, &cursor, &use)) {
            read_attribute(p, &use, &out, &bound);
            if (out.kind == PARAMETER_UNSUPPORTED) out.token = use.name;
        }
        i = list;
    }
    uint32_t resource = resource_type(&p->input, first, last),
             tensors = p->tensors ? resource_tensor_array(&p->input, first, last) : NO_PLACE;
    if (resource != NO_PLACE && out.kind != PARAMETER_UNSUPPORTED) {
        out.kind = PARAMETER_RESOURCE;
        out.attribute = tokens_text(&p->input, resource, resource + 1, &p->arena);
        out.token = resource;
        out.index = NULL;
    } else if (tensors != NO_PLACE) {
        out.kind = PARAMETER_RESOURCE;
        out.attribute = "array of tensors";
        out.token = tensors;
        out.index = NULL;
    } else if (!bound) {
        out.kind = threadgroup_pointer ? PARAMETER_THREADGROUP : PARAMETER_BUFFER;
        out.index = next_index(p, threadgroup_pointer ? threadgroups : buffers);
    } else if (out.index) {
        continue_from(out.kind == PARAMETER_BUFFER ? buffers : threadgroups, out.index);
    }
    return out;
}

/* The parameters of a kernel, common to all its instantiations. */
static void read_parameters(struct program *p, struct kernel_site *site, struct entry *entry) {
    entry->parameters = site->parameters;
    entry->parameter_count = site->parameter_count;
    if (site->parameters || !site->parameter_count) return;
    struct numbering buffers = {0}, threadgroups = {0};
    struct parameter *list = arena_alloc(&p->arena, ((size_t)site->parameter_count + 1) * sizeof *list);
    if (!list) return;
    int count = 0;
    uint32_t first = site->open + 1;
    for (uint32_t i = first; i <= site->close && count < site->parameter_count; i++) {
        uint32_t angle = token_is(&p->input, i, "<") ? tokens_angle_end(&p->input, i, site->close) : 0;
        if (i == site->close || token_is(&p->input, i, ",")) {
            bool nothing = first == i || (i == first + 1 && token_is(&p->input, first, "void"));
            if (!nothing) list[count++] = read_parameter(p, first, i, &buffers, &threadgroups);
            first = i + 1;
        } else if (angle) {
            i = angle - 1;
        } else if (p->input.items[i].partner > i) {
            i = p->input.items[i].partner;
        }
    }
    site->parameters = list;
    site->parameter_count = count;
    entry->parameters = list;
    entry->parameter_count = count;
}

/* The definition that an instantiation names: with the same qualified name, otherwise with the same last
 * part. Among overloads, one whose template takes that many arguments, and with as many parameters if they
 * are listed. */
static struct kernel_site *definition_of(const struct structure *s, const struct instantiation_site *wanted) {
    struct kernel_site *best = NULL;
    int best_score = -1;
    size_t scope_length = strlen(wanted->scope);
    const char *wanted_last = structure_last_part(wanted->name);
    for (int k = 0; k < s->kernel_count; k++) {
        struct kernel_site *site = &s->kernels[k];
        if (site->graphics || strcmp(structure_last_part(site->name), wanted_last) != 0) continue;
        bool in_scope = strncmp(site->name, wanted->scope, scope_length) == 0 &&
                        strcmp(site->name + scope_length, wanted->name) == 0;
        bool arguments = site->is_template && wanted->argument_count <= site->most_arguments &&
                         (wanted->argument_count >= site->least_arguments || wanted->parameter_count >= 0);
        bool parameters = wanted->parameter_count < 0 || wanted->parameter_count == site->parameter_count;
        int score = 8 * in_scope + 4 * arguments + 2 * parameters + (site->body != 0);
        if (score > best_score) {
            best = site;
            best_score = score;
        }
    }
    return best;
}

static struct entry *add_entry(struct program *p, const char *host_name, uint32_t token) {
    for (int e = 0; e < p->entry_count; e++)
        if (strcmp(p->entries[e].host_name, host_name) == 0) return NULL;
    struct entry *entry = &p->entries[p->entry_count++];
    *entry = (struct entry){.host_name = host_name, .token = token};
    return entry;
}

/* Splits "ns::f" into the namespace "ns::" and "f". */
static void set_name(struct program *p, struct entry *entry, const char *qualified) {
    const char *name = structure_last_part(qualified);
    entry->scope = arena_copy(&p->arena, qualified, (size_t)(name - qualified));
    entry->expression = name;
}

/* constant T name [[function_constant(…)]] at namespace scope; not the guard of an argument. */
static bool names_constant(const struct program *p, const struct structure *s, uint32_t list) {
    struct attribute_use use;
    uint32_t cursor = 0, outer = p->input.items[list].outer;
    if (!attribute_list_end(&p->input, list) || !list || !token_is_identifier(&p->input, list - 1))
        return false;
    if (s->scopes[list] != SCOPE_NAMESPACE || (outer != NO_PLACE && token_is(&p->input, outer, "(")))
        return false;
    while (attribute_list_next(&p->input, list, &cursor, &use))
        if (token_is(&p->input, use.name, "function_constant")) return true;
    return false;
}

static smelt_status find_constants(struct program *p, const struct structure *s) {
    int count = 0;
    for (uint32_t i = 0; i < p->input.count; i++) count += names_constant(p, s, i);
    p->constants = arena_alloc(&p->arena, ((size_t)count + 1) * sizeof *p->constants);
    if (!p->constants) return fail_out_of_memory((size_t)count * sizeof *p->constants);
    for (uint32_t i = 0; i < p->input.count; i++)
        if (names_constant(p, s, i))
            p->constants[p->constant_count++] = tokens_text(&p->input, i - 1, i, &p->arena);
    return SMELT_OK;
}

static smelt_status find_others(struct program *p, const struct structure *s) {
    p->others = arena_alloc(&p->arena, ((size_t)s->kernel_count + 1) * sizeof *p->others);
    if (!p->others) return fail_out_of_memory((size_t)s->kernel_count * sizeof *p->others);
    for (int k = 0; k < s->kernel_count; k++) {
        const struct kernel_site *site = &s->kernels[k];
        if ((!site->graphics && !site->is_template) || !site->body) continue;
        p->others[p->other_count++] = (struct other_function){
            site->host_name ? site->host_name : site->name,
            site->graphics ? tokens_text(&p->input, site->stage, site->stage + 1, &p->arena) : NULL,
            site->start};
    }
    return SMELT_OK;
}

static smelt_status find_entries(struct program *p, const struct structure *s) {
    size_t most = (size_t)s->kernel_count + (size_t)s->instantiation_count + 1;
    p->entries = arena_alloc(&p->arena, most * sizeof *p->entries);
    if (!p->entries) return fail_out_of_memory(most * sizeof *p->entries);
    int k = 0, n = 0;
    /* In the order of the text. */
    while (k < s->kernel_count || n < s->instantiation_count) {
        struct kernel_site *kernel = k < s->kernel_count ? &s->kernels[k] : NULL;
        const struct instantiation_site *site = n < s->instantiation_count ? &s->instantiations[n] : NULL;
        if (kernel && (!site || kernel->start < site->start)) {
            k++;
            if (kernel->is_template || !kernel->body || kernel->graphics) continue;
            struct entry *entry =
                add_entry(p, kernel->host_name ? kernel->host_name : kernel->name, kernel->start);
            if (!entry) continue;
            set_name(p, entry, kernel->name);
            entry->definition = kernel->scope;
            entry->required_token = kernel->required_threads ? kernel->required_token : 0;
            entry->types = kernel->types;
            read_parameters(p, kernel, entry);
        } else {
            n++;
            struct kernel_site *definition = definition_of(s, site);
            struct entry *entry = definition ? add_entry(p, site->host_name, site->start) : NULL;
            if (!entry) continue;
            entry->scope = site->scope;
            entry->expression = site->expression;
            entry->definition = definition->scope;
            entry->required_token = definition->required_threads ? definition->required_token : 0;
            bool deduced = site->argument_count == 0 || site->argument_count < definition->least_arguments;
            if (deduced || definition->overloaded) entry->types = site->types;
            read_parameters(p, definition, entry);
        }
    }
    return SMELT_OK;
}

smelt_status entries_find(struct program *program, const struct structure *structure) {
    TRY(find_entries(program, structure));
    TRY(find_others(program, structure));
    return find_constants(program, structure);
}
