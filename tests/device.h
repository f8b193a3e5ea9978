/* The device on which test programs run kernels: SMELT_TEST_DEVICE, or "cpu". Results are compared with
 * another device's: cpu's with cpu-scalar's, every other device's with cpu's. */
#ifndef SMELT_TESTS_DEVICE_H
#define SMELT_TESTS_DEVICE_H

#include <smelt/smelt.h>

#include <stdbool.h>

const char *test_device(void);
/* The device whose results are the reference. */
const char *test_oracle(void);
/* True if the results of test_device() lie in memory that the host cannot read. */
bool test_device_has_memory(void);

/* For programs that compile hundreds of kernels, of which they test the results: before anything is compiled,
 * chooses quick code, which takes a CPU half the time. With SMELT_TEST_FULL (make check-long) it is the best
 * code. */
void test_quick_code(void);

/* The array in host memory: itself if it is there, otherwise a copy, which replaces the reference. Late
 * errors of the kernels that wrote it are returned; *array is then unchanged. */
smelt_status test_to_host(smelt_array **array);

/* A file or folder of the source tree, `path` from its root. The root is $SMELT_TEST_SOURCES if it is set,
 * since programs may run on another machine than the one that built them; otherwise `root`. Valid until the
 * calling thread's next call. */
const char *test_source(const char *root, const char *path);

#endif
