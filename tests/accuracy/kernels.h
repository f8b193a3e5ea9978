/* Kernels that call the measured functions. */
#ifndef SMELT_TESTS_ACCURACY_KERNELS_H
#define SMELT_TESTS_ACCURACY_KERNELS_H

#include "arguments.h"
#include "functions.h"

/* The three names of a function. */
enum form { PRECISE, FAST, PLAIN, FORMS };
extern const char *const form_prefix[FORMS];

/* Calls of `count` functions with one number of arguments, from `first` on, in every form that they have. */
struct program {
    smelt_kernel *kernel;
    const struct sweep *sweep;
    int first, count;
    int width; /* 0: scalars; 2, 3, 4: vectors */
};

/* The kernel is NULL, and a failure is reported, if it cannot be created. */
struct program program_new(const struct sweep *sweep, int first, int count, int width, smelt_math_mode math);
void program_free(struct program *program);

/* The results in the type; NULL, after reporting a failure, if the program does not run. `threads` results,
 * each of one argument or vector. program_result gives the start of those of a function, by its place in the
 * table. */
smelt_array *program_run(const struct program *program, const struct arguments *arguments,
                         const char *device);
const void *program_result(const struct program *program, smelt_array *results, int function, enum form form);

/* Operators have only the plain form; vectors the precise one, those of 4 also the fast one. */
bool program_has(const struct program *program, int function, enum form form);

/* The arguments for vectors: the first ones of a chunk; divisible by 2, 3 and 4. */
#define VECTOR_POINTS 1020

#endif
