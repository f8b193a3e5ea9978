#include "graph_run.h"
#include "commands.h"
#include "json.h"
#include "output.h"
#include "smelt/graph.h"
#include "summary.h"
#include "values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A compiled graph, its session, and its arrays: inputs as the graph orders them, borrowed; outputs. */
struct graph_session {
    const struct options *options;
    smelt_compiled *compiled;
    smelt_session *session;
    smelt_array **inputs, **outputs;
    int input_count, output_count;
    double seconds; /* the median of the executions */
};

static void print_shape(char *text, size_t size, const smelt_type *type) {
    int used = snprintf(text, size, "%s ", smelt_dtype_name(type->dtype));
    for (int d = 0; d < type->shape.ndim && used < (int)size; d++)
        used += snprintf(text + used, size - (size_t)used, "%s%lld", d ? "x" : "",
                         (long long)type->shape.size[d]);
}

/* ---- Names. */

static const char *input_name(const void *context, int index) {
    return smelt_compiled_input(context, index, NULL);
}

static const char *output_name(const void *context, int index) {
    return smelt_compiled_output(context, index, NULL);
}

static bool is_port(const smelt_compiled *compiled, const char *(*name_at)(const void *, int),
                    const char *kind, const char *name) {
    const char *one, *near;
    for (int i = 0; (one = name_at(compiled, i)); i++)
        if (strcmp(one, name) == 0) return true;
    near = nearest_word(name, name_at, compiled);
    if (!near) near = name_at(compiled, 0);
    return complain("%s '%s' does not exist in the graph; expected one like '%s'", kind, name,
                    near ? near : "");
}

static bool check_names(const struct graph_session *g) {
    const struct options *o = g->options;
    for (int i = 0; i < o->input_count; i++)
        if (!is_port(g->compiled, input_name, "input", o->input_names[i])) return false;
    for (int i = 0; i < o->output_count; i++)
        if (!is_port(g->compiled, output_name, "output", o->outputs[i].name)) return false;
    return true;
}

/* ---- Execution. */

static bool find_inputs(struct graph_session *g) {
    for (int i = 0; i < g->input_count; i++) {
        smelt_type type;
        char shape[400];
        const char *name = smelt_compiled_input(g->compiled, i, &type);
        for (int j = 0; j < g->options->input_count; j++)
            if (strcmp(g->options->input_names[j], name) == 0) g->inputs[i] = g->options->inputs[j];
        print_shape(shape, sizeof shape, &type);
        if (!g->inputs[i]) return complain("input '%s' (%s) is missing: -i %s=FILE.npy", name, shape, name);
    }
    return true;
}

static double now(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare_reals(const void *a, const void *b) {
    double p = *(const double *)a, q = *(const double *)b;
    return p < q ? -1 : p > q;
}

static void release_outputs(struct graph_session *g) {
    for (int i = 0; i < g->output_count; i++) {
        smelt_array_release(g->outputs[i]);
        g->outputs[i] = NULL;
    }
}

/* On a GPU an execution ends when its outputs are on the host. */
static smelt_status execute(struct graph_session *g) {
    release_outputs(g);
    smelt_status status = smelt_session_execute(
        g->session, &(smelt_execute_desc){.inputs = g->inputs, .input_count = g->input_count}, g->outputs);
    for (int i = 0; i < g->output_count && status == SMELT_OK; i++) {
        smelt_array *host;
        status = smelt_array_to(g->outputs[i], "cpu", NULL, &host);
        if (status != SMELT_OK) break;
        smelt_array_release(g->outputs[i]);
        g->outputs[i] = host;
    }
    return status;
}

static smelt_status execute_repeatedly(struct graph_session *g) {
    int64_t count = g->options->repeat;
    double *times = calloc((size_t)count, sizeof *times);
    if (!times) return SMELT_ERROR_OUT_OF_MEMORY;
    smelt_status status = SMELT_OK;
    /* The first execution compiles what has no code. */
    if (count > 1) status = execute(g);
    for (int64_t i = 0; i < count && status == SMELT_OK; i++) {
        double began = now();
        status = execute(g);
        times[i] = now() - began;
    }
    qsort(times, (size_t)count, sizeof *times, compare_reals);
    g->seconds = (times[count / 2] + times[(count - 1) / 2]) / 2;
    free(times);
    return status;
}

/* ---- Results. */

static int deliver_output(const struct graph_session *g, int index) {
    const char *name = smelt_compiled_output(g->compiled, index, NULL), *file = NULL;
    for (int i = 0; i < g->options->output_count; i++)
        if (strcmp(g->options->outputs[i].name, name) == 0) file = g->options->outputs[i].file;
    int written = EXIT_OK;
    if (file) {
        (void)fflush(stdout);
        written = output_write(g->outputs[index], file);
    }
    if (g->options->json) {
        if (index) printf(", ");
        summary_print_json(stdout, name, g->outputs[index]);
    } else if (!file) {
        summary_print(stdout, name, g->outputs[index]);
    }
    return written;
}

static int deliver(const struct graph_session *g) {
    int exit_status = EXIT_OK;
    if (g->options->json) {
        fputs("{\"median_s\": ", stdout);
        json_print_number(stdout, g->seconds);
        fputs(", \"outputs\": [", stdout);
    }
    for (int i = 0; i < g->output_count; i++) {
        int written = deliver_output(g, i);
        if (written != EXIT_OK) exit_status = written;
    }
    if (g->options->json)
        puts("]}");
    else if (g->options->repeat > 1)
        printf("median of %lld executions: %.4f ms\n", (long long)g->options->repeat, 1e3 * g->seconds);
    return exit_status;
}

static int run_session(struct graph_session *g) {
    g->input_count = smelt_compiled_input_count(g->compiled);
    g->output_count = smelt_compiled_output_count(g->compiled);
    g->inputs = calloc((size_t)g->input_count + 1, sizeof(smelt_array *));
    g->outputs = calloc((size_t)g->output_count + 1, sizeof(smelt_array *));
    if (!g->inputs || !g->outputs) return report(SMELT_ERROR_OUT_OF_MEMORY);
    if (!check_names(g) || !find_inputs(g)) return EXIT_KERNEL;
    smelt_status status = smelt_session_create(g->compiled, NULL, &g->session);
    if (status == SMELT_OK) status = execute_repeatedly(g);
    return status == SMELT_OK ? deliver(g) : report(status);
}

int graph_run(const struct options *options) {
    struct graph_session g = {.options = options};
    smelt_status status = smelt_compiled_load(options->source_path, &g.compiled);
    int exit_status = status == SMELT_OK ? run_session(&g) : report(status);
    if (g.outputs) release_outputs(&g);
    free(g.inputs);
    free(g.outputs);
    smelt_session_release(g.session);
    smelt_compiled_release(g.compiled);
    return exit_status;
}
