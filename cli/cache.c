/* smelt cache: the folder of compiled kernels, how full it is, and emptying it. */
#include "commands.h"

#include <stdio.h>

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

static const struct option options[] = {
    {"--clear", NULL,
     "remove every entry, but not results of tuning (smelt tune --forget); running\nprocesses are not "
     "affected",
     OPTION_FLAG, .offset = 0},
    {0},
};

const struct command cache_command = {
    .name = "cache",
    .summary = "show or clear the cache of compiled kernels",
    .usage = "smelt cache [--clear]\n\n"
             "Prints the folder of compiled kernels, the number of entries and their bytes.\n",
    .examples = "The folder is SMELT_CACHE_DIR, else XDG_CACHE_HOME/smelt, else ~/.cache/smelt.\n",
    .options = {options},
    .width = 10,
};

int command_cache(int count, char **arguments) {
    bool clear = false;
    enum parsed parsed = parse_options(&cache_command, count, arguments, &clear);
    if (parsed == PARSED_HELP) print_command_help(&cache_command);
    if (parsed != PARSED) return parsed == PARSED_HELP ? EXIT_OK : EXIT_USAGE;
    return clear ? report(smelt_cache_clear()) : print_usage();
}
