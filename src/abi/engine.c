#include "abi/engine.h"

const struct engine_traits *engine_traits(uint32_t engine) {
    static const struct engine_traits traits[ENGINE_COUNT] = {
        [ENGINE_SCALAR] = {.name = "scalar", .serves_all = true},
        [ENGINE_SIMD] = {.name = "simd", .is_vector = true},
        [ENGINE_PTX] = {.name = "ptx", .is_gpu = true, .may_be_text = true},
    };
    static const struct engine_traits none = {.name = "unknown"};
    return engine < ENGINE_COUNT ? &traits[engine] : &none;
}
