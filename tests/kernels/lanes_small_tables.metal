// Small tables of the kernel's own, indexed by numbers of each lane: words and bytes, in threadgroup memory and at program scope, all
// of the table and a part of it; lanes that are off have other numbers. Larger tables and the ends of small ones are gathered.
// for group: 64 100
// run: -b 0=arange:uint8:300 -b 1:out:int32:300 --grid 300 --threadgroup {group}
// let byte = lambda i: i % 256
// let square = lambda k: k * k - 100
// let first = lambda b: square(b % 16) + (b // 16) * 3 - 20 + square(5 + b % 8) * 2
// expect buffer 1: f(i) for i in 300: first(byte(i)) + (7 * (byte(i) % 32) + 1 if byte(i) % 3 else 50 - byte(i) // 32) + (byte(i) % 5) * 11
#include <metal_stdlib>
using namespace metal;
constant char thirds[16] = {-20, -17, -14, -11, -8, -5, -2, 1, 4, 7, 10, 13, 16, 19, 22, 25};
constant int fifths[5] = {0, 11, 22, 33, 44};
constant int eight[8] = {50, 49, 48, 47, 46, 45, 44, 43};
kernel void odd(device const uchar *x [[buffer(0)]], device int *o [[buffer(1)]], uint i [[thread_position_in_grid]],
                uint me [[thread_position_in_threadgroup]]) {
  threadgroup int squares[16];
  threadgroup float sevens[32];
  if (me < 16) squares[me] = me * me - 100;
  if (me < 32) sevens[me] = 7 * me + 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uchar b = x[i];
  int sum = squares[b & 15] + thirds[b >> 4] + squares[5 + (b & 7)] * 2;
  if (b % 3)
    sum += int(sevens[b & 31]);
  else
    sum += eight[b >> 5];
  o[i] = sum + fifths[b % 5];
}
