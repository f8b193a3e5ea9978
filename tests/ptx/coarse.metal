// What coarsened code must keep: positions, edges, guards, the order of a thread's own accesses (test_coarse.py).
#include <metal_stdlib>
using namespace metal;

kernel void sum(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    o[i] = a[i] + b[i];
}

kernel void guarded(device const half *a [[buffer(0)]], device half *o [[buffer(1)]], constant uint &n [[buffer(2)]], constant uint &least [[buffer(3)]],
                    uint i [[thread_position_in_grid]]) {
    if (i >= n) return;
    if (i < least) return;
    o[i] = a[i] * half(2);
}

kernel void bytes(device const uchar *a [[buffer(0)]], device const ushort *b [[buffer(1)]], device uint *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    o[i] = a[i] * 3u + b[i];
}

kernel void narrow(device const char *a [[buffer(0)]], device char *o [[buffer(1)]], constant int &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (int(i) < n) o[i] = char(a[i] + 5);
}

kernel void wide(device const long *a [[buffer(0)]], device long *o [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    o[i] = a[i] * 3 - 1;
}

kernel void places(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]], uint i [[thread_position_in_grid]], uint g [[threadgroup_position_in_grid]],
                   uint t [[thread_position_in_threadgroup]], uint own [[threads_per_threadgroup]], uint full [[dispatch_threads_per_threadgroup]],
                   uint index [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]],
                   uint count [[simdgroups_per_threadgroup]], uint all [[threads_per_grid]], uint groups [[threadgroups_per_grid]]) {
    o[i] = a[g * full + t] + i + 3 * g + 5 * t + 7 * own + 11 * full + 13 * index + 17 * lane + 19 * s + 23 * count + 29 * all + 31 * groups;
}

kernel void places3(device uint *o [[buffer(0)]], uint3 p [[thread_position_in_grid]], uint3 g [[threadgroup_position_in_grid]],
                    uint3 t [[thread_position_in_threadgroup]], uint3 own [[threads_per_threadgroup]], uint3 full [[dispatch_threads_per_threadgroup]],
                    uint index [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]],
                    uint count [[simdgroups_per_threadgroup]], uint3 all [[threads_per_grid]], uint3 groups [[threadgroups_per_grid]]) {
    uint3 v = 3 * g + 5 * t + 7 * own + 11 * full + 29 * all + 31 * groups;
    o[(p.z * all.y + p.y) * all.x + p.x] = v.x + 37 * v.y + 41 * v.z + 13 * index + 17 * lane + 19 * s + 23 * count;
}

kernel void transposed(device const float *a [[buffer(0)]], device float *o [[buffer(1)]], constant uint &w [[buffer(2)]], constant uint &h [[buffer(3)]],
                       uint2 p [[thread_position_in_grid]]) {
    o[p.y * w + p.x] = a[p.x * h + p.y];
}

kernel void rows(device const short *a [[buffer(0)]], device const short *b [[buffer(1)]], device short *o [[buffer(2)]], constant uint &w [[buffer(3)]],
                 uint2 p [[thread_position_in_grid]]) {
    if (p.x >= w) return;
    o[p.y * w + p.x] = a[p.y * w + p.x] + b[p.x];
}

kernel void broadcast(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *o [[buffer(2)]], constant uint &n [[buffer(3)]],
                      uint i [[thread_position_in_grid]]) {
    o[i] = a[i] - b[i % n];
}

kernel void shifted(device const float *a [[buffer(0)]], device float *o [[buffer(1)]], constant uint &from [[buffer(2)]], constant uint &to [[buffer(3)]],
                    uint i [[thread_position_in_grid]]) {
    o[i + to] = a[i + from] + 1;
}

kernel void strided(device const float *a [[buffer(0)]], device float *o [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    o[2 * i] = a[3 * i] + a[3 * i + 1];
}

kernel void backwards(device const int *a [[buffer(0)]], device int *o [[buffer(1)]], uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) {
    o[n - 1 - i] = a[i] * 2;
}

kernel void gathered(device const uint *index [[buffer(0)]], device const float *a [[buffer(1)]], device float *o [[buffer(2)]],
                     uint i [[thread_position_in_grid]]) {
    o[i] = a[index[i]];
}

// Ways that differ by thread, a load behind where they meet, and an end in between.
kernel void ways(device const int *a [[buffer(0)]], device const int *b [[buffer(1)]], device int *o [[buffer(2)]], device int *p [[buffer(3)]],
                 uint i [[thread_position_in_grid]]) {
    int x = a[i];
    if (x % 3 == 0) x += b[i] * 2;
    else if (x % 3 == 1) p[i] = x;
    if (x % 5 == 0) return;
    switch (x & 3) {
    case 0: x += 7; break;
    case 1: p[i] = -x; break;
    default: x *= 3;
    }
    o[i] = x - b[i];
}

// A thread reads what it wrote: `b` may be `o`.
kernel void after(device const int *a [[buffer(0)]], device int *o [[buffer(1)]], device const int *b [[buffer(2)]], device int *p [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    o[i] = a[i] + 1;
    p[i] = b[i] * 2;
}

kernel void in_place(device float *a [[buffer(0)]], uint i [[thread_position_in_grid]]) { a[i] = a[i] * 2 + 1; }

kernel void filled(device half *o [[buffer(0)]], uint i [[thread_position_in_grid]]) { o[i] = half(i & 255); }

kernel void pairs(device const float2 *a [[buffer(0)]], device half2 *o [[buffer(1)]], uint i [[thread_position_in_grid]]) { o[i] = half2(a[i].yx); }

// ---- Loops, whose rounds may run together.

kernel void scaled_rows(device const float *a [[buffer(0)]], device float *o [[buffer(1)]], constant uint &w [[buffer(2)]],
                        uint r [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    for (uint c = t; c < w; c += n) o[r * w + c] = a[r * w + c] * 2;
}

kernel void rows_in_place(device int *a [[buffer(0)]], constant uint &w [[buffer(1)]], uint r [[threadgroup_position_in_grid]],
                          uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    device int *row = a + r * w;
    for (uint c = t; c < w; c += n) row[c] = row[c] * 3 - 1;
}

// Sums as they grow, and the last of each thread's.
kernel void running(device const int *a [[buffer(0)]], device const int *b [[buffer(1)]], device int *o [[buffer(2)]], device int *last [[buffer(3)]],
                    constant int &w [[buffer(4)]], uint r [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                    uint n [[threads_per_threadgroup]]) {
    int sum = 0, before = 7;
    for (int c = t; c < w; c += n) {
        sum += a[r * w + c] * before;
        before = b[c];
        o[r * w + c] = sum;
    }
    last[r * n + t] = sum + before;
}

kernel void gathered_rows(device const uint *index [[buffer(0)]], device const float *a [[buffer(1)]], device float *o [[buffer(2)]],
                          constant uint &w [[buffer(3)]], uint r [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
    for (uint c = t; c < w; c += 64) o[r * w + c] = a[index[c]] + 1;
}

// Every thread runs the same number of rounds; those past the row's end do nothing.
kernel void guarded_rows(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *o [[buffer(2)]],
                         constant uint &w [[buffer(3)]], uint r [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
    const uint rounds = (w + 63) / 64;
    for (uint i = 0; i < rounds; i++) {
        const uint c = t + i * 64;
        if (c < w) o[r * w + c] = a[r * w + c] * b[c] + 1;
    }
}

// The elements of a window around each place, with zeros beyond the row: as few as there are, or many; from its right, too.
kernel void windows(device const int *a [[buffer(0)]], device int *o [[buffer(1)]], device int *turned [[buffer(2)]], constant int &w [[buffer(3)]],
                    constant int &size [[buffer(4)]], uint at [[thread_position_in_grid]]) {
    const int i = at;
    for (int k = 0; k < size; k++) {
        const int x = i + k - size / 2;
        o[k * w + i] = x >= 0 && x < w ? a[x] : 0;
    }
    for (int k = size; k != 0; k--) {
        const int x = i + k - size / 2;
        turned[(size - k) * w + i] = x >= 0 && x < w ? a[x] : 0;
    }
}

// Four neighbours, each behind its own guard. Also their sum, and the place of the last one.
kernel void guarded_elements(device const int *a [[buffer(0)]], device int *o [[buffer(1)]], device int *last [[buffer(2)]], constant uint &w [[buffer(3)]],
                             uint r [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    int sum = 5, place = -1;
    for (uint c = t * 4; c < w; c += n * 4)
        for (uint k = 0; k < 4; k++)
            if (c + k < w) {
                const int x = a[r * w + c + k];
                o[r * w + c + k] = x * 3 + sum;
                sum += x;
                place = c + k;
            }
    last[(r * n + t) * 2] = sum;
    last[(r * n + t) * 2 + 1] = place;
}

// A load whose address was loaded in the round before.
kernel void chased(device const int *a [[buffer(0)]], device const uint *next [[buffer(1)]], device int *o [[buffer(2)]], constant uint &w [[buffer(3)]],
                   uint r [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    int sum = 1;
    uint at = 0;
    for (uint c = t; c < w; c += n) {
        sum = sum * 3 + a[at];
        at = next[r * w + c];
    }
    o[r * n + t] = sum;
}

// Nothing is stored before the end: sums in order, the last index, and a sum of elements whose indexes are loaded.
kernel void summed(device const int *a [[buffer(0)]], device const uint *index [[buffer(1)]], device const int *b [[buffer(2)]],
                   device int *o [[buffer(3)]], constant uint &w [[buffer(4)]], uint r [[threadgroup_position_in_grid]],
                   uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    int sum = 1, gathered = 0, last = -1;
    for (uint c = t; c < w; c += n) {
        sum = sum * 3 + a[r * w + c];
        last = c;
    }
    for (uint c = t; c < w; c += n) gathered = gathered * 5 + b[index[r * w + c]];
    device int *own = o + (r * n + t) * 3;
    own[0] = sum;
    own[1] = last;
    own[2] = gathered;
}

// The same sum, in rounds that some threads skip.
kernel void guarded_sums(device const int *a [[buffer(0)]], device int *o [[buffer(1)]], constant uint &w [[buffer(2)]],
                         uint r [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
    const uint rounds = (w + 63) / 64;
    int sum = 1;
    for (uint i = 0; i < rounds; i++) {
        const uint c = t + i * 64;
        if (c < w) sum = sum * 3 + a[r * w + c];
    }
    o[r * 64 + t] = sum;
}

// Four elements of a thread, one after another; the last thread has the rest.
kernel void fours(device const int *a [[buffer(0)]], device const int *b [[buffer(1)]], device int *o [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint t [[thread_position_in_grid]]) {
    const uint at = t * 4;
    if (at + 4 > n)
        for (uint k = 0; at + k < n; k++) o[at + k] = a[at + k] * 3 - b[at + k];
    else
        for (uint k = 0; k < 4; k++) o[at + k] = a[at + k] * 3 - b[at + k] + o[at + n % 4];
}

// A round reads what the one before it wrote.
kernel void chained(device int *a [[buffer(0)]], constant uint &w [[buffer(1)]], uint r [[threadgroup_position_in_grid]],
                    uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    device int *row = a + r * (w + 64);
    for (uint c = t; c < w; c += n) row[c + n] = row[c] + 1;
}

// Much arithmetic on few loaded bytes: two rounds.
static int stirred(int v) {
    uint x = uint(v);
    for (int k = 0; k < 5; k++) x = (x ^ x >> 7) * 2654435761u + 12345u;
    return int(x);
}

kernel void much(device const short *a [[buffer(0)]], device short *o [[buffer(1)]], constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= n) return;
    o[i] = short(stirred(a[i]));
}

// The result depends on the group and on the place in it; groups' rows may begin anywhere.
kernel void much_places(device const short *a [[buffer(0)]], device uint *o [[buffer(1)]], constant uint &pitch [[buffer(2)]],
                        uint g [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                        uint index [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                        uint s [[simdgroup_index_in_threadgroup]], uint i [[thread_position_in_grid]]) {
    o[i] = uint(stirred(a[g * pitch + t])) + 3 * g + 5 * t + 7 * index + 11 * lane + 13 * s;
}

// A store that neighbours share, then one that some threads do, which must come after it.
kernel void much_stored(device const short *a [[buffer(0)]], device short *o [[buffer(1)]], device int *p [[buffer(2)]], uint2 at [[thread_position_in_grid]],
                        uint2 size [[threads_per_grid]]) {
    const uint i = at.y * size.x + at.x;
    const int v = stirred(a[i]);
    o[i] = short(v);
    if (v % 3 == 0) p[i] = v;
}

// Loops over the grid.
kernel void strides(device const half *a [[buffer(0)]], device half *out [[buffer(1)]], constant uint &n [[buffer(2)]],
                    constant uint &step [[buffer(3)]], uint first [[thread_position_in_grid]]) {
  for (uint i = first; i < n; i += step) out[i] = half(float(a[i]) * 3 + 1);
}
kernel void strides_long(device const float *a [[buffer(0)]], device const short *b [[buffer(1)]], device float *out [[buffer(2)]],
                         constant uint &n [[buffer(3)]], uint first [[thread_position_in_grid]], uint threads [[threads_per_grid]]) {
  for (ulong i = first; i < n; i += threads) out[i] = a[i] + float(b[i]);
}
// What a round leaves for the next one.
kernel void strides_summed(device const int *a [[buffer(0)]], device int *out [[buffer(1)]], constant uint &n [[buffer(2)]],
                           uint first [[thread_position_in_grid]], uint threads [[threads_per_grid]]) {
  if (first >= n) return;
  int sum = int(first) * 7, rounds = 0;
  for (uint i = first; i < n; i += threads) {
    sum += a[i] * ++rounds;
    out[i] = sum;
  }
}
kernel void strides_in_place(device float *a [[buffer(0)]], constant uint &n [[buffer(1)]], uint first [[thread_position_in_grid]],
                             uint threads [[threads_per_grid]]) {
  for (uint i = first; i < n; i += threads) a[i] = a[i] * 2 + 1;
}
// Some threads have more rounds than their neighbours, everywhere.
kernel void strides_uneven(device const int *a [[buffer(0)]], device int *out [[buffer(1)]], constant uint &n [[buffer(2)]],
                           uint first [[thread_position_in_grid]], uint threads [[threads_per_grid]]) {
  const uint end = first % 3 == 0 ? n : n / 2;
  uint i = first;
  do {
    out[i] = a[i] + int(end);
    i += threads;
  } while (i < end);
}
// A start that wraps between neighbours.
kernel void strides_wrapped(device int *out [[buffer(0)]], constant uint &n [[buffer(1)]], constant uint &offset [[buffer(2)]],
                            uint first [[thread_position_in_grid]], uint threads [[threads_per_grid]]) {
  ulong i = first + offset;
  uint j = first;
  do {
    out[j] = int(i >> 16) + int(i);
    i += threads;
    j += threads;
  } while (i < n);
}
// A difference of 64 bits that is not alike where the sum of 32 bits wraps.
kernel void strides_wrapped_difference(device int *out [[buffer(0)]], constant uint &n [[buffer(1)]], constant uint &offset [[buffer(2)]],
                                       uint first [[thread_position_in_grid]], uint threads [[threads_per_grid]]) {
  const ulong apart = ulong(first + offset) - ulong(first);
  for (uint i = first; i < n; i += threads) out[i] = int(apart >> 32) * 7 + int(apart) + int(i);
}
kernel void wrapped_difference(device int *out [[buffer(0)]], constant uint &offset [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const ulong apart = ulong(i + offset) - ulong(i);
  out[i] = int(apart >> 32) * 7 + int(apart);
}
// Nested branches that only compute; two of them give the same value.
kernel void strides_branches(device const short *a [[buffer(0)]], device short *out [[buffer(1)]], constant uint &n [[buffer(2)]],
                         constant uint &step [[buffer(3)]], uint first [[thread_position_in_grid]]) {
  for (uint i = first; i < n; i += step) {
    const short x = a[i];
    int v = x;
    if (x < 60) {
      v = x * x * 3;
      v ^= v >> 4;
      v += v << 3;
      if (x < -20) v = x < -50 ? v * 5 - 1 : v;
      else v = (v ^ x << 2) * 7 + x;
    }
    out[i] = short(v);
  }
}
// A branch that divides by what is 0 otherwise, and one that stores.
kernel void strides_divided(device const int *a [[buffer(0)]], device int *out [[buffer(1)]], constant uint &n [[buffer(2)]],
                            uint first [[thread_position_in_grid]], uint threads [[threads_per_grid]]) {
  for (uint i = first; i < n; i += threads) {
    int v = a[i];
    if (v % 4 != 0) v = 1000 / (v % 4) + (v << 5) + 100000 % (v % 4 + 7);
    out[i] = v;
  }
}
kernel void strides_stored(device const int *a [[buffer(0)]], device int *out [[buffer(1)]], device int *more [[buffer(2)]],
                           constant uint &n [[buffer(3)]], uint first [[thread_position_in_grid]], uint threads [[threads_per_grid]]) {
  for (uint i = first; i < n; i += threads) {
    out[i] = a[i] * 2;
    if (a[i] % 3 == 0) more[i] = out[i] + 1;
  }
}
// bfloat: rounded alone, where the float is computed with or stored, and in pairs.
kernel void strides_bfloat(device const ushort *a [[buffer(0)]], device ushort *out [[buffer(1)]], device float *wide [[buffer(2)]],
                           constant uint &n [[buffer(3)]], uint first [[thread_position_in_grid]], uint threads [[threads_per_grid]]) {
  for (uint i = first; i < n; i += threads) {
    const bfloat x = bfloat(float(a[i]) * 0.37f), y = x * x + bfloat(1), z = y * x - y;
    out[i] = x > bfloat(20) ? as_type<ushort>(z) : as_type<ushort>(y);
    wide[i] = float(z) * 3;
  }
}
// Sums and products of bfloats are the GPU's own.
kernel void bfloat_own(device const ushort *a [[buffer(0)]], device const ushort *b [[buffer(1)]], device ushort *out [[buffer(2)]],
                       device float *wide [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  const bfloat x = as_type<bfloat>(a[i]), y = as_type<bfloat>(b[i]);
  bfloat square = x * x;
  const bfloat sum = square + y;
  bfloat difference = sum - x;
  difference *= bfloat(0.7f);
  out[i] = as_type<ushort>(difference);
  wide[i] = float(sum) * 3;
}
kernel void bfloat_alone(device const ushort *a [[buffer(0)]], device ushort *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i * 3] = as_type<ushort>(bfloat(float(a[i]) * 1.7f));
}

// Bytes of small tables, at places that differ by lane.
constant char levels[8] = {0, 1, -2, 3, 4, -6, 8, 127}, curve[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constant uchar steps[3] = {7, 200, 255};
kernel void tables(device const uchar *a [[buffer(0)]], device int *o [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const uchar x = a[i];
  o[i] = levels[x & 7] * 3 + curve[x >> 4] * 1000 + curve[x % 11 + 2] + (steps[x % 3] << 20);
}

// The 4-bit parts of words, looked up in tables of floats: copied by the threads, or constant. Only those whose
// upper half is the lower one with the other sign, of bfloats, and that nothing else changes need no loads.
constant float fp4[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
constant float curved[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constant float exact[16] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1, 1.1f, 1.2f, 1.3f, 1.4f, 1.5f, 1.6f};
kernel void nibbles(device const uint *a [[buffer(0)]], device float *o [[buffer(1)]], uint i [[thread_position_in_grid]],
                    uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    threadgroup float copy[16], changed[16], single[2];
    for (uint k = t; k < 16; k += n) copy[k] = fp4[k];
    if (t < 16) changed[t] = fp4[t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 3) changed[5] = 100, single[0] = curved[0], single[1] = curved[1];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint x = a[i], y = x * 2654435761u;
    for (uint k = 0; k < 8; k++) {
        const uint part = x >> (4 * k) & 15;
        o[i * 48 + k] = copy[part];
        o[i * 48 + 8 + k] = curved[part];
        o[i * 48 + 16 + k] = exact[y >> (4 * k) & 15];
        o[i * 48 + 24 + k] = changed[part];
        o[i * 48 + 32 + k] = fp4[y >> (4 * k) & 15] * 8;
        o[i * 48 + 40 + k] = copy[y >> (4 * k) & 15] + single[part & 1];
    }
}

// Narrow integers as floats: loaded, parts of words, and computed.
kernel void narrow_floats(device const ushort *a [[buffer(0)]], device const char *b [[buffer(1)]], device float *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  const ushort u = a[i];
  const uint w = u * 0x10003u + 0x5a000000u;
  const char4 c = as_type<char4>(w);
  float sum = float(char(u)) + float(uchar(u)) * 256 + float(short(u)) * 3 + float(char(u >> 8)) * 5;
  sum += float(uchar(w >> 16)) + float(w >> 24) * 7 + float(w >> 16) + float(short(w >> 8)) * 11;
  o[i] = sum + float(u & 1 ? char(-b[i]) : b[i]) * 13 + float4(c).y + float4(c).w * 3 + float(ushort(w * 3u + u));
}

// Where a group's neighbours begin at an even byte, the next group's begin at an odd one.
kernel void grouped(device const uchar *a [[buffer(0)]], device long *o [[buffer(1)]], uint3 p [[thread_position_in_grid]],
                    uint3 all [[threads_per_grid]], uint3 t [[thread_position_in_threadgroup]], uint3 g [[threadgroup_position_in_grid]]) {
  o[p.y * all.x + p.x] = a[t.x + g.x] * 3 + a[p.y * all.x + p.x];
}

// Small integers, of which conversions to floats are subtractions: masked, two masks together, with a number added, bytes and halves.
kernel void small_floats(device const uint *a [[buffer(0)]], device const ushort *b [[buffer(1)]], device float *out [[buffer(2)]],
                         uint i [[thread_position_in_grid]]) {
  const uint x = a[i];
  const ushort y = b[i];
  const uchar low = uchar(y), high = uchar(y >> 8);
  out += i * 12;
  out[0] = float(x & 0x3f00);
  out[1] = float((x & 15) | (x >> 9 & 0x30));
  out[2] = float(int((x & 63) | (x >> 3 & 0x1000)) - 4000);
  out[3] = float(int(x & 0x1fffff) - 0x1fffff);
  out[4] = float(char(y)) + float(char(y >> 8)) * 256.0f;
  out[5] = float(low) + float(high) * 256.0f;
  out[6] = float(int((low & 15) | (high & 3) << 4) - 32);
  out[7] = float(int(low >> 4 | (high & 0x30)) - 32);
  out[8] = float(short(x >> 16)) * 0.5f + float(ushort(x >> 3));
  out[9] = float(int(char(x >> 24)) + 100);
  out[10] = float(x & 0xffffff) - float(x >> 8 & 0x7fffff);
  out[11] = float(int(high) - 255);
}

// A window of bytes whose columns are cut to the row: no load is one of neighbours.
kernel void window_of_bytes(device const uchar *a [[buffer(0)]], device uchar *o [[buffer(1)]], constant int &w [[buffer(2)]],
                            uint at [[thread_position_in_grid]]) {
    int sum = 0;
    for (int dx = -4; dx <= 4; dx++) sum += a[clamp(int(at) + dx, 0, w - 1)] * dx;
    o[at] = uchar(sum & 255);
}

// Three bytes each, which are not those of a vector, and divisions.
kernel void divided(device const uchar *a [[buffer(0)]], device uchar *o [[buffer(1)]], uint at [[thread_position_in_grid]]) {
    const float r = a[at * 3], g = a[at * 3 + 1], b = a[at * 3 + 2];
    const float x = r / (g + 1.5f), y = g / (b + 1.5f), z = b / (r + 1.5f);
    const float u = x / (y + 1.5f), v = y / (z + 1.5f), q = z / (x + 1.5f);
    o[at * 3] = uchar(u / (q + 0.5f));
    o[at * 3 + 1] = uchar(v / (u + 0.5f));
    o[at * 3 + 2] = uchar(q / (v + 0.5f));
}

// Positions in an image or a stack of images, from one index.
kernel void unraveled(device uint *o [[buffer(0)]], constant uint &w [[buffer(1)]], constant uint &h [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    o[i] = i % w * 1000003 + i / w % h * 1009 + i / (w * h);
}
kernel void unraveled_long(device long *o [[buffer(0)]], constant uint &w [[buffer(1)]], constant uint &h [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    const ulong at = i, rest = at / w;
    o[i] = long((at % w) << 40 | (rest % h) << 20 | rest / h);
}
