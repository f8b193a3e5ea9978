// A conversion that depends on where its object is constructs the type it is named after.
// run: convert -b 0:out:float32:3 -b 1=arange:float32:2 --grid 1
// expect buffer 0: 11 1 3
#include <metal_stdlib>
using namespace metal;

struct Codes {
  uchar v[4];
  explicit operator half2x2() const { return half2x2(half2(v[0], v[1]), half2(v[2], v[3])); }
  explicit operator half2x2() const device { return half2x2(half2(v[0], v[1]), half2(v[2], v[3])); }
  explicit operator unsigned int() const threadgroup { return (unsigned int)(v[0]) + v[1]; }
  uchar &operator[](int i) thread { return v[i]; }
  device uchar &operator[](int i) device { return v[i]; }
};

kernel void convert(device float *out [[buffer(0)]], device Codes *there [[buffer(1)]]) {
  Codes own;
  for (int i = 0; i < 4; i++) own[i] = i * 2 + 5;
  out[0] = half2x2(own)[1][1];
  there[0][1] = 1;
  out[1] = half2x2(there[0])[0][1];
  threadgroup Codes shared;
  shared.v[0] = 1;
  shared.v[1] = 2;
  out[2] = (unsigned int)shared;
}
