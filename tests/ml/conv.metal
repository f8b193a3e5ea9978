// Convolutions: one dimension, two by direct sums (strides, padding, dilation, groups), depthwise, through im2col, as an
// implicit matrix product in tiles; transposed; pooling.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

// Parameters known on the host, arrays by dimension, as one struct.
template <int Dimensions>
struct ConvolutionShape {
  int N; // images
  int C; // input channels
  int O; // output channels
  int input_size[Dimensions];
  int window[Dimensions];
  int output_size[Dimensions];
  int step[Dimensions];
  int pad[Dimensions];
  int dilation_of[Dimensions];
  int groups;
};

// (N, C, H, W) by (O, C / groups, kh, kw).
template <typename T>
METAL_FUNC void direct_sum(constant ConvolutionShape<2>& p, device const T* src, device const T* kernels, device const float* bias,
                            device T* dst, bool has_bias, uint tid) {
  const int ox = tid % p.output_size[1];
  const int oy = (tid / p.output_size[1]) % p.output_size[0];
  const int o = (tid / (p.output_size[1] * p.output_size[0])) % p.O;
  const int n = tid / (p.output_size[1] * p.output_size[0] * p.O);
  if (n >= p.N) return;
  const int per_group = p.C / p.groups;
  const int first = o / (p.O / p.groups) * per_group;
  float d = has_bias ? bias[o] : 0;
  for (int c = 0; c < per_group; c++) {
    device const T* plane = src + size_t(n * p.C + first + c) * p.input_size[0] * p.input_size[1];
    device const T* w = kernels + size_t(o * per_group + c) * p.window[0] * p.window[1];
    for (int ky = 0; ky < p.window[0]; ky++) {
      const int y = oy * p.step[0] + ky * p.dilation_of[0] - p.pad[0];
      if (y < 0 || y >= p.input_size[0]) continue;
      for (int kx = 0; kx < p.window[1]; kx++) {
        const int x = ox * p.step[1] + kx * p.dilation_of[1] - p.pad[1];
        if (x < 0 || x >= p.input_size[1]) continue;
        d += float(plane[y * p.input_size[1] + x]) * float(w[ky * p.window[1] + kx]);
      }
    }
  }
  dst[tid] = T(d);
}
#define DIRECT_2D(T, NAME)                                                                                     \
  kernel void NAME(constant ConvolutionShape<2>& p [[buffer(0)]], device const T* src [[buffer(1)]],                 \
                      device const T* kernels [[buffer(2)]], device const float* bias [[buffer(3)]],              \
                      device T* dst [[buffer(4)]], constant bool& has_bias [[buffer(5)]],                         \
                      uint tid [[thread_position_in_grid]]) {                                                     \
    direct_sum<T>(p, src, kernels, bias, dst, has_bias, tid);                                                    \
  }
DIRECT_2D(float, conv2d_f32)
DIRECT_2D(half, conv2d_f16)

#define DIRECT_1D(TYPE, NAME)                                                                                  \
  kernel void NAME(constant size_t &images, constant size_t &inputs, constant size_t &outputs, constant size_t &length,  \
                      constant size_t &taps, constant size_t &stride, constant size_t &padding,                     \
                      constant size_t &dilation, device const TYPE *src, device const TYPE *w,                \
                      device TYPE *dst, uint tid [[thread_position_in_grid]]) {                                   \
    const size_t places = (length + 2 * padding - dilation * (taps - 1) - 1) / stride + 1;                             \
    if (tid >= images * outputs * places) return;                                                                        \
    const size_t l = tid % places, o = (tid / places) % outputs, b = tid / (places * outputs);                               \
    float sum = 0;                                                                                                    \
    for (size_t c = 0; c < inputs; ++c)                                                                                 \
      for (size_t k = 0; k < taps; ++k) {                                                                           \
        size_t at = l * stride + k * dilation;                                                                        \
        if (at < padding || at >= length + padding) continue;                                                           \
        sum += static_cast<float>(src[(b * inputs + c) * length + at - padding]) *                                        \
               static_cast<float>(w[(o * inputs + c) * taps + k]);                                                    \
      }                                                                                                               \
    dst[tid] = static_cast<TYPE>(sum);                                                                            \
  }
DIRECT_1D(float, conv1d_f32)
DIRECT_1D(bfloat, conv1d_bf16)

// Depthwise, NHWC: a tile of the image with its border through threadgroup memory; 4 channels as a vector.
constant int window_height [[function_constant(0)]];
constant int window_width [[function_constant(1)]];
template <typename T, int TileRows = 8, int TileColumns = 8>
[[kernel]] void depthwise_tiles(const device T* in [[buffer(0)]], const device T* weights [[buffer(1)]], device T* out [[buffer(2)]],
                                  constant int4& dims /* H, W, C, pad */ [[buffer(3)]], threadgroup vec<T, 4>* patch [[threadgroup(0)]],
                                  uint3 tid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  using T4 = vec<T, 4>;
  const int H = dims.x, W = dims.y, C = dims.z, pad = dims.w;
  const int y0 = tid.y * TileRows, x0 = tid.x * TileColumns, c = tid.z * 4;
  const int th = TileRows + window_height - 1, tw = TileColumns + window_width - 1;
  for (int i = lid.y * TileColumns + lid.x; i < th * tw; i += TileRows * TileColumns) {
    const int y = y0 + i / tw - pad, x = x0 + i % tw - pad;
    T4 v = 0;
    if (y >= 0 && y < H && x >= 0 && x < W) v = *(const device T4*)(in + (y * W + x) * C + c);
    patch[i] = v;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int oy = y0 + lid.y, ox = x0 + lid.x;
  const int OH = H + 2 * pad - window_height + 1, OW = W + 2 * pad - window_width + 1;
  if (oy >= OH || ox >= OW) return;
  float4 acc = 0;
  for (int ky = 0; ky < window_height; ky++)
    for (int kx = 0; kx < window_width; kx++) {
      const float4 w = float4(*(const device T4*)(weights + (ky * window_width + kx) * C + c));
      acc = fma(float4(patch[(lid.y + ky) * tw + lid.x + kx]), w, acc);
    }
  *(device T4*)(out + (oy * OW + ox) * C + c) = T4(acc);
}
template [[host_name("depthwise_tiles_half")]] [[kernel]] decltype(depthwise_tiles<half>) depthwise_tiles<half>;

// im2col: rows are pixels of the output, columns (channel, ky, kx). A thread has one element; 64-bit places.
template <typename T>
kernel void image_to_columns(constant ConvolutionShape<2>& p [[buffer(0)]], device const float* x [[buffer(1)]],
                             device T* columns [[buffer(2)]], uint3 at [[thread_position_in_grid]] /* element, pixel, image */,
                             uint3 size [[threads_per_grid]]) {
  const int kx = at.x % p.window[1], ky = at.x / p.window[1] % p.window[0], c = at.x / (p.window[0] * p.window[1]);
  const int2 window = int2(ky, kx), pixel = int2(at.y / p.output_size[1], at.y % p.output_size[1]);
  const int2 stride = int2(p.step[0], p.step[1]), pad = int2(p.pad[0], p.pad[1]), apart = int2(p.dilation_of[0], p.dilation_of[1]);
  const int2 from = pixel * stride + window * apart - pad, image = int2(p.input_size[0], p.input_size[1]);
  const bool inside = all(from >= 0) && all(from < image);
  const int64_t plane = int64_t(at.z) * p.C + c;
  columns[(int64_t(at.z) * size.y + at.y) * size.x + at.x] =
      inside ? static_cast<T>(x[(plane * image.x + from.x) * image.y + from.y]) : T(0);
}
typedef decltype(image_to_columns<float>) image_to_columns_f32;
template [[host_name("image_to_columns_f32")]] kernel image_to_columns_f32 image_to_columns<float>;
template [[host_name("image_to_columns_f16")]] kernel decltype(image_to_columns<half>) image_to_columns<half>;

// Implicit matrix product, NHWC by (O, kh, kw, C): 16 pixels x 16 channels a simdgroup, 8 deep.
template <typename T>
[[kernel]] void implicit_gemm_conv_2d(const device T* A [[buffer(0)]], const device T* B [[buffer(1)]], device T* C [[buffer(2)]],
                                      const constant ConvolutionShape<2>* params [[buffer(3)]], uint2 tid [[threadgroup_position_in_grid]],
                                      ushort lane [[thread_index_in_simdgroup]]) {
  constexpr int BM = 16, BN = 16, BK = 8;
  threadgroup T As[BM * BK], Bs[BN * BK];
  threadgroup float Cs[BM * BN];
  const int pixels = params->N * params->output_size[0] * params->output_size[1];
  const int deep = params->window[0] * params->window[1] * params->C;
  const int m0 = tid.y * BM, n0 = tid.x * BN;
  simdgroup_matrix<float, 8, 8> acc[2][2];
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) acc[i][j] = simdgroup_matrix<float, 8, 8>(0);
  for (int k0 = 0; k0 < deep; k0 += BK) {
    for (int i = lane; i < BM * BK; i += 32) {
      const int m = m0 + i / BK, k = k0 + i % BK;
      T v = T(0);
      if (m < pixels && k < deep) {
        const int n = m / (params->output_size[0] * params->output_size[1]);
        const int2 o = int2(m / params->output_size[1] % params->output_size[0], m % params->output_size[1]);
        const int c = k % params->C, kx = k / params->C % params->window[1], ky = k / params->C / params->window[1];
        const int y = o.x * params->step[0] + ky * params->dilation_of[0] - params->pad[0];
        const int x = o.y * params->step[1] + kx * params->dilation_of[1] - params->pad[1];
        if (y >= 0 && y < params->input_size[0] && x >= 0 && x < params->input_size[1])
          v = A[((size_t(n) * params->input_size[0] + y) * params->input_size[1] + x) * params->C + c];
      }
      As[i] = v;
      const int row = n0 + i / BK;
      Bs[i] = row < params->O && k < deep ? B[row * deep + k] : T(0);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_matrix<T, 8, 8> a[2], b[2];
    for (int i = 0; i < 2; i++) {
      simdgroup_load(a[i], As + i * 8 * BK, BK);
      simdgroup_load(b[i], Bs + i * 8 * BK, BK, 0, true);
    }
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++) simdgroup_multiply_accumulate(acc[i][j], a[i], b[j], acc[i][j]);
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) simdgroup_store(acc[i][j], Cs + i * 8 * BN + j * 8, BN);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = lane; i < BM * BN; i += 32) {
    const int m = m0 + i / BN, n = n0 + i % BN;
    if (m < pixels && n < params->O) C[size_t(m) * params->O + n] = T(Cs[i]);
  }
}
template [[host_name("implicit_gemm_conv_2d_float32")]] [[kernel]] decltype(implicit_gemm_conv_2d<float>) implicit_gemm_conv_2d<float>;
template [[host_name("implicit_gemm_conv_2d_bfloat16")]] [[kernel]] decltype(implicit_gemm_conv_2d<bfloat>) implicit_gemm_conv_2d<bfloat>;

// Transposed, one dimension: an output gathers the few inputs whose window reaches it.
struct transposed_shape {
  int in, out, length, window, stride;
};
kernel void conv1d_transposed(constant transposed_shape& s [[buffer(0)]], device const half* w [[buffer(1)]],
                              device const float* x [[buffer(2)]], device float* y [[buffer(3)]],
                              uint2 where [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
  const int2 at = int2(where);
  const int last = min(at.x / s.stride, s.length - 1);
  const int first = max(0, (at.x - s.window + s.stride) / s.stride);
  float sum = 0;
  for (int c = 0; c < s.in; ++c) {
    device const half* taps = w + (c * s.out + at.y) * s.window;
    for (int i = first; i <= last; ++i) sum = fma(float(taps[at.x - i * s.stride]), x[c * s.length + i], sum);
  }
  y[at.y * size.x + at.x] = sum;
}

enum pool_kind : uint { pool_max = 0, pool_avg = 1 };
struct pool_args {
  uint kind;
  int2 window, stride, pad, size, out;
};
kernel void pool_2d(constant pool_args& a [[buffer(0)]], device const half* x [[buffer(1)]], device half* y [[buffer(2)]],
                    uint3 gid [[thread_position_in_grid]]) {
  if (any(int2(gid.xy) >= a.out.yx)) return;
  const int2 start = int2(gid.yx) * a.stride - a.pad;
  const int2 low = max(start, 0), high = min(start + a.window, a.size);
  device const half* plane = x + size_t(gid.z) * a.size.x * a.size.y;
  float best = -INFINITY, sum = 0;
  for (int r = low.x; r < high.x; ++r)
    for (int c = low.y; c < high.y; ++c) {
      const float v = plane[r * a.size.y + c];
      best = max(best, v);
      sum += v;
    }
  switch (a.kind) {
    case pool_max: y[(gid.z * a.out.x + gid.y) * a.out.y + gid.x] = half(best); break;
    case pool_avg: y[(gid.z * a.out.x + gid.y) * a.out.y + gid.x] = half(sum / (a.window.x * a.window.y)); break;
    default: break;
  }
}
