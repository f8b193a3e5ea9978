// #pragma METAL fp math_mode and contract hold where they stand, whatever the mode of the whole.
// for mode: safe relaxed fast
// run: k -b 0:out:float32:11 --bytes 1=uint32:1287568416,1065355264,1065357312,2143289344 --grid 11 --math {mode}
// expect buffer 0: 0 1 1 0 0 5.960464477539063e-08 0 0 5.960464477539063e-08 1 1
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL internals : enable
using namespace metal;
float sum_safe(float a, float b, float c) { return (a + b) - a + c; }
#pragma METAL fp math_mode(fast)
float sum_fast(float a, float b, float c) { return (a + b) - a + c; }
#pragma METAL fp math_mode(relaxed)
float sum_relaxed(float a, float b) { return (a + b) - a; }
#pragma METAL fp math_mode(safe)
float nofma(float a, float b, float c) {
#pragma METAL fp contract(off)
  return a * b + c;
}
float nofma2(float a, float b, float c) {
#pragma METAL fp contract(off)
#pragma METAL fp math_mode(safe)
  return a * b + c;
}
float withfma(float a, float b, float c) { return a * b + c; }
namespace n {
#pragma METAL fp contract(off)
float nofma3(float a, float b, float c) { return a * b + c; }
}
float nofma4(float a, float b, float c) { return a * b + c; }
#pragma METAL fp contract(fast)
float withfma2(float a, float b, float c) { return a * b + c; }
bool is_safe(float x) {
#pragma METAL fp math_mode(safe)
  return x != x;
}
kernel void k(device float *o [[buffer(0)]], constant uint4 &bits [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  // 1e8, 1 + 2^-12, the rounded square of that, and NaN.
  float a = as_type<float>(bits.x), b = as_type<float>(bits.y), c = as_type<float>(bits.z), none = as_type<float>(bits.w);
  if (i == 0) o[0] = sum_safe(a, b, 0);
  // What these may give is open.
  if (i == 1) o[1] = sum_fast(a, b, 0) >= 0 ? 1 : 0;
  if (i == 2) o[2] = sum_relaxed(a, b) >= 0 ? 1 : 0;
  if (i == 3) o[3] = nofma(b, b, -c);
  if (i == 4) o[4] = nofma2(b, b, -c);
  if (i == 5) o[5] = withfma(b, b, -c);
  if (i == 6) o[6] = n::nofma3(b, b, -c);
  if (i == 7) o[7] = nofma4(b, b, -c);
  if (i == 8) o[8] = withfma2(b, b, -c);
  if (i == 9) o[9] = is_safe(none);
  if (i == 10) o[10] = isnan(none);
}
