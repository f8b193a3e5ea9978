#include "demo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int done, wrong;

void require(smelt_status status, const char *what) {
    if (status == SMELT_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, smelt_status_name(status), smelt_error());
    exit(1);
}

void *require_memory(void *memory) {
    if (memory) return memory;
    fprintf(stderr, "out of memory\n");
    exit(1);
}

/* "512x384": without the ones at the end. */
static void format_extent(char *text, size_t size, const uint64_t extent[3]) {
    unsigned long long x = extent[0], y = extent[1], z = extent[2];
    if (z > 1)
        snprintf(text, size, "%llux%llux%llu", x, y, z);
    else if (y > 1)
        snprintf(text, size, "%llux%llu", x, y);
    else
        snprintf(text, size, "%llu", x);
}

void report(const char *step, const smelt_run_info *info, double error, double allowed) {
    bool right = error <= allowed;
    if (!done)
        printf("%-33s %-6s %-10s %-16s %9s %9s  %-8s %-8s\n", "step", "device", "threads", "groups of",
               "compile", "run", "error", "allowed");
    done++;
    wrong += !right;
    if (info) {
        char threads[64], groups[64], size[64], both[132], compile[32] = "ready";
        uint64_t group[3] = {info->threads_per_group[0], info->threads_per_group[1],
                             info->threads_per_group[2]};
        format_extent(threads, sizeof threads, info->threads);
        format_extent(groups, sizeof groups, info->groups);
        format_extent(size, sizeof size, group);
        snprintf(both, sizeof both, "%s of %s", groups, size);
        if (info->compile_seconds > 0)
            snprintf(compile, sizeof compile, "%.1f ms%s", 1e3 * info->compile_seconds,
                     info->cache_hit ? "*" : "");
        printf("%-33s %-6s %-10s %-16s %9s %6.1f ms  %-8.1e %-8.0e %s\n", step, info->device, threads, both,
               compile, 1e3 * info->seconds, error, allowed, right ? "ok" : "WRONG");
    } else {
        printf("%-33s %-6s %-10s %-16s %9s %9s  %-8.1e %-8.0e %s\n", step, "", "", "", "", "", error, allowed,
               right ? "ok" : "WRONG");
    }
    fflush(stdout);
}

int steps_done(void) {
    return done;
}
int steps_wrong(void) {
    return wrong;
}

double *values_of(const smelt_array *array) {
    smelt_array *wide;
    require(smelt_array_convert(array, SMELT_FLOAT64, &wide), "conversion to float64");
    size_t bytes = (size_t)smelt_array_size(array) * sizeof(double);
    double *values = require_memory(malloc(bytes));
    memcpy(values, smelt_array_data(wide), bytes);
    smelt_array_release(wide);
    return values;
}

double largest_error(const smelt_array *actual, const double *expected) {
    double *values = values_of(actual), worst = 0;
    for (int64_t i = 0; i < smelt_array_size(actual); i++) {
        double error = fabs(values[i] - expected[i]);
        if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
    }
    free(values);
    return worst;
}
