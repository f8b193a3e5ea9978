/* The gated delta rule token by token: kernels/sequence/delta.metal. */
#include "ops/delta.h"
#include "kernels/kernel_text.h"
#include "ops/program.h"
#include "ops/routine_input.h"

/* Shared with the kernel. */
struct delta_size {
    uint32_t length, heads, values, chunk, chunks;
    float scale;
};

#define TOKENS_AHEAD 8 /* AHEAD of the kernel's text */

/* Elements of q and k that one load reads. */
static int elements_together(const struct delta *d, smelt_array *const arrays[DELTA_ARRAYS]) {
    size_t four = 4 * smelt_dtype_bytes(d->dtype);
    uintptr_t places = (uintptr_t)arrays[DELTA_Q]->data | (uintptr_t)arrays[DELTA_K]->data;
    return d->depth % 4 == 0 && d->depth >= 16 && places % four == 0 ? 4 : 1;
}

static smelt_status run(const struct delta *d, smelt_array *const arrays[DELTA_ARRAYS], smelt_array *out,
                        smelt_array *states) {
    const struct delta_size size = {(uint32_t)d->length, (uint32_t)d->heads,  (uint32_t)d->values,
                                    (uint32_t)d->chunk,  (uint32_t)d->chunks, (float)d->scale};
    bool gpu = !program_is_host(d->call.device);
    int lanes = d->depth <= 64 ? 8 : d->depth <= 128 ? 16 : 32, columns = 32 / lanes;
    int group = gpu ? elements_together(d, arrays) : 1;
    const struct routine routine = {.entry = gpu ? "smelt_delta_lanes" : "smelt_delta",
                                    .texts = {kernel_text_delta},
                                    .types = {{"T", d->dtype}},
                                    .sizes = {{"DEPTH", (int32_t)d->depth},
                                              {"INITIAL", arrays[DELTA_INITIAL] != NULL},
                                              {"LANES", lanes},
                                              {"GROUP", group},
                                              {"WHOLE", d->chunk % TOKENS_AHEAD == 0}}};
    smelt_dispatch_desc dispatch = {.grid = {d->values, d->heads, d->batches}, .threadgroup = {1, 1, 1}};
    for (int i = 0; i < DELTA_ARRAYS; i++)
        dispatch.buffers[i].array = arrays[i] ? arrays[i] : arrays[DELTA_G];
    dispatch.buffers[6].array = out;
    dispatch.buffers[7].array = states;
    dispatch.buffers[8] = (smelt_buffer){.bytes = &size, .size = sizeof size};
    dispatch.threadgroup[0] = d->values < 64 ? d->values : 64;
    if (gpu) {
        dispatch.grid[0] = (d->values + columns - 1) / columns * 32;
        dispatch.threadgroup[0] = 32;
    }
    return routine_run(&d->call, &routine, &dispatch);
}

smelt_status delta_run(const struct delta *d, smelt_array **out, smelt_array **states) {
    smelt_array *arrays[DELTA_ARRAYS] = {0}, *made = NULL, *kept = NULL;
    smelt_shape shape = {4, {d->batches, d->length, d->heads, d->values}};
    smelt_shape state = {5, {d->batches, d->chunks + 1, d->heads, d->depth, d->values}};
    smelt_status status = SMELT_OK;
    for (int i = 0; i < DELTA_ARRAYS && status == SMELT_OK; i++)
        if (d->arrays[i])
            status =
                routine_input(&d->call, d->arrays[i], i <= DELTA_V ? d->dtype : SMELT_FLOAT32, &arrays[i]);
    if (status == SMELT_OK) status = call_output(&d->call, d->dtype, &shape, &made);
    if (status == SMELT_OK) status = call_output(&d->call, SMELT_FLOAT32, &state, &kept);
    if (status == SMELT_OK && kept->size) status = run(d, arrays, made, kept);
    for (int i = 0; i < DELTA_ARRAYS; i++) smelt_array_release(arrays[i]);
    if (status != SMELT_OK) {
        smelt_array_release(made);
        smelt_array_release(kept);
        return status;
    }
    *out = made;
    *states = kept;
    return SMELT_OK;
}
