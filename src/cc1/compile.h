/* smelt-cc1's second half: from bitcode to code, as libsmelt_compiler does it. */
#ifndef SMELT_CC1_COMPILE_H
#define SMELT_CC1_COMPILE_H

#ifdef __cplusplus
extern "C" {
#endif

/* malloc, set for a process that compiles once. */
void cc1_tune_memory(void);

/* A compile request (abi/compiler_wire.h) from standard input, its result to standard output. Returns the
 * exit status: 0 if there is a result, which may be a failure. */
int cc1_compile(void);

/* Prints the bits of vector registers on `cpu` ("": this machine's). */
int cc1_print_vector_bits(const char *cpu);

#ifdef __cplusplus
}
#endif
#endif
