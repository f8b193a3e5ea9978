/* One case of the fuzzer: a kernel's text, how it is launched, and what its arrays hold. Written to a file it
 * can be run again.
 *
 *   seed: 17
 *   data: 2
 *   math: safe
 *   launch: 250 1 1 / 64 1 1            threads of the grid / of a group
 *   -- header
 *   …
 *   -- body
 *   …
 */
#ifndef SMELT_FUZZ_KERNEL_CASE_H
#define SMELT_FUZZ_KERNEL_CASE_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_LAUNCHES 8

/* Limits: no grid has more threads, and every input has this many elements per thread, since a kernel may use
 * the index 4 * i + 3. */
#define MAX_THREADS 4000
#define INPUT_ELEMENTS 16384
/* The same in every kernel: outputs have four elements per thread, and some at the end that belong to no
 * thread. */
#define ELEMENTS_A_THREAD 4
#define SPARE_ELEMENTS 64
#define ATOMIC_CELLS 64

/* Kinds of input data: see arrays.c. */
enum data_kind { DATA_SMALL, DATA_FULL, DATA_EDGES, DATA_KINDS };

struct launch {
    int64_t grid[3], group[3];
};

struct kernel_case {
    uint64_t seed;
    enum data_kind data;
    char *header, *body;
    int launch_count;
    struct launch launches[MAX_LAUNCHES];
};

/* false: the file cannot be read or is not a case; prints the reason to standard error. Free the case
 * afterwards. */
bool case_read(const char *path, struct kernel_case *kernel);
/* `note` (may be NULL) is written as comment lines at the top. false: the file cannot be written. */
bool case_write(const char *path, const struct kernel_case *kernel, const char *note);
struct kernel_case case_copy(const struct kernel_case *kernel);
void case_free(struct kernel_case *kernel);

#endif
