/* Tuning of kernels from bodies and of functions of libraries over a space of named parameters. */
#include "base/hash.h"
#include "kernel/kernel.h"
#include "kernel/library.h"
#include "tune/space.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct tuned {
    struct space space;
    char name[256];
    struct text key;
    /* A kernel. */
    smelt_kernel *kernel;
    const smelt_run_desc *run;
    smelt_array *outputs[SMELT_MAX_ARGUMENTS]; /* of the last run */
    int output_count;
    /* A function. */
    smelt_library *library;
    const smelt_function_desc *desc;
    const smelt_dispatch_desc *dispatch;
    smelt_array *first[SMELT_MAX_BUFFERS]; /* contents before the first run, where results are checked */
    smelt_function *function;              /* of candidate `built`; NULL: none */
    int built;
};

/* ---- What both share. */

static bool is_threads(const struct tuned *tuned, int parameter) {
    return strcmp(tuned->space.space->parameters[parameter].name, SPACE_THREADS) == 0;
}

static void tell(const smelt_tune_progress *progress, void *context) {
    const struct tuned *tuned = context;
    tuned->space.space->progress(progress, tuned->space.space->context);
}

static void end(struct tuned *tuned) {
    for (int i = 0; i < SMELT_MAX_ARGUMENTS; i++) smelt_array_release(tuned->outputs[i]);
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) smelt_array_release(tuned->first[i]);
    smelt_function_release(tuned->function);
    text_free(&tuned->key);
    tune_space_end(&tuned->space);
}

/* The name with the hash of the text: another kernel of that name has results of its own. */
static void set_name(struct tuned *tuned, const char *name, struct hash hash) {
    char hex[HASH_HEX_LENGTH + 1];
    hash_hex(hash, hex);
    snprintf(tuned->name, sizeof tuned->name, "%.200s %s", name, hex);
}

static smelt_status search(struct tuned *tuned, const char *device, smelt_interrupt *interrupt,
                           smelt_status (*run)(int, void *), bool (*check)(int, void *), int64_t *values,
                           smelt_tune_result *result) {
    const smelt_tune_space *space = tuned->space.space;
    smelt_tune_result found;
    if (tuned->key.failed) return fail_out_of_memory(1);
    TRY(smelt_tune(&(smelt_tune_desc){.name = tuned->name,
                                      .key = text_string(&tuned->key),
                                      .device = device,
                                      .candidates = (const char *const *)tuned->space.words,
                                      .count = tuned->space.count,
                                      .run = run,
                                      .check = check,
                                      .progress = space->progress ? tell : NULL,
                                      .context = tuned,
                                      .budget = space->budget,
                                      .again = space->again,
                                      .interrupt = interrupt},
                   &found));
    tune_space_values(&tuned->space, found.index, values);
    if (result) *result = found;
    return SMELT_OK;
}

static smelt_status check_arguments(const void *object, const void *desc, const smelt_tune_space *space,
                                    const int64_t *values) {
    if (object && desc && space && values) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "tuning: %s is NULL",
                !object  ? "the kernel or library"
                : !desc  ? "a descriptor"
                : !space ? "space"
                         : "values");
}

/* ---- Kernels. */

/* A template parameter of the run gets the value, or a new one is appended. */
static smelt_status set_template(smelt_run_desc *run, const char *name, int64_t value) {
    int at = 0;
    while (at < SMELT_MAX_TEMPLATES && run->templates[at].name && strcmp(run->templates[at].name, name) != 0)
        at++;
    if (at == SMELT_MAX_TEMPLATES)
        return fail(SMELT_ERROR_LIMIT, "tuning: more than %d templates", SMELT_MAX_TEMPLATES);
    run->templates[at] = (smelt_template){.name = name, .kind = SMELT_TEMPLATE_INT, .integer = value};
    return SMELT_OK;
}

static smelt_status run_kernel(int index, void *context) {
    struct tuned *tuned = context;
    const smelt_tune_space *space = tuned->space.space;
    smelt_run_desc run = *tuned->run;
    int64_t values[SMELT_MAX_TUNE_PARAMETERS];
    tune_space_values(&tuned->space, index, values);
    for (int i = 0; i < tuned->space.parameter_count; i++)
        if (is_threads(tuned, i))
            run.threadgroup[0] = values[i];
        else
            TRY(set_template(&run, space->parameters[i].name, values[i]));
    run.info = NULL;
    if (space->adapt) space->adapt(values, &run, space->context);
    for (int i = 0; i < tuned->output_count; i++) {
        smelt_array_release(tuned->outputs[i]);
        tuned->outputs[i] = NULL;
    }
    return smelt_kernel_run(tuned->kernel, &run, tuned->outputs);
}

static bool check_kernel(int index, void *context) {
    const struct tuned *tuned = context;
    bool right = true;
    (void)index;
    for (int i = 0; i < tuned->output_count && i < SMELT_MAX_BUFFERS && right; i++)
        if (tuned->space.space->expected[i])
            right = tune_space_is_right(&tuned->space, tuned->outputs[i], tuned->space.space->expected[i]);
    return right;
}

static void describe_kernel(struct tuned *tuned) {
    const smelt_kernel *kernel = tuned->kernel;
    const smelt_run_desc *run = tuned->run;
    struct hasher *hasher = hasher_create();
    hasher_add_string(hasher, kernel->desc.source);
    hasher_add_string(hasher, kernel->desc.header ? kernel->desc.header : "");
    hasher_add_integer(hasher, kernel->desc.math);
    set_name(tuned, kernel->desc.name, hasher_finish(hasher));
    tune_space_add_key(&tuned->space, &tuned->key);
    text_add(&tuned->key, ";");
    for (int i = 0; i < kernel->input_count; i++)
        if (run->inputs[i]) tune_space_add_array(&tuned->key, run->inputs[i]);
    text_addf(&tuned->key, "; grid %" PRId64 "x%" PRId64 "x%" PRId64, run->grid[0], run->grid[1],
              run->grid[2]);
    for (int i = 0; i < SMELT_MAX_TEMPLATES && run->templates[i].name; i++)
        text_addf(&tuned->key, " %s=%d/%" PRId64 "/%d", run->templates[i].name, (int)run->templates[i].dtype,
                  run->templates[i].integer, run->templates[i].boolean);
}

smelt_status smelt_tune_kernel(smelt_kernel *kernel, const smelt_run_desc *run, const smelt_tune_space *space,
                               int64_t *values, smelt_tune_result *result) {
    TRY(check_arguments(kernel, run, space, values));
    struct tuned tuned = {.kernel = kernel, .run = run, .output_count = kernel->output_count};
    smelt_status status = tune_space_begin(space, kernel->desc.name, &tuned.space);
    if (status == SMELT_OK) {
        describe_kernel(&tuned);
        status = search(&tuned, run->device, run->interrupt, run_kernel, check_kernel, values, result);
    }
    end(&tuned);
    return status;
}

/* ---- Functions. */

static smelt_status set_constant(smelt_function_desc *desc, const char *name, int64_t value) {
    int at = 0;
    while (at < SMELT_MAX_CONSTANTS && desc->constants[at].dtype != SMELT_NO_DTYPE &&
           !(desc->constants[at].name && strcmp(desc->constants[at].name, name) == 0))
        at++;
    if (at == SMELT_MAX_CONSTANTS)
        return fail(SMELT_ERROR_LIMIT, "tuning: more than %d function constants", SMELT_MAX_CONSTANTS);
    desc->constants[at] = (smelt_constant){.name = name, .dtype = SMELT_INT32, .value.integer = value};
    return SMELT_OK;
}

/* The function with a candidate's constants, kept until the next candidate's. */
static smelt_status build(struct tuned *tuned, int index, const int64_t *values) {
    if (tuned->function && tuned->built == index) return SMELT_OK;
    smelt_function_release(tuned->function);
    tuned->function = NULL;
    smelt_function_desc desc = *tuned->desc;
    for (int i = 0; i < tuned->space.parameter_count; i++)
        if (!is_threads(tuned, i))
            TRY(set_constant(&desc, tuned->space.space->parameters[i].name, values[i]));
    TRY(smelt_library_function(tuned->library, &desc, &tuned->function));
    tuned->built = index;
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        if (tuned->first[i]) TRY(smelt_array_copy(tuned->dispatch->buffers[i].array, tuned->first[i]));
    return SMELT_OK;
}

static smelt_status run_function(int index, void *context) {
    struct tuned *tuned = context;
    const smelt_tune_space *space = tuned->space.space;
    smelt_dispatch_desc dispatch = *tuned->dispatch;
    int64_t values[SMELT_MAX_TUNE_PARAMETERS];
    tune_space_values(&tuned->space, index, values);
    TRY(build(tuned, index, values));
    for (int i = 0; i < tuned->space.parameter_count; i++)
        if (is_threads(tuned, i)) dispatch.threadgroup[0] = values[i];
    dispatch.info = NULL;
    if (space->adapt) space->adapt(values, &dispatch, space->context);
    return smelt_function_run(tuned->function, &dispatch);
}

static bool check_function(int index, void *context) {
    const struct tuned *tuned = context;
    bool right = true;
    (void)index;
    for (int i = 0; i < SMELT_MAX_BUFFERS && right; i++)
        if (tuned->first[i])
            right = tune_space_is_right(&tuned->space, tuned->dispatch->buffers[i].array,
                                        tuned->space.space->expected[i]);
    return right;
}

static void describe_function(struct tuned *tuned) {
    const smelt_dispatch_desc *dispatch = tuned->dispatch;
    const smelt_library *library = tuned->library;
    const struct text *text = library->packaged ? &library->source : &library->translation.source;
    struct hasher *hasher = hasher_create();
    hasher_add(hasher, text_string(text), text->length);
    hasher_add_integer(hasher, library->translation.math);
    set_name(tuned, tuned->desc->name ? tuned->desc->name : "", hasher_finish(hasher));
    tune_space_add_key(&tuned->space, &tuned->key);
    text_add(&tuned->key, ";");
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        if (dispatch->buffers[i].array) tune_space_add_array(&tuned->key, dispatch->buffers[i].array);
    for (int d = 0; d < 3; d++)
        text_addf(&tuned->key, "%s%" PRId64 "/%" PRId64, d ? "x" : "; grid ", dispatch->grid[d],
                  dispatch->groups[d]);
    for (int i = 0; i < SMELT_MAX_CONSTANTS && tuned->desc->constants[i].dtype != SMELT_NO_DTYPE; i++)
        text_addf(&tuned->key, " %d=%" PRId64, tuned->desc->constants[i].index,
                  tuned->desc->constants[i].value.integer);
}

/* What is checked must be an array, whose contents are kept. */
static smelt_status keep_first(struct tuned *tuned) {
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        smelt_array *array = tuned->dispatch->buffers[i].array;
        if (!tuned->space.space->expected[i]) continue;
        if (!array)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "tuning '%s': buffer %d has an expected result, but no array", tuned->space.what, i);
        TRY(smelt_array_convert(array, smelt_array_dtype(array), &tuned->first[i]));
    }
    return SMELT_OK;
}

smelt_status smelt_tune_function(smelt_library *library, const smelt_function_desc *function,
                                 const smelt_dispatch_desc *dispatch, const smelt_tune_space *space,
                                 int64_t *values, smelt_tune_result *result) {
    TRY(check_arguments(library, function && dispatch ? function : NULL, space, values));
    struct tuned tuned = {.library = library, .desc = function, .dispatch = dispatch};
    smelt_status status =
        tune_space_begin(space, function->name ? function->name : "the function", &tuned.space);
    if (status == SMELT_OK) status = keep_first(&tuned);
    if (status == SMELT_OK) {
        describe_function(&tuned);
        status = search(&tuned, dispatch->device, dispatch->interrupt, run_function, check_function, values,
                        result);
    }
    end(&tuned);
    return status;
}
