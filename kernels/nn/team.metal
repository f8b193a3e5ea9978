// Rows that teams of threads compute: a simdgroup, or all SIMDGROUPS simdgroups of a threadgroup. The text stands
// behind `using namespace metal;` and the constant SIMDGROUPS.
struct row_size { uint rows, columns; };

struct team {
  uint row;       // which row this thread works on
  uint me;        // the thread's number in its team
  uint simdgroup; // of the threadgroup
  threadgroup float *parts;
};
constant constexpr uint TEAM = SIMDGROUPS * 32;

inline team team_of(uint group, uint simdgroup, uint simdgroups, uint lane, threadgroup float *parts) {
  if (SIMDGROUPS == 1) return {group * simdgroups + simdgroup, lane, simdgroup, parts};
  return {group, simdgroup * 32 + lane, simdgroup, parts};
}
inline float team_join(team t, float value, float identity, bool largest) {
  value = largest ? simd_max(value) : simd_sum(value);
  if (SIMDGROUPS == 1) return value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t.me % 32 == 0) t.parts[t.simdgroup] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  value = t.me % 32 < SIMDGROUPS ? t.parts[t.me % 32] : identity;
  return largest ? simd_max(value) : simd_sum(value);
}
inline float team_max(team t, float value) { return team_join(t, value, -INFINITY, true); }
inline float team_sum(team t, float value) { return team_join(t, value, 0.0f, false); }

// Few long rows: a team computes a chunk of a row, and later kernels read the results of the first for all chunks.
struct long_size { uint columns, chunk, chunks; float eps; };
inline team team_of_chunk(uint simdgroup, uint lane, threadgroup float *parts) {
  return {0, simdgroup * 32 + lane, simdgroup, parts};
}
// Elements that a thread loads before it uses the first, so that several loads are in flight.
constant constexpr uint AHEAD = SIMDGROUPS == 1 ? 1 : 8;
