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

/* The active ones of the 32 lanes from 32 * word on. */
KEEPS_REGISTERS static inline __attribute__((always_inline)) uint32_t active(const struct lane_test *test,
                                                                             uint32_t word) {
    uint32_t left = test->lane_count - 32 * word;
    return test->lanes[word] & (left < 32 ? (1u << left) - 1 : ~0u);
}

/* Whether all active lanes are inside because the first and the last one are, and no index may have wrapped:
 * the other addresses lie between theirs. */
KEEPS_REGISTERS static inline __attribute__((always_inline)) bool
ends_inside(const struct lane_test *test, const struct wrapped_index *indexes, uint64_t count) {
    uint32_t low = 0, high = (test->lane_count + 31) / 32;
    while (low < high && !active(test, low)) low++;
    if (low == high) return true;
    while (!active(test, high - 1)) high--;
    /* NOLINTBEGIN(clang-diagnostic-excessive-regsave): __builtin_ctz and __builtin_clz are no calls */
    uint32_t first = 32 * low + (uint32_t)__builtin_ctz(active(test, low));
    uint32_t last = 32 * high - 1 - (uint32_t)__builtin_clz(active(test, high - 1));
    /* NOLINTEND(clang-diagnostic-excessive-regsave) */
    for (uint64_t i = 0; i < count; i++)
        if (indexes[i].first + indexes[i].offsets[first] < 0) return false;
    uint64_t from = test->address - test->start;
    return from + (uint64_t)test->offsets[first] < test->count &&
           from + (uint64_t)test->offsets[last] < test->count;
}

/* Whether the address of an active lane is not allowed; `count` is that of the indexes that may have wrapped.
 * In a prefix sum, each round calls this, since inactive lanes have addresses before the array. So the
 * first and the last active lane stand for all where they can, and the test's fields are read once. */
KEEPS_REGISTERS static inline __attribute__((always_inline)) bool
finds(struct lane_test *test, const struct wrapped_index *indexes, uint64_t count) {
    if (test->ascending && ends_inside(test, indexes, count)) return false;
    const int64_t *offsets = test->offsets;
    const uint64_t from = test->address - test->start, allowed = test->count;
    for (uint32_t word = 0; 32 * word < test->lane_count; word++) {
        /* NOLINTNEXTLINE(clang-diagnostic-excessive-regsave): __builtin_ctz is no call */
        FOR_EACH_LANE(place, active(test, word)) {
            uint64_t lane = 32 * word + place, address = from + (uint64_t)offsets[lane];
            for (uint64_t i = 0; i < count; i++)
                address += indexes[i].first + indexes[i].offsets[lane] < 0 ? indexes[i].missing : 0;
            if (address < allowed) continue;
            test->address = address + test->start;
            return true;
        }
    }
    return false;
}

bool smelt_runtime_finds_outside(struct lane_test *test) {
    return finds(test, NULL, 0);
}

uint32_t smelt_runtime_lane_outside(const uint64_t *addresses, uint32_t lanes, uint64_t start,
                                    uint64_t count) {
    /* NOLINTNEXTLINE(clang-diagnostic-excessive-regsave): __builtin_ctz is no call */
    FOR_EACH_LANE(lane, lanes) {
        if (addresses[lane] - start >= count) return lane;
    }
    return NO_LANE;
}

bool smelt_runtime_finds_wrapped(struct wrapped_test *wrapped) {
    return finds(&wrapped->test, wrapped->indexes, wrapped->count);
}

/* NOLINTNEXTLINE(clang-diagnostic-excessive-regsave): copies of 1 to 8 bytes are not calls */
LANE_ACCESS_SIZES(ACCESS)
