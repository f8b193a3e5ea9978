/* libsmelt_compiler.so, opened at the first compile. */
#ifndef SMELT_FRONTEND_COMPILER_LIBRARY_H
#define SMELT_FRONTEND_COMPILER_LIBRARY_H

#include "abi/compiler.h"

/* NO_COMPILER names the Debian package if the library, or its LLVM, is missing. */
smelt_status compiler_open(const struct compiler **compiler);

/* Where it is searched for. */
void compiler_library_path(char path[4096]);

#endif
