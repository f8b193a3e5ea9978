/* Advice, on request: what is not wrong, but slow, or not what was meant.
 *
 * How lanes access memory together is seen in samples: of the first simdgroup of each of the first
 * threadgroups, the addresses of the first times that each access happened. Where all lanes made it, they are
 * judged: the banks of threadgroup memory, the sectors of device memory, the elements of private arrays. */
#include "check/state.h"

#include <stdlib.h>
#include <string.h>

enum {
    TIMES = 8,       /* of an access that are kept */
    MOST_GROUPS = 4, /* that are looked at */
    BANKS = 32,
    BANK_BYTES = 4,
    SECTOR_BYTES = 32, /* what device memory is read in at least */
    LEAST_SECTORS = 8, /* fewer are no matter */
    LEAST_WASTE = 8,   /* bytes moved for each that is used: components of a vector come one by one */
    LEAST_CONFLICT = 8 /* lanes that wait for each other; likewise */
};

struct sample {
    const struct check_site *site; /* NULL: none */
    enum check_space space;
    struct access access; /* of the first time */
    uint32_t bytes;
    const char *sum;             /* the address of its last addition of floats */
    uint64_t adder;              /* the thread of the grid that added */
    uint32_t count[CHECK_LANES]; /* by lane */
    uint64_t offset[TIMES][CHECK_LANES];
};

struct advice {
    uint32_t groups;        /* that have begun */
    uint64_t threads;       /* of these groups */
    struct sample *samples; /* by number of their sites */
    uint32_t room;
    bool *used; /* by argument */
};

bool advice_open(struct check *check) {
    if (!(check->launch.also & CHECK_ALSO_ADVICE)) return true;
    check->advice = calloc(1, sizeof *check->advice);
    if (!check->advice) return false;
    check->advice->used = calloc((size_t)check->launch.argument_count + 1, sizeof *check->advice->used);
    return check->advice->used != NULL;
}

void advice_close(struct check *check) {
    if (!check->advice) return;
    free(check->advice->samples);
    free(check->advice->used);
    free(check->advice);
}

/* ---- Samples. */

static struct sample *sample_of(struct check *check, const struct check_site *site) {
    struct advice *advice = check->advice;
    if (site->number >= advice->room) {
        uint32_t room = 2 * site->number + 16;
        struct sample *grown = realloc(advice->samples, room * sizeof *grown);
        check->out_of_memory |= !grown;
        if (!grown) return NULL;
        memset(grown + advice->room, 0, (room - advice->room) * sizeof *grown);
        advice->samples = grown;
        advice->room = room;
    }
    return &advice->samples[site->number];
}

static void keep(struct check *check, const char *address, uint64_t bytes, enum check_space space,
                 const struct check_site *site) {
    uint32_t lane = check->thread;
    struct sample *sample = sample_of(check, site);
    if (!sample || bytes > UINT32_MAX) return;
    if (!sample->site) {
        sample->site = site;
        sample->space = space;
        sample->access = check->now;
        sample->bytes = (uint32_t)bytes;
    }
    uint32_t time = sample->count[lane]++;
    if (time < TIMES)
        sample->offset[time][lane] = (uint64_t)((uintptr_t)address - (uintptr_t)check->now.base);
}

/* ---- What they show. */

static struct finding *advise(struct check *check, enum finding_kind kind, const struct check_site *site,
                              const struct access *access, bool *is_new) {
    struct finding *finding = findings_add(check->findings, kind, site, NULL, NULL, is_new);
    if (finding && *is_new && access)
        finding->told.argument = findings_text(check->findings, "%s", access->name ? access->name : "memory");
    return finding;
}

/* The most different words that lanes touch in one bank; accesses of more than a word take turns. */
static uint32_t bank_conflicts(const uint64_t *offsets, uint32_t bytes) {
    uint32_t words = bytes > BANK_BYTES ? bytes / BANK_BYTES : 1, most = 1;
    uint32_t together = words < CHECK_LANES ? CHECK_LANES / words : 1;
    for (uint32_t first = 0; first < CHECK_LANES; first += together) {
        for (uint32_t bank = 0; bank < BANKS; bank++) {
            uint64_t seen[CHECK_LANES * 4];
            uint32_t count = 0;
            for (uint32_t lane = first; lane < first + together; lane++)
                for (uint32_t w = 0; w < words && w < 4; w++) {
                    uint64_t word = offsets[lane] / BANK_BYTES + w;
                    bool known = word % BANKS != bank;
                    for (uint32_t i = 0; i < count && !known; i++) known = seen[i] == word;
                    if (!known) seen[count++] = word;
                }
            most = count > most ? count : most;
        }
    }
    return most;
}

static int by_size(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static uint32_t count_different(const uint64_t *offsets, uint32_t divisor) {
    uint64_t sorted[CHECK_LANES];
    uint32_t count = 1;
    for (int i = 0; i < CHECK_LANES; i++) sorted[i] = offsets[i] / divisor;
    qsort(sorted, CHECK_LANES, sizeof *sorted, by_size);
    for (int i = 1; i < CHECK_LANES; i++) count += sorted[i] != sorted[i - 1];
    return count;
}

/* The worst of the times that all lanes made it; 0: none is worth a word. */
static uint32_t judge_time(const struct sample *sample, const uint64_t *offsets) {
    if (sample->space == CHECK_PRIVATE) return count_different(offsets, 1) > 1;
    if (sample->space == CHECK_THREADGROUP) {
        uint32_t lanes = bank_conflicts(offsets, sample->bytes);
        return lanes >= LEAST_CONFLICT ? lanes : 0;
    }
    uint32_t sectors = count_different(offsets, SECTOR_BYTES),
             used = count_different(offsets, 1) * sample->bytes;
    return sectors >= LEAST_SECTORS && sectors * SECTOR_BYTES >= LEAST_WASTE * used ? sectors : 0;
}

static void tell(struct check *check, const struct sample *sample, uint32_t worst) {
    bool is_new;
    enum finding_kind kind = sample->space == CHECK_PRIVATE       ? FINDING_DYNAMIC_INDEX
                             : sample->space == CHECK_THREADGROUP ? FINDING_BANKS
                                                                  : FINDING_UNCOALESCED;
    struct finding *finding = advise(check, kind, sample->site, &sample->access, &is_new);
    if (!finding || !is_new) return;
    smelt_finding *told = &finding->told;
    if (kind == FINDING_DYNAMIC_INDEX)
        told->message =
            findings_text(check->findings,
                          "lanes access different elements of the private array '%s': it cannot lie "
                          "in registers",
                          told->argument);
    else if (kind == FINDING_BANKS)
        told->message =
            findings_text(check->findings,
                          "%u lanes access different words of one bank of '%s' at a time: they wait "
                          "for each other",
                          worst, told->argument);
    else
        told->message =
            findings_text(check->findings,
                          "the lanes of a simdgroup access '%s' in %u sectors of %d bytes, and use "
                          "few bytes of each; neighbouring lanes should access neighbouring elements",
                          told->argument, worst, SECTOR_BYTES);
}

static void judge(struct check *check, struct sample *sample) {
    uint32_t times = TIMES, bad = 0, worst = 0;
    for (int lane = 0; lane < CHECK_LANES; lane++)
        times = sample->count[lane] < times ? sample->count[lane] : times;
    for (uint32_t time = 0; time < times; time++) {
        uint32_t found = judge_time(sample, sample->offset[time]);
        bad += found > 0;
        worst = found > worst ? found : worst;
    }
    if (2 * bad > times) tell(check, sample, worst);
    memset(sample->count, 0, sizeof sample->count);
}

static void judge_all(struct check *check) {
    struct advice *advice = check->advice;
    for (uint32_t i = 0; i < advice->room; i++)
        if (advice->samples[i].site) judge(check, &advice->samples[i]);
}

void advice_begin_group(struct check *check, const struct check_group *group) {
    if (!check->advice) return;
    judge_all(check);
    check->advice->groups++;
    check->advice->threads += (uint64_t)group->size[0] * group->size[1] * group->size[2];
}

/* ---- Accesses. */

void advice_use(struct check *check, const struct check_argument *argument) {
    if (check->advice) check->advice->used[argument - check->arguments] = true;
}

/* Whether the last addition at this site was to the same address, by another thread. race.c misses sums by
 * exchanges: the atomic load before an exchange counts as a change by the same thread. */
static bool added_by_other(struct check *check, const char *address, const struct check_site *site) {
    struct sample *sample = sample_of(check, site);
    uint64_t thread = (uint64_t)check->group.number << 32 | check->thread;
    if (!sample) return false;
    bool other = sample->sum == address && sample->adder != thread;
    sample->sum = address;
    sample->adder = thread;
    return other;
}

void advice_access(struct check *check, const char *address, uint64_t bytes, enum check_access access,
                   enum check_space space, const struct check_site *site) {
    bool is_new, atomic = access == CHECK_ATOMIC || access == CHECK_ATOMIC_SUM;
    const struct region *region = access == CHECK_ATOMIC_SUM ? memories_region(check, address) : NULL;
    if (region && (race_changed_by_other(check, region, address) || added_by_other(check, address, site))) {
        struct finding *finding = advise(check, FINDING_ATOMIC_SUM, site, NULL, &is_new);
        if (finding && is_new) {
            check_place(check, &finding->told);
            check_name(check, address, &finding->told);
            finding->told.message = findings_text(check->findings,
                                                  "several threads add floats to '%s' atomically: the order, "
                                                  "and so the rounding, differs from run "
                                                  "to run",
                                                  finding->told.argument);
        }
    }
    if (!atomic && space != CHECK_CONSTANT && space != CHECK_ANYWHERE && check->thread < CHECK_LANES &&
        check->advice->groups <= MOST_GROUPS)
        keep(check, address, bytes, space, site);
}

/* ---- Comparisons. */

void smelt_check_condition(const struct check_site *site) {
    struct check *check = check_this;
    bool is_new;
    if (!check->advice || check->thread || check->group.number) return; /* every thread calls it */
    struct finding *finding = advise(check, FINDING_NEVER_TRUE, site, NULL, &is_new);
    if (finding && is_new)
        finding->told.message =
            findings_text(check->findings, "this comparison is never true: %s", site->name);
}

/* ---- At the end. */

static void unused(struct check *check, const struct check_argument *argument) {
    bool is_new;
    struct finding *finding = findings_add(check->findings, FINDING_UNUSED, NULL, NULL, argument, &is_new);
    if (!finding) return;
    finding->told.argument = findings_text(check->findings, "%s", argument->name);
    finding->told.message =
        findings_text(check->findings, "no thread of this run uses the argument '%s'", argument->name);
}

/* An argument whose elements are written from the first one on, but not to the end. A grid with more threads
 * than written elements ends there on purpose. undefined.c looks at outputs that nobody has filled. */
static void covered(struct check *check, const struct check_argument *argument) {
    const struct region *region = memories_region(check, argument->start);
    uint64_t cells = argument->bytes / 4, first, written = 0;
    bool is_new;
    if (argument->undefined || !region || !cells) return;
    const struct cell *cell = &region->cells[(argument->start - region->start) / 4];
    for (first = 0; first < cells && cell[first].writer; first++) {
    }
    for (uint64_t i = first; i < cells; i++) written += cell[i].writer != 0;
    uint64_t element = first * 4 / argument->element;
    if (!first || first == cells || written || element * argument->element != first * 4) return;
    if (element < check->advice->threads) return;
    struct finding *finding = findings_add(check->findings, FINDING_COVERAGE, NULL, NULL, argument, &is_new);
    if (!finding) return;
    finding->told.argument = findings_text(check->findings, "%s", argument->name);
    finding->told.index = (int64_t)element;
    finding->told.has_index = true;
    finding->told.message =
        findings_text(check->findings,
                      "the grid writes the first %llu of the %llu elements of '%s', and none after them; it "
                      "may be too small",
                      (unsigned long long)element, (unsigned long long)(argument->bytes / argument->element),
                      argument->name);
}

void advice_end(struct check *check) {
    if (!check->advice) return;
    judge_all(check);
    for (int i = 0; i < check->launch.argument_count; i++) {
        const struct check_argument *argument = &check->arguments[i];
        if (!argument->bytes || !*argument->name) continue;
        if (check->advice->used[i])
            covered(check, argument);
        else
            unused(check, argument);
    }
}
