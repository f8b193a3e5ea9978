/* smelt-cc1 as the compiler behind abi/compiler.h: each compile is a process of its own, so that LLVM can be
 * stopped, and can neither fill the host's memory nor end the host. */
#ifndef SMELT_FRONTEND_COMPILE_PROCESS_H
#define SMELT_FRONTEND_COMPILE_PROCESS_H

#include "abi/compiler.h"
#include "base/file.h"
#include "base/process.h"

/* NULL where smelt-cc1 is not there. */
const struct compiler *compile_process_find(void);

/* The result in `output` of a smelt-cc1 that has ended, or a failure with its message in `result`. */
smelt_status compile_process_judge(const struct process_result *done, struct bytes output,
                                   struct compile_result *result);

#endif
