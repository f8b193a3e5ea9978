/* One convolution, read from a call: shared by convolve.c, its plain loops and its derivative. */
#ifndef SMELT_OPS_CONVOLVE_H
#define SMELT_OPS_CONVOLVE_H

#include "ops/operation.h"

#define CONVOLVE_MOST 3 /* spatial dimensions */

/* x: (batches, in, channels); weight: (outputs, kernel, channels / groups); the result: (batches, out,
 * outputs). Sizes of spatial dimensions that a call lacks are 1, in front of those it has. */
struct convolve {
    int spatial; /* dimensions that the call has */
    bool flip;
    int64_t batches, channels, outputs, groups;
    int64_t in[CONVOLVE_MOST], kernel[CONVOLVE_MOST], out[CONVOLVE_MOST];
    int64_t stride[CONVOLVE_MOST], before[CONVOLVE_MOST], after[CONVOLVE_MOST];
    int64_t kernel_dilation[CONVOLVE_MOST], input_dilation[CONVOLVE_MOST];
};

smelt_status convolve_read(const struct call *call, struct convolve *c);

/* The descriptor's fields for a convolution of c->spatial dimensions. */
void convolve_write(const struct convolve *c, smelt_apply_desc *desc);

#endif
