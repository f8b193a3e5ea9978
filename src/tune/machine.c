#include "tune/machine.h"
#include "device/device.h"

#include <stdio.h>
#include <string.h>

static void add_line(struct hasher *hasher, const char *line) {
    static const char *const wanted[] = {"model name", "flags", "Features", "CPU part"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (strncmp(line, wanted[i], strlen(wanted[i])) == 0) hasher_add_string(hasher, line);
}

/* The first processor; none where the file is missing. */
static void add_processor(struct hasher *hasher) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[8192];
    if (!file) return;
    while (fgets(line, sizeof line, file) && *line != '\n') add_line(hasher, line);
    fclose(file);
}

smelt_status tune_machine(const char *device, char fingerprint[HASH_HEX_LENGTH + 1]) {
    if (!device) device = "cpu";
    /* "cuda" is another name of "cuda:0". */
    const struct device *found;
    TRY(device_find(device, &found));
    device = found->name;
    struct hasher *hasher = hasher_create();
    if (!hasher) return fail_out_of_memory(1);
    hasher_add_string(hasher, smelt_version());
    hasher_add_string(hasher, device);
    hasher_add_string(hasher, found->description);
    hasher_add_integer(hasher, smelt_device_threads(device));
    hasher_add_integer(hasher, smelt_device_vector_bits(device));
    hasher_add_integer(hasher, smelt_device_driver_version(device));
    if (strncmp(device, "cpu", 3) == 0) add_processor(hasher);
    hash_hex(hasher_finish(hasher), fingerprint);
    return SMELT_OK;
}
