/* smelt bench compile: one entry of a file that has hundreds. */
#ifndef SMELT_BENCH_COMPILE_FILE_H
#define SMELT_BENCH_COMPILE_FILE_H

#include "bench/harness.h"

/* Of the entry: clang's own processor time, all that is not code generation (bar: 1.2 times clang's), and the
 * whole; and what reading the file takes. */
smelt_status bench_compile_file(struct bench *bench);

#endif
