/* How accurate Metal's math library is here: measures, and writes the tables of docs/accuracy.md. */
#include "conversions.h"
#include "geometry.h"
#include "measure.h"
#include "packing.h"
#include "report.h"

#include "../prelude/support.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "measure_accuracy [--quick | --dense | --full] [--only FUNCTION] [--write FILE]   measure; fail if a bar "
    "is "
    "exceeded\n"
    "measure_accuracy --check FILE                                          does FILE list the functions "
    "there are?\n"
    "  --dense  one float in 16, and more tuples; --full: every float, which takes minutes a function; then\n"
    "           --only FUNCTION (or conversions, geometric, packing) measures one row of the tables\n"
    "  --write  puts the tables between the markers of FILE, in the place of those there\n";

int main(int count, char **arguments) {
    enum density density = QUICK;
    const char *only = NULL, *write = NULL, *check = NULL;
    for (int i = 1; i < count; i++) {
        bool value = i + 1 < count;
        if (!strcmp(arguments[i], "--full"))
            density = FULL;
        else if (!strcmp(arguments[i], "--quick"))
            density = QUICK;
        else if (!strcmp(arguments[i], "--dense"))
            density = DENSE;
        else if (!strcmp(arguments[i], "--only") && value)
            only = arguments[++i];
        else if (!strcmp(arguments[i], "--write") && value)
            write = arguments[++i];
        else if (!strcmp(arguments[i], "--check") && value)
            check = arguments[++i];
        else {
            fputs(usage, stderr);
            return 2;
        }
    }
    struct table others[OTHER_TABLES] = {{"conversions", conversion_rows, NULL},
                                         {"truncations", truncation_rows, NULL},
                                         {"geometric", geometry_rows, NULL},
                                         {"packing", packing_rows, NULL}};
    if (check) return report_check(check, others) ? 0 : 1;
    mallopt(M_MMAP_THRESHOLD, 1 << 30), mallopt(M_TRIM_THRESHOLD, 1 << 30); /* arrays keep their pages */
    struct measurements(*measurements)[TYPES] = calloc((size_t)accuracy_function_count, sizeof *measurements);
    struct body conversions = {0}, truncations = {0}, geometric = {0}, packing = {0};
    if (!measurements) abort();
    measure_all(density, only, measurements);
    if (!only || !strcmp(only, "conversions")) measure_conversions(density, &conversions, &truncations);
    if (!only || !strcmp(only, "geometric")) measure_geometry(density, &geometric);
    if (!only || !strcmp(only, "packing")) measure_packing(density, &packing);
    others[0].text = conversions.text, others[1].text = truncations.text, others[2].text = geometric.text;
    others[3].text = packing.text;
    if (write)
        report_write(write, measurements, others);
    else
        report_print(measurements, others);
    free(measurements);
    body_free(&conversions), body_free(&truncations), body_free(&geometric), body_free(&packing);
    if (failures) fprintf(stderr, "%d checks failed\n", failures);
    return failures != 0;
}
