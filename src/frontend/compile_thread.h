/* Runs the compiler library on a thread of its own, with enough stack and a time limit. */
#ifndef SMELT_FRONTEND_COMPILE_THREAD_H
#define SMELT_FRONTEND_COMPILE_THREAD_H

#include "abi/compiler.h"

/* compiler->compile(request, result), for at most `seconds`. TIMEOUT after that, with the sentence in
 * result->message: LLVM cannot be stopped from outside, so its thread continues, and its result is dropped.
 * INTERRUPTED in the same way when the call that the thread is in is interrupted. */
smelt_status compile_on_thread(const struct compiler *compiler, const struct compile_request *request,
                               double seconds, struct compile_result *result);

#endif
