// Threadgroup memory in every form: arguments as pointers and references, variables of scalars, arrays, structures,
// templates, matrices, packed types and atomics, in blocks, loops, templated functions, and references to them.
// run: k -b 0:out:float32:8 --grid 8 --threadgroup 8 --threadgroup-memory 0=256 --threadgroup-memory 1=64
// expect buffer 0: f(i) for i in 8: 185 + i
#include <metal_stdlib>
using namespace metal;
struct P { float a; int b[3]; };
template <typename T, int N> struct Tile { T v[N]; thread T &at(int i) thread { return v[i]; } T get(int i) const threadgroup { return v[i]; } };
template <typename T> struct alignas(16) Al { T x[4]; };
template <typename T, int N> T reduce(threadgroup T *s, T v, uint t) { s[t] = v; threadgroup_barrier(mem_flags::mem_threadgroup); T r = 0; for (int i = 0; i < N; i++) r += s[i]; threadgroup_barrier(mem_flags::mem_threadgroup); return r; }
template <typename T> void fill(threadgroup T (*m)[4], T v, uint t) { m[t / 4][t % 4] = v; }
typedef threadgroup float *tgp; 
template <typename T> T body(T x, uint t) { threadgroup T buf[8]; threadgroup T one; buf[t] = x; if (t == 0) one = 100; threadgroup_barrier(mem_flags::mem_threadgroup); T r = buf[7 - t] + one; threadgroup_barrier(mem_flags::mem_threadgroup); return r; }
template <typename T> kernel void kk(device float *a [[buffer(0)]], threadgroup T *dyn [[threadgroup(0)]], threadgroup P &p [[threadgroup(1)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup T scalar;
  threadgroup P ps[2], one;
  threadgroup Tile<T, 8> tile;
  threadgroup Al<half> al[2];
  threadgroup float4x4 mat;
  threadgroup packed_float3 pk[8];
  threadgroup atomic_uint cnt;
  threadgroup T m[2][4];
  threadgroup_barrier(mem_flags::mem_none);
  threadgroup bool flags[8], any_flag;
  if (t == 0) { scalar = 5; ps[1].b[2] = 3; one.a = 2; p.a = 7; p.b[1] = 9; atomic_store_explicit(&cnt, 0u, memory_order_relaxed); any_flag = false; mat = float4x4(2.0f); }
  tile.at(t) = t; pk[t] = packed_float3(t, 1, 2); al[t & 1].x[t / 2] = t; flags[t] = t & 1; fill<T>(m, T(t), t);
  { threadgroup T inner[8]; inner[t] = t * 2; dyn[t] = inner[t]; }
  if (t < 100) { threadgroup T inner2[8]; inner2[t] = t; dyn[t + 8] = inner2[t]; }
  for (int i = 0; i < 2; i++) { threadgroup T loopv[8]; loopv[t] = i; dyn[t + 16] = loopv[t]; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&cnt, 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup T &ref = scalar; threadgroup auto *ptr = &ps[1]; tgp q = (tgp)dyn; threadgroup const P &cp = p;
  auto lam = [&](int i) { return dyn[i] + scalar; };
  a[t] = ref + ptr->b[2] + one.a + tile.get(7 - t) + float(al[1].x[3]) + mat[1][1] + pk[7].x + atomic_load_explicit(&cnt, memory_order_relaxed) + m[1][3] + q[t] + cp.b[1] + p.a + lam(8 + t) + reduce<T, 8>(dyn, T(1), t) + body<T>(t, t) + flags[1];
}
template [[host_name("k")]] kernel void kk<float>(device float *, threadgroup float *, threadgroup P &, uint);
