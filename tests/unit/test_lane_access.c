/* Tests of lanes' addresses (device/cpu/arch/x86_64/lane_access.c): where offsets ascend, the first and the
 * last active lane may stand for the others, and the answer is that of a test of every lane. */
#include "unit.h"

#include "abi/lane_access.h"

#include <stdlib.h>

#define MOST_LANES 70

static uint64_t seed = 1;

static uint64_t below(uint64_t limit) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (seed >> 33) % limit;
}

struct trial {
    struct wrapped_test test;
    int64_t offsets[MOST_LANES], index_offsets[MOST_LANES];
    uint32_t lanes[(MOST_LANES + 31) / 32];
};

/* Lanes step through an array by 0 to 2 elements of 4 bytes; an index of them may be below 0, where 2^34
 * bytes are missing. */
static void fill(struct trial *t) {
    uint32_t lane_count = 1 + (uint32_t)below(MOST_LANES);
    int64_t step = (int64_t)below(3), first = (int64_t)below(200) - 100;
    for (int64_t l = 0; l < MOST_LANES; l++) {
        t->index_offsets[l] = l * step;
        t->offsets[l] = 4 * t->index_offsets[l];
    }
    /* Bits of lanes that the gang does not have may be set. */
    uint64_t share = below(4);
    for (size_t w = 0; w < sizeof t->lanes / sizeof *t->lanes; w++) {
        t->lanes[w] = 0;
        for (uint32_t l = 0; l < 32; l++) t->lanes[w] |= (uint32_t)(below(4) < share) << l;
    }
    t->test = (struct wrapped_test){.test = {.start = 1 << 20,
                                             .count = 1 + below(400),
                                             .offsets = t->offsets,
                                             .lanes = t->lanes,
                                             .lane_count = (uint16_t)lane_count,
                                             .address = (uint64_t)((1 << 20) + 4 * first) + 4 * below(100)},
                                    .count = below(2),
                                    .indexes = {{first, t->index_offsets, UINT64_C(1) << 34}}};
}

/* The address found, or 0. */
static uint64_t found(const struct trial *trial, uint32_t ascending) {
    struct wrapped_test test = trial->test;
    test.test.ascending = ascending;
    bool outside = test.count ? smelt_runtime_finds_wrapped(&test) : smelt_runtime_finds_outside(&test.test);
    return outside ? test.test.address : 0;
}

static void ends_stand_for_all_lanes(void **state) {
    (void)state;
    int outside = 0;
    const int trials = 100000;
    for (int i = 0; i < trials; i++) {
        struct trial trial;
        fill(&trial);
        uint64_t expected = found(&trial, 0), own = found(&trial, 1);
        if (own != expected)
            FAIL_TEST("trial %d: found %#llx, expected %#llx", i, (unsigned long long)own,
                      (unsigned long long)expected);
        outside += expected != 0;
    }
    assert_in_range(outside, trials / 5, trials * 4 / 5);
}

/* Offsets that fall are tested lane by lane. */
static void lanes_in_any_order(void **state) {
    (void)state;
    struct trial trial;
    fill(&trial);
    trial.offsets[0] = 0, trial.offsets[1] = -4, trial.offsets[2] = 0;
    trial.lanes[0] = 7;
    trial.test.test.lane_count = 3;
    trial.test.test.address = trial.test.test.start;
    trial.test.count = 0;
    assert_int_equal(found(&trial, 0), trial.test.test.start - 4);
    trial.lanes[0] = 5;
    assert_int_equal(found(&trial, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_stand_for_all_lanes),
        cmocka_unit_test(lanes_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
