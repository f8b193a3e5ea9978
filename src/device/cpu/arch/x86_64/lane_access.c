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

uint64_t smelt_runtime_outside_lane(uint64_t start, uint64_t count, uint64_t first, const int64_t *offsets,
                                    const uint32_t *lanes, uint64_t lane_count) {
    uint64_t lane = 0;
    for (; lane < lane_count; lane++)
        if (lanes[lane / 32] >> lane % 32 & 1 && first + (uint64_t)offsets[lane] - start >= count) break;
    return lane;
}

/* NOLINTNEXTLINE(clang-diagnostic-excessive-regsave): copies of 1 to 8 bytes are not calls */
LANE_ACCESS_SIZES(ACCESS)
