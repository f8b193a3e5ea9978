// What Metal's compiler accepts and clang 19 refuses without further flags.
// for version: 3.2 2.4
// run: source_accepted -b 0:out:float32:4 -b 1=arange:uint32:4 --grid 4 --metal-version {version}
// expect buffer 0: f(i) for i in 4: 7 + 5 + i + 2
#include <metal_stdlib>
using namespace metal;
#if (__METAL_VERSION__ < 300) != defined(__METAL_MACOS__)
#error "__METAL_MACOS__ must be defined before Metal 3.0 only"
#endif

// As in headers that are shared with Objective-C.
#define NS_ENUM(type, name) enum name : type name; enum name : type
typedef metal::int32_t backing;
typedef NS_ENUM(backing, place) { place_out = 0, place_in = 1, place_bits = 2 };

enum height { low, high };
constant constexpr height beyond = (height)7;

struct twice {
  template <typename T> T of(T x) { return x + x; }
};
template <typename F> float applied(F f, float x) { return f.template of(x); }

kernel void source_accepted(device float *out [[buffer(place_out)]], device const uint *in [[buffer(place_in)]],
                            uint i [[thread_position_in_grid]]) {
  register float sum = beyond;
  out[i] = sum + applied(twice(), 2.5f) + in[i] + place_bits;
}
