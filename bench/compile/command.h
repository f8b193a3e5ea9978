/* smelt bench compile: the whole command, from its start to its end. */
#ifndef SMELT_BENCH_COMPILE_COMMAND_H
#define SMELT_BENCH_COMPILE_COMMAND_H

#include "bench/harness.h"

/* `smelt run` of the exp kernel, which no cache has seen, with a warm prelude: elapsed time (bar: 50 ms). */
smelt_status bench_compile_command(struct bench *bench);

#endif
