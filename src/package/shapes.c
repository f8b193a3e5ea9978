#include "package/shapes.h"
#include "device/cpu_shape.h"
#include "abi/cuda_parameters.h"
#include "device/gpu_shape.h"

#include <string.h>

#define MOST_THREADS 1024u

static void add_shape(struct shapes *shapes, const struct code_shape *shape) {
    for (int i = 0; i < shapes->count; i++)
        if (memcmp(&shapes->items[i], shape, sizeof *shape) == 0) return;
    if (shapes->count == MAX_SHAPES) return; /* the entry's first code serves the others */
    shapes->items[shapes->count++] = *shape;
}

/* Whether the entry runs only with threadgroups of one size. */
static bool has_one_size(const struct package_entry *entry) {
    const uint32_t *size = entry->required_threads;
    return size[0] && size[0] <= MOST_THREADS && size[1] <= MOST_THREADS && size[2] <= MOST_THREADS &&
           size[0] * size[1] * size[2] <= MOST_THREADS;
}

/* ---- CPUs: code that serves every launch, code for small launches, and common shapes. All of it polls the
 * stop flag and tests accesses, which costs next to nothing. */

const struct code_shape shape_any_on_cpu = {.engine = ENGINE_SIMD, .polled = 1, .masked = 1, .tested = 1};

static void add_on_cpu(struct shapes *shapes, struct code_shape shape) {
    shape.engine = ENGINE_SIMD;
    shape.polled = 1;
    shape.tested = 1;
    add_shape(shapes, &shape);
}

static void add_small(struct shapes *shapes, struct code_shape shape) {
    shape.small = 1;
    add_on_cpu(shapes, shape);
}

/* The code serves all launches of this size, so it is compiled for buffers that may overlap. */
static void add_threadgroup(struct shapes *shapes, const int64_t size[3], bool has_barrier) {
    struct launch launch = {.timeout = 1, .overlapping = true};
    struct launch_shapes wanted;
    for (int d = 0; d < 3; d++) launch.grid[d] = launch.group_size[d] = (uint32_t)(size[d] ? size[d] : 1);
    launch_shapes(&launch, has_barrier, &wanted);
    add_small(shapes, wanted.full);
}

static void add_groups(struct shapes *shapes, const struct launch *launch, bool has_barrier) {
    struct launch_shapes wanted;
    launch_shapes(launch, has_barrier, &wanted);
    if (wanted.has_full) add_on_cpu(shapes, wanted.full);
    if (wanted.has_edge) add_on_cpu(shapes, wanted.edge);
}

/* If the launch's groups may be joined, also adds the shapes of joined groups: only the compiled code tells
 * which are needed. */
static void add_launch(struct shapes *shapes, const struct package_launch *of, bool has_barrier) {
    struct launch launch = {.overlapping = true, .large = of->large}, joined;
    memcpy(launch.grid, of->grid, sizeof launch.grid);
    memcpy(launch.group_size, of->group, sizeof launch.group_size);
    launch_count_groups(&launch);
    add_groups(shapes, &launch, has_barrier);
    if (launch_join(&launch, &joined)) add_groups(shapes, &joined, has_barrier);
}

static void usual_shapes(const smelt_build_desc *desc, const struct package_entry *entry,
                         struct shapes *shapes) {
    static const int64_t usual[3] = {256, 1, 1};
    const int64_t most[3] = {entry->max_threads <= MOST_THREADS ? entry->max_threads : 0, 1, 1};
    const uint32_t *required = entry->required_threads;
    add_small(shapes, (struct code_shape){.masked = 1});
    if (has_one_size(entry)) {
        add_threadgroup(shapes, (int64_t[3]){required[0], required[1], required[2]}, entry->has_barrier);
        return;
    }
    add_small(shapes, (struct code_shape){.masked = 1, .size = {0, 1, 1}});
    add_small(shapes, (struct code_shape){.rows = 1});
    add_threadgroup(shapes, usual, entry->has_barrier);
    if (most[0] && entry->has_barrier) add_threadgroup(shapes, most, true);
    for (int i = 0; i < SMELT_MAX_BUILD_THREADGROUPS && desc->threadgroups[i][0]; i++)
        add_threadgroup(shapes, desc->threadgroups[i], entry->has_barrier);
}

void shapes_for_cpu(const struct package_request *request, const struct package_entry *entry,
                    struct shapes *shapes) {
    for (int i = 0; i < request->launch_count; i++)
        add_launch(shapes, &request->launches[i], entry->has_barrier);
    if (!request->launch_count) usual_shapes(request->desc, entry, shapes);
}

/* ---- GPUs. The assembler gives a thread as many registers as the largest group allows, so there is code for
 * groups of up to 256 threads in addition to 1024. */

const struct code_shape shape_any_on_gpu = {.engine = ENGINE_PTX, .masked = 1, .most_threads = MOST_THREADS};

/* Arguments by reference, which hosts give as bytes, and the layouts of tensors travel with the launch. */
static void find_inlined(const struct package_entry *entry, const struct image *image,
                         uint8_t inlined[SHAPE_MAX_INLINED]) {
    int32_t count = entry->entry.parameter_count;
    if (image->binding_count < count) return;
    for (int32_t i = 0; i < image->tensor_count; i++) {
        const struct tensor_binding *tensor = &image->tensors[i];
        if (tensor->index >= 0 && tensor->index < SMELT_MAX_BUFFERS)
            inlined[tensor->index + TENSOR_LAYOUT] = inlined_class(tensor_layout_bytes(tensor->rank));
    }
    for (int32_t i = 0; i < count; i++) {
        const struct binding *binding = &image->bindings[i];
        bool bytes = binding->kind == BINDING_BUFFER && !binding->writable && binding->size > 0;
        if (!bytes || !entry->entry.parameters[i].by_reference) continue;
        if (binding->index >= 0 && binding->index < SHAPE_MAX_INLINED)
            inlined[binding->index] = inlined_class((size_t)binding->size);
    }
}

/* With and without polling the stop flag, which costs a load in every round of a loop. */
static void add_both(struct shapes *shapes, struct code_shape shape) {
    for (shape.polled = 0; shape.polled < 2; shape.polled++)
        if (memcmp(&shape, &shape_any_on_gpu, sizeof shape) != 0) add_shape(shapes, &shape);
}

static void add_group(struct shapes *shapes, const uint8_t inlined[SHAPE_MAX_INLINED],
                      const uint32_t size[3]) {
    struct launch launch = {.timeout = 0};
    struct code_shape shape;
    for (int d = 0; d < 3; d++) launch.grid[d] = launch.group_size[d] = size[d];
    gpu_shape(&launch, false, &shape);
    shape.masked = 1;
    memcpy(shape.inlined, inlined, sizeof shape.inlined);
    add_both(shapes, shape);
}

void shapes_for_gpu(const smelt_build_desc *desc, const struct package_entry *entry,
                    const struct image *image, struct shapes *shapes) {
    struct code_shape shape = shape_any_on_gpu;
    uint8_t inlined[SHAPE_MAX_INLINED] = {0};
    find_inlined(entry, image, inlined);
    add_both(shapes, shape);
    shape.folded = 1;
    add_both(shapes, shape);
    shape.folded = 0;
    /* Buffers with arbitrary alignment, and those that overlap, are left to the codes above. */
    shape.aligned = shape.distinct = 1;
    if (has_one_size(entry)) {
        add_group(shapes, inlined, entry->required_threads);
        return;
    }
    shape.most_threads = 256;
    add_both(shapes, shape);
    shape = (struct code_shape){.engine = ENGINE_PTX, .masked = 1, .small = 1, .aligned = 1, .distinct = 1};
    memcpy(shape.inlined, inlined, sizeof inlined);
    shape.most_threads = 256;
    add_both(shapes, shape);
    shape.size[1] = shape.size[2] = 1;
    shape.most_threads = MOST_THREADS;
    add_both(shapes, shape);
    if (!image->alone) {
        /* Blocks of coarsened code are not groups: it serves groups of any size. */
        shape.coarse = PACKAGE_COARSE;
        add_both(shapes, shape);
    }
    add_group(shapes, inlined, (uint32_t[3]){256, 1, 1});
    for (int i = 0; i < SMELT_MAX_BUILD_THREADGROUPS && desc->threadgroups[i][0]; i++) {
        uint32_t size[3];
        for (int d = 0; d < 3; d++)
            size[d] = desc->threadgroups[i][d] ? (uint32_t)desc->threadgroups[i][d] : 1;
        add_group(shapes, inlined, size);
    }
}

struct code_shape shapes_whole_groups(const uint32_t size[3]) {
    struct code_shape shape = {.engine = ENGINE_PTX};
    memcpy(shape.size, size, sizeof shape.size);
    return shape;
}

void shapes_for_size(const struct package_entry *entry, const struct image *image, const uint32_t size[3],
                     struct shapes *shapes) {
    struct code_shape shape = shapes_whole_groups(size);
    add_both(shapes, shape);
    shape.folded = 1;
    add_both(shapes, shape);
    shape.folded = 0;
    shape.small = shape.aligned = shape.distinct = 1;
    find_inlined(entry, image, shape.inlined);
    add_both(shapes, shape);
}
