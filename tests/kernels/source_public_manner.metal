// Ways of writing that public kernels have and that no rule of the rewriter is named after.
// run: manner -b 0=arange:float32:16 -b 1:out:float32:16 --constant 11=true --grid 16 --threadgroup 16
// expect buffer 1: f(i) for i in 16: i + 3 + 2 + 7 + (1 if i < 8 else 0)
#include <metal_stdlib>
using namespace metal;

#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define FIRST 10
#ifndef __HAVE_BFLOAT__
#error "bfloat is there"
#endif

// No space before the attribute, an index that is a sum.
constant bool flag[[function_constant(FIRST + 1)]];

// Defaulted constructors, one an address space, and still an aggregate.
template <typename T> struct Running {
  T count;
  float total;
  constexpr Running<T>() = default;
  constexpr Running<T>() threadgroup = default;
  constexpr Running<T>() constant = default;
};

template <typename T> Running<T> joined(Running<T> a, Running<T> b) { return {a.count + b.count, a.total + b.total}; }

template <typename T> struct tagged {
  T value;
  uint tag;
};

// Constructors and methods for objects in thread memory and in threadgroup memory, one without a qualifier.
struct Pair {
  float first, second;
  constexpr Pair(float a, float b) : first(a), second(b) {};
  constexpr Pair() : first(1), second(2) {};
  constexpr Pair() threadgroup : first(0), second(0) {};
  float sum() const noexcept { return first + second; }
  METAL_FUNC constexpr operator float() const thread noexcept { return first; }
  float sum() const threadgroup { return first + second; }
  template <typename T> constexpr Pair(T both) thread : Pair(both, both) {}
  template <typename T> constexpr Pair(T both) threadgroup : Pair(both, both) {}
};

// The limits of a type of one's own, and what C++ has and Metal's namespace lacks.
namespace metal {
template <typename T> struct is_empty : bool_constant<__is_empty(T)> {};
template <typename T> constexpr constant bool is_empty_v = is_empty<T>::value;
template <typename... Ts> struct make_void { typedef void type; };
template <typename... Ts> using void_t = typename make_void<Ts...>::type;
template <typename T> struct _numeric_limits_impl<tagged<T>> {
  static constexpr tagged<T> max() { return tagged<T>{numeric_limits<T>::max(), 7}; }
};
}

kernel void manner(device const float *in [[buffer(0), access(read)]], device float *out [[access(write), buffer(1)]],
                   ushort i [[thread_index_in_threadgroup]]) {
  threadgroup Running<float> shared[16];
  shared[i] = Running<float>{1, in[i]};
  threadgroup_barrier(mem_flags::mem_threadgroup);
  Running<float> r = joined<float>(shared[i], {2, 0});
  simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8>(0.f);
  static_assert(is_empty_v<true_type> && is_same_v<void_t<int>, void>, "added to metal");
  constexpr auto two = 2;
  static_assert(is_same_v<remove_addrspace_t<device float>, float> && is_same_v<remove_addrspace_t<decltype(two)>, const int>, "");
  threadgroup Pair pairs[16];
  pairs[i] = Pair();
  float sum = pairs[i].sum() + Pair(3.0f).sum() + float(Pair(4.0f)) - 13;
#pragma unroll (SMALLER(4, 2 * 1))
  for (int k = 0; k < 2; k++) sum += 1;
  out[i] = r.total + r.count + sum + m.thread_elements()[0] + numeric_limits<tagged<float>>::max().tag + (flag && i < 8 ? 1 : 0);
}
