#include "device/executable.h"
#include "base/background.h"
#include "base/interrupt.h"
#include "base/trace.h"
#include "device/effort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct better_code {
    struct background_job job; /* first */
    struct better_code *next;
    struct executable *executable;
    struct code_shape shape;
    /* Of code for given values. */
    const struct code_head *general;
    struct known_values values;
    enum know_how how;
    known_code_function *done;
    void *context;
};

smelt_status executable_load(const struct device *device, const struct code_source *source, const char *name,
                             struct executable **out) {
    struct executable *executable = calloc(1, sizeof *executable);
    if (executable) executable->name = strdup(name);
    if (!executable || !executable->name) {
        free(executable);
        return fail_out_of_memory(sizeof *executable);
    }
    executable->device = device;
    executable->source = *source;
    pthread_mutex_init(&executable->lock, NULL);
    *out = executable;
    return SMELT_OK;
}

static void code_free(struct executable *executable, struct code_head *code) {
    executable->device->free_code(executable, code);
    image_free(&code->image);
    free((void *)code->values);
    free(code);
}

static void better_free(struct better_code *better) {
    free(better->job.message);
    free(better);
}

void executable_unload(struct executable *executable) {
    if (!executable) return;
    for (struct code_head *code = atomic_load(&executable->first), *next; code; code = next) {
        next = code->next;
        code_free(executable, code);
    }
    for (struct better_code *better = atomic_load(&executable->better), *next; better; better = next) {
        next = better->next;
        better_free(better);
    }
    pthread_mutex_destroy(&executable->lock);
    free(executable->name);
    free(executable);
}

/* ---- The list of codes. Without a lock: a child forked while another thread adds one finds it whole. */

static struct code_head *find_from(struct code_head *code, const struct code_shape *shape, bool quick) {
    while (code &&
           (code->values || code->image.quick != quick || memcmp(&code->shape, shape, sizeof *shape) != 0))
        code = code->next;
    return code;
}

struct code_head *executable_find(struct executable *executable, const struct code_shape *shape, bool quick) {
    return find_from(atomic_load_explicit(&executable->first, memory_order_acquire), shape, quick);
}

struct code_head *executable_add(struct executable *executable, struct code_head *made) {
    struct code_head *first = atomic_load_explicit(&executable->first, memory_order_acquire);
    do {
        struct code_head *found = made->values ? NULL : find_from(first, &made->shape, made->image.quick);
        if (found) {
            code_free(executable, made);
            return found;
        }
        made->next = first;
    } while (!atomic_compare_exchange_weak(&executable->first, &first, made));
    return made;
}

/* ---- Compiling. */

/* Of code for given values, which one compile asks for. */
static smelt_status keep_values(struct code_head *code, const struct code_head *general,
                                const struct known_values *values) {
    struct known_values *kept = malloc(sizeof *kept);
    if (!kept) return fail_out_of_memory(sizeof *kept);
    *kept = *values;
    code->values = kept;
    code->general = general;
    return SMELT_OK;
}

/* Compiles and adds the code. `load`: also loads it, if the device has load_code. *cache_hit: no compiler
 * ran. general: of code for given values; both NULL: for all. */
static smelt_status make_code(struct executable *executable, const struct code_shape *shape,
                              const struct code_head *general, const struct known_values *values,
                              enum compile_effort effort, bool load, struct code_head **out,
                              bool *cache_hit) {
    const struct device *device = executable->device;
    const struct code_source *source = &executable->source;
    struct image image = {0};
    *cache_hit = false;
    TRY(interrupt_check_compile());
    TRY(source->compile(source->context, device->target, shape, values, effort, &image, cache_hit));
    struct code_head *code = calloc(1, device->code_bytes);
    if (!code) {
        image_free(&image);
        return fail_out_of_memory(device->code_bytes);
    }
    code->shape = *shape;
    code->image = image;
    smelt_status status = values ? keep_values(code, general, values) : SMELT_OK;
    if (status == SMELT_OK) status = device->make_code(executable, code);
    if (status == SMELT_OK && load && device->load_code) status = device->load_code(executable, code);
    if (image.reduced && !atomic_flag_test_and_set(&executable->reduced_logged))
        log_line(SMELT_LOG_INFO, "kernel '%s' is large: %s", executable->name, image.reduced);
    if (status == SMELT_OK)
        *out = executable_add(executable, code);
    else
        code_free(executable, code);
    return status;
}

/* ---- The best code in the background. */

static void trace_better(struct trace_span span, const struct executable *executable, bool cache_hit,
                         smelt_status status) {
    char name[200];
    struct trace_slice slice = {.category = "compile", .name = name};
    snprintf(name, sizeof name, "compile %s in the background", executable->name);
    trace_string(&slice, "kernel", executable->name);
    trace_string(&slice, "device", executable->device->name);
    trace_string(&slice, "cache", cache_hit ? "hit" : "miss");
    trace_status(&slice, status);
    trace_end(span, &slice);
}

static smelt_status make_better(struct background_job *job) {
    struct better_code *better = (struct better_code *)job;
    struct executable *executable = better->executable;
    struct code_head *code;
    bool cache_hit;
    struct trace_span span = trace_begin();
    smelt_status status =
        make_code(executable, &better->shape, NULL, NULL, COMPILE_BEST, true, &code, &cache_hit);
    if (span.capture) trace_better(span, executable, cache_hit, status);
    if (status != SMELT_OK && status != SMELT_ERROR_INTERRUPTED)
        log_line(SMELT_LOG_WARNING, "kernel '%s' goes on with quick code: its best could not be compiled: %s",
                 executable->name, smelt_error());
    return status;
}

static void hold(struct background_job *job) {
    const struct code_source *source = &((struct better_code *)job)->executable->source;
    source->hold(source->context);
}

static void let_go(struct background_job *job) {
    const struct code_source *source = &((struct better_code *)job)->executable->source;
    source->let_go(source->context);
}

static struct better_code *find_better(struct better_code *better, const struct code_shape *shape) {
    while (better && (better->general || memcmp(&better->shape, shape, sizeof *shape) != 0))
        better = better->next;
    return better;
}

/* NULL: out of memory. */
static struct better_code *have_better(struct executable *executable, const struct code_shape *shape) {
    struct better_code *first = atomic_load(&executable->better), *found = find_better(first, shape);
    if (found) return found;
    struct better_code *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    *made = (struct better_code){.job = {.run = make_better, .hold = hold, .let_go = let_go},
                                 .executable = executable,
                                 .shape = *shape};
    do {
        found = find_better(first, shape);
        made->next = first;
    } while (!found && !atomic_compare_exchange_weak(&executable->better, &first, made));
    if (found) better_free(made);
    return found ? found : made;
}

static void note_quick(struct executable *executable) {
    if (!atomic_flag_test_and_set(&executable->quick_logged))
        log_line(SMELT_LOG_INFO, "kernel '%s' runs quick code until its best is compiled", executable->name);
}

void executable_improve(struct executable *executable, const struct code_shape *shape, double seconds) {
    if (launch_stays_quick() || executable_find(executable, shape, false)) return;
    note_quick(executable);
    struct better_code *better = have_better(executable, shape);
    if (!better) return;
    if (seconds > 0)
        background_start_later(&better->job, seconds);
    else
        background_start(&better->job);
}

/* ---- Code for given values. */

/* Which code it is: launches have code for all values, so its failure is no warning. */
static smelt_status make_known(struct background_job *job) {
    struct better_code *better = (struct better_code *)job;
    struct code_head *code = NULL;
    bool cache_hit;
    bool recall = better->how == KNOW_FROM_CACHE;
    struct trace_span span = trace_begin();
    smelt_status status = make_code(better->executable, &better->shape, better->general, &better->values,
                                    recall ? COMPILE_RECALL : COMPILE_BEST, true, &code, &cache_hit);
    if (span.capture && !(recall && !code)) trace_better(span, better->executable, cache_hit, status);
    if (status == SMELT_ERROR_INTERRUPTED) return status;
    if (status != SMELT_OK && !recall)
        log_line(SMELT_LOG_INFO, "kernel '%s' has no code for its arguments' values: %s",
                 better->executable->name, smelt_error());
    better->done(better->context, code);
    return SMELT_OK;
}

void executable_know(struct executable *executable, const struct code_head *general,
                     const struct known_values *values, enum know_how how, known_code_function *done,
                     void *context) {
    struct better_code *made = executable->source.hold ? calloc(1, sizeof *made) : NULL;
    if (!made) return;
    *made = (struct better_code){.job = {.run = make_known, .hold = hold, .let_go = let_go},
                                 .executable = executable,
                                 .shape = general->shape,
                                 .general = general,
                                 .values = *values,
                                 .how = how,
                                 .done = done,
                                 .context = context};
    made->next = atomic_load(&executable->better);
    while (!atomic_compare_exchange_weak(&executable->better, &made->next, made)) continue;
    if (how == KNOW_NOW)
        (void)background_wait(&made->job);
    else
        background_start(&made->job);
}

smelt_status executable_wait(struct executable *executable) {
    smelt_status status = SMELT_OK;
    for (struct better_code *better = atomic_load(&executable->better); better; better = better->next) {
        if (status == SMELT_OK) status = background_wait(&better->job);
    }
    return status;
}

bool executable_is_improving(struct executable *executable) {
    bool is_improving = false;
    for (struct better_code *better = atomic_load(&executable->better); better; better = better->next)
        is_improving |= background_is_pending(&better->job);
    return is_improving;
}

/* ---- The code for a shape. */

smelt_status executable_compile(struct executable *executable, const struct code_shape *shape,
                                enum compile_effort effort, struct code_head **out,
                                struct preparation *preparation) {
    bool cache_hit;
    TRY(make_code(executable, shape, NULL, NULL, effort, false, out, &cache_hit));
    if (!preparation) return SMELT_OK;
    preparation->cache_hit = cache_hit && (preparation->cache_hit || !preparation->compiled);
    preparation->compiled = true;
    return SMELT_OK;
}

/* What is there, or on its way. */
static smelt_status find_code(struct executable *executable, const struct code_shape *shape,
                              enum compile_effort effort, struct code_head **out,
                              struct preparation *preparation) {
    *out = executable_find(executable, shape, false);
    if (*out) return SMELT_OK;
    if (effort != COMPILE_BEST) {
        *out = executable_find(executable, shape, true);
        return SMELT_OK;
    }
    struct better_code *better = find_better(atomic_load(&executable->better), shape);
    if (better) TRY(interrupt_check_compile());
    if (better && preparation) preparation->compiled = true;
    if (better) TRY(background_wait(&better->job));
    *out = executable_find(executable, shape, false);
    return SMELT_OK;
}

smelt_status executable_code(struct executable *executable, const struct code_shape *shape,
                             enum compile_effort effort, struct code_head **out,
                             struct preparation *preparation) {
    if (!executable->source.hold) effort = COMPILE_BEST;
    TRY(find_code(executable, shape, effort, out, preparation));
    return *out ? SMELT_OK : executable_compile(executable, shape, effort, out, preparation);
}
