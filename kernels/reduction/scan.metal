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

kernel void smelt_scan(const device T *x [[buffer(0)]], device R *out [[buffer(1)]],
                       constant scan_size &size [[buffer(2)]], uint group [[threadgroup_position_in_grid]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup A parts[32];
  const uint row = SIMDGROUPS == 1 ? group * simdgroups + simdgroup : group;
  const uint me = SIMDGROUPS == 1 ? lane : simdgroup * 32 + lane;
  if (row >= size.rows) return;
  x += long(row) * size.columns;
  out += long(row) * size.columns;
  A carry = start();
  for (uint base = 0; base < size.columns; base += TEAM) {
    const uint k = base + me, at = REVERSE ? size.columns - 1 - k : k;
    const bool inside = k < size.columns;
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
