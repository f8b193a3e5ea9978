// Keywords of C++20, which a source that is compiled as C++23 may use as names, since Metal lacks them. The end of each prelude.
#pragma once

#if __cplusplus > 201703L
#define co_await __smelt_co_await
#define co_return __smelt_co_return
#define co_yield __smelt_co_yield
#define concept __smelt_concept
#define consteval __smelt_consteval
#define constinit __smelt_constinit
#define requires __smelt_requires
#endif
