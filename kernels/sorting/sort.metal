// Sorting of rows, as bitonic networks: blocks of BLOCK elements in threadgroup memory, longer rows by further steps
// in memory. The text stands behind the types T and R and the constants BLOCK (a power of two), INDICES (the result is
// where elements were, not the elements), DESCENDING and STEPS.
//
// An element's key is its value as an unsigned number that compares as the value does, NaN above all, and below it its
// place: equal elements keep their order, and any two keys differ. Rows are filled up to a power of two with the
// largest key.

struct sort_size { uint rows, columns, padded, width, distance; };

inline ulong key_of(float x) {
  if (x != x) return 0xffffffffu;
  const uint bits = as_type<uint>(x == 0.0f ? 0.0f : x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
inline ulong key_of(half x) { return key_of(float(x)); }
inline ulong key_of(bfloat x) { return key_of(float(x)); }
inline ulong key_of(int x) { return uint(x) ^ 0x80000000u; }
inline ulong key_of(short x) { return key_of(int(x)); }
inline ulong key_of(char x) { return key_of(int(x)); }
inline ulong key_of(uint x) { return x; }
inline ulong key_of(ushort x) { return x; }
inline ulong key_of(uchar x) { return x; }
inline ulong key_of(bool x) { return uint(x); }

inline ulong load(const device T *row, uint columns, uint i) {
  if (i >= columns) return ~0ul;
  const ulong key = key_of(row[i]);
  return (DESCENDING ? key ^ 0xffffffffu : key) << 32 | i;
}
inline void store(const device T *row, device R *out, uint columns, uint i, ulong key) {
  if (i >= columns) return;
  const uint place = uint(key);
  out[i] = INDICES ? R(place) : R(row[place]);
}

// The smaller of two keys of a block `distance` apart goes to the lower place if the run of `width` it lies in ascends.
inline void exchange(threadgroup ulong *keys, uint pair, uint width, uint distance, uint first) {
  const uint low = pair / distance * (2 * distance) + pair % distance, high = low + distance;
  const ulong a = keys[low], b = keys[high];
  const bool swaps = (a > b) == (((first + low) & width) == 0);
  keys[low] = swaps ? b : a;
  keys[high] = swaps ? a : b;
}

// Sorts blocks; the only one of a row in full, others so that neighbours run in opposite directions, as keys.
kernel void smelt_sort_block(const device T *x [[buffer(0)]], device R *out [[buffer(1)]],
                             device ulong *scratch [[buffer(2)]], constant sort_size &size [[buffer(3)]],
                             uint2 group [[threadgroup_position_in_grid]], uint2 at [[thread_position_in_threadgroup]],
                             uint2 threads_per_group [[threads_per_threadgroup]]) {
  threadgroup ulong keys[BLOCK];
  const uint me = at.x, threads = threads_per_group.x, first = group.x * BLOCK;
  const device T *row = x + long(group.y) * size.columns;
  for (uint i = me; i < BLOCK; i += threads) keys[i] = load(row, size.columns, first + i);
  for (uint width = 2; width <= BLOCK; width *= 2)
    for (uint distance = width / 2; distance > 0; distance /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint pair = me; pair < BLOCK / 2; pair += threads) exchange(keys, pair, width, distance, first);
    }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (size.padded == BLOCK) {
    for (uint i = me; i < BLOCK; i += threads) store(row, out + long(group.y) * size.columns, size.columns, i, keys[i]);
  } else {
    for (uint i = me; i < BLOCK; i += threads) scratch[long(group.y) * size.padded + first + i] = keys[i];
  }
}

// STEPS steps between keys that are at least BLOCK apart: `distance` in the first step, half as far in each later one. A
// thread holds the 2^STEPS keys that these steps exchange with one another. Threads: (set of keys, row).
kernel void smelt_sort_step(device ulong *scratch [[buffer(0)]], constant sort_size &size [[buffer(1)]],
                            uint2 at [[thread_position_in_grid]]) {
  constexpr uint COUNT = 1u << STEPS;
  const uint nearest = size.distance >> (STEPS - 1);
  const uint low = at.x / nearest * (COUNT * nearest) + at.x % nearest;
  const bool ascends = (low & size.width) == 0;
  device ulong *to = scratch + long(at.y) * size.padded + low;
  ulong keys[COUNT];
  for (uint i = 0; i < COUNT; i++) keys[i] = to[long(i) * nearest];
  for (uint far = COUNT / 2; far > 0; far /= 2)
    for (uint i = 0; i < COUNT; i++) {
      if (i & far) continue;
      const ulong a = keys[i], b = keys[i + far];
      const bool swaps = (a > b) == ascends;
      keys[i] = swaps ? b : a;
      keys[i + far] = swaps ? a : b;
    }
  for (uint i = 0; i < COUNT; i++) to[long(i) * nearest] = keys[i];
}

// The steps of a width that are less than BLOCK apart; of the last width, also the result.
kernel void smelt_sort_merge(const device T *x [[buffer(0)]], device R *out [[buffer(1)]],
                             device ulong *scratch [[buffer(2)]], constant sort_size &size [[buffer(3)]],
                             uint2 group [[threadgroup_position_in_grid]], uint2 at [[thread_position_in_threadgroup]],
                             uint2 threads_per_group [[threads_per_threadgroup]]) {
  threadgroup ulong keys[BLOCK];
  const uint me = at.x, threads = threads_per_group.x, first = group.x * BLOCK;
  device ulong *from = scratch + long(group.y) * size.padded + first;
  for (uint i = me; i < BLOCK; i += threads) keys[i] = from[i];
  for (uint distance = BLOCK / 2; distance > 0; distance /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint pair = me; pair < BLOCK / 2; pair += threads) exchange(keys, pair, size.width, distance, first);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const long row = long(group.y) * size.columns;
  if (size.width == size.padded) {
    for (uint i = me; i < BLOCK; i += threads) store(x + row, out + row, size.columns, first + i, keys[i]);
  } else {
    for (uint i = me; i < BLOCK; i += threads) from[i] = keys[i];
  }
}
