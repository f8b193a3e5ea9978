// Cumulative operations along rows: the threads of a team take neighbours, and carry what came before from round to
// round. The text stands behind accumulate.metal with its functions start, combine and element, the types T and R, and
// the constants SIMDGROUPS, REVERSE and EXCLUSIVE.

struct scan_size { uint rows, columns; };
constant constexpr uint TEAM = SIMDGROUPS * 32;

template <typename V> inline V shuffled_up(V a, ushort n) { return simd_shuffle_up(a, n); }
inline bool shuffled_up(bool a, ushort n) { return simd_shuffle_up(uint(a), n) != 0; }
inline long shuffled_up(long a, ushort n) { return as_type<long>(simd_shuffle_up(as_type<uint2>(a), n)); }
inline ulong shuffled_up(ulong a, ushort n) { return as_type<ulong>(simd_shuffle_up(as_type<uint2>(a), n)); }
template <typename V> inline V from_lane(V a, ushort n) { return simd_shuffle(a, n); }
inline bool from_lane(bool a, ushort n) { return simd_shuffle(uint(a), n) != 0; }
inline long from_lane(long a, ushort n) { return as_type<long>(simd_shuffle(as_type<uint2>(a), n)); }
inline ulong from_lane(ulong a, ushort n) { return as_type<ulong>(simd_shuffle(as_type<uint2>(a), n)); }

inline A scan_lanes(A value, uint lane) {
  for (ushort n = 1; n < 32; n *= 2) {
    const A other = shuffled_up(value, n);
    if (lane >= n) value = combine(other, value);
  }
  return value;
}

// The combination of all threads' values, for all threads.
inline A fold(A value, uint simdgroup, uint lane, threadgroup A *parts) {
  value = from_lane(scan_lanes(value, lane), 31);
  if (SIMDGROUPS == 1) return value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 31) parts[simdgroup] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  A sums = start();
  if (lane < SIMDGROUPS) sums = parts[lane];
  return from_lane(scan_lanes(sums, lane), 31);
}

// Elements begin to end - 1 of a row. carry: the combination of the elements before them.
inline void scan_part(const device T *x, device R *out, uint columns, uint begin, uint end, A carry, uint simdgroup,
                      uint lane, threadgroup A *parts) {
  const uint me = SIMDGROUPS == 1 ? lane : simdgroup * 32 + lane;
  for (uint base = begin; base < end; base += TEAM) {
    const uint k = base + me, at = REVERSE ? columns - 1 - k : k;
    const bool inside = k < end;
    A value = start();
    if (inside) value = element(x[at]);
    value = scan_lanes(value, lane);
    A before = carry, total = from_lane(value, 31);
    if (SIMDGROUPS > 1) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (lane == 31) parts[simdgroup] = value;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      A sums = start();
      if (lane < SIMDGROUPS) sums = parts[lane];
      sums = scan_lanes(sums, lane);
      const A earlier = from_lane(sums, ushort(simdgroup ? simdgroup - 1 : 0));
      if (simdgroup) before = combine(carry, earlier);
      total = from_lane(sums, SIMDGROUPS - 1);
    }
    if (EXCLUSIVE) {
      const A previous = shuffled_up(value, 1);
      value = lane ? combine(before, previous) : before;
    } else {
      value = combine(before, value);
    }
    if (inside) out[at] = R(value);
    carry = combine(carry, total);
  }
}

kernel void smelt_scan(const device T *x [[buffer(0)]], device R *out [[buffer(1)]],
                       constant scan_size &size [[buffer(2)]], uint group [[threadgroup_position_in_grid]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup A parts[32];
  const uint row = SIMDGROUPS == 1 ? group * simdgroups + simdgroup : group;
  if (row >= size.rows) return;
  scan_part(x + long(row) * size.columns, out + long(row) * size.columns, size.columns, 0, size.columns, start(),
            simdgroup, lane, parts);
}

// ---- Few long rows: a team computes a chunk of a row. parts: (rows, chunks), the combination of a chunk's elements.

struct long_size { uint columns, chunk, chunks; float unused; };
constant constexpr uint AHEAD = SIMDGROUPS == 1 ? 1 : 8;
inline T element_at(const device T *x, uint columns, uint k) { return x[REVERSE ? columns - 1 - k : k]; }

kernel void smelt_scan_parts(const device T *x [[buffer(0)]], device A *parts [[buffer(1)]],
                             constant long_size &size [[buffer(2)]], uint2 at [[threadgroup_position_in_grid]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]]) {
  threadgroup A shared[32];
  const uint begin = at.x * size.chunk, end = min(begin + size.chunk, size.columns);
  x += long(at.y) * size.columns;
  A sum = start();
  uint k = begin + simdgroup * 32 + lane;
  for (; AHEAD > 1 && k + (AHEAD - 1) * TEAM < end; k += AHEAD * TEAM)
    for (uint i = 0; i < AHEAD; i++) sum = combine(sum, element(element_at(x, size.columns, k + i * TEAM)));
  for (; k < end; k += TEAM) sum = combine(sum, element(element_at(x, size.columns, k)));
  sum = fold(sum, simdgroup, lane, shared);
  if (simdgroup == 0 && lane == 0) parts[at.y * size.chunks + at.x] = sum;
}

kernel void smelt_scan_long(const device T *x [[buffer(0)]], device R *out [[buffer(1)]],
                            const device A *parts [[buffer(2)]], constant long_size &size [[buffer(3)]],
                            uint2 at [[threadgroup_position_in_grid]],
                            uint simdgroup [[simdgroup_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]]) {
  threadgroup A shared[32];
  const uint begin = at.x * size.chunk, end = min(begin + size.chunk, size.columns);
  A carry = start();
  for (uint i = simdgroup * 32 + lane; i < at.x; i += TEAM) carry = combine(carry, parts[at.y * size.chunks + i]);
  carry = fold(carry, simdgroup, lane, shared);
  scan_part(x + long(at.y) * size.columns, out + long(at.y) * size.columns, size.columns, begin, end, carry, simdgroup,
            lane, shared);
}
