/* Code for the values that launches give. */
#ifndef SMELT_DEVICE_CPU_VALUES_H
#define SMELT_DEVICE_CPU_VALUES_H

#include "device/cpu/executable.h"

/* The values that launches of one code have given. */
struct value_sets;

/* Sets code->sets if the image has places of values. OUT_OF_MEMORY. */
smelt_status cpu_value_sets_create(struct executable *executable, struct code *code);
void cpu_value_sets_free(struct value_sets *sets);

/* What one launch notes about its codes. */
struct values_note {
    struct {
        struct value_sets *sets; /* NULL: nothing is to be noted */
        struct known_values values;
        double share; /* of the launch's threads that run the code */
        bool tried;   /* codes are compared: */
        bool known;   /* … it runs code for the values */
    } of[2];
    uint64_t threads;
    int64_t start;
    bool timed; /* one of both is noted */
};

/* Before a launch whose codes and buffers are known: puts codes for its arguments' values in their place
 * where there are some. Reads memory of arguments, in the order of the launch's queue. */
void cpu_values_begin(const struct launch *launch, struct launch_codes *codes, struct values_note *note);

/* After it, if note->timed. */
void cpu_values_end(struct values_note *note);

#endif
