/* An engine, for the pipeline and the passes before it: its own passes, its lowering and code generation, its
 * capabilities. */
#ifndef SMELT_COMPILER_ENGINE_H
#define SMELT_COMPILER_ENGINE_H

#include "abi/compile_progress.h"
#include "abi/image.h"

struct unit;
typedef smelt_status engine_pass(struct unit *unit);

/* A step of the pipeline; a list ends with one of zeros. */
struct pass {
    const char *name; /* for `smelt show --after`; NULL: a step without a name */
    engine_pass *run;
    const char *llvm; /* instead of `run`: LLVM's passes, by name */
};
#define PASS(name_, run_) {.name = (name_), .run = (run_)}
#define LLVM_PASSES(names) {.llvm = (names)}

struct engine_target {
    enum compile_stage_kind stage; /* what lowering is */
    const struct pass *begin;      /* (optional) before all other passes */
    const struct pass *uninlined;  /* (optional) on functions that are not inlined yet */
    const struct pass *thread;     /* (optional) instead of those of all engines, on the code of one thread */
    const struct pass *lower; /* from code of one thread to the engine's; without `generate`, to the end */
    engine_pass *generate;    /* (optional) from there to machine code */
    smelt_status (*run_passes)(struct unit *unit, const char *passes); /* LLVM's, by name */

    bool has_quick;         /* its quick code is not optimised by LLVM's code generator (quick.c) */
    bool quick_on_request;  /* … and is generated only if the request is for quick code */
    bool may_refuse;        /* kernels; functions may not call themselves */
    enum engine instead;    /* the engine for kernels that are refused */
    bool specialises;       /* the code is compiled for a code shape's sizes */
    bool fills_memory;      /* threadgroup memory has contents when a group begins */
    bool has_spaces;        /* addresses in threadgroup memory are valid only in its address space */
    bool needs_alignment;   /* an access that is not aligned to its elements ends the kernel */
    bool claims_alignment;  /* lowering settles the alignment of accesses; else passes/alignment.c does */
    bool holds_constants;   /* loads from constant memory are invariant */
    bool knows_values;      /* code may be compiled for values of arguments (passes/values.c) */
    bool joins_indexes;     /* of rows and columns; GPUs place arrays in threadgroup memory by them */
    bool calls_runtime;     /* functions of abi/runtime_names.h, and through pointers */
    bool converts_bfloat;   /* by an instruction, */
    bool saturates;         /* and floats to 32-bit integers with saturation */
    bool asserts;           /* assertions are evaluated */
    bool tells_names;       /* of private variables: they must be kept */
    bool wants_vectors;     /* as wide as registers are */
    bool asks_launches;     /* questions about all threads of a launch are answered before it */
    bool unroll_first;      /* loops of few rounds are unrolled before the optimiser proper (pipeline.c) */
    const char *intrinsics; /* (optional) prefix of LLVM's intrinsics that only this engine has */
};

/* engines.c */
const struct engine_target *engine_target(enum engine engine);

#endif
