// Entries whose name alone does not say which function is meant: deduced template arguments, kernels and helpers of one
// name, nested and inline namespaces, names used through using, host names in pieces.
// for entry: 1 2 3 4 5 6 7 8 9 10 11 12
// let E = {1: (3, 2), 2: (3, 5), 3: (7, 0), 4: (11, 0), 5: (13, 0), 6: (15, 0), 7: (16, 0), 8: (8, 0), 9: (4, 3), 10: (21, 0), 11: (3, 9), 12: (2, 24)}
// run: entry_{entry} -b 0=arange:int32:5 -b 1:out:int32:5 --bytes 2=int32:9 --grid 5
// expect buffer 1: f(i) for i in 5: E[entry][0] * i + E[entry][1]
#include <metal_stdlib>
using namespace metal;

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define NUMBER 1
#define KIND int

// Deduced from the parameters; the second template differs by their number only.
template <typename T> [[kernel]] void scale(device const T *in [[buffer(0)]], device T *out [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = in[i] * 3 + 2; }
template <typename T> [[kernel]] void scale(device const T *in [[buffer(0)]], device T *out [[buffer(1)]], constant T &more [[buffer(2)]], uint i [[thread_position_in_grid]]) { out[i] = in[i] * 3 + more - 4; }
// A helper and a kernel that is no template, of the same name.
int scale(int x) { return x * 7; }
[[kernel, host_name("entry_3")]] void scale(device const int *in [[buffer(0)]], device int *out [[buffer(1)]], uint2 at [[thread_position_in_grid]]) { out[at.x] = scale(in[at.x]); }
template [[host_name("entry_" TEXT(NUMBER))]] kernel void scale(device const KIND *, device KIND *, uint);
template [[host_name("entry_2")]] [[kernel]] void scale<int>(const device int *in [[buffer(0)]], device int *out [[buffer(1)]], constant int &more [[buffer(2)]],
                                                            uint i [[thread_position_in_grid]]);

namespace a {
struct Settings { int value; };
namespace b {
inline namespace v1 {
template <int N> [[kernel]] void times(device const int *in [[buffer(0)]], device int *out [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = N * in[i]; }
}
template <typename T, int N = 4> kernel void by(device const T *in [[buffer(0)]], device T *out [[buffer(1)]], constant Settings &s [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  out[i] = N * in[i] + s.value - 6;
}
template <typename T, int N> kernel void by(device const T *in [[buffer(0)]], device T *out [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = N * in[i]; }
}
}
template [[host_name("entry_4")]] [[kernel]] void a::b::times<11>(device const int *, device int *, uint);
template [[host_name("entry_5")]] [[kernel]] decltype(a::b::v1::times<13>) a::b::v1::times<13>;
using namespace a;
template [[host_name("entry_6")]] kernel void b::times<15>(device const int *, device int *, uint);
using namespace b;
using times_t = decltype(times<16>);
template [[host_name("entry_7")]] kernel times_t times<16>;
// Settings is known where the template is, the scope of the instantiation is another.
template [[host_name("entry_9")]] kernel void b::by<int>(device const int *, device int *, constant Settings &, uint);
namespace c { template [[host_name("entry_10")]] kernel void a::b::by<int, 21>(device const int *, device int *, uint); }

extern "C" kernel void entry_8(device const int *in [[buffer(0)]], device int *out [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = in[i] * 8; }

// One macro that instantiates all.
template <typename T, typename Op> kernel void with(device const T *in, device T *out, constant T &c, uint i [[thread_position_in_grid]]) { out[i] = Op()(in[i], c); }
struct Add { template <typename T> T operator()(T x, T y) const { return x * 3 + y; } };
struct Mul { template <typename T> T operator()(T x, T y) const { return x * 2 + y + 15; } };
#define WITH(name, type, op) template [[host_name("entry_" #name)]] [[kernel]] void with<type, op>( \
    device const type *in [[buffer(0)]], device type *out [[buffer(1)]], constant type &c [[buffer(2)]], uint i [[thread_position_in_grid]]);
#define WITH_ALL(type) WITH(11, type, Add) WITH(12, type, Mul)
WITH_ALL(int)
