// Kernels in the manner of inference engines: packed blocks, function template arguments, reductions, nested returns.
// run: norm_and_dot --bytes 0=uint32:64,1,0,0,512,0,0,0 -b 1=ones:uint8:256 -b 2=arange:float32:4 -b 3:out:float32:32
// run: --threadgroup-memory 0=128 --groups 1 --threadgroup 32
// expect buffer 3: f(i) for i in 32: 2016 - 6 * 128 * 257 / 2**24 if i % 2 else -128 * 257 / 2**24
// tolerance: 1e-6
#include <metal_stdlib>
using namespace metal;
#define QK 4
#define FOR_UNROLL(x) _Pragma("clang loop unroll(full)") for (x)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define N_SG 32
typedef struct { half d; uint8_t qs[QK / 2]; } block_q;
static_assert(sizeof(block_q) == 4, "size");
typedef struct { int32_t ne00; int32_t ne01; uint64_t nb01; float eps; } args_norm;

typedef void (dequant_t)(device const block_q *xb, short il, thread float4 &reg);

static inline float sum4(float4 v) { return v.x + v.y + v.z + v.w; }

template <typename type4>
void dequantize_q(device const block_q *xb, short il, thread type4 &reg) {
  device const uint8_t *q = ((device const uint8_t *)xb) + sizeof(half);
  const float d = il ? (xb->d / 16.h) : xb->d;
  const uint mask = il ? 0x00F0u : 0x000Fu;
  FOR_UNROLL (int i = 0; i < 2; i++) {
    reg[2 * i + 0] = d * (q[i] & mask);
    reg[2 * i + 1] = -d * (q[i] & mask);
  }
}

template <typename block_t, typename reg4, void (*dequantize)(device const block_t *, short, thread reg4 &)>
float dot_block(device const block_t *xb, thread const float4 *y) {
  reg4 r;
  dequantize(xb, 0, r);
  return sum4(float4(r) * y[0]);
}

template <int16_t R = 2, typename T0 = float, typename F = float (*)(T0)>
struct accumulator {
  T0 acc[R];
  accumulator() { for (short i = 0; i < R; ++i) acc[i] = 0; }
  METAL_FUNC void add(short i, T0 v) { acc[i] += v; }
  template <typename U> METAL_FUNC U get(short i) const { return U(acc[i]); }
  METAL_FUNC static constexpr short rows() { return R; }
};

struct SumOp {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return a + b; }
  static constexpr constant float init = 0.0f;
};
template <typename T, typename Op = SumOp> METAL_FUNC T reduce_lane(T v, Op op = Op()) { return op(v, T(Op::init)); }

enum op_kind : short { OP_ADD, OP_MUL };
constant float lut[2][3] = {{1, 2, 3}, {4, 5, 6}};
constant constexpr const char16_t dummy = 3;

kernel void norm_and_dot(
    constant args_norm & args,
    device const block_q * src0,
    device const float   * src1,
    device       char    * dst,
    threadgroup  float   * scratch [[threadgroup(0)]],
    uint3   group[[threadgroup_position_in_grid]],
    ushort3 thread_at[[thread_position_in_threadgroup]],
    ushort  simdgroup[[simdgroup_index_in_threadgroup]],
    ushort  lane[[thread_index_in_simdgroup]],
    ushort3   group_size[[threads_per_threadgroup]]) {
    if (simdgroup == 0) {
        scratch[lane] = 0.0f;
    }
    device float * out = (device float *) (dst + group.x*args.nb01);
    device const float4 * y4 = (device const float4 *) src1;
    threadgroup float4 * sh4 = (threadgroup float4 *) scratch;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    float4 yv[1] = { y4[0] };
    accumulator<2> acc;
    for (int i = thread_at.x; i < args.ne00; i += group_size.x) {
        acc.add(0, dot_block<block_q, float4, dequantize_q>(src0 + i, yv));
        acc.add(1, reduce_lane(float(i)));
    }
    acc.acc[0] = simd_sum(acc.acc[0]);
    acc.acc[1] = simd_sum(acc.acc[1]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) { scratch[simdgroup] = acc.get<float>(0); }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float total = scratch[lane & 0];
    op_kind kind = lane % 2 ? OP_MUL : OP_ADD;
    for (short i0 = 0; i0 < acc.rows(); ++i0)
    {
        if (i0 == 1) continue;
        const float scale = 1.0f/(total*total + args.eps > 0 ? 1.0f : 2.0f);
        out[lane] = kind == OP_ADD ? total*scale : total*lut[1][2] + sh4[0].y*0 + acc.acc[1];
    }
    return;
}
template<typename T, bool FLAG>
struct helper {
  static METAL_FUNC void apply(device T* p, uint i, const thread T& v) {
    if constexpr (FLAG) { p[i] = v; return; } else p[i] = -v;
  }
};
using dst_t = device float;
template <typename T> [[kernel]] void fill_impl(device T* dst [[buffer(0)]], constant T& v [[buffer(1)]],
  uint i [[thread_position_in_grid]], uint n [[threads_per_grid]])
{
  if (i >= n) { return; }
  threadgroup T *none = nullptr; (void)none;
  const auto f = [=] (uint k) -> T { return T(k) + v; };
  for (uint k = 0; k < 4; ++k)
    if (k == i)
      if (k & 1)
        return helper<T, true>::apply(dst, i, f(k));
      else
        return helper<T, false>::apply(dst, i, f(k));
  dst_t *d = (dst_t *)dst; d[i] = f(100);
}
#define INST(T) template [[host_name("fill_" #T)]] [[kernel]] void fill_impl<T>(device T*, constant T&, uint, uint);
INST(float)
INST(half)
