#include "cuda/launch.h"
#include "cuda/shape.h"

static smelt_status load(const struct device *device, const struct code_source *source, const char *name,
                         struct executable **executable) {
    (void)source;
    (void)executable;
    return fail(SMELT_ERROR_UNSUPPORTED, "kernel '%s': device '%s' has no launches yet", name, device->name);
}

void cuda_device_functions(struct device *device) {
    device->load = load;
    device->shape = cuda_shape;
}
