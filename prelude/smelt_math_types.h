// How the library's functions meet their arguments: the type a call computes in, and a float function applied to it.
//
// float and half are plain overloads; everything else goes through one template a function, whose result type decides:
//   scalars: the widest floating type among them (half with bfloat: float); integers follow, and alone count as float;
//   any vector: that vector's type, scalars spread over it. No fitting type: the call has no such overload.
#pragma once

#include "metal_vector"

namespace __smelt_float {

template <class T> struct shape {
  static constexpr int mask = __is_same(T, float) ? 1 : __is_same(T, half) ? 2 : __is_same(T, bfloat) ? 4 : __is_integral(T) ? 8 : 16;
  static constexpr int size = 0;
  using element = T;
};
template <> struct shape<bool> : shape<uchar> { using element = bool; };
template <class T, int N> struct shape<metal::vec<T, N>> : shape<T> { static constexpr int size = N; };
template <class T, int N> struct shape<metal::packed_vec<T, N>> : shape<T> { static constexpr int size = N; };

template <int scalars> struct scalar_type { using type = float; };
template <> struct scalar_type<2> { using type = half; };
template <> struct scalar_type<4> { using type = bfloat; };

template <class... A> struct type_for {
  static constexpr int size = [] {
    int size = 0;
    ((size = shape<A>::size > size ? shape<A>::size : size), ...);
    return size;
  }();
  // The kinds of what is spread and of what is a vector.
  static constexpr int scalars = ((shape<A>::size == 0 ? shape<A>::mask : 0) | ...);
  static constexpr int vectors = ((shape<A>::size != 0 ? shape<A>::mask : 0) | ...);
  static constexpr bool same_size = ((shape<A>::size == 0 || shape<A>::size == size) && ...);
};

template <class T, int N> struct sized { using type = metal::vec<T, N>; };
template <class T> struct sized<T, 0> { using type = T; };

// With integers alone, scalar or vector, there is a type only where `integers` allows it.
template <class Info, bool real = (Info::size ? (Info::vectors & (Info::vectors - 1)) == 0 && Info::vectors < 8 && Info::scalars < 16
                                              : Info::scalars < 16) &&
                                  Info::same_size>
struct real_type {};
template <class Info> struct real_type<Info, true> {
  using type = typename sized<typename scalar_type<(Info::size ? Info::vectors : Info::scalars & 7)>::type, Info::size>::type;
};

// A pack that deduction leaves empty. A template whose parameters end in it gives way to any other that fits as well: to
// those of a program, which calls its own function where Metal would have to convert (Metal has no templates here).
template <class None> struct none { using type = None; };
template <class None> using none_t = typename none<None>::type;

// A parameter of a scalar function whose type the call states, as in max<int>(a, b). Only such a call deduces it, and any
// function of the program's own that fits, template or not, is preferred to a conversion by a constructor.
template <class T> struct given {
  T value;
  METAL_FUNC constexpr given(T from) : value(from) {}
};
template <class T> using given_t = typename metal::type_identity<given<T>>::type;
template <class T> using given_integer_t = metal::enable_if_t<shape<T>::mask == 8 && shape<T>::size == 0, T>;

// The floating type of a call. Three specialisations spare the work of finding it.
template <class... A> struct real : real_type<type_for<A...>> {};
template <> struct real<float> { using type = float; };
template <> struct real<half> { using type = half; };
template <> struct real<bfloat> { using type = bfloat; };
template <class... A> using real_t = typename real<A...>::type;

// The same where there are overloads for integers: absent unless something in the call is floating point.
template <class... A> using floating_t = metal::enable_if_t<(((shape<A>::mask & 7) != 0) || ...), real_t<A...>>;

// The vector of integers a call means, or nothing.
template <class... A> struct first_vector;
template <class A> struct first_vector<A> { using type = A; };
template <class A, class... R> struct first_vector<A, R...> : metal::conditional_t<shape<A>::size != 0, metal::type_identity<A>, first_vector<R...>> {};
template <class V, class A> inline constexpr bool fits = shape<A>::size == 0 ? shape<A>::mask == 8 : shape<A>::size == shape<V>::size && __is_same(typename shape<A>::element, typename shape<V>::element);
template <class V, class... A> struct whole_vector : metal::enable_if<shape<V>::size != 0 && shape<V>::mask == 8 && (fits<V, A> && ...), metal::vec<typename shape<V>::element, shape<V>::size ? shape<V>::size : 2>> {};
template <class... A> using integers_t = typename whole_vector<typename first_vector<A...>::type, A...>::type;

// bfloat, where B is bfloat. Metal has no functions of bfloat alone that a program could define a second time, as MLX does
// in namespace metal: here they are templates, which rank before a program's own templates and behind its functions.
template <class B> using bfloat_t = metal::enable_if_t<__is_same(B, bfloat), bfloat>;

// The floating vector type of a call: absent for scalars and for vectors of integers.
template <class... A> using vector_t = metal::enable_if_t<shape<real_t<A...>>::size != 0, real_t<A...>>;

// What select(a, b, c) chooses from: a vector of any type, or scalars, and a bool or one for each component.
template <class V, class A> inline constexpr bool spreads = shape<A>::size == 0 ? shape<A>::mask < 16 : shape<A>::size == shape<V>::size && __is_same(typename shape<A>::element, typename shape<V>::element);
template <class V, class C> inline constexpr bool chooses = __is_same(typename shape<C>::element, bool) && (shape<C>::size == 0 || shape<C>::size == shape<V>::size);
template <class V, class A, class B, class C, bool ok = shape<V>::size != 0 && spreads<V, A> && spreads<V, B> && chooses<V, C>> struct selected {};
template <class V, class A, class B, class C> struct selected<V, A, B, C, true> { using type = metal::vec<typename shape<V>::element, shape<V>::size>; };
template <class A, class B, class C> using selected_t = typename selected<typename first_vector<A, B>::type, A, B, C>::type;

// The form of a function for the scalars of R.
template <class R, class F> constexpr F form_for(F of_float, F of_half, F of_bfloat) {
  return shape<R>::mask == 2 ? of_half : shape<R>::mask == 4 ? of_bfloat : of_float;
}

// F(float...) for a scalar of any floating type, rounded once, or for each component of a vector.
template <auto F, class R> METAL_FUNC R apply(const R &a) {
  if constexpr (shape<R>::size == 0) return (R)F((float)a);
  else if constexpr (shape<R>::size == 2) return R(apply<F>(a.x), apply<F>(a.y));
  else if constexpr (shape<R>::size == 3) return R(apply<F>(a.x), apply<F>(a.y), apply<F>(a.z));
  else if constexpr (shape<R>::size == 4) return R(apply<F>(a.x), apply<F>(a.y), apply<F>(a.z), apply<F>(a.w));
  else return R(apply<F>(a.x));
}
template <auto F, class R> METAL_FUNC R apply(const R &a, const R &b) {
  if constexpr (shape<R>::size == 0) return (R)F((float)a, (float)b);
  else if constexpr (shape<R>::size == 2) return R(apply<F>(a.x, b.x), apply<F>(a.y, b.y));
  else if constexpr (shape<R>::size == 3) return R(apply<F>(a.x, b.x), apply<F>(a.y, b.y), apply<F>(a.z, b.z));
  else if constexpr (shape<R>::size == 4) return R(apply<F>(a.x, b.x), apply<F>(a.y, b.y), apply<F>(a.z, b.z), apply<F>(a.w, b.w));
  else return R(apply<F>(a.x, b.x));
}
template <auto F, class R> METAL_FUNC R apply(const R &a, const R &b, const R &c) {
  if constexpr (shape<R>::size == 0) return (R)F((float)a, (float)b, (float)c);
  else if constexpr (shape<R>::size == 2) return R(apply<F>(a.x, b.x, c.x), apply<F>(a.y, b.y, c.y));
  else if constexpr (shape<R>::size == 3) return R(apply<F>(a.x, b.x, c.x), apply<F>(a.y, b.y, c.y), apply<F>(a.z, b.z, c.z));
  else if constexpr (shape<R>::size == 4) return R(apply<F>(a.x, b.x, c.x), apply<F>(a.y, b.y, c.y), apply<F>(a.z, b.z, c.z), apply<F>(a.w, b.w, c.w));
  else return R(apply<F>(a.x, b.x, c.x));
}

// f(component, component of second) where f writes to the latter.
template <class F, class T, class S, int N>
METAL_FUNC metal::vec<T, N> each_with(F f, const metal::vec<T, N> &a, metal::vec<S, N> &second) {
  if constexpr (N == 2) return {f(a.x, second.x), f(a.y, second.y)};
  else if constexpr (N == 3) return {f(a.x, second.x), f(a.y, second.y), f(a.z, second.z)};
  else if constexpr (N == 4) return {f(a.x, second.x), f(a.y, second.y), f(a.z, second.z), f(a.w, second.w)};
  else return {f(a.x, second.x)};
}

} // namespace __smelt_float

// The overloads of one function, from the float function F. The generic one takes what the others do not: integers,
// packed vectors, mixtures. `type` is real_t, or floating_t where integers have overloads of their own. That of vectors
// ranks before a program's own template on vec<T, N>, as Metal's function would.
#define __SMELT_MATH_1(name, F, type) __SMELT_MATH_1_NARROW(name, F, F, F, type)
// … with H instead of F for half, and B for bfloat.
#define __SMELT_MATH_1_NARROW(name, F, H, B, type)                                                           \
  METAL_FUNC float name(float x) { return F(x); }                                                            \
  METAL_FUNC half name(half x) { return (half)H((float)x); }                                                 \
  template <class A> METAL_FUNC __smelt_rank __smelt_float::bfloat_t<A> name(A x) {                          \
    return (bfloat)B((float)x);                                                                              \
  }                                                                                                          \
  template <class A, class... Z> METAL_FUNC __smelt_float::type<A> name(A x, __smelt_float::none_t<Z>...) {  \
    using R = __smelt_float::type<A>;                                                                        \
    return __smelt_float::apply<__smelt_float::form_for<R>(F, H, B), R>((R)x);                               \
  }                                                                                                          \
  template <class T, int N> METAL_FUNC __smelt_rank __smelt_float::type<vec<T, N>> name(const vec<T, N> &x) { \
    return __smelt_float::apply<__smelt_float::form_for<T>(F, H, B)>(x);                                     \
  }
#define __SMELT_MATH_2(name, F, type)                                                                        \
  METAL_FUNC float name(float x, float y) { return F(x, y); }                                                \
  METAL_FUNC half name(half x, half y) { return (half)F((float)x, (float)y); }                               \
  template <class B> METAL_FUNC __smelt_rank __smelt_float::bfloat_t<B> name(B x, B y) {                     \
    return (bfloat)F((float)x, (float)y);                                                                    \
  }                                                                                                          \
  template <class A, class B, class... Z>                                                                    \
  METAL_FUNC __smelt_float::type<A, B> name(A x, B y, __smelt_float::none_t<Z>...) {                         \
    using R = __smelt_float::type<A, B>;                                                                     \
    return __smelt_float::apply<F, R>((R)x, (R)y);                                                           \
  }                                                                                                          \
  template <class T, int N>                                                                                  \
  METAL_FUNC __smelt_rank __smelt_float::type<vec<T, N>> name(const vec<T, N> &x, const vec<T, N> &y) {      \
    return __smelt_float::apply<F>(x, y);                                                                    \
  }
#define __SMELT_MATH_3(name, F, type)                                                                        \
  METAL_FUNC float name(float x, float y, float z) { return F(x, y, z); }                                    \
  METAL_FUNC half name(half x, half y, half z) { return (half)F((float)x, (float)y, (float)z); }             \
  template <class B> METAL_FUNC __smelt_rank __smelt_float::bfloat_t<B> name(B x, B y, B z) {                \
    return (bfloat)F((float)x, (float)y, (float)z);                                                          \
  }                                                                                                          \
  template <class A, class B, class C, class... Z>                                                           \
  METAL_FUNC __smelt_float::type<A, B, C> name(A x, B y, C z, __smelt_float::none_t<Z>...) {                 \
    using R = __smelt_float::type<A, B, C>;                                                                  \
    return __smelt_float::apply<F, R>((R)x, (R)y, (R)z);                                                     \
  }                                                                                                          \
  template <class T, int N>                                                                                  \
  METAL_FUNC __smelt_rank __smelt_float::type<vec<T, N>> name(const vec<T, N> &x, const vec<T, N> &y, const vec<T, N> &z) { \
    return __smelt_float::apply<F>(x, y, z);                                                                 \
  }
