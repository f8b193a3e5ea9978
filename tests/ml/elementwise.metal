// One number at a time: unary and binary operations as structs, over contiguous, scalar and strided operands with
// broadcasting; copies and transposes; activations and gated units; choices.
#include <metal_stdlib>
using namespace metal;

// ---- Unary. An operation works for every type it is asked for.
namespace op {
struct Abs {
  template <typename T> T operator()(T x) const { return metal::abs(x); }
  uint operator()(uint x) const { return x; }
};
struct Sigmoid {
  template <typename T> T operator()(T x) const {
    const auto small = 1 / (1 + exp(-abs(x)));
    return x < T(0) ? T(1 - small) : T(small);
  }
};
// x to the third and a hyperbolic tangent, bounded so that it never overflows.
struct GeluTanh {
  float operator()(float x) const {
    const float inner = 0.7978845608028654f * fma(0.044715f * x * x, x, x);
    return 0.5f * x * (1.0f + precise::tanh(clamp(inner, -15.0f, 15.0f)));
  }
};
// An error function: 1 - (a polynomial of 1 / (1 + p x))·exp(-x²), the sign apart.
struct GeluErf {
  static float erf(float x) {
    constexpr array<float, 5> a = {0.254829592f, -0.284496736f, 1.421413741f, -1.453152027f, 1.061405429f};
    const float t = 1.0f / fma(0.3275911f, fabs(x), 1.0f);
    float sum = 0;
    for (int i = 4; i >= 0; i--) sum = fma(sum, t, a[i]);
    return copysign(fma(-sum * t, exp(-x * x), 1.0f), x);
  }
  float operator()(float x) const { return 0.5f * x * (1.0f + erf(x * M_SQRT1_2_F)); }
};
struct Silu {
  template <typename T> T operator()(T x) const { return T(float(x) / (1.0f + exp(-float(x)))); }
};
struct Square {
  template <typename T> T operator()(T x) const { return x * x; }
};

// ---- Binary.
struct Add {
  template <typename T> T operator()(T x, T y) const { return x + y; }
};
struct FloorDivide {
  template <typename T> enable_if_t<is_integral_v<T>, T> operator()(T x, T y) const {
    const T q = x / y;
    return is_signed_v<T> && (x % y != 0) && ((x < 0) != (y < 0)) ? q - 1 : q;
  }
  template <typename T> enable_if_t<!is_integral_v<T>, T> operator()(T x, T y) const { return floor(x / y); }
};
struct Maximum { // NaN wins
  template <typename T> T operator()(T x, T y) const {
    if constexpr (is_integral_v<T>) return max(x, y);
    else return isnan(x) ? x : (x > y || isnan(y)) ? (isnan(y) ? y : x) : y;
  }
};
struct LogAddExp {
  float operator()(float x, float y) const {
    const float top = fmax(x, y), low = fmin(x, y);
    if (isinf(top)) return top;
    return top + log(1.0f + exp(low - top));
  }
};
struct LeftShift {
  template <typename T> T operator()(T x, T y) const { return x << y; }
};
} // namespace op

// Four at a time where all of four are there; the grid may be too small, too.
template <typename T, typename U, typename Op>
[[kernel]] void unary_v(device const T *in [[buffer(0)]], device U *out [[buffer(1)]], constant uint &size [[buffer(2)]],
                        uint index [[thread_position_in_grid]], uint stride [[threads_per_grid]]) {
  for (uint at = index * 4; at < size; at += stride * 4) {
    if (size - at >= 4) {
#pragma clang loop unroll(full)
      for (uint i = 0; i < 4; i++) out[at + i] = Op()(in[at + i]);
    } else {
      for (uint i = at; i < size; i++) out[i] = Op()(in[i]);
    }
  }
}
#define UNARY(name, T, U, Op) template [[host_name("v_" #name)]] [[kernel]] decltype(unary_v<T, U, op::Op>) unary_v<T, U, op::Op>;
UNARY(abs_float16, half, half, Abs)
UNARY(abs_int64, int64_t, int64_t, Abs)
UNARY(abs_uint32, uint, uint, Abs)
UNARY(sigmoid_float32, float, float, Sigmoid)
UNARY(sigmoid_bfloat16, bfloat, bfloat, Sigmoid)
UNARY(gelu_tanh_float32, float, float, GeluTanh)
UNARY(gelu_erf_float16, half, half, GeluErf)
UNARY(silu_bfloat16, bfloat, bfloat, Silu)
UNARY(square_int8, char, char, Square)

// Vector, scalar and vector, by operand.
template <typename T, typename Op, bool scalar_a, bool scalar_b>
[[kernel]] void binary_v(device const T *a, device const T *b, device T *c, uint i [[thread_position_in_grid]]) {
  c[i] = Op()(a[scalar_a ? 0 : i], b[scalar_b ? 0 : i]);
}
template [[host_name("vv_add_float16")]] [[kernel]] decltype(binary_v<half, op::Add, 0, 0>) binary_v<half, op::Add, 0, 0>;
template [[host_name("sv_floor_divide_int32")]] [[kernel]] decltype(binary_v<int, op::FloorDivide, 1, 0>) binary_v<int, op::FloorDivide, 1, 0>;
template [[host_name("vs_left_shift_uint8")]] [[kernel]] decltype(binary_v<uchar, op::LeftShift, 0, 1>) binary_v<uchar, op::LeftShift, 0, 1>;
template [[host_name("vv_log_add_exp_float32")]] [[kernel]] decltype(binary_v<float, op::LogAddExp, 0, 0>) binary_v<float, op::LogAddExp, 0, 0>;

// Any strides; 0 broadcasts. Offsets of both operands are found in one walk over the dimensions, the last two in the grid.
template <typename Index> struct two_offsets {
  Index a, b;
};
template <typename Index>
METAL_FUNC two_offsets<Index> walk(uint3 at, constant const int *shape, constant const int64_t *a, constant const int64_t *b, int ndim) {
  two_offsets<Index> o = {Index(at.x * a[ndim - 1] + at.y * a[ndim - 2]), Index(at.x * b[ndim - 1] + at.y * b[ndim - 2])};
  uint outer = at.z;
  for (int d = ndim - 3; d >= 0; outer /= shape[d], --d) {
    const Index k = outer % shape[d];
    o.a += k * Index(a[d]), o.b += k * Index(b[d]);
  }
  return o;
}
template <typename T, typename Op, typename Index>
[[kernel]] void binary_g(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *c [[buffer(2)]],
                         constant const int *shape [[buffer(3)]], constant const int64_t *a_strides [[buffer(4)]],
                         constant const int64_t *b_strides [[buffer(5)]], constant const int &ndim [[buffer(6)]],
                         uint3 at [[thread_position_in_grid]], uint3 size [[threads_per_grid]]) {
  const auto o = walk<Index>(at, shape, a_strides, b_strides, ndim);
  c[(ulong(at.z) * size.y + at.y) * size.x + at.x] = Op()(a[o.a], b[o.b]);
}
template [[host_name("g_add_float32")]] [[kernel]] decltype(binary_g<float, op::Add, int>) binary_g<float, op::Add, int>;
template [[host_name("g_large_maximum_bfloat16")]] [[kernel]] decltype(binary_g<bfloat, op::Maximum, int64_t>) binary_g<bfloat, op::Maximum, int64_t>;

// ---- Copies with conversion, and transposes through threadgroup memory by tiles with a padded row.
template <typename T, typename U>
[[kernel]] void copy_g_3(device const T *in [[buffer(0)]], device U *out [[buffer(1)]], constant const packed_int3 &strides [[buffer(2)]],
                         uint3 at [[thread_position_in_grid]], uint3 size [[threads_per_grid]]) {
  const int3 by = int3(at.zyx) * int3(strides);
  // smelt: ignore SM011: what an integer cannot hold becomes its nearest
  out[(at.z * size.y + at.y) * size.x + at.x] = static_cast<U>(in[by.x + by.y + by.z]);
}
template [[host_name("copy_g_3_float32_int8")]] [[kernel]] decltype(copy_g_3<float, char>) copy_g_3<float, char>;
template [[host_name("copy_g_3_int16_bfloat16")]] [[kernel]] decltype(copy_g_3<short, bfloat>) copy_g_3<short, bfloat>;

template <typename T, uint TILE = 32, uint ROWS = 8>
[[kernel]] void transpose_tiles(device const T *in [[buffer(0)]], device T *out [[buffer(1)]], constant uint2 &size /* rows, columns */ [[buffer(2)]],
                                uint2 group [[threadgroup_position_in_grid]], uint2 t [[thread_position_in_threadgroup]]) {
  threadgroup T tile[TILE][TILE + 1];
  for (uint r = t.y; r < TILE; r += ROWS) {
    const uint2 from = group.yx * TILE + uint2(r, t.x);
    if (all(from < size)) tile[r][t.x] = in[from.x * size.y + from.y];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint r = t.y; r < TILE; r += ROWS) {
    const uint2 to = group * TILE + uint2(r, t.x); // column, row
    if (to.x < size.y && to.y < size.x) out[to.x * size.x + to.y] = tile[t.x][r];
  }
}
template [[host_name("transpose_float32")]] [[kernel]] decltype(transpose_tiles<float>) transpose_tiles<float>;
template [[host_name("transpose_uint8")]] [[kernel]] decltype(transpose_tiles<uchar>) transpose_tiles<uchar>;

// ---- Gated units: y = act(gate) · up, halves of one row or two arrays, with a limit and a slope as one model has them.
constant bool split [[function_constant(0)]];
constant float limit_value [[function_constant(1)]];
constant float limit = is_function_constant_defined(limit_value) ? limit_value : INFINITY;

kernel void swiglu(device const half *a [[buffer(0)]], device const half *b [[buffer(1), function_constant(split)]],
                   device half *y [[buffer(2)]], constant uint &width [[buffer(3)]], uint2 at [[thread_position_in_grid]]) {
  const uint i = at.y * width + at.x, row = 2 * at.y * width + at.x;
  const float gate = min(float(split ? a[i] : a[row]), limit);
  const float up = clamp(float(split ? b[i] : a[row + width]), -limit, limit);
  y[i] = half(op::Silu()(gate) * up);
}

// ---- Choices.
template <typename T>
[[kernel]] void select_g(device const bool *which, device const T *a, device const T *b, device T *c,
                         uint i [[thread_position_in_grid]]) {
  c[i] = which[i] ? a[i] : b[i];
}
template [[host_name("select_float2")]] [[kernel]] decltype(select_g<float2>) select_g<float2>;
template [[host_name("select_uint16")]] [[kernel]] decltype(select_g<ushort>) select_g<ushort>;
