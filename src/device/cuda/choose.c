/* SMELT_CUDA_TARGET: code for a lower target than the GPU's own, as an older GPU would get it.
 * SMELT_CUDA_EARLY: whether launches may start before the previous one on their stream has ended. */
#include "base/setting.h"
#include "device/cuda/context.h"
#include "frontend/gpu_target.h"

#include <stdatomic.h>
#include <stdlib.h>

static void warn_once(const char *setting, const char *own, bool known) {
    static atomic_bool warned;
    if (atomic_exchange(&warned, true)) return;
    if (known)
        log_line(SMELT_LOG_WARNING,
                 "SMELT_CUDA_TARGET is '%s', whose code does not run on the GPU; expected %s or a lower one; "
                 "using %s",
                 setting, own, own);
    else
        log_line(SMELT_LOG_WARNING,
                 "SMELT_CUDA_TARGET is '%s', expected sm_80, sm_86, sm_87, sm_89, sm_90 or sm_90a; using %s",
                 setting, own);
}

const char *cuda_target_chosen(int capability) {
    const char *setting = getenv("SMELT_CUDA_TARGET"), *own = gpu_target_of(capability);
    int rank;
    if (!own || !setting || !*setting) return own;
    const char *chosen = gpu_target_named(setting);
    if (chosen && gpu_target_runs(chosen, own, &rank)) return chosen;
    warn_once(setting, own, chosen != NULL);
    return own;
}

bool cuda_early_chosen(void) {
    static struct setting setting = {"SMELT_CUDA_EARLY", {"1", "0"}, ATOMIC_FLAG_INIT};
    return setting_choice(&setting) == 0;
}
