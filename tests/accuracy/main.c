/* How accurate Metal's math library is here: measures, and writes the tables of docs/accuracy.md. */
#include "conversions.h"
#include "geometry.h"
#include "gpu_columns.h"
#include "measure.h"
#include "packing.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "measure_accuracy [--sample | --quick | --dense | --full] [--only FUNCTION] [--write FILE]   measure; "
    "fail if a bar is exceeded\n"
    "measure_accuracy --device cuda [--results FILE] …                        the same on a GPU\n"
    "measure_accuracy --write FILE --gpu-results FILE                         put a GPU's figures into FILE\n"
    "measure_accuracy --check FILE                                            does FILE list the functions "
    "there are?\n"
    "  --sample   fewer modes and widths, unless SMELT_TEST_FULL is set\n"
    "  --dense    one float in 16, and more tuples; --full: every float, which takes minutes a function; "
    "then\n"
    "             --only FUNCTION (or functions, conversions, geometric, packing) measures one row of the "
    "tables\n"
    "  --write    puts the tables between the markers of FILE, in the place of those there\n"
    "  --device   what is measured (default cpu); cpu is compared with cpu-scalar, all others with cpu\n"
    "  --results  writes the GPU's columns to FILE, for --gpu-results on the machine with the document\n";

struct options {
    enum density density;
    bool sampled;
    const char *only, *write, *check, *device, *results, *gpu_results;
};

static bool read_options(int count, char **arguments, struct options *options) {
    const struct {
        const char *name;
        const char **value;
    } named[] = {{"--only", &options->only},       {"--write", &options->write},
                 {"--check", &options->check},     {"--device", &options->device},
                 {"--results", &options->results}, {"--gpu-results", &options->gpu_results}};
    static const char *const densities[] = {[QUICK] = "--quick", [DENSE] = "--dense", [FULL] = "--full"};
    for (int i = 1; i < count; i++) {
        bool known = !strcmp(arguments[i], "--sample");
        if (known) options->sampled = !getenv("SMELT_TEST_FULL");
        for (int d = QUICK; d <= FULL; d++)
            if (!strcmp(arguments[i], densities[d])) options->density = (enum density)d, known = true;
        for (size_t k = 0; !known && k < sizeof named / sizeof *named; k++)
            if (!strcmp(arguments[i], named[k].name) && i + 1 < count)
                *named[k].value = arguments[++i], known = true;
        if (!known) return false;
    }
    bool gpu = strncmp(options->device, "cpu", 3) != 0;
    return !(options->gpu_results && !options->write) && !(gpu && options->write);
}

static bool wanted(const char *only, const char *name) {
    return !only || !strcmp(only, name);
}

int main(int count, char **arguments) {
    struct options options = {.density = QUICK, .device = "cpu"};
    if (!read_options(count, arguments, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    struct engines engines = {{options.device, strcmp(options.device, "cpu") ? "cpu" : "cpu-scalar"},
                              .sampled = options.sampled};
    struct table others[OTHER_TABLES] = {{"conversions", conversion_rows, NULL},
                                         {"truncations", truncation_rows, NULL},
                                         {"geometric", geometry_rows, NULL},
                                         {"packing", packing_rows, NULL}};
    if (options.check) return report_check(options.check, others) ? 0 : 1;
    mallopt(M_MMAP_THRESHOLD, 1 << 30), mallopt(M_TRIM_THRESHOLD, 1 << 30); /* arrays keep their pages */
    struct measurements(*measurements)[TYPES] = calloc((size_t)accuracy_function_count, sizeof *measurements);
    struct body conversions = {0}, truncations = {0}, geometric = {0}, packing = {0};
    if (!measurements) abort();
    const char *only = options.only;
    if (!options.gpu_results) { /* else nothing is measured */
        bool all = !only || !strcmp(only, "functions");
        measure_all(&engines, options.density, all ? NULL : only, measurements);
        if (wanted(only, "conversions"))
            measure_conversions(&engines, options.density, &conversions, &truncations);
        if (wanted(only, "geometric")) measure_geometry(&engines, options.density, &geometric);
        if (wanted(only, "packing")) measure_packing(&engines, options.density, &packing);
    }
    others[0].text = conversions.text, others[1].text = truncations.text, others[2].text = geometric.text;
    others[3].text = packing.text;
    if (options.write)
        report_write(options.write, &engines, measurements, others, options.gpu_results);
    else if (!options.results)
        report_print(&engines, measurements, others);
    if (options.results) gpu_columns_write(options.results, &engines, measurements, others);
    free(measurements);
    body_free(&conversions), body_free(&truncations), body_free(&geometric), body_free(&packing);
    if (failures) fprintf(stderr, "%d checks failed\n", failures);
    return failures != 0;
}
