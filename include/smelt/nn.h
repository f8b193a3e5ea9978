/* nn.h — what networks consist of and smelt_apply does not compute: more than one result, or settings with
 * names.
 *
 * Other operations of networks are rows of SMELT_OPERATION_TABLE (ops.h): softmax, layer_norm, rms_norm,
 * rope, conv_general, grid_sample …
 *
 * Status, ownership, defaults and units are those of smelt.h. Every function may be called from any thread;
 * tapes of the calling thread (autodiff.h) record it. */
#ifndef SMELT_NN_H
#define SMELT_NN_H

#include <smelt/smelt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The gated delta rule (Yang, Kautz, Hatamizadeh: "Gated Delta Networks", 2024) of each head of each batch,
 * with a state S of depth x values:
 *
 *   S = exp(g[t]) S;  S = S + k[t] (beta[t] (v[t] - Sᵀ k[t]))ᵀ;  out[t] = scale Sᵀ q[t] */
typedef struct smelt_gated_delta_desc {
    smelt_array *q, *k;    /* (batches, length, heads, depth) of one dtype: float32, float16, bfloat16 or
                              float64; depth    1 to 256 */
    smelt_array *v;        /* (batches, length, heads, values) of that dtype */
    smelt_array *g, *beta; /* (batches, length, heads), floats */
    smelt_array *initial; /* S before the first token, (batches, heads, depth, values), floats; NULL: zeros */
    double scale;         /* 0: 1 / sqrt(depth) */
    int chunk;            /* tokens per chunk, 1 to 128; 0: 64 */
    const char *device;   /* NULL: where the inputs are */
    smelt_stream *stream; /* of the device; NULL: its default */
    uint64_t reserved[8];
} smelt_gated_delta_desc;

/* *out: (batches, length, heads, values) of q's dtype. *states: (batches, chunks + 1, heads, depth, values),
 * float32 or float64, S before each chunk and after the last token.
 *
 * A kernel computes them token by token; float64 is computed by chunks. Gradients are computed by chunks,
 * from the last to the first, with products of matrices: a chunk's results are those of a unit lower
 * triangular system (chunk_inverse), and only `states` are kept from one to the next.
 *
 * INVALID_ARGUMENT, LIMIT and UNSUPPORTED for shapes and dtypes other than these, and the errors of
 * allocating and running kernels. */
SMELT_API smelt_status smelt_gated_delta(const smelt_gated_delta_desc *desc, smelt_array **out,
                                         smelt_array **states);

#ifdef __cplusplus
}
#endif
#endif
