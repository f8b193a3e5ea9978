// Radix sort of long rows. Each pass sorts the elements of a row by one digit of 8 bits, beginning with the lowest, and
// keeps the order of elements whose digits are equal. The text that precedes this one defines the types U, an unsigned
// integer of the element's BITS bits, and R, of places; and the constants BITS, INFINITE (the bits of infinity; 0 for
// integers), SIGNED, INDICES (the result is the elements' places in their row) and DESCENDING. Threadgroups have THREADS
// threads. A row is cut into tiles of TILE contiguous elements; the last may have fewer.

struct radix_size {
  uint columns, tiles;
  uint shift;       // of the digit
  uint first, last; // whether this is the first pass; the last
};

constant constexpr uint THREADS = 256, SIMDGROUPS = THREADS / 32, DIGITS = 256, PER = 16, TILE = PER * THREADS;

// A digit of an element's key. Unsigned keys compare as the elements do: the key of a positive float is its bits with the
// sign bit set, that of a negative one its bits complemented. All NaN have the largest key; both zeros have the same key.
inline uint digit_of(U bits, uint shift) {
  const uint ones = BITS == 32 ? 0xffffffffu : (1u << (BITS & 31)) - 1u, sign = 1u << (BITS - 1), x = bits;
  uint key = SIGNED ? x ^ sign : x;
  if (INFINITE) {
    const uint size = x & ~sign;
    key = size > uint(INFINITE) ? ones : size == 0 ? sign : x & sign ? ~x & ones : x | sign;
  }
  return (DESCENDING ? key ^ ones : key) >> shift & (DIGITS - 1);
}

// Counts the digits of a tile. counts: (rows, DIGITS, tiles). Groups: tiles × rows.
kernel void smelt_radix_count(const device U *x [[buffer(0)]], device uint *counts [[buffer(1)]],
                              constant radix_size &size [[buffer(2)]], uint2 group [[threadgroup_position_in_grid]],
                              uint me [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint found[DIGITS];
  atomic_store_explicit(&found[me], 0u, memory_order_relaxed);
  const device U *row = x + long(group.y) * size.columns;
  const uint first = group.x * TILE + me, columns = size.columns, shift = size.shift;
  U own[PER];
#pragma unroll
  for (uint i = 0; i < PER; i++) own[i] = first + i * THREADS < columns ? row[first + i * THREADS] : U(0);
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (uint i = 0; i < PER; i++) {
    const bool inside = first + i * THREADS < columns;
    const uint digit = digit_of(own[i], shift);
    // Elements of a simdgroup often share the highest digit: one atomic operation then counts all of them.
    if (simd_all(inside && digit == simd_broadcast(digit, 0))) {
      if (me % 32 == 0) atomic_fetch_add_explicit(&found[digit], 32u, memory_order_relaxed);
    } else if (inside) {
      atomic_fetch_add_explicit(&found[digit], 1u, memory_order_relaxed);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  counts[(long(group.y) * DIGITS + me) * size.tiles + group.x] = atomic_load_explicit(&found[me], memory_order_relaxed);
}

constant constexpr uint AHEAD = 8; // counts that a lane loads together

// Replaces each count by the sum of the counts of the tiles before it. totals: (rows, DIGITS), the sums over all tiles. A
// simdgroup computes one digit of a row. Groups: DIGITS / SIMDGROUPS × rows.
kernel void smelt_radix_scan(device uint *counts [[buffer(0)]], device uint *totals [[buffer(1)]],
                             constant radix_size &size [[buffer(2)]], uint2 group [[threadgroup_position_in_grid]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const long line = long(group.y) * DIGITS + group.x * SIMDGROUPS + simdgroup;
  const uint tiles = size.tiles;
  device uint *of = counts + line * tiles;
  uint carry = 0;
  for (uint first = 0; first < tiles; first += 32 * AHEAD) {
    const uint mine = first + lane * AHEAD;
    uint own[AHEAD], sum = 0;
#pragma unroll
    for (uint i = 0; i < AHEAD; i++) own[i] = mine + i < tiles ? of[mine + i] : 0u;
#pragma unroll
    for (uint i = 0; i < AHEAD; i++) {
      const uint count = own[i];
      own[i] = sum;
      sum += count;
    }
    const uint before = carry + simd_prefix_exclusive_sum(sum);
#pragma unroll
    for (uint i = 0; i < AHEAD; i++)
      if (mine + i < tiles) of[mine + i] = before + own[i];
    carry = simd_broadcast(before + sum, 31);
  }
  if (lane == 0) totals[line] = carry;
}

// The sum of `value` over the threads before this one. Calls without a barrier between them need `parts` of their own.
inline uint sum_before(uint value, uint simdgroup, uint lane, threadgroup uint *parts) {
  const uint before = simd_prefix_exclusive_sum(value);
  if (lane == 31) parts[simdgroup] = before + value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint sum = before;
  for (uint i = 0; i < SIMDGROUPS; i++) sum += i < simdgroup ? parts[i] : 0u;
  return sum;
}

// Moves the elements of a tile to where the order by the digit puts them in the row. With INDICES, moves their original
// places along. The tile is sorted in threadgroup memory first, so that elements with the same digit are stored together.
// counts and totals: the results of smelt_radix_scan. Groups: tiles × rows.
kernel void smelt_radix_scatter(const device U *x [[buffer(0)]], const device R *places [[buffer(1)]],
                                const device uint *counts [[buffer(2)]], const device uint *totals [[buffer(3)]],
                                device U *to [[buffer(4)]], device R *to_places [[buffer(5)]],
                                constant radix_size &size [[buffer(6)]], uint2 group [[threadgroup_position_in_grid]],
                                uint me [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint sums[SIMDGROUPS * DIGITS], goes[DIGITS], parts[SIMDGROUPS], row_parts[SIMDGROUPS], held[TILE];
  const uint columns = size.columns, shift = size.shift, first = group.x * TILE, end = min(columns - first, TILE);
  const long start = long(group.y) * columns;
  const uint mine = simdgroup * (32 * PER) + lane; // each simdgroup has 32 * PER contiguous elements
  U own[PER];
  uint rank[PER]; // among the simdgroup's elements with the same digit; later the place in the sorted tile
  x += start + first;
  to += start;
#pragma unroll
  for (uint i = 0; i < PER; i++) own[i] = mine + 32 * i < end ? x[mine + 32 * i] : U(0);
  for (uint i = me; i < SIMDGROUPS * DIGITS; i += THREADS) sums[i] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (uint i = 0; i < PER; i++) {
    const bool inside = mine + 32 * i < end;
    const uint digit = digit_of(own[i], shift);
    uint alike = uint(simd_vote::vote_t(simd_ballot(inside))); // after the loop: the lanes with this lane's digit
#pragma unroll
    for (uint bit = 0; bit < 8; bit++) {
      const bool set = digit >> bit & 1;
      const uint lanes = uint(simd_vote::vote_t(simd_ballot(set)));
      alike &= set ? lanes : ~lanes;
    }
    threadgroup uint *sum = sums + simdgroup * DIGITS + digit;
    const uint below = popcount(alike & ((1u << lane) - 1u)), before = *sum;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (inside && below == 0) *sum = before + popcount(alike);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    rank[i] = before + below;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Thread d finds where elements with digit d begin: in the sorted tile, for each simdgroup; in the row, for the tile.
  uint count = 0;
  for (uint i = 0; i < SIMDGROUPS; i++) {
    const uint those = sums[i * DIGITS + me];
    sums[i * DIGITS + me] = count;
    count += those;
  }
  const uint begin = sum_before(count, simdgroup, lane, parts);
  const uint row_begin = sum_before(totals[long(group.y) * DIGITS + me], simdgroup, lane, row_parts);
  for (uint i = 0; i < SIMDGROUPS; i++) sums[i * DIGITS + me] += begin;
  goes[me] = row_begin + counts[(long(group.y) * DIGITS + me) * size.tiles + group.x] - begin;
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (uint i = 0; i < PER; i++) {
    rank[i] += sums[simdgroup * DIGITS + digit_of(own[i], shift)];
    if (mine + 32 * i < end) held[rank[i]] = own[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint target[PER];
#pragma unroll
  for (uint i = 0; i < PER; i++) {
    const uint at = i * THREADS + me;
    if (at >= end) continue;
    const U value = U(held[at]);
    target[i] = goes[digit_of(value, shift)] + at;
    if (!INDICES || !size.last) to[target[i]] = value;
  }
  if (INDICES) {
    places += start + first;
    to_places += start;
    uint from[PER];
#pragma unroll
    for (uint i = 0; i < PER; i++) {
      const uint at = mine + 32 * i;
      from[i] = size.first ? first + at : at < end ? uint(places[at]) : 0u;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (uint i = 0; i < PER; i++)
      if (mine + 32 * i < end) held[rank[i]] = from[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (uint i = 0; i < PER; i++)
      if (i * THREADS + me < end) to_places[target[i]] = R(held[i * THREADS + me]);
  }
}
