// Quantised weights. Affine: groups of 32, 64 or 128 with a scale and a bias, 4, 5, 6 or 8 bits each in a stream without
// gaps. Blocks: 32 weights, or 256 with 6-bit packed scales, as structs with half scales, 4, 5, 6 and 8 bits.
#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>
using namespace metal;

constant constexpr uint LANES = 32;

// ---- Affine: eight weights are `bits` bytes, whatever the bits.

template <int bits> struct octet;

template <> struct octet<4> {
  static METAL_FUNC void unpack(device const uchar* from, thread float (&q)[8]) {
    const uint word = *reinterpret_cast<device const uint*>(from);
#pragma unroll
    for (ushort i = 0; i < 8; i++) q[i] = extract_bits(word, 4 * i, 4);
  }
};
template <> struct octet<8> {
  static METAL_FUNC void unpack(device const uchar* from, thread float (&q)[8]) {
    const float4 low = float4(((device const uchar4*)from)[0]), high = float4(((device const uchar4*)from)[1]);
    for (ushort i = 0; i < 4; i++) q[i] = low[i], q[i + 4] = high[i];
  }
};
// Bytes are gathered into one wide word.
template <int bits> struct octet_by_bytes {
  static METAL_FUNC void unpack(device const uchar* from, thread float (&q)[8]) {
    ulong word = 0;
    for (short b = bits - 1; b >= 0; --b) word = word << 8 | from[b];
    for (ushort i = 0; i < 8; ++i, word >>= bits) q[i] = float(word & ((1ul << bits) - 1));
  }
};
template <> struct octet<5> : octet_by_bytes<5> {};
template <> struct octet<6> : octet_by_bytes<6> {};

// A simdgroup has ROWS rows of the matrix; its lanes take octets of columns in turn. Scale and bias are applied to the sums of
// an octet, which lies in one group.
template <typename T, int group, int bits, int ROWS = 4>
kernel void affine_matvec(device const uchar* packed [[buffer(0)]], device const T* scales [[buffer(1)]],
                          device const T* biases [[buffer(2)]], device const T* vectors [[buffer(3)]], device T* result [[buffer(4)]],
                          constant uint2& size /* rows, columns */ [[buffer(5)]], uint2 which [[threadgroup_position_in_grid]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]], uint simdgroups [[simdgroups_per_threadgroup]],
                          uint lane [[thread_index_in_simdgroup]]) {
  static_assert(group % 8 == 0, "an octet must not cross groups");
  const uint rows = size.x, columns = size.y, first = (which.x * simdgroups + simdgroup) * ROWS;
  if (first >= rows) return;
  const ulong row_bytes = ulong(columns) * bits / 8, row_groups = columns / group;
  device const T* x = vectors + which.y * columns;
  float sums[ROWS] = {};
  for (uint octets = lane; octets < columns / 8; octets += LANES) {
    float part[8], total = 0;
    for (ushort i = 0; i < 8; i++) total += part[i] = x[octets * 8 + i];
    for (uint r = 0; r < ROWS; r++) {
      if (first + r >= rows) break;
      float q[8];
      octet<bits>::unpack(packed + (first + r) * row_bytes + octets * bits, q);
      float dot_ = 0;
      for (ushort i = 0; i < 8; i++) dot_ = fma(q[i], part[i], dot_);
      const ulong at = (first + r) * row_groups + octets * 8 / group;
      sums[r] += dot_ * float(scales[at]) + total * float(biases[at]);
    }
  }
  for (uint r = 0; r < ROWS; r++) {
    const float sum = simd_sum(sums[r]);
    if (lane == r && first + r < rows) result[which.y * rows + first + r] = T(sum);
  }
}

// A simdgroup quantises a group: extremes by reduction, the numbers through threadgroup memory into packed bytes.
template <typename T, int group, int bits>
kernel void affine_pack(device const T* weights [[buffer(0)]], device uchar* packed [[buffer(1)]], device T* scales [[buffer(2)]],
                        device T* biases [[buffer(3)]], uint g [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
  constexpr uint each = group / LANES;
  constexpr float levels = (1 << bits) - 1;
  threadgroup uchar numbers[group];
  float w[each], low = INFINITY, high = -INFINITY;
  for (uint i = 0; i < each; i++) {
    w[i] = weights[g * group + i * LANES + lane];
    low = min(low, w[i]), high = max(high, w[i]);
  }
  low = simd_min(low), high = simd_max(high);
  const T scale = T(max((high - low) / levels, 1e-6f)), bias = T(low);
  if (simd_is_first()) scales[g] = scale, biases[g] = bias;
  for (uint i = 0; i < each; i++)
    numbers[i * LANES + lane] = uchar(clamp(rint((w[i] - float(bias)) / float(scale)), 0.0f, levels));
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (lane < group / 8) {
    ulong word = 0;
    for (ushort i = 0; i < 8; i++) word |= ulong(numbers[lane * 8 + i]) << (bits * i);
    for (ushort b = 0; b < bits; b++) packed[(g * group + lane * 8) / 8 * bits + b] = uchar(word >> (8 * b));
  }
}

template <typename T, int group, int bits>
kernel void affine_unpack(device const uchar* packed [[buffer(0)]], device const T* scales [[buffer(1)]],
                          device const T* biases [[buffer(2)]], device vec<T, 4>* out [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  float q[8];
  octet<bits>::unpack(packed + i * bits, q);
  const float scale = scales[i * 8 / group], bias = biases[i * 8 / group];
  out[2 * i] = vec<T, 4>(fma(float4(q[0], q[1], q[2], q[3]), scale, bias));
  out[2 * i + 1] = vec<T, 4>(fma(float4(q[4], q[5], q[6], q[7]), scale, bias));
}

#define AFFINE(kind, T, group, bits) \
  template [[host_name("affine_" #kind "_" #T "_g" #group "_b" #bits)]] kernel decltype(affine_##kind<T, group, bits>) affine_##kind<T, group, bits>;
AFFINE(matvec, float, 32, 4)
AFFINE(matvec, half, 64, 5)
AFFINE(matvec, bfloat, 128, 6)
AFFINE(matvec, float, 64, 8)
AFFINE(pack, float, 64, 4)
AFFINE(pack, float, 32, 8)
AFFINE(pack, half, 128, 6)
AFFINE(unpack, float, 64, 4)
AFFINE(unpack, float, 32, 8)
AFFINE(unpack, half, 128, 6)
AFFINE(unpack, half, 64, 5)

// ---- Blocks.

// 32 weights: value (q - 8) · scale; weight i and i + 16 share a byte.
struct block4 {
  half scale;
  uchar pairs[16];
};
// The fifth bits apart.
struct block5 {
  half scale;
  uchar fifth[4];
  uchar pairs[16];
};
struct block8 {
  half scale;
  char q[32];
};
// 256 weights, eight runs of 32: q · scale · s[run] - minimum · m[run], s and m 6 bits in 12 bytes.
struct super4 {
  union {
    half2 both;
    struct {
      half scale, minimum;
    };
  };
  uchar packed[12];
  uchar pairs[128];

  // s and m of a run.
  uchar2 six_bits(ushort run) const device {
    if (run < 4) return uchar2(packed[run], packed[run + 4]) & uchar2(63);
    const uchar low = packed[run + 4], top_s = packed[run - 4] >> 6, top_m = packed[run] >> 6;
    return uchar2((low & 15) | top_s << 4, low >> 4 | top_m << 4);
  }
};
// 256 weights, sixteen runs of 16: (q - 32) · scale · s[run]; four low bits, two high bits, s in 8 bits.
struct super6 {
  uchar low[128];
  uchar high[64];
  char s[16];
  half scale;
};
static_assert(sizeof(block4) == 18 && sizeof(block5) == 22 && sizeof(block8) == 34, "sizes of blocks");
static_assert(sizeof(super4) == 144 && sizeof(super6) == 210, "sizes of superblocks");

// Sixteen weights, the part-th of a block, as rows of a matrix. M: float4x4 or half4x4.
template <typename M> void decode(device const block4& b, ushort part, thread M& w) {
  float4x4 m;
  for (ushort i = 0; i < 16; i++) {
    const uchar two = b.pairs[i];
    m[i >> 2][i & 3] = float(b.scale) * (int(part ? two >> 4 : two & 15) - 8);
  }
  w = M(m);
}
template <typename M> void decode(device const block5& b, ushort part, thread M& w) {
  const ushort fifth = ushort(b.fifth[2 * part]) | ushort(b.fifth[2 * part + 1]) << 8;
  float4x4 m;
  for (ushort i = 0; i < 16; i++) {
    const ushort four = part ? b.pairs[i] >> 4 : b.pairs[i] & 15;
    m[i / 4][i % 4] = float(b.scale) * (short(insert_bits(four, ushort(fifth >> i), 4, 1)) - 16);
  }
  w = M(m);
}
template <typename M> void decode(device const super4& b, ushort part, thread M& w) {
  const ushort run = part / 2;
  const float2 sm = float2(b.six_bits(run)) * float2(b.both);
  device const uchar4* pairs = (device const uchar4*)(b.pairs + run / 2 * 32 + part % 2 * 16);
  for (ushort i = 0; i < 4; i++) {
    const uchar4 q = run % 2 ? pairs[i] >> 4 : pairs[i] & 15;
    w[i] = decltype(w[i] + w[i])(float4(q) * sm.x - sm.y);
  }
}
template <typename M> void decode(device const super6& b, ushort part, thread M& w) {
  const ushort first = part * 16, half_ = first / 128, in = first % 128, quarter = in / 32, at = in % 32;
  const float scale = float(b.scale) * b.s[part];
  for (ushort i = 0; i < 16; i++) {
    const uint low = (b.low[half_ * 64 + quarter % 2 * 32 + at + i] >> (quarter / 2 * 4)) & 15;
    const uint high = (b.high[half_ * 32 + at + i] >> (quarter * 2)) & 3;
    w[i / 4][i % 4] = scale * (int(high * 16 + low) - 32);
  }
}

struct matrix_shape {
  int columns;
  int rows;
  ulong row_bytes;
  int vectors;
};

// The decoder is a template argument: a pointer to a function.
template <typename block, ushort parts, void (*decoder)(device const block&, ushort, thread float4x4&)>
kernel void take_rows(constant matrix_shape& shape [[buffer(0)]], device const char* weights [[buffer(1)]],
                      device const int* rows [[buffer(2)]], device float4x4* out [[buffer(3)]],
                      uint token [[threadgroup_position_in_grid]], ushort t [[thread_index_in_threadgroup]],
                      ushort threads [[threads_per_threadgroup]]) {
  device const block* row = reinterpret_cast<device const block*>(weights + rows[token] * shape.row_bytes);
  const int sixteens = shape.columns / 16;
  for (int i = t; i < sixteens; i += threads) {
    float4x4 w;
    decoder(row[i / parts], i % parts, w);
    out[size_t(token) * sixteens + i] = w;
  }
}
typedef decltype(take_rows<block4, 2, decode<float4x4>>) take_rows_t;
template [[host_name("take_rows_block4")]] kernel take_rows_t take_rows<block4, 2, decode<float4x4>>;
template [[host_name("take_rows_block5")]] kernel take_rows_t take_rows<block5, 2, decode<float4x4>>;
template [[host_name("take_rows_super4")]] kernel take_rows_t take_rows<super4, 16, decode<float4x4>>;
template [[host_name("take_rows_super6")]] kernel take_rows_t take_rows<super6, 16, decode<float4x4>>;

// Superblocks times a vector: a row a simdgroup, eight lanes a superblock, a lane a run of 32. A word holds eight weights: its
// low and high halves of bytes belong to neighbouring runs, so a lane takes every other run twice as far.
static float4 low_halves(uint word) { return float4(as_type<uchar4>(word & 0x0f0f0f0f)); }
static float4 high_halves(uint word) { return float4(as_type<uchar4>((word >> 4) & 0x0f0f0f0f)); }

[[host_name("super4_matvec")]] [[kernel]] void
super4_times_vector(constant matrix_shape& shape [[buffer(0)]], device const char* weights [[buffer(1)]],
                    device const float* x [[buffer(2)]], device float* y [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]],
                    ushort lane [[thread_index_in_simdgroup]], ushort sg [[simdgroup_index_in_threadgroup]],
                    ushort sgs [[simdgroups_per_threadgroup]]) {
  const int row = group.x * sgs + sg;
  if (row >= shape.rows) return;
  device const super4* blocks = (device const super4*)(weights + row * shape.row_bytes);
  device const float4* vector = (device const float4*)(x + size_t(group.y) * shape.columns);
  const ushort run = lane % 8;
  float sum = 0;
  for (int b = lane / 8; b < shape.columns / 256; b += 4) {
    device const uint* words = reinterpret_cast<device const uint*>(blocks[b].pairs + run / 2 * 32);
    device const float4* part = vector + b * 64 + run * 8;
    float products = 0, total = 0;
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 8; i++) {
      const float4 q = run % 2 ? high_halves(words[i]) : low_halves(words[i]);
      products += dot(q, part[i]);
      total += dot(part[i], float4(1));
    }
    const uchar2 sm = blocks[b].six_bits(run);
    sum += float(blocks[b].scale) * sm.x * products - float(blocks[b].minimum) * sm.y * total;
  }
  sum = simd_sum(sum);
  if (lane == 0) y[group.y * shape.rows + row] = sum;
}

// 8 bits: all simdgroups share NR rows and meet in threadgroup memory.
template <ushort NR>
kernel void block8_matvec(constant matrix_shape& shape [[buffer(0)]], device const char* weights [[buffer(1)]],
                          device const float* x [[buffer(2)]], device float* y [[buffer(3)]], threadgroup float* met [[threadgroup(0)]],
                          uint2 group [[threadgroup_position_in_grid]], ushort t [[thread_index_in_threadgroup]],
                          ushort threads [[threads_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]],
                          ushort sg [[simdgroup_index_in_threadgroup]], ushort sgs [[simdgroups_per_threadgroup]]) {
  device const block8* row[NR];
  const int first = group.x * NR;
  for (ushort r = 0; r < NR; r++)
    row[r] = (device const block8*)(weights + min(first + r, shape.rows - 1) * shape.row_bytes); // past the end: the last again
  float sums[NR] = {0};
  // A thread has a quarter of a block.
  for (int q = t; q < shape.columns / 8; q += threads) {
    float part[8];
    for (ushort i = 0; i < 8; i++) part[i] = x[size_t(group.y) * shape.columns + q * 8 + i];
    for (ushort r = 0; r < NR; r++) {
      device const block8& b = row[r][q / 4];
      float dot_ = 0;
      for (ushort i = 0; i < 8; i++) dot_ += b.q[q % 4 * 8 + i] * part[i];
      sums[r] += dot_ * b.scale;
    }
  }
  for (ushort r = 0; r < NR; r++) {
    const float sum = simd_sum(sums[r]);
    if (lane == 0) met[r * sgs + sg] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < NR && first + t < shape.rows) {
    float sum = 0;
    for (ushort s = 0; s < sgs; s++) sum += met[t * sgs + s];
    y[group.y * shape.rows + first + t] = sum;
  }
}
template [[host_name("block8_matvec_3")]] kernel decltype(block8_matvec<3>) block8_matvec<3>;

// Times a matrix: 32 rows by 32 vectors a threadgroup of four simdgroups. 32 columns at a time are decoded into halves; what is
// beyond an edge is 0, and the result goes through threadgroup memory once more to be cut.
template <typename block, ushort parts, void (*decoder)(device const block&, ushort, thread half4x4&)>
kernel void blocks_matmul(constant matrix_shape& shape [[buffer(0)]], device const char* weights [[buffer(1)]],
                          device const float* x [[buffer(2)]], device float* y [[buffer(3)]], threadgroup char* memory [[threadgroup(0)]],
                          uint2 group [[threadgroup_position_in_grid]], ushort t [[thread_index_in_threadgroup]],
                          ushort sg [[simdgroup_index_in_threadgroup]]) {
  constexpr ushort TILE = 32, DEEP = 32;
  threadgroup half* w_tile = reinterpret_cast<threadgroup half*>(memory);           // [row][column]
  threadgroup float* x_tile = reinterpret_cast<threadgroup float*>(memory + 2048); // [vector][column]
  const int row0 = group.y * TILE, vector0 = group.x * TILE;
  simdgroup_float8x8 sums[2][2];
  for (auto& line : sums)
    for (auto& s : line) s = make_filled_simdgroup_matrix<float, 8, 8>(0);
  for (int k0 = 0; k0 < shape.columns; k0 += DEEP) {
    // 64 threads decode sixteen weights each; all fetch eight numbers of x.
    if (t < 64) {
      const ushort r = t / 2, sixteen = t % 2;
      half4x4 w = half4x4(0.0h);
      if (row0 + r < shape.rows) {
        const int part = k0 / 16 + sixteen;
        decoder(((device const block*)(weights + (row0 + r) * shape.row_bytes))[part / parts], part % parts, w);
      }
      for (ushort i = 0; i < 4; i++) *(threadgroup half4*)(w_tile + r * DEEP + sixteen * 16 + i * 4) = w[i];
    }
    const ushort v = t / 4, column = t % 4 * 8;
    const bool here = vector0 + v < shape.vectors;
    for (ushort i = 0; i < 8; i++)
      x_tile[v * DEEP + column + i] = here ? x[size_t(vector0 + v) * shape.columns + k0 + column + i] : 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const ushort r0 = sg / 2 * 16, v0 = sg % 2 * 16;
#pragma unroll
    for (ushort k = 0; k < DEEP; k += 8) {
      simdgroup_half8x8 w[2];
      simdgroup_float8x8 xs[2];
      for (ushort i = 0; i < 2; i++) {
        simdgroup_load(w[i], w_tile + (r0 + 8 * i) * DEEP + k, DEEP, ulong2(0), true); // column by row
        simdgroup_load(xs[i], x_tile + (v0 + 8 * i) * DEEP + k, DEEP);
      }
      for (ushort i = 0; i < 2; i++)
        for (ushort j = 0; j < 2; j++) simdgroup_multiply_accumulate(sums[i][j], xs[i], w[j], sums[i][j]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  threadgroup float* done = reinterpret_cast<threadgroup float*>(memory); // [vector][row]
  for (ushort i = 0; i < 2; i++)
    for (ushort j = 0; j < 2; j++)
      simdgroup_store(sums[i][j], done + (sg % 2 * 16 + 8 * i) * TILE + sg / 2 * 16 + 8 * j, TILE);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (ushort i = t; i < TILE * TILE; i += 128) {
    const int v = vector0 + i / TILE, r = row0 + i % TILE;
    if (v < shape.vectors && r < shape.rows) y[size_t(v) * shape.rows + r] = done[i];
  }
}
template [[host_name("block4_matmul")]] kernel decltype(blocks_matmul<block4, 2, decode<half4x4>>) blocks_matmul<block4, 2, decode<half4x4>>;
template [[host_name("super6_matmul")]] kernel decltype(blocks_matmul<super6, 16, decode<half4x4>>) blocks_matmul<super6, 16, decode<half4x4>>;
