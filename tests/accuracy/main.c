/* How accurate Metal's math library is here. measure_accuracy [--full] [--only FUNCTION] [--write FILE] [--check
 * FILE] */
#include "measure.h"
#include "report.h"

#include "../prelude/support.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "measure_accuracy [--quick | --full] [--only FUNCTION] [--write FILE]   measure; fail if a bar is exceeded\n"
    "measure_accuracy --check FILE                                          does FILE list the functions there are?\n"
    "  --full   sweeps every float, and more tuples (an hour); --only FUNCTION with it: one row of the "
    "tables\n"
    "  --write  puts the tables between the markers of FILE, in the place of those there\n";

int main(int count, char **arguments) {
    bool full = false;
    const char *only = NULL, *write = NULL, *check = NULL;
    for (int i = 1; i < count; i++) {
        bool value = i + 1 < count;
        if (!strcmp(arguments[i], "--full"))
            full = true;
        else if (!strcmp(arguments[i], "--quick"))
            full = false;
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
    if (check) return report_check(check) ? 0 : 1;
    mallopt(M_MMAP_THRESHOLD, 1 << 30), mallopt(M_TRIM_THRESHOLD, 1 << 30); /* arrays keep their pages */
    struct measurements(*measurements)[TYPES] = calloc((size_t)accuracy_function_count, sizeof *measurements);
    if (!measurements) abort();
    measure_all(full, only, measurements);
    if (write)
        report_write(write, measurements);
    else
        report_print(measurements);
    free(measurements);
    if (failures) fprintf(stderr, "%d checks failed\n", failures);
    return failures != 0;
}
