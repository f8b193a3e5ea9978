// Row softmax as ML projects write it: simdgroup reductions, a second stage through threadgroup memory, a loop over the
// row, templates with host names; the row is longer than the group and no multiple of it.
// run: softmax_rows_f32 -b 0=arange:float32:3x333 -b 1:out:float32:3x333 --bytes 2=int32:333 --groups 3 --threadgroup 96
// expect buffer 1: f(i) for i in 999: exp((i % 333 - 332) * 0.125) / sum(exp(-k * 0.125) for k in range(333))
// tolerance: 2e-6
#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;

constant constexpr int lanes = 32;

template <typename T, int reads = 4>
[[kernel]] void softmax_rows(device const T *in [[buffer(0)]], device T *out [[buffer(1)]],
                             constant int &width [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                             uint t [[thread_position_in_threadgroup]], uint count [[threads_per_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]], uint group [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[lanes];
  in += row * size_t(width);
  out += row * size_t(width);
  float top = -INFINITY;
  for (int base = 0; base < width; base += int(count) * reads) {
    for (int k = 0; k < reads; k++) {
      int at = base + int(t) * reads + k;
      if (at < width) top = metal::max(top, float(in[at]) * 0.125f);
    }
  }
  top = simd_max(top);
  if (group == 0) partial[lane] = -INFINITY;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) partial[group] = top;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  top = simd_max(partial[lane]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (int at = int(t); at < width; at += int(count)) sum += metal::exp(float(in[at]) * 0.125f - top);
  sum = simd_sum(sum);
  if (group == 0) partial[lane] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) partial[group] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  sum = simd_sum(partial[lane]);
  for (int at = int(t); at < width; at += int(count)) out[at] = T(metal::exp(float(in[at]) * 0.125f - top) / sum);
}

template [[host_name("softmax_rows_f32")]] [[kernel]] decltype(softmax_rows<float>) softmax_rows<float>;
template [[host_name("softmax_rows_f16")]] [[kernel]] decltype(softmax_rows<half, 2>) softmax_rows<half, 2>;
