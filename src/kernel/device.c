#include "kernel/device.h"
#include "base/text.h"
#include "cuda/context.h"

#include <string.h>

/* Devices of the machine itself; the GPUs, which are found when they are first asked for, come after them. */
static const struct device *const cpus[] = {&cpu_device, &cpu_scalar_device};
#define CPU_DEVICES ((int)(sizeof cpus / sizeof *cpus))

static smelt_status fail_unknown(const char *name) {
    int count;
    const char *reason;
    const struct cuda_gpu *gpus = cuda_gpus(&count, &reason);
    struct text names = {0};
    for (int i = 0; i < CPU_DEVICES; i++) text_addf(&names, "%s%s", i ? ", " : "", cpus[i]->name);
    for (int i = 0; i < count; i++) text_addf(&names, ", %s", gpus[i].name);
    error_record("device '%s' does not exist on this machine; there are: %s", name, text_string(&names));
    text_free(&names);
    return SMELT_ERROR_NO_DEVICE;
}

/* "cuda" is the first GPU; "cuda:1" is called by its number among those the driver counts. */
static smelt_status find_gpu(const char *name, const struct device **device) {
    int count;
    const char *reason;
    const struct cuda_gpu *gpus = cuda_gpus(&count, &reason);
    if (!count)
        return fail(SMELT_ERROR_NO_DEVICE, "device '%s' cannot be used on this machine: %s", name, reason);
    for (int i = 0; i < count; i++)
        if (strcmp(name, "cuda") == 0 || strcmp(name, gpus[i].name) == 0) {
            *device = &gpus[i].device;
            return SMELT_OK;
        }
    return fail_unknown(name);
}

smelt_status device_find(const char *name, const struct device **device) {
    if (!name) name = cpu_device.name;
    for (int i = 0; i < CPU_DEVICES; i++) {
        if (strcmp(cpus[i]->name, name) != 0) continue;
        *device = cpus[i];
        return SMELT_OK;
    }
    if (strcmp(name, "cuda") == 0 || strncmp(name, "cuda:", 5) == 0) return find_gpu(name, device);
    return fail_unknown(name);
}

const char *smelt_device_name(int index, const char **reason) {
    const char *why = "", *name = NULL;
    int count;
    if (index >= 0 && index < CPU_DEVICES) {
        name = cpus[index]->name;
    } else if (index >= CPU_DEVICES) {
        const struct cuda_gpu *gpus = cuda_gpus(&count, &why);
        if (index - CPU_DEVICES < count) {
            name = gpus[index - CPU_DEVICES].name;
            why = "";
        } else if (!count && index == CPU_DEVICES) {
            name = "cuda";
        }
    }
    if (name && reason) *reason = why;
    return name;
}

const char *smelt_device_description(const char *name) {
    const struct device *device;
    return name && device_find(name, &device) == SMELT_OK ? device->description : NULL;
}

int smelt_device_threads(const char *name) {
    const struct device *device;
    return name && device_find(name, &device) == SMELT_OK && device->threads ? device->threads() : 0;
}

smelt_status smelt_device_memory(const char *name, uint64_t *free_bytes, uint64_t *total_bytes) {
    const struct device *device;
    uint64_t free_now, total;
    TRY(device_find(name, &device));
    if (!device->space)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "device memory: device '%s' uses the host's memory; expected a GPU", device->name);
    TRY(device->memory(device, &free_now, &total));
    if (free_bytes) *free_bytes = free_now;
    if (total_bytes) *total_bytes = total;
    return SMELT_OK;
}

smelt_status smelt_device_wait(const char *name) {
    const struct device *device;
    TRY(device_find(name, &device));
    return device->space ? device->wait(device) : SMELT_OK;
}

smelt_status smelt_device_reset(const char *name) {
    const struct device *device;
    TRY(device_find(name, &device));
    return device->space ? device->reset(device) : SMELT_OK;
}
