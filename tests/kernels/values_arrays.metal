// Sizes and strides that loops over an array's dimensions read, from the last one and from the first, in 32 and 64 bits. Sizes and strides
// may be 0, strides negative; arrays may be longer than the loops, or have more dimensions than code for given values takes.
// tests/CMakeLists.txt also runs it with code for these values.
// for rank: 1 2 3 7
// for sizes: 20,15,2,3,1,1,4 5,4,15,2,1,1,1 2,1,3,1,5,2,5 3,0,20,0,2,1,7
// for strides: 1,20,0,-1,4,60,7 -15,0,31,2,1,-1,90
// let below = lambda d: prod(sizes[d + 1:rank])
// let digit = lambda i, d: 0 if 0 in sizes[d + 1:rank] else i // below(d) % sizes[d] if sizes[d] else i // below(d)
// let place = lambda i: 1500 + sum(digit(i, d) * strides[d] for d in range(rank))
// let above = lambda i, d: i if d < 0 else above(i, d - 1) // sizes[d] if sizes[d] else 0
// let across = lambda i: 1500 + sum((above(i, d - 1) % sizes[d] if sizes[d] else above(i, d - 1)) * strides[d] for d in range(rank))
// run: offsets -b 0:out:int32:900 --bytes 1=uint64:{sizes} --bytes 2=int64:{strides} --bytes 3=int32:{sizes} --bytes 4=int32:{rank} --grid 300 --threadgroup 64
// expect buffer 0: f(i) for i in 900: (place, place, across)[i // 300](i % 300)
#include <metal_stdlib>
using namespace metal;

static uint of_uint(uint i, uint rank, constant ulong *sizes, constant long *strides) {
  uint place = 1500;
  for (uint d = 0; d < rank; d++) {
    uint at = rank - 1 - d;
    place += i % sizes[at] * strides[at];
    i /= sizes[at];
  }
  return place;
}

static long of_long(long i, int rank, constant int *sizes, constant long *strides) {
  long place = 1500;
  for (int d = rank - 1; d >= 0 && i > 0; --d) {
    place += i % sizes[d] * strides[d];
    i /= sizes[d];
  }
  return place;
}

static int from_first(uint i, uint rank, constant int *sizes, constant long *strides) {
  int place = 1500;
  for (uint d = 0; d < rank; d++) {
    place += int(i % uint(sizes[d])) * int(strides[d]);
    i /= uint(sizes[d]);
  }
  return place;
}

kernel void offsets(device int *out [[buffer(0)]], constant ulong *sizes [[buffer(1)]], constant long *strides [[buffer(2)]],
                    constant int *narrow [[buffer(3)]], constant int &rank [[buffer(4)]], uint i [[thread_position_in_grid]]) {
  out[i] = of_uint(i, rank, sizes, strides);
  out[i + 300] = int(of_long(i, rank, narrow, strides));
  out[i + 600] = from_first(i, rank, narrow, strides);
}
