#include "array/array.h"
#include "array/memory_pool.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Cache-line and vector aligned, so that kernels' vector loads of whole arrays are aligned. */
#define ALIGNMENT 128

bool shape_equal(const smelt_shape *a, const smelt_shape *b) {
    bool equal = a->ndim == b->ndim;
    for (int d = 0; equal && d < a->ndim; d++) equal = a->size[d] == b->size[d];
    return equal;
}

bool shape_broadcasts(const smelt_shape *from, const smelt_shape *to) {
    int lead = to->ndim - from->ndim;
    bool fits = lead >= 0;
    for (int d = 0; fits && d < from->ndim; d++)
        fits = from->size[d] == 1 || from->size[d] == to->size[d + lead];
    return fits;
}

int64_t shape_product(const smelt_shape *shape) {
    int64_t product = 1;
    for (int d = 0; d < shape->ndim; d++) product *= shape->size[d];
    return product;
}

smelt_status shape_check(const char *what, smelt_dtype dtype, const smelt_shape *shape, int64_t *size) {
    size_t bytes = smelt_dtype_bytes(dtype);
    if (!bytes)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: dtype %d is not one of smelt_dtype", what, (int)dtype);
    if (shape->ndim < 0 || shape->ndim > SMELT_MAX_DIMENSIONS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: ndim is %d, expected 0 to %d", what, shape->ndim,
                    SMELT_MAX_DIMENSIONS);
    int64_t product = 1;
    bool empty = false, overflow = false;
    for (int d = 0; d < shape->ndim; d++) {
        if (shape->size[d] < 0)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: size %lld of dimension %d is negative", what,
                        (long long)shape->size[d], d);
        if (shape->size[d] == 0)
            empty = true;
        else
            overflow |= __builtin_mul_overflow(product, shape->size[d], &product);
    }
    if (empty) product = 0;
    int64_t total;
    if ((!empty && overflow) || __builtin_mul_overflow(product, (int64_t)bytes, &total))
        return fail(SMELT_ERROR_LIMIT, "%s: shape %s of %s needs more than 2^63 - 1 bytes", what,
                    shape_print(shape).text, smelt_dtype_name(dtype));
    *size = product;
    return SMELT_OK;
}

/* One after the other from `first`; the product can overflow only where a size is 0 and strides mean nothing.
 */
static void strides_in_order(const smelt_shape *shape, int64_t *strides, int first, int direction) {
    uint64_t step = 1;
    for (int i = 0, d = first; i < shape->ndim; i++, d += direction) {
        strides[d] = (int64_t)step;
        step *= shape->size[d] > 1 ? (uint64_t)shape->size[d] : 1;
    }
}

void shape_strides(const smelt_shape *shape, int64_t strides[SMELT_MAX_DIMENSIONS]) {
    strides_in_order(shape, strides, shape->ndim - 1, -1);
}

void shape_fortran_strides(const smelt_shape *shape, int64_t strides[SMELT_MAX_DIMENSIONS]) {
    strides_in_order(shape, strides, 0, 1);
}

struct shape_text shape_print(const smelt_shape *shape) {
    struct shape_text out = {"scalar"};
    size_t used = 0;
    for (int d = 0; d < shape->ndim && d < SMELT_MAX_DIMENSIONS; d++)
        used += (size_t)snprintf(out.text + used, sizeof out.text - used, d ? "x%lld" : "%lld",
                                 (long long)shape->size[d]);
    return out;
}

/* malloc, here and for arrays: glibc's calloc does not reuse what the thread has just freed. */
struct memory *memory_new(void) {
    struct memory *memory = malloc(sizeof *memory);
    if (memory) *memory = (struct memory){.references = 1};
    return memory;
}

void memory_retain(struct memory *memory) {
    atomic_fetch_add(&memory->references, 1);
}

static void free_block(char *start, size_t capacity) {
    if (!capacity || !start || !memory_pool_keep(start, capacity)) free(start);
}

void memory_release(struct memory *memory) {
    if (atomic_fetch_sub(&memory->references, 1) != 1) return;
    if (memory->space) memory->space->release(memory);
    if (memory->release)
        memory->release(memory->context);
    else if (!memory->borrowed && !memory->space)
        free_block(memory->start, memory->capacity);
    free(memory);
}

smelt_array *array_over(struct memory *memory, smelt_dtype dtype, const smelt_shape *shape,
                        const int64_t *strides, int64_t size, char *data) {
    smelt_array *array = malloc(sizeof *array);
    if (!array) return NULL;
    *array = (smelt_array){
        .references = 1, .dtype = dtype, .shape = *shape, .size = size, .data = data, .memory = memory};
    if (strides)
        memcpy(array->strides, strides, (size_t)shape->ndim * sizeof *strides);
    else
        shape_strides(shape, array->strides);
    return array;
}

/* A large array's first use is mostly page faults: in huge pages there are 512 times fewer. */
#define HUGE_PAGE ((size_t)2 << 20)

/* *capacity: 0, or what the block has if it may go to the pool. */
static char *allocate(size_t bytes, size_t *capacity) {
    *capacity = 0;
    if (bytes < 2 * HUGE_PAGE) return aligned_alloc(ALIGNMENT, bytes);
    size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *data = memory_pool_take(whole, capacity);
    if (data) return data;
    *capacity = whole;
    data = aligned_alloc(HUGE_PAGE, whole);
    if (!data && memory_pool_empty()) data = aligned_alloc(HUGE_PAGE, whole);
    if (data) (void)madvise(data, bytes, MADV_HUGEPAGE);
    return data;
}

smelt_status smelt_array_create(smelt_dtype dtype, smelt_shape shape, smelt_array **array) {
    int64_t size;
    if (!array) return fail(SMELT_ERROR_INVALID_ARGUMENT, "array: the address for the new array is NULL");
    TRY(shape_check("array", dtype, &shape, &size));
    size_t bytes = (size_t)size * smelt_dtype_bytes(dtype);
    /* aligned_alloc needs a multiple; an empty array still gets an address. */
    size_t rounded = (bytes + ARRAY_PADDING + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct memory *memory = memory_new();
    bool possible = bytes <= PTRDIFF_MAX - 2 * HUGE_PAGE;
    size_t capacity = 0;
    char *data = memory && possible ? allocate(rounded, &capacity) : NULL;
    smelt_array *made = data ? array_over(memory, dtype, &shape, NULL, size, data) : NULL;
    if (!made) {
        free_block(data, capacity);
        free(memory);
        return fail(SMELT_ERROR_OUT_OF_MEMORY, "an array of shape %s of %s needs %zu bytes: out of memory",
                    shape_print(&shape).text, smelt_dtype_name(dtype), bytes);
    }
    memory->start = data;
    memory->bytes = bytes;
    memory->capacity = capacity;
    *array = made;
    return SMELT_OK;
}

/* The lowest and highest element offset a strided shape touches; false if they overflow. */
static bool extent(const smelt_shape *shape, const int64_t *strides, int64_t *low, int64_t *high) {
    *low = *high = 0;
    for (int d = 0; d < shape->ndim; d++) {
        int64_t reach;
        if (shape->size[d] == 0) continue;
        if (__builtin_mul_overflow(shape->size[d] - 1, strides[d], &reach)) return false;
        if (__builtin_add_overflow(reach < 0 ? *low : *high, reach, reach < 0 ? low : high)) return false;
    }
    return true;
}

size_t array_span(const smelt_array *array, char **low) {
    int64_t first, last, width = (int64_t)smelt_dtype_bytes(array->dtype);
    *low = array->data;
    if (!array->size || !extent(&array->shape, array->strides, &first, &last)) return 0;
    *low = array->data + first * width;
    return (size_t)((last - first + 1) * width);
}

bool array_is_dense(const smelt_array *array) {
    int64_t step = 1;
    unsigned left = 0;
    if (!array->size) return true;
    for (int d = 0; d < array->shape.ndim; d++)
        if (array->shape.size[d] > 1) left |= 1u << d;
    while (left) {
        int next = 0;
        while (next < array->shape.ndim && !(left >> next & 1 && array->strides[next] == step)) next++;
        if (next == array->shape.ndim) return false;
        step *= array->shape.size[next];
        left &= ~(1u << next);
    }
    return true;
}

smelt_status array_borrow(const char *what, smelt_dtype dtype, const smelt_shape *shape,
                          const int64_t *strides, void *data, void (*release)(void *), void *context,
                          smelt_array **array) {
    int64_t size, low = 0, high = 0;
    int64_t natural[SMELT_MAX_DIMENSIONS];
    if (!array) return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: the address for the new array is NULL", what);
    TRY(shape_check(what, dtype, shape, &size));
    if (!data && size) return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: data is NULL", what);
    shape_strides(shape, natural);
    if (!strides) strides = natural;
    int64_t bytes = (int64_t)smelt_dtype_bytes(dtype), span = 0;
    bool counted =
        !size || (extent(shape, strides, &low, &high) && !__builtin_sub_overflow(high, low, &span) &&
                  span < INT64_MAX && !__builtin_mul_overflow(span + 1, bytes, &span) &&
                  !__builtin_mul_overflow(low, bytes, &low));
    if (!counted)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: the strides span more than 2^63 - 1 bytes", what);
    struct memory *memory = memory_new();
    smelt_array *made = memory ? array_over(memory, dtype, shape, strides, size, data) : NULL;
    if (!made) {
        free(memory);
        return fail_out_of_memory(sizeof *made);
    }
    memory->start = data ? (char *)data + low : NULL; /* low counts bytes here */
    memory->bytes = size ? (size_t)span : 0;
    memory->release = release;
    memory->context = context;
    memory->borrowed = true;
    *array = made;
    return SMELT_OK;
}

smelt_status smelt_array_from_memory(smelt_dtype dtype, smelt_shape shape, const int64_t *strides, void *data,
                                     void (*release)(void *), void *context, smelt_array **array) {
    return array_borrow("array from memory", dtype, &shape, strides, data, release, context, array);
}

smelt_status smelt_array_from_values(smelt_dtype dtype, smelt_shape shape, const void *data,
                                     smelt_array **array) {
    int64_t size;
    if (!array)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "array from values: the address for the new array is NULL");
    TRY(shape_check("array from values", dtype, &shape, &size));
    if (!data && size) return fail(SMELT_ERROR_INVALID_ARGUMENT, "array from values: data is NULL");
    smelt_array *made;
    TRY(smelt_array_create(dtype, shape, &made));
    if (size) memcpy(made->data, data, made->memory->bytes);
    *array = made;
    return SMELT_OK;
}

smelt_status smelt_array_view(smelt_array *base, smelt_shape shape, const int64_t *strides, int64_t offset,
                              smelt_array **view) {
    if (!base || !view)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "array view: %s is NULL",
                    base ? "the address for the view" : "base");
    int64_t size, low, high, bytes = (int64_t)smelt_dtype_bytes(base->dtype);
    int64_t natural[SMELT_MAX_DIMENSIONS];
    TRY(shape_check("array view", base->dtype, &shape, &size));
    shape_strides(&shape, natural);
    if (!strides) strides = natural;
    int64_t before = (base->data - base->memory->start) / bytes;
    int64_t held = (int64_t)base->memory->bytes / bytes;
    bool inside = extent(&shape, strides, &low, &high) && !__builtin_add_overflow(low, offset, &low) &&
                  !__builtin_add_overflow(high, offset, &high) &&
                  !__builtin_add_overflow(low, before, &low) &&
                  !__builtin_add_overflow(high, before, &high) && low >= 0 && high < held;
    if (size && !inside)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "array view: shape %s at offset %lld reaches outside the base array's memory of %lld elements",
            shape_print(&shape).text, (long long)offset, (long long)held);
    smelt_array *made = array_over(base->memory, base->dtype, &shape, strides, size,
                                   size ? base->data + offset * bytes : base->data);
    if (!made) return fail_out_of_memory(sizeof *made);
    atomic_fetch_add(&base->memory->references, 1);
    *view = made;
    return SMELT_OK;
}

/* The shape and strides of `base` in elements of `to` bytes instead of `from`; false if there are none. */
static bool rescale(const smelt_array *base, int64_t from, int64_t to, smelt_shape *shape, int64_t *strides) {
    int last = base->shape.ndim - 1;
    *shape = base->shape;
    memcpy(strides, base->strides, sizeof base->strides);
    if (from == to) return true;
    if (last < 0 || (base->strides[last] != 1 && base->shape.size[last] > 1)) return false;
    if (__builtin_mul_overflow(base->shape.size[last], from, &shape->size[last])) return false;
    if (shape->size[last] % to) return false;
    shape->size[last] /= to;
    strides[last] = 1;
    for (int d = 0; d < last; d++) {
        bool unused = base->shape.size[d] <= 1 || base->size == 0;
        if (!unused && (base->strides[d] * from) % to) return false;
        strides[d] = base->strides[d] * from / to;
    }
    return true;
}

smelt_status smelt_array_reinterpret(smelt_array *base, smelt_dtype dtype, smelt_array **view) {
    if (!base || !view)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "array reinterpret: %s is NULL",
                    base ? "the address for the view" : "base");
    smelt_shape shape;
    int64_t size, strides[SMELT_MAX_DIMENSIONS];
    TRY(shape_check("array reinterpret", dtype, &base->shape, &size));
    size_t from = smelt_dtype_bytes(base->dtype), to = smelt_dtype_bytes(dtype);
    if (!rescale(base, (int64_t)from, (int64_t)to, &shape, strides))
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "array reinterpret: the last dimension of a %s array of shape %s is not a dense row of whole "
            "%s elements",
            smelt_dtype_name(base->dtype), shape_print(&base->shape).text, smelt_dtype_name(dtype));
    if ((uintptr_t)base->data % (dtype == SMELT_COMPLEX64 ? to / 2 : to) && base->size)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "array reinterpret: the array's address is not aligned for %s", smelt_dtype_name(dtype));
    TRY(shape_check("array reinterpret", dtype, &shape, &size));
    smelt_array *made = array_over(base->memory, dtype, &shape, strides, size, base->data);
    if (!made) return fail_out_of_memory(sizeof *made);
    memory_retain(base->memory);
    *view = made;
    return SMELT_OK;
}

smelt_array *smelt_array_retain(smelt_array *array) {
    if (array) atomic_fetch_add(&array->references, 1);
    return array;
}

void smelt_array_release(smelt_array *array) {
    if (!array || atomic_fetch_sub(&array->references, 1) != 1) return;
    memory_release(array->memory);
    free(array);
}

smelt_dtype smelt_array_dtype(const smelt_array *array) {
    return array ? array->dtype : SMELT_NO_DTYPE;
}
smelt_shape smelt_array_shape(const smelt_array *array) {
    return array ? array->shape : (smelt_shape){.ndim = 0};
}
const int64_t *smelt_array_strides(const smelt_array *array) {
    return array ? array->strides : NULL;
}
int64_t smelt_array_size(const smelt_array *array) {
    return array ? array->size : 0;
}
void *smelt_array_data(const smelt_array *array) {
    return array ? array->data : NULL;
}
const char *smelt_array_device(const smelt_array *array) {
    return !array ? NULL : array->memory->space ? array->memory->space->device : "cpu";
}

smelt_status smelt_array_is_ready(const smelt_array *array, bool *ready) {
    if (!array || !ready)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "array is ready: %s is NULL", array ? "ready" : "array");
    if (array->memory->space) return array->memory->space->is_ready(array->memory, ready);
    *ready = true;
    return SMELT_OK;
}

bool smelt_array_is_contiguous(const smelt_array *array) {
    if (!array || array->size == 0) return true;
    int64_t step = 1;
    for (int d = array->shape.ndim - 1; d >= 0; d--) {
        if (array->shape.size[d] != 1 && array->strides[d] != step) return false;
        step *= array->shape.size[d];
    }
    return true;
}

struct walk walk_begin(const smelt_shape *shape, const int64_t *strides) {
    struct walk walk = {.shape = shape, .strides = strides, .left = 1};
    for (int d = 0; d < shape->ndim; d++)
        if (shape->size[d] == 0) walk.left = 0;
    for (int d = 0; d < shape->ndim && walk.left; d++) walk.left *= shape->size[d];
    return walk;
}

void walk_next(struct walk *walk) {
    if (--walk->left <= 0) return;
    for (int d = walk->shape->ndim - 1; d >= 0; d--) {
        walk->offset += walk->strides[d];
        if (++walk->index[d] < walk->shape->size[d]) return;
        walk->offset -= walk->strides[d] * walk->shape->size[d];
        walk->index[d] = 0;
    }
}
