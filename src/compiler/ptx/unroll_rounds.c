/* LLVM unrolls short loops whose number of rounds only the run can tell: to four rounds at once, next to a
 * loop for the rest. Kernels with dozens of loops are left as they are: their code would grow to five times
 * its size, and LLVM's code generator took 6 seconds for 400 loops.
 *
 * Requires: the module lowered and cleaned. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

smelt_status pass_ptx_unroll_rounds(struct unit *unit) {
    bool many;
    TRY(landmarks_are_needed(unit, &many));
    if (many) return SMELT_OK;
    return ptx_run_passes(unit, "function(loop-unroll<O3>,instcombine<no-verify-fixpoint>,simplifycfg,"
                                "early-cse<memssa>)");
}
