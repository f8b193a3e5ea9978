// Images without textures (resize, box blur, an edge filter), bodies under gravity, cellular automata, hashes, a fractal, distances.
#include <metal_stdlib>
using namespace metal;

// ---- Bilinear resize of interleaved bytes, centres aligned or corners.
struct image_size {
  ushort width, height, channels;
};
constant bool align_corners [[function_constant(0)]];

METAL_FUNC float source_place(ushort at, ushort to, ushort from) {
  if (align_corners) return to > 1 ? float(at) * (from - 1) / (to - 1) : 0;
  return max((at + 0.5f) * from / to - 0.5f, 0.0f);
}
kernel void resize_bilinear(device const uchar *in [[buffer(0)]], device uchar *out [[buffer(1)]], constant image_size *sizes [[buffer(2)]],
                            ushort3 at [[thread_position_in_grid]]) {
  const image_size from = sizes[0], to = sizes[1];
  const float2 place = float2(source_place(at.x, to.width, from.width), source_place(at.y, to.height, from.height));
  const ushort2 low = min(ushort2(place), ushort2(from.width - 1, from.height - 1));
  const ushort2 high = min(low + 1, ushort2(from.width - 1, from.height - 1));
  const float2 share = place - float2(low);
  auto pixel = [&](ushort x, ushort y) { return float(in[(uint(y) * from.width + x) * from.channels + at.z]); };
  const float4 corners = float4(pixel(low.x, low.y), pixel(high.x, low.y), pixel(low.x, high.y), pixel(high.x, high.y));
  const float2 rows = mix(corners.xz, corners.yw, share.x);
  out[(uint(at.y) * to.width + at.x) * to.channels + at.z] = uchar(rint(mix(rows.x, rows.y, share.y)));
}

// Box blur along rows with a running sum, a thread a row; once more on the transposed image makes it two-dimensional.
kernel void box_blur_rows(device const uchar4 *in [[buffer(0)]], device uchar4 *out [[buffer(1)]], constant int3 &p /* width, height, radius */ [[buffer(2)]],
                          uint y [[thread_position_in_grid]]) {
  if (int(y) >= p.y) return;
  const int width = p.x, radius = p.z, count = 2 * radius + 1;
  device const uchar4 *row = in + y * width;
  uint4 sum = uint4(row[0]) * radius;
  for (int x = 0; x < radius; x++) sum += uint4(row[min(x, width - 1)]);
  for (int x = 0; x < width; x++) {
    sum += uint4(row[min(x + radius, width - 1)]);
    out[x * p.y + y] = uchar4((sum + count / 2) / count); // transposed
    sum -= uint4(row[max(x - radius, 0)]);
  }
}

// Sobel's filter over a tile with its border in threadgroup memory.
kernel void sobel(device const half *in [[buffer(0)]], device half *out [[buffer(1)]], constant int2 &size [[buffer(2)]],
                  uint2 group [[threadgroup_position_in_grid]], ushort2 t [[thread_position_in_threadgroup]],
                  uint2 at [[thread_position_in_grid]]) {
  constexpr short SIDE = 16, WIDE = SIDE + 2;
  threadgroup half tile[WIDE][WIDE];
  for (short i = t.y * SIDE + t.x; i < WIDE * WIDE; i += SIDE * SIDE) {
    const int2 from = clamp(int2(group * SIDE) + int2(i % WIDE, i / WIDE) - 1, int2(0), size - 1);
    tile[i / WIDE][i % WIDE] = in[from.y * size.x + from.x];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (any(int2(at) >= size)) return;
  const half3x3 weights = half3x3(half3(-1, -2, -1), half3(0), half3(1, 2, 1));
  half gx = 0, gy = 0;
  for (short dy = 0; dy < 3; dy++)
    for (short dx = 0; dx < 3; dx++) {
      const half v = tile[t.y + dy][t.x + dx];
      gx += weights[dx][dy] * v;
      gy += weights[dy][dx] * v;
    }
  out[at.y * size.x + at.x] = sqrt(gx * gx + gy * gy);
}

// ---- Bodies: positions with masses in tiles of a threadgroup; leapfrog.
kernel void n_body_step(device const float4 *positions [[buffer(0)]], device float4 *moved [[buffer(1)]], device packed_float3 *speeds [[buffer(2)]],
                        constant uint &n [[buffer(3)]], constant float2 &how /* time step, softening */ [[buffer(4)]],
                        threadgroup float4 *tile [[threadgroup(0)]], uint i [[thread_position_in_grid]],
                        uint t [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
  const float4 me = i < n ? positions[i] : float4(0);
  float3 pull = 0;
  for (uint base = 0; base < n; base += threads) {
    tile[t] = base + t < n ? positions[base + t] : float4(0); // no mass, no pull
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < threads; k++) {
      const float3 away = tile[k].xyz - me.xyz;
      const float inverse = rsqrt(length_squared(away) + how.y);
      pull += tile[k].w * inverse * inverse * inverse * away;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (i >= n) return;
  const float3 speed = float3(speeds[i]) + how.x * pull;
  speeds[i] = speed;
  moved[i] = float4(me.xyz + how.x * speed, me.w);
}

// ---- Automata: Life on bytes that wrap around; a line of 32 cells a word by a rule's number.
kernel void life(device const uchar *now [[buffer(0)]], device uchar *next [[buffer(1)]], uint2 at [[thread_position_in_grid]],
                 uint2 size [[threads_per_grid]]) {
  uchar around = 0;
  for (uint dy = size.y - 1; dy <= size.y + 1; dy++)
    for (uint dx = size.x - 1; dx <= size.x + 1; dx++)
      if (dy != size.y || dx != size.x) around += now[(at.y + dy) % size.y * size.x + (at.x + dx) % size.x];
  switch (around) {
    case 2: next[at.y * size.x + at.x] = now[at.y * size.x + at.x]; break;
    case 3: next[at.y * size.x + at.x] = 1; break;
    default: next[at.y * size.x + at.x] = 0;
  }
}
kernel void rule_line(device uint *lines [[buffer(0)]], constant uchar &rule [[buffer(1)]], constant uint &steps [[buffer(2)]],
                      ushort lane [[thread_index_in_simdgroup]], uint i [[thread_position_in_grid]]) {
  // 1024 cells a simdgroup, around a ring.
  uint cells = lines[i];
  for (uint step = 0; step < steps; step++) {
    const uint left = simd_shuffle_rotate_up(cells, 1), right = simd_shuffle_rotate_down(cells, 1);
    const uint l = cells << 1 | left >> 31, r = cells >> 1 | right << 31;
    uint next = 0;
    for (uchar k = 0; k < 8; k++)
      if (rule >> k & 1) next |= (k & 4 ? l : ~l) & (k & 2 ? cells : ~cells) & (k & 1 ? r : ~r);
    cells = next;
  }
  lines[i] = cells;
}

// ---- SHA-256 of messages of one length, a thread each; xxHash32 of rows.
namespace sha256 {
// The first 32 bits of the fractions of the cube roots of the first 64 primes.
constant uint k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
METAL_FUNC uint right(uint x, uint by) { return rotate(x, 32 - by); }
struct state {
  uint h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  void block(thread const uint (&words)[16]) {
    uint w[16], v[8];
    for (int i = 0; i < 16; i++) w[i] = words[i];
    for (int i = 0; i < 8; i++) v[i] = h[i];
    for (int i = 0; i < 64; i++) {
      if (i >= 16) {
        const uint a = w[(i + 1) & 15], b = w[(i + 14) & 15];
        w[i & 15] += (right(a, 7) ^ right(a, 18) ^ (a >> 3)) + w[(i + 9) & 15] + (right(b, 17) ^ right(b, 19) ^ (b >> 10));
      }
      const uint t1 = v[7] + (right(v[4], 6) ^ right(v[4], 11) ^ right(v[4], 25)) +
                      ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i & 15];
      const uint t2 = (right(v[0], 2) ^ right(v[0], 13) ^ right(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
      for (int j = 7; j > 0; j--) v[j] = v[j - 1];
      v[4] += t1;
      v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) h[i] += v[i];
  }
};
} // namespace sha256

kernel void sha256_rows(device const uchar *messages [[buffer(0)]], device uchar4 *digests [[buffer(1)]], constant uint &length [[buffer(2)]],
                        constant uint &count [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  if (i >= count) return;
  device const uchar *message = messages + i * length;
  sha256::state state;
  const uint blocks = (length + 8) / 64 + 1;
  for (uint b = 0; b < blocks; b++) {
    uint words[16];
    for (uint w = 0; w < 16; w++) {
      uchar4 four = 0;
      for (uint j = 0; j < 4; j++) {
        const uint at = b * 64 + w * 4 + j;
        four[j] = at < length ? message[at] : at == length ? 0x80 : 0;
      }
      words[w] = as_type<uint>(four.wzyx);
    }
    if (b == blocks - 1) words[15] = length * 8;
    state.block(words);
  }
  for (uint w = 0; w < 8; w++) digests[i * 8 + w] = as_type<uchar4>(state.h[w]).wzyx;
}

kernel void xxhash32_rows(device const uint *rows [[buffer(0)]], device uint *hashes [[buffer(1)]], constant uint2 &p /* words, seed */ [[buffer(2)]],
                          uint i [[thread_position_in_grid]]) {
  constexpr uint P1 = 2654435761u, P2 = 2246822519u, P3 = 3266489917u, P4 = 668265263u, P5 = 374761393u;
  device const uint *row = rows + i * p.x;
  uint at = 0, hash;
  if (p.x >= 4) {
    uint4 lanes = p.y + uint4(P1 + P2, P2, 0, 0u - P1);
    for (; at + 4 <= p.x; at += 4) {
      const uint4 in = uint4(row[at], row[at + 1], row[at + 2], row[at + 3]);
      lanes = rotate(lanes + in * P2, uint4(13)) * P1;
    }
    lanes = rotate(lanes, uint4(1, 7, 12, 18));
    hash = lanes.x + lanes.y + lanes.z + lanes.w;
  } else {
    hash = p.y + P5;
  }
  hash += p.x * 4;
  for (; at < p.x; at++) hash = rotate(hash + row[at] * P3, 17u) * P4;
  hash = (hash ^ (hash >> 15)) * P2;
  hash = (hash ^ (hash >> 13)) * P3;
  hashes[i] = hash ^ (hash >> 16);
}

// ---- How long a point stays: lanes leave their loop at very different times.
kernel void escape_times(device ushort *out [[buffer(0)]], constant float4 &window [[buffer(1)]], constant ushort &limit [[buffer(2)]],
                         uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
  const float2 c = window.xy + window.zw * float2(at);
  float2 z = 0;
  ushort n = 0;
  for (; n < limit && length_squared(z) <= 4.0f; ++n) z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
  out[at.y * size.x + at.x] = n;
}

// ---- The nearest of many points, and how far: k-means' first half. Words of bits by their differing ones.
kernel void nearest_centre(device const float *points [[buffer(0)]], device const float *centres [[buffer(1)]], device uint *which [[buffer(2)]],
                           device float *far [[buffer(3)]], constant uint2 &p /* centres, dimensions */ [[buffer(4)]],
                           uint i [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float best = INFINITY;
  uint place = 0;
  for (uint c = lane; c < p.x; c += 32) {
    float sum = 0;
    for (uint d = 0; d < p.y; d++) sum += powr(abs(points[i * p.y + d] - centres[c * p.y + d]), 2.0f);
    if (sum < best) best = sum, place = c;
  }
  const float least = simd_min(best);
  const uint first = simd_min(best == least ? place : UINT_MAX);
  if (lane == 0) which[i] = first, far[i] = sqrt(least);
}
kernel void hamming(device const ulong2 *a [[buffer(0)]], device const ulong2 *b [[buffer(1)]], device uint *out [[buffer(2)]],
                    uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
  const ulong2 bits = popcount(a[at.y] ^ b[at.x]);
  out[at.y * size.x + at.x] = uint(bits.x + bits.y);
}
