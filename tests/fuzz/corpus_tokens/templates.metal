constant bool flag [[function_constant(0)]];
namespace a::b { namespace {
template <typename T, int N = (2 > 1)> struct S { T v[N]; T at(uint i) const device { return v[i]; } S() thread : v{} {} };
} }
template <typename T> [[kernel, max_total_threads_per_threadgroup(64)]] void f(
    device T *x [[buffer(0)]], threadgroup T (&t)[4][N], constant float c[3], uint i [[thread_position_in_grid]]) {
  threadgroup T s[4][2]; alignas(16) threadgroup float u;
  auto g = [&](int k) -> int { return k; };
  if (i > 3) return; else for (;;) return g(1), void();
  x[i] = static_cast<T>(1.5h + 2bf + 0x1p3f);
}
template [[host_name("f" "_x")]] [[kernel]] decltype(f<float>) f<float>;
#define K(n) template [[host_name(#n)]] kernel void f<n, 4>(device n* a);
K(half)
kernel void g(texture2d<float> t [[texture(0)]], device int* [[buffer(1)]]) {}
R"x( )x" '"' "\"
