// Keywords of C++20 remain names in a source whose methods take their object as a parameter, which needs C++23.
// run: methods -b 0:out:int32:4 -b 1=arange:int32:4 --grid 4
// expect buffer 0: f(i) for i in 4: i + 28
#include <metal_stdlib>
using namespace metal;

struct concept {
  int requires;
  int get() const device { return requires; }
  int get() const { return -1; }
};
static int consteval(int constinit) { return constinit; }

kernel void methods(device int *out, device concept *requires, uint i [[thread_position_in_grid]]) {
  int co_await = 1, co_yield = 2, co_return = 4, char8_t = 8;
  out[i] = requires[i].get() + co_await + co_yield + co_return + char8_t + consteval(13);
}
