// What MLX puts before every kernel: type names, complex numbers, element offsets, limits. Written from the behaviour its
// kernels rely on. Kernels also rely on metal's names being visible without metal::.
#pragma once

#include "metal_math"
#include "metal_simdgroup"

typedef half float16_t;
typedef bfloat bfloat16_t;
using namespace metal;

METAL_FUNC constexpr uint16_t bfloat16_to_uint16(bfloat16_t x) { return __builtin_bit_cast(uint16_t, x); }
METAL_FUNC constexpr bfloat16_t uint16_to_bfloat16(uint16_t x) { return __builtin_bit_cast(bfloat16_t, x); }

// ---- Complex numbers.

// The operators live in a namespace of their own: see metal_vector.
namespace __smelt_complex {
struct operators {};
}

template <class T> struct complex_t;
template <class T> struct __is_complex : false_type {};
template <class T> struct __is_complex<complex_t<T>> : true_type {};

// Numbers become complex ones, and a complex number becomes its real part, without a cast, as in MLX.
template <class T> struct complex_t : __smelt_complex::operators {
  using value_type = T;
  T real, imag;

  complex_t() = default;
  constexpr complex_t(T real, T imag) : real(real), imag(imag) {}
  template <class U, enable_if_t<__is_number<U>, int> = 0> constexpr complex_t(U x) : real((T)x), imag((T)0) {}
  template <class U, enable_if_t<!is_same_v<T, U>, int> = 0>
  constexpr complex_t(complex_t<U> z) : real((T)z.real), imag((T)z.imag) {}
  template <class U, enable_if_t<__is_number<U>, int> = 0> constexpr operator U() const { return (U)real; }
  // Members: these work in every address space.
  template <class U> METAL_FUNC constexpr complex_t &operator+=(U b) { return *this = *this + complex_t(b); }
  template <class U> METAL_FUNC constexpr complex_t &operator-=(U b) { return *this = *this - complex_t(b); }
  template <class U> METAL_FUNC constexpr complex_t &operator*=(U b) { return *this = *this * complex_t(b); }
  template <class U> METAL_FUNC constexpr complex_t &operator/=(U b) { return *this = *this / complex_t(b); }
};

typedef complex_t<half> complex32_t;
typedef complex_t<float> complex64_t;

namespace metal::__simd {
template <class T> struct is_data<complex_t<T>> : true_type {};
} // namespace metal::__simd

namespace __smelt_complex {

template <class T> METAL_FUNC constexpr complex_t<T> operator+(complex_t<T> a, complex_t<T> b) {
  return {(T)(a.real + b.real), (T)(a.imag + b.imag)};
}
template <class T> METAL_FUNC constexpr complex_t<T> operator-(complex_t<T> a, complex_t<T> b) {
  return {(T)(a.real - b.real), (T)(a.imag - b.imag)};
}
template <class T> METAL_FUNC constexpr complex_t<T> operator*(complex_t<T> a, complex_t<T> b) {
  return {(T)(a.real * b.real - a.imag * b.imag), (T)(a.real * b.imag + a.imag * b.real)};
}
template <class T> METAL_FUNC constexpr complex_t<T> operator/(complex_t<T> a, complex_t<T> b) {
  T square = b.real * b.real + b.imag * b.imag;
  return {(T)((a.real * b.real + a.imag * b.imag) / square), (T)((a.imag * b.real - a.real * b.imag) / square)};
}
// Component by component, with the divisor's sign, as Python's % is.
template <class T> METAL_FUNC constexpr T __smelt_modulo(T a, T b) {
  T rest = a - b * (T)(int64_t)(a / b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <class T> METAL_FUNC constexpr complex_t<T> operator%(complex_t<T> a, complex_t<T> b) {
  return {__smelt_modulo(a.real, b.real), __smelt_modulo(a.imag, b.imag)};
}
template <class T> METAL_FUNC constexpr complex_t<T> operator-(complex_t<T> a) { return {(T)-a.real, (T)-a.imag}; }
template <class T> METAL_FUNC constexpr complex_t<T> operator+(complex_t<T> a) { return a; }

// Ordered by the real part, then by the imaginary one.
template <class T> METAL_FUNC constexpr bool operator==(complex_t<T> a, complex_t<T> b) {
  return a.real == b.real && a.imag == b.imag;
}
template <class T> METAL_FUNC constexpr bool operator!=(complex_t<T> a, complex_t<T> b) { return !(a == b); }
template <class T> METAL_FUNC constexpr bool operator<(complex_t<T> a, complex_t<T> b) {
  return a.real < b.real || (a.real == b.real && a.imag < b.imag);
}
template <class T> METAL_FUNC constexpr bool operator<=(complex_t<T> a, complex_t<T> b) {
  return a.real < b.real || (a.real == b.real && a.imag <= b.imag);
}
template <class T> METAL_FUNC constexpr bool operator>(complex_t<T> a, complex_t<T> b) { return b < a; }
template <class T> METAL_FUNC constexpr bool operator>=(complex_t<T> a, complex_t<T> b) { return b <= a; }

// With a number on one side: without these, the conversions in both directions would be ambiguous.
#define __SMELT_COMPLEX_MIXED(type, op)                                                                      \
  template <class T, class U, enable_if_t<__is_number<U>, int> = 0>                                      \
  METAL_FUNC constexpr type operator op(complex_t<T> a, U b) {                                               \
    return a op complex_t<T>(b);                                                                             \
  }                                                                                                          \
  template <class T, class U, enable_if_t<__is_number<U>, int> = 0>                                      \
  METAL_FUNC constexpr type operator op(U a, complex_t<T> b) {                                               \
    return complex_t<T>(a) op b;                                                                             \
  }
__SMELT_COMPLEX_MIXED(complex_t<T>, +)
__SMELT_COMPLEX_MIXED(complex_t<T>, -)
__SMELT_COMPLEX_MIXED(complex_t<T>, *)
__SMELT_COMPLEX_MIXED(complex_t<T>, /)
__SMELT_COMPLEX_MIXED(complex_t<T>, %)
__SMELT_COMPLEX_MIXED(bool, ==)
__SMELT_COMPLEX_MIXED(bool, !=)
__SMELT_COMPLEX_MIXED(bool, <)
__SMELT_COMPLEX_MIXED(bool, <=)
__SMELT_COMPLEX_MIXED(bool, >)
__SMELT_COMPLEX_MIXED(bool, >=)
#undef __SMELT_COMPLEX_MIXED

} // namespace __smelt_complex

// ---- log(1 + x), and functions of complex numbers. They compute in float.

METAL_FUNC float log1p(float x) {
  // What rounding 1 + x changed is made good by the quotient.
  float y = 1.0f + x;
  return y == 1.0f || y == INFINITY ? x : metal::precise::log(y) * (x / (y - 1.0f));
}
METAL_FUNC half log1p(half x) { return (half)log1p((float)x); }
METAL_FUNC bfloat log1p(bfloat x) { return (bfloat)log1p((float)x); }

// The larger part is taken out, so that squares neither overflow nor vanish.
template <class T> METAL_FUNC T abs(complex_t<T> z) {
  float a = __builtin_fabsf((float)z.real), b = __builtin_fabsf((float)z.imag);
  if (a == INFINITY || b == INFINITY) return (T)INFINITY;
  float large = a < b ? b : a, small = a < b ? a : b;
  float quotient = small / large;
  return (T)(large == 0 ? small : large * metal::precise::sqrt(1.0f + quotient * quotient));
}

template <class T> METAL_FUNC complex_t<T> exp(complex_t<T> z) {
  float x = z.real, y = z.imag;
  if (y == 0) return {(T)metal::precise::exp(x), (T)y};
  if (x == -INFINITY) return {(T)0, (T)0}; // whatever the angle
  // In two factors where e^x alone may overflow.
  bool split = x > 88.0f;
  float radius = metal::precise::exp(split ? 0.5f * x : x), more = split ? radius : 1.0f;
  return {(T)(radius * metal::precise::cos(y) * more), (T)(radius * metal::precise::sin(y) * more)};
}

template <class T> METAL_FUNC complex_t<T> log(complex_t<T> z) {
  float a = __builtin_fabsf((float)z.real), b = __builtin_fabsf((float)z.imag);
  float large = a < b ? b : a, small = a < b ? a : b;
  // Near the unit circle the logarithm is small and the radius would have lost it.
  bool near_circle = large > 0.5f && large < 2.0f;
  float real = near_circle ? 0.5f * log1p(__builtin_fmaf(small, small, (large - 1.0f) * (large + 1.0f)))
                           : metal::precise::log(abs(complex_t<float>(a, b)));
  return {(T)real, (T)metal::precise::atan2((float)z.imag, (float)z.real)};
}

template <class T> METAL_FUNC complex_t<T> log1p(complex_t<T> z) {
  float x = z.real, y = z.imag;
  if (__builtin_fabsf(x) >= 0.5f || __builtin_fabsf(y) >= 0.5f) {
    complex_t<float> result = log(complex_t<float>(1.0f + x, y));
    return {(T)result.real, (T)result.imag};
  }
  return {(T)(0.5f * log1p(__builtin_fmaf(y, y, x * (2.0f + x)))), (T)metal::precise::atan2(y, 1.0f + x)};
}

// ---- Limits and small helpers.

// max and min of floating point are the infinities.
template <class T> struct Limits {
  static_assert(__is_number<T>);
  static constexpr int __bits = 8 * sizeof(T);
  static constexpr T __highest = is_signed_v<T> ? (T)(~0ul >> (65 - __bits)) : (T)~0ul;
  static constexpr T max = __highest, min = (T)~__highest, finite_max = __highest, finite_min = (T)~__highest;
};
template <> struct Limits<bool> {
  static constexpr bool max = true, min = false, finite_max = true, finite_min = false;
};
#define __SMELT_FLOAT_LIMITS(type, largest)                                                                  \
  template <> struct Limits<type> {                                                                          \
    static constexpr type max = (type)__builtin_inff(), min = (type)-__builtin_inff();                       \
    static constexpr type finite_max = (type)largest, finite_min = (type)-largest;                           \
  };
__SMELT_FLOAT_LIMITS(half, 65504.0f)
__SMELT_FLOAT_LIMITS(bfloat, 0x1.fep127f)
__SMELT_FLOAT_LIMITS(float, 0x1.fffffep127f)
#undef __SMELT_FLOAT_LIMITS
template <class T> struct Limits<complex_t<T>> {
  static constexpr complex_t<T> max = {Limits<T>::max, Limits<T>::max}, min = {Limits<T>::min, Limits<T>::min};
  static constexpr complex_t<T> finite_max = {Limits<T>::finite_max, Limits<T>::finite_max};
  static constexpr complex_t<T> finite_min = {Limits<T>::finite_min, Limits<T>::finite_min};
};

// Elements a thread handles at once: eight bytes.
template <class T> struct WorkPerThread {
  static_assert(sizeof(T) <= 8, "WorkPerThread is for types of at most eight bytes");
  static constexpr int n = 8 / sizeof(T);
};

template <bool condition, class T, class U> struct ConditionalType { using type = conditional_t<condition, T, U>; };

template <class T, class U> METAL_FUNC constexpr T ceildiv(T a, U b) { return (a + b - 1) / b; }

// ---- Offsets of elements in strided arrays, in elements. Shapes and strides may lie in any address space.

namespace __smelt {
// Divides in 32 bits unless the element number is wider: a wide division costs several times as much.
template <class E> using unsigned_element = conditional_t<sizeof(E) == 8, ulong, uint>;

template <class IdxT, class E, class Shape, class Strides>
METAL_FUNC IdxT offset_of(E element, Shape shape, Strides strides, int ndim) {
  unsigned_element<E> left = element;
  IdxT offset = 0;
  for (int d = ndim - 1; d >= 0 && left > 0; d--) {
    unsigned_element<E> size = shape[d];
    offset += (IdxT)(left % size) * (IdxT)strides[d];
    left /= size;
  }
  return offset;
}
} // namespace __smelt

// Of the element with this number in row-major order.
template <class IdxT = int64_t, class E, class Shape, class Strides, enable_if_t<__is_number<E>, int> = 0>
METAL_FUNC IdxT elem_to_loc(E elem, Shape shape, Strides strides, int ndim) {
  return __smelt::offset_of<IdxT>(elem, shape, strides, ndim);
}

// x counts along the last dimension, y along the one before, z along all others.
template <class IdxT = int64_t, class Shape, class Strides>
METAL_FUNC IdxT elem_to_loc(uint3 elem, Shape shape, Strides strides, int ndim) {
  IdxT offset = 0;
  if (ndim > 0) offset += (IdxT)elem.x * (IdxT)strides[ndim - 1];
  if (ndim > 1) offset += (IdxT)elem.y * (IdxT)strides[ndim - 2];
  return ndim > 2 ? offset + __smelt::offset_of<IdxT>(elem.z, shape, strides, ndim - 2) : offset;
}

template <class IdxT = int64_t, class Stride> METAL_FUNC IdxT elem_to_loc_1(uint elem, Stride stride) {
  return (IdxT)elem * (IdxT)stride;
}
template <class IdxT = int64_t, class Strides> METAL_FUNC IdxT elem_to_loc_2(uint2 elem, Strides strides) {
  return (IdxT)elem.x * (IdxT)strides[1] + (IdxT)elem.y * (IdxT)strides[0];
}
template <class IdxT = int64_t, class Strides> METAL_FUNC IdxT elem_to_loc_3(uint3 elem, Strides strides) {
  return (IdxT)elem.x * (IdxT)strides[2] + (IdxT)elem.y * (IdxT)strides[1] + (IdxT)elem.z * (IdxT)strides[0];
}

// The same element in two or three arrays of one shape.
template <class IdxT = int64_t, class Shape, class A, class B>
METAL_FUNC vec<IdxT, 2> elem_to_loc_2_nd(uint3 elem, Shape shape, A a_strides, B b_strides, int ndim) {
  return vec<IdxT, 2>(elem_to_loc<IdxT>(elem, shape, a_strides, ndim), elem_to_loc<IdxT>(elem, shape, b_strides, ndim));
}
template <class IdxT = int64_t, class Shape, class A, class B, class C>
METAL_FUNC vec<IdxT, 3> elem_to_loc_3_nd(uint3 elem, Shape shape, A a_strides, B b_strides, C c_strides, int ndim) {
  return vec<IdxT, 3>(elem_to_loc<IdxT>(elem, shape, a_strides, ndim), elem_to_loc<IdxT>(elem, shape, b_strides, ndim),
                      elem_to_loc<IdxT>(elem, shape, c_strides, ndim));
}

// Walks an array in row-major order: location() is the offset, next() goes on by one or n elements. The DIM innermost
// dimensions are counted; with General the outermost of them stands for all dimensions that are left.
template <int DIM, class OffsetT = size_t, bool General = true> struct LoopedElemToLoc {
  int dim;
  OffsetT offset;
  uint __count[DIM]; // innermost first

  LoopedElemToLoc(int dim) : dim(dim), offset(0) {
    for (int i = 0; i < DIM; i++) __count[i] = 0;
  }

  template <class Shape, class Strides> METAL_FUNC void next(Shape shape, Strides strides) {
    __advance<0>(1, shape, strides);
  }
  template <class Shape, class Strides> METAL_FUNC void next(int n, Shape shape, Strides strides) {
    __advance<0>((uint)n, shape, strides);
  }
  OffsetT location() const { return offset; }

  template <int level, class Shape, class Strides> METAL_FUNC void __advance(uint n, Shape shape, Strides strides) {
    int axis = dim - 1 - level;
    if (axis < 0) return;
    if constexpr (level < DIM - 1) {
      uint size = shape[axis], old = __count[level], count = old + n;
      if (count >= size) {
        __advance<level + 1>(count / size, shape, strides);
        count %= size;
      }
      __count[level] = count;
      offset += ((OffsetT)count - (OffsetT)old) * (OffsetT)strides[axis];
    } else {
      uint old = __count[level];
      __count[level] = old + n;
      if (General && axis > 0)
        offset += __smelt::offset_of<OffsetT>(old + n, shape, strides, axis + 1) -
                  __smelt::offset_of<OffsetT>(old, shape, strides, axis + 1);
      else
        offset += (OffsetT)n * (OffsetT)strides[axis];
    }
  }
};
