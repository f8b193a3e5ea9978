/* The engines, one entry each. */
#include "compiler/engine.h"
#include "compiler/pass.h"

static smelt_status lower_simd(struct unit *unit) {
    mark_written_first(unit);
    return pass_simd(unit);
}

static smelt_status prepare_ptx(struct unit *unit) {
    TRY(pass_ptx_math(unit));
    return pass_ptx_memory(unit);
}

static const struct engine_target engines[] = {
    [ENGINE_SCALAR] = {.stage = "lower",
                       .lower = pass_lower_scalar,
                       .generate = pass_codegen,
                       .run_passes = run_plain_passes,
                       .fills_memory = true,
                       .calls_runtime = true},
    [ENGINE_SIMD] = {.stage = "vectorise",
                     .lower = lower_simd,
                     .generate = pass_codegen,
                     .run_passes = run_plain_passes,
                     .may_refuse = true,
                     .specialises = true,
                     .fills_memory = true,
                     .calls_runtime = true,
                     .wants_vectors = true},
    [ENGINE_PTX] = {.stage = "make PTX",
                    .begin = pass_ptx_target,
                    .uninlined = prepare_ptx,
                    .lower = pass_ptx,
                    .run_passes = run_ptx_passes,
                    .specialises = true,
                    .claims_alignment = true,
                    .converts_bfloat = true,
                    .saturates = true,
                    .intrinsics = "llvm.nvvm."},
};

const struct engine_target *engine_target(enum engine engine) {
    return &engines[engine];
}
