/* Shared by the tests of the shipped kernels and of the seeds' own text: random inputs, comparison with
 * float64 references, memory bordered by inaccessible pages, and the kernels from the seeds' documents. */
#ifndef SMELT_TESTS_SEEDS_H
#define SMELT_TESTS_SEEDS_H

#include "../device.h"
#include "../unit/unit.h"
#include <smelt/smelt.h>

/* The call must succeed; otherwise the test fails with smelt's own message. */
#define CHECK(call) check_status((call), #call, __FILE__, __LINE__)
void check_status(smelt_status status, const char *call, const char *file, int line);

#define SHAPE(...) ((smelt_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})

/* Normal random values. */
smelt_array *random_array(smelt_dtype dtype, smelt_shape shape, uint64_t seed);

/* Points for grid_sample, float32, (batch, rows, columns, 2): uniform in [-reach, reach). With a reach above
 * 1, some points are outside the image. */
smelt_array *random_points(int64_t batch, int64_t rows, int64_t columns, double reach, uint64_t seed);

/* For shipped operations: on the device under test. */
#define ON_DEVICE (&(smelt_call){.device = test_device()})

/* The elements in row-major order as float64, wherever the array is; free() the result. */
double *values_of(const smelt_array *array);

/* Each element must be within `relative` of the expected one, or within `absolute`. The failure message names
 * `what`. */
void assert_close(const char *what, const smelt_array *actual, const double *expected, double relative,
                  double absolute);

/* Both arrays must have the same bits in every element. Both are row-contiguous, wherever they are. */
void assert_same_bits(const char *what, const smelt_array *a, const smelt_array *b);

/* Half a unit in the last place, relative: the error of rounding a result to `dtype` once. */
double rounding(smelt_dtype dtype);

/* A row-contiguous copy of `array` whose last byte (`at_end`) or first byte is next to an inaccessible page;
 * if its bytes fill whole pages, both are. Released with the array. */
smelt_array *between_guards(const smelt_array *array, bool at_end);

/* The seeds' document; NULL, with a note, if the folder is missing: then the test must skip(). free() the
 * result. */
char *seed_document(const char *file);

/* The text of block number `index` that opens with `opening` and ends before the next `closing`; free() it.
 */
char *seed_block(const char *document, const char *opening, const char *closing, int index);

/* For documents that lost their line ends: removes backslashes, and ends the i-th // comment after the word
 * last_words[i] (NULL ends the list). In place; `text` does not grow. */
void seed_repair(char *text, const char *const *last_words);

#endif
