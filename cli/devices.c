/* smelt devices: what kernels can run on here. */
#include "commands.h"
#include "values.h"

#include <stdio.h>
#include <string.h>

int command_devices(int count, char **arguments) {
    if (count == 1 && is_help(arguments[0])) {
        printf("usage: smelt devices\n\n"
               "Lists the devices that --device may name: one a line with a description, and why it cannot "
               "be used\n"
               "where that is so. The number of threads is that of SMELT_THREADS, or of the CPUs this "
               "process may use.\n");
        return EXIT_OK;
    }
    if (count) {
        complain("argument '%s' is one too many; see smelt devices --help", arguments[0]);
        return EXIT_USAGE;
    }
    const char *reason = "";
    for (int i = 0; smelt_device_name(i, &reason); i++) {
        const char *name = smelt_device_name(i, NULL);
        const char *description = smelt_device_description(name);
        int threads = smelt_device_threads(name);
        printf("%-12s %s", name, description ? description : "");
        if (threads) printf(", %d thread%s", threads, threads == 1 ? "" : "s");
        if (reason && *reason) printf("%s(not usable: %s)", description ? " " : "", reason);
        putchar('\n');
    }
    return EXIT_OK;
}
