/* The one table of intrinsics: functions without bodies that engines implement. The prelude (smelt_dialect.h)
 * declares the first part for kernels; passes add the second. Independent of LLVM. */
#ifndef SMELT_ABI_INTRINSICS_H
#define SMELT_ABI_INTRINSICS_H

#define INTRINSIC_PREFIX "__smelt_"

/* The side effects of an intrinsic. */
enum intrinsic_purity {
    PURE,   /* none: the value depends only on the thread and the arguments */
    APART,  /* effects that do not touch the kernel's memory */
    ORDERED /* reads the kernel's memory, or orders accesses to it */
};

/* TOGETHER: lanes that execute it in one call must not be split over different calls (LLVM's convergent). */
enum intrinsic_convergence { ALONE, TOGETHER };

enum intrinsic_kind {
    NOT_INTRINSIC,
    OF_THREAD,    /* numbers: positions, sizes, lanes */
    OF_BINDING,   /* addresses of arguments */
    OF_BARRIER,   /* waits for others */
    OF_RETURN,    /* ends the thread */
    OF_LAUNCH,    /* a property of the kernel that the launch needs; no code */
    OF_LOG,       /* a log line */
    OF_TILE,      /* a product of tiles (tile.h) */
    OF_CONSTANT,  /* queries a function constant */
    OF_SIMDGROUP, /* takes values from other lanes */
    OF_GPU,       /* an instruction of NVIDIA's GPUs; never reached on CPUs */
    OF_PASS       /* inserted by a pass, removed by a later one */
};

/* X(NAME, name behind the prefix, purity, convergence, kind). A name ending in _ is a family: a word follows.
 */
#define INTRINSICS_OF_KERNELS(X)                                                    \
    X(POSITION_IN_THREADGROUP, position_in_threadgroup, PURE, ALONE, OF_THREAD)     \
    X(THREAD_POSITION, thread_position, PURE, ALONE, OF_THREAD)                     \
    X(THREADGROUP_POSITION, threadgroup_position, PURE, ALONE, OF_THREAD)           \
    X(THREADGROUP_SIZE, threadgroup_size, PURE, ALONE, OF_THREAD)                   \
    X(DISPATCH_THREADGROUP_SIZE, dispatch_threadgroup_size, PURE, ALONE, OF_THREAD) \
    X(GRID_THREADS, grid_threads, PURE, ALONE, OF_THREAD)                           \
    X(GRID_GROUPS, grid_groups, PURE, ALONE, OF_THREAD)                             \
    X(THREAD_INDEX, thread_index, PURE, ALONE, OF_THREAD)                           \
    X(LANE, lane, PURE, ALONE, OF_THREAD)                                           \
    X(SIMDGROUP, simdgroup, PURE, ALONE, OF_THREAD)                                 \
    X(SIMDGROUP_COUNT, simdgroup_count, PURE, ALONE, OF_THREAD)                     \
    X(BUFFER_ADDRESS, buffer_address, PURE, ALONE, OF_BINDING)                      \
    X(THREADGROUP_ADDRESS, threadgroup_address, PURE, ALONE, OF_BINDING)            \
    X(THREADGROUP_BARRIER, threadgroup_barrier, ORDERED, TOGETHER, OF_BARRIER)      \
    X(SIMDGROUP_BARRIER, simdgroup_barrier, ORDERED, TOGETHER, OF_BARRIER)          \
    X(THREAD_RETURN, thread_return, APART, ALONE, OF_RETURN)                        \
    X(FUNCTION_RETURN, function_return, APART, ALONE, OF_RETURN)                    \
    X(MAX_THREADS, max_threads, APART, ALONE, OF_LAUNCH)                            \
    X(REQUIRED_THREADS, required_threads, APART, ALONE, OF_LAUNCH)                  \
    X(UNSUPPORTED, unsupported_, APART, ALONE, OF_LAUNCH)                           \
    X(LOG, log, ORDERED, ALONE, OF_LOG)                                             \
    X(TILE_PRODUCT, tile_product, ORDERED, ALONE, OF_TILE)                          \
    X(TILE_MEMORY, tile_memory, PURE, ALONE, OF_TILE)                               \
    X(CONSTANT_DEFINED, constant_defined, PURE, ALONE, OF_CONSTANT)                 \
    X(IS_CHECKED, is_checked, PURE, ALONE, OF_LAUNCH)                               \
    X(ASSERTION, assertion, APART, ALONE, OF_LAUNCH)                                \
    X(CHECKED_FENCE, checked_fence, APART, ALONE, OF_LAUNCH)                        \
    X(SIMD_SHUFFLE_I32, simd_shuffle_i32, APART, TOGETHER, OF_SIMDGROUP)            \
    X(SIMD_SHUFFLE_I64, simd_shuffle_i64, APART, TOGETHER, OF_SIMDGROUP)            \
    X(SIMD_BALLOT, simd_ballot, APART, TOGETHER, OF_SIMDGROUP)                      \
    X(SIMD_REDUCE_I32, simd_reduce_i32, APART, TOGETHER, OF_SIMDGROUP)              \
    X(SIMD_REDUCE_I64, simd_reduce_i64, APART, TOGETHER, OF_SIMDGROUP)              \
    X(SIMD_REDUCE_F32, simd_reduce_f32, APART, TOGETHER, OF_SIMDGROUP)              \
    X(SIMD_SCAN_I32, simd_scan_i32, APART, TOGETHER, OF_SIMDGROUP)                  \
    X(SIMD_SCAN_I64, simd_scan_i64, APART, TOGETHER, OF_SIMDGROUP)                  \
    X(SIMD_SCAN_F32, simd_scan_f32, APART, TOGETHER, OF_SIMDGROUP)                  \
    X(SIMD_MATRIX_PRODUCT, simd_matrix_product, APART, TOGETHER, OF_SIMDGROUP)      \
    X(GPU_TARGET, gpu_target, PURE, ALONE, OF_LAUNCH)                               \
    X(STAGING, staging, PURE, ALONE, OF_LAUNCH)                                     \
    X(WHOLE_WARPS, whole_warps, PURE, ALONE, OF_LAUNCH)                             \
    X(ALIKE, alike, APART, TOGETHER, OF_LAUNCH)                                     \
    X(ALIKE_MEMORY, alike_memory, PURE, ALONE, OF_LAUNCH)                           \
    X(ALIKE_STATE, alike_state, PURE, ALONE, OF_LAUNCH)                             \
    X(FRAGMENT, fragment_, APART, TOGETHER, OF_GPU)                                 \
    X(PTX, ptx_, ORDERED, TOGETHER, OF_GPU)

/* never: false, which LLVM does not see (phases.h). held_: its argument (hold.c). barrier_passes: do all
 * lanes wait? (simd/analysis/analyse.c). inside_, leaves_, aligned_ and the extents of arguments:
 * compiler/bounds/bounds.h. The others mark what ptx/matrix/matrix_load.c and matrix_sums.c place. */
#define INTRINSICS_OF_PASSES(X)                                        \
    X(NEVER, never, APART, TOGETHER, OF_PASS)                          \
    X(HELD, held_, APART, TOGETHER, OF_PASS)                           \
    X(BARRIER_PASSES, barrier_passes, ORDERED, TOGETHER, OF_PASS)      \
    X(BUFFER_START, buffer_start, PURE, ALONE, OF_BINDING)             \
    X(BUFFER_EXTENT, buffer_extent, PURE, ALONE, OF_BINDING)           \
    X(THREADGROUP_START, threadgroup_start, PURE, ALONE, OF_BINDING)   \
    X(THREADGROUP_EXTENT, threadgroup_extent, PURE, ALONE, OF_BINDING) \
    X(INSIDE, inside_, ORDERED, ALONE, OF_PASS)                        \
    X(LEAVES, leaves_, PURE, ALONE, OF_PASS)                           \
    X(LAUNCH_LEAVES, launch_leaves, PURE, ALONE, OF_BINDING)           \
    X(TRAP, trap, ORDERED, ALONE, OF_PASS)                             \
    X(ALIGNED, aligned_, ORDERED, ALONE, OF_PASS)                      \
    X(MATRIX_IN_MEMORY, matrix_in_memory, APART, TOGETHER, OF_PASS)    \
    X(TO_TENSOR, to_tensor_, APART, TOGETHER, OF_PASS)                 \
    X(FROM_TENSOR, from_tensor_, APART, TOGETHER, OF_PASS)

#define INTRINSICS(X) INTRINSICS_OF_KERNELS(X) INTRINSICS_OF_PASSES(X)

#define INTRINSIC_ENUMERATOR(enumerator, name, purity, convergence, kind) INTRINSIC_##enumerator,
enum intrinsic {
    INTRINSIC_NONE,
    INTRINSICS(INTRINSIC_ENUMERATOR) INTRINSIC_UNKNOWN /* it has the prefix but is not in the table */
};
#undef INTRINSIC_ENUMERATOR

#endif
