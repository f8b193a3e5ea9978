/* The launch of SIMD code (device/cpu/gang.c), with gangs written by hand: every thread of a grid runs once
 * and knows its position, barriers hold between gangs, and errors are reported. */
#include "unit.h"

#include "device/cpu/gang.h"
#include "device/cpu_shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* ---- An entry that is not compiled. */

struct fake {
    gang_function *full, *edge; /* the functions of its codes; the same if edge is NULL */
    uint32_t full_lanes, edge_lanes;
    bool has_barrier, barrier_hint;
    uint64_t stack_bytes;
    /* The scalar engine's code where the SIMD engine refuses: specialised to full groups, and for any
     * group. */
    kernel_function *full_thread, *thread;
    bool full_refused, edge_refused;
    bool full_quick; /* there is only quick code for full groups */
};

static _Atomic int compiles;

static smelt_status no_compiler(void *context, const char *target, const struct code_shape *shape,
                                const struct known_values *values, enum compile_effort effort,
                                struct image *image, bool *cache_hit) {
    (void)values;
    (void)context;
    (void)target;
    (void)shape;
    (void)effort;
    (void)image;
    (void)cache_hit;
    atomic_fetch_add(&compiles, 1);
    return fail(SMELT_ERROR_INTERNAL, "a code was asked for that the launch does not need");
}

static void no_owner(void *context) {
    (void)context;
}

static void add_code(struct executable *executable, const struct fake *fake, const struct code_shape *shape,
                     bool edge) {
    struct code *code = calloc(1, sizeof *code);
    assert_non_null(code);
    code->head.shape = *shape;
    code->gang = edge && fake->edge ? fake->edge : fake->full;
    code->head.image = (struct image){.engine = ENGINE_SIMD,
                                      .lanes = edge ? fake->edge_lanes : fake->full_lanes,
                                      .has_barrier = fake->has_barrier,
                                      .stack_bytes = fake->stack_bytes,
                                      .threadgroup_bytes = MAX_THREADS_PER_GROUP * sizeof(uint32_t)};
    if (edge ? fake->edge_refused : fake->full_refused) {
        code->head.image.engine = ENGINE_SCALAR;
        code->thread = edge ? fake->thread : fake->full_thread;
    }
    code->head.image.quick = !edge && fake->full_quick;
    executable_add(executable, &code->head);
}

static smelt_status launch_fake(const struct fake *fake, struct launch *launch) {
    const struct device *cpu;
    struct code_source source = {
        .compile = no_compiler, .hold = no_owner, .let_go = no_owner, .barrier_hint = fake->barrier_hint};
    struct launch_shapes shapes;
    launch_count_groups(launch);
    launch_shapes(launch, fake->barrier_hint, &shapes);
    assert_int_equal(device_find("cpu", &cpu), SMELT_OK);
    assert_int_equal(executable_load(cpu, &source, "fake", &launch->executable), SMELT_OK);
    if (shapes.has_full) add_code(launch->executable, fake, &shapes.full, shapes.full.masked);
    if (shapes.has_edge) add_code(launch->executable, fake, &shapes.edge, true);
    smelt_status status = cpu->run(launch);
    (void)executable_wait(launch->executable);
    executable_unload(launch->executable);
    return status;
}

static uint32_t threads_of(const uint32_t size[3]) {
    return size[0] * size[1] * size[2];
}

/* Errors that gangs detect: a test's assertions must not leave a fiber. */
static _Atomic int complaints;

static void require(bool truth) {
    if (!truth) atomic_fetch_add(&complaints, 1);
}

/* ---- Positions. */

static _Atomic uint32_t *visits; /* by thread of the grid, x fastest */

static void visit(const struct gang_context *context) {
    const struct group_context *group = context->group;
    uint32_t position[3];
    memcpy(position, context->position, sizeof position);
    for (uint32_t lane = 0; lane < context->count; lane++) {
        uint64_t place[3];
        uint32_t index = context->first + lane;
        require(index == (position[2] * group->size[1] + position[1]) * group->size[0] + position[0]);
        for (int d = 0; d < 3; d++) {
            place[d] = (uint64_t)group->position[d] * group->dispatch_size[d] + position[d];
            require(position[d] < group->size[d] && place[d] < group->grid[d]);
        }
        atomic_fetch_add(&visits[(place[2] * group->grid[1] + place[1]) * group->grid[0] + place[0]], 1);
        if (++position[0] == group->size[0]) {
            position[0] = 0;
            if (++position[1] == group->size[1]) {
                position[1] = 0;
                position[2]++;
            }
        }
    }
    for (int d = 0; d < 3; d++) {
        uint64_t start = (uint64_t)group->position[d] * group->dispatch_size[d];
        uint64_t left = group->grid[d] - start;
        require(group->position[d] < group->groups[d]);
        require(group->size[d] == (left < group->dispatch_size[d] ? left : group->dispatch_size[d]));
    }
    require(group->simdgroup_count == (threads_of(group->size) + 31) / 32);
    for (int w = 0; w < GANG_MAX_LANES / 32; w++) require(context->returned[w] == 0);
}

static uint32_t full_lanes, edge_lanes;

static void visit_in_full_group(struct gang_context *context) {
    require(context->count == full_lanes && context->first % full_lanes == 0);
    for (int d = 0; d < 3; d++) require(context->group->size[d] == context->group->dispatch_size[d]);
    visit(context);
    memset(context->returned, 0xff, sizeof context->returned);
}

static void visit_in_edge_group(struct gang_context *context) {
    const struct group_context *group = context->group;
    bool full = memcmp(group->size, group->dispatch_size, sizeof group->size) == 0;
    require(!full || threads_of(group->dispatch_size) % 32 != 0);
    uint32_t left = threads_of(group->size) - context->first;
    require(context->count == (left < edge_lanes ? left : edge_lanes) && context->first % edge_lanes == 0);
    visit(context);
    memset(context->returned, 0xff, sizeof context->returned);
}

/* With barriers, so that gangs take turns. */
static void visit_and_wait(struct gang_context *context) {
    visit(context);
    smelt_runtime_gang_barrier(context, 1, "fake");
    smelt_runtime_gang_barrier(context, 2, "fake");
    memset(context->returned, 0xff, sizeof context->returned);
}

static uint32_t random_below(uint32_t limit) {
    return (uint32_t)rand() % limit;
}

/* A group of at most 1024 threads and a grid of some of it. */
static void random_sizes(uint32_t grid[3], uint32_t group[3]) {
    int dimensions = 1 + (int)random_below(3);
    static const uint32_t limits[4] = {0, 1024, 32, 10}, grids[4] = {0, 50000, 200, 40};
    for (int d = 0; d < 3; d++) {
        group[d] = d < dimensions ? 1 + random_below(limits[dimensions]) : 1;
        if (random_below(2) && d < dimensions)
            group[d] = UINT32_C(1) << random_below(dimensions == 1 ? 11 : 4);
        grid[d] = d < dimensions ? 1 + random_below(grids[dimensions]) : 1;
        if (random_below(2)) grid[d] = (grid[d] + group[d] - 1) / group[d] * group[d];
    }
}

/* The lanes of a gang: some simdgroups, or a part of one; for code that is not masked, groups consist of
 * whole gangs. */
static uint32_t random_lanes(uint32_t threads, bool masked) {
    uint32_t lanes;
    do lanes = random_below(2) ? UINT32_C(8) << random_below(6) : 32 * (1 + random_below(8));
    while (!masked && threads % lanes);
    return lanes;
}

static void every_thread_runs_once_at_its_place(void **state) {
    (void)state;
    srand(3);
    for (int round = 0; round < 300; round++) {
        struct launch launch = {.buffers = NULL};
        random_sizes(launch.grid, launch.group_size);
        uint32_t threads = threads_of(launch.group_size), total = threads_of(launch.grid);
        edge_lanes = random_lanes(0, true);
        full_lanes = threads % 32 ? edge_lanes : random_lanes(threads, false);
        visits = calloc(total, sizeof *visits);
        assert_non_null(visits);
        struct fake fake = {.full = visit_in_full_group,
                            .edge = visit_in_edge_group,
                            .full_lanes = full_lanes,
                            .edge_lanes = edge_lanes,
                            .barrier_hint = random_below(2)};
        bool waits = round % 3 == 0;
        if (waits) fake.full = fake.edge = visit_and_wait;
        fake.has_barrier = waits;
        if (launch_fake(&fake, &launch) != SMELT_OK) FAIL_TEST("%s", smelt_error());
        for (uint32_t i = 0; i < total; i++)
            if (visits[i] != 1 || complaints)
                FAIL_TEST(
                    "grid %u %u %u in groups of %u %u %u, gangs of %u and %u: thread %u ran %u times; %d "
                    "complaints",
                    launch.grid[0], launch.grid[1], launch.grid[2], launch.group_size[0],
                    launch.group_size[1], launch.group_size[2], full_lanes, edge_lanes, i, visits[i],
                    complaints);
        free(visits);
    }
}

static void visit_as_thread(struct thread_context *context) {
    const struct group_context *group = context->group;
    uint64_t at = 0;
    for (int d = 2; d >= 0; d--)
        at = at * group->grid[d] + (uint64_t)group->position[d] * group->dispatch_size[d] +
             context->position[d];
    atomic_fetch_add(&visits[at], 1);
}

static void visit_as_thread_of_full_group(struct thread_context *context) {
    const struct group_context *group = context->group;
    require(memcmp(group->size, group->dispatch_size, sizeof group->size) == 0);
    visit_as_thread(context);
}

static void run_no_gang(struct gang_context *context) {
    (void)context;
    require(false);
}

static void visit_in_any_group(struct gang_context *context) {
    visit(context);
    memset(context->returned, 0xff, sizeof context->returned);
}

/* A launch has one engine: if either code is refused, all groups run the code for those at the edge. */
static void a_launch_with_a_refused_code_runs_one_code(void **state) {
    (void)state;
    static const uint32_t grids[][3] = {{70, 9, 1}, {64, 8, 1}, {20, 3, 1}};
    for (int refused = 1; refused < 4; refused++)
        for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
            struct fake fake = {.full = run_no_gang,
                                .edge = visit_in_any_group,
                                .full_lanes = 32,
                                .edge_lanes = 32,
                                .full_thread = visit_as_thread_of_full_group,
                                .thread = visit_as_thread,
                                .full_refused = refused & 1,
                                .edge_refused = refused & 2};
            struct launch launch = {.group_size = {32, 4, 1}};
            memcpy(launch.grid, grids[g], sizeof launch.grid);
            bool has_refused = (g < 2 && fake.full_refused) || (g != 1 && fake.edge_refused);
            if (!has_refused) continue;
            uint32_t total = threads_of(launch.grid);
            visits = calloc(total, sizeof *visits);
            assert_non_null(visits);
            assert_int_equal(launch_fake(&fake, &launch), SMELT_OK);
            for (uint32_t i = 0; i < total; i++) assert_int_equal(visits[i], 1);
            assert_int_equal(complaints, 0);
            free(visits);
        }
}

/* Earlier launches had groups at the edge only, whose best code is there. It runs in place of the scalar
 * engine's quick code for full groups; their best code is compiled all the same. */
static void the_best_code_of_full_groups_follows(void **state) {
    (void)state;
    struct fake fake = {.full = run_no_gang,
                        .edge = visit_in_any_group,
                        .full_lanes = 32,
                        .edge_lanes = 32,
                        .full_thread = visit_as_thread_of_full_group,
                        .full_refused = true,
                        .full_quick = true};
    struct launch launch = {.group_size = {32, 4, 1}, .grid = {70, 9, 1}};
    uint32_t total = threads_of(launch.grid);
    visits = calloc(total, sizeof *visits);
    assert_non_null(visits);
    setenv("SMELT_TIERS", "1", 1);
    assert_int_equal(launch_fake(&fake, &launch), SMELT_OK);
    setenv("SMELT_TIERS", "0", 1);
    for (uint32_t i = 0; i < total; i++) assert_int_equal(visits[i], 1);
    assert_int_equal(complaints, 0);
    assert_int_equal(compiles, 1);
    free(visits);
}

/* ---- Barriers. In each round, every thread writes a word of threadgroup memory, and adds the word of
 * another thread to its sum. Threads leave by return before their round, and their words stay. */

#define ROUNDS 5

static uint32_t *sums; /* by thread of the grid, which is a line */

static uint32_t word_of(uint32_t group, uint32_t thread, int round) {
    return group * 7919 + thread * 31 + (uint32_t)round * 1000003;
}

/* ROUNDS: never. All threads from a multiple of 64 on may leave together, so that whole gangs do. */
static int leaves_before(uint32_t group, uint32_t thread) {
    uint32_t choice = (group * 13 + thread / 64 * 5) % 7;
    if (choice == 0) return (int)(group % (ROUNDS + 1));
    return choice < 4 ? (int)((thread * 2654435761u >> 20) % (2 * ROUNDS)) : ROUNDS;
}

static uint32_t partner_of(uint32_t group, uint32_t thread, int round, uint32_t threads) {
    return (thread + 1 + group + 37 * (uint32_t)round) % threads;
}

static bool has_returned(const struct gang_context *context, uint32_t lane) {
    return context->returned[lane / 32] >> lane % 32 & 1;
}

static void exchange(struct gang_context *context) {
    const struct group_context *group = context->group;
    uint32_t threads = group->size[0], number = group->position[0];
    uint32_t *words = (uint32_t *)group->threadgroup_memory;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t staying = 0, lanes[GANG_MAX_LANES / 32] = {0};
        for (uint32_t lane = 0; lane < context->count; lane++) {
            uint32_t thread = context->first + lane;
            if (round >= leaves_before(number, thread)) {
                context->returned[lane / 32] |= UINT32_C(1) << lane % 32;
                continue;
            }
            words[thread] = word_of(number, thread, round);
            lanes[lane / 32] |= UINT32_C(1) << lane % 32;
            staying++;
        }
        if (!staying) return;
        if (round % 2)
            smelt_runtime_gang_barrier(context, 10, "fake");
        else
            require(smelt_runtime_gang_arrive(context, 10, round ? "fake" : (char[]){"fake"}, lanes) == 1);
        for (uint32_t lane = 0; lane < context->count; lane++) {
            uint32_t thread = context->first + lane;
            if (has_returned(context, lane)) continue;
            sums[number * group->dispatch_size[0] + thread] +=
                words[partner_of(number, thread, round, threads)];
        }
        smelt_runtime_gang_barrier(context, 20, "fake");
    }
}

/* The same, thread by thread. */
static void exchange_plainly(uint32_t number, uint32_t threads, uint32_t *expected) {
    uint32_t words[MAX_THREADS_PER_GROUP];
    for (uint32_t t = 0; t < threads; t++) words[t] = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t t = 0; t < threads; t++)
            if (round < leaves_before(number, t)) words[t] = word_of(number, t, round);
        for (uint32_t t = 0; t < threads; t++)
            if (round < leaves_before(number, t)) expected[t] += words[partner_of(number, t, round, threads)];
    }
}

/* The word of a thread that leaves at once must be defined, too. */
static void exchange_from_zero(struct gang_context *context) {
    uint32_t *words = (uint32_t *)context->group->threadgroup_memory;
    for (uint32_t lane = 0; lane < context->count; lane++) words[context->first + lane] = 0;
    smelt_runtime_gang_barrier(context, 5, "fake");
    exchange(context);
}

static void barriers_hold_between_gangs_and_returns_count(void **state) {
    (void)state;
    srand(4);
    for (int round = 0; round < 200; round++) {
        uint32_t threads = 1 + random_below(1024), total = 1 + random_below(20000);
        if (random_below(2)) threads = 32 * (1 + random_below(32));
        struct launch launch = {.grid = {total, 1, 1}, .group_size = {threads, 1, 1}};
        struct fake fake = {.full = exchange_from_zero, .has_barrier = true, .barrier_hint = true};
        fake.edge_lanes = random_lanes(0, true);
        fake.full_lanes = threads % 32 ? fake.edge_lanes : random_lanes(threads, false);
        uint32_t *expected = calloc(total, sizeof *expected);
        sums = calloc(total, sizeof *sums);
        assert_true(expected && sums);
        for (uint32_t first = 0; first < total; first += threads)
            exchange_plainly(first / threads, total - first < threads ? total - first : threads,
                             expected + first);
        if (launch_fake(&fake, &launch) != SMELT_OK) FAIL_TEST("%s", smelt_error());
        for (uint32_t i = 0; i < total; i++)
            if (sums[i] != expected[i] || complaints)
                FAIL_TEST("%u threads in groups of %u, gangs of %u and %u: thread %u has %u, expected %u; %d "
                          "complaints",
                          total, threads, fake.full_lanes, fake.edge_lanes, i, sums[i], expected[i],
                          complaints);
        free(expected);
        free(sums);
    }
}

/* ---- Errors. */

static const uint32_t every_lane[GANG_MAX_LANES / 32] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};

static void gang_2_ends(struct gang_context *context) {
    if (context->first != 64) smelt_runtime_gang_barrier(context, 3, "fake");
}

static void gang_0_waits_elsewhere(struct gang_context *context) {
    smelt_runtime_gang_barrier(context, context->first ? 4 : 3, "fake");
}

static void other_file(struct gang_context *context) {
    smelt_runtime_gang_barrier(context, 4, context->first == 32 ? "other" : "fake");
}

static void nine_lanes_arrive_alone(struct gang_context *context) {
    static const uint32_t lanes[] = {0x1ff};
    require(smelt_runtime_gang_arrive(context, 7, "fake", lanes) == 0);
}

static void upper_lanes_arrive_alone(struct gang_context *context) {
    static const uint32_t some[] = {0xffff0000};
    if (context->first == 32)
        require(smelt_runtime_gang_arrive(context, 8, "fake", some) == 0);
    else
        require(smelt_runtime_gang_arrive(context, 9, "fake", every_lane) == 1);
}

static void halves_at_two_barriers(struct gang_context *context) {
    static const uint32_t halves[2] = {0x0000ffff, 0xffff0000};
    for (int i = 0; i < 2; i++)
        require(smelt_runtime_gang_arrive(context, 11 + (uint32_t)i, "fake", &halves[i]) == 0);
}

static void ended_long_ago(struct gang_context *context) {
    smelt_runtime_gang_barrier(context, 1, "fake");
    if (context->first == 96) return;
    smelt_runtime_gang_barrier(context, 2, "fake");
}

/* As threads these would meet, or have returned in time; as gangs they have passed each other. */
static void halves_one_after_the_other(struct gang_context *context) {
    static const uint32_t halves[2] = {0x0000ffff, 0xffff0000};
    for (int i = 0; i < 2; i++) require(smelt_runtime_gang_arrive(context, 12, "fake", &halves[i]) == 0);
}

static void half_returns_later(struct gang_context *context) {
    static const uint32_t half[1] = {0x0000ffff};
    require(smelt_runtime_gang_arrive(context, 13, "fake", half) == 0);
    context->returned[0] |= 0xffff0000;
}

static void nobody_arrives(struct gang_context *context) {
    static const uint32_t none[1] = {0};
    require(smelt_runtime_gang_arrive(context, 13, "fake", none) == 0);
}

#define MISSED                                                                                               \
    "reached the end of the kernel without passing it; all threads of a threadgroup must meet at a barrier " \
    "or leave by return"
#define MIXED "all threads of a threadgroup must meet at the same barrier"
#define PASSED "along paths that the SIMD engine does not support; use device 'cpu-scalar'"
#define HERE "kernel 'fake': thread 0 of threadgroup (0, 0, 0) waits at the barrier in fake:"

static const struct {
    gang_function *function;
    uint32_t threads;
    smelt_status status;
    const char *message;
} failures[] = {
    {gang_2_ends, 128, SMELT_ERROR_BARRIER, HERE "3, but thread 64 " MISSED},
    {gang_0_waits_elsewhere, 128, SMELT_ERROR_BARRIER,
     HERE "3, but thread 32 waits at the one in fake:4; " MIXED},
    {other_file, 128, SMELT_ERROR_BARRIER, HERE "4, but thread 32 waits at the one in other:4; " MIXED},
    {nine_lanes_arrive_alone, 128, SMELT_ERROR_BARRIER, HERE "7, but thread 9 " MISSED},
    {gang_2_ends, 128, SMELT_ERROR_BARRIER, HERE "3, but thread 64 " MISSED},
    {nine_lanes_arrive_alone, 32, SMELT_ERROR_BARRIER, HERE "7, but thread 9 " MISSED},
    {upper_lanes_arrive_alone, 64, SMELT_ERROR_BARRIER, HERE "9, but thread 32 " MISSED},
    {halves_at_two_barriers, 64, SMELT_ERROR_BARRIER,
     HERE "11, but thread 16 waits at the one in fake:12; " MIXED},
    {halves_at_two_barriers, 32, SMELT_ERROR_BARRIER,
     HERE "11, but thread 16 waits at the one in fake:12; " MIXED},
    {ended_long_ago, 128, SMELT_ERROR_BARRIER, HERE "2, but thread 96 " MISSED},
    {halves_one_after_the_other, 32, SMELT_ERROR_UNSUPPORTED,
     "kernel 'fake': the threads of threadgroup (0, 0, 0) reach the barrier in fake:12 " PASSED},
    {half_returns_later, 64, SMELT_ERROR_UNSUPPORTED,
     "kernel 'fake': the threads of threadgroup (0, 0, 0) reach the barrier in fake:13 " PASSED},
    {nobody_arrives, 128, SMELT_OK, NULL},
    {nobody_arrives, 32, SMELT_OK, NULL},
};

/* After a failure the worker's gangs must work as before. */
static void assert_still_usable(void) {
    struct fake fake = {.full = visit_and_wait,
                        .full_lanes = 32,
                        .edge_lanes = 32,
                        .has_barrier = true,
                        .barrier_hint = true};
    struct launch launch = {.grid = {128, 1, 1}, .group_size = {128, 1, 1}};
    visits = calloc(128, sizeof *visits);
    assert_int_equal(launch_fake(&fake, &launch), SMELT_OK);
    for (int i = 0; i < 128; i++) assert_int_equal(visits[i], 1);
    free(visits);
    assert_int_equal(complaints, 0);
}

static void barriers_that_are_not_met_are_told(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        struct fake fake = {.full = failures[i].function,
                            .full_lanes = 32,
                            .edge_lanes = 32,
                            .has_barrier = true,
                            .barrier_hint = true};
        struct launch launch = {.grid = {failures[i].threads, 1, 1},
                                .group_size = {failures[i].threads, 1, 1}};
        smelt_status status = launch_fake(&fake, &launch);
        if (status != failures[i].status) FAIL_TEST("case %zu: %s", i, smelt_error());
        if (failures[i].message) assert_string_equal(smelt_error(), failures[i].message);
        assert_still_usable();
    }
}

static char *forbidden; /* an inaccessible page */

static void second_gang_of_group_5_stores_outside(struct gang_context *context) {
    if (context->group->position[0] == 5 && context->first == 32) *(volatile char *)(forbidden + 8) = 1;
}

static void store_outside_behind_a_barrier(struct gang_context *context) {
    smelt_runtime_gang_barrier(context, 1, "fake");
    second_gang_of_group_5_stores_outside(context);
    smelt_runtime_gang_barrier(context, 1, "fake");
}

static void first_gang_stores_outside_behind_a_barrier(struct gang_context *context) {
    smelt_runtime_gang_barrier(context, 1, "fake");
    if (context->group->position[0] == 5 && context->first == 0) *(volatile char *)(forbidden + 8) = 1;
}

static void faults_name_the_gang(void **state) {
    (void)state;
    static gang_function *const functions[] = {second_gang_of_group_5_stores_outside,
                                               store_outside_behind_a_barrier,
                                               first_gang_stores_outside_behind_a_barrier};
    static const char *const gangs[] = {"32 to 44", "32 to 44", "0 to 31"};
    forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(forbidden != MAP_FAILED);
    for (int i = 0; i < 3; i++) {
        char expected[256];
        struct fake fake = {.full = functions[i], .full_lanes = 32, .edge_lanes = 32, .has_barrier = i > 0};
        struct launch launch = {.grid = {45 * 6, 1, 1}, .group_size = {45, 1, 1}};
        snprintf(expected, sizeof expected,
                 "kernel 'fake' accessed invalid address %p at an unknown line "
                 "(threads %s of threadgroup (5, 0, 0))",
                 (void *)(forbidden + 8), gangs[i]);
        assert_int_equal(launch_fake(&fake, &launch), SMELT_ERROR_FAULT);
        assert_string_equal(smelt_error(), expected);
        assert_still_usable();
    }
    munmap(forbidden, 4096);
}

#define LARGE_STACK ((uint64_t)20 << 20)

static volatile bool had_what_was_promised;

/* Touches as much as its image states, then more. */
__attribute__((no_sanitize("address"))) static void walk_down(struct gang_context *context) {
    char here = 0, *volatile base = &here;
    volatile char *low = base;
    for (uint64_t step = 0; step < LARGE_STACK; step += 1024) low[-(int64_t)step] = 1;
    had_what_was_promised = context->first == 0;
    for (uint64_t step = 0; step < LARGE_STACK; step += 1024) low[-(int64_t)(LARGE_STACK + step)] = 1;
    require(false);
}

static void stacks_are_as_large_as_asked_for_and_guarded(void **state) {
    (void)state;
    struct fake fake = {.full = walk_down, .full_lanes = 32, .edge_lanes = 32, .stack_bytes = LARGE_STACK};
    struct launch launch = {.grid = {32, 1, 1}, .group_size = {32, 1, 1}};
    assert_int_equal(launch_fake(&fake, &launch), SMELT_ERROR_FAULT);
    assert_string_equal(smelt_error(), "kernel 'fake' ran past its private arrays at an unknown line"
                                       " (threads 0 to 31 of threadgroup (0, 0, 0))");
    assert_true(had_what_was_promised);
    assert_still_usable();
}

static bool stopped(const struct gang_context *context) {
    return __atomic_load_n(context->group->stop, __ATOMIC_RELAXED) != 0;
}

static void for_ever(struct gang_context *context) {
    while (!stopped(context)) __builtin_ia32_pause();
    smelt_runtime_gang_stop(context);
    require(false);
}

static void for_ever_in_turns(struct gang_context *context) {
    for (;;) {
        smelt_runtime_gang_barrier(context, 1, "fake");
        if (stopped(context)) smelt_runtime_gang_stop(context);
    }
}

/* Code without polls stops at the end of a group. */
static _Atomic int begun_too_late;

static void a_group_at_a_time(struct gang_context *context) {
    if (stopped(context)) atomic_fetch_add(&begun_too_late, 1);
    struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
}

static void time_outs_stop_gangs(void **state) {
    (void)state;
    static gang_function *const functions[] = {for_ever, for_ever_in_turns, a_group_at_a_time};
    for (int i = 0; i < 3; i++) {
        struct fake fake = {.full = functions[i], .full_lanes = 32, .edge_lanes = 32, .has_barrier = i == 1};
        struct launch launch = {.grid = {1000000, 1, 1}, .group_size = {100, 1, 1}, .timeout = 0.05};
        assert_int_equal(launch_fake(&fake, &launch), SMELT_ERROR_TIMEOUT);
        assert_string_equal(smelt_error(),
                            "kernel 'fake' ran longer than the time-out of 0.05 seconds and was stopped");
        assert_still_usable();
    }
    /* At most the groups, of four gangs, that the four threads were about to start. */
    assert_true(begun_too_late <= 16);
}

int main(void) {
    /* More threads than CPUs, so that pieces of a launch run at the same time. */
    setenv("SMELT_THREADS", "4", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_runs_once_at_its_place),
        cmocka_unit_test(a_launch_with_a_refused_code_runs_one_code),
        cmocka_unit_test(the_best_code_of_full_groups_follows),
        cmocka_unit_test(barriers_hold_between_gangs_and_returns_count),
        cmocka_unit_test(barriers_that_are_not_met_are_told),
        cmocka_unit_test(faults_name_the_gang),
        cmocka_unit_test(stacks_are_as_large_as_asked_for_and_guarded),
        cmocka_unit_test(time_outs_stop_gangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
