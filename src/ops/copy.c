/* Copies and conversions: where elements are placed, as they are or in another dtype. */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/map.h"
#include "ops/routine.h"

#include <string.h>

static void write_convert(struct text *text, const struct map *map) {
    smelt_dtype dtype = map->operands[1].array->dtype;
    /* Halfs go through float32, to which and from which every dtype has a conversion. */
    bool small = program_compute_dtype(dtype) != dtype ||
                 program_compute_dtype(map->operands[0].array->dtype) != map->operands[0].array->dtype;
    text_addf(text, "  p1[o1] = %s(%s(p0[o0]));\n", program_type(dtype),
              small && dtype != map->operands[0].array->dtype ? "float" : "");
}

smelt_status call_place(const struct call *call, smelt_array *from, smelt_array *to, const smelt_shape *space,
                        const int64_t *strides, int64_t offset) {
    if (program_is_symbolic(call->device)) return SMELT_OK;
    if (from->dtype == SMELT_FLOAT64 || to->dtype == SMELT_FLOAT64) {
        smelt_array *source, *target;
        int64_t broadcast[SMELT_MAX_DIMENSIONS];
        map_broadcast(from, space, broadcast);
        TRY(smelt_array_view(from, *space, broadcast, 0, &source));
        smelt_status status = smelt_array_view(to, *space, strides, offset, &target);
        if (status == SMELT_OK) {
            status = smelt_array_copy(target, source);
            smelt_array_release(target);
        }
        smelt_array_release(source);
        return status;
    }
    struct map map = {
        .name = "copy",
        .key = {.operation = SMELT_OPERATION_ASTYPE},
        .device = call->device,
        .stream = call->desc->stream,
        .space = *space,
        .operand_count = 2,
        .operands = {map_operand(from, space, false), {.array = to, .offset = offset, .written = true}},
        .write = write_convert};
    memcpy(map.operands[1].strides, strides, (size_t)space->ndim * sizeof *strides);
    return map_run(&map);
}

/* ---- Tiles: of a copy that runs along different dimensions in source and target. */

#define TILE 32
/* Smaller dimensions do not fill a tile, and are cached as they are. */
#define SMALLEST_DIMENSION 16

/* Shared with the kernel. */
struct transpose_size {
    uint32_t rows, columns, tiles;
    uint32_t size[14];
    int64_t start, row_out, column_in;
    int64_t in[14], out[14];
};

/* The dimension along which the source's elements are neighbours, if it is not the last; else -1. */
static int source_dimension(const smelt_array *array) {
    int last = array->shape.ndim - 1;
    if (last < 1 || array->shape.size[last] < SMALLEST_DIMENSION || array->strides[last] == 1) return -1;
    for (int d = 0; d < last; d++)
        if (array->strides[d] == 1 && array->shape.size[d] >= SMALLEST_DIMENSION) return d;
    return -1;
}

static smelt_status copy_tiles(const struct call *call, smelt_array *array, int inner, smelt_array *made) {
    int last = array->shape.ndim - 1, rank = 0;
    struct transpose_size size = {.rows = (uint32_t)array->shape.size[inner],
                                  .columns = (uint32_t)array->shape.size[last],
                                  .row_out = made->strides[inner],
                                  .column_in = array->strides[last]};
    int64_t batches = 1;
    for (int d = last - 1; d >= 0; d--) {
        if (d == inner) continue;
        size.size[rank] = (uint32_t)array->shape.size[d];
        size.in[rank] = array->strides[d];
        size.out[rank++] = made->strides[d];
        batches *= array->shape.size[d];
    }
    smelt_array span = program_span(array, &size.start);
    const struct routine routine = {.entry = "smelt_transpose",
                                    .texts = {kernel_text_transpose},
                                    .types = {{"T", array->dtype}},
                                    .sizes = {{"RANK", rank}}};
    return routine_run(
        call, &routine,
        &(smelt_dispatch_desc){
            .buffers = {{.array = &span}, {.array = made}, {.bytes = &size, .size = sizeof size}},
            .groups = {(size.columns + TILE - 1) / TILE, (size.rows + TILE - 1) / TILE, batches},
            .threadgroup = {TILE, 8, 1}});
}

static bool has_tiles(const struct call *call, const smelt_array *array, smelt_dtype dtype) {
    if (program_is_symbolic(call->device)) return false;
    const struct memory_space *space = array->memory->space;
    bool here = program_is_host(call->device) ? !space : space && strcmp(space->device, call->device) == 0;
    bool small = true;
    for (int d = 0; d < array->shape.ndim; d++) small &= array->shape.size[d] < INT32_MAX;
    return here && small && array->size && array->size < INT64_C(1) << 40 && array->dtype == dtype &&
           dtype != SMELT_FLOAT64 && dtype != SMELT_COMPLEX64 && source_dimension(array) >= 0;
}

/* ---- Copies of whole arrays. */

static smelt_status copy(const struct call *call, smelt_array *array, smelt_dtype dtype,
                         smelt_array **result) {
    smelt_array *made;
    TRY(call_output(call, dtype, &array->shape, &made));
    smelt_status status = has_tiles(call, array, dtype)
                              ? copy_tiles(call, array, source_dimension(array), made)
                              : call_place(call, array, made, &array->shape, made->strides, 0);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

smelt_status call_bring(const struct call *call, smelt_array *array, smelt_array **here) {
    const struct memory_space *space = array->memory->space;
    bool host = program_is_host(call->device);
    if (host ? space != NULL : !space || strcmp(space->device, call->device) != 0)
        return smelt_array_to(array, host ? "cpu" : call->device, call->desc->stream, here);
    *here = smelt_array_retain(array);
    return SMELT_OK;
}

smelt_status call_contiguous(const struct call *call, smelt_array *array, smelt_array **result) {
    if (!smelt_array_is_contiguous(array)) return copy(call, array, array->dtype, result);
    *result = smelt_array_retain(array);
    return SMELT_OK;
}

smelt_status evaluate_identity(const struct call *call, smelt_array **result) {
    smelt_array *input = call->inputs[0];
    return smelt_array_view(input, input->shape, input->strides, 0, result);
}

smelt_status evaluate_contiguous(const struct call *call, smelt_array **result) {
    smelt_array *input = call->inputs[0];
    if (smelt_array_is_contiguous(input)) return evaluate_identity(call, result);
    return call_contiguous(call, input, result);
}

smelt_status evaluate_view(const struct call *call, smelt_array **result) {
    smelt_dtype dtype = call->desc->dtype;
    smelt_array *input = call->inputs[0], *dense;
    if (!smelt_dtype_bytes(dtype))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "view: dtype %d is not one of smelt_dtype", (int)dtype);
    bool aligned = (uintptr_t)input->data % smelt_dtype_bytes(dtype) == 0;
    TRY(aligned ? call_contiguous(call, input, &dense) : copy(call, input, input->dtype, &dense));
    smelt_status status = smelt_array_reinterpret(dense, dtype, result);
    smelt_array_release(dense);
    return status;
}

smelt_status evaluate_astype(const struct call *call, smelt_array **result) {
    smelt_dtype dtype = call->desc->dtype;
    if (!smelt_dtype_bytes(dtype))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "astype: dtype %d is not one of smelt_dtype", (int)dtype);
    if (call->inputs[0]->dtype == dtype) return evaluate_identity(call, result);
    return copy(call, call->inputs[0], dtype, result);
}

smelt_status call_line(const struct call *call, smelt_array **array, int *axis) {
    bool flat;
    smelt_array *input = call->inputs[0], *dense;
    TRY(call_axis(call, input->shape.ndim, axis, &flat));
    if (!flat) {
        *array = smelt_array_retain(input);
        return SMELT_OK;
    }
    TRY(call_contiguous(call, input, &dense));
    smelt_status status = smelt_array_view(dense, (smelt_shape){1, {input->size}}, NULL, 0, array);
    smelt_array_release(dense);
    return status;
}
