#include "device/device.h"
#include "base/text.h"

#include <string.h>

/* In the order of their ranks, in which devices are listed. Complete before main. */
static const struct device_kind *kinds[MOST_KINDS];
static size_t kind_count;

void device_register(const struct device_kind *kind) {
    size_t at = kind_count++;
    for (; at && kinds[at - 1]->rank > kind->rank; at--) kinds[at] = kinds[at - 1];
    kinds[at] = kind;
}

static smelt_status fail_unknown(const char *name) {
    struct text names = {0};
    const struct device *device;
    const char *reason;
    for (size_t k = 0; k < kind_count; k++)
        for (int i = 0; (device = kinds[k]->at(i, &reason)); i++)
            text_addf(&names, "%s%s", names.length ? ", " : "", device->name);
    error_record("device '%s' does not exist on this machine; expected one of: %s", name,
                 text_string(&names));
    text_free(&names);
    return SMELT_ERROR_NO_DEVICE;
}

/* Does `name` mean a device of the kind, as "cuda" and "cuda:1" do? Others are not looked for. */
static bool names_kind(const struct device_kind *kind, const char *name) {
    if (!kind->name) return true;
    size_t length = strlen(kind->name);
    return strncmp(name, kind->name, length) == 0 && (!name[length] || name[length] == ':');
}

static smelt_status find_in(const struct device_kind *kind, const char *name, const struct device **found) {
    const char *reason = "";
    const struct device *device = kind->at(0, &reason);
    if (!device)
        return fail(SMELT_ERROR_NO_DEVICE, "device '%s' cannot be used on this machine: %s", name, reason);
    *found = device;
    if (kind->name && strcmp(name, kind->name) == 0) return SMELT_OK;
    for (int i = 1; device && strcmp(device->name, name) != 0; i++) device = kind->at(i, &reason);
    *found = device;
    return SMELT_OK;
}

smelt_status device_find(const char *name, const struct device **device) {
    const struct device *found = NULL;
    if (!name) name = "cpu";
    for (size_t k = 0; k < kind_count && !found; k++)
        if (names_kind(kinds[k], name)) TRY(find_in(kinds[k], name, &found));
    if (!found) return fail_unknown(name);
    *device = found;
    return SMELT_OK;
}

const struct binding *launch_binding(const struct launch *launch, int parameter) {
    const struct binding *own = &launch->image->bindings[parameter];
    const struct image *edge = launch->edge_image;
    bool other = own->kind == BINDING_ABSENT && edge && parameter < edge->binding_count;
    return other ? &edge->bindings[parameter] : own;
}

void launch_count_groups(struct launch *launch) {
    for (int d = 0; d < 3; d++)
        launch->groups[d] =
            (uint32_t)(((uint64_t)launch->grid[d] + launch->group_size[d] - 1) / launch->group_size[d]);
}

smelt_status launch_end(const char *name, const struct launch *launch, bool interrupted, bool expired) {
    if (interrupted) return fail(SMELT_ERROR_INTERRUPTED, "kernel '%s' was interrupted", name);
    if (!expired) return SMELT_OK;
    return fail(SMELT_ERROR_TIMEOUT, "kernel '%s' ran longer than the time-out of %g seconds and was stopped",
                name, launch->timeout);
}

void device_finish_trace(uint32_t capture) {
    for (size_t k = 0; k < kind_count; k++)
        if (kinds[k]->finish_trace) kinds[k]->finish_trace(capture);
}

/* A kind without a device is listed once, with the reason. */
const char *smelt_device_name(int index, const char **reason) {
    const char *why = "", *none;
    for (size_t k = 0; k < kind_count && index >= 0; k++) {
        const struct device *device;
        int i = 0;
        if (!reason) reason = &none;
        for (; (device = kinds[k]->at(i, &why)); i++)
            if (index-- == 0) {
                *reason = "";
                return device->name;
            }
        if (i == 0 && index-- == 0) {
            *reason = why;
            return kinds[k]->name;
        }
    }
    return NULL;
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

int smelt_device_driver_version(const char *name) {
    const struct device *device;
    if (!name || device_find(name, &device) != SMELT_OK || !device->driver_version) return 0;
    return device->driver_version(device);
}
