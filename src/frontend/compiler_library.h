/* The compiler: smelt-cc1, or else libsmelt_compiler.so, found at the first compile. */
#ifndef SMELT_FRONTEND_COMPILER_LIBRARY_H
#define SMELT_FRONTEND_COMPILER_LIBRARY_H

#include "abi/compiler.h"

/* NO_COMPILER names the Debian package if the library, or its LLVM, is missing. */
smelt_status compiler_open(const struct compiler **compiler);

#endif
