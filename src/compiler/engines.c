/* The engines, one entry each. */
#include "compiler/check/check.h"
#include "compiler/engine.h"
#include "compiler/pass.h"

static const struct pass of_scalar[] = {PASS("overwritten", pass_overwritten),
                                        PASS("group-accesses", pass_group_accesses),
                                        PASS("group-updates", pass_group_updates),
                                        PASS("bounds", pass_bounds),
                                        PASS("lower", pass_lower_scalar),
                                        PASS("cut", pass_cut),
                                        {0}};

static const struct pass of_checked[] = {PASS("lower", pass_lower_scalar), PASS("cut", pass_cut), {0}};

static const struct pass uninlined_simd[] = {PASS("simd-mark-estimates", pass_simd_mark_estimates), {0}};

static const struct pass of_simd[] = {PASS("overwritten", pass_overwritten),
                                      PASS("group-accesses", pass_group_accesses),
                                      PASS("written-first", pass_written_first),
                                      PASS("simd-reloads", pass_simd_reloads),
                                      PASS("simd-counters", pass_simd_counters),
                                      PASS("simd-narrow-products", pass_simd_narrow_products),
                                      PASS("simd-unit-strides", pass_simd_unit_strides),
                                      PASS("simd-columns", pass_simd_columns),
                                      PASS("simd-merged", pass_simd_merged),
                                      PASS("simd-maxima", pass_simd_maxima),
                                      PASS("simd-prepare", pass_simd_prepare),
                                      PASS("simd-prefetch", pass_simd_prefetch),
                                      PASS("bounds", pass_bounds),
                                      PASS("simd-gang", pass_simd_gang),
                                      PASS("simd-ahead", pass_simd_ahead),
                                      PASS("simd-gang-loop", pass_simd_gang_loop),
                                      PASS("simd-estimates", pass_simd_estimates),
                                      PASS("group-updates", pass_group_updates),
                                      PASS("simd-fused", pass_simd_fused),
                                      PASS("simd-halves", pass_simd_halves),
                                      PASS("simd-half-bits", pass_simd_half_bits),
                                      PASS("simd-mask-words", pass_simd_mask_words),
                                      PASS("simd-settle", pass_simd_settle),
                                      PASS("cut", pass_cut),
                                      PASS("simd-registers", pass_simd_registers),
                                      {0}};

static const struct pass before_ptx[] = {PASS("ptx-target", pass_ptx_target), {0}};
static const struct pass uninlined_ptx[] = {
    PASS("ptx-math", pass_ptx_math), PASS("ptx-memory", pass_ptx_memory), {0}};

static const struct pass before_checked[] = {PASS("check-conditions", pass_check_conditions), {0}};

/* As pipeline.c has them for the other engines, with little optimisation. */
static const struct pass checked_thread[] = {
    PASS("initialisers-listed", pass_initialisers_listed),
    PASS("constants", pass_constants),
    PASS("check-marked", pass_check_marked),
    PASS("wrap", pass_wrap),
    PASS("guard", pass_guard),
    PASS("check-functions", pass_check_functions),
    LLVM_PASSES("always-inline,globaldce"),
    PASS("check-unmarked", pass_check_unmarked),
    PASS("check-private", pass_check_private),
    LLVM_PASSES("function(sroa<modify-cfg>,early-cse)"),
    PASS("leave", pass_leave),
    LLVM_PASSES("function(simplifycfg),globaldce"),
    PASS("initialisers-evaluated", pass_initialisers_evaluated),
    LLVM_PASSES("globalopt,globaldce,function(sroa<modify-cfg>,early-cse)"),
    PASS("indexes", pass_indexes),
    PASS("leave-inlined", pass_leave),
    LLVM_PASSES(CLEAN_FUNCTIONS),
    PASS("guarded-bindings", pass_guarded_bindings),
    PASS("returns", pass_returns),
    PASS("staging", pass_staging),
    PASS("part", pass_part),
    PASS("hold", pass_hold),
    PASS("sink", pass_sink),
    LLVM_PASSES(CLEAN_FUNCTIONS),
    PASS(NULL, pass_sink),
    PASS("check-accesses", pass_check_accesses),
    PASS("check-tested", pass_check_tested),
    PASS("check-undefined", pass_check_undefined),
    LLVM_PASSES(CLEAN_FUNCTIONS ",globaldce"),
    PASS("constants-used", pass_constants_used),
    PASS("used-bindings", pass_used_bindings),
    PASS("lines", pass_lines),
    PASS("thread-limits", pass_thread_limits),
    PASS("refuse", pass_refuse),
    PASS("indirect", pass_indirect),
    {0}};

static const struct engine_target engines[] = {
    [ENGINE_SCALAR] = {.stage = COMPILE_STAGE_LOWER,
                       .lower = of_scalar,
                       .generate = pass_codegen,
                       .run_passes = run_plain_passes,
                       .fills_memory = true,
                       .holds_constants = true,
                       .calls_runtime = true},
    [ENGINE_SIMD] = {.stage = COMPILE_STAGE_VECTORISE,
                     .uninlined = uninlined_simd,
                     .lower = of_simd,
                     .generate = pass_codegen,
                     .run_passes = run_plain_passes,
                     .has_quick = true,
                     .may_refuse = true,
                     .instead = ENGINE_SCALAR,
                     .specialises = true,
                     .fills_memory = true,
                     .holds_constants = true,
                     .knows_values = true,
                     .joins_indexes = true,
                     .calls_runtime = true,
                     .wants_vectors = true,
                     .asks_launches = true},
    [ENGINE_PTX] = {.stage = COMPILE_STAGE_PTX,
                    .begin = before_ptx,
                    .uninlined = uninlined_ptx,
                    .lower = ptx_passes,
                    .run_passes = ptx_run_passes,
                    .specialises = true,
                    .has_spaces = true,
                    .needs_alignment = true,
                    .claims_alignment = true,
                    .converts_bfloat = true,
                    .saturates = true,
                    .unroll_first = true,
                    .intrinsics = "llvm.nvvm."},
    [ENGINE_CHECK] = {.stage = COMPILE_STAGE_LOWER,
                      .begin = before_checked,
                      .thread = checked_thread,
                      .lower = of_checked,
                      .generate = pass_codegen,
                      .run_passes = run_plain_passes,
                      .has_quick = true,
                      .quick_on_request = true,
                      .fills_memory = true,
                      .asserts = true,
                      .tells_names = true,
                      .calls_runtime = true},
};

const struct engine_target *engine_target(enum engine engine) {
    return &engines[engine];
}
