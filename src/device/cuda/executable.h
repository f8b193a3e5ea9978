/* Codes of an entry on a GPU. */
#ifndef SMELT_DEVICE_CUDA_EXECUTABLE_H
#define SMELT_DEVICE_CUDA_EXECUTABLE_H

#include "device/cuda/module.h"
#include "device/executable.h"

/* One slot of struct cuda_parameters, in their order. */
struct cuda_slot {
    uint16_t index;   /* of the buffer, or of the threadgroup memory */
    bool threadgroup; /* which of the two */
    bool writable;
    uint8_t element;  /* bytes; 0: unknown */
    uint16_t inlined; /* bytes of its contents among the parameters; 0: behind an address */
    uint16_t offset;  /* where in the parameters they lie */
};

struct cuda_code {
    struct code_head head;
    _Atomic(struct cuda_module *) module; /* latest epoch first */
    struct cuda_slot *slots;
    uint32_t slot_count, parameter_bytes;
    uint32_t copies_offset; /* in the parameters: the addresses of tensors' copies */
};

/* Of struct device. */
smelt_status cuda_make_code(struct executable *executable, struct code_head *code);
void cuda_free_code(struct executable *executable, struct code_head *code);
smelt_status cuda_load_code(struct executable *executable, struct code_head *code);

/* The code for a launch, compiled if it is missing, and its module, loaded if the GPU's current epoch has
 * none yet. `preparation` may be NULL. */
smelt_status cuda_code_for(const struct launch *launch, struct cuda_code **code, struct cuda_module **module,
                           struct preparation *preparation);

#endif
