/* Guarded runs: attempts on one device after the other, what counts as their failure, the fallback. */
#include "smelt/guard.h"
#include "base/error.h"
#include "base/reserved.h"

#include <stdio.h>
#include <string.h>

/* A run in progress. */
struct run {
    const struct smelt_guard *guard;
    const char *name;
    smelt_attempt *attempt;
    void *context;
    int count; /* outputs */
    smelt_guard_report report;
};

smelt_status smelt_guard_refuse(const char *message) {
    return fail(SMELT_ERROR_HEALTH, "%s", message ? message : "refused");
}

static bool is_failure(smelt_status status) {
    return status != SMELT_OK && status != SMELT_ERROR_INVALID_ARGUMENT && status != SMELT_ERROR_INTERRUPTED;
}

static void note(struct run *run, smelt_status status) {
    if (run->report.status != SMELT_OK) return;
    run->report.status = status;
    snprintf(run->report.message, sizeof run->report.message, "%s", smelt_error());
}

static void release(struct run *run, smelt_array **outputs) {
    for (int i = 0; i < run->count; i++) {
        smelt_array_release(outputs[i]);
        outputs[i] = NULL;
    }
}

static smelt_status inspect(const struct run *run, smelt_array *const *outputs) {
    const smelt_guard *guard = run->guard;
    if (guard->flags > 0 && guard->flags <= run->count)
        TRY(smelt_flags_check(outputs[guard->flags - 1], run->name, guard->codes, NULL));
    for (int i = 0; i < run->count && guard->finite; i++) {
        char name[96];
        snprintf(name, sizeof name, "kernel '%.48s': output %d", run->name, i);
        if (i != guard->flags - 1) TRY(smelt_check_finite(outputs[i], name));
    }
    return SMELT_OK;
}

static smelt_status try_on(struct run *run, const char *device, smelt_array **outputs) {
    run->report.attempts++;
    snprintf(run->report.device, sizeof run->report.device, "%s", device ? device : "cpu");
    smelt_status status = run->attempt(run->context, device, run->guard->timeout, outputs);
    if (status == SMELT_OK) {
        status = inspect(run, outputs);
        if (status != SMELT_OK) release(run, outputs);
    }
    return status;
}

static void warn(const struct run *run, const char *done, const char *device) {
    if (!run->guard->report)
        log_line(SMELT_LOG_WARNING, "%s: %s; %s%s", run->name, run->report.message, done, device);
}

static smelt_status fall_back(struct run *run, smelt_array **outputs) {
    if (!run->guard->fallback) return fail(run->report.status, "%s", run->report.message);
    warn(run, "the fallback computes the result", "");
    smelt_status status = run->guard->fallback(run->guard->context, outputs);
    run->report.fell_back = status == SMELT_OK;
    return status;
}

static smelt_status run_all(struct run *run, const char *device, smelt_array **outputs) {
    const smelt_guard *guard = run->guard;
    smelt_status status = guard->precondition ? guard->precondition(guard->context) : SMELT_OK;
    if (status != SMELT_OK) {
        if (!is_failure(status)) return status;
        note(run, status);
        return fall_back(run, outputs);
    }
    status = try_on(run, device, outputs);
    for (int i = 0; i < SMELT_MAX_RETRIES && guard->devices[i] && is_failure(status); i++) {
        note(run, status);
        warn(run, "it is run again on ", guard->devices[i]);
        status = try_on(run, guard->devices[i], outputs);
    }
    if (!is_failure(status)) return status;
    note(run, status);
    return fall_back(run, outputs);
}

smelt_status smelt_guard_run(const smelt_guard *guard, const char *device, smelt_attempt *attempt,
                             void *context, int count, smelt_array **outputs) {
    smelt_array *made[SMELT_MAX_ARGUMENTS] = {0};
    if (!guard || !attempt || (count && !outputs))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "guard: %s is NULL",
                    !guard     ? "the guard"
                    : !attempt ? "attempt"
                               : "outputs");
    TRY(reserved_check(smelt_guard, guard));
    if (!(guard->timeout >= 0) || count < 0 || count > SMELT_MAX_ARGUMENTS || guard->flags < 0)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "guard: timeout is %g, flags %d and the outputs %d, expected numbers of at least 0, and "
                    "at most %d "
                    "outputs",
                    guard->timeout, guard->flags, count, SMELT_MAX_ARGUMENTS);
    struct run run = {.guard = guard,
                      .name = guard->name ? guard->name : "kernel",
                      .attempt = attempt,
                      .context = context,
                      .count = count};
    smelt_status status = run_all(&run, device, made);
    if (guard->report) *guard->report = run.report;
    for (int i = 0; i < count && status == SMELT_OK; i++) outputs[i] = made[i];
    return status;
}

/* ---- Kernels. */

struct kernel_run {
    smelt_kernel *kernel;
    const smelt_run_desc *desc;
};

/* The shorter of two time-outs, of which 0 is none. */
static double shorter(double a, double b) {
    return a > 0 && (b == 0 || a < b) ? a : b;
}

static smelt_status run_kernel(void *context, const char *device, double timeout, smelt_array **outputs) {
    const struct kernel_run *run = context;
    smelt_run_desc desc = *run->desc;
    desc.device = device;
    if (desc.stream && device != run->desc->device) desc.stream = NULL;
    desc.timeout = shorter(timeout, desc.timeout);
    return smelt_kernel_run(run->kernel, &desc, outputs);
}

smelt_status smelt_kernel_run_guarded(smelt_kernel *kernel, const smelt_run_desc *desc,
                                      const smelt_guard *guard, smelt_array **outputs) {
    int count = 0;
    if (!kernel || !desc)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "guarded run: %s is NULL", kernel ? "desc" : "kernel");
    while (count < SMELT_MAX_ARGUMENTS && desc->output_dtypes[count]) count++;
    struct kernel_run run = {kernel, desc};
    return smelt_guard_run(guard, desc->device, run_kernel, &run, count, outputs);
}

/* ---- Functions: their results are bound arrays, which an attempt gives out. */

struct function_run {
    smelt_function *function;
    const smelt_dispatch_desc *desc;
    int results[SMELT_MAX_BUFFERS]; /* buffers */
    int count;
};

static smelt_status run_function(void *context, const char *device, double timeout, smelt_array **outputs) {
    const struct function_run *run = context;
    smelt_dispatch_desc desc = *run->desc;
    desc.device = device;
    if (desc.stream && device != run->desc->device) desc.stream = NULL;
    desc.timeout = shorter(timeout, desc.timeout);
    TRY(smelt_function_run(run->function, &desc));
    for (int i = 0; i < run->count; i++)
        outputs[i] = smelt_array_retain(run->desc->buffers[run->results[i]].array);
    return SMELT_OK;
}

smelt_status smelt_function_run_guarded(smelt_function *function, const smelt_dispatch_desc *desc,
                                        const smelt_guard *guard) {
    smelt_array *outputs[SMELT_MAX_BUFFERS] = {0};
    if (!function || !desc || !guard)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "guarded run: %s is NULL",
                    !function ? "function"
                    : !desc   ? "desc"
                              : "the guard");
    struct function_run run = {.function = function, .desc = desc};
    smelt_guard own = *guard;
    own.flags = 0;
    for (int b = 0; b < SMELT_MAX_BUFFERS; b++) {
        bool flags = b == guard->flags - 1;
        if ((!flags && !(guard->outputs >> b & 1)) || !desc->buffers[b].array) continue;
        if (flags) own.flags = run.count + 1;
        run.results[run.count++] = b;
    }
    smelt_status status = smelt_guard_run(&own, desc->device, run_function, &run, run.count, outputs);
    for (int i = 0; i < run.count; i++) smelt_array_release(outputs[i]);
    return status;
}
