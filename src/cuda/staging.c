#include "cuda/staging.h"

void cuda_staging_forget(struct cuda_gpu *gpu) {
    (void)gpu;
}
