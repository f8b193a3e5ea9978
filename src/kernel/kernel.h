/* A kernel from a body, its variants and their launches. */
#ifndef SMELT_KERNEL_KERNEL_H
#define SMELT_KERNEL_KERNEL_H

#include "base/arena.h"
#include "kernel/bound.h"
#include "kernel/dispatch.h"
#include "kernel/loaded.h"

#include <stdatomic.h>

/* The properties that determine a kernel's text and code, except the kernel itself. Compared as bytes: always
 * zero-initialised. */
struct variant_key {
    const struct device *device;
    uint8_t input_dtype[SMELT_MAX_ARGUMENTS];
    uint8_t input_kind[SMELT_MAX_ARGUMENTS]; /* 0 scalar, 1 small, 2 array */
    uint8_t output_dtype[SMELT_MAX_ARGUMENTS];
    struct {
        int64_t value;
        int64_t kind;
    } templates[SMELT_MAX_TEMPLATES]; /* their names are compared apart, in variant_matches */
    int32_t template_count, padding;
};

struct variant {
    struct loaded loaded; /* first: the kernel's list is of these */
    struct variant_key key;
    const char *template_names[SMELT_MAX_TEMPLATES]; /* in the kernel's arena, kept under its lock */
    struct signature signature;                      /* text and meaning of each buffer */
    struct translation translation;
    bool translated;
    const struct entry *entry;
    smelt_kernel *kernel; /* without a reference */
    const char *name;     /* the kernel's, for messages */
};

struct smelt_kernel {
    atomic_int references;
    struct arena arena;
    smelt_kernel_desc desc; /* strings in the arena */
    int input_count, output_count;
    struct loaded_list loaded; /* its variants */
};

/* The common checks of running and preparing, the key of their variant, and the launch's device and sizes. */
smelt_status kernel_begin(const smelt_kernel *kernel, const smelt_run_desc *desc, struct variant_key *key,
                          struct launch *launch);

/* What smelt_kernel_run does if an input is symbolic (array/symbolic.h); the launch is checked. */
typedef smelt_status kernel_tracer(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_array **outputs);
/* Sets the process's tracer. */
void kernel_trace_with(kernel_tracer *tracer);

/* The kernel's entry for a key, created if it is missing; lives as long as the kernel. */
smelt_status kernel_variant(smelt_kernel *kernel, const smelt_run_desc *desc, const struct variant_key *key,
                            struct variant **variant);

/* variant.c — the key of a checked run. */
void kernel_make_key(const smelt_kernel *kernel, const smelt_run_desc *desc, const struct device *device,
                     int template_count, struct variant_key *key);
/* The text of a checked run, to be freed by signature_free. */
smelt_status kernel_make_signature(const smelt_kernel *kernel, const smelt_run_desc *desc, int template_count,
                                   struct signature *signature);
/* … translated, to be freed by translation_free. */
smelt_status kernel_translate(const smelt_kernel *kernel, const struct signature *signature,
                              struct translation *translation);
/* The one kernel of a generated text. */
smelt_status kernel_only_entry(const struct translation *translation, const struct signature *signature,
                               const struct entry **entry);

/* kernel.c */
void kernel_variant_free(struct variant *variant);

/* kernel_checks.c */
bool kernel_is_identifier(const char *name);
/* Counts the names of inputs and outputs. */
smelt_status kernel_check_names(const smelt_kernel_desc *desc, int *inputs, int *outputs);
smelt_status kernel_check_run(const smelt_kernel *kernel, const smelt_run_desc *desc, int *template_count);

struct bound_request kernel_request(const smelt_kernel *kernel, const struct signature *signature,
                                    const struct device *device, const smelt_run_desc *desc);

/* The rest of a launch, except its buffers. */
void kernel_launch(const struct variant *variant, const struct bound_request *request, struct launch *launch);

/* Prepares the launch, binds its buffers and runs it. outputs (NULL: not wanted) are references. */
smelt_status kernel_run(const struct bound_request *request, struct launch *launch, smelt_array **outputs);

#endif
