/* LLVM unrolls short loops whose number of rounds is known only at run time: four rounds run at once, and a
 * second loop runs the rest. Kernels with dozens of loops stay as they are, since their code would grow
 * several times and take LLVM's code generator too long. So does a long thread without loops, whose code is
 * clean already.
 *
 * Requires: the module lowered and cleaned. Maintains: what the code does. */
#include "compiler/flow.h"
#include "compiler/ptx/ptx.h"

smelt_status pass_ptx_unroll_rounds(struct unit *unit) {
    bool many;
    int loops;
    TRY(landmarks_are_needed(unit, &many));
    TRY(flow_count_loops(unit, &loops));
    if (many || (unit->long_thread && !loops)) return SMELT_OK;
    return ptx_run_passes(unit, "function(loop-unroll<O3>,instcombine<no-verify-fixpoint>,simplifycfg,"
                                "early-cse<memssa>)");
}
