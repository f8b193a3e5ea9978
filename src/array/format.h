/* Elements of tensors: the dtypes of arrays, and packed formats. Element 0 lies in the lowest bits. */
#ifndef SMELT_ARRAY_FORMAT_H
#define SMELT_ARRAY_FORMAT_H

#include "base/error.h"
#include "smelt/tensor.h"

/* Neither name nor bits for numbers that are not elements: "none", 0. */
bool element_is_packed(int element); /* one of smelt_format */

/* "uint4, fp8_e4m3 …": all names, for messages; at most 512 bytes. */
struct element_names {
    char text[512];
};
struct element_names element_list(void);

/* Element `index` of those packed at `bytes`, `bits` each: 2, 4 or 8. */
unsigned packed_load(const void *bytes, int bits, int64_t index);
void packed_store(void *bytes, int bits, int64_t index, unsigned code);

#endif
