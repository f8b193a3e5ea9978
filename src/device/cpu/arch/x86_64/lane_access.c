#include "abi/lane_access.h"

#include <string.h>

#define FOR_EACH_LANE(lane, lanes) \
    for (uint32_t left = (lanes), lane; left && ((lane = (uint32_t)__builtin_ctz(left)), 1); left &= left - 1)

#define ACCESS(bytes)                                                                               \
    void smelt_runtime_load_lanes_##bytes(char *const *addresses, char *values, uint32_t lanes) {   \
        FOR_EACH_LANE(lane, lanes) memcpy(values + (size_t)lane * (bytes), addresses[lane], bytes); \
    }                                                                                               \
    void smelt_runtime_store_lanes_##bytes(char *const *addresses, char *values, uint32_t lanes) {  \
        FOR_EACH_LANE(lane, lanes) memcpy(addresses[lane], values + (size_t)lane * (bytes), bytes); \
    }                                                                                               \
    void smelt_runtime_load_row_##bytes(char *row, char *values, uint32_t lanes) {                  \
        FOR_EACH_LANE(lane, lanes)                                                                  \
        memcpy(values + (size_t)lane * (bytes), row + (size_t)lane * (bytes), bytes);               \
    }                                                                                               \
    void smelt_runtime_store_row_##bytes(char *row, char *values, uint32_t lanes) {                 \
        FOR_EACH_LANE(lane, lanes)                                                                  \
        memcpy(row + (size_t)lane * (bytes), values + (size_t)lane * (bytes), bytes);               \
    }

bool smelt_runtime_finds_outside(struct lane_test *test) {
    for (uint64_t lane = 0; lane < test->lane_count; lane++) {
        uint64_t address = test->address + (uint64_t)test->offsets[lane];
        bool active = test->lanes[lane / 32] >> lane % 32 & 1;
        if (active && address - test->start >= test->count) {
            test->address = address;
            return true;
        }
    }
    return false;
}

/* NOLINTNEXTLINE(clang-diagnostic-excessive-regsave): copies of 1 to 8 bytes are not calls */
LANE_ACCESS_SIZES(ACCESS)
