// Vectors of three narrow elements that functions give back: clang moves them as integers of 24 and 48 bits.
// for group: 32 50
// run: -b 0=arange:uint8:100x4 -b 1=arange:uint16:100x4 -b 2:out:uint8:100x4 -b 3:out:uint16:100x4 -b 4:out:uint8:700 -b 5:out:uint16:700 --grid 100 --threadgroup {group}
// let turned = lambda i: 0 if i % 4 == 3 else i + 2 - 2 * (i % 4)
// let spread = lambda i: 0 if i % 7 >= 3 else i // 7 * 4 + 2 - i % 7
// expect buffer 2: f(i) for i in 400: turned(i) % 256
// expect buffer 3: f(i) for i in 400: turned(i)
// expect buffer 4: f(i) for i in 700: spread(i) % 256
// expect buffer 5: f(i) for i in 700: spread(i)
#include <metal_stdlib>
using namespace metal;

template <typename T> T turned(T v) { return v.zyx; }

template <typename T> struct row {
  T x, y, z;
};

template <typename T> row<T> row_of(vec<T, 3> v) { return {v.z, v.y, v.x}; }

kernel void odd(device uchar3 *bytes [[buffer(0)]], device ushort3 *words [[buffer(1)]], device packed_uchar3 *to [[buffer(2)]],
                device packed_ushort3 *there [[buffer(3)]], device uchar *apart [[buffer(4)]], device ushort *far [[buffer(5)]],
                uint i [[thread_position_in_grid]]) {
  *(device row<uchar> *)((device uchar *)to + 4 * i) = row_of(bytes[i]);
  *(device row<ushort> *)((device ushort *)there + 4 * i) = row_of(words[i]);
  *(device row<uchar> *)(apart + 7 * i) = row_of(turned(bytes[i]).zyx);
  *(device row<ushort> *)(far + 7 * i) = row_of(turned(words[i]).zyx);
}
