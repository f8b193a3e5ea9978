/* What lends memory to a captured stream (smelt_stream_memory): one block, which it counts the uses of. */
#ifndef SMELT_TESTS_CUDA_LENDER_H
#define SMELT_TESTS_CUDA_LENDER_H

#include "unit/unit.h"

#include "device/cuda/driver.h"

struct lender {
    CUdeviceptr block;
    size_t size; /* of the block */
    int taken, given;
};

static inline void *lender_take(void *context, void *native, size_t bytes) {
    struct lender *lender = context;
    assert_non_null(native);
    assert_true(bytes <= lender->size);
    lender->taken++;
    return (void *)(uintptr_t)lender->block;
}

static inline void lender_give(void *context, void *address) {
    struct lender *lender = context;
    assert_int_equal((uintptr_t)address, lender->block);
    lender->given++;
}

#endif
