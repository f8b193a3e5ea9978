#include "ops/routine.h"
#include "ops/map.h"

#include <stdio.h>
#include <string.h>

#define LANES 32
/* Rows of one simdgroup each that share a threadgroup: enough threads for a GPU's scheduler. On a CPU, rows
 * that take longer than it takes to begin a group have one each. */
#define ROWS_PER_GROUP 4
#define LONGEST_ROW_TO_SHARE 2048
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
    if (program_is_symbolic(call->device)) return SMELT_OK;
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
    return program_run(function, dispatch);
}

/* ---- Dtypes and threads. */

bool routine_is_float(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 || dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16;
}

void routine_group(const struct call *call, const int64_t grid[3], int64_t group[3]) {
    map_group(grid, program_is_host(call->device) ? 1024 : 256, group);
}

struct routine_team routine_team_of(const struct call *call, int64_t rows, int64_t columns) {
    if (program_is_host(call->device) && columns > LONGEST_ROW_TO_SHARE)
        return (struct routine_team){1, rows, LANES};
    if (program_is_host(call->device) || columns <= LONGEST_ROW_OF_SIMDGROUP)
        return (struct routine_team){1, (rows + ROWS_PER_GROUP - 1) / ROWS_PER_GROUP, ROWS_PER_GROUP * LANES};
    int simdgroups = columns <= LONGEST_ROW_OF_256 ? 8 : 32;
    return (struct routine_team){simdgroups, rows, (int64_t)simdgroups * LANES};
}
