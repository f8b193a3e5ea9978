/* Pinned host memory through which copies between host and GPU go. */
#ifndef SMELT_CUDA_STAGING_H
#define SMELT_CUDA_STAGING_H

#include "cuda/context.h"

/* The GPU was reset: what there was is gone. */
void cuda_staging_forget(struct cuda_gpu *gpu);

#endif
