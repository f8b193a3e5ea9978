/* libsmelt_compiler.so, opened at the first compile. */
#ifndef SMELT_FRONTEND_COMPILER_LIBRARY_H
#define SMELT_FRONTEND_COMPILER_LIBRARY_H

#include "abi/compiler.h"

/* NO_COMPILER names the Debian package when the library, or the LLVM it needs, is not there. */
smelt_status compiler_open(const struct compiler **compiler);

/* Where it is looked for. */
void compiler_library_path(char path[4096]);

#endif
