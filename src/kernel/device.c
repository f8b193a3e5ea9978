#include "kernel/device.h"

#include <string.h>

/* Every device there can be. */
static const struct device *const devices[] = {&cpu_device, &cpu_scalar_device};
#define DEVICE_COUNT ((int)(sizeof devices / sizeof *devices))

smelt_status device_find(const char *name, const struct device **device) {
    for (int i = 0; i < DEVICE_COUNT; i++) {
        if (strcmp(devices[i]->name, name ? name : "cpu") != 0) continue;
        *device = devices[i];
        return SMELT_OK;
    }
    return fail(SMELT_ERROR_NO_DEVICE,
                "device '%s' does not exist on this machine; there are: cpu, cpu-scalar", name);
}

const char *smelt_device_name(int index, const char **reason) {
    if (index < 0 || index >= DEVICE_COUNT) return NULL;
    if (reason) *reason = "";
    return devices[index]->name;
}

const char *smelt_device_description(const char *name) {
    const struct device *device;
    return name && device_find(name, &device) == SMELT_OK ? device->description : NULL;
}

int smelt_device_threads(const char *name) {
    const struct device *device;
    return name && device_find(name, &device) == SMELT_OK && device->threads ? device->threads() : 0;
}
