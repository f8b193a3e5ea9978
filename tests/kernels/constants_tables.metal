// A table of pointers to constant arrays, indexed by what only the run can tell.
// run: -b 0:out:float32:64 --grid 64
// let rows = lambda i: ((1, 2, 3), (4, 5, 6, 7))[i % 2]
// expect buffer 0: f(i) for i in 64: rows(i)[i % 3] + (101, 119, 122)[i * i % 3]
#include <metal_stdlib>
using namespace metal;

constant float kFirst[] = {1, 2, 3};
constant float kSecond[] = {4, 5, 6, 7};
constant constant float *const kRows[] = {kFirst, kSecond};
constant constant char *constant kNames[] = {"zeeero", "twelve", "ezra"};

kernel void tables(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  constant char *name = kNames[i * i % 3];
  out[i] = kRows[i & 1][i % 3] + name[1];
}
