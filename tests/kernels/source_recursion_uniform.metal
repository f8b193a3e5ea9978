// A function that calls itself and only reads is called once for all lanes where they give it the same arguments.
// run: sums -b 0=arange:int32:15 -b 1=7 -b 2:out:int32:70 --grid 70 --threadgroup 32
// let tree = lambda n: 0 if n >= 15 else n + tree(2 * n + 1) + tree(2 * n + 2)
// expect buffer 2: f(i) for i in 70: tree(0) + i + 13
#include <metal_stdlib>
using namespace metal;

static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

static int sum(device const int *tree, int node) {
  return node >= 15 ? 0 : tree[node] + sum(tree, 2 * node + 1) + sum(tree, 2 * node + 2);
}

kernel void sums(device const int *tree [[buffer(0)]], constant int &n [[buffer(1)]], device int *out [[buffer(2)]],
                 uint i [[thread_position_in_grid]]) {
  out[i] = sum(tree, tree[0]) + fibonacci(n) + int(i);
}
