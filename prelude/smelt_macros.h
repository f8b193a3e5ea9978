// The macros users see. The preprocessor is given these alone; everything else comes precompiled.
#pragma once

#define __METAL__ 1
#ifndef __METAL_VERSION__
#define __METAL_VERSION__ 320
#endif

#define METAL_FUNC inline __attribute__((always_inline))
#define METAL_INTERNAL METAL_FUNC
#define METAL_CONST static constant constexpr

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()

#define MLX_MTL_CONST static constant constexpr const
#define MLX_MTL_PRAGMA_UNROLL _Pragma("clang loop unroll(full)")
#define MLX_MTL_LOOP_UNROLL _Pragma("clang loop unroll(full)")
#define instantiate_kernel(name, func, ...) \
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
