// What reductions and cumulative operations start from, and values of other lanes. The text stands behind
// `using namespace metal;`.
template <typename T> inline T least() { return numeric_limits<T>::lowest(); }
template <> inline float least<float>() { return -INFINITY; }
template <typename T> inline T greatest() { return numeric_limits<T>::max(); }
template <> inline float greatest<float>() { return INFINITY; }
template <typename T> inline T shuffled(T a, ushort n) { return simd_shuffle_down(a, n); }
inline bool shuffled(bool a, ushort n) { return simd_shuffle_down(uint(a), n) != 0; }
inline long shuffled(long a, ushort n) {
  return as_type<long>(simd_shuffle_down(as_type<uint2>(a), n));
}
inline ulong shuffled(ulong a, ushort n) {
  return as_type<ulong>(simd_shuffle_down(as_type<uint2>(a), n));
}
