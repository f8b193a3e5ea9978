/* smelt tune: the fastest settings of a shipped operation, or of the user's kernel. */
#include "commands.h"
#include "json.h"
#include "session.h"
#include "tune_options.h"
#include "values.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Ctrl-C. */

static smelt_interrupt *interrupt;

static void stop(int signal) {
    (void)signal;
    smelt_interrupt_raise(interrupt); // NOLINT(bugprone-signal-handler): made for it (smelt.h)
}

/* ---- What is shown. */

struct table {
    const struct options *options;
    const struct tune_options *tune;
    bool began;
};

static void show(const smelt_tune_progress *now, void *context) {
    struct table *table = context;
    bool terminal = isatty(STDERR_FILENO);
    if (terminal) fputs("\r\033[K", stderr);
    if (!table->options->json) {
        if (!table->began) printf("%-30s %12s\n", "candidate", "ms");
        if (now->note)
            printf("%-30s %12s  %s\n", now->candidate, "skipped", now->note);
        else
            printf("%-30s %12.4f\n", now->candidate, 1e3 * now->seconds);
        (void)fflush(stdout);
    }
    table->began = true;
    if (terminal && now->tried < now->count)
        fprintf(stderr, "smelt: tuning: %d of %d, best %.4g ms", now->tried, now->count,
                1e3 * now->best_seconds);
}

static void print_json(const char *name, const char *choice, const smelt_tune_result *result) {
    fputs("{\"name\": ", stdout);
    json_print_string(stdout, name);
    fputs(", \"choice\": ", stdout);
    json_print_string(stdout, choice);
    fputs(", \"median_s\": ", stdout);
    if (result->stored)
        fputs("null", stdout);
    else
        json_print_number(stdout, result->seconds);
    printf(", \"stored\": %s}\n", result->stored ? "true" : "false");
}

static void print_choice(const struct options *o, const char *name, const char *choice,
                         const smelt_tune_result *result) {
    if (o->json)
        print_json(name, choice, result);
    else if (result->stored)
        printf("%s: %s (stored before; --again searches)\n", name, choice);
    else
        printf("%s: %s (%.4f ms)\n", name, choice, 1e3 * result->seconds);
}

/* ---- Operations. */

static int count_numbers(const char *words) {
    int count = 1;
    for (; *words; words++) count += *words == ',';
    return count;
}

static const char *sizes_of(const char *operation) {
    const char *name, *sizes = "";
    for (int i = 0; (name = smelt_tune_operation_name(i, &sizes)); i++)
        if (strcmp(name, operation) == 0) return sizes;
    return "";
}

/* One number stands for all of them. */
static bool set_sizes(smelt_tune_job *job, const int64_t *sizes, int numbers) {
    const char *words = sizes_of(job->operation);
    int count = count_numbers(words);
    if (numbers != 1 && numbers != count)
        return complain("--sizes has an entry of %d numbers, expected 1 or %d: %s", numbers, count, words);
    for (int i = 0; i < count; i++) job->sizes[i] = numbers == 1 ? sizes[0] : sizes[i];
    return true;
}

static int tune_operation(const struct options *o) {
    static const struct tune_options usual = {.sizes = {{1024}}, .size_numbers = {1}, .size_count = 1};
    struct tune_options tune = o->tune ? *o->tune : usual;
    if (!tune.size_count) tune.sizes[0][0] = 1024, tune.size_numbers[0] = tune.size_count = 1;
    for (int i = 0; i < tune.size_count; i++) {
        struct table table = {.options = o};
        smelt_tune_job job = {.operation = o->operation,
                              .device = o->device,
                              .dtype = tune.dtype ? tune.dtype : SMELT_FLOAT32,
                              .progress = show,
                              .context = &table,
                              .budget = tune.budget,
                              .again = tune.again,
                              .interrupt = interrupt};
        char *words, name[120];
        smelt_tune_result result;
        if (!set_sizes(&job, tune.sizes[i], tune.size_numbers[i])) return EXIT_USAGE;
        smelt_status status = smelt_tune_operation(&job, &words, &result);
        if (status != SMELT_OK) return report(status);
        int length = snprintf(name, sizeof name, "%s %s ", o->operation, smelt_dtype_name(job.dtype));
        for (int d = 0; d < count_numbers(sizes_of(o->operation)); d++)
            length += snprintf(name + length, sizeof name - (size_t)length, "%s%" PRId64, d ? "x" : "",
                               job.sizes[d]);
        print_choice(o, name, words, &result);
        smelt_free(words);
    }
    return EXIT_OK;
}

/* ---- Kernels. */

static int parameter_named(const struct tune_options *tune, const char *name) {
    for (int i = 0; i < tune->space_count; i++)
        if (strcmp(tune->spaces[i].name, name) == 0) return i;
    return -1;
}

/* Which parameters divide --groups. */
static bool find_divisors(const struct options *o, struct tune_options *tune) {
    for (int d = 0; d < 3; d++) {
        const char *name = tune->divide_names[d];
        tune->divide[d] = -1;
        if (!*name || strcmp(name, "-") == 0) continue;
        tune->divide[d] = parameter_named(tune, name);
        if (tune->divide[d] < 0) return complain("--divide names '%s', which has no --space", name);
        for (int i = 0; i < tune->spaces[tune->divide[d]].count; i++)
            if (tune->spaces[tune->divide[d]].values[i] < 1)
                return complain("--divide names '%s', which has the value %" PRId64 "; expected 1 or more",
                                name, tune->spaces[tune->divide[d]].values[i]);
        if (!o->groups[0]) return complain("--divide needs --groups, as in --groups 1024");
    }
    return true;
}

static void divide_groups(const int64_t *values, void *desc, void *context) {
    const struct table *table = context;
    smelt_dispatch_desc *dispatch = desc;
    for (int d = 0; d < 3; d++) {
        int by = table->tune->divide[d];
        if (by >= 0) dispatch->groups[d] = (dispatch->groups[d] + values[by] - 1) / values[by];
    }
}

/* The output with this name or index: its place in `expected`; -1: there is none. */
static int output_named(const struct options *o, const char *name) {
    for (int i = 0; i < o->output_count; i++) {
        char index[16];
        snprintf(index, sizeof index, "%d", o->outputs[i].index);
        if (o->body ? strcmp(o->outputs[i].name, name) == 0 : strcmp(index, name) == 0)
            return o->body ? i : o->outputs[i].index;
    }
    return -1;
}

static int read_expected(const struct options *o, smelt_array *expected[SMELT_MAX_BUFFERS]) {
    for (int i = 0; i < o->tune->expected_count; i++) {
        const char *name = o->tune->expected[i].name;
        int at = output_named(o, name);
        if (at < 0) {
            complain("--expect names '%s', which is not an output", name);
            return EXIT_USAGE;
        }
        if (expected[at]) {
            complain("--expect names '%s' twice", name);
            return EXIT_USAGE;
        }
        if (smelt_array_read_npy(o->tune->expected[i].path, SMELT_NO_DTYPE, &expected[at]) != SMELT_OK) {
            report(SMELT_ERROR_FORMAT);
            return EXIT_USAGE;
        }
    }
    return EXIT_OK;
}

/* The choice as options of `smelt run`. */
static void words_of(const struct options *o, const int64_t *values, char *words, size_t size) {
    size_t length = 0;
    for (int i = 0; i < o->tune->space_count; i++) {
        const char *name = o->tune->spaces[i].name;
        bool threads = strcmp(name, "threads") == 0;
        length += (size_t)snprintf(words + length, size - length, "%s%s ", i ? " " : "",
                                   threads   ? "--threadgroup"
                                   : o->body ? "-t"
                                             : "--constant");
        if (!threads) length += (size_t)snprintf(words + length, size - length, "%s=", name);
        length += (size_t)snprintf(words + length, size - length, "%" PRId64, values[i]);
        if (threads && (o->threadgroup[1] > 1 || o->threadgroup[2] > 1))
            length += (size_t)snprintf(words + length, size - length, ",%" PRId64 ",%" PRId64,
                                       o->threadgroup[1] ? o->threadgroup[1] : 1,
                                       o->threadgroup[2] ? o->threadgroup[2] : 1);
    }
    for (int d = 0; d < 3 && o->groups[0]; d++) {
        int by = o->tune->divide[d];
        int64_t groups = o->groups[d] ? o->groups[d] : 1;
        length += (size_t)snprintf(words + length, size - length, "%s%" PRId64, d ? "," : " --groups ",
                                   by < 0 ? groups : (groups + values[by] - 1) / values[by]);
    }
}

static smelt_status search(const struct options *o, struct session *s, const smelt_tune_space *space,
                           int64_t *values, smelt_tune_result *result) {
    if (s->kernel) {
        s->run.interrupt = interrupt;
        return smelt_tune_kernel(s->kernel, &s->run, space, values, result);
    }
    smelt_function_desc function = {.name = o->function};
    memcpy(function.constants, o->constants, sizeof function.constants);
    s->dispatch.interrupt = interrupt;
    return smelt_tune_function(s->library, &function, &s->dispatch, space, values, result);
}

/* The values of a space's constants, so that a function that requires them can be created. */
static void set_first_values(struct options *o) {
    for (int i = 0; i < o->tune->space_count && o->constant_count < SMELT_MAX_CONSTANTS - 1; i++)
        if (strcmp(o->tune->spaces[i].name, "threads") != 0)
            o->constants[o->constant_count++] =
                (smelt_constant){.name = o->tune->spaces[i].name,
                                 .dtype = SMELT_INT32,
                                 .value.integer = o->tune->spaces[i].values[0]};
}

static int tune_kernel(struct options *o) {
    if (!o->tune || !o->tune->space_count) {
        complain("--space is missing, as in --space TILE=8,16,32");
        return EXIT_USAGE;
    }
    if (!find_divisors(o, o->tune)) return EXIT_USAGE;
    struct table table = {.options = o, .tune = o->tune};
    smelt_tune_space space = {.tolerance = o->tune->tolerance,
                              .adapt = o->groups[0] ? divide_groups : NULL,
                              .progress = show,
                              .context = &table,
                              .budget = o->tune->budget,
                              .again = o->tune->again};
    for (int i = 0; i < o->tune->space_count; i++)
        space.parameters[i] = (smelt_tune_parameter){o->tune->spaces[i].name, o->tune->spaces[i].values,
                                                     o->tune->spaces[i].count};
    struct session session = {0};
    int64_t values[SMELT_MAX_TUNE_PARAMETERS];
    smelt_tune_result result;
    char words[2048];
    int exit_status = read_expected(o, space.expected);
    if (exit_status == EXIT_OK && !o->body) set_first_values(o);
    if (exit_status == EXIT_OK) {
        smelt_status status = session_open(o, &session);
        if (status == SMELT_OK) status = search(o, &session, &space, values, &result);
        exit_status = report(status);
    }
    if (exit_status == EXIT_OK) {
        words_of(o, values, words, sizeof words);
        print_choice(o, o->body ? o->name : o->function ? o->function : o->source_label, words, &result);
    }
    session_close(&session);
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) smelt_array_release(space.expected[i]);
    return exit_status;
}

/* ---- Stored results. */

static void print_entry(const smelt_tune_entry *entry, void *context) {
    (void)context;
    printf("%s: %s: %s, %.4g ms%s\n", entry->name, entry->key, entry->choice, 1e3 * entry->seconds,
           entry->here ? "" : " (another machine or version)");
}

static int tune(struct options *o) {
    if (o->tune && o->tune->list) return report(smelt_tune_list(print_entry, NULL));
    if (o->tune && o->tune->forget) return report(smelt_tune_forget());
    smelt_status status = smelt_interrupt_create(&interrupt);
    if (status != SMELT_OK) return report(status);
    (void)signal(SIGINT, stop);
    int exit_status = o->operation ? tune_operation(o) : tune_kernel(o);
    (void)signal(SIGINT, SIG_DFL);
    return exit_status;
}

int command_tune(int count, char **arguments) {
    struct options options;
    /* Measured is the best code. */
    (void)setenv("SMELT_TIERS", "0", 0);
    int exit_status = options_parse(&tune_command, count, arguments, &options);
    if (exit_status == EXIT_OK && options.help)
        print_command_help(&tune_command);
    else if (exit_status == EXIT_OK)
        exit_status = tune(&options);
    options_free(&options);
    return exit_status;
}
