// Advice; see bounds.metal.
#include <metal_stdlib>
using namespace metal;

// ---- A grid that does not cover an array, and arguments without use.

// run: -b 0=ones:float32:100 -b 1:out:float32:100 --grid 96 --threadgroup 32 --also advice
// finding: SM020 o[96]
kernel void rounded_down(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  o[i] = a[i];
}

// run: -b 0=ones:float32:256 -b 1:out:float32:256 --grid 32 --threadgroup 32 --also advice
// finding: SM020 o[32]
kernel void one_vector_each(device const float4 *a [[buffer(0)]], device float4 *o [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  o[i] = a[i];
}

// run: -b 0=ones:float32:70 -b 1:out:float32:70 --grid 64 --threadgroup 32 --also advice
// finding: SM020 o[64]
kernel void in_place(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  o[i] = 2 * o[i] + a[i];
}

// run: -b 0=ones:float32:2048 -b 1:out:int32:2048 --grid 32,32 --threadgroup 32 --also advice
// finding: SM020 o[1024]
kernel void half_of_the_rows(device const float *a [[buffer(0)]], device int *o [[buffer(1)]],
                             uint2 i [[thread_position_in_grid]]) {
  o[i.y * 32 + i.x] = int(a[i.y * 32 + i.x]);
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 -b 2=40 --grid 64 --threadgroup 32 --also advice
kernel void threads_to_spare(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                             constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i < n) o[i] = a[i];
}

// run: -b 0=ones:float32:64 -b 1=ones:float32:64 -b 2:out:float32:64 --grid 64 --threadgroup 32 --also advice
// finding: SM021 b
kernel void one_input_of_two(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                             device float *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  o[i] = a[i] + a[i];
}

// run: -b 0=ones:float32:64 -b 1=7 -b 2:out:float32:64 --grid 64 --threadgroup 32 --also advice
// finding: SM021 n
kernel void a_size_without_a_test(device const float *a [[buffer(0)]], constant int &n [[buffer(1)]],
                                  device float *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  o[i] = a[i];
}

// run: -b 0=ones:float32:64 -b 1=zeros:float32:64 -b 2:out:float32:64 --grid 64 --threadgroup 32 --also advice
// finding: SM021 mask
kernel void only_for_its_address(device const float *a [[buffer(0)]], device const float *mask [[buffer(1)]],
                                 device float *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  device const float *row = mask + i;
  o[i] = row > mask ? a[i] : 0;
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 -b 2:out:float32:64 --grid 64 --threadgroup 32 --also advice
// finding: SM021 sums
kernel void an_output_without_values(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                     device float *sums [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  o[i] = a[i];
}

// ---- Banks of threadgroup memory.

// run: -b 0:out:float32:1024 --grid 32,32 --threadgroup 32,32 --also advice
kernel void a_transposed_tile(device float *o [[buffer(0)]], uint2 t [[thread_position_in_threadgroup]]) {
  threadgroup float s[32][32];
  s[t.y][t.x] = t.x;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t.y * 32 + t.x] = s[t.x][t.y]; // SM022 s
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64 --also advice
kernel void every_sixteenth_word(device float *o [[buffer(0)]], uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[1024];
  s[16 * t] = t; // SM022 s
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[16 * t]; // SM022 s
}

// run: -b 0:out:int32:32 --grid 32 --threadgroup 32 --also advice
kernel void columns_by_lanes(device int *o [[buffer(0)]], uint t [[thread_position_in_threadgroup]]) {
  threadgroup int s[32 * 64];
  int sum = 0;
  for (int k = 0; k < 64; k++) s[t * 64 + k] = k; // SM022 s
  for (int k = 0; k < 64; k++) sum += s[t * 64 + k]; // SM022 s
  o[t] = sum;
}

// run: -b 0:out:float32:128 --grid 32 --threadgroup 32 --also advice
kernel void vectors_of_one_bank(device float4 *o [[buffer(0)]], uint t [[thread_position_in_threadgroup]]) {
  threadgroup float4 s[256];
  s[8 * t] = float4(t); // SM022 s
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[8 * t]; // SM022 s
}

// run: -b 0:out:float32:1024 --grid 32,32 --threadgroup 32,32 --also advice
kernel void a_padded_tile(device float *o [[buffer(0)]], uint2 t [[thread_position_in_threadgroup]]) {
  threadgroup float s[32][33];
  threadgroup float4 v[32];
  s[t.y][t.x] = t.x;
  if (t.y == 0) v[t.x] = float4(t.x);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t.y * 32 + t.x] = s[t.x][t.y] + v[t.x].x + v[7].y;
}

// ---- Device memory.

// run: -b 0=ones:float32:64x64 -b 1:out:float32:64 --grid 64 --threadgroup 32 --also advice
kernel void a_row_for_each_thread(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                  uint i [[thread_position_in_grid]]) {
  float sum = 0;
  for (int k = 0; k < 64; k++) sum += a[i * 64 + k]; // SM023 a
  o[i] = sum;
}

// run: -b 0=ones:float32:64x64 -b 1:out:float32:64x64 --grid 64,64 --threadgroup 32 --also advice
kernel void a_transpose(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                        uint2 i [[thread_position_in_grid]]) {
  o[i.x * 64 + i.y] = a[i.y * 64 + i.x]; // SM023 o
}

// run: -b 0=ones:float16:64x64 -b 1:out:float16:64 --grid 64 --threadgroup 64 --also advice
kernel void halves_far_apart(device const half *a [[buffer(0)]], device half *o [[buffer(1)]],
                             uint i [[thread_position_in_grid]]) {
  o[i] = a[i * 64]; // SM023 a
}

struct particle { float x, y, z, mass, charge, spare[11]; };

// run: -b 0=ones:float32:64x16 -b 1:out:float32:64 --grid 64 --threadgroup 64 --also advice
kernel void one_field_of_a_structure(device const particle *p [[buffer(0)]], device float *o [[buffer(1)]],
                                     uint i [[thread_position_in_grid]]) {
  o[i] = p[i].mass; // SM023 p
}

// run: -b 0=ones:float32:64x4 -b 1:out:float32:64 --grid 64 --threadgroup 64 --also advice
kernel void neighbours(device const float4 *a [[buffer(0)]], device float *o [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  float4 v = a[i] + a[0];
  o[i] = v.x + v.y;
}

// ---- Private arrays.

// run: -b 0=arange:int32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64 --also advice
kernel void an_index_from_memory(device const int *a [[buffer(0)]], device float *o [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  float weights[8];
  for (int k = 0; k < 8; k++) weights[k] = k;
  o[i] = weights[a[i] % 8]; // SM024 weights
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64 --also advice
kernel void a_histogram(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
  int counts[16] = {0};
  for (int k = 0; k < 8; k++) counts[(a[i] + k * k) % 16] += 1; // SM024 counts
  int most = 0;
  for (int k = 0; k < 16; k++) most = max(most, counts[k]);
  o[i] = most;
}

// run: -b 0:out:uint32:64 --grid 64 --threadgroup 64 --also advice
kernel void a_stack(device uint *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  uint stack[8], depth = 0;
  for (uint k = 0; k < 6; k++)
    if ((i ^ k) & 1 || true) stack[(i + depth++) % 8] = k; // SM024 stack
  o[i] = stack[(i + 2) % 8]; // SM024 stack
}

// run: -b 0=arange:int32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64 --also advice
kernel void a_component_by_index(device const int *a [[buffer(0)]], device float *o [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  float rows[2][4];
  for (int k = 0; k < 4; k++) rows[0][k] = rows[1][k] = a[i] + k;
  o[i] = rows[i & 1][2]; // SM024 rows
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64 --also advice
kernel void the_same_index_in_all_lanes(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float v[8];
  for (int k = 0; k < 8; k++) v[k] = k;
  float sum = 0;
  for (int k = 0; k < 8; k++) sum += v[7 - k];
  o[i] = sum;
}

// ---- Atomic sums of floats.

// run: -b 0=normal:float32:64 -b 1:out:float32:1 --grid 64 --threadgroup 32 --also advice
kernel void a_sum_of_all(device const float *a [[buffer(0)]], device atomic_float *o [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(o, a[i], memory_order_relaxed); // SM025 o[0]
}

// run: -b 0=normal:float32:64 -b 1:out:float32:8 --grid 64 --threadgroup 32 --also advice
kernel void a_histogram_of_floats(device const float *a [[buffer(0)]], device atomic_float *o [[buffer(1)]],
                                  uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&o[i % 8], a[i], memory_order_relaxed); // SM025 o
}

// run: -b 0=normal:float32:64 -b 1:out:uint32:1 --grid 64 --threadgroup 32 --also advice
kernel void a_sum_by_exchange(device const float *a [[buffer(0)]], device atomic_uint *o [[buffer(1)]],
                              uint i [[thread_position_in_grid]]) {
  uint before = atomic_load_explicit(o, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(o, &before, as_type<uint>(as_type<float>(before) + a[i]), // SM025 o
                                                memory_order_relaxed, memory_order_relaxed));
}

// run: -b 0=normal:float32:64 -b 1:out:uint32:1 --grid 64 --threadgroup 32 --also advice
kernel void the_greatest_by_exchange(device const float *a [[buffer(0)]], device atomic_uint *o [[buffer(1)]],
                                     uint i [[thread_position_in_grid]]) {
  uint before = atomic_load_explicit(o, memory_order_relaxed);
  while (as_type<float>(before) < a[i] &&
         !atomic_compare_exchange_weak_explicit(o, &before, as_type<uint>(a[i]), memory_order_relaxed, memory_order_relaxed));
}

// run: -b 0=normal:float32:64 -b 1:out:float32:1 --grid 64 --threadgroup 64 --also advice
kernel void a_sum_in_threadgroup_memory(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                        uint i [[thread_position_in_grid]]) {
  threadgroup atomic_float sum;
  if (i == 0) atomic_store_explicit(&sum, 0.0f, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&sum, a[i], memory_order_relaxed); // SM025 sum
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) o[0] = atomic_load_explicit(&sum, memory_order_relaxed);
}

// run: -b 0=normal:float32:64 -b 1:out:float32:1 --grid 64 --threadgroup 32 --also advice
kernel void a_difference_of_all(device const float *a [[buffer(0)]], device atomic_float *o [[buffer(1)]],
                                uint i [[thread_position_in_grid]]) {
  if (i % 32 == 0) atomic_fetch_sub_explicit(o, a[i], memory_order_relaxed); // SM025 o
}

// run: -b 0=arange:int32:64 -b 1:out:int32:1 -b 2:out:float32:64 --grid 64 --threadgroup 32 --also advice
kernel void whole_numbers_have_no_order(device const int *a [[buffer(0)]], device atomic_int *o [[buffer(1)]],
                                        device atomic_float *own [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(o, a[i], memory_order_relaxed);
  atomic_fetch_add_explicit(&own[i], 1.0f, memory_order_relaxed);
}

// ---- Comparisons that are true for no thread of any grid.

// run: -b 0:out:float32:64 --grid 64 --threadgroup 32 --also advice
kernel void a_simdgroup_of_64(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]],
                              uint lane [[thread_index_in_simdgroup]]) {
  if (lane >= 32) o[63] = 0; // SM027
  o[i] = lane;
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 32 --also advice
kernel void a_guard_of_the_wrong_position(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]],
                                          ushort3 t [[thread_position_in_threadgroup]],
                                          ushort3 size [[threads_per_threadgroup]]) {
  if (t.x >= size.x || i > 1000) return; // SM027
  o[i] = t.x;
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 32 --also advice
kernel void more_threads_than_any_group_has(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]],
                                            uint t [[thread_index_in_threadgroup]]) {
  o[i] = t == 1024 ? 1.0f : 2.0f; // SM027
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 32 --also advice
kernel void a_row_past_the_tile(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                                uint i [[thread_position_in_grid]],
                                uint lane [[thread_index_in_simdgroup]]) {
  uint row = lane / 8, sum = a[i];
  for (uint k = 0; k < 4; k++)
    if (row + k > 8) sum += k; // SM027
  if (lane < 8 && row >= 1) sum = 0; // SM027
  o[i] = sum;
}

static uint at_most(uint value, uint most) {
  if (value > most) return most;
  return value;
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --bytes 2=uint32:64 --grid 64 --threadgroup 32 --also advice
kernel void conditions_that_other_grids_satisfy(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                                                constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]],
                                                uint2 t [[thread_position_in_threadgroup]],
                                                uint s [[simdgroup_index_in_threadgroup]],
                                                uint lane [[thread_index_in_simdgroup]],
                                                uint size [[threads_per_threadgroup]]) {
  if (i >= n) return;
  uint sum = at_most(lane, 31) + at_most(lane, 7) + at_most(i, 100000);
  if (size >= 512 && t.x < 256) sum += 2;
  if (t.y > 0 || s == 31) sum += a[0];
  for (uint k = lane; k < 32; k += 32) sum += k;
  if (a[i] > 1000 || (a[i] & 3) == 3) sum++;
  o[i] = sum;
}

// The same comparison, once where it cannot hold and once where it can.
// run: -b 0:out:float32:64 --grid 64 --threadgroup 32 --also advice
kernel void twice_compared(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]],
                           uint lane [[thread_index_in_simdgroup]]) {
  float x = 0;
  if (lane > 20) x = 1;
  if (lane < 10) x += lane > 20 ? 2.0f : 3.0f;
  o[i] = x;
}

template <uint most> float at_most(uint v) {
  if (v > most) return 1;
  return 2;
}

// Instances of one template.
// run: -b 0:out:float32:64 --grid 64 --threadgroup 32 --also advice
kernel void two_instances(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]],
                          uint lane [[thread_index_in_simdgroup]]) {
  o[i] = at_most<31>(lane) + at_most<7>(lane);
}

// Other bits are added to the number.
// run: -b 0=arange:int16:64 -b 1:out:float32:64 --grid 64 --threadgroup 32 --also advice
kernel void other_bits(device const short *a [[buffer(0)]], device float *o [[buffer(1)]],
                       uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  const short s = a[i];
  const ushort f = ushort(lane | s);
  if (f > 31) o[i] = 1;
  else o[i] = 2;
}

template <uint most> uint clipped(uint value) {
  return value >= most ? most : value;
}

// Comparisons that are true in another instance or another call, which the compiler evaluates.
// run: -b 0:out:uint32:64 --grid 64 --threadgroup 32 --also advice
kernel void calls_that_fold_away(device uint *o [[buffer(0)]], uint i [[thread_position_in_grid]],
                                 uint lane [[thread_index_in_simdgroup]]) {
  o[i] = clipped<64>(lane) + clipped<16>(20);
  o[i] += at_most(lane, 40) + at_most(50, 40);
}
