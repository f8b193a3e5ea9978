// Address spaces wherever a declaration can have them: types, members, methods, parameters, arrays, casts.
// run: -b 0=zeros:uint8:64 -b 1:out:float32:64 --bytes 2=uint32:60,1073741824,0,0,0,0,0,0 --threadgroup-memory 0=256
// run: --grid 64 --threadgroup 64
// expect buffer 1: f(i) for i in 64: (445 if i % 2 else 449) + (1, 2, 4, 8)[i % 4] if i < 60 else -1
#include <metal_stdlib>
using namespace metal;

typedef device float *float_pointer;
using table_pointer = const constant float *;
template <typename T> using shared_pointer = threadgroup T *;

constant float weights[4] = {1.0f, 2.0f, 4.0f, 8.0f};
static constant constexpr int kRows = 4;
constexpr constant uint kColumns = 8;
constant constexpr static const float kHalf = 0.5;
struct Params { uint n; float scale; uint3 shape; };
constant Params kDefaults = {3, 2.0f, uint3(1, 2, 3)};
enum { BufferIndexOut = 1, BufferIndexParams };
enum class Mode : uint { add, multiply = 5 };

template <typename T, int N> struct Block {
  static constant constexpr const int size = N;
  METAL_CONST int twice = 2 * N;
  T values[N];
  Block() = default;
  Block(T v) thread { for (int i = 0; i < N; i++) values[i] = v; }
  T at(uint i) const device { return values[i]; }
  T at(uint i) const threadgroup { return values[i]; }
  T at(uint i) const constant { return values[i]; }
  T at(uint i) const thread { return values[i]; }
  thread T &operator[](uint i) thread { return values[i]; }
  threadgroup T &operator[](uint i) threadgroup { return values[i]; }
  operator T() const thread { return values[0]; }
  auto sum() const thread -> T {
    T s = 0;
#pragma unroll
    for (int i = 0; i < N; i++) s += values[i];
    return s;
  }
};

template <typename T> struct View {
  const device T *data;
  device T *out;
  threadgroup T *shared;
  uint count;
  View(const device T *d, device T *o, threadgroup T *s, uint n) : data{d}, out(o), shared{s}, count(n) {}
  T load(uint i) const thread { return i < count ? data[i] : T{}; }
  void store(uint i, T v) thread { out[i] = v; }
};

template <typename T, ushort R, ushort C>
void fill(threadgroup T (&tile)[R][C], T v, uint t) {
  if (t < R * C) tile[t / C][t % C] = v + T(t);
}
template <int N> float add_all(threadgroup float (*rows)[N], uint r) {
  float s = 0;
  for (int i = 0; i < N; i++) s += rows[r][i];
  return s;
}
float add_row(threadgroup float row[8], const thread float bias[2]) { return row[0] + row[7] + bias[1]; }
static float add_table(table_pointer p, uint i) { return p[i & 3]; }
inline void bump(thread float &x, thread float *y) { x += 1; *y += 2; }
constexpr int square(int x) { return x * x; }
void write_one(device float *p, float v) { *p = v; }
float device * shift(float device *p, uint n) { return p + n; }

[[kernel]] [[max_total_threads_per_threadgroup(64)]] void spaces(
    device const uchar *raw [[ buffer(0) ]],
    device float *out [[ buffer(BufferIndexOut) ]],
    constant Params &params [[ buffer(BufferIndexParams) ]],
    threadgroup char *dynamic [[threadgroup(0)]],
    uint3 tpig [[thread_position_in_grid]], ushort tiitg [[thread_index_in_threadgroup]],
    ushort2 where [[thread_position_in_threadgroup]]) {
  threadgroup float tile[kRows][kColumns];
  threadgroup float4 quads[8], more[2];
  threadgroup Block<float, 4> blocks[2];
  alignas(16) threadgroup half halves[16];
  float threadgroup trailing[32];
  constant float local_table[] = {10.f, 20.f, 30.f};
  static constant float other_table[3] = {1, 2, 3};
  constexpr constant int count = 3;
  const uint t = tiitg, g = tpig.x;
  fill(tile, 1.0f, t);
  trailing[t % 32] = t % 32;
  if (t < 8) quads[t] = float4(t, t + 1, t + 2, t + 3);
  if (t < 16) halves[t] = half(t) * 1.5h;
  if (t < 2) { for (int k = 0; k < 4; k++) blocks[t][k] = 100 * t + k; more[t] = float4(t); }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  device const uint4 *wide = (device const uint4 *)raw;
  const device half4 *as_half = reinterpret_cast<const device half4 *>(raw);
  threadgroup float *shared = (threadgroup float *)dynamic;
  shared[t] = t;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  View<float> view((const device float *)raw, out, shared, params.n);
  float bias[2] = {0.25f, 0.5f}, x = 0, y = 0;
  bump(x, &y);
  auto square_of = [](float v) { return v * v; };
  auto add_to = [&](float v) -> float { if (v < 0) return v; return v + x; };
  Block<float, 4> mine(2.0f);
  mine[1] = 5;
  Mode mode = t & 1 ? Mode::add : Mode::multiply;
  float result = 0;
  switch (mode) {
  case Mode::add: result += 1; break;
  case Mode::multiply: { result += 5; break; }
  }
  if constexpr (Block<float, 4>::size == 4 && sizeof(float) < 8) result += square(kRows);
  _Pragma("clang loop unroll(full)") for (int i = 0; i < count; i++) result += local_table[i] + other_table[i];
  result += tile[2][3] + add_all<8>(tile, 1) + add_row(tile[3], bias) + add_table(weights, t);
  result += quads[3].w + blocks[1].at(2) + more[1].y + float(halves[2]) + shared[5] + trailing[31];
  result += view.load(0) + kDefaults.scale + kHalf + params.scale + mine.sum() + float(mine) + where.x * 0;
  result += square_of(3) + add_to(1) + y + Block<half, 3>::twice + float(wide[0].x) + float(as_half[0].x);
  float_pointer p = out;
  if (g >= params.n) return write_one(shift(p, g), -1.0f);
  else view.store(g, result);
}
