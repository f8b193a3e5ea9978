/* The order of the passes from a thread's optimised code to PTX. */
#include "compiler/ptx/ptx.h"

const struct pass ptx_passes[] = {
    PASS(NULL, memory_measure_private),
    PASS("bounds", pass_bounds),
    PASS("ptx-inside", pass_ptx_inside),
    PASS("ptx-inline", pass_ptx_inline),
    PASS("ptx-retarget", pass_ptx_retarget),
    PASS("ptx-addresses", pass_ptx_addresses),
    LLVM_PASSES("function(infer-address-spaces,instcombine<no-verify-fixpoint>,simplifycfg)"),
    PASS("ptx-memory-inlined", pass_ptx_memory),
    PASS("ptx-instructions", pass_ptx_instructions),
    PASS("ptx-fragments", pass_ptx_fragments),
    PASS("ptx-unroll", pass_ptx_unroll),
    PASS("ptx-division", pass_ptx_division),
    PASS("ptx-guards", pass_ptx_guards),
    PASS("ptx-rounds", pass_ptx_rounds),
    PASS("ptx-strides", pass_ptx_strides),
    PASS("ptx-matrix", pass_ptx_matrix),
    PASS("ptx-pairs", pass_ptx_pairs),
    PASS("ptx-simdgroup", pass_ptx_simdgroup),
    /* Copied paths may leave unreachable blocks. */
    LLVM_PASSES("function(simplifycfg)"),
    PASS("ptx-coarsen", pass_ptx_coarsen),
    PASS("ptx-lower", pass_ptx_lower),
    PASS(NULL, unit_verify),
    LLVM_PASSES("function(sroa<modify-cfg>,infer-address-spaces,early-cse<memssa>,"
                "instcombine<no-verify-fixpoint>,simplifycfg,gvn,dse,adce,loop-unroll<O3>,"
                "instcombine<no-verify-fixpoint>,simplifycfg,early-cse<memssa>),globaldce"),
    PASS("ptx-pack", pass_ptx_pack),
    PASS("ptx-atomics", pass_ptx_atomics),
    LLVM_PASSES("function(adce)"),
    PASS("ptx-neighbours", pass_ptx_neighbours),
    PASS("ptx-align", pass_ptx_align),
    PASS("ptx-words", pass_ptx_words),
    PASS("ptx-ahead", pass_ptx_ahead),
    PASS("ptx-convert", pass_ptx_convert),
    PASS("ptx-zero-signs", pass_ptx_zero_signs),
    PASS("ptx-together", pass_ptx_together),
    PASS("ptx-code", pass_ptx_code),
    {0}};
