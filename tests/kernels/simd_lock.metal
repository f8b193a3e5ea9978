// Threads that take a lock in turns. What they do under it is behind the loop of their attempts once it is optimised.
// for group: 32 96
// for lock: swapped compared
// for buckets: 1 3
// run: {lock} -b 0=zeros:int32:8 -b 1:out:uint32:8 --bytes 2=uint32:{buckets} --grid 200 --threadgroup {group} --timeout 30
// let mine = lambda b: [i for i in range(200) if i % buckets == b]
// expect buffer 1: f(i) for i in 8: (len(mine(i // 2)) if i % 2 else sum(mine(i // 2))) if i < 2 * buckets else 0
// scalar-engine: the other lanes of a gang would wait for ever for the one that has the lock
#include <metal_stdlib>
using namespace metal;

static void work(device uint *sums, uint bucket, uint i) {
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  sums[2 * bucket] += i;
  sums[2 * bucket + 1] += 1;
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
}

kernel void swapped(device atomic_int *locks [[buffer(0)]], device uint *sums [[buffer(1)]], constant uint &buckets [[buffer(2)]],
                    uint i [[thread_position_in_grid]]) {
  uint bucket = i % buckets;
  while (atomic_exchange_explicit(&locks[bucket], 1, memory_order_relaxed) != 0) {}
  work(sums, bucket, i);
  atomic_store_explicit(&locks[bucket], 0, memory_order_relaxed);
}

kernel void compared(device atomic_int *locks [[buffer(0)]], device uint *sums [[buffer(1)]], constant uint &buckets [[buffer(2)]],
                     uint i [[thread_position_in_grid]]) {
  uint bucket = i % buckets;
  bool done = false;
  while (!done) {
    int expected = 0;
    if (atomic_compare_exchange_weak_explicit(&locks[bucket], &expected, 1, memory_order_relaxed, memory_order_relaxed)) {
      work(sums, bucket, i);
      atomic_exchange_explicit(&locks[bucket], 0, memory_order_relaxed);
      done = true;
    }
  }
}
