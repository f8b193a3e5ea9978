/* Variants of a kernel: one entry for each combination of dtypes and templates. */
#include "array/array.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "device/executable.h"
#include "kernel/kernel.h"
#include "kernel/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void kernel_make_key(const smelt_kernel *kernel, const smelt_run_desc *desc, const struct device *device,
                     int template_count, struct variant_key *key) {
    memset(key, 0, sizeof *key);
    key->device = device;
    for (int i = 0; i < kernel->input_count; i++) {
        const smelt_array *input = desc->inputs[i];
        key->input_dtype[i] = (uint8_t)input->dtype;
        key->input_kind[i] = input->shape.ndim == 0 ? 0 : input->size < SIGNATURE_SMALL ? 1 : 2;
    }
    for (int i = 0; i < kernel->output_count; i++) key->output_dtype[i] = (uint8_t)desc->output_dtypes[i];
    for (int i = 0; i < template_count; i++) {
        const smelt_template *t = &desc->templates[i];
        key->templates[i].kind = t->kind;
        key->templates[i].value = t->kind == SMELT_TEMPLATE_DTYPE ? (int64_t)t->dtype
                                  : t->kind == SMELT_TEMPLATE_INT ? t->integer
                                                                  : t->boolean;
    }
    key->template_count = template_count;
}

smelt_status kernel_make_signature(const smelt_kernel *kernel, const smelt_run_desc *desc, int template_count,
                                   struct signature *signature) {
    struct signature_input inputs[SMELT_MAX_ARGUMENTS];
    struct signature_output outputs[SMELT_MAX_ARGUMENTS];
    for (int i = 0; i < kernel->input_count; i++) {
        const smelt_array *input = desc->inputs[i];
        inputs[i] = (struct signature_input){kernel->desc.inputs[i], input->dtype, input->shape.ndim,
                                             input->size < SIGNATURE_SMALL};
    }
    for (int i = 0; i < kernel->output_count; i++)
        outputs[i] = (struct signature_output){kernel->desc.outputs[i], desc->output_dtypes[i],
                                               kernel->desc.atomic_outputs || kernel->desc.atomic_output[i]};
    struct signature_request request = {.name = kernel->desc.name,
                                        .body = kernel->desc.source,
                                        .header = kernel->desc.header,
                                        .body_label = kernel->desc.source_label,
                                        .header_label = kernel->desc.header_label,
                                        .inputs = inputs,
                                        .input_count = kernel->input_count,
                                        .outputs = outputs,
                                        .output_count = kernel->output_count,
                                        .templates = desc->templates,
                                        .template_count = template_count};
    return signature_generate(&request, signature);
}

smelt_status kernel_translate(const smelt_kernel *kernel, const struct signature *signature,
                              struct translation *translation) {
    struct translation_request request = {
        .text = text_string(&signature->text),
        .length = signature->text.length,
        .prelude = PRELUDE_MLX,
        .math = kernel->desc.math,
        .metal_version = kernel->desc.metal_version,
        .include_paths = kernel->desc.include_paths,
        .macros = kernel->desc.macros,
        .texts = {{kernel->desc.source_label, kernel->desc.source},
                  {kernel->desc.header ? kernel->desc.header_label : NULL, kernel->desc.header},
                  {"<signature>", text_string(&signature->text)}},
    };
    return translation_create(&request, translation);
}

smelt_status kernel_only_entry(const struct translation *translation, const struct signature *signature,
                               const struct entry **entry) {
    *entry = translation_entry(translation, text_string(&signature->host_name));
    if (*entry) return SMELT_OK;
    return fail(SMELT_ERROR_COMPILE,
                "the braces of the body or header do not match: the kernel function '%s' cannot be found",
                text_string(&signature->host_name));
}

static smelt_status compile_variant(void *context, const char *target, const struct code_shape *shape,
                                    const struct known_values *values, enum compile_effort effort,
                                    struct image *image, bool *cache_hit) {
    const struct variant *variant = context;
    struct code_options options = {
        .name = variant->name, .shape = *shape, .values = values, .target = target, .effort = effort};
    return compile_entry(&variant->translation, variant->entry, &options, image, cache_hit);
}

static void hold_variant(void *context) {
    (void)smelt_kernel_retain(((struct variant *)context)->kernel);
}

static void let_go_variant(void *context) {
    smelt_kernel_release(((struct variant *)context)->kernel);
}

/* Ready to be compiled for launches. */
static smelt_status build_variant(smelt_kernel *kernel, const smelt_run_desc *desc,
                                  const struct variant_key *key, struct variant **out) {
    struct variant *variant = calloc(1, sizeof *variant);
    if (!variant) return fail_out_of_memory(sizeof *variant);
    variant->key = *key;
    variant->name = kernel->desc.name;
    variant->kernel = kernel;
    smelt_status status = kernel_make_signature(kernel, desc, key->template_count, &variant->signature);
    if (status != SMELT_OK) {
        free(variant);
        return status;
    }
    status = kernel_translate(kernel, &variant->signature, &variant->translation);
    variant->translated = status == SMELT_OK;
    if (status == SMELT_OK)
        status = kernel_only_entry(&variant->translation, &variant->signature, &variant->entry);
    if (status == SMELT_OK) {
        struct code_source source = {.compile = compile_variant,
                                     .hold = hold_variant,
                                     .let_go = let_go_variant,
                                     .context = variant,
                                     .barrier_hint = compile_has_barrier(&variant->translation)};
        status = executable_load(key->device, &source, kernel->desc.name, &variant->loaded.executable);
    }
    if (status != SMELT_OK) {
        kernel_variant_free(variant);
        return status;
    }
    *out = variant;
    return SMELT_OK;
}

static bool variant_matches(const struct variant *variant, const struct variant_key *key,
                            const smelt_run_desc *desc) {
    if (memcmp(&variant->key, key, sizeof *key) != 0) return false;
    for (int i = 0; i < key->template_count; i++)
        if (strcmp(variant->template_names[i], desc->templates[i].name) != 0) return false;
    return true;
}

static struct variant *find_variant(const smelt_kernel *kernel, const struct variant_key *key,
                                    const smelt_run_desc *desc) {
    for (struct loaded *l = kernel->loaded.first; l; l = l->next)
        if (variant_matches((struct variant *)l, key, desc)) return (struct variant *)l;
    return NULL;
}

/* Under the kernel's lock. */
static smelt_status add_variant(smelt_kernel *kernel, struct variant *variant, const smelt_run_desc *desc) {
    for (int i = 0; i < variant->key.template_count; i++)
        variant->template_names[i] =
            arena_copy(&kernel->arena, desc->templates[i].name, strlen(desc->templates[i].name));
    if (kernel->arena.failed) return fail_out_of_memory(SMELT_MAX_TEMPLATES);
    loaded_add(&kernel->loaded, &variant->loaded);
    return SMELT_OK;
}

/* Translates outside the lock: two threads may make the same variant, one result is kept. */
smelt_status kernel_variant(smelt_kernel *kernel, const smelt_run_desc *desc, const struct variant_key *key,
                            struct variant **out) {
    smelt_status status = SMELT_OK;
    pthread_mutex_lock(&kernel->loaded.lock);
    struct variant *found = find_variant(kernel, key, desc);
    pthread_mutex_unlock(&kernel->loaded.lock);
    if (!found) {
        TRY(interrupt_check_compile());
        double start = clock_seconds();
        struct variant *made = NULL;
        struct trace_span span = trace_begin();
        status = build_variant(kernel, desc, key, &made);
        if (span.capture) trace_translation(span, kernel->desc.name, status);
        if (status != SMELT_OK) return status;
        pthread_mutex_lock(&kernel->loaded.lock);
        found = find_variant(kernel, key, desc);
        if (!found) {
            status = add_variant(kernel, made, desc);
            if (status == SMELT_OK) {
                found = made;
                made = NULL;
            }
        }
        pthread_mutex_unlock(&kernel->loaded.lock);
        if (made) kernel_variant_free(made);
        if (desc->info) desc->info->compile_seconds = clock_seconds() - start;
    }
    *out = found;
    return status;
}
