// The C++ dialect the rewriter writes: address spaces, intrinsics of the engines, the binding of arguments.
// Compiled by clang in SYCL device mode, where address spaces are part of types and the default space holds them all.
#pragma once

#include "smelt_macros.h"

#define __smelt_device __attribute__((opencl_global_device))
#define __smelt_constant const __attribute__((opencl_global_host))
#define __smelt_threadgroup __attribute__((opencl_local))
// A string literal, in the address space that Metal's lie in.
#define __smelt_text(...) (*(__smelt_constant char(*)[sizeof(__VA_ARGS__)]) & __VA_ARGS__)
// One more makes an overload preferred: see the rewriter's method qualifiers.
#define __smelt_rank __attribute__((enable_if(true, "")))
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
typedef __bf16 bfloat;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef decltype(nullptr) nullptr_t;
typedef char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;

// ---- Intrinsics: functions without bodies that each engine replaces (src/abi/intrinsics.h lists them all).
extern "C" {
#define __smelt_pure __attribute__((const))
#define __smelt_together __attribute__((convergent))
// Dimension d = 0, 1, 2.
__smelt_pure uint __smelt_position_in_threadgroup(uint d);
__smelt_pure uint __smelt_thread_position(uint d); // in the grid
__smelt_pure uint __smelt_threadgroup_position(uint d);
__smelt_pure uint __smelt_threadgroup_size(uint d);          // of this group: smaller at the edge
__smelt_pure uint __smelt_dispatch_threadgroup_size(uint d); // of a full group
__smelt_pure uint __smelt_grid_threads(uint d);
__smelt_pure uint __smelt_grid_groups(uint d);
__smelt_pure uint __smelt_thread_index(void);
__smelt_pure uint __smelt_lane(void);
__smelt_pure uint __smelt_simdgroup(void);
__smelt_pure uint __smelt_simdgroup_count(void);
// Addresses of bound arguments.
__smelt_pure void *__smelt_buffer_address(uint index);
__smelt_pure void *__smelt_threadgroup_address(uint index);
// Control.
__smelt_together void __smelt_threadgroup_barrier(uint flags, uint line, const char *file);
__smelt_together void __smelt_simdgroup_barrier(uint flags);
void __smelt_thread_return(void);
void __smelt_function_return(void); // src/compiler/passes/returns.c
#define __smelt_leave() (__builtin_is_constant_evaluated() ? (void)0 : __smelt_function_return())
void __smelt_max_threads(uint count);
void __smelt_required_threads(uint x, uint y = 1, uint z = 1); // src/compiler/passes/bindings.c reads it
// The words of a log line, from metal_logging to src/device/log.c.
void __smelt_log(ulong level, ...);
// The words of a product of tiles (src/abi/tile.h). Each thread that calls it computes one.
void __smelt_tile_product(ulong form, ...);
// Memory for tiles in slots: __SMELT_TILE_BYTES for each simdgroup of the threadgroup.
__smelt_pure __smelt_device uchar *__smelt_tile_memory(void);
#define __SMELT_TILE_MOST 16384
#define __SMELT_TILE_BYTES (3 * 4 * __SMELT_TILE_MOST + 2112)
__smelt_pure bool __smelt_constant_defined(const void *constant);
// A macro: src/compiler/passes/constants.c wants to see the constant itself.
#define is_function_constant_defined(constant) __smelt_constant_defined((const void *)&(constant))
// For assert: true in checked runs; an assertion with this text fails there (src/compiler/passes/assertions.c).
__smelt_pure bool __smelt_is_checked(void);
void __smelt_assertion(const char *text);
// What a fence orders: its mem_flags; whether it does so for other threadgroups. Only checked runs call it.
void __smelt_checked_fence(uint flags, bool for_groups);
// Simdgroup operations, over the active lanes. `width` is 32 for a simdgroup and 4 for quads.
__smelt_together uint __smelt_simd_shuffle_i32(uint value, uint lane);
__smelt_together ulong __smelt_simd_shuffle_i64(ulong value, uint lane);
__smelt_together uint __smelt_simd_ballot(bool value);
__smelt_together uint __smelt_simd_reduce_i32(uint operation, uint width, uint value);
__smelt_together ulong __smelt_simd_reduce_i64(uint operation, uint width, ulong value);
__smelt_together float __smelt_simd_reduce_f32(uint operation, uint width, float value);
__smelt_together uint __smelt_simd_scan_i32(uint operation, uint width, uint value);
__smelt_together ulong __smelt_simd_scan_i64(uint operation, uint width, ulong value);
__smelt_together float __smelt_simd_scan_f32(uint operation, uint width, float value);
// Of 8×8 matrices laid out as in metal_simdgroup_matrix: the lane's element of the product A B, plus `sum`, where
// `right` are the elements of B in the columns wanted: the even or the odd ones.
__smelt_together float __smelt_simd_matrix_product(float left_even, float left_odd, float right, float sum);
// 0 on a CPU; on a GPU ten times its compute capability (8.0: 800), and 1 more for code that runs on that capability
// alone. A branch on it that is not taken is never compiled.
__smelt_pure uint __smelt_gpu_target(void);
// 1 if the code is for a GPU, and every simdgroup has all its threads. As above.
__smelt_pure uint __smelt_whole_warps(void);
// Products of fragments by the tensor cores of one simdgroup (src/compiler/ptx/matrix/fragments.c), for branches on
// __smelt_whole_warps() alone. A thread's part of a left matrix of 16 × 16 elements, of a right one of 16 × 8, and of
// their sums of 16 × 8 is that of PTX's mma.m16n8k16. Of tf32, the product is of 16 × 8 and 8 × 8.
typedef float __smelt_float4 __attribute__((ext_vector_type(4)));
typedef int __smelt_int4 __attribute__((ext_vector_type(4)));
__smelt_together __smelt_float4 __smelt_fragment_product_half(uint a0, uint a1, uint a2, uint a3, uint b0, uint b1, __smelt_float4 sums);
__smelt_together __smelt_float4 __smelt_fragment_product_bfloat(uint a0, uint a1, uint a2, uint a3, uint b0, uint b1, __smelt_float4 sums);
__smelt_together __smelt_float4 __smelt_fragment_product_tf32(uint a0, uint a1, uint a2, uint a3, uint b0, uint b1, __smelt_float4 sums);
__smelt_together __smelt_int4 __smelt_fragment_product_bytes(uint a0, uint a1, uint b0, __smelt_int4 sums);
__smelt_together __smelt_int4 __smelt_fragment_product_ubytes(uint a0, uint a1, uint b0, __smelt_int4 sums);
__smelt_together uint __smelt_fragment_transposed(uint pair); // of 8 × 8 pairs of bytes; compute capability 9.0
__smelt_together uint __smelt_fragment_tf32(float value);     // rounded
// Threadgroup memory that all callers share, of at least so many bytes (a constant), at a multiple of 1024.
__smelt_pure __smelt_threadgroup uchar *__smelt_staging(uint bytes);
// Whether all threads of the threadgroup make this call together, and with the same arguments (src/compiler/ptx/matrix/alike.c). 0: no.
// 1: yes, and there is threadgroup memory of `bytes` bytes (a constant) that all such calls share. 2: yes, device memory is unchanged
// since the kernel's start, and this call has threadgroup memory of its own, 2 * bytes + 64. The result is a constant: what it rules
// out is not compiled. For branches on __smelt_gpu_target() and __smelt_whole_warps() alone.
__smelt_together uint __smelt_alike(uint bytes, ulong a, ulong b, ulong c, ulong d, ulong e);
// That memory, at a multiple of 1024. `alike` is the call's result.
__smelt_pure __smelt_threadgroup uchar *__smelt_alike_memory(uint alike);
// If it is 2: seven numbers that each thread keeps for the call; zeros at first.
__smelt_pure ulong *__smelt_alike_state(uint alike);
// Instructions of NVIDIA's GPUs (src/compiler/ptx/instructions.c), for branches on __smelt_gpu_target() alone. Addresses
// of 32 bits are in threadgroup memory. The barriers are mbarriers.
__smelt_together uint __smelt_ptx_shared_address(const __smelt_threadgroup void *pointer);
__smelt_together uint __smelt_ptx_broadcast(uint value); // lane 0's
__smelt_together uint __smelt_ptx_exchange(uint value, uint bit); // the value of the lane whose number differs in `bit`
__smelt_pure uint __smelt_ptx_lane(void);                // the hardware's
__smelt_together void __smelt_ptx_barrier_init(uint barrier, uint arrivals);
__smelt_together void __smelt_ptx_barrier_end(uint barrier);
__smelt_together void __smelt_ptx_barrier_arrive(uint barrier, uint active);
__smelt_together void __smelt_ptx_barrier_expect(uint barrier, uint bytes, uint active);
__smelt_together void __smelt_ptx_barrier_wait(uint barrier, uint parity);
// A cluster: neighbours in the grid's first dimension, which run at the same time and can access each other's threadgroup
// memory. `groups` is a constant, 1 to 8. The grid has a multiple of it, and its threadgroups have the hardware's order.
__smelt_together void __smelt_ptx_clusters(uint groups);
__smelt_together uint __smelt_ptx_cluster_rank(void);
__smelt_together uint __smelt_ptx_cluster_address(uint address, uint rank); // of the same place in the memory of threadgroup `rank`
__smelt_together void __smelt_ptx_barrier_arrive_at(uint barrier, uint active); // at a cluster address
__smelt_together void __smelt_ptx_cluster_sync(void); // of threads that have not ended; orders only what fence_barriers orders
// After launch_next, the stream's next launch may start where this one leaves room. A kernel that calls wait_previous may start
// before the previous launch has ended. Before this call, it must not use memory that other launches write.
__smelt_together void __smelt_ptx_launch_next(void);
__smelt_together void __smelt_ptx_wait_previous(void);
__smelt_together void __smelt_ptx_store_shared(uint address, uint a, uint b, uint c, uint d); // 16 bytes
// Begin copies of 4, 8 and 16 bytes from the device's memory, at multiples of as many; what lies past `bytes` is 0. All that a
// thread has begun are complete after the wait.
__smelt_together void __smelt_ptx_copy_4(uint to, ulong from, uint bytes);
__smelt_together void __smelt_ptx_copy_8(uint to, ulong from, uint bytes);
__smelt_together void __smelt_ptx_copy_16(uint to, ulong from, uint bytes);
// Begins to read bytes of the device's memory, at a multiple of 16, into the cache that all multiprocessors share: multiples of 16.
// The previous launch may be writing them.
__smelt_together void __smelt_ptx_prefetch(ulong from, uint bytes, uint active);
__smelt_together void __smelt_ptx_copy_wait(void);
// Arrives at a barrier when all copies that the thread has begun are complete.
__smelt_together void __smelt_ptx_copy_arrive(uint barrier);
// The copies begun since the last commit are a group; waits until at most `groups`, a constant, of the thread's are under way.
__smelt_together void __smelt_ptx_copy_commit(void);
__smelt_together void __smelt_ptx_copy_wait_group(uint groups);
// x · y + z of pairs of half, of bfloat, each rounded once.
__smelt_pure uint __smelt_ptx_fma_halves(uint x, uint y, uint z);
__smelt_pure uint __smelt_ptx_fma_bfloats(uint x, uint y, uint z);
__smelt_pure float __smelt_ptx_max_nan(float x, float y); // NaN where one of them is
// Two neighbours in the lower or upper half of a word.
__smelt_pure uint __smelt_ptx_halves_of_low_e4m3(uint word);
__smelt_pure uint __smelt_ptx_halves_of_high_e4m3(uint word);
__smelt_pure uint __smelt_ptx_halves_of_low_e5m2(uint word);
__smelt_pure uint __smelt_ptx_halves_of_high_e5m2(uint word);
__smelt_pure uint __smelt_ptx_permute_bytes(uint x, uint y, uint places); // places: of x and y, 4 bits for each byte
__smelt_together void __smelt_ptx_fence_barriers(void);
// Where the launch has put a copy of the tensor bound to this index: its elements times their scales, in bfloat, with the same
// strides. 0: there is none.
__smelt_pure ulong __smelt_ptx_expanded(uint index);
// Says that a threadgroup multiplies a tile of so many elements by these copies. Both are for targets with wgmma.
__smelt_together void __smelt_ptx_expanded_tile(uint elements);
__smelt_together void __smelt_ptx_fence_async(void);
// By one whole simdgroup: writes a tensor map to `map`, in the device's memory, by way of 128 bytes at `scratch`.
__smelt_together void __smelt_ptx_tensor_map(ulong map, uint scratch, ulong data, uint width, uint height, ulong stride_bytes,
                                             uint box_width, uint box_height, uint type);
// The same of `count` matrices, the third coordinate of __smelt_ptx_tensor_copy_of; a copy is of one.
__smelt_together void __smelt_ptx_tensor_map_of(ulong map, uint scratch, ulong data, uint width, uint height, ulong stride_bytes,
                                                uint box_width, uint box_height, uint type, uint count, ulong bytes_between);
__smelt_together void __smelt_ptx_map_acquire(ulong map); // before the thread's first copy by a map that others wrote
__smelt_together void __smelt_ptx_tensor_copy(uint to, ulong map, uint x, uint y, uint barrier, uint active);
__smelt_together void __smelt_ptx_tensor_copy_of(uint to, ulong map, uint x, uint y, uint z, uint barrier, uint active);
// The same to each threadgroup of the cluster whose bit is set in `ranks`: to this place and this barrier in its own memory.
__smelt_together void __smelt_ptx_tensor_copy_to_all(uint to, ulong map, uint x, uint y, uint z, uint barrier, uint ranks, uint active);
// Stores from threadgroup memory at `from`, which fence_async has made visible. Elements outside the matrix are not stored.
// store_commit makes a group of the thread's stores since the last commit. store_wait_read waits until all of its groups have been
// read; only then may their sources change.
__smelt_together void __smelt_ptx_tensor_store_of(ulong map, uint from, uint x, uint y, uint z, uint active);
__smelt_together void __smelt_ptx_store_commit(void);
__smelt_together void __smelt_ptx_store_wait_read(void);
__smelt_together void __smelt_ptx_copy(uint to, ulong from, uint bytes, uint barrier, uint active); // multiples of 16
// By one whole simdgroup: stores four matrices of 8 × 8 pairs of bytes, as products leave them. Lane l has the address of
// row l % 8 of matrix l / 8.
__smelt_together void __smelt_ptx_store_matrices(uint address, uint a, uint b, uint c, uint d);
// Adds to four floats in the device's memory, at a multiple of 16 bytes, each of them at once.
__smelt_together void __smelt_ptx_add_four(ulong address, float a, float b, float c, float d);
// 128 bytes for each of three maps, of this multiprocessor alone.
__smelt_together ulong __smelt_ptx_map_memory(void);
// This many threadgroups, a constant, fit on a multiprocessor as far as registers are concerned.
__smelt_together void __smelt_ptx_resident(uint groups);
// By a whole warpgroup: from here on its threads have this many registers, a constant. Some must free what others take.
__smelt_together void __smelt_ptx_fewer_registers(uint count);
__smelt_together void __smelt_ptx_more_registers(uint count);
// Barriers of `threads` threads of a threadgroup, a constant, by number (1 to 15; 0 is threadgroup_barrier's). Those that sync
// wait until as many have synced or arrived.
__smelt_together void __smelt_ptx_group_sync(uint barrier, uint threads);
__smelt_together void __smelt_ptx_group_arrive(uint barrier, uint threads);
__smelt_together void __smelt_ptx_sync(void); // of all threads of a threadgroup whose simdgroups are whole
__smelt_together void __smelt_ptx_fragment_lanes(void); // lanes are in the order of fragments
__smelt_together void __smelt_ptx_wgmma_fence(void);
__smelt_together void __smelt_ptx_wgmma_commit(void);
__smelt_together void __smelt_ptx_wgmma_wait(uint groups);
// Adds the product of 64 × k and k × columns elements at two matrix descriptors to columns / 2 sums of a thread; without
// `add`, they become the product. `type` and the transposes are constants.
__smelt_together void __smelt_ptx_wgmma(float *sums, ulong left, ulong right, uint add, uint columns, uint type,
                                        uint transpose_left, uint transpose_right);
// The same of a left matrix in registers: four pairs of a thread, as PTX's wgmma lays them out.
__smelt_together void __smelt_ptx_wgmma_registers(float *sums, uint a, uint b, uint c, uint d, ulong right, uint add, uint columns,
                                                  uint type, uint transpose_right);
// Waits until at most `groups` committed groups are under way; these sums are then complete.
__smelt_together void __smelt_ptx_wgmma_finish(float *sums, uint count, uint groups);
}

// Operations of __smelt_simd_reduce and __smelt_simd_scan; scans add EXCLUSIVE.
#define __SMELT_SUM 0u
#define __SMELT_PRODUCT 1u
#define __SMELT_MIN_SIGNED 2u
#define __SMELT_MAX_SIGNED 3u
#define __SMELT_MIN_UNSIGNED 4u
#define __SMELT_MAX_UNSIGNED 5u
#define __SMELT_MIN_FLOAT 6u
#define __SMELT_MAX_FLOAT 7u
#define __SMELT_AND 8u
#define __SMELT_OR 9u
#define __SMELT_XOR 10u
#define __SMELT_EXCLUSIVE 16u

// ---- Binding: how the entry point turns slots into the kernel's parameters.
#define __SMELT_BIND_BUFFER 1
#define __SMELT_BIND_THREADGROUP 2
#define __SMELT_BIND_ATTRIBUTE 3
#define __SMELT_BIND_NOTHING 4

namespace __smelt {

template <class F> struct signature;
template <class R, class... A> struct signature<R (*)(A...)> {
  template <int I> using argument = __type_pack_element<I, A...>;
  static constexpr bool gives_nothing = __is_same(R, void);
};

// Read by src/compiler/passes/bindings.c from the constant array __smelt_bindings, ended by kind 0.
struct binding {
  int kind;
  int index;
  int size;     // bytes of what is pointed to
  int align;
  int writable; // the kernel may write through it
  int type;     // of an element, for the host: the number of its smelt_dtype (0: it has none), 256 times the components
                // of a vector (1: a scalar), 65536 for a pointer
};

template <class T> struct size_of { static constexpr int size = sizeof(T), align = alignof(T); };
template <> struct size_of<void> { static constexpr int size = 1, align = 1; };
template <> struct size_of<const void> { static constexpr int size = 1, align = 1; };
template <> struct size_of<__smelt_device void> { static constexpr int size = 1, align = 1; };
template <> struct size_of<__smelt_constant void> { static constexpr int size = 1, align = 1; };
template <> struct size_of<__attribute__((opencl_global_host)) void> { static constexpr int size = 1, align = 1; };
template <> struct size_of<__smelt_threadgroup void> { static constexpr int size = 1, align = 1; };

template <class T> struct element {
  static constexpr int code() {
    if constexpr (__is_enum(T))
      return element<__underlying_type(T)>::code();
    else
      return 256;
  }
};
template <class T> struct element<__smelt_device T> : element<T> {};
template <class T> struct element<__attribute__((opencl_global_host)) T> : element<T> {};
template <class T> struct element<__smelt_threadgroup T> : element<T> {};
#define __SMELT_ELEMENT(type, number) \
  template <> struct element<type> { \
    static constexpr int code() { return 256 + number; } \
  }
__SMELT_ELEMENT(bool, 1);
__SMELT_ELEMENT(uchar, 2);
__SMELT_ELEMENT(ushort, 3);
__SMELT_ELEMENT(uint, 4);
__SMELT_ELEMENT(ulong, 5);
__SMELT_ELEMENT(char, 6);
__SMELT_ELEMENT(signed char, 6);
__SMELT_ELEMENT(short, 7);
__SMELT_ELEMENT(int, 8);
__SMELT_ELEMENT(long, 9);
__SMELT_ELEMENT(half, 10);
__SMELT_ELEMENT(bfloat, 11);
__SMELT_ELEMENT(float, 12);
// A vector of `count` components.
template <class T, int count> struct vector_element {
  static constexpr int code() { return element<T>::code() + (count - 1) * 256; }
};

template <class P> struct pointee;
template <class T> struct pointee<T *> { using type = T; };
template <class T> struct pointee<T &> { using type = T; };

// What may be bound: a buffer lies in device or constant memory, threadgroup memory in its own.
template <class T> struct lies_in { static constexpr bool buffer = false, threadgroup = false; };
template <class T> struct lies_in<__smelt_device T> { static constexpr bool buffer = true, threadgroup = false; };
template <class T> struct lies_in<__attribute__((opencl_global_host)) T> { static constexpr bool buffer = true, threadgroup = false; };
template <class T> struct lies_in<__smelt_threadgroup T> { static constexpr bool buffer = false, threadgroup = true; };

// What stands in the parentheses of [[buffer(…)]] and the like.
template <class I> constexpr bool is_index(I index, ulong last) {
  if constexpr (__is_integral(I) || __is_enum(I))
    return (long)index >= 0 && (ulong)index <= last;
  else
    return false;
}

// Of an argument that is a tensor bound by the host: prelude/metal_tensor specialises it.
template <class P> struct handle { static constexpr bool is = false, scaled = false; };

template <class P> constexpr bool is_buffer() {
  if constexpr (__is_pointer(P) || __is_reference(P))
    return lies_in<__remove_cv(typename pointee<P>::type)>::buffer;
  else
    return true; // a value in a buffer
}
template <class P> constexpr bool is_threadgroup() {
  if constexpr (__is_pointer(P) || __is_reference(P))
    return lies_in<__remove_cv(typename pointee<P>::type)>::threadgroup;
  else
    return false;
}

template <class P> constexpr binding describe(int kind, int index) {
  if constexpr (handle<P>::is)
    return handle<P>::data(kind, index);
  else if constexpr (__is_pointer(P) || __is_reference(P)) {
    using T = typename pointee<P>::type;
    // The address space stays on T; sizes do not depend on it.
    return {kind, index, size_of<__remove_cv(T)>::size, size_of<__remove_cv(T)>::align, !__is_const(T),
            element<__remove_cv(T)>::code() + (__is_pointer(P) ? 65536 : 0)};
  } else {
    return {kind, index, (int)sizeof(P), (int)alignof(P), 0, element<__remove_cv(P)>::code()};
  }
}

// A tensor bound by the host takes up to three buffers: its elements at its own index, its extents and strides, and its
// scales. src/abi/image.h has the same numbers.
#define __SMELT_TENSOR_LAYOUT 32
#define __SMELT_TENSOR_SCALES 64

// Read by src/compiler/passes/bindings.c from the constant array __smelt_tensors. Rank 0: the argument is not a tensor.
struct tensor_binding {
  int parameter; // its number
  int index;
  int rank;
  int element;      // the number of its smelt_dtype or smelt_format
  int scales;       // likewise; 0: it has none
  int unused;
  long most;        // the largest number of its index type
  long extents[16]; // -1: dynamic
  long blocks[16];  // elements per scale
};
// Of rank 0. No long row of zeros at the end of an array: clang would give the constant another type.
constexpr tensor_binding no_tensor() {
  tensor_binding out = {};
  for (int d = 0; d < 16; d++) out.extents[d] = -1, out.blocks[d] = 1;
  return out;
}
template <class P> constexpr tensor_binding describe_tensor(int parameter, int index) {
  if constexpr (handle<P>::is)
    return handle<P>::describe(parameter, index);
  else
    return no_tensor();
}
// The rows of __smelt_bindings behind those of the parameters.
template <class P> constexpr binding describe_layout(int index) {
  if constexpr (handle<P>::is)
    return {__SMELT_BIND_BUFFER, index + __SMELT_TENSOR_LAYOUT, 8, 8, 0, 0};
  else
    return {__SMELT_BIND_NOTHING, 0, 0, 1, 0, 0};
}
template <class P> constexpr binding describe_scales(int index) {
  if constexpr (handle<P>::scaled)
    return {__SMELT_BIND_BUFFER, index + __SMELT_TENSOR_SCALES, 1, 1, 0, 0};
  else
    return {__SMELT_BIND_NOTHING, 0, 0, 1, 0, 0};
}

template <class P> METAL_FUNC P address(void *slot) {
  if constexpr (__is_pointer(P))
    return (P)slot;
  else if constexpr (__is_reference(P))
    return *(typename pointee<P>::type *)slot;
  else
    return *(const P *)slot; // a value in a buffer
}

template <class P> METAL_FUNC P buffer(uint index) {
  if constexpr (handle<P>::is)
    return handle<P>::tensor(index);
  else
    return address<P>(__smelt_buffer_address(index));
}
template <class P> METAL_FUNC P threadgroup_memory(uint index) {
  return address<P>(__smelt_threadgroup_address(index));
}

} // namespace __smelt
