/* The SIMD engine's vectoriser: the order of its passes. */
#include "simd/simd.h"

smelt_status pass_simd(struct unit *unit) {
    unit->refused = true;
    return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "the SIMD engine is not built yet");
}
