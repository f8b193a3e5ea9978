// C++ as kernels use it: classes with qualified methods, specialisation and overloading by address space, lambdas.
// run: -b 0:out:float32:4 -b 1:out:float32:256 -b 2=ones:uint32:4 -b 3=zeros:uint32:1 --grid 64 --threadgroup 64
// expect buffer 0: 1386.75 1386.5 1386.5 1386.5
#include <metal_stdlib>
using namespace metal;
#define BUF(n) [[buffer(n)]]
#define GRID [[thread_position_in_grid]]
struct alignas(16) Item { float a; float b[3]; };
struct Args { device float *out; constant uint *n; };
struct Base { int base = 2; int twice() const thread { return 2 * base; } };
struct Derived final : Base {
  float v;
  Derived(float x) : Base(), v{x} {}
  Derived(const thread Derived &other) thread = default;
  thread Derived &operator=(const thread Derived &other) thread { v = other.v; return *this; }
  explicit operator bool() const thread { return v > 0; }
  bool operator<(const thread Derived &o) const thread { return v < o.v; }
  float operator()(float x, float y = 2) const thread { return x * y + v; }
  thread float &operator*() thread { return v; }
  friend bool operator==(const thread Derived &a, const thread Derived &b) { return a.v == b.v; }
};
template <typename T> struct Space { static constant constexpr int value = 0; };
template <typename T> struct Space<device T *> { static constant constexpr int value = 1; };
template <typename T> struct Space<threadgroup T *> { static constant constexpr int value = 2; };
template <typename T> struct Space<constant T *> { static constant constexpr int value = 3; };
template <typename P> int space_of(P) { return Space<P>::value; }
inline int pick(const device float *) { return 10; }
inline int pick(const threadgroup float *) { return 20; }
inline int pick(const constant float *) { return 30; }
inline int pick(const thread float *) { return 40; }
constant float grid2[2][3] = {{1, 2, 3}, {4, 5, 6}};
constant Item items[] = {{1, {2, 3, 4}}, {5, {6, 7, 8}}};
float from(constant float (&t)[2][3], int i, int j = int(sizeof(Item) > 4)) { return t[i][j]; }
template <typename T, int N, typename = enable_if_t<(N > 1) && sizeof(T) <= 8>>
float tiled(uint t, threadgroup T *scratch) {
  if constexpr (N <= 4) { scratch[t] = T(N); } else { scratch[t] = T(-N); }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return scratch[0] + scratch[N];
}
namespace detail { enum class Kind : uint8_t { none, some = 3 }; template <Kind K> constexpr int kind() { return int(K); } }
union Bits { float f; uint u; };
kernel void mixed(device float *a BUF(0), device Item *list BUF(1), const device void *raw BUF(2),
                  device atomic_uint *counter BUF(3), uint3 gid GRID, uint t [[thread_index_in_threadgroup]])
{
  const uint i = gid.x;
  threadgroup float scratch[64];
  threadgroup struct Item shared_item;
  if (t == 0) { shared_item.a = 3; shared_item.b[2] = 4; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float local[4] = {0, 1, 2, 3};
  thread float (&whole)[4] = local;
  thread float *const part = local + 1;
  device auto &mine = list[i];
  const device uint *__restrict words = (const device uint *)raw;
  Derived d(2.0f), e = d;
  *e = 5;
  float r = 0;
  if (bool less = d < e; less && bool(d) && !(d == e)) r += d(3) + e.twice();
  for (auto x : whole) r += x;
  auto generic = [&](auto p, int k) { return p[k]; };
  auto in_shared = [&](threadgroup float *p) -> threadgroup float & { return p[t]; };
  in_shared(scratch) = 7;
  r += generic(part, 1) + generic(words, 0) + in_shared(scratch);
  r += space_of(a) * 1000 + space_of(&scratch[0]) * 100 + space_of(&grid2[0][0]) * 10;
  r += pick(a) + pick(scratch) + pick(&grid2[1][0]) + pick(local);
  r += from(grid2, 1) + items[1].b[2] + shared_item.a + shared_item.b[2];
  r += tiled<float, 4>(t, scratch);
  Bits bits; bits.f = 1.0f;
  r += bits.u == 0x3f800000u ? 0.5f : 0.0f;
  using detail::Kind;
  switch (Kind k = i ? Kind::some : Kind::none; k) { case Kind::none: r += 0.25f; break; case Kind::some: { r += detail::kind<Kind::some>() * 0; } }
  mine.a = r, mine.b[0] = r > 0 ? 1 : 2;
  const char *text = "device threadgroup [[buffer(0)]] return;"; (void)text;
  do { if (t > 60) return; } while (false);
  if (i < 4) atomic_fetch_add_explicit(counter, 1u, memory_order_relaxed); else return;
  a[i] = r;
}
