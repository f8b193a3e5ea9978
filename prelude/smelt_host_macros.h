// What clang defines for the machine that it compiles on and for SYCL, whose device mode smelt uses. Metal's compiler
// defines none of it, so headers that are shared with C++, CUDA or SYCL must not see it. Only the preprocessor of users'
// sources is given this file, after smelt_macros.h: the prelude itself needs some of these macros.
#undef SYCL_LANGUAGE_VERSION
#undef __SYCL_DEVICE_ONLY__
#undef _GNU_SOURCE
#undef __ELF__
#undef __gnu_linux__
#undef __linux
#undef __linux__
#undef __unix
#undef __unix__
#undef __amd64
#undef __amd64__
#undef __k8
#undef __k8__
#undef __x86_64
#undef __x86_64__
#undef __code_model_small__
#undef __FXSR__
#undef __MMX__
#undef __SSE__
#undef __SSE2__
#undef __SSE_MATH__
#undef __SSE2_MATH__
#undef __SEG_FS
#undef __SEG_GS
#undef __seg_fs
#undef __seg_gs
#undef __FLOAT128__
#undef __SIZEOF_FLOAT128__
