/* smelt run: a kernel from a body or a whole file, over arrays named on the command line. */
#include "bound.h"
#include "commands.h"
#include "graph_run.h"
#include "json.h"
#include "options.h"
#include "output.h"
#include "session.h"
#include "summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With --verbose, also what is not a warning: that a kernel runs on the scalar engine, and why. */
static void print_log(smelt_log_level level, const char *line, void *context) {
    (void)context;
    fprintf(stderr, "smelt: %s%s\n", level == SMELT_LOG_WARNING ? "warning: " : "", line);
}

static void print_info(const struct options *o, const smelt_run_info *info) {
    if (!o->verbose) return;
    fprintf(
        stderr, "ran on %s: %llu x %llu x %llu threads in %llu x %llu x %llu groups of %u x %u x %u, %.3f ms",
        info->device, (unsigned long long)info->threads[0], (unsigned long long)info->threads[1],
        (unsigned long long)info->threads[2], (unsigned long long)info->groups[0],
        (unsigned long long)info->groups[1], (unsigned long long)info->groups[2], info->threads_per_group[0],
        info->threads_per_group[1], info->threads_per_group[2], 1e3 * info->seconds);
    if (info->threadgroup_bytes)
        fprintf(stderr, ", %llu bytes of threadgroup memory", (unsigned long long)info->threadgroup_bytes);
    if (info->quick) fputs(", with quick code", stderr);
    if (info->compile_seconds > 0)
        fprintf(stderr, "; %s in %.1f ms",
                !info->cache_hit  ? "compiled"
                : o->package_size ? "loaded without compiling"
                                  : "loaded from the cache",
                1e3 * info->compile_seconds);
    fputc('\n', stderr);
}

static int compare_reals(const void *a, const void *b) {
    double p = *(const double *)a, q = *(const double *)b;
    return p < q ? -1 : p > q;
}

/* Runs --repeat times; *seconds is the median. `info` comes with what was compiled before. */
static smelt_status run_repeatedly(struct session *session, const struct options *o, smelt_run_info *info,
                                   double *seconds) {
    double *times = calloc((size_t)o->repeat, sizeof *times);
    if (!times) return SMELT_ERROR_OUT_OF_MEMORY;
    smelt_status status = SMELT_OK;
    for (int64_t i = 0; i < o->repeat && status == SMELT_OK; i++) {
        smelt_run_info one;
        status = i + 1 < o->repeat ? session_run(session, &one) : session_run_last(session, &one);
        if (status != SMELT_OK) break;
        times[i] = one.seconds;
        if (i > 0) continue;
        if (info->compile_seconds > 0 && one.compile_seconds == 0) {
            one.compile_seconds = info->compile_seconds;
            one.cache_hit = info->cache_hit;
        }
        *info = one;
    }
    if (status == SMELT_OK) {
        qsort(times, (size_t)o->repeat, sizeof *times, compare_reals);
        *seconds = (times[o->repeat / 2] + times[(o->repeat - 1) / 2]) / 2;
    }
    free(times);
    return status;
}

static void print_timing(const struct options *o, double seconds) {
    if (o->repeat == 1 && o->bytes_moved == 0 && o->flops == 0) return;
    printf("median of %lld runs: %.4f ms", (long long)o->repeat, 1e3 * seconds);
    if (o->bytes_moved > 0) printf(", %.2f GB/s", o->bytes_moved / seconds * 1e-9);
    if (o->flops > 0) printf(", %.2f GFLOP/s", o->flops / seconds * 1e-9);
    putchar('\n');
}

static void print_json_head(const struct options *o, const smelt_run_info *info, double seconds) {
    fputs("{\"device\": ", stdout);
    json_print_string(stdout, info->device);
    fputs(", \"median_s\": ", stdout);
    json_print_number(stdout, seconds);
    fputs(", \"compile_s\": ", stdout);
    json_print_number(stdout, info->compile_seconds);
    printf(", \"cache_hit\": %s, \"quick\": %s", info->cache_hit ? "true" : "false",
           info->quick ? "true" : "false");
    if (o->bytes_moved > 0) {
        fputs(", \"gb_per_s\": ", stdout);
        json_print_number(stdout, o->bytes_moved / seconds * 1e-9);
    }
    if (o->flops > 0) {
        fputs(", \"gflop_per_s\": ", stdout);
        json_print_number(stdout, o->flops / seconds * 1e-9);
    }
    fputs(", \"outputs\": [", stdout);
}

static int deliver_output(const struct options *o, int index, const smelt_array *array) {
    const struct output_option *option = &o->outputs[index];
    char name[32];
    int written = EXIT_OK;
    snprintf(name, sizeof name, "buffer %d", option->index);
    if (option->file) {
        /* The file may be standard output: what was printed so far comes first. */
        (void)fflush(stdout);
        written = output_write(array, option->file);
    }
    if (o->json) {
        if (index) printf(", ");
        summary_print_json(stdout, option->name ? option->name : name, array);
    } else if (!option->file) {
        summary_print(stdout, option->name ? option->name : name, array);
    }
    return written;
}

/* Writes output files and prints the rest. */
static int deliver(const struct session *session, const struct options *o, const smelt_run_info *info,
                   double seconds) {
    int exit_status = EXIT_OK;
    if (o->json) print_json_head(o, info, seconds);
    for (int i = 0; i < o->output_count; i++) {
        smelt_array *array;
        smelt_status status = session_output(session, o, i, &array);
        if (status != SMELT_OK) return report(status);
        int delivered = deliver_output(o, i, array);
        if (delivered != EXIT_OK) exit_status = delivered;
        smelt_array_release(array);
    }
    if (o->json)
        printf("]}\n");
    else
        print_timing(o, seconds);
    return exit_status;
}

/* From the reading of the source to the delivery of what came out. */
static int run(const struct options *o) {
    if (o->graph) return graph_run(o);
    struct session session;
    smelt_run_info info = {.seconds = 0};
    double seconds = 0;
    smelt_status status = session_open(o, &session);
    if (status == SMELT_OK && o->verbose) session_print_source(&session, stderr);
    int exit_status = status == SMELT_OK ? bound_check(&session, &info) : report(status);
    if (exit_status == EXIT_OK) {
        status = run_repeatedly(&session, o, &info, &seconds);
        if (status == SMELT_OK) print_info(o, &info);
        exit_status = status == SMELT_OK ? deliver(&session, o, &info, seconds) : report(status);
    }
    session_close(&session);
    return exit_status;
}

/* What is timed is the best code. */
static void choose_code(const struct options *o) {
    if (o->repeat > 1 || o->bytes_moved > 0 || o->flops > 0) (void)setenv("SMELT_TIERS", "0", 0);
}

/* The trace is written whatever the run came to. */
static int run_traced(const struct options *o) {
    smelt_status status = smelt_trace_start(o->trace);
    if (status != SMELT_OK) return report(status);
    int exit_status = run(o);
    status = smelt_trace_stop();
    int written = status == SMELT_OK ? EXIT_OK : report(status);
    return exit_status == EXIT_OK ? written : exit_status;
}

int command_run(int count, char **arguments) {
    struct options options;
    int exit_status = options_parse(&run_command, count, arguments, &options);
    if (exit_status == EXIT_OK && options.help) {
        print_command_help(&run_command);
    } else if (exit_status == EXIT_OK) {
        if (options.verbose) smelt_set_log(print_log, NULL);
        choose_code(&options);
        exit_status = options.trace ? run_traced(&options) : run(&options);
    }
    options_free(&options);
    return exit_status;
}
