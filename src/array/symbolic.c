#include "array/symbolic.h"

#include <stdlib.h>

/* Where their elements would lie: never read. */
#define NOWHERE ((char *)(uintptr_t)4096)

static smelt_status refuse(void) {
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "the array is a value of a graph: it has no elements before the graph is executed");
}

static smelt_status create(const struct memory_space *space, smelt_stream *stream, smelt_dtype dtype,
                           const smelt_shape *shape, smelt_array **array) {
    (void)space;
    (void)stream;
    return array_symbolic(dtype, shape, NULL, NULL, array);
}

static smelt_status adopt(const struct memory_space *space, struct memory *memory) {
    (void)space;
    (void)memory;
    return refuse();
}

static smelt_status order(struct memory *memory, smelt_stream *stream, bool home) {
    (void)memory;
    (void)stream;
    (void)home;
    return refuse();
}

static smelt_status copy_in(struct memory *memory, smelt_stream *stream, char *to, const void *from,
                            size_t bytes) {
    (void)memory;
    (void)stream;
    (void)to;
    (void)from;
    (void)bytes;
    return refuse();
}

static smelt_status copy_out(struct memory *memory, smelt_stream *stream, void *to, const char *from,
                             size_t bytes) {
    (void)memory;
    (void)stream;
    (void)to;
    (void)from;
    (void)bytes;
    return refuse();
}

static smelt_status copy_within(struct memory *memory, smelt_stream *stream, char *to, struct memory *source,
                                const char *from, size_t bytes) {
    (void)memory;
    (void)stream;
    (void)to;
    (void)source;
    (void)from;
    (void)bytes;
    return refuse();
}

static smelt_status fill(struct memory *memory, smelt_stream *stream, char *to, const void *pattern,
                         size_t width, size_t count) {
    (void)memory;
    (void)stream;
    (void)to;
    (void)pattern;
    (void)width;
    (void)count;
    return refuse();
}

static smelt_status is_ready(struct memory *memory, bool *ready) {
    (void)memory;
    (void)ready;
    return refuse();
}

static void release(struct memory *memory) {
    (void)memory;
}

static const struct memory_space space = {.device = ARRAY_SYMBOLIC_DEVICE,
                                          .create = create,
                                          .adopt = adopt,
                                          .order = order,
                                          .copy_in = copy_in,
                                          .copy_out = copy_out,
                                          .copy_within = copy_within,
                                          .fill = fill,
                                          .is_ready = is_ready,
                                          .release = release};

smelt_status array_symbolic(smelt_dtype dtype, const smelt_shape *shape, void (*done)(void *context),
                            void *context, smelt_array **array) {
    int64_t size;
    TRY(shape_check("graph value", dtype, shape, &size));
    struct memory *memory = calloc(1, sizeof *memory);
    smelt_array *made = memory ? array_over(memory, dtype, shape, NULL, size, NOWHERE) : NULL;
    if (!made) {
        free(memory);
        return fail_out_of_memory(sizeof *made + sizeof *memory);
    }
    *memory = (struct memory){.start = NOWHERE,
                              .bytes = (size_t)size * smelt_dtype_bytes(dtype),
                              .release = done,
                              .context = context,
                              .borrowed = true,
                              .space = &space};
    atomic_init(&memory->references, 1);
    *array = made;
    return SMELT_OK;
}

bool array_is_symbolic(const smelt_array *array) {
    return array->memory->space == &space;
}

void *array_symbolic_context(const smelt_array *array) {
    return array->memory->context;
}
