/* The kernels of dense factorisations, by number. */
#ifndef SMELT_LINALG_KERNELS_H
#define SMELT_LINALG_KERNELS_H

#include "linalg/dense.h"

enum dense_kernel {
    KERNEL_COPY = 1,
    KERNEL_SYMMETRY,
    KERNEL_BEGIN,
    KERNEL_CHOLESKY,
    KERNEL_CHOLESKY_ROW,
    KERNEL_SOLVE,
    KERNEL_PRODUCT,
    KERNEL_QR_LEAF,
    KERNEL_QR_SMALL,
    KERNEL_LU_LEAF,
    KERNEL_LU_SMALL,
    KERNEL_EXCHANGE,
    KERNEL_LIMB_DOT,
    KERNEL_LIMB_CHOLESKY,
    KERNEL_LIMB_QR,
    KERNEL_IDENTITY
};

/* The kernel in a form, and its launch: groups, threadgroup and buffers are given. */
smelt_status dense_kernel(const struct dense *d, enum dense_kernel kernel, int form,
                          smelt_function **function);
smelt_status dense_launch(const struct dense *d, enum dense_kernel kernel, int form,
                          smelt_dispatch_desc *dispatch);

#endif
