/* smelt-cc1 as the compiler behind abi/compiler.h: each compile is a process of its own, so that LLVM can be
 * stopped, and can neither fill the host's memory nor end the host. */
#ifndef SMELT_FRONTEND_COMPILE_PROCESS_H
#define SMELT_FRONTEND_COMPILE_PROCESS_H

#include "abi/compiler.h"

/* NULL where smelt-cc1 is not there. */
const struct compiler *compile_process_find(void);

#endif
