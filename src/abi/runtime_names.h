/* The functions that generated code may call. The compiler checks its objects against this list (outside.c),
 * and the loader resolves symbols with it (runtime_symbols.c). */
#ifndef SMELT_ABI_RUNTIME_NAMES_H
#define SMELT_ABI_RUNTIME_NAMES_H

/* X(name): the engines' runtime (context.h). */
#define RUNTIME_OF_ENGINES(X)         \
    X(smelt_runtime_barrier)          \
    X(smelt_runtime_simdgroup)        \
    X(smelt_runtime_stop)             \
    X(smelt_runtime_log)              \
    X(smelt_runtime_tile)             \
    X(smelt_runtime_tile_memory)      \
    X(smelt_runtime_gang_barrier)     \
    X(smelt_runtime_gang_arrive)      \
    X(smelt_runtime_gang_stop)        \
    X(smelt_runtime_gang_log)         \
    X(smelt_runtime_gang_tile)        \
    X(smelt_runtime_gang_tile_memory) \
    X(smelt_runtime_gang_matrices)    \
    X(smelt_runtime_outside)

/* The checker's (check.h). */
#define RUNTIME_OF_CHECKS(X)  \
    X(smelt_check_access)     \
    X(smelt_check_object)     \
    X(smelt_check_undefined)  \
    X(smelt_check_arithmetic) \
    X(smelt_check_real)       \
    X(smelt_check_assertion)  \
    X(smelt_check_condition)  \
    X(smelt_check_stored)     \
    X(smelt_check_stored_at)  \
    X(smelt_check_passed)     \
    X(smelt_check_simdgroup)  \
    X(smelt_check_shared)     \
    X(smelt_check_used)       \
    X(smelt_check_changed)    \
    X(smelt_check_barrier)    \
    X(smelt_check_fence)      \
    X(smelt_check_parameters) \
    X(smelt_check_load_1)     \
    X(smelt_check_load_2)     \
    X(smelt_check_load_4)     \
    X(smelt_check_load_8)     \
    X(smelt_check_load_n)     \
    X(smelt_check_store_1)    \
    X(smelt_check_store_2)    \
    X(smelt_check_store_4)    \
    X(smelt_check_store_8)    \
    X(smelt_check_store_n)    \
    X(smelt_check_poison)     \
    X(smelt_check_unpoison)   \
    X(smelt_check_chain)      \
    X(smelt_check_copy)       \
    X(smelt_check_move)       \
    X(smelt_check_set)

/* Accesses lane by lane (lane_access.h). */
#define RUNTIME_OF_LANES(X)        \
    X(smelt_runtime_load_lanes_1)  \
    X(smelt_runtime_load_lanes_2)  \
    X(smelt_runtime_load_lanes_4)  \
    X(smelt_runtime_load_lanes_8)  \
    X(smelt_runtime_store_lanes_1) \
    X(smelt_runtime_store_lanes_2) \
    X(smelt_runtime_store_lanes_4) \
    X(smelt_runtime_store_lanes_8) \
    X(smelt_runtime_load_row_1)    \
    X(smelt_runtime_load_row_2)    \
    X(smelt_runtime_load_row_4)    \
    X(smelt_runtime_load_row_8)    \
    X(smelt_runtime_store_row_1)   \
    X(smelt_runtime_store_row_2)   \
    X(smelt_runtime_store_row_4)   \
    X(smelt_runtime_store_row_8)   \
    X(smelt_runtime_finds_outside) \
    X(smelt_runtime_finds_wrapped) \
    X(smelt_runtime_lane_outside)

/* Arithmetic on vectors (vector_math.h). */
#define RUNTIME_OF_VECTORS(X) X(smelt_runtime_fma_4)

/* Copies and fills, and comparisons of structures that LLVM joins. */
#define RUNTIME_OF_MEMORY(X) \
    X(memcpy)                \
    X(memmove)               \
    X(memset)                \
    X(memcmp)                \
    X(bcmp)

/* Functions of numbers alone. First the conversions for which the CPU has no instruction (no F16C; bfloats
 * that functions which call themselves take and give), then fma and rounding where it has none. fmod is exact
 * by definition. LLVM calls fmaxf and fminf for selects on half, where neither a NaN's nor a zero's sign can
 * be asked for. */
#define RUNTIME_OF_NUMBERS(X) \
    X(__extendhfsf2)          \
    X(__truncsfhf2)           \
    X(__truncdfhf2)           \
    X(__truncsfbf2)           \
    X(fma)                    \
    X(fmaf)                   \
    X(fmod)                   \
    X(fmodf)                  \
    X(ldexp)                  \
    X(ldexpf)                 \
    X(floor)                  \
    X(floorf)                 \
    X(ceil)                   \
    X(ceilf)                  \
    X(trunc)                  \
    X(truncf)                 \
    X(rint)                   \
    X(rintf)                  \
    X(nearbyint)              \
    X(nearbyintf)             \
    X(roundeven)              \
    X(roundevenf)             \
    X(round)                  \
    X(roundf)                 \
    X(sqrt)                   \
    X(sqrtf)                  \
    X(fmaxf)                  \
    X(fminf)

#define RUNTIME_FUNCTIONS(X) \
    RUNTIME_OF_ENGINES(X)    \
    RUNTIME_OF_CHECKS(X) RUNTIME_OF_LANES(X) RUNTIME_OF_VECTORS(X) RUNTIME_OF_MEMORY(X) RUNTIME_OF_NUMBERS(X)

/* An entry of a list of names. */
#define RUNTIME_NAME(name) #name,

#endif
