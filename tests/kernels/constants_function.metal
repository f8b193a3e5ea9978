// Function constants of every kind of type, by index and by name, and constants computed from them.
// for opt: 0 1
// let given = (5, 6, 16)
// run: constants -b 0:out:float32:22 --grid 22 --constant 0=float32:1.5,2,3,4 --constant on=5 --constant small=255
// run: --constant 3=7 --constant h=0.1 --constant shape=int32:1,2,-3 --constant set::flags=bool:false,true
// run: --constant big=uint64:18446744073709551615 --constant bf=2.5 --constant {opt}12=int16:5,6 --constant 13=-7
// run: --constant mode=2 --constant 16=-3
// expect buffer 0: f(i) for i in 22: [4, 1, 255, 7, 0.0999755859375, -3, 1, 15, 2.5, 3, 2 if opt else 6, 4 if opt else 12, 20 if opt else 34, opt == 0, -7, 1 if opt else 5, 3.5 if opt else 11.5, 40, -3, 259, 2, -3][i]
#include <metal_stdlib>
using namespace metal;

enum { kIndex = 7 };
namespace set {
constant float4 scale [[function_constant(0)]];
constant bool2 flags [[function_constant(8)]];
}
constant bool on [[function_constant(1)]];
constant uchar small [[function_constant(2)]], other [[function_constant(kIndex - 4)]];
constant half h [[function_constant(4)]];
constant int3 shape [[function_constant(kIndex)]];
constant ulong big [[function_constant(9)]];
constant bfloat bf [[function_constant(10)]];
constant short2 opt [[function_constant(12)]];
constant char tiny [[function_constant(13)]];
constant float unused [[function_constant(14)]];
enum Mode { additive = 1, multiplicative };
enum class Step : char { back = -3, on = 1 };
constant Mode mode [[function_constant(15)]];
constant Step way [[function_constant(16)]];

// Computed from them, one from another, vectors and structures too.
constant float area = set::scale.x * shape.y;
constant short2 opt_or = is_function_constant_defined(opt) ? opt : short2(1, 2);
constant int twice = opt_or.y * 2;
struct Plan { int first, second; float bias; };
constant Plan plan = {opt_or.x, twice, opt_or.y + 1.5f};
constant Plan next_plan = {plan.first + 1, plan.second, plan.bias + twice - (on ? 4 : 0)};
constant float4 column = float4(plan.bias), same_column = column, more[2] = {column + 1, float4(twice)};
constant float table[3] = {float(plan.second) * 5, float(small) + twice, -3.0f};
constant bool defined_unused = is_function_constant_defined(unused);
template <typename T> constant T ten_times = T(10 * twice);
constant uint sum = small + (defined_unused ? 100 : 4);

template <int N> float scaled(float x) { return on ? x * N : 0; }

kernel void constants(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float values[22] = {set::scale.w, float(on), float(small), float(other), h, float(shape.z), float(set::flags.y), float(big >> 60),
                      bf, area, float(opt_or.y), float(twice), table[0], float(is_function_constant_defined(opt)), float(tiny), float(plan.first),
                      next_plan.bias - (is_function_constant_defined(opt) ? 4 : 0), scaled<10>(4), table[2], float(sum),
                      mode == multiplicative ? float(mode) : 0, way == Step::back ? float(way) : 0};
  if (is_function_constant_defined(opt)) values[12] -= 26;
  if (same_column.x != plan.bias || more[0].y != plan.bias + 1 || more[1].w != twice || ten_times<int> != 10 * twice) values[15] += 100;
  switch (twice) {
  case 12: values[16] -= 0; break;
  default: break;
  }
  out[i] = values[i];
}
