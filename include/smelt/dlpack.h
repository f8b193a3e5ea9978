/* dlpack.h — arrays from and to other libraries, without a copy, through DLPack's structs.
 *
 * DLPack's own header (https://github.com/dmlc/dlpack, dlpack/dlpack.h) defines the structs; this one only
 * names them, so the two may be included in any order, or this one alone. "Versioned" means versions 1.x;
 * libraries exchanged the unversioned struct before.
 *
 * Devices. "cpu" is kDLCPU, "cuda:N" kDLCUDA with that number. Tensors in pinned memory (kDLCUDAHost) become
 * arrays of the host, those in managed memory (kDLCUDAManaged) arrays of the GPU; other devices are rejected.
 * Dtypes. Those of smelt.h, one lane each: bool of 8 bits, float16, bfloat16 …; others are rejected by name.
 *
 * Status and ownership as in smelt.h. Unless stated otherwise, functions may be called from any thread. */
#ifndef SMELT_DLPACK_H
#define SMELT_DLPACK_H

#include <smelt/smelt.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* DLPack's flags of a versioned tensor. */
#define SMELT_DLPACK_READ_ONLY UINT64_C(1)
#define SMELT_DLPACK_COPIED UINT64_C(2)

/* An array over the tensor's memory. The array takes ownership of the tensor: its deleter is called once, by
 * the thread that releases the last reference to the memory. On failure the caller keeps it.
 *
 * `stream`, for tensors on a GPU: the producer's stream. Uses of the array follow the work enqueued there so
 * far; the deleter is called without waiting, with the stream ordered after them. NULL: the producer's work
 * has ended, or the device's default stream (smelt_stream_default) waits for it; the deleter is then called
 * when nothing uses the memory any more.
 *
 * `flags` (may be NULL) receives the tensor's flags, 0 for an unversioned one. smelt does not prevent writes
 * to a read-only array.
 *
 * INVALID_ARGUMENT for a tensor that is damaged or whose elements are not aligned to their size; FORMAT for a
 * version that is not 1.x; UNSUPPORTED for dtypes and devices without arrays; LIMIT for more than
 * SMELT_MAX_DIMENSIONS dimensions; NO_DEVICE. */
SMELT_API smelt_status smelt_array_from_dlpack(struct DLManagedTensorVersioned *tensor, smelt_stream *stream,
                                               uint64_t *flags, smelt_array **array);
SMELT_API smelt_status smelt_array_from_dlpack_unversioned(struct DLManagedTensor *tensor,
                                                           smelt_stream *stream, smelt_array **array);

/* A tensor over the array's memory, which it keeps until its deleter is called, on any thread. `flags` are
 * the tensor's. `stream`, for arrays on a GPU: later work there follows all work enqueued on the array, and
 * later uses of the array follow the work enqueued there by then; NULL: the device's default stream. */
SMELT_API smelt_status smelt_array_to_dlpack(smelt_array *array, smelt_stream *stream, uint64_t flags,
                                             struct DLManagedTensorVersioned **tensor);
SMELT_API smelt_status smelt_array_to_dlpack_unversioned(smelt_array *array, smelt_stream *stream,
                                                         struct DLManagedTensor **tensor);

/* Calls the deleter of a tensor that has no owner. NULL does nothing. */
SMELT_API void smelt_dlpack_delete(struct DLManagedTensorVersioned *tensor);
SMELT_API void smelt_dlpack_delete_unversioned(struct DLManagedTensor *tensor);

/* The device of a tensor, in DLPack's numbers. */
SMELT_API void smelt_dlpack_tensor_device(const struct DLManagedTensorVersioned *tensor, int32_t *type,
                                          int32_t *number);

/* A device as DLPack numbers it: "cuda:1" is type 2, number 1. NO_DEVICE for an unknown name. */
SMELT_API smelt_status smelt_dlpack_device(const char *device, int32_t *type, int32_t *number);

#ifdef __cplusplus
}
#endif
#endif
