/* The device that test programs run kernels on: SMELT_TEST_DEVICE, "cpu" without it. What comes out is
 * compared with another device's: cpu's results with cpu-scalar's, every other device's with cpu's. */
#ifndef SMELT_TESTS_DEVICE_H
#define SMELT_TESTS_DEVICE_H

#include <smelt/smelt.h>

#include <stdbool.h>

const char *test_device(void);
/* Whose results are right. */
const char *test_oracle(void);
/* True if the results of test_device() lie in memory that the host cannot read. */
bool test_device_has_memory(void);

/* The array in the host's memory: itself if it is there, else a copy, and the reference given goes. Late
 * errors of the kernels that wrote it come out here; then *array stays what it was. */
smelt_status test_to_host(smelt_array **array);

/* A file or folder of the source tree, `path` from its root, or from $SMELT_TEST_SOURCES where that is set:
 * programs may run on another machine than the one that built them. `root` is what the build knew. Valid
 * until the calling thread's next call. */
const char *test_source(const char *root, const char *path);

#endif
