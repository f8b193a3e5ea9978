/* Simdgroup functions that lanes miss.
 *
 * A shuffle takes values from other lanes, whose shadow comes with them. From a lane that does not take part,
 * because it has ended, is elsewhere, or does not exist, Metal defines no value: the result is undefined,
 * which becomes a finding where it is used. Kernels that compute the sum of a part of the lanes discard such
 * results.
 *
 * An element of a product of simdgroup matrices is undefined if an element of its row, of its column, or what
 * it is added to is. A sum or a scan is undefined if a lane's value that it depends on is, and a bit of a
 * vote if its lane's condition is. Products need all lanes, barriers those that have not ended. Sums, scans
 * and votes are defined among the lanes that take part: missing lanes are findings on request. */
#include "abi/simdgroup.h"
#include "check/state.h"

#include <string.h>

void smelt_check_simdgroup(const struct check_site *site) {
    struct check *check = check_this;
    struct thread_state *thread = &check->threads[check->thread];
    thread->site = site;
    memset(thread->shared, 0, sizeof thread->shared);
}

void smelt_check_shared(uint64_t value, uint32_t operand) {
    struct check *check = check_this;
    const struct check_parameters *parameters = smelt_check_parameters();
    (void)value;
    check->threads[check->thread].shared[operand] =
        (struct shared_value){parameters->parameters[0], parameters->origins[0]};
}

static void place(struct check *check, const struct check_lanes *lanes, unsigned lane, smelt_finding *told) {
    check->thread = lanes->first + lane;
    check_place(check, told);
}

static const char *why_absent(const struct check_lanes *lanes, unsigned lane) {
    if (!(lanes->exist >> lane & 1)) return "does not exist in this simdgroup";
    return lanes->left >> lane & 1 ? "has returned" : "does not take part";
}

/* from: as in struct check_lanes. */
static uint32_t origin_of_absent(struct check *check, const struct check_lanes *lanes, unsigned lane,
                                 unsigned from) {
    bool is_missing = from >= CHECK_MISSING_LANE;
    unsigned number = is_missing ? from - CHECK_MISSING_LANE : from;
    bool is_new;
    const struct check_site *site = check->threads[lanes->first + lane].site;
    struct finding *finding = findings_hold(check->findings, FINDING_INACTIVE_LANE, site, NULL, &is_new);
    if (!finding) return 0;
    if (is_new) {
        smelt_finding *told = &finding->told;
        place(check, lanes, lane, told);
        told->message = findings_text(
            check->findings,
            "thread (%u, %u, %u) of threadgroup (%u, %u, %u), lane %u, uses a value "
            "from lane %u%s, which %s",
            told->thread[0], told->thread[1], told->thread[2], told->threadgroup[0], told->threadgroup[1],
            told->threadgroup[2], lane, number, is_missing && number < CHECK_LANES ? " of its quad" : "",
            is_missing ? "does not exist" : why_absent(lanes, from));
    }
    return undefined_origin(check, ORIGIN_HELD, finding);
}

static void shuffle(struct check *check, const struct check_lanes *lanes) {
    for (unsigned lane = 0; lane < CHECK_LANES; lane++) {
        if (!(lanes->active >> lane & 1)) continue;
        unsigned from = lanes->sources[lane];
        struct check_parameters *parameters = check->parameters[lanes->first + lane];
        if (!parameters) continue; /* out of memory, or nothing was ever undefined */
        if (from == CHECK_OWN_VALUE) from = lane;
        if (from < CHECK_LANES && lanes->active >> from & 1) {
            const struct thread_state *source = &check->threads[lanes->first + from];
            parameters->result[0] = source->shared[0].shadow;
            parameters->result_origin = source->shared[0].origin;
        } else {
            parameters->result[0] = UINT64_MAX;
            parameters->result_origin = origin_of_absent(check, lanes, lane, from);
        }
    }
}

/* The first value that is undefined among those that an element of the product depends on; the last one if
 * none is. Operands: abi/simdgroup.h. */
static struct shared_value of_product(const struct check *check, const struct check_lanes *lanes,
                                      unsigned lane) {
    const struct thread_state *threads = check->threads + lanes->first;
    for (unsigned term = 0; term < 8; term++) {
        unsigned left = SIMD_MATRIX_LEFT_LANE(lane, term), right = SIMD_MATRIX_RIGHT_LANE(lane, term);
        const struct shared_value *a = &threads[left].shared[term % 2], *b = &threads[right].shared[2];
        if (lanes->active >> left & 1 && a->shadow) return *a;
        if (lanes->active >> right & 1 && b->shadow) return *b;
    }
    return threads[lane].shared[3];
}

static void multiply(struct check *check, const struct check_lanes *lanes) {
    for (unsigned lane = 0; lane < CHECK_LANES; lane++) {
        struct check_parameters *parameters = check->parameters[lanes->first + lane];
        if (!(lanes->active >> lane & 1) || !parameters) continue;
        struct shared_value value = of_product(check, lanes, lane);
        parameters->result[0] = value.shadow ? UINT64_MAX : 0;
        parameters->result_origin = value.origin;
    }
}

static void give(struct check *check, const struct check_lanes *lanes, unsigned lane,
                 struct shared_value value) {
    struct check_parameters *parameters = check->parameters[lanes->first + lane];
    if (!parameters || !(lanes->active >> lane & 1)) return;
    parameters->result[0] = value.shadow;
    parameters->result_origin = value.origin;
}

static const struct shared_value *shared_by(const struct check *check, const struct check_lanes *lanes,
                                            unsigned lane) {
    const struct shared_value *value = &check->threads[lanes->first + lane].shared[0];
    return lanes->active >> lane & 1 && value->shadow ? value : NULL;
}

/* Gives a reduction the first undefined value of its lanes, and a scan that of the lanes before. */
static void collect(struct check *check, const struct check_lanes *lanes) {
    for (unsigned first = 0; first < CHECK_LANES; first += lanes->width) {
        struct shared_value found = {0, 0};
        for (unsigned i = 0; i < lanes->width; i++) {
            const struct shared_value *own = shared_by(check, lanes, first + i);
            if (lanes->scan == CHECK_SCAN_EXCLUSIVE) give(check, lanes, first + i, found);
            if (own && !found.shadow) found = (struct shared_value){UINT64_MAX, own->origin};
            if (lanes->scan == CHECK_SCAN_INCLUSIVE) give(check, lanes, first + i, found);
        }
        for (unsigned i = 0; i < lanes->width && !lanes->scan; i++) give(check, lanes, first + i, found);
    }
}

static void vote(struct check *check, const struct check_lanes *lanes) {
    struct shared_value bits = {0, 0};
    for (unsigned lane = 0; lane < CHECK_LANES; lane++) {
        const struct shared_value *own = shared_by(check, lanes, lane);
        if (!own) continue;
        bits.shadow |= UINT64_C(1) << lane;
        bits.origin = own->origin;
    }
    for (unsigned lane = 0; lane < CHECK_LANES; lane++) give(check, lanes, lane, bits);
}

static void missed(struct check *check, const struct check_lanes *lanes, uint32_t without, const char *what) {
    bool is_new;
    unsigned lane = (unsigned)__builtin_ctz(lanes->active), other = (unsigned)__builtin_ctz(without);
    const struct check_site *site = check->threads[lanes->first + lane].site;
    struct finding *finding =
        findings_add(check->findings, FINDING_MISSED_BY_LANES, site, NULL, NULL, &is_new);
    if (!finding || !is_new) return;
    smelt_finding *told = &finding->told;
    place(check, lanes, lane, told);
    told->message = findings_text(check->findings,
                                  "thread (%u, %u, %u) of threadgroup (%u, %u, %u) performs %s with %d of "
                                  "the 32 lanes of its simdgroup: "
                                  "lane %u %s",
                                  told->thread[0], told->thread[1], told->thread[2], told->threadgroup[0],
                                  told->threadgroup[1], told->threadgroup[2], what,
                                  __builtin_popcount(lanes->active), other, why_absent(lanes, other));
}

/* Lanes of groups of `width` in which some lanes take part, and these do not. */
static uint32_t absent_of_groups(const struct check_lanes *lanes) {
    uint32_t absent = 0;
    for (uint32_t first = 0; first < CHECK_LANES; first += lanes->width) {
        uint32_t group = lanes->width < CHECK_LANES ? ((1u << lanes->width) - 1) << first : ~0u;
        if (lanes->active & group) absent |= group & ~lanes->active;
    }
    return absent;
}

void check_simdgroup(struct check *check, const struct check_lanes *lanes) {
    uint32_t thread = check->thread, waited_for = lanes->exist & ~lanes->left & ~lanes->active;
    switch (lanes->function) {
    case CHECK_LANES_SHUFFLE:
        shuffle(check, lanes);
        break;
    case CHECK_LANES_PRODUCT:
        if (~lanes->active) missed(check, lanes, ~lanes->active, "a product of matrices");
        multiply(check, lanes);
        break;
    case CHECK_LANES_BARRIER:
        if (waited_for) missed(check, lanes, waited_for, "simdgroup_barrier");
        break;
    case CHECK_LANES_COLLECTIVE:
        if (absent_of_groups(lanes) && check->launch.also & CHECK_ALSO_DIVERGENT)
            missed(check, lanes, absent_of_groups(lanes), "a sum, scan or the like");
        collect(check, lanes);
        break;
    case CHECK_LANES_VOTE:
        vote(check, lanes);
        break;
    }
    check->thread = thread;
}
