#include "abi/engine.h"

const struct engine_traits engine_table[ENGINE_COUNT] = {
    [ENGINE_SCALAR] = {.name = "scalar", .serves_all = true},
    [ENGINE_SIMD] = {.name = "simd", .is_vector = true},
    [ENGINE_PTX] = {.name = "ptx", .is_gpu = true, .may_be_text = true},
    [ENGINE_CHECK] = {.name = "check", .serves_all = true, .is_checked = true},
};
const struct engine_traits engine_unknown = {.name = "unknown"};
