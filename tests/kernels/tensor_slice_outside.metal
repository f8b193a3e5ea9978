// A slice that begins outside of its tensor has no elements, with signed and with unsigned sizes: a product's destination there is
// not written.
// run: products -b 0=ones:float32:64x64 -b 1=ones:float32:64x64 -b 2:out:float32:128x64 -b 3:out:int32:4 --metal-version 4.0 --grid 128,2 --threadgroup 128
// expect buffer 2: f(i) for i in 8192: 64 if i < 4096 else 0
// expect buffer 3: f(i) for i in 4: [64, 0, 0, 64][i]
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

template <typename I> using sizes = extents<I, dynamic_extent, dynamic_extent>;

kernel void products(device float *a [[buffer(0)]], device float *b [[buffer(1)]], device float *c [[buffer(2)]],
                     device int *left [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  auto rows = tensor(a, sizes<uint>(64, 64)), columns = tensor(b, sizes<uint>(64, 64)), out = tensor(c, sizes<uint>(64, 64));
  auto part = out.slice(0, 128 * group.y);
  matmul2d<matmul2d_descriptor(64, 64, static_cast<int>(dynamic_extent)), execution_simdgroups<4>> product;
  product.run(rows, columns, part);
  if (group.y == 1 && t == 0) {
    auto by_int = tensor(c, sizes<int>(64, 64)).slice(0, 65);
    left[0] = part.get_extent(0), left[1] = part.get_extent(1), left[2] = by_int.get_extent(1), left[3] = by_int.get_extent(0);
  }
}
