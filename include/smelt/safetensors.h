/* smelt/safetensors.h — reading and writing .safetensors files, as which weights are published.
 *
 * The conventions are those of smelt.h. A file is checked as a whole when it is opened: sizes, offsets,
 * overlaps and gaps, so that a file from anywhere is either read or refused with a sentence.
 */
#ifndef SMELT_SAFETENSORS_H
#define SMELT_SAFETENSORS_H

#include "smelt/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An open file. It may be used by several threads. */
typedef struct smelt_safetensors smelt_safetensors;

/* An array of a file. When read, its strings and `array` live as long as the open file; retain the array to
 * keep it longer. */
typedef struct smelt_safetensors_entry {
    const char *name;
    int element;       /* of its elements: a smelt_dtype, or fp8_e4m3, fp8_e5m2, ue8m0 or fp4_e2m1 */
    smelt_shape shape; /* in elements, the outermost dimension first */
    smelt_array
        *array; /* of a packed format: its bytes (uint8), several elements per byte in the last dimension */
    uint64_t reserved[4];
} smelt_safetensors_entry;

/* Opens a file and maps it: pages are read when they are used, and writes to its arrays stay in this process.
 * The file must not be truncated meanwhile. IO; FORMAT with a sentence for a damaged file, or for an element
 * type that smelt lacks. */
SMELT_API smelt_status smelt_safetensors_open(const char *path, smelt_safetensors **file);
SMELT_API smelt_safetensors *smelt_safetensors_retain(smelt_safetensors *file);
SMELT_API void smelt_safetensors_release(smelt_safetensors *file);

/* Its arrays, in the order of their data. */
SMELT_API int smelt_safetensors_count(const smelt_safetensors *file);
/* INVALID_ARGUMENT for an index out of range. */
SMELT_API smelt_status smelt_safetensors_at(const smelt_safetensors *file, int index,
                                            smelt_safetensors_entry *entry);
/* INVALID_ARGUMENT if the file has no array of that name. */
SMELT_API smelt_status smelt_safetensors_find(const smelt_safetensors *file, const char *name,
                                              smelt_safetensors_entry *entry);

/* A new tensor of an array and its scales, which the file has under a related name, as one object. The values
 * are data * scale. `name` is the data's; for an array "name_blocks" the name alone is enough. Known names:
 *
 *     data            scales                                                 elements
 *     w               w_scale_inv, w_scale, w_scales                         fp8; a scale per block, per row
 * or one w_blocks        w_scales: 1 byte per group, whose bytes are            fp4_e2m1 (16 bytes), fp8_e4m3
 * (32 bytes) the last dimension w_packed        w_scale: 1 byte per 16 or 32 bytes                     the
 * same layer.weight    layer.scales, layer.scale: the same, of uint32 words   the same
 *
 * Bytes as scales are ue8m0. INVALID_ARGUMENT if the file lacks either array, for shapes that do not belong
 * together, and as of smelt_tensor_create. */
SMELT_API smelt_status smelt_safetensors_tensor(const smelt_safetensors *file, const char *name,
                                                smelt_tensor **tensor);

/* The metadata: keys and values, in the order of the file. NULL for an index out of range. */
SMELT_API int smelt_safetensors_metadata_count(const smelt_safetensors *file);
SMELT_API const char *smelt_safetensors_metadata_key(const smelt_safetensors *file, int index);
SMELT_API const char *smelt_safetensors_metadata_value(const smelt_safetensors *file, int index);

/* Writes a file, whole or not at all: `count` arrays, on any device and of any strides, in the order given
 * except that wider elements come first, and `metadata_count` pairs of key and value, one after the other.
 * `shape` of each is ignored where `element` is 0 or the array's dtype. INVALID_ARGUMENT for a name that is
 * missing or given twice, or an element type that the format lacks; IO. */
SMELT_API smelt_status smelt_safetensors_write(const char *path, const smelt_safetensors_entry *entries,
                                               int count, const char *const *metadata, int metadata_count);

#ifdef __cplusplus
}
#endif
#endif
