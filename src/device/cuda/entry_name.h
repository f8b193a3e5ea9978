/* The name of a kernel on a GPU, where profilers, debuggers and checkers show it. */
#ifndef SMELT_DEVICE_CUDA_ENTRY_NAME_H
#define SMELT_DEVICE_CUDA_ENTRY_NAME_H

#include "base/text.h"

/* What the driver takes and every tool shows in full. */
#define MOST_ENTRY_NAME 128

/* Copies PTX whose entry point is called ENTRY_NAME, as all generated code's, and names it after the kernel:
 * letters, digits, _ and $ stay, and other characters become _. Where the code defines that name itself, the
 * entry keeps its own. `name` is what it is called then. The copy ends in a 0 that does not count; the caller
 * checks `named->failed`. */
void cuda_name_entry(struct text *named, char name[MOST_ENTRY_NAME], const char *kernel, const char *ptx,
                     size_t size);

#endif
