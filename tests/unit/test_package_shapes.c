/* Which code of a package serves a launch: only correct code, and of that the best. */
#include "unit.h"

#include "device/cpu_shape.h"
#include "abi/cuda_parameters.h"
#include "device/gpu_shape.h"
#include "package/package.h"
#include "package/select.h"
#include "package/shapes.h"

#include <stdlib.h>
#include <string.h>

/* ---- On CPUs. */

struct launch_case {
    struct launch request;
    bool barrier_hint;
    uint32_t edge[3]; /* threads of the smallest group at the edge */
};

static uint32_t below(uint32_t limit) {
    return (uint32_t)(random() % limit);
}

static struct launch_case random_launch(void) {
    static const uint32_t sizes[] = {1, 1, 2, 3, 4, 7, 8, 16, 20, 32, 33, 64, 96, 128, 256, 1000, 1024};
    struct launch_case l = {.request = {.timeout = below(2), .large = below(4) == 0},
                            .barrier_hint = below(2)};
    uint32_t threads = 1;
    for (int d = 0; d < 3; d++) {
        uint32_t size = d && below(2) ? 1 : sizes[below(sizeof sizes / sizeof *sizes)];
        if (threads * size > 1024) size = 1;
        threads *= size;
        uint32_t grid = below(2) ? size * (1 + below(5)) : 1 + below(3000);
        if (below(20) == 0) grid = 0xfffffff0u + below(16);
        l.request.group_size[d] = size;
        l.request.grid[d] = grid;
        l.edge[d] = grid % size ? grid % size : size;
    }
    return l;
}

static void expect(bool truth, const char *what, const struct code_shape *made, const struct launch_case *l) {
    if (truth) return;
    const uint32_t *g = l->request.group_size;
    FAIL_TEST("%s: code {polled %u masked %u small %u rows %u multiple %u size %u %u %u} for groups of %u x "
              "%u x %u, edge %u %u %u",
              what, made->polled, made->masked, made->small, made->rows, made->multiple, made->size[0],
              made->size[1], made->size[2], g[0], g[1], g[2], l->edge[0], l->edge[1], l->edge[2]);
}

/* The code's assumptions hold for a group of `size` threads. */
static void expect_safe(const struct code_shape *made, const struct launch_case *l, const uint32_t size[3]) {
    const uint32_t *full = l->request.group_size;
    uint32_t threads = size[0] * size[1] * size[2];
    expect(made->polled || l->request.timeout == 0, "the clock is not looked at", made, l);
    bool small = !l->request.large;
    for (int d = 0; d < 3; d++) small &= l->request.grid[d] < INT32_MAX - 1023;
    expect(small || !made->small, "the launch is not small", made, l);
    expect(!made->distinct || !l->request.overlapping, "buffers that overlap", made, l);
    expect(made->masked || threads % 32 == 0, "lanes without a thread", made, l);
    expect(!made->rows || size[0] % 32 == 0, "rows of broken simdgroups", made, l);
    if (made->multiple && size[0] % made->multiple) {
        bool rows = made->rows && made->size[0] == size[0] && made->multiple % size[0] == 0;
        expect(rows && size[1] % (made->multiple / size[0]) == 0, "gangs do not divide", made, l);
    }
    if (made->multiple && !made->rows)
        expect(size[1] == 1 && size[2] == 1, "gangs of more dimensions", made, l);
    for (int d = 0; d < 3 && !made->masked; d++)
        expect(!made->size[d] || made->size[d] == size[d], "another size", made, l);
    /* Masked code assumes sizes of full groups: only 1 is the same at the edge, and no other may be assumed.
     */
    for (int d = 0; d < 3 && made->masked; d++)
        expect(!made->size[d] || (made->size[d] == full[d] && (d == 0 || full[d] == 1)), "another full size",
               made, l);
}

#define ROUNDS 300

static void code_serves_only_launches_it_is_right_for(void **state) {
    (void)state;
    static struct code_shape made[4 * ROUNDS + 2];
    int count = 0, served = 0, well = 0;
    srandom(5);
    /* All shapes that are ever requested, and those that packages contain in addition. */
    for (int i = 0; i < ROUNDS; i++) {
        struct launch_case l = random_launch();
        struct launch_shapes shapes;
        l.request.overlapping = below(8) == 0;
        launch_shapes(&l.request, l.barrier_hint, &shapes);
        if (shapes.has_full) made[count++] = shapes.full;
        if (shapes.has_edge) made[count++] = shapes.edge;
    }
    const struct code_shape any = {.engine = ENGINE_SIMD, .polled = 1, .masked = 1};
    made[count++] = any;
    made[count++] = (struct code_shape){.engine = ENGINE_SIMD, .polled = 1, .small = 1};
    for (int i = 0; i < ROUNDS; i++) {
        struct launch_case l = random_launch();
        struct launch_shapes wanted;
        l.request.overlapping = below(8) == 0;
        launch_shapes(&l.request, l.barrier_hint, &wanted);
        for (int edge = 0; edge < 2; edge++) {
            const struct code_shape *shape = edge ? &wanted.edge : &wanted.full;
            if (!(edge ? wanted.has_edge : wanted.has_full)) continue;
            assert_true(shape_serves(shape, shape));
            assert_true(shape_serves_well(shape, shape));
            assert_true(shape_serves(&any, shape));
            for (int m = 0; m < count; m++) {
                if (!shape_serves(&made[m], shape)) {
                    assert_false(shape_serves_well(&made[m], shape));
                    continue;
                }
                served++;
                well += shape_serves_well(&made[m], shape);
                expect_safe(&made[m], &l, edge ? l.edge : l.request.group_size);
            }
        }
    }
    assert_true(served > ROUNDS && well > ROUNDS && well < served);
}

/* ---- On GPUs. */

struct gpu_case {
    struct launch launch;
    size_t bytes[4]; /* of the first buffers, where they are bytes on the host */
};

static void random_gpu_launch(struct gpu_case *c) {
    struct launch_case l = random_launch();
    *c = (struct gpu_case){.launch = {.timeout = below(2), .large = below(4) == 0}};
    for (int d = 0; d < 3; d++) {
        c->launch.grid[d] = l.request.grid[d];
        c->launch.group_size[d] = l.request.group_size[d];
        if (below(10) == 0) c->launch.grid[d] = 65530 * l.request.group_size[d] + below(100);
    }
    c->launch.unaligned = below(8) == 0;
    c->launch.overlapping = below(8) == 0;
    if (below(6) == 0) { /* many threads in one dimension */
        c->launch.grid[0] = (1u << 18) + below(1u << 20);
        for (int d = 1; d < 3; d++) c->launch.grid[d] = c->launch.group_size[d] = 1;
    }
    if (below(4) == 0) { /* groups for which a package is built */
        c->launch.group_size[0] = c->launch.group_size[1] = below(2) ? 16 : 7;
        c->launch.group_size[2] = 1;
    }
    for (int i = 0; i < 4; i++) {
        c->bytes[i] = below(3) == 0 ? 0 : i == 2 ? 24 : 1 + below(40);
        if (c->bytes[i]) c->launch.inlined[i] = inlined_class(c->bytes[i]);
    }
    launch_count_groups(&c->launch);
}

static void shape_of(const struct gpu_case *c, struct code_shape *shape) {
    gpu_shape(&c->launch, false, shape);
}

static void expect_on_gpu(bool truth, const char *what, const struct code_shape *made,
                          const struct gpu_case *c) {
    if (truth) return;
    const uint32_t *g = c->launch.group_size, *n = c->launch.grid;
    FAIL_TEST("%s: code {polled %u masked %u small %u folded %u most %u size %u %u %u inlined %u %u %u %u} "
              "for a grid of %u x %u x %u, groups of %u x %u x %u, time-out %g, bytes %zu %zu %zu %zu",
              what, made->polled, made->masked, made->small, made->folded, made->most_threads, made->size[0],
              made->size[1], made->size[2], made->inlined[0], made->inlined[1], made->inlined[2],
              made->inlined[3], n[0], n[1], n[2], g[0], g[1], g[2], c->launch.timeout, c->bytes[0],
              c->bytes[1], c->bytes[2], c->bytes[3]);
}

/* The code's assumptions hold for the launch. */
static void expect_safe_on_gpu(const struct code_shape *made, const struct gpu_case *c) {
    const struct launch *launch = &c->launch;
    uint32_t threads = launch->group_size[0] * launch->group_size[1] * launch->group_size[2];
    bool small = !launch->large, cut = false, many = false;
    for (int d = 0; d < 3; d++) {
        uint64_t groups = ((uint64_t)launch->grid[d] + launch->group_size[d] - 1) / launch->group_size[d];
        small &= launch->grid[d] < INT32_MAX - 1023;
        cut |= launch->grid[d] % launch->group_size[d] != 0;
        many |= groups > (d ? 65535u : 2147483647u);
        expect_on_gpu(!made->size[d] || made->size[d] == launch->group_size[d], "another size", made, c);
    }
    expect_on_gpu(small || !made->small, "the launch is not small", made, c);
    expect_on_gpu(!cut || made->masked, "threads that are not there", made, c);
    expect_on_gpu(many == made->folded, "the grid's rows", made, c);
    expect_on_gpu((launch->timeout > 0) == made->polled, "the flag's address", made, c);
    expect_on_gpu(!(made->coarse & COARSE_LINE) || (launch->grid[1] == 1 && launch->grid[2] == 1),
                  "several dimensions", made, c);
    expect_on_gpu(!made->aligned || !launch->unaligned, "buffers that are not aligned", made, c);
    expect_on_gpu(!made->distinct || !launch->overlapping, "buffers that overlap", made, c);
    expect_on_gpu(made->size[0] || threads <= made->most_threads, "too many threads", made, c);
    for (int i = 0; i < 4; i++)
        if (made->inlined[i])
            expect_on_gpu(c->bytes[i] && c->bytes[i] <= inlined_bytes(made->inlined[i]),
                          "the bytes are not there, or not all", made, c);
}

static void packages_have_code_for_every_launch_on_a_gpu(void **state) {
    (void)state;
    struct binding bindings[4] = {{.kind = BINDING_BUFFER, .index = 0, .size = 4},
                                  {.kind = BINDING_BUFFER, .index = 1, .size = 24, .writable = 1},
                                  {.kind = BINDING_BUFFER, .index = 2, .size = 24},
                                  {.kind = BINDING_BUFFER, .index = 3, .size = 4}};
    const struct parameter given[4] = {
        {.by_reference = true}, {.by_reference = true}, {.by_reference = true}, {.by_reference = false}};
    struct image image = {.bindings = bindings, .binding_count = 4};
    const smelt_build_desc desc = {.threadgroups = {{64, 0, 0}, {16, 16, 0}, {7, 7, 1}}};
    struct package_entry entry = {.entry = {.parameters = given, .parameter_count = 4}};
    static struct package_code made[MAX_SHAPES + 1];
    static struct code_shape asked[ROUNDS];
    struct shapes shapes = {.count = 0};
    shapes_for_gpu(&desc, &entry, &image, &shapes);
    assert_in_range(shapes.count, 10, MAX_SHAPES);
    made[0] = (struct package_code){.shape = shape_any_on_gpu, .engine = ENGINE_PTX};
    for (int i = 0; i < shapes.count; i++) {
        made[i + 1] = (struct package_code){.shape = shapes.items[i], .engine = ENGINE_PTX};
        assert_int_equal(shapes.items[i].inlined[0], shapes.items[i].small ? 1 : 0);
        assert_int_equal(shapes.items[i].inlined[2], shapes.items[i].small ? 2 : 0);
        assert_int_equal(shapes.items[i].inlined[1] + shapes.items[i].inlined[3], 0);
    }
    entry.codes = made;
    entry.code_count = shapes.count + 1;
    srandom(6);
    int well = 0, used[MAX_SHAPES + 1] = {0};
    struct gpu_case c;
    for (int i = 0; i < ROUNDS; i++) {
        random_gpu_launch(&c);
        shape_of(&c, &asked[i]);
    }
    for (int i = 0; i < 20 * ROUNDS; i++) {
        struct code_shape wanted;
        random_gpu_launch(&c);
        shape_of(&c, &wanted);
        const struct package_code *found = package_find_code(&entry, 0, &wanted);
        expect_on_gpu(found != NULL, "no code", &wanted, &c);
        expect_on_gpu(shape_serves(&wanted, &wanted) && shape_serves_well(&wanted, &wanted),
                      "not even what was asked for", &wanted, &c);
        used[found - made]++;
        well += shape_serves_well(&found->shape, &wanted);
        for (int m = 0; m < entry.code_count; m++) {
            bool serves = shape_serves(&made[m].shape, &wanted);
            if (serves) expect_safe_on_gpu(&made[m].shape, &c);
            expect_on_gpu(serves || !shape_serves_well(&made[m].shape, &wanted), "well, but not at all",
                          &made[m].shape, &c);
        }
        for (int m = 0; m < ROUNDS; m++)
            if (shape_serves(&asked[m], &wanted)) expect_safe_on_gpu(&asked[m], &c);
    }
    assert_true(well > 0 && well < 20 * ROUNDS);
    for (int m = 0; m < entry.code_count; m++)
        expect_on_gpu(used[m] > 0, "no launch takes it", &made[m].shape, &c);
    assert_false(shape_serves(&shape_any_on_cpu, &shape_any_on_gpu));
    assert_false(shape_serves(&shape_any_on_gpu, &shape_any_on_cpu));
    /* One size only. */
    entry.required_threads[0] = 16;
    entry.required_threads[1] = entry.required_threads[2] = 2;
    shapes = (struct shapes){.count = 0};
    shapes_for_gpu(&desc, &entry, &image, &shapes);
    assert_int_equal(shapes.count, 5);
    assert_int_equal(shapes.items[3].size[1], 2);
}

static void the_best_code_for_a_gpu_is_found(void **state) {
    (void)state;
#define GPU_CODE(...) {.shape = {.engine = ENGINE_PTX, .masked = 1, __VA_ARGS__}, .engine = ENGINE_PTX}
    const struct package_code some[] = {
        GPU_CODE(.most_threads = 1024),
        GPU_CODE(.most_threads = 1024, .small = 1),
        GPU_CODE(.most_threads = 256, .small = 1),
        GPU_CODE(.most_threads = 1024, .small = 1, .size = {0, 1, 1}),
        GPU_CODE(.small = 1, .size = {64, 1, 1}),
        GPU_CODE(.most_threads = 1024, .small = 1, .inlined = {0, 1}),
        GPU_CODE(.most_threads = 1024, .polled = 1),
        GPU_CODE(.most_threads = 1024, .folded = 1),
    };
    struct package_entry entry = {.codes = some, .code_count = 8};
    struct code_shape wanted = {.engine = ENGINE_PTX, .small = 1, .size = {64, 1, 1}};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[4]);
    assert_true(shape_serves_well(&some[4].shape, &wanted));
    wanted.size[0] = 128;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[3]);
    assert_false(shape_serves_well(&some[3].shape, &wanted));
    wanted.inlined[1] = 1;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[5]);
    wanted.inlined[1] = 2;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[3]);
    wanted = (struct code_shape){.engine = ENGINE_PTX, .small = 1, .size = {16, 16, 1}};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[2]);
    wanted.size[2] = 2;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[1]);
    wanted.small = 0;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[0]);
    wanted.polled = 1;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[6]);
    wanted.folded = 1;
    assert_null(package_find_code(&entry, 0, &wanted));
    wanted.polled = 0;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[7]);
    assert_null(package_find_code(&entry, 1, &wanted));
}

static void the_best_code_that_serves_is_found(void **state) {
    (void)state;
    const struct package_code some[] = {
        {.shape = {.engine = ENGINE_SIMD, .polled = 1, .masked = 1}, .engine = ENGINE_SIMD},
        {.shape = {.engine = ENGINE_SIMD, .polled = 1, .masked = 1, .small = 1}, .engine = ENGINE_SIMD},
        {.shape = {.engine = ENGINE_SIMD, .polled = 1, .small = 1, .rows = 1}, .engine = ENGINE_SIMD},
        {.shape = {.engine = ENGINE_SIMD, .polled = 1, .small = 1, .size = {64, 1, 1}},
         .engine = ENGINE_SIMD},
        {.target = 1,
         .shape = {.engine = ENGINE_SIMD, .small = 1, .size = {128, 1, 1}},
         .engine = ENGINE_SIMD},
    };
    struct package_entry entry = {.codes = some, .code_count = 5};
    struct code_shape wanted = {.engine = ENGINE_SIMD, .small = 1, .size = {64, 1, 1}};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[3]);
    wanted.size[0] = 128;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[2]);
    assert_ptr_equal(package_find_code(&entry, 1, &wanted), &some[4]);
    wanted = (struct code_shape){.engine = ENGINE_SIMD, .small = 1, .masked = 1};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[1]);
    wanted.small = 0;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[0]);
    assert_null(package_find_code(&entry, 1, &wanted));
    wanted.engine = ENGINE_SCALAR;
    assert_null(package_find_code(&entry, 0, &wanted));
    /* Gangs that lie in rows are for groups whose rows are long enough. */
    const struct package_code by_rows[] = {
        {.shape = {.engine = ENGINE_SIMD, .polled = 1, .masked = 1}, .engine = ENGINE_SIMD},
        {.shape = {.engine = ENGINE_SIMD, .polled = 1, .masked = 1, .by_rows = BY_ROWS},
         .engine = ENGINE_SIMD},
        {.shape = {.engine = ENGINE_SIMD, .polled = 1, .masked = 1}, .engine = ENGINE_SIMD},
    };
    wanted = (struct code_shape){.engine = ENGINE_SIMD, .masked = 1, .by_rows = BY_ROWS};
    entry = (struct package_entry){.codes = by_rows, .code_count = 2};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &by_rows[1]);
    wanted.by_rows = NOT_BY_ROWS;
    entry = (struct package_entry){.codes = by_rows + 1, .code_count = 2};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &by_rows[2]);
    /* What the SIMD engine refused, the scalar engine's code runs, for every launch and on both devices. */
    const struct package_code refused = {.shape = {.engine = ENGINE_SIMD, .masked = 1},
                                         .engine = ENGINE_SCALAR};
    entry = (struct package_entry){.codes = &refused, .code_count = 1};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &refused);
    wanted = (struct code_shape){.engine = ENGINE_SIMD, .polled = 1};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &refused);
    /* Code that was refused for one size is specialised to it. */
    const struct package_code of_64 = {.shape = {.engine = ENGINE_SIMD, .size = {64, 1, 1}},
                                       .engine = ENGINE_SCALAR};
    entry.codes = &of_64;
    wanted = (struct code_shape){.engine = ENGINE_SIMD, .size = {64, 1, 1}};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &of_64);
    wanted.size[0] = 128;
    assert_null(package_find_code(&entry, 0, &wanted));
    wanted = (struct code_shape){.engine = ENGINE_SIMD, .masked = 1, .size = {0, 1, 1}};
    assert_null(package_find_code(&entry, 0, &wanted));
    wanted = (struct code_shape){.engine = ENGINE_SCALAR};
    assert_null(package_find_code(&entry, 0, &wanted));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_serves_only_launches_it_is_right_for),
        cmocka_unit_test(the_best_code_that_serves_is_found),
        cmocka_unit_test(packages_have_code_for_every_launch_on_a_gpu),
        cmocka_unit_test(the_best_code_for_a_gpu_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
