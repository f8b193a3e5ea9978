/* autodiff.h — differentiation through operations on arrays (ops.h) and through kernels.
 *
 * A tape remembers what was computed, and gives vector-Jacobian and Jacobian-vector products of it.
 * docs/operations.md describes the derivative of each operation.
 *
 * Status, ownership, defaults and units are those of smelt.h. A tape belongs to the thread that began it.
 */
#ifndef SMELT_AUTODIFF_H
#define SMELT_AUTODIFF_H

#include <smelt/smelt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tapes ---------------------------------------------------------------------------------- */

/* A tape remembers operations on arrays it tracks: those it watches, and results of operations that had a
 * tracked input. Arrays are told apart by their handles (hence smelt_apply never returns an input's), which a
 * tape keeps until it is released. The thread's open tapes each record on their own, also what computing
 * products of another tape does: so gradients of gradients are tapes within tapes. */
typedef struct smelt_tape smelt_tape;

/* Opens a tape on the calling thread. */
SMELT_API smelt_status smelt_tape_begin(smelt_tape **tape);
/* It records nothing more; its products can be asked for. Ending it again does nothing. INVALID_ARGUMENT on
 * another thread. */
SMELT_API smelt_status smelt_tape_end(smelt_tape *tape);
/* Ends it and gives back what it kept. On the thread that began it; NULL does nothing. */
SMELT_API void smelt_tape_release(smelt_tape *tape);

/* `array` is what others are differentiated by. To watch one array twice, as two variables, watch handles
 * made by SMELT_OPERATION_IDENTITY. */
SMELT_API smelt_status smelt_tape_watch(smelt_tape *tape, smelt_array *array);
/* Whether it is watched or depends on what is. NULL tape: on any tape that records on this thread. */
SMELT_API bool smelt_tape_tracks(const smelt_tape *tape, const smelt_array *array);

/* Between the two, counted, no tape of the calling thread records: what runs in there is a custom function's
 * own business, and smelt_tape_record says afterwards what it was. */
SMELT_API void smelt_tape_pause(void);
SMELT_API void smelt_tape_resume(void);

/* What a custom function was. */
typedef struct smelt_record_desc {
    const char *name;     /* for messages; copied */
    smelt_array **inputs; /* all that outputs depend on and can be differentiated by */
    int input_count;
    smelt_array **outputs; /* new handles */
    int output_count;
    /* gradients[i]: a new reference to an array of the shape of inputs[i], or NULL for zeros. cotangents[j]
     * is of the shape and dtype of outputs[j] (zeros where nothing depends on it). Operations called here are
     * recorded by the outer tapes. A failure is passed on with the thread's message. NULL: the outputs cannot
     * be differentiated, and doing so is an error that says `name`. */
    smelt_status (*vjp)(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                        smelt_array *const *cotangents, smelt_array **gradients);
    /* output_tangents[j]: a new reference, or NULL for zeros. tangents[i] is of the shape of inputs[i], zeros
     * where there is none. NULL: made of the VJP, which then has to consist of operations that can be
     * differentiated by the cotangents. */
    smelt_status (*jvp)(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                        smelt_array *const *tangents, smelt_array **output_tangents);
    /* Called once with `context` when no tape needs it any more: before smelt_tape_record returns if no tape
     * recorded it or it failed, else from the release of the last tape. May be NULL. */
    void (*release)(void *context);
    void *context;
    uint64_t reserved[8];
} smelt_record_desc;

/* Records it on the open tapes of the thread that track one of its inputs; on none while they are paused
 * (then it is part of another custom function). */
SMELT_API smelt_status smelt_tape_record(const smelt_record_desc *desc);

/* Vector-Jacobian products: gradients[i] becomes a new array of the shape and dtype of inputs[i]: the sum
 * over outputs of cotangents[j] times the derivative of outputs[j] by inputs[i]; zeros where no output
 * depends on it. Any array the tape tracks can be an input or output. cotangents[j] (NULL: ones) must have
 * the shape of outputs[j] and is converted to its dtype. What depends on inputs only through integers, bools
 * or comparisons has derivative 0. Operations whose derivative is not defined in a point have one of their
 * one-sided ones, max and min share it equally among equals.
 *
 * INVALID_ARGUMENT for an output that is not of a float dtype; UNSUPPORTED where the way goes through a
 * custom function without a VJP, or through complex64. */
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
