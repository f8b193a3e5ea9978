/* The functions that generated code may call: the engine's runtime and the compiler's helpers. */
#include "abi/check.h"
#include "abi/cpu_context.h"
#include "abi/lane_access.h"
#include "abi/runtime_names.h"
#include "abi/vector_math.h"
#include "device/cpu/object.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Of the compiler's own library. */
float __extendhfsf2(_Float16 value);
_Float16 __truncsfhf2(float value);
_Float16 __truncdfhf2(double value);

/* Rounds to nearest even, as compiler/passes/bfloat.c does. Not every compiler's library has it. Bits travel
 * as a _Float16's: a bfloat is returned in the same register. */
static _Float16 round_to_bfloat(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bool is_nan = value != value;
    uint16_t high = (uint16_t)((is_nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    _Float16 carrier;
    memcpy(&carrier, &high, sizeof carrier);
    return carrier;
}
#define __truncsfbf2 round_to_bfloat

#define SYMBOL(name) {#name, (const void *)(uintptr_t)&(name)},

/* NOLINTNEXTLINE(bugprone-unsafe-functions): LLVM writes calls of bcmp */
const struct runtime_symbol runtime_symbols[] = {RUNTIME_FUNCTIONS(SYMBOL){NULL, NULL}};
