/* Shared by the tests of the ML kernels: random tensors in memory that ends at an inaccessible page, a launch
 * on two devices with poisoned outputs (the one under test and its oracle: device.h), and comparison with
 * float64 references. Everything that a test creates is freed at its end (ml_end). */
#ifndef SMELT_TESTS_ML_H
#define SMELT_TESTS_ML_H

#include "../device.h"
#include "../unit/unit.h"
#include <smelt/smelt.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* `count` elements that end at an inaccessible page, except for rounding to 16 bytes. */
struct tensor {
    smelt_dtype dtype;
    int64_t count;
    void *data;    /* inputs: the values; outputs: the results of the device under test */
    double *value; /* `data` as float64 */
    void *other;   /* outputs: the results of its oracle */
    smelt_array *array;
    void *mapping;
    size_t bytes, inner;
};

/* Uniform in [low, high); integers in low … high - 1. Each call returns other values. */
struct tensor *uniform(smelt_dtype dtype, int64_t count, double low, double high);
/* Normal values, rounded to `dtype`. */
struct tensor *normal(smelt_dtype dtype, int64_t count, double scale);
/* `count` elements of `dtype` at `elements`. */
struct tensor *copy_of(smelt_dtype dtype, int64_t count, const void *elements);
/* The values given as float64, rounded to `dtype`. */
struct tensor *rounded(smelt_dtype dtype, int64_t count, const double *values);
/* Every element `value`. */
struct tensor *constant_of(smelt_dtype dtype, int64_t count, double value);
/* For outputs: poisoned before each run. */
struct tensor *room(smelt_dtype dtype, int64_t count);
/* To be called after a test changes `data`. */
void changed(struct tensor *tensor);

/* Memory of float64 for a reference, zeroed; of any kind. */
double *doubles(int64_t count);
void *scratch(size_t bytes);

/* A random integer in 0 … bound - 1, and a random number in [0, 1). */
uint32_t random_below(uint32_t bound);
double random_unit(void);

struct bytes {
    const void *data;
    size_t size;
};
#define BYTES(type, ...) {(type[]){__VA_ARGS__}, sizeof((type[]){__VA_ARGS__})}

struct launch {
    const char *file, *entry;
    smelt_constant constants[SMELT_MAX_CONSTANTS];
    struct tensor *in[SMELT_MAX_BUFFERS];     /* read-only while the kernel runs */
    struct tensor *out[SMELT_MAX_BUFFERS];    /* poisoned before the run */
    struct tensor *update[SMELT_MAX_BUFFERS]; /* both devices start with the present contents */
    struct bytes bytes[SMELT_MAX_BUFFERS];
    size_t threadgroup_memory[SMELT_MAX_BUFFERS];
    int64_t grid[3], groups[3], threadgroup[3];
    smelt_math_mode math;
    bool open; /* the devices' results may differ: float atomics, or a math mode other than safe */
};

/* Whether every kernel runs. make check on a CPU leaves out some that take seconds to compile. */
bool runs_all(void);

/* Runs on the oracle and on the device under test; in make check, not all kernels have an oracle. The SIMD
 * engine must not refuse, and unless `open` all written bits must be equal (on a GPU, except for the kernels
 * of rounding.c). With ML_TIMES in the environment, prints the time of both; with ML_TIMES=check, what
 * checking costs (docs/checking.md). */
void launch(struct launch launch);
#define RUN(...) launch((struct launch){__VA_ARGS__})

/* rounding.c — why a GPU's results of a kernel may be rounded differently from a CPU's; NULL if they must
 * have the same bits. Such results are compared only with the reference. */
const char *rounded_apart(const char *file, const char *entry);

/* The unit roundoff of a float dtype. */
double roundoff(smelt_dtype dtype);

/* Each element, of both devices, is within relative · |expected| + absolute. NaN is near only NaN, an
 * infinity only itself. */
void check(const char *what, const struct tensor *actual, const double *expected, double relative,
           double absolute);
/* Each element has its own bound. */
void check_bounds(const char *what, const struct tensor *actual, const double *expected, const double *bound);
/* Bit for bit. */
void check_exact(const char *what, const struct tensor *actual, const void *expected);

int ml_end(void **state);
/* Runs the tests of one family, or those that match ML_ONLY; prints the seed, which ML_SEED sets. */
int ml_main(const struct CMUnitTest *tests, size_t count, const char *name);
#define ML_TEST(name) cmocka_unit_test_teardown(name, ml_end)
#define ML_MAIN(...)                                                        \
    int main(void) {                                                        \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                    \
        return ml_main(tests, sizeof tests / sizeof *tests, SMELT_ML_NAME); \
    }

#endif
