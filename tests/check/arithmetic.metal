// Arithmetic whose result Metal leaves undefined, and what looks like it.
#include <metal_stdlib>
using namespace metal;

// ---- Overflow of signed numbers.

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void a_sum(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  o[i] = a[i] + (INT_MAX - 60); // SM008
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void a_difference(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  int low = -2147483600;
  o[i] = low - a[i]; // SM008
}

// run: -b 0=arange:int32:64 -b 1:out:int64:64 --grid 64 --threadgroup 64
kernel void a_product_that_is_widened_too_late(device const int *a [[buffer(0)]], device long *o [[buffer(1)]],
                                               uint i [[thread_position_in_grid]]) {
  o[i] = long(a[i] * 100000000); // SM008
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void a_negation(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  int least = a[i] == 5 ? INT_MIN : a[i];
  o[i] = -least; // SM008
}

// run: -b 0=arange:int64:64 -b 1:out:int64:64 --grid 64 --threadgroup 64
kernel void a_product_of_64_bits(device const long *a [[buffer(0)]], device long *o [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  o[i] = a[i] * 0x4000000000000000; // SM008
}

// run: -b 0:out:int32:64 --grid 64 --threadgroup 64
kernel void a_factorial(device int *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  int product = 1;
  for (int k = 2; k <= int(i) && k < 20; k++)
    product *= k; // SM008
  o[i] = product;
}

static int index_of(int row, int columns) {
  return row * columns; // SM008
}

// run: -b 0:out:float32:64 -b 1=50000000 --grid 64 --threadgroup 64
kernel void a_row_far_down(device float *o [[buffer(0)]], constant int &columns [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  o[i] = index_of(int(i), columns) < 0;
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void components(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  int2 both = int2(a[i], 2147483640);
  both += 5 + a[i] / 32 * 5; // SM008
  o[i] = both.x + both.y / 2;
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void the_least_by_minus_one(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                                   uint i [[thread_position_in_grid]]) {
  o[i] = (INT_MIN + a[i]) / (a[i] - 1); // SM008 SM010
}

// ---- Shifts.

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void by_the_lane(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
  o[i] = int(1u << i) + a[i]; // SM009
}

// run: -b 0=arange:int32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void by_less_than_nothing(device const int *a [[buffer(0)]], device uint *o [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  o[i] = 0xffu >> (8 - a[i] / 7); // SM009
}

// run: -b 0=arange:uint64:64 -b 1:out:uint64:64 -b 2=64 --grid 64 --threadgroup 64
kernel void by_all_64_bits(device const ulong *a [[buffer(0)]], device ulong *o [[buffer(1)]],
                           constant int &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  o[i] = a[i] >> n; // SM009
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void a_mask_of_all_bits(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                               uint i [[thread_position_in_grid]]) {
  uint bits = 32 * (i == 63);
  o[i] = a[i] & int((1u << bits) - 1); // SM009
}

// ---- Division.

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void by_zero(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
  o[i] = 100 / a[i]; // SM010
}

// run: -b 0:out:uint32:64 -b 1=0 --grid 64 --threadgroup 64
kernel void a_remainder_by_zero(device uint *o [[buffer(0)]], constant int &n [[buffer(1)]],
                                uint i [[thread_position_in_grid]]) {
  o[i] = i % uint(n); // SM010
}

// run: -b 0:out:uint32:64 -b 1=3 --grid 64 --threadgroup 64
kernel void heads_of_a_group(device uint *o [[buffer(0)]], constant int &heads [[buffer(1)]],
                             uint i [[thread_position_in_grid]]) {
  uint heads_per_group = uint(heads) / 4;
  o[i] = i / heads_per_group; // SM010
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void some_lanes_by_zero(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                               uint i [[thread_position_in_grid]]) {
  if (i < 32)
    o[i] = a[i] ? 7 % a[i] : 0;
  else
    o[i] = 7 % (a[i] - 40); // SM010
}

// ---- Conversions.

// run: -b 0=arange:float32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void too_large(device const float *a [[buffer(0)]], device int *o [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
  o[i] = int(a[i] * 1e8f); // SM011
}

// run: -b 0=arange:float32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void negative(device const float *a [[buffer(0)]], device uint *o [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  o[i] = uint(a[i] - 3.0f); // SM011
}

// run: -b 0=arange:float32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void not_a_number(device const float *a [[buffer(0)]], device int *o [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  float zero = a[0];
  o[i] = int(i == 9 ? zero / zero : a[i]); // SM011
}

// run: -b 0=arange:float32:64 -b 1:out:uint8:64 --grid 64 --threadgroup 64
kernel void a_colour(device const float *a [[buffer(0)]], device uchar *o [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  o[i] = uchar(a[i] * 256.0f / 60.0f); // SM011
}

// ---- No findings.

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void a_hash(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
  uint h = a[i] * 2654435769u;
  h ^= h << 13;
  h += 0xffffffffu - i;
  o[i] = h - 5;
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void as_far_as_it_goes(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                              uint i [[thread_position_in_grid]]) {
  int most = INT_MAX - 63 + a[i];
  short narrow = short(a[i] * 1000);
  uint rest = (1u << (i & 31)) + uint(a[i] << 25) + uint(most / 2) + uint((INT_MIN / 2) / (1 + (narrow & 1)));
  o[i] = int(rest);
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void guarded(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
  int by = a[i] / 8;
  int quotient = by != 0 && a[i] / by > 8 ? 100 / by : 0;
  if (a[i] > 31) quotient += a[i] - 32 < 32 ? 1 << (a[i] - 32 & 31) >> 31 : 0;
  o[i] = quotient;
}

// run: -b 0=arange:float32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void just_inside(device const float *a [[buffer(0)]], device int *o [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
  int least = int(-2147483648.0f), most = int(2147483520.0f);
  o[i] = int(uint(-0.75f + a[i] / 100)) + int(uchar(255.5f - a[i])) + least / 2 + most / 2 +
         int(char(-128.9f + a[i]));
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void ignored(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
  int quotient = 7 / a[i]; // smelt: ignore SM008, SM010: 0 is meant
  // smelt: ignore SM008: it wraps
  o[i] = INT_MAX + a[i] + quotient;
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void not_ignored(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
  // smelt: ignore SM001: another
  int quotient = 7 / a[i]; // SM010
  o[i] = quotient; // smelt: ignore SM010: the line above is meant, not this one
}

// ---- What is computed under a condition is not looked at where that does not hold.

// run: -b 0=arange:float32:64 -b 1:out:int32:64 --grid 64 --threadgroup 48
kernel void under_conditions(device const float *x [[buffer(0)]], device int *o [[buffer(1)]],
                             uint i [[thread_position_in_grid]]) {
  uint mask = i < 32 ? 1u << i : 0u;
  if (i >= 40) mask = 5 >> (i - 40);
  float far = x[i] * 1e8f;
  int near = far < 2e9f ? int(far) : 0;
  int sum = i < 10 ? int(i) + (INT_MAX - 10) : 0;
  int quotient = i ? 100 / int(i) : 0;
  int product = i < 20 ? int(i) * 100000000 : 0;
  int negative = i > 3 ? -int(i) : 3;
  o[i] = int(mask) ^ near ^ sum ^ quotient ^ product ^ negative ^ int(simd_ballot(i > 5).all());
}

// run: -b 0=arange:float32:64 -b 1:out:int32:64 --grid 64 --threadgroup 48
kernel void under_wrong_conditions(device const float *x [[buffer(0)]], device int *o [[buffer(1)]],
                                   uint i [[thread_position_in_grid]]) {
  uint mask = i < 34 ? 1u << i : 0u; // SM009
  float far = x[i] * 1e8f;
  int near = far < 3e9f ? int(far) : 0; // SM011
  int sum = i < 12 ? int(i) + (INT_MAX - 10) : 0; // SM008
  o[i] = int(mask) ^ near ^ sum;
}
