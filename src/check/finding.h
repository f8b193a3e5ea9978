/* Findings of a checked launch. */
#ifndef SMELT_CHECK_FINDING_H
#define SMELT_CHECK_FINDING_H

#include "abi/check.h"
#include "base/arena.h"
#include "base/error.h"
#include "smelt/check.h"

/* Of different places; the rest is only counted. */
#define MOST_FINDINGS 1000

enum finding_kind {
    FINDING_OUT_OF_BOUNDS,
    FINDING_RACE,
    FINDING_SIMDGROUP_RACE,
    FINDING_GROUP_RACE,
    FINDING_UNINITIALISED,
    FINDING_UNWRITTEN,
    FINDING_BARRIER,
    FINDING_OVERFLOW,
    FINDING_SHIFT,
    FINDING_DIVISION,
    FINDING_CONVERSION,
    FINDING_MISALIGNED,
    FINDING_INACTIVE_LANE,
    FINDING_MISSED_BY_LANES,
    FINDING_NOT_FINITE,
    FINDING_WRAP,
    FINDING_ASSERTION,
    FINDING_COVERAGE,
    FINDING_UNUSED,
    FINDING_BANKS,
    FINDING_UNCOALESCED,
    FINDING_DYNAMIC_INDEX,
    FINDING_ATOMIC_SUM,
    FINDING_NEVER_TRUE,
    FINDING_KINDS
};

struct finding {
    struct finding *next; /* in its bucket */
    bool listed;
    enum finding_kind kind;
    const struct check_site *site, *other; /* what makes it the same finding; NULL: none */
    const void *object;
    smelt_finding told;
};

struct findings {
    struct arena arena;
    struct finding *list[MOST_FINDINGS];
    struct finding *buckets[256];
    int count;
};

/* The finding of this kind at these places, once more. *is_new: the caller fills the rest of `told`, strings
 * in the arena. NULL if out of memory. */
struct finding *findings_add(struct findings *findings, enum finding_kind kind, const struct check_site *site,
                             const struct check_site *other, const void *object, bool *is_new);

/* The same of what is a finding only if something comes of it: it is listed once findings_tell is called. */
struct finding *findings_hold(struct findings *findings, enum finding_kind kind,
                              const struct check_site *site, const void *object, bool *is_new);
void findings_tell(struct findings *findings, struct finding *finding);

/* Keeps only those that `keep` says true of; it may change them. */
void findings_filter(struct findings *findings, bool (*keep)(const void *context, smelt_finding *finding),
                     const void *context);

/* Of the kinds advice and coverage: no error. */
bool finding_is_advice(const smelt_finding *finding);

/* Text in the arena; "" without memory. */
const char *findings_text(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The message for an access that misses its array. told: its threads, argument and index are set. bytes: the
 * size of the access if it is larger than an element; otherwise 0. count: the array's elements. shape: the
 * array's; "" if the message need not give it. */
const char *findings_outside(struct findings *findings, const smelt_finding *told, const char *verb,
                             uint64_t bytes, uint64_t count, const char *shape);

/* … for an access at an address that is not a multiple of `bytes`. */
const char *findings_misaligned(struct findings *findings, const smelt_finding *told, const char *verb,
                                uint64_t bytes);

/* Ends a checked launch of `kernel`: the findings that `accept` (optional) takes become the calling thread's,
 * which owns `findings` from then on. Returns CHECK, with the message of the first one that is not advice, if
 * there is one. */
smelt_status findings_end(struct findings *findings, const char *kernel,
                          bool (*accept)(const void *context, smelt_finding *finding), const void *context);

/* The calling thread's findings become these, which are taken, or none. */
void findings_publish(struct findings *findings);
void findings_free(struct findings *findings);

#endif
