/* Kernels from bodies: their creation, and how long they live. */
#include "base/reserved.h"
#include "device/executable.h"
#include "kernel/kernel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *keep(struct arena *arena, const char *string) {
    return string ? arena_copy(arena, string, strlen(string)) : NULL;
}

/* A list ended by NULL. */
static const char *const *keep_list(struct arena *arena, const char *const *strings) {
    size_t count = 0;
    while (strings && strings[count]) count++;
    const char **list = count ? arena_alloc(arena, (count + 1) * sizeof *list) : NULL;
    for (size_t i = 0; list && i <= count; i++) list[i] = keep(arena, strings[i]);
    return list;
}

/* Labels are used in #line directives. */
static const char *keep_label(struct arena *arena, const char *label) {
    char *copy = arena_copy(arena, label, strlen(label));
    for (char *c = copy; c && *c; c++)
        if (*c == '"' || *c == '\\' || *c == '\n') *c = '_';
    return copy;
}

smelt_status smelt_kernel_create(const smelt_kernel_desc *desc, smelt_kernel **out) {
    if (!out) return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel: the address for the new kernel is NULL");
    if (!desc || !desc->source) return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel: source is NULL");
    TRY(reserved_check(smelt_kernel_desc, desc));
    if (!kernel_is_identifier(desc->name))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel: name '%s' is not an identifier",
                    desc->name ? desc->name : "(null)");
    if ((unsigned)desc->math > SMELT_MATH_FAST)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': math mode %d is not one of safe, relaxed, fast", desc->name,
                    (int)desc->math);
    TRY(metal_version_check("kernel", desc->metal_version));
    TRY(translation_check_macros("kernel", desc->macros));
    int inputs = 0, outputs = 0;
    TRY(kernel_check_names(desc, &inputs, &outputs));
    smelt_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) return fail_out_of_memory(sizeof *kernel);
    struct arena *arena = &kernel->arena;
    atomic_init(&kernel->references, 1);
    pthread_mutex_init(&kernel->loaded.lock, NULL);
    kernel->desc = *desc;
    kernel->desc.name = keep(arena, desc->name);
    kernel->desc.source = keep(arena, desc->source);
    kernel->desc.header = keep(arena, desc->header);
    const char *body = desc->source_label ? desc->source_label : arena_printf(arena, "%s.body", desc->name);
    const char *header =
        desc->header_label ? desc->header_label : arena_printf(arena, "%s.header", desc->name);
    if (body && header) {
        kernel->desc.source_label = keep_label(arena, body);
        kernel->desc.header_label = keep_label(arena, header);
    }
    for (int i = 0; i < inputs; i++) kernel->desc.inputs[i] = keep(arena, desc->inputs[i]);
    for (int i = 0; i < outputs; i++) kernel->desc.outputs[i] = keep(arena, desc->outputs[i]);
    for (int i = 0; i < SMELT_MAX_INCLUDE_PATHS; i++)
        kernel->desc.include_paths[i] = keep(arena, desc->include_paths[i]);
    kernel->desc.macros = keep_list(arena, desc->macros);
    kernel->input_count = inputs;
    kernel->output_count = outputs;
    if (arena->failed) {
        smelt_kernel_release(kernel);
        return fail_out_of_memory(strlen(desc->source));
    }
    *out = kernel;
    return SMELT_OK;
}

smelt_kernel *smelt_kernel_retain(smelt_kernel *kernel) {
    if (kernel) atomic_fetch_add(&kernel->references, 1);
    return kernel;
}

void kernel_variant_free(struct variant *variant) {
    executable_unload(variant->loaded.executable);
    if (variant->translated) translation_free(&variant->translation);
    signature_free(&variant->signature);
    free(variant);
}

void smelt_kernel_release(smelt_kernel *kernel) {
    if (!kernel || atomic_fetch_sub(&kernel->references, 1) != 1) return;
    for (struct loaded *l = kernel->loaded.first, *next; l; l = next) {
        next = l->next;
        kernel_variant_free((struct variant *)l);
    }
    pthread_mutex_destroy(&kernel->loaded.lock);
    arena_free(&kernel->arena);
    free(kernel);
}
