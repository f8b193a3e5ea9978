/* smelt devices: what kernels can run on here. */
#include "commands.h"

#include <stdio.h>

const struct command devices_command = {
    .name = "devices",
    .summary = "list the devices of this machine",
    .usage = "smelt devices\n\n"
             "Lists the devices that --device accepts, one per line, with a description or the reason why it "
             "cannot be\n"
             "used. The number of threads is SMELT_THREADS, or the number of CPUs this process may use.",
};

int command_devices(int count, char **arguments) {
    enum parsed parsed = parse_options(&devices_command, count, arguments, NULL);
    if (parsed == PARSED_HELP) print_command_help(&devices_command);
    if (parsed != PARSED) return parsed == PARSED_HELP ? EXIT_OK : EXIT_USAGE;
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
