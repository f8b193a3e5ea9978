#include "device/cpu/improve.h"

#include <string.h>

/* Whether a best code can use what the launch has prepared for its quick code. It must be code of gangs. */
static bool fits(const struct cpu_launch *launch, const struct code *quick, const struct code *best) {
    if (!best) return true;
    if (!quick || cpu_code_is_scalar(best)) return false;
    const struct image *image = &best->head.image, *own = &quick->head.image;
    return image->threadgroup_bytes <= launch->static_bytes && image->binding_count == own->binding_count &&
           memcmp(image->bindings, own->bindings, (size_t)own->binding_count * sizeof *own->bindings) == 0;
}

static void look_for_best(struct cpu_launch *launch, const struct code_head *latest) {
    struct launch_codes best;
    if (pthread_mutex_trylock(&launch->improving) != 0) return;
    if (!atomic_load(&launch->improved) && executable_codes_ready(launch->request, &best) &&
        fits(launch, launch->codes.full, best.full) && fits(launch, launch->codes.edge, best.edge)) {
        launch->best = best;
        atomic_store_explicit(&launch->improved, true, memory_order_release);
        log_line(SMELT_LOG_INFO, "kernel '%s' goes on with its best code", launch->name);
    }
    atomic_store(&launch->seen, latest);
    pthread_mutex_unlock(&launch->improving);
}

/* Different groups may run different codes: both give the same bits. */
bool cpu_launch_improved(struct cpu_launch *launch) {
    const struct code_head *latest =
        atomic_load_explicit(&launch->request->executable->first, memory_order_relaxed);
    if (latest != atomic_load_explicit(&launch->seen, memory_order_relaxed)) look_for_best(launch, latest);
    return atomic_load_explicit(&launch->improved, memory_order_acquire);
}

/* Quick code of the scalar engine is many times slower than the best: a launch ends earlier if the compiler
 * has its own CPU. */
bool cpu_launch_is_improving(void *job) {
    struct cpu_launch *launch = job;
    return !atomic_load(&launch->improved) && executable_is_improving(launch->request->executable);
}
