/* Kernels from bodies: checks, variants (one entry for each combination of dtypes and templates), runs. */
#include "array/array.h"
#include "array/dtype.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/reserved.h"
#include "device/executable.h"
#include "kernel/kernel.h"
#include "array/symbolic.h"
#include "kernel/show.h"
#include "kernel/trace.h"
#include "source/signature.h"

#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- Creation. */

static bool is_identifier(const char *name) {
    if (!name || !(isalpha((unsigned char)*name) || *name == '_')) return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_') return false;
    return true;
}

static smelt_status check_names(const smelt_kernel_desc *desc, int *inputs, int *outputs) {
    const char *const *lists[2] = {desc->inputs, desc->outputs};
    int counts[2] = {0, 0};
    static const char *const words[2] = {"input", "output"};
    for (int l = 0; l < 2; l++)
        for (; counts[l] < SMELT_MAX_ARGUMENTS && lists[l][counts[l]]; counts[l]++) {
            const char *name = lists[l][counts[l]];
            if (!is_identifier(name))
                return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': %s name '%s' is not an identifier",
                            desc->name, words[l], name);
            for (int m = 0; m <= l; m++)
                for (int i = 0; i < (m == l ? counts[l] : counts[m]); i++)
                    if (strcmp(lists[m][i], name) == 0)
                        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': the name '%s' is used twice",
                                    desc->name, name);
        }
    if (counts[0] + counts[1] > SMELT_MAX_ARGUMENTS)
        return fail(SMELT_ERROR_LIMIT, "kernel '%s' has %d arguments; at most %d are allowed", desc->name,
                    counts[0] + counts[1], SMELT_MAX_ARGUMENTS);
    if (!counts[1])
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s' has no outputs; at least one is needed",
                    desc->name);
    *inputs = counts[0];
    *outputs = counts[1];
    return SMELT_OK;
}

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
    if (!is_identifier(desc->name))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel: name '%s' is not an identifier",
                    desc->name ? desc->name : "(null)");
    if ((unsigned)desc->math > SMELT_MATH_FAST)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': math mode %d is not one of safe, relaxed, fast", desc->name,
                    (int)desc->math);
    TRY(metal_version_check("kernel", desc->metal_version));
    TRY(translation_check_macros("kernel", desc->macros));
    int inputs = 0, outputs = 0;
    TRY(check_names(desc, &inputs, &outputs));
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

static void variant_free(struct variant *variant) {
    executable_unload(variant->loaded.executable);
    if (variant->translated) translation_free(&variant->translation);
    signature_free(&variant->signature);
    free(variant);
}

void smelt_kernel_release(smelt_kernel *kernel) {
    if (!kernel || atomic_fetch_sub(&kernel->references, 1) != 1) return;
    for (struct loaded *l = kernel->loaded.first, *next; l; l = next) {
        next = l->next;
        variant_free((struct variant *)l);
    }
    pthread_mutex_destroy(&kernel->loaded.lock);
    arena_free(&kernel->arena);
    free(kernel);
}

/* ---- Checks of a run. */

static smelt_status check_inputs(const smelt_kernel *kernel, const smelt_run_desc *desc) {
    const char *name = kernel->desc.name;
    for (int i = 0; i < kernel->input_count; i++) {
        if (!desc->inputs[i])
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': input '%s' is missing: inputs[%d] is NULL", name,
                        kernel->desc.inputs[i], i);
        if (desc->inputs[i]->dtype == SMELT_FLOAT64)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': input '%s' is float64, which kernels do not support; convert it to "
                        "float32 first",
                        name, kernel->desc.inputs[i]);
    }
    if (kernel->input_count < SMELT_MAX_ARGUMENTS && desc->inputs[kernel->input_count])
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': more inputs are given than its %d names",
                    name, kernel->input_count);
    return SMELT_OK;
}

static smelt_status check_outputs(const smelt_kernel *kernel, const smelt_run_desc *desc) {
    const char *name = kernel->desc.name;
    int given = desc->output_count;
    if (!given)
        while (given < SMELT_MAX_ARGUMENTS && desc->output_dtypes[given] != SMELT_NO_DTYPE) given++;
    if (given != kernel->output_count)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s' has %d outputs, but shapes and dtypes for %d are given", name,
                    kernel->output_count, given);
    for (int i = 0; i < kernel->output_count; i++) {
        smelt_dtype dtype = desc->output_dtypes[i];
        if (dtype == SMELT_FLOAT64)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': output '%s' is float64, which kernels do not support; use float32",
                        name, kernel->desc.outputs[i]);
        if (!smelt_dtype_bytes(dtype))
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': output '%s': dtype %d is not one of smelt_dtype", name,
                        kernel->desc.outputs[i], (int)dtype);
    }
    return SMELT_OK;
}

static smelt_status check_templates(const smelt_kernel *kernel, const smelt_run_desc *desc, int *count) {
    const char *name = kernel->desc.name;
    int n = 0;
    for (; n < SMELT_MAX_TEMPLATES && desc->templates[n].name; n++) {
        const smelt_template *t = &desc->templates[n];
        TRY(reserved_check(smelt_template, t));
        if (!is_identifier(t->name))
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': template name '%s' is not an identifier",
                        name, t->name);
        for (int i = 0; i < n; i++)
            if (strcmp(desc->templates[i].name, t->name) == 0)
                return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': template '%s' is given twice", name,
                            t->name);
        switch (t->kind) {
        case SMELT_TEMPLATE_DTYPE:
            if (!smelt_dtype_bytes(t->dtype) || t->dtype == SMELT_FLOAT64)
                return fail(
                    SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': template '%s' has dtype %s, which kernels do not support; use float32",
                    name, t->name, smelt_dtype_name(t->dtype));
            break;
        case SMELT_TEMPLATE_INT:
            if (t->integer < INT_MIN || t->integer > INT_MAX)
                return fail(SMELT_ERROR_INVALID_ARGUMENT,
                            "kernel '%s': template '%s' is %lld, which does not fit in an int", name, t->name,
                            (long long)t->integer);
            break;
        case SMELT_TEMPLATE_BOOL:
            break;
        default:
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                "kernel '%s': template '%s' has kind %d; expected SMELT_TEMPLATE_DTYPE, _INT or _BOOL", name,
                t->name, (int)t->kind);
        }
    }
    *count = n;
    return SMELT_OK;
}

/* ---- Variants. */

static void make_key(const smelt_kernel *kernel, const smelt_run_desc *desc, const struct device *device,
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

static smelt_status make_signature(const smelt_kernel *kernel, const smelt_run_desc *desc, int template_count,
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

static smelt_status translate(const smelt_kernel *kernel, const struct signature *signature,
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

/* The one kernel of a generated text. */
static smelt_status only_entry(const struct translation *translation, const struct signature *signature,
                               const struct entry **entry) {
    *entry = translation_entry(translation, text_string(&signature->host_name));
    if (*entry) return SMELT_OK;
    return fail(SMELT_ERROR_COMPILE,
                "the braces of the body or header do not match: the kernel function '%s' cannot be found",
                text_string(&signature->host_name));
}

static smelt_status compile_variant(void *context, const char *target, const struct code_shape *shape,
                                    enum compile_effort effort, struct image *image, bool *cache_hit) {
    const struct variant *variant = context;
    struct code_options options = {
        .name = variant->name, .shape = *shape, .target = target, .effort = effort};
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
    smelt_status status = make_signature(kernel, desc, key->template_count, &variant->signature);
    if (status != SMELT_OK) {
        free(variant);
        return status;
    }
    status = translate(kernel, &variant->signature, &variant->translation);
    variant->translated = status == SMELT_OK;
    if (status == SMELT_OK) status = only_entry(&variant->translation, &variant->signature, &variant->entry);
    if (status == SMELT_OK) {
        struct code_source source = {.compile = compile_variant,
                                     .hold = hold_variant,
                                     .let_go = let_go_variant,
                                     .context = variant,
                                     .barrier_hint = compile_has_barrier(&variant->translation)};
        status = executable_load(key->device, &source, kernel->desc.name, &variant->loaded.executable);
    }
    if (status != SMELT_OK) {
        variant_free(variant);
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
        variant->template_names[i] = keep(&kernel->arena, desc->templates[i].name);
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
        if (made) variant_free(made);
        if (desc->info) desc->info->compile_seconds = clock_seconds() - start;
    }
    *out = found;
    return status;
}

/* ---- Running. */

static smelt_status check(const smelt_kernel *kernel, const smelt_run_desc *desc, const struct device *device,
                          struct variant_key *key) {
    int template_count;
    TRY(check_inputs(kernel, desc));
    TRY(check_outputs(kernel, desc));
    TRY(check_templates(kernel, desc, &template_count));
    make_key(kernel, desc, device, template_count, key);
    return SMELT_OK;
}

struct bound_request kernel_request(const smelt_kernel *kernel, const struct signature *signature,
                                    const struct device *device, const smelt_run_desc *desc) {
    return (struct bound_request){.kernel = &kernel->desc,
                                  .input_count = kernel->input_count,
                                  .output_count = kernel->output_count,
                                  .signature = signature,
                                  .device = device,
                                  .desc = desc};
}

smelt_status kernel_begin(const smelt_kernel *kernel, const smelt_run_desc *desc, struct variant_key *key,
                          struct launch *launch) {
    *launch = (struct launch){.what = kernel->desc.name,
                              .profile = desc->profile,
                              .timeout = desc->timeout,
                              .stream = desc->stream,
                              .info = desc->info,
                              .check = desc->check,
                              .look_for = desc->also,
                              .unchecked = desc->unchecked};
    TRY(reserved_check(smelt_run_desc, desc));
    TRY(launch_begin(launch, desc->device));
    TRY(check(kernel, desc, launch->device, key));
    return launch_measure(launch, desc->grid, desc->threadgroup, true);
}

void kernel_launch(const struct variant *variant, const struct bound_request *request,
                   struct launch *launch) {
    launch->executable = variant->loaded.executable;
    launch->entry = variant->entry;
    launch->translation = &variant->translation;
    launch->large = bound_is_large(request);
    if (request->device->space) bound_inlined(request, launch->inlined);
}

smelt_status kernel_run(const struct bound_request *request, struct launch *launch, smelt_array **outputs) {
    struct bound bound;
    bound_open(&bound, request);
    smelt_status status = arguments_run(launch, bound_bind, &bound);
    if (status == SMELT_OK && outputs) {
        memcpy(outputs, bound.outputs, (size_t)request->output_count * sizeof *outputs);
        bound.output_count = 0;
    }
    bound_close(&bound);
    return status;
}

static smelt_status run(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_array **outputs) {
    struct variant_key key;
    struct variant *variant = NULL;
    struct launch launch;
    TRY(kernel_begin(kernel, desc, &key, &launch));
    TRY(kernel_variant(kernel, desc, &key, &variant));
    struct bound_request request = kernel_request(kernel, &variant->signature, launch.device, desc);
    kernel_launch(variant, &request, &launch);
    return kernel_run(&request, &launch, outputs);
}

/* ---- Values of graphs. */

static _Atomic(kernel_tracer *) tracer;

void kernel_trace_with(kernel_tracer *wanted) {
    atomic_store(&tracer, wanted);
}

static bool has_symbolic(const smelt_kernel *kernel, const smelt_run_desc *desc) {
    bool found = false;
    for (int i = 0; i < kernel->input_count; i++)
        found |= desc->inputs[i] && array_is_symbolic(desc->inputs[i]);
    return found;
}

static smelt_status trace(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_array **outputs) {
    struct variant_key key;
    struct launch launch;
    kernel_tracer *trace_with = atomic_load(&tracer);
    smelt_run_desc anywhere = *desc; /* the device is known when the graph is compiled */
    anywhere.device = NULL;
    anywhere.stream = NULL;
    TRY(kernel_begin(kernel, &anywhere, &key, &launch));
    if (trace_with) return trace_with(kernel, &anywhere, outputs);
    return fail(SMELT_ERROR_INTERNAL, "kernel '%s': an input is a value of a graph, but there are no graphs",
                kernel->desc.name);
}

smelt_status smelt_kernel_run(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_array **outputs) {
    if (!kernel || !desc || !outputs)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel run: %s is NULL",
                    !kernel ? "kernel"
                    : !desc ? "desc"
                            : "outputs");
    if (has_symbolic(kernel, desc)) return trace(kernel, desc, outputs);
    smelt_interrupt *outer = interrupt_begin_call(desc->interrupt);
    smelt_status status = run(kernel, desc, outputs);
    interrupt_end_call(outer);
    return interrupt_status(kernel->desc.name, status);
}

smelt_status smelt_kernel_wait(smelt_kernel *kernel, smelt_interrupt *interrupt) {
    if (!kernel) return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel wait: kernel is NULL");
    return loaded_wait(&kernel->loaded, kernel->desc.name, interrupt);
}

smelt_status smelt_kernel_show(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_stage stage,
                               char **text) {
    if (!kernel || !desc || !text)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel show: %s is NULL",
                    !kernel ? "kernel"
                    : !desc ? "desc"
                            : "text");
    if ((unsigned)stage > SMELT_STAGE_WARNINGS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': stage %d is not one of smelt_stage",
                    kernel->desc.name, (int)stage);
    const struct device *device;
    struct variant_key key;
    struct signature signature;
    struct translation translation;
    TRY(reserved_check(smelt_run_desc, desc));
    TRY(device_to_show(desc->device, &device));
    TRY(settings_check(kernel->desc.name, device, desc->profile, desc->timeout));
    TRY(check(kernel, desc, device, &key));
    TRY(make_signature(kernel, desc, key.template_count, &signature));
    smelt_status status = SMELT_OK;
    if (stage == SMELT_STAGE_SOURCE) {
        *text = string_copy(text_string(&signature.text), signature.text.length);
        if (!*text) status = fail_out_of_memory(signature.text.length);
    } else {
        status = translate(kernel, &signature, &translation);
        if (status == SMELT_OK) {
            const struct entry *entry;
            struct code_options options = {.name = kernel->desc.name};
            struct bound_request request = kernel_request(kernel, &signature, device, desc);
            struct launch launch = {.what = kernel->desc.name,
                                    .device = device,
                                    .timeout = desc->timeout,
                                    .check = desc->check,
                                    .unchecked = desc->unchecked};
            bound_inlined(&request, launch.inlined);
            struct shape_desc shape = {.grid = desc->grid,
                                       .group = desc->threadgroup,
                                       .clamp = true,
                                       .barrier_hint = compile_has_barrier(&translation),
                                       .target = desc->target,
                                       .after = desc->after};
            status = only_entry(&translation, &signature, &entry);
            if (status == SMELT_OK) status = shape_for_stage(&launch, &shape, stage, &options);
            if (status == SMELT_OK) status = compile_show(&translation, entry, &options, stage, text);
            translation_free(&translation);
        }
    }
    signature_free(&signature);
    return status;
}

void smelt_free(void *memory) {
    free(memory);
}
