// A switch over all enumerators, without a default, gets a value outside them: the function returns 0.
// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 -b 2:out:float32:64 --bytes 3=uint32:77 --grid 64 --threadgroup 64
// expect buffer 1: f(i) for i in 64: [i * 3 + 1, i // 7, i ^ 85, i * i, i * 5, 64 - i][i] if i < 6 else 0
// expect buffer 2: f(i) for i in 64: [1.5, 2.5, 3.5][i] if i < 3 else 0
#include <metal_stdlib>
using namespace metal;

enum operation : uint { ADD, DIVIDE, EXCHANGE, SQUARE, SCALE, NEGATE };
enum class constant_of { A, B, C };

uint compute(operation which, uint x) {
  switch (which) {
  case ADD: return x * 3 + 1;
  case DIVIDE: return x / 7;
  case EXCHANGE: return x ^ 85;
  case SQUARE: return x * x;
  case SCALE: return x * 5;
  case NEGATE: return 64 - x;
  }
}

float value_of(constant_of which) {
  switch (which) {
  case constant_of::A: return 1.5f;
  case constant_of::B: return 2.5f;
  case constant_of::C: return 3.5f;
  }
}

kernel void all_enumerators(device const uint *x [[buffer(0)]], device uint *out [[buffer(1)]], device float *constants [[buffer(2)]],
                            constant uint &far [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  out[i] = compute(operation(x[i]), x[i]) + compute(operation(far), 7u);
  constants[i] = value_of(constant_of(x[i])) + value_of(constant_of(far));
}
