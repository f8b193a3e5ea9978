// What every kernel has without including anything: the dialect and Metal's library. Precompiled.
#pragma once

#pragma clang attribute push(__attribute__((nodebug)), apply_to = hasType(functionType))

#include "smelt_dialect.h"

// Within the prelude functions return a vector by its components. The C convention packs half4 or uchar4 into clang
// vectors and integers, which the optimiser would keep; the engines want scalars.
#if defined(__x86_64__)
#define __SMELT_BY_COMPONENT __attribute__((regcall))
#else
#define __SMELT_BY_COMPONENT
#endif
#undef METAL_FUNC
#define METAL_FUNC inline __attribute__((always_inline)) __SMELT_BY_COMPONENT

#include "metal_stdlib"

#undef METAL_FUNC
#define METAL_FUNC inline __attribute__((always_inline))

#pragma clang attribute pop
