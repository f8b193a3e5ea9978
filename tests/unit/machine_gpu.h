/* Tests of this machine's own GPU: whether there is one and SMELT_TEST_DEVICE asks for it. */
#ifndef SMELT_TESTS_UNIT_MACHINE_GPU_H
#define SMELT_TESTS_UNIT_MACHINE_GPU_H

#include "../device.h"
#include "unit.h"
#include "device/cuda/context.h"

#include <stdio.h>
#include <string.h>

/* Otherwise the reason is printed. */
static bool machine_has_gpu(void) {
    const char *reason = "";
    int count = 0;
    if (strncmp(test_device(), "cuda", 4) != 0)
        reason = "SMELT_TEST_DEVICE is not cuda";
    else
        cuda_gpus(&count, &reason);
    if (!count) print_message("skipped: %s\n", reason);
    return count > 0;
}

#endif
