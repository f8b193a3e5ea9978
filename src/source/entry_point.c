/* The text of an entry point: the C++ function that binds the arguments of one kernel and calls it. */
#include "abi/entry_names.h"
#include "source/attribute.h"
#include "source/program.h"

#include <string.h>

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
    if (program->apart)
        text_add(text, "extern \"C\" __attribute__((used)) const bool " APART_NAME " = true;\n");
    add_bindings(entry, text);
    add_call(entry, text);
    close_namespace(entry->scope, text);
    return text->failed ? fail(SMELT_ERROR_OUT_OF_MEMORY, "the entry point does not fit in memory")
                        : SMELT_OK;
}
