#include "ptx/ptx.h"

smelt_status pass_ptx_simdgroup(struct unit *unit) {
    (void)unit;
    return SMELT_OK;
}
