/* The name of a kernel on a GPU, where profilers, debuggers and checkers show it. */
#ifndef SMELT_DEVICE_CUDA_ENTRY_NAME_H
#define SMELT_DEVICE_CUDA_ENTRY_NAME_H

#include "base/text.h"

/* Bytes, with the final 0. Longer names are cut. */
#define MOST_ENTRY_NAME 128

/* Appends PTX, in which the entry point is called ENTRY_NAME, with the entry renamed after the kernel.
 * Letters, digits, _ and $ stay; other characters become _. If PTX does not allow the name, or the code uses
 * it, the entry keeps its name. `name` receives the name in the copy. The caller checks `named->failed`. */
void cuda_name_entry(struct text *named, char name[MOST_ENTRY_NAME], const char *kernel, const char *ptx,
                     size_t size);

#endif
