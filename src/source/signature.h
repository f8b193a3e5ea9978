/* From a kernel body to a whole Metal text: the signature MLX's metal_kernel would generate. */
#ifndef SMELT_SOURCE_SIGNATURE_H
#define SMELT_SOURCE_SIGNATURE_H

#include "base/text.h"
#include "smelt/smelt.h"

/* One argument of the kernel function, in the order of the buffer indices. */
enum argument_kind { ARGUMENT_DATA, ARGUMENT_SHAPE, ARGUMENT_STRIDES, ARGUMENT_NDIM, ARGUMENT_OUTPUT };

struct argument {
    enum argument_kind kind;
    int index; /* of the input, or of the output */
};

#define SIGNATURE_MAX_ARGUMENTS (5 * SMELT_MAX_ARGUMENTS)
#define SIGNATURE_SMALL 8

struct signature_input {
    const char *name;
    smelt_dtype dtype;
    int ndim;
    bool small; /* fewer than SIGNATURE_SMALL elements: passed in constant memory */
};

struct signature_output {
    const char *name;
    smelt_dtype dtype;
    bool atomic;
};

struct signature_request {
    const char *name, *body, *header; /* header may be NULL */
    const char *body_label, *header_label;
    const struct signature_input *inputs;
    int input_count;
    const struct signature_output *outputs;
    int output_count;
    const smelt_template *templates;
    int template_count;
};

struct signature {
    struct text text;      /* Metal text; #line directives name the labels */
    struct text host_name; /* of the one entry */
    struct argument arguments[SIGNATURE_MAX_ARGUMENTS];
    int argument_count;
};

/* Free with signature_free, on success only. */
smelt_status signature_generate(const struct signature_request *request, struct signature *signature);
void signature_free(struct signature *signature);

#endif
