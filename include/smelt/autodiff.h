/* autodiff.h — differentiation through operations on arrays (ops.h) and through kernels.
 *
 * A tape records computations and computes their vector-Jacobian and Jacobian-vector products.
 * docs/operations.md describes the derivative of each operation.
 *
 * Status, ownership, defaults and units are those of smelt.h. A tape belongs to the thread that began it. */
#ifndef SMELT_AUTODIFF_H
#define SMELT_AUTODIFF_H

#include <smelt/smelt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tapes ---------------------------------------------------------------------------------- */

/* A tape records operations on tracked arrays: watched ones, and results of operations with a tracked input.
 * Handles identify arrays (so smelt_apply never returns an input's), and a tape keeps them until it is
 * released. Each open tape of a thread records on its own, including the computation of another tape's
 * products: gradients of gradients are tapes within tapes. */
typedef struct smelt_tape smelt_tape;

/* Opens a tape on the calling thread. */
SMELT_API smelt_status smelt_tape_begin(smelt_tape **tape);
/* Ends the recording; products can still be computed. Ending a tape again does nothing. INVALID_ARGUMENT on
 * another thread. */
SMELT_API smelt_status smelt_tape_end(smelt_tape *tape);
/* Ends it and releases what it kept. Call it on the thread that began the tape; NULL does nothing. */
SMELT_API void smelt_tape_release(smelt_tape *tape);

/* Watches `array`, so that others can be differentiated by it. To watch one array twice, as two variables,
 * watch handles from SMELT_OPERATION_IDENTITY. */
SMELT_API smelt_status smelt_tape_watch(smelt_tape *tape, smelt_array *array);
/* Whether it is watched or depends on a watched array. NULL tape: on any tape that records on this thread. */
SMELT_API bool smelt_tape_tracks(const smelt_tape *tape, const smelt_array *array);

/* Between the two (calls nest), no open tape of the calling thread records, except for tapes begun between
 * them: a custom function computes there, and smelt_tape_record describes it afterwards. */
SMELT_API void smelt_tape_pause(void);
SMELT_API void smelt_tape_resume(void);

/* The description of a custom function. */
typedef struct smelt_record_desc {
    const char *name;     /* for messages; copied */
    smelt_array **inputs; /* all arrays that outputs depend on and can be differentiated by */
    int input_count;
    smelt_array **outputs; /* new handles */
    int output_count;
    /* gradients[i]: a new reference to an array of the shape of inputs[i], or NULL for zeros. cotangents[j]
     * is of the shape and dtype of outputs[j] (zeros where nothing depends on it). Operations called here are
     * recorded by the outer tapes. A failure is returned with the thread's message. NULL: differentiating the
     * outputs is an error that names `name`. */
    smelt_status (*vjp)(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                        smelt_array *const *cotangents, smelt_array **gradients);
    /* output_tangents[j]: a new reference, or NULL for zeros. tangents[i] is of the shape of inputs[i], zeros
     * if it has no tangent. NULL: derived from the VJP, whose operations must then be differentiable by the
     * cotangents. */
    smelt_status (*jvp)(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                        smelt_array *const *tangents, smelt_array **output_tangents);
    /* Called once with `context` when no tape needs it any more: before smelt_tape_record returns if it
     * failed or no tape recorded it, else when the last tape is released. May be NULL. */
    void (*release)(void *context);
    void *context;
    uint64_t reserved[8];
} smelt_record_desc;

/* Records it on the open tapes of the thread that track one of its inputs; on none while they are paused
 * (then it is part of another custom function). */
SMELT_API smelt_status smelt_tape_record(const smelt_record_desc *desc);

/* Vector-Jacobian products: gradients[i] becomes a new array of the shape and dtype of inputs[i]: the sum
 * over outputs of cotangents[j] times the derivative of outputs[j] by inputs[i]; zeros where no output
 * depends on it. Any tracked array can be an input or output. cotangents[j] (NULL: ones) must have the shape
 * of outputs[j] and is converted to its dtype. Outputs that depend on inputs only through integers, bools or
 * comparisons have derivative 0. Where a derivative is undefined, a one-sided one is used; max and min share
 * it among equal elements.
 *
 * INVALID_ARGUMENT for an output without a float dtype; UNSUPPORTED if a path goes through a custom function
 * without a VJP, or through complex64. */
SMELT_API smelt_status smelt_tape_vjp(smelt_tape *tape, smelt_array *const *outputs, int output_count,
                                      smelt_array *const *cotangents, smelt_array *const *inputs,
                                      int input_count, smelt_array **gradients);

/* Jacobian-vector products: output_tangents[j] becomes a new array of the shape and dtype of outputs[j]: the
 * sum over inputs of the derivative of outputs[j] by inputs[i] times tangents[i] (of the shape of inputs[i]).
 * The inputs are watched arrays. Errors as above. */
SMELT_API smelt_status smelt_tape_jvp(smelt_tape *tape, smelt_array *const *inputs, int input_count,
                                      smelt_array *const *tangents, smelt_array *const *outputs,
                                      int output_count, smelt_array **output_tangents);

#ifdef __cplusplus
}
#endif
#endif
