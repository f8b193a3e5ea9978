#include "kernel/show.h"
#include "device/effort.h"
#include "device/gpu_shape.h"
#include "frontend/gpu_target.h"

#include <string.h>

/* The target of shown PTX if there is no GPU. */
#define USUAL_CUDA_TARGET "sm_90a"

/* Its code can be shown, and nothing done on it. */
static const struct device absent_gpu = {.name = "cuda",
                                         .description = "a GPU that is not present",
                                         .target = USUAL_CUDA_TARGET,
                                         .engine = ENGINE_PTX,
                                         .tests = true,
                                         .threadgroup_limit = 227 * 1024,
                                         .thread_limit = 1024,
                                         .shape = gpu_shape};

static bool names_gpu(const char *name) {
    if (!name || strncmp(name, "cuda", 4) != 0) return false;
    if (!name[4]) return true;
    return name[4] == ':' && name[5] && !name[5 + strspn(name + 5, "0123456789")];
}

smelt_status device_to_show(const char *name, const struct device **device) {
    smelt_status status = device_find(name, device);
    if (status != SMELT_ERROR_NO_DEVICE || !names_gpu(name)) return status;
    *device = &absent_gpu;
    return SMELT_OK;
}

static smelt_status check_target(const char *what, const char *target) {
    if (!target || gpu_target_named(target)) return SMELT_OK;
    struct text names = {0};
    for (int i = 0; gpu_target_at(i); i++)
        text_addf(&names, "%s%s", i ? gpu_target_at(i + 1) ? ", " : " or " : "", gpu_target_at(i));
    smelt_status status =
        fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': target '%s' is not a GPU target; expected %s", what,
             target, text_string(&names));
    text_free(&names);
    return status;
}

/* The GPU whose code PTX is shown as on a CPU. */
static const char *present_target(void) {
    const struct device *gpu;
    return device_find("cuda", &gpu) == SMELT_OK && gpu->target ? gpu->target : USUAL_CUDA_TARGET;
}

smelt_status shape_for_stage(struct launch *launch, const struct shape_desc *desc, smelt_stage stage,
                             struct code_options *options) {
    const char *what = launch->what;
    bool checked = launch->check && launch->device->checked && !desc->target;
    const struct device *device = checked ? launch->device->checked : launch->device;
    static const int64_t usual[3] = {256, 1, 1};
    const int64_t *group = desc->group[0] ? desc->group : usual;
    bool why = stage == SMELT_STAGE_WHY, on_gpu = desc->target || engine_traits(device->engine)->is_gpu;
    bool vectors = stage == SMELT_STAGE_SIMD || (why && !on_gpu);
    if (desc->after && stage != SMELT_STAGE_IR)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': after requires stage ir", what);
    TRY(check_target(what, desc->target));
    TRY(launch_measure(launch, desc->grid[0] ? desc->grid : group, group, desc->clamp || group == usual));
    struct code_shape *shape = &options->shape;
    launch->device = device;
    launch->tested = launch_is_tested(launch);
    device->shape(launch, desc->barrier_hint, shape);
    options->target = device->target;
    options->after = desc->after;
    if (launch_stays_quick()) options->effort = COMPILE_QUICK;
    if (vectors && (desc->target || !engine_traits(shape->engine)->is_vector))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': stages simd and why need the SIMD engine; %s '%s' uses another", what,
                    desc->target ? "target" : "device", desc->target ? desc->target : device->name);
    if (desc->target || (stage == SMELT_STAGE_PTX && !engine_traits(shape->engine)->is_gpu)) {
        launch->tested = launch->check;
        gpu_shape(launch, desc->barrier_hint, shape);
        options->target = desc->target ? desc->target : present_target();
    }
    return SMELT_OK;
}
