// Rows whose length is an argument, and blocks of few bytes: their elements are loaded at once where they are aligned.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

struct block {
  half scale;
  uchar low[4];
  char bytes[12];
};

// A lane has four floats of each row, eight halfs, and eight bytes of a block.
kernel void rows(device const float *floats [[buffer(0)]], device const half *halfs [[buffer(1)]],
                 device const block *blocks [[buffer(2)]], device float *out [[buffer(3)]], constant uint &stride [[buffer(4)]],
                 uint lane [[thread_index_in_simdgroup]]) {
  float sum = 0;
  for (uint row = 0; row < 3; row++) {
    device const float *f = floats + row * stride + lane % 2 * 4;
    device const half *h = halfs + row * stride + lane % 2 * 8;
    device const block *b = blocks + row * 2 + lane % 2;
    for (uint k = 0; k < 4; k++) sum += f[k] * (k + 1);
    for (uint k = 0; k < 8; k++) sum += float(h[k]) * (k + 1);
    for (uint k = 0; k < 8; k++) sum += float(b->bytes[k + 2]) * (k + 1) * float(b->scale);
    for (uint k = 0; k < 4; k++) sum += b->low[k];
    sum = simd_shuffle_xor(sum, 3);
  }
  out[lane] = sum;
}

// 16 x 16 = 16 x 24 times 24 x 16, from rows that are `stride` apart; the right matrix as it lies, and transposed.
kernel void product(device const half *a [[buffer(0)]], device const half *b [[buffer(1)]], device float *c [[buffer(2)]],
                    constant uint &stride [[buffer(3)]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  simdgroup_float8x8 sums[2][2], turned(0);
  for (uint i = 0; i < 4; i++) sums[i / 2][i % 2] = simdgroup_float8x8(0);
  for (uint k = 0; k < 24; k += 8) {
    simdgroup_half8x8 left[2], right[2], other;
    for (uint i = 0; i < 2; i++) {
      simdgroup_load(left[i], a + 8 * i * stride + k, stride);
      simdgroup_load(right[i], b + k * stride + 8 * i, stride);
    }
    simdgroup_load(other, a + 8 * simdgroup * stride + k, stride, 0, true);
    for (uint i = 0; i < 4; i++) simdgroup_multiply_accumulate(sums[i / 2][i % 2], left[i / 2], right[i % 2], sums[i / 2][i % 2]);
    simdgroup_multiply_accumulate(turned, left[0], other, turned);
  }
  for (uint i = 0; i < 4; i++) simdgroup_store(sums[i / 2][i % 2], c + 8 * (i / 2) * 16 + 8 * (i % 2), 16);
  simdgroup_store(turned, c + 256, 8);
}

// Lanes load what they stored themselves to device memory: what others stored may not be there yet.
kernel void own(device half *a [[buffer(0)]], device const half *b [[buffer(1)]], device float *c [[buffer(2)]],
                ushort lane [[thread_index_in_simdgroup]]) {
  const short quad = lane / 4, row = (quad & 4) + lane / 2 % 4, column = (quad & 2) * 2 + lane % 2 * 2;
  for (short e = 0; e < 2; e++) a[row * 8 + column + e] = b[row * 8 + column + e] + half(1);
  simdgroup_half8x8 left, right;
  simdgroup_load(left, a);
  simdgroup_load(right, b);
  simdgroup_float8x8 sum;
  simdgroup_multiply(sum, left, right);
  simdgroup_store(sum, c);
}

// c += a · b straight from device memory, 16 × 32 elements; `turned`: b lies transposed. The depth is a multiple of 8.
template <typename T, bool turned>
[[kernel]] void straight(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device float *c [[buffer(2)]],
                         constant uint &depth [[buffer(3)]], constant uint &stride [[buffer(4)]]) {
  simdgroup_float8x8 sums[2][4];
  for (uint i = 0; i < 8; i++) simdgroup_load(sums[i / 4][i % 4], c + 8 * (i / 4) * 32 + 8 * (i % 4), 32);
  for (uint k = 0; k < depth; k += 8) {
    simdgroup_matrix<T, 8, 8> left[2], right[4];
    for (uint i = 0; i < 2; i++) simdgroup_load(left[i], a + 8 * i * stride + k, stride);
    for (uint j = 0; j < 4; j++) {
      if (turned)
        simdgroup_load(right[j], b + 8 * j * stride + k, stride, 0, true);
      else
        simdgroup_load(right[j], b + k * stride + 8 * j, stride);
    }
    for (uint i = 0; i < 8; i++) simdgroup_multiply_accumulate(sums[i / 4][i % 4], left[i / 4], right[i % 4], sums[i / 4][i % 4]);
  }
  for (uint i = 0; i < 8; i++) simdgroup_store(sums[i / 4][i % 4], c + 8 * (i / 4) * 32 + 8 * (i % 4), 32);
}
template [[host_name("straight_half")]] [[kernel]] decltype(straight<half, false>) straight<half, false>;
template [[host_name("straight_half_turned")]] [[kernel]] decltype(straight<half, true>) straight<half, true>;
template [[host_name("straight_bfloat")]] [[kernel]] decltype(straight<bfloat, false>) straight<bfloat, false>;

// Four steps of eight products each; the sums after the second step are stored as well, or change places then.
template <bool kept>
[[kernel]] void steps(device const half *a [[buffer(0)]], device const half *b [[buffer(1)]], device float *c [[buffer(2)]],
                      constant uint &stride [[buffer(3)]]) {
  simdgroup_float8x8 sums[2][4], between[2][4];
  for (uint i = 0; i < 8; i++) simdgroup_load(sums[i / 4][i % 4], c + 64 * i, 8);
  for (uint k = 0; k < 32; k += 8) {
    simdgroup_half8x8 left[2], right[4];
    for (uint i = 0; i < 2; i++) simdgroup_load(left[i], a + 8 * i * stride + k, stride);
    for (uint j = 0; j < 4; j++) simdgroup_load(right[j], b + 8 * j * stride + k, stride, 0, true);
    for (uint i = 0; i < 8; i++) simdgroup_multiply_accumulate(sums[i / 4][i % 4], left[i / 4], right[i % 4], sums[i / 4][i % 4]);
    for (uint i = 0; k == 8 && i < 8; i++) between[i / 4][i % 4] = sums[i / 4][i % 4];
    for (uint i = 0; !kept && k == 8 && i < 8; i++) sums[i / 4][i % 4] = between[1 - i / 4][i % 4];
  }
  for (uint i = 0; i < 8; i++) simdgroup_store(sums[i / 4][i % 4], c + 64 * i, 8);
  for (uint i = 0; kept && i < 8; i++) simdgroup_store(between[i / 4][i % 4], c + 512 + 64 * i, 8);
}
template [[host_name("steps_kept")]] [[kernel]] decltype(steps<true>) steps<true>;
template [[host_name("steps_swapped")]] [[kernel]] decltype(steps<false>) steps<false>;
