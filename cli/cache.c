/* smelt cache: the folder of compiled kernels, how full it is, and emptying it. */
#include "commands.h"
#include "values.h"

#include <stdio.h>
#include <string.h>

static int print_usage(void) {
    uint64_t entries, bytes;
    const char *folder = smelt_cache_path();
    if (!folder) return report(SMELT_ERROR_IO);
    /* The path lives in the library; the count comes first, as it may fail. */
    smelt_status status = smelt_cache_usage(&entries, &bytes);
    if (status != SMELT_OK) return report(status);
    printf("folder   %s\nentries  %llu\nbytes    %llu", folder, (unsigned long long)entries,
           (unsigned long long)bytes);
    if (bytes >= 1 << 20) printf(" (%.1f MiB)", (double)bytes / (1 << 20));
    putchar('\n');
    return EXIT_OK;
}

int command_cache(int count, char **arguments) {
    bool clear = false;
    for (int i = 0; i < count; i++) {
        if (is_help(arguments[i])) {
            printf("usage: smelt cache [--clear]\n\n"
                   "Prints the folder of compiled kernels, the number of entries and their bytes.\n\n"
                   "  --clear    remove every entry; running processes are not disturbed\n\n"
                   "The folder is SMELT_CACHE_DIR, else XDG_CACHE_HOME/smelt, else ~/.cache/smelt.\n");
            return EXIT_OK;
        }
        if (strcmp(arguments[i], "--clear") != 0) {
            complain("argument '%s' is unknown; see smelt cache --help", arguments[i]);
            return EXIT_USAGE;
        }
        clear = true;
    }
    return clear ? report(smelt_cache_clear()) : print_usage();
}
