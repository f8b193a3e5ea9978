// Loads whose lanes fall into rows: 8×8 tiles as simdgroup matrices lie, quarters of rows, rows of one element, with strides the run
// tells, in loops that move the pointer, under masks, of every element size, with indexes that wrap around in 32 bits.
// for group: 32 64 96 20 33
// run: -b 0=arange:float32:4096 -b 1=arange:float16:2048 -b 2=arange:uint8:200 -b 3=arange:uint64:4096 --bytes 4=uint32:37 -b 5:out:float32:192x10 --grid 192 --threadgroup {group}
// let lane = lambda i: i % group % 32 if i < 192 // group * group else (i - 192 // group * group) % 32
// let row = lambda i: (lane(i) // 4 & 4) + lane(i) // 2 % 4
// let column = lambda i: (lane(i) // 4 & 2) * 2 + lane(i) % 2 * 2
// let n = 37
// let last = lambda i: sum(row(i) * n + column(i) + 8 * k + 5 * n * k for k in range(4))
// expect buffer 5: f(i) for i in 1920: (row(i // 10) * n + column(i // 10), row(i // 10) * n + column(i // 10) + 1, last(i // 10), lane(i // 10) // 8 * n + 3 * (lane(i // 10) % 8), row(i // 10) * n + 2, row(i // 10) * n + column(i // 10) if i // 10 % 3 else -1, row(i // 10) * n + column(i // 10) + 5, (7 - row(i // 10)) * n + column(i // 10) + 11, row(i // 10) * 24 + column(i // 10), column(i // 10) * n + row(i // 10))[i % 10]
#include <metal_stdlib>
using namespace metal;

kernel void tiles(device const float *x [[buffer(0)]], device const half *narrow [[buffer(1)]], device const uchar *bytes [[buffer(2)]],
                  device const ulong *wide [[buffer(3)]], constant uint &n [[buffer(4)]], device float *out [[buffer(5)]],
                  uint thread_index [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  const short quad = lane / 4;
  const short row = (quad & 4) + (lane / 2) % 4, column = (quad & 2) * 2 + (lane % 2) * 2;
  device float *y = out + thread_index * 10;
  device const float *tile = x + row * n + column;
  y[0] = tile[0];
  y[1] = tile[1];
  float sum = 0;
  device const float *moving = tile;
  for (int k = 0; k < 4; k++) {
    sum += moving[0];
    moving += 8 + 5 * n;
  }
  y[2] = sum;
  y[3] = x[lane / 8 * n + 3 * (lane % 8)];
  y[4] = x[row * n + 2];
  y[5] = thread_index % 3 ? tile[0] : -1.0f;
  y[6] = float(narrow[row * n + column + 5]);
  y[7] = float(wide[(7u - row) * n + column + 11]);
  // A byte's row of 24, and an index that wraps: minus eight rows, plus eight.
  uint start = 0u - 8u * 24u;
  y[8] = float(bytes[start + (uint(row) + 8u) * 24u + uint(column)]);
  y[9] = x[column * n + row];
}
