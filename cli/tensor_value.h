/* Tensors as the command line writes them: ELEMENT:DIMENSIONS[:scales=ELEMENT:BLOCKS][:SEED], the innermost
 * dimension first. */
#ifndef SMELT_CLI_TENSOR_VALUE_H
#define SMELT_CLI_TENSOR_VALUE_H

#include "smelt/tensor.h"

struct tensor_value {
    smelt_tensor_desc desc;
    uint64_t seed;
};

/* `what` names the option in the message on standard error if the result is false. `seeded`: a seed may be
 * there. */
bool tensor_value_parse(const char *what, const char *text, size_t length, bool seeded,
                        struct tensor_value *value);

/* Makes the tensor; with `contents` it is filled: floats uniform in [0, 1), integers over their full range,
 * scales of ue8m0 powers of 2 from 1/8 to 16. On failure complains and sets *status to the exit status to
 * leave with. */
bool tensor_value_make(const char *what, const struct tensor_value *value, bool contents,
                       smelt_tensor **tensor, int *status);

/* A tensor's values as an array on the host: packed formats and scales as float32. */
smelt_status tensor_value_array(const smelt_tensor *tensor, smelt_array **array);

/* Sets all planes to zeros. */
smelt_status tensor_value_clear(const smelt_tensor *tensor);

#endif
