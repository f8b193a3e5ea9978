#include "abi/lane_access.h"

#include <string.h>

#define FOR_EACH_LANE(lane, lanes) \
    for (uint32_t left = (lanes), lane; left && ((lane = (uint32_t)__builtin_ctz(left)), 1); left &= left - 1)

/* At most 256 bytes; the last words may overlap. */
static inline __attribute__((always_inline, target("general-regs-only"))) void
copy(char *to, const char *from, size_t size) {
    if (size >= 8) {
        for (size_t at = 0; at + 8 < size; at += 8) memcpy(to + at, from + at, 8);
        memcpy(to + size - 8, from + size - 8, 8);
    } else if (size >= 4) {
        memcpy(to, from, 4);
        memcpy(to + size - 4, from + size - 4, 4);
    } else if (size >= 2) {
        memcpy(to, from, 2);
        memcpy(to + size - 2, from + size - 2, 2);
    } else {
        *to = *from;
    }
}

/* Loads of a row include the inactive lanes between active ones. This cannot fault: a row is shorter than a
 * page, so these lanes are in the page of the first active lane or of the last one. A row is stored as a
 * whole only if its active lanes are neighbours. */
#define ACCESS(bytes)                                                                               \
    void smelt_runtime_load_lanes_##bytes(char *const *addresses, char *values, uint32_t lanes) {   \
        FOR_EACH_LANE(lane, lanes) memcpy(values + (size_t)lane * (bytes), addresses[lane], bytes); \
    }                                                                                               \
    void smelt_runtime_store_lanes_##bytes(char *const *addresses, char *values, uint32_t lanes) {  \
        FOR_EACH_LANE(lane, lanes) memcpy(addresses[lane], values + (size_t)lane * (bytes), bytes); \
    }                                                                                               \
    void smelt_runtime_load_row_##bytes(char *row, char *values, uint32_t lanes) {                  \
        if (!lanes) return;                                                                         \
        size_t first = (size_t)__builtin_ctz(lanes), end = 32 - (size_t)__builtin_clz(lanes);       \
        copy(values + first * (bytes), row + first * (bytes), (end - first) * (bytes));             \
    }                                                                                               \
    void smelt_runtime_store_row_##bytes(char *row, char *values, uint32_t lanes) {                 \
        uint32_t gaps = lanes & (lanes + (lanes & -lanes));                                         \
        if (!lanes) return;                                                                         \
        if (!gaps) {                                                                                \
            size_t first = (size_t)__builtin_ctz(lanes), end = 32 - (size_t)__builtin_clz(lanes);   \
            copy(row + first * (bytes), values + first * (bytes), (end - first) * (bytes));         \
            return;                                                                                 \
        }                                                                                           \
        FOR_EACH_LANE(lane, lanes)                                                                  \
        memcpy(row + (size_t)lane * (bytes), values + (size_t)lane * (bytes), bytes);               \
    }

KEEPS_REGISTERS static inline bool is_active(const struct lane_test *test, uint64_t lane) {
    return test->lanes[lane / 32] >> lane % 32 & 1;
}

KEEPS_REGISTERS static inline bool is_outside(struct lane_test *test, uint64_t address) {
    if (address - test->start < test->count) return false;
    test->address = address;
    return true;
}

bool smelt_runtime_finds_outside(struct lane_test *test) {
    for (uint64_t lane = 0; lane < test->lane_count; lane++)
        if (is_active(test, lane) && is_outside(test, test->address + (uint64_t)test->offsets[lane]))
            return true;
    return false;
}

bool smelt_runtime_finds_wrapped(struct wrapped_test *test) {
    for (uint64_t lane = 0; lane < test->test.lane_count; lane++) {
        uint64_t address = test->test.address + (uint64_t)test->test.offsets[lane];
        for (uint64_t i = 0; i < test->count; i++) {
            int64_t offset = test->indexes[i].offsets[lane];
            address += test->indexes[i].first + offset < 0 ? test->indexes[i].missing : 0;
        }
        if (is_active(&test->test, lane) && is_outside(&test->test, address)) return true;
    }
    return false;
}

/* NOLINTNEXTLINE(clang-diagnostic-excessive-regsave): copies of 1 to 8 bytes are not calls */
LANE_ACCESS_SIZES(ACCESS)
