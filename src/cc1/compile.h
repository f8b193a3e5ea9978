/* smelt-cc1's second half: from bitcode to code, as libsmelt_compiler does it. */
#ifndef SMELT_CC1_COMPILE_H
#define SMELT_CC1_COMPILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A compile request (abi/compiler_wire.h) from standard input, its result to standard output. Returns the
 * exit status: 0 if there is a result, which may be a failure. */
int cc1_compile(void);

/* A process that is clang first and LLVM then: the first half begins, with a limit on its processor time.
 * SIGPROF ends the process when it is spent. */
void cc1_begin_translation(long seconds);
/* The first half ends with bitcode of so many instructions, and the second runs with the same limit: the
 * bitcode and the result go to standard output. The request is descriptor 3. Returns the exit status as
 * above. */
int cc1_compile_translation(const char *bitcode, size_t size, uint64_t instructions, long seconds);

/* Prints the bits of vector registers on `cpu` ("": this machine's). */
int cc1_print_vector_bits(const char *cpu);

#ifdef __cplusplus
}
#endif
#endif
