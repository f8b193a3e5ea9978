#include "source/program.h"
#include "abi/entry_names.h"
#include "source/attribute.h"
#include "source/resource.h"
#include "source/rewrite.h"
#include "source/structure.h"

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

static const char *last_part(const char *name) {
    const char *colon = strrchr(name, ':');
    return colon ? colon + 1 : name;
}

/* The definition that an instantiation names: with the same qualified name, otherwise with the same last
 * part. Among overloads, one whose template takes that many arguments, and with as many parameters if they
 * are listed. */
static struct kernel_site *definition_of(const struct structure *s, const struct instantiation_site *wanted) {
    struct kernel_site *best = NULL;
    int best_score = -1;
    size_t scope_length = strlen(wanted->scope);
    const char *wanted_last = last_part(wanted->name);
    for (int k = 0; k < s->kernel_count; k++) {
        struct kernel_site *site = &s->kernels[k];
        if (site->graphics || strcmp(last_part(site->name), wanted_last) != 0) continue;
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
    const char *name = last_part(qualified);
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

/* ---- The bodies of other kernels. */

static int compare_bodies(const void *left, const void *right) {
    return strcmp(((const struct kernel_body *)left)->name, ((const struct kernel_body *)right)->name);
}

static struct kernel_body *body_named(const struct program *p, const char *name, size_t length) {
    int low = 0, high = p->body_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        struct kernel_body *body = &p->bodies[middle];
        int order = strncmp(body->name, name, length);
        if (!order && !body->name[length]) return body;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static smelt_status find_bodies(struct program *p, const struct structure *s) {
    p->bodies = arena_alloc(&p->arena, ((size_t)s->kernel_count + 1) * sizeof *p->bodies);
    if (!p->bodies) return fail_out_of_memory((size_t)s->kernel_count * sizeof *p->bodies);
    for (int k = 0; k < s->kernel_count; k++) {
        const struct kernel_site *site = &s->kernels[k];
        if (!site->body || site->is_template || site->graphics || site->left_out) continue;
        p->bodies[p->body_count++] =
            (struct kernel_body){last_part(site->name), 0, site->start, site->body, site->end};
    }
    qsort(p->bodies, (size_t)p->body_count, sizeof *p->bodies, compare_bodies);
    for (uint32_t i = 0; i < p->input.count; i++) {
        const struct token *token = &p->input.items[i];
        struct kernel_body *body = token->kind == TOKEN_IDENTIFIER
                                       ? body_named(p, p->input.text + token->start, token->length)
                                       : NULL;
        if (body) body->uses++;
    }
    return SMELT_OK;
}

static void blank(char *from, const char *to) {
    for (; from < to; from++)
        if (*from != '\n') *from = ' ';
}

/* Lines that set lines stay. `text` is the program's. */
static void leave_out(const struct program *p, const struct kernel_body *body, char *text) {
    char *from = text + p->positions[body->open];
    for (uint32_t i = body->open; i < body->close; i++) {
        const struct token *token = &p->input.items[i];
        if (token->kind != TOKEN_DIRECTIVE || !directive_is_line(&p->input, token)) continue;
        blank(from, text + p->positions[i]);
        from = text + p->positions[i] + token->length;
    }
    blank(from, text + p->positions[body->close] + 1);
    text[p->positions[body->close]] = ';';
}

void program_add_text(const struct program *program, const struct entry *entry, struct text *text) {
    size_t start = text->length;
    text_append(text, text_string(&program->text), program->text.length);
    for (int b = 0; !text->failed && b < program->body_count; b++)
        if (program->bodies[b].uses == 1 && program->bodies[b].start != entry->token)
            leave_out(program, &program->bodies[b], text->data + start);
}

/* __asm("air.simdgroup_async_copy_1d.p3i8.p1i8"); also written as "\\01air.…". */
static bool has_air_labels(const struct tokens *tokens) {
    for (uint32_t i = 2; i < tokens->count; i++) {
        const struct token *token = &tokens->items[i];
        if (token->kind != TOKEN_STRING || !token_is(tokens, i - 1, "(")) continue;
        const char *text = tokens->text + token->start + 1;
        if (token->length > 6 && strncmp(text, "\\01", 3) == 0) text += 3;
        bool label = token_is(tokens, i - 2, "__asm") || token_is(tokens, i - 2, "__asm__") ||
                     token_is(tokens, i - 2, "asm");
        if (label && token->length > 8 && strncmp(text, "air.", 4) == 0) return true;
    }
    return false;
}

smelt_status program_create(const char *text, size_t length, struct program *program) {
    struct program p = {0};
    struct structure structure;
    smelt_status status = tokens_read(text, length, &p.input);
    if (status == SMELT_OK) {
        p.positions = arena_alloc(&p.arena, (p.input.count + 1) * sizeof *p.positions);
        status =
            p.positions ? structure_find(&p.input, &p.arena, &structure) : fail_out_of_memory(p.input.count);
    }
    for (uint32_t i = 0; status == SMELT_OK && i < p.input.count && !p.tensors; i++)
        p.tensors = token_is(&p.input, i, "tensor");
    if (status == SMELT_OK) p.air_functions = has_air_labels(&p.input);
    if (status == SMELT_OK) p.refusal = refusal_find(&p.input, &structure, &p.arena);
    if (status == SMELT_OK)
        status = rewrite(&p.input, &structure, &p.arena, &p.text, p.positions, &p.objects);
    if (status == SMELT_OK) status = find_entries(&p, &structure);
    if (status == SMELT_OK) status = find_bodies(&p, &structure);
    if (status == SMELT_OK) status = find_others(&p, &structure);
    if (status == SMELT_OK) status = find_constants(&p, &structure);
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

/* Opens "a::b::" as `namespace a::b {`. */
static void open_namespace(const char *scope, struct text *text) {
    size_t length = strlen(scope);
    if (length) text_addf(text, "namespace %.*s {\n", (int)(length - 2), scope);
}

static void close_namespace(const char *scope, struct text *text) {
    if (*scope) text_add(text, "}\n");
}

/* clang's messages about the lines that follow refer to a token of the source: see diagnostic.c. */
static void place_at(const struct program *program, uint32_t token, struct text *text) {
    text_addf(text, "#line 1 \"<at %u>\"\n", program->input.items[token].start);
}

/* Which arguments exist, by the function constants that guard them: read by src/compiler/passes/bindings.c.
 */
static void add_guards(const struct program *program, const struct entry *entry, struct text *text) {
    bool guarded = false;
    for (int i = 0; i < entry->parameter_count; i++) guarded |= entry->parameters[i].guard != NULL;
    if (!guarded) return;
    text_add(text, "extern \"C\" __attribute__((used)) const bool " GUARDS_NAME "[] = {\n");
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *p = &entry->parameters[i];
        place_at(program, p->token, text);
        text_addf(text, "bool(%s),\n", p->guard ? p->guard : "true");
    }
    text_add(text, "};\n");
}

/* Metal's argument tables have 31 entries. Kernels from bodies may have more arguments; a file with more is
 * refused by number when it runs. */
#define MAX_INDEX 30
#define MAX_GENERATED_INDEX 399

/* The text within a string literal, since an index can be any expression. */
static const char *quotable(const char *index) {
    return strpbrk(index, "\"\\\n") ? "…" : index;
}

/* A number of one or two digits needs no check. */
static void check_index(const struct parameter *p, struct text *text) {
    if (*p->index && strlen(p->index) < 3 && strspn(p->index, "0123456789") == strlen(p->index)) return;
    text_addf(text,
              "static_assert(__smelt::is_index(%s, %d), \"'[[%s(%s)]]' of argument '%s': expected an index "
              "from 0 to %d\");\n",
              p->index, MAX_GENERATED_INDEX, p->kind == PARAMETER_BUFFER ? "buffer" : "threadgroup",
              quotable(p->index), p->name, MAX_INDEX);
}

static bool is_literal(const char *index) {
    return *index && strspn(index, "0123456789") == strlen(index) && (*index != '0' || !index[1]);
}

/* Arguments with guards may share an index, since function constants choose between them. Indices that are
 * not literals are not compared. */
static void check_index_is_unused(const struct entry *entry, int at, struct text *text) {
    const struct parameter *p = &entry->parameters[at];
    if (p->guard || !is_literal(p->index)) return;
    for (int i = 0; i < at; i++) {
        const struct parameter *other = &entry->parameters[i];
        if (!other->index || other->guard || other->kind != p->kind || strcmp(other->index, p->index) != 0)
            continue;
        text_addf(
            text,
            "static_assert(__smelt_index_%d != __smelt_index_%d, \"'[[%s(%s)]]' of argument '%s': expected "
            "another index, as argument '%s' has this one\");\n",
            at, i, p->kind == PARAMETER_BUFFER ? "buffer" : "threadgroup", p->index, p->name, other->name);
        return;
    }
}

/* Indices, evaluated where the kernel is defined: __smelt_index_<parameter>. */
static void add_indices(const struct program *program, const struct entry *entry, struct text *text) {
    open_namespace(entry->definition, text);
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *p = &entry->parameters[i];
        if (!p->index) continue;
        place_at(program, p->token, text);
        check_index(p, text);
        text_addf(text, "constexpr int __smelt_index_%d = int(%s);\n", i, p->index);
        check_index_is_unused(entry, i, text);
    }
    add_guards(program, entry, text);
    close_namespace(entry->definition, text);
}

/* The function itself: __smelt_function is its address. */
static void add_function(const struct program *program, const struct entry *entry, struct text *text) {
    /* A kernel outside namespaces may have the name of a metal function that a using-directive makes visible.
     */
    const char *global = *entry->scope || *entry->expression == ':' ? "" : "::";
    place_at(program, entry->token, text);
    if (entry->types) {
        text_add(text, "namespace __smelt_types {\n");
        if (*entry->definition)
            text_addf(text, "using namespace ::%.*s;\n", (int)strlen(entry->definition) - 2,
                      entry->definition);
        text_addf(text, "using type = void (*)(%s);\n}\n", entry->types);
        text_addf(text, "constexpr auto __smelt_function = static_cast<__smelt_types::type>(&%s%s);\n",
                  global, entry->expression);
    } else {
        text_addf(text, "constexpr auto __smelt_function = &%s%s;\n", global, entry->expression);
    }
    text_add(text, "using __smelt_signature = __smelt::signature<decltype(&*__smelt_function)>;\n"
                   "static_assert(__smelt_signature::gives_nothing, \"a kernel must return void\");\n");
}

static void add_checks(const struct program *program, const struct entry *entry, struct text *text) {
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *p = &entry->parameters[i];
        const struct attribute *attribute =
            p->attribute ? attribute_find(p->attribute, strlen(p->attribute)) : NULL;
        place_at(program, p->token, text);
        if (attribute)
            text_addf(text,
                      "static_assert(__smelt::is_attribute<__smelt_signature::argument<%d>, %d>, \"argument "
                      "'%s' has a type that [[%s]] cannot have; expected %s\");\n",
                      i, attribute->dimensions, p->name, p->attribute,
                      attribute->dimensions == 3 ? "ushort, ushort2, ushort3, uint, uint2 or uint3"
                                                 : "ushort or uint");
        else
            text_addf(text,
                      "static_assert(__smelt::is_%s<__smelt_signature::argument<%d>>(), \"argument '%s' must "
                      "point to the %s address space\");\n",
                      p->kind == PARAMETER_BUFFER ? "buffer" : "threadgroup", i, p->name,
                      p->kind == PARAMETER_BUFFER ? "device or constant" : "threadgroup");
    }
}

/* What tensors need besides a buffer at their index: only sources with tensors have any. Which arguments are
 * tensors is known to C++. */
static void add_tensors(const struct entry *entry, struct text *text) {
    static const char *const parts[] = {"layout", "scales", NULL};
    text_add(text, "#ifdef __SMELT_HAS_HANDLES\n");
    for (const char *const *part = parts; *part; part++)
        for (int i = 0; i < entry->parameter_count; i++)
            if (entry->parameters[i].kind == PARAMETER_BUFFER)
                text_addf(text,
                          "  __smelt::describe_%s<__smelt_signature::argument<%d>>(::%s__smelt_index_%d),\n",
                          *part, i, entry->definition, i);
    text_add(text,
             "#endif\n  {}};\n#ifdef __SMELT_HAS_HANDLES\n"
             "extern \"C\" __attribute__((used)) const __smelt::tensor_binding " TENSORS_NAME "[] = {\n");
    for (int i = 0; i < entry->parameter_count; i++)
        if (entry->parameters[i].kind == PARAMETER_BUFFER)
            text_addf(
                text,
                "  __smelt::describe_tensor<__smelt_signature::argument<%d>>(%d, ::%s__smelt_index_%d),\n", i,
                i, entry->definition, i);
    text_add(text, "  __smelt::no_tensor()};\n#endif\n");
}

static void add_bindings(const struct entry *entry, struct text *text) {
    text_add(text, "extern \"C\" __attribute__((used)) const __smelt::binding " BINDINGS_NAME "[] = {\n");
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *p = &entry->parameters[i];
        text_addf(text, "  __smelt::describe<__smelt_signature::argument<%d>>(%s, ", i,
                  binding_kind(p->kind));
        if (p->index)
            text_addf(text, "::%s__smelt_index_%d),\n", entry->definition, i);
        else
            text_add(text, "0),\n");
    }
    add_tensors(entry, text);
}

static void add_call(const struct entry *entry, struct text *text) {
    text_add(text, "extern \"C\" __attribute__((used)) void " ENTRY_NAME "(void *__smelt_context) {\n"
                   "  __smelt_function(");
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *p = &entry->parameters[i];
        text_addf(text, "%s\n    ", i ? "," : "");
        if (p->kind == PARAMETER_ATTRIBUTE)
            text_addf(text, "__smelt::attribute<__smelt_signature::argument<%d>>(__smelt_%s())", i,
                      p->attribute);
        else
            text_addf(text, "__smelt::%s<__smelt_signature::argument<%d>>(::%s__smelt_index_%d)",
                      p->kind == PARAMETER_BUFFER ? "buffer" : "threadgroup_memory", i, entry->definition, i);
    }
    text_add(text, ");\n}\n");
}

smelt_status program_add_entry_point(const struct program *program, const struct entry *entry,
                                     struct text *text) {
    add_indices(program, entry, text);
    open_namespace(entry->scope, text);
    add_function(program, entry, text);
    add_checks(program, entry, text);
    text_add(text, "#line 1 \"<entry point>\"\n");
    if (program->air_functions) text_add(text, "__SMELT_AIR_FUNCTIONS\n");
    add_bindings(entry, text);
    add_call(entry, text);
    close_namespace(entry->scope, text);
    return text->failed ? fail(SMELT_ERROR_OUT_OF_MEMORY, "the entry point does not fit in memory")
                        : SMELT_OK;
}

uint32_t program_origin(const struct program *program, uint32_t position) {
    const struct tokens *tokens = &program->input;
    uint32_t low = 0, high = tokens->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (program->positions[middle] <= position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return 0;
    const struct token *token = &tokens->items[low - 1];
    uint32_t past = position - program->positions[low - 1];
    return token->start + (past < token->length ? past : 0);
}
