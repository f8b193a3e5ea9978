// String literals lie in the constant address space; arrays of characters take them as initialisers; coherent memory.
// run: -b 0:out:int32:40 -b 1=arange:int32:8 --grid 8 --threadgroup 4
// let text = lambda i: ord(["stone", "so", "both", "a\nb", 'say "x"', "raw)", "no", "first"][i][i % 2])
// expect buffer 0: f(i) for i in 40: (text(i % 8), ord("xyzw"[i % 4]), len("12345678"[:i % 8]), ord(("ab", "cde")[i % 2][1]), i % 8 * 3)[i // 8]
#include <metal_stdlib>
using namespace metal;
static_assert(sizeof("four") == 5, "the size of a literal is that of the array");
static constant char letters[] = "xyzw";
constant char pairs[2][4] = {"ab", "cde"};
constant char *const names[] = {"stone", "so", "bo" "th", "a\nb", "say \"x\"", R"(raw))"};
typedef uchar byte_type;
using byte_alias = byte_type;
using plain_byte = unsigned char;
namespace inner { using plain_byte = plain_byte; }
constant plain_byte plain[2][3] = {"xy", "zw"};
constant byte_type bytes[] = "xyzw";
constant byte_alias more_bytes[2][3] = {"xy", "zw"};
struct label { constant char *text; int number; };
constant label labels[] = {{"no", 1}, {"first", 2}};

static int length_of(constant char *text) {
  int n = 0;
  while (text[n]) n++;
  return n;
}
template <typename T> T letter(constant T *text, uint i) { return text[i]; }
static int function_name(uint i) { return __func__[i]; }

kernel void strings(device int *out [[buffer(0)]], coherent(device) device const int *index [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
  constant char *text = i < 6 ? names[i] : labels[i - 6].text;
  out[i] = text[i % 2];
  static constant char here[] = "xyzw";
  char copy[5] = "xyzw";
  constant char *prefixes[] = {"", "1", "12", "123", "1234", "12345", "123456", "1234567"};
  bool alike = bytes[i % 4] == here[i % 4] && more_bytes[i / 2 % 2][i % 2] == here[i % 4] &&
               plain[i / 2 % 2][i % 2] == here[i % 4];
  out[8 + i] = alike && letters[i % 4] == here[i % 4] && copy[i % 4] == here[i % 4] ? letters[i % 4] : -1;
  out[16 + i] = length_of(prefixes[i]);
  auto chosen = i % 2 ? "cde" : "ab";
  out[24 + i] = pairs[i % 2][1] == chosen[1] && letter("abcd", 2) == 'c' && function_name(0) == 'f' ? chosen[1] : -1;
  device coherent(device) int *again = (device coherent(device) int *)out;
  coherent device const int *source = index;
  int coherent = 3;
  again[32 + i] = source[i] * coherent;
}
