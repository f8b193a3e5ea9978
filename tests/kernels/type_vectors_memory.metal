// Vectors in volatile memory; shifts by counts of another type; limits and lists of vectors.
// run: type_vectors_memory -b 0=arange:float32:24 -b 1:out:float32:6x4 -b 2:out:int32:6x2 -b 3:out:float32:6x3 --grid 6
// let at = lambda i: 4 * (i // 4)
// expect buffer 1: f(i) for i in 24: 2 * i + (at(i) + 1 if i % 4 == 3 else 0)
// expect buffer 2: f(i) for i in 12: ((i // 2 - 3) << i % 2 + 1) + ((-64 if i % 2 else 64) >> i // 2)
// expect buffer 3: f(i) for i in 18: [3.4028234663852886e38, -32768, 1 + 2 + 3][i % 3]
#include <metal_stdlib>
using namespace metal;

struct Block {
  float4 value;
};
struct Rows {
  float first[3];
  void operator=(initializer_list<float> list) {
    for (size_t i = 0; i < list.size(); i++) first[i] = *(list.begin() + i);
  }
};
union Bits { // vectors stay trivial
  uint2 words;
  uchar4 bytes[2];
};

kernel void type_vectors_memory(device const float4 *in [[buffer(0)]], volatile device Block *out [[buffer(1)]],
                                device int2 *shifted [[buffer(2)]], device packed_float3 *rest [[buffer(3)]],
                                uint i [[thread_position_in_grid]]) {
  float4 twice = in[i] + in[i];
  out[i].value = twice;
  float4 back = out[i].value;
  twice.w += back.x - in[i].x + 1;
  out[i].value = twice;
  int2 a = int2(int(i) - 3), b = int2(64, -64);
  b >>= uint2(i);
  shifted[i] = (a << uint2(1, 2)) + b;
  Rows rows;
  rows = {1, 2, 3};
  Bits bits;
  bits.words = uint2(0x01020304u, 0);
  rest[i] = float3(numeric_limits<float4>::max().z, numeric_limits<short2>::lowest().y,
                   rows.first[0] + rows.first[1] + rows.first[2] + bits.bytes[0].x - 4);
}
