/* A compile's request and result as bytes: smelt-cc1 compiles in a process of its own. Both sides are built
 * together: bytes of another version are refused. */
#ifndef SMELT_ABI_COMPILER_WIRE_H
#define SMELT_ABI_COMPILER_WIRE_H

#include "abi/compiler.h"
#include "base/text.h"

/* Adds the request to `bytes`, whose `failed` says if memory is short. */
void compile_request_write(const struct compile_request *request, struct text *bytes);

/* The reverse. What `request` points to lies in `bytes` and in `constants`; false: the bytes are of another
 * version, or damaged. */
bool compile_request_read(const char *bytes, size_t size, struct compile_request *request,
                          smelt_constant constants[SMELT_MAX_CONSTANTS + 1]);

/* The image is part of it where `output` is COMPILE_OBJECT and `status` is OK; otherwise only its
 * has_barrier. */
void compile_result_write(smelt_status status, enum compile_output output,
                          const struct compile_result *result, struct text *bytes);

/* The reverse: what `result` holds is the caller's to free. False as above; then it holds nothing. */
bool compile_result_read(const char *bytes, size_t size, smelt_status *status, struct compile_result *result);

#endif
