/* Cleans the code between the passes that generate PTX. Long threads are cleaned by fewer of LLVM's passes:
 * the optimiser has cleaned them before, and NVIDIA's assembler removes what is left.
 *
 * Requires: the retargeted module. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

smelt_status ptx_clean_retargeted(struct unit *unit) {
    if (unit->long_thread) return ptx_run_passes(unit, "function(infer-address-spaces,simplifycfg)");
    return ptx_run_passes(
        unit, "function(infer-address-spaces,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)");
}

smelt_status ptx_clean_lowered(struct unit *unit) {
    if (unit->long_thread)
        return ptx_run_passes(unit, "function(sroa<modify-cfg>,infer-address-spaces,early-cse<memssa>,"
                                    "instcombine<no-verify-fixpoint>,simplifycfg,dse,adce)");
    return ptx_run_passes(unit, "function(sroa<modify-cfg>,infer-address-spaces,early-cse<memssa>,"
                                "instcombine<no-verify-fixpoint>,simplifycfg,gvn,dse,adce)");
}
