#include "source/program.h"
#include "source/attribute.h"
#include "source/rewrite.h"
#include "source/structure.h"

#include <stdlib.h>
#include <string.h>

static bool is(const struct program *p, uint32_t i, const char *spelling) { return token_is(&p->input, i, spelling); }

/* The declared name: the last identifier before an array bound, an attribute, a default or the end. */
static const char *parameter_name(struct program *p, uint32_t first, uint32_t last) {
    uint32_t name = first;
    for (uint32_t i = first; i < last; i++) {
        if (is(p, i, "=") || is(p, i, "[")) break;
        if (is(p, i, "<")) {
            for (int depth = 0; i < last; i++) {
                if (is(p, i, "<")) depth++;
                if (is(p, i, ">") && --depth == 0) break;
            }
        } else if (token_is_identifier(&p->input, i)) {
            name = i;
        }
    }
    return tokens_text(&p->input, name, name + 1, &p->arena);
}

static void read_attribute(struct program *p, const struct attribute_use *use, struct parameter *out, bool *bound) {
    const struct token *name = &p->input.items[use->name];
    const struct attribute *attribute = attribute_find(p->input.text + name->start, name->length);
    bool buffer = is(p, use->name, "buffer"), threadgroup = is(p, use->name, "threadgroup");
    if (is(p, use->name, "function_constant")) {
        out->guard = tokens_text(&p->input, use->first, use->last, &p->arena);
        return;
    }
    if (buffer || threadgroup) {
        out->kind = buffer ? PARAMETER_BUFFER : PARAMETER_THREADGROUP;
        out->index = tokens_text(&p->input, use->first, use->last, &p->arena);
    } else if (attribute) {
        out->kind = PARAMETER_ATTRIBUTE;
        out->attribute = attribute->name;
    } else if (is(p, use->name, "maybe_unused")) {
        return;
    } else {
        out->kind = PARAMETER_UNSUPPORTED;
        out->attribute = tokens_text(&p->input, use->name, use->name + 1, &p->arena);
    }
    *bound = true;
}

static struct parameter read_parameter(struct program *p, uint32_t first, uint32_t last, int *next_buffer) {
    struct parameter out = {.token = first, .name = parameter_name(p, first, last)};
    bool bound = false, threadgroup_pointer = false;
    for (uint32_t i = first; i < last; i++) {
        uint32_t list = attribute_list_end(&p->input, i);
        threadgroup_pointer |= is(p, i, "threadgroup");
        if (!list) continue;
        struct attribute_use use;
        uint32_t cursor = 0;
        while (attribute_list_next(&p->input, i, &cursor, &use)) read_attribute(p, &use, &out, &bound);
        i = list;
    }
    if (!bound) {
        /* As Metal does: buffers without an index take the next one. */
        out.kind = threadgroup_pointer ? PARAMETER_THREADGROUP : PARAMETER_BUFFER;
        out.index = arena_printf(&p->arena, "%d", threadgroup_pointer ? 0 : *next_buffer);
    }
    if (out.kind == PARAMETER_BUFFER) *next_buffer = atoi(out.index) + 1;
    return out;
}

static void read_parameters(struct program *p, const struct kernel_site *site, struct entry *entry) {
    int capacity = 1, next_buffer = 0;
    for (uint32_t i = site->open; i < site->close; i++) capacity += is(p, i, ",");
    struct parameter *list = arena_alloc(&p->arena, (size_t)capacity * sizeof *list);
    if (!list) return;
    entry->parameters = list;
    uint32_t first = site->open + 1;
    int angle = 0;
    for (uint32_t i = first; i <= site->close; i++) {
        bool end = i == site->close || (angle == 0 && is(p, i, ","));
        if (end) {
            bool nothing = first == i || (i == first + 1 && is(p, first, "void"));
            if (!nothing) list[entry->parameter_count++] = read_parameter(p, first, i, &next_buffer);
            first = i + 1;
        } else if (p->input.items[i].partner > i) {
            i = p->input.items[i].partner;
        } else if (is(p, i, "<")) {
            angle++;
        } else if (is(p, i, ">")) {
            angle--;
        }
    }
}

static const char *last_part(const char *name) {
    const char *colon = strrchr(name, ':');
    return colon ? colon + 1 : name;
}

/* The definition an instantiation names: the same qualified name, else the same last part. */
static const struct kernel_site *definition_of(const struct structure *s, const char *scope, const char *name) {
    const struct kernel_site *close_match = NULL;
    for (int k = 0; k < s->kernel_count; k++) {
        const struct kernel_site *site = &s->kernels[k];
        size_t scope_length = strlen(scope);
        bool in_scope = strncmp(site->name, scope, scope_length) == 0 && strcmp(site->name + scope_length, name) == 0;
        if (in_scope && site->body) return site;
        if (strcmp(last_part(site->name), last_part(name)) == 0 && (!close_match || !close_match->body)) close_match = site;
    }
    return close_match;
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
    const char *name = last_part(qualified);
    entry->scope = arena_copy(&p->arena, qualified, (size_t)(name - qualified));
    entry->expression = name;
}

static smelt_status find_entries(struct program *p, const struct structure *s) {
    size_t most = (size_t)s->kernel_count + (size_t)s->instantiation_count + 1;
    p->entries = arena_alloc(&p->arena, most * sizeof *p->entries);
    if (!p->entries) return fail_out_of_memory(most * sizeof *p->entries);
    int k = 0, n = 0;
    /* In the order of the text. */
    while (k < s->kernel_count || n < s->instantiation_count) {
        const struct kernel_site *kernel = k < s->kernel_count ? &s->kernels[k] : NULL;
        const struct instantiation_site *site = n < s->instantiation_count ? &s->instantiations[n] : NULL;
        if (kernel && (!site || kernel->start < site->start)) {
            k++;
            if (kernel->is_template || !kernel->body) continue;
            struct entry *entry =
                add_entry(p, kernel->host_name ? kernel->host_name : last_part(kernel->name), kernel->start);
            if (!entry) continue;
            set_name(p, entry, kernel->name);
            read_parameters(p, kernel, entry);
        } else {
            n++;
            const struct kernel_site *definition = definition_of(s, site->scope, site->name);
            struct entry *entry = definition ? add_entry(p, site->host_name, site->start) : NULL;
            if (!entry) continue;
            entry->scope = site->scope;
            entry->expression = site->expression;
            read_parameters(p, definition, entry);
        }
    }
    return SMELT_OK;
}

smelt_status program_create(const char *text, size_t length, struct program *program) {
    struct program p = {0};
    struct structure structure;
    smelt_status status = tokens_read(text, length, &p.input);
    if (status == SMELT_OK) {
        p.positions = arena_alloc(&p.arena, (p.input.count + 1) * sizeof *p.positions);
        status = p.positions ? structure_find(&p.input, &p.arena, &structure) : fail_out_of_memory(p.input.count);
    }
    if (status == SMELT_OK) status = rewrite(&p.input, &structure, &p.arena, &p.text, p.positions);
    if (status == SMELT_OK) status = find_entries(&p, &structure);
    if (status == SMELT_OK && p.arena.failed)
        status = fail(SMELT_ERROR_OUT_OF_MEMORY, "the source's entries do not fit in memory");
    if (status != SMELT_OK) {
        program_free(&p);
        return status;
    }
    *program = p;
    return SMELT_OK;
}

void program_free(struct program *program) {
    tokens_free(&program->input);
    text_free(&program->text);
    arena_free(&program->arena);
}

static const char *binding_kind(enum parameter_kind kind) {
    return kind == PARAMETER_BUFFER        ? "__SMELT_BIND_BUFFER"
           : kind == PARAMETER_THREADGROUP ? "__SMELT_BIND_THREADGROUP"
                                           : "__SMELT_BIND_ATTRIBUTE";
}

/* "a::b::" opens as `namespace a::b {`. */
static void open_namespace(const char *scope, struct text *text) {
    size_t length = strlen(scope);
    if (length) text_addf(text, "namespace %.*s {\n", (int)(length - 2), scope);
}

smelt_status program_add_entry_point(const struct program *program, const struct entry *entry, struct text *text) {
    (void)program;
    text_add(text, "#line 1 \"<entry point>\"\n");
    open_namespace(entry->scope, text);
    text_addf(text, "using __smelt_signature = __smelt::signature<decltype(&%s)>;\n", entry->expression);
    text_add(text, "extern \"C\" __attribute__((used)) const __smelt::binding __smelt_bindings[] = {\n");
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *p = &entry->parameters[i];
        text_addf(text, "  __smelt::describe<__smelt_signature::argument<%d>>(%s, %s),\n", i, binding_kind(p->kind),
                  p->kind == PARAMETER_ATTRIBUTE ? "0" : p->index);
    }
    text_add(text, "  {}};\n");
    text_addf(text, "extern \"C\" __attribute__((used)) void __smelt_entry(void *__smelt_context) {\n  %s(",
              entry->expression);
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *p = &entry->parameters[i];
        text_addf(text, "%s\n    ", i ? "," : "");
        if (p->kind == PARAMETER_ATTRIBUTE)
            text_addf(text, "__smelt::attribute<__smelt_signature::argument<%d>>(__smelt_%s())", i, p->attribute);
        else
            text_addf(text, "__smelt::%s<__smelt_signature::argument<%d>>(%s)",
                      p->kind == PARAMETER_BUFFER ? "buffer" : "threadgroup_memory", i, p->index);
    }
    text_add(text, ");\n}\n");
    if (*entry->scope) text_add(text, "}\n");
    return text->failed ? fail(SMELT_ERROR_OUT_OF_MEMORY, "the entry point does not fit in memory") : SMELT_OK;
}

uint32_t program_origin(const struct program *program, uint32_t position) {
    const struct tokens *tokens = &program->input;
    uint32_t low = 0, high = tokens->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (program->positions[middle] <= position) low = middle + 1;
        else high = middle;
    }
    if (low == 0) return 0;
    const struct token *token = &tokens->items[low - 1];
    uint32_t past = position - program->positions[low - 1];
    return token->start + (past < token->length ? past : 0);
}
