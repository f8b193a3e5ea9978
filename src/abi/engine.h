/* The engines, and the properties of each that devices, packages and traces depend on. Those that passes
 * depend on are in compiler/engine.h. */
#ifndef SMELT_ABI_ENGINE_H
#define SMELT_ABI_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

/* CHECK: the scalar engine's code with a question before each access (abi/check.h).
 * PTX: code of one thread for NVIDIA GPUs, where a simdgroup is a warp. */
enum engine { ENGINE_SCALAR, ENGINE_SIMD, ENGINE_PTX, ENGINE_CHECK, ENGINE_COUNT };

struct engine_traits {
    const char *name; /* in traces */
    bool is_checked;  /* it needs a checked launch (check/check.h) */
    bool serves_all;  /* it specialises no code to a shape: its code runs every launch (image_serves_all) */
    bool is_vector;   /* one call runs a gang: image.lanes threads; there are vectors and reasons to show */
    bool is_gpu;      /* for GPUs: their rules say which code serves a launch */
    bool may_be_text; /* an object that is not an ELF file is text, ended by 0 */
};

extern const struct engine_traits engine_table[ENGINE_COUNT], engine_unknown;

/* For a number that is not an engine's, nothing is true. */
static inline const struct engine_traits *engine_traits(uint32_t engine) {
    return engine < ENGINE_COUNT ? &engine_table[engine] : &engine_unknown;
}

#endif
