/* What generated code may call: the engine's runtime and the compiler's helper functions. */
#include "cpu/context.h"
#include "cpu/object.h"

#include <math.h>
#include <string.h>

/* Conversions LLVM calls where the CPU has no instruction (no F16C), from the compiler's own library. */
float __extendhfsf2(_Float16 value);
_Float16 __truncsfhf2(float value);
_Float16 __truncdfhf2(double value);

#define FUNCTION(name) \
    { #name, (const void *)(uintptr_t) & (name) }

const struct runtime_symbol runtime_symbols[] = {
    FUNCTION(smelt_runtime_barrier),
    FUNCTION(smelt_runtime_simdgroup),
    FUNCTION(smelt_runtime_stop),
    FUNCTION(smelt_runtime_log),
    FUNCTION(smelt_runtime_gang_barrier),
    FUNCTION(smelt_runtime_gang_arrive),
    FUNCTION(smelt_runtime_gang_stop),
    FUNCTION(smelt_runtime_gang_log),
    FUNCTION(memcpy),
    FUNCTION(memmove),
    FUNCTION(memset),
    FUNCTION(__extendhfsf2),
    FUNCTION(__truncsfhf2),
    FUNCTION(__truncdfhf2),
    /* fma and rounding where the CPU has no instruction; fmod is exact by definition. */
    FUNCTION(fma),
    FUNCTION(fmaf),
    FUNCTION(fmod),
    FUNCTION(fmodf),
    FUNCTION(floor),
    FUNCTION(floorf),
    FUNCTION(ceil),
    FUNCTION(ceilf),
    FUNCTION(trunc),
    FUNCTION(truncf),
    FUNCTION(rint),
    FUNCTION(rintf),
    FUNCTION(nearbyint),
    FUNCTION(nearbyintf),
    FUNCTION(roundeven),
    FUNCTION(roundevenf),
    FUNCTION(round),
    FUNCTION(roundf),
    FUNCTION(sqrt),
    FUNCTION(sqrtf),
    /* LLVM calls these for selects on half, where neither a NaN's nor a zero's sign can be asked for. */
    FUNCTION(fmaxf),
    FUNCTION(fminf),
    {NULL, NULL},
};
