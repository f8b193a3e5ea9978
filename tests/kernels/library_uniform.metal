// uniform<T>: values of it mix with each other and with plain ones; array, array_ref in every address space.
// run: checks -b 0=arange:float32:64 -b 1:out:float32:24 -b 2=arange:int32:8 --threadgroup-memory 0=64 --grid 1
// expect buffer 1: 6 12 18 3 -2 8 7 1 5 9 4 2 10 3 6 4 30 7 12 13 5 1 2 3
#include <metal_stdlib>
#include <metal_uniform>
#include <metal_array>
using namespace metal;

static_assert(is_uniform_v<uniform<int>> && is_uniform<uniform<float4>>::value && !is_uniform_v<int>, "");
static_assert(is_same_v<remove_uniform_t<uniform<half>>, half> && is_same_v<remove_uniform_t<half>, half>, "");
static_assert(is_same_v<decltype(make_uniform(1) * make_uniform(2)), uniform<int>>, "uniform of uniforms");
static_assert(is_same_v<decltype(make_uniform(1.0f) * 2.0f), float>, "one operand need not be");

constant array<int, 4> weights = {3, 1, 4, 1};

template <typename T> T sum_of(array_ref<T> values) {
  T sum = 0;
  for (size_t i = 0; i < values.size(); i++) sum += values[i];
  return sum;
}

kernel void checks(constant float *in [[buffer(0)]], device float *out [[buffer(1)]], const device int *counts [[buffer(2)]],
                   threadgroup float *shared [[threadgroup(0)]]) {
  const metal::uniform<float> scale = make_uniform(in[2]) * make_uniform(3.0f);
  float x = in[2];
  out[0] = scale;
  out[1] = x * scale;
  out[2] = float4(scale * float4(3)).y;
  uniform<int> n = make_uniform(counts[3]);
  out[3] = n;
  n -= 5;
  out[4] = n;
  n = -n << make_uniform(2);
  out[5] = n;
  out[6] = --n;
  out[7] = n == 7 && n != make_uniform(3) && !(n < 7) ? 1 : 0;
  uniform<uint> steps = make_uniform(2u);
  float total = 0;
  for (uniform<uint> i = 0u; i < steps; i++) total += in[i + 2];
  out[8] = total;
  out[9] = in[n + steps];
  out[10] = max(float(scale), 1.0f) - (steps & make_uniform(3u));

  array<float, 3> a = {2, 3, 5}, b = a;
  out[11] = a.front();
  out[12] = a[0] + a[1] + b.back();
  out[13] = a.size();
  b[1] = 6;
  out[14] = b.data()[1] * (a == b ? 2 : 1);
  out[15] = weights[2] * (a.empty() ? 2 : 1);
  out[16] = sum_of(array_ref<float>(a)) * sum_of(make_array_ref(a[1]));
  threadgroup float *first = shared;
  first[0] = 3;
  first[1] = 4;
  auto view = make_array_ref(first, 2);
  out[17] = view.front() + view.back();
  auto far = make_array_ref(counts, 6);
  out[18] = far[5] + far.back() + *(far.data() + 2);
  auto constants = make_array_ref(in, 10);
  out[19] = constants.back() + constants[4] + (constants.empty() ? 1 : 0);
  array_ref<device const int> same(counts, 6);
  out[20] = same[5];
  out[21] = far.size() == same.size();
  array<array<half, 2>, 2> nested = {{{1, 2}, {3, 4}}};
  out[22] = nested[0][1];
  float plain[3] = {7, 8, 3};
  out[23] = make_array_ref(plain).back();
}
