/* One run of a body with inputs and outputs of any types. */
#ifndef SMELT_TESTS_ACCURACY_JOB_H
#define SMELT_TESTS_ACCURACY_JOB_H

#include <smelt/smelt.h>

#include <stdbool.h>

struct job_array {
    char name[24];
    smelt_dtype dtype;
    int64_t count;
    const void *data; /* of an input */
};
struct job {
    const char *body;
    smelt_math_mode math;
    const char *device;
    int64_t threads;
    int input_count, output_count;
    struct job_array inputs[12], outputs[40];
};

/* outputs[i] belongs to the caller, in host memory. Returns false, after reporting a failure, if the job does
 * not run. */
bool job_run(const struct job *job, smelt_array **outputs);

#endif
