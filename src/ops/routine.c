#include "ops/routine.h"
#include "ops/map.h"

#include <stdio.h>
#include <string.h>

#define LANES 32
/* Rows of one simdgroup each that share a threadgroup: enough threads for a GPU's scheduler. */
#define ROWS_PER_GROUP 4
/* A longer row is a threadgroup's on a GPU. On a CPU a row is one simdgroup's, since there is no other
 * parallelism within a group. */
#define LONGEST_ROW_OF_SIMDGROUP 1024
#define LONGEST_ROW_OF_256 8192

/* ---- The text. */

static void write_text(struct text *text, const void *context) {
    const struct routine *routine = context;
    for (int i = 0; i < ROUTINE_TYPES && routine->types[i].name; i++)
        program_typedef(text, routine->types[i].name, routine->types[i].dtype);
    for (int i = 0; i < ROUTINE_SIZES && routine->sizes[i].name; i++)
        text_addf(text, "constant constexpr int %s = %d;\n", routine->sizes[i].name,
                  (int)routine->sizes[i].value);
    for (int i = 0; i < 2 && routine->texts[i]; i++) text_add(text, routine->texts[i]);
}

smelt_status routine_run(const struct call *call, const struct routine *routine,
                         smelt_dispatch_desc *dispatch) {
    struct program_key key = {.family = PROGRAM_ROUTINE};
    smelt_function *function;
    int32_t sizes[ROUTINE_SIZES] = {0};
    _Static_assert(ROUTINE_TYPES + sizeof sizes <= sizeof key.dtypes, "a key holds types and sizes");
    const char *name = routine->entry + strlen("smelt_");
    memcpy(key.operands, name, strnlen(name, sizeof key.operands));
    for (int i = 0; i < ROUTINE_TYPES && routine->types[i].name; i++)
        key.dtypes[i] = (uint8_t)routine->types[i].dtype;
    for (int i = 0; i < ROUTINE_SIZES && routine->sizes[i].name; i++) sizes[i] = routine->sizes[i].value;
    memcpy(key.dtypes + ROUTINE_TYPES, sizes, sizeof sizes);
    TRY(program_get(&key, routine->entry, write_text, routine, &function));
    dispatch->device = call->device;
    dispatch->stream = call->desc->stream;
    return smelt_function_run(function, dispatch);
}

/* ---- Inputs. */

bool routine_is_float(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 || dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16;
}

/* A copy of another dtype or with other strides, or a reference. */
static smelt_status shape_input(const struct call *call, smelt_array *here, smelt_dtype dtype,
                                smelt_array **result) {
    smelt_array *made;
    if (here->dtype == dtype) return call_contiguous(call, here, result);
    TRY(call_output(call, dtype, &here->shape, &made));
    smelt_status status = call_place(call, here, made, &here->shape, made->strides, 0);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

smelt_status routine_input(const struct call *call, smelt_array *array, smelt_dtype dtype,
                           smelt_array **result) {
    smelt_array *here;
    const struct memory_space *space = array->memory->space;
    bool host = program_is_host(call->device);
    if (host ? !space : space && strcmp(space->device, call->device) == 0)
        here = smelt_array_retain(array);
    else
        TRY(smelt_array_to(array, host ? "cpu" : call->device, call->desc->stream, &here));
    smelt_status status = shape_input(call, here, dtype, result);
    smelt_array_release(here);
    return status;
}

/* ---- Rows. */

smelt_status routine_rows_open(const struct call *call, smelt_array *array, uint32_t axes, smelt_dtype dtype,
                               struct routine_rows *rows) {
    int ndim = 0;
    *rows = (struct routine_rows){.rows = 1, .columns = 1, .shape = {.ndim = array->shape.ndim}};
    int64_t strides[SMELT_MAX_DIMENSIONS];
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < array->shape.ndim; d++) {
            if ((int)(axes >> d & 1) != pass) continue;
            *(pass ? &rows->columns : &rows->rows) *= array->shape.size[d];
            rows->moved |= ndim != d;
            rows->shape.size[ndim] = array->shape.size[d];
            strides[ndim] = array->strides[d];
            rows->order[ndim++] = d;
        }
    smelt_array *turned;
    TRY(smelt_array_view(array, rows->shape, strides, 0, &turned));
    smelt_status status = routine_input(call, turned, dtype, &rows->array);
    smelt_array_release(turned);
    return status;
}

/* `made`, whose dimensions are in the order of the rows, in the order of the input. */
static smelt_status move_back(const struct call *call, const struct routine_rows *rows, smelt_array *made,
                              smelt_array **result) {
    smelt_shape shape = {.ndim = rows->shape.ndim};
    int64_t strides[SMELT_MAX_DIMENSIONS];
    smelt_array *view;
    for (int i = 0; i < shape.ndim; i++) {
        shape.size[rows->order[i]] = rows->shape.size[i];
        strides[rows->order[i]] = made->strides[i];
    }
    TRY(smelt_array_view(made, shape, strides, 0, &view));
    smelt_status status = call_contiguous(call, view, result);
    smelt_array_release(view);
    return status;
}

smelt_status routine_rows_close(const struct call *call, struct routine_rows *rows, smelt_status status,
                                smelt_array *made, smelt_array **result) {
    smelt_array_release(rows->array);
    if (status == SMELT_OK && rows->moved) {
        status = move_back(call, rows, made, result);
        smelt_array_release(made);
        return status;
    }
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

void routine_group(const struct call *call, const int64_t grid[3], int64_t group[3]) {
    map_group(grid, program_is_host(call->device) ? 1024 : 256, group);
}

struct routine_team routine_team_of(const struct call *call, int64_t rows, int64_t columns) {
    if (program_is_host(call->device) || columns <= LONGEST_ROW_OF_SIMDGROUP)
        return (struct routine_team){1, (rows + ROWS_PER_GROUP - 1) / ROWS_PER_GROUP, ROWS_PER_GROUP * LANES};
    int simdgroups = columns <= LONGEST_ROW_OF_256 ? 8 : 32;
    return (struct routine_team){simdgroups, rows, (int64_t)simdgroups * LANES};
}
