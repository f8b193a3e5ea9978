// Training and tables: embeddings taken and their gradients added by atomics, cross-entropy forwards and back, Adam, gradient
// norms, histograms.
#include <metal_stdlib>
#include <metal_atomic>
using namespace metal;

// ---- Embeddings.
template <typename T, typename I>
[[kernel]] void take(device const T *table [[buffer(0)]], device const I *ids [[buffer(1)]], device T *out [[buffer(2)]],
                     constant int2 &size /* rows, width */ [[buffer(3)]], uint2 at [[thread_position_in_grid]]) {
  // Negative ones count from the end.
  long id = ids[at.y];
  id += id < 0 ? size.x : 0;
  out[at.y * size.y + at.x] = table[id * size.y + at.x];
}
template [[host_name("take_f16_i64")]] [[kernel]] decltype(take<half, int64_t>) take<half, int64_t>;
template [[host_name("take_u8_i32")]] [[kernel]] decltype(take<uchar, int>) take<uchar, int>;

kernel void add_at_float(device atomic_float *table [[buffer(0)]], device const int *ids [[buffer(1)]],
                         device const float *grads [[buffer(2)]], constant uint &width [[buffer(3)]],
                         uint2 at [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&table[ids[at.y] * width + at.x], grads[at.y * width + at.x], memory_order_relaxed);
}
// The float's bits by compare and exchange, as before there were float atomics; here for a maximum.
kernel void max_at_float(device atomic_uint *table [[buffer(0)]], device const int *ids [[buffer(1)]],
                         device const float *values [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  device atomic_uint *cell = table + ids[i];
  uint seen = atomic_load_explicit(cell, memory_order_relaxed);
  while (as_type<float>(seen) < values[i] &&
         !atomic_compare_exchange_weak_explicit(cell, &seen, as_type<uint>(values[i]), memory_order_relaxed, memory_order_relaxed)) {
  }
}
// Two halves in one word.
kernel void add_at_halves(device atomic_uint *table [[buffer(0)]], device const int *ids [[buffer(1)]],
                          device const half *grads [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  const uint place = ids[i];
  device atomic_uint *word = &table[place / 2];
  uint before = atomic_load_explicit(word, memory_order_relaxed), after;
  do {
    half2 both = as_type<half2>(before);
    both[place % 2] += grads[i];
    after = as_type<uint>(both);
  } while (!atomic_compare_exchange_weak_explicit(word, &before, after, memory_order_relaxed, memory_order_relaxed));
}

// ---- Cross-entropy of logits with a class a row; smoothing, and a class to be left out. The loss and log(sum(exp)) are kept for
// the way back.
struct loss_args {
  uint classes;
  int ignored;
  float smoothing;
};
template <typename T>
[[kernel]] void cross_entropy(device const T *logits [[buffer(0)]], device const int *targets [[buffer(1)]],
                              device float *loss [[buffer(2)]], device float *log_sums [[buffer(3)]],
                              constant loss_args &args [[buffer(4)]], uint row [[threadgroup_position_in_grid]],
                              uint t [[thread_position_in_threadgroup]], uint threads [[threads_per_threadgroup]],
                              uint sg [[simdgroup_index_in_threadgroup]], uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float3 parts[32]; // maximum, sum of exponentials, sum
  logits += ulong(row) * args.classes;
  float top = -INFINITY, sum = 0, plain = 0;
  for (uint c = t; c < args.classes; c += threads) {
    const float x = logits[c], grown = max(top, x);
    sum = sum * exp(top - grown) + exp(x - grown);
    top = grown;
    plain += x;
  }
  const float lanes_top = simd_max(top);
  sum = simd_sum(top == -INFINITY ? 0.0f : sum * exp(top - lanes_top));
  plain = simd_sum(plain);
  if (simd_is_first()) parts[sg] = float3(lanes_top, sum, plain);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t != 0) return;
  float3 all = parts[0];
  for (uint s = 1; s < sgs; s++) {
    const float3 other = parts[s];
    const float grown = max(all.x, other.x);
    all = float3(grown, all.y * exp(all.x - grown) + other.y * exp(other.x - grown), all.z + other.z);
  }
  const float log_sum = all.x + log(all.y);
  log_sums[row] = log_sum;
  const int target = targets[row];
  if (target == args.ignored) loss[row] = 0;
  else loss[row] = log_sum - (1 - args.smoothing) * float(logits[target]) - args.smoothing * all.z / args.classes;
}
template <typename T>
[[kernel]] void cross_entropy_back(device const T *logits [[buffer(0)]], device const int *targets [[buffer(1)]],
                                   device const float *log_sums [[buffer(2)]], device const float *scale [[buffer(3)]],
                                   device T *grads [[buffer(4)]], constant loss_args &args [[buffer(5)]],
                                   uint2 at [[thread_position_in_grid]]) {
  const uint i = at.y * args.classes + at.x;
  const int target = targets[at.y];
  float g = exp(float(logits[i]) - log_sums[at.y]) - args.smoothing / args.classes;
  if (int(at.x) == target) g -= 1 - args.smoothing;
  grads[i] = target == args.ignored ? T(0) : T(g * scale[at.y]);
}
template [[host_name("cross_entropy_f32")]] [[kernel]] decltype(cross_entropy<float>) cross_entropy<float>;
template [[host_name("cross_entropy_bf16")]] [[kernel]] decltype(cross_entropy<bfloat>) cross_entropy<bfloat>;
template [[host_name("cross_entropy_back_f32")]] [[kernel]] decltype(cross_entropy_back<float>) cross_entropy_back<float>;
template [[host_name("cross_entropy_back_bf16")]] [[kernel]] decltype(cross_entropy_back<bfloat>) cross_entropy_back<bfloat>;

// ---- Adam with weight decay apart; weights in bfloat with a float copy beside them.
struct adam_args {
  float rate, beta1, beta2, epsilon, decay;
  float correction1, correction2; // 1 - beta^step
};
kernel void adamw(device bfloat *weights [[buffer(0)]], device float *master [[buffer(1)]], device float2 *moments [[buffer(2)]],
                  device const bfloat *grads [[buffer(3)]], constant adam_args &a [[buffer(4)]], constant float &clip [[buffer(5)]],
                  uint i [[thread_position_in_grid]]) {
  const float g = float(grads[i]) * clip;
  const float2 beta = float2(a.beta1, a.beta2);
  const float2 m = mix(float2(g, g * g), moments[i], beta);
  moments[i] = m;
  const float2 corrected = m / float2(a.correction1, a.correction2);
  float w = master[i];
  w -= a.rate * a.decay * w;
  w -= a.rate * corrected.x / (sqrt(corrected.y) + a.epsilon);
  master[i] = w;
  weights[i] = bfloat(w);
}

// ---- Histograms: one for each threadgroup in its memory, then into one for all.
kernel void histogram_256(device const uchar4 *pixels [[buffer(0)]], device atomic_uint *bins [[buffer(1)]], constant uint &n [[buffer(2)]],
                          uint i [[thread_position_in_grid]], uint grid [[threads_per_grid]], ushort t [[thread_index_in_threadgroup]],
                          ushort threads [[threads_per_threadgroup]]) {
  threadgroup atomic_uint own[3][256]; // red, green, blue
  for (ushort b = t; b < 768; b += threads) atomic_store_explicit(&own[b / 256][b % 256], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = i; k < n; k += grid) {
    const uchar4 pixel = pixels[k];
    for (ushort c = 0; c < 3; c++) atomic_fetch_add_explicit(&own[c][pixel[c]], 1, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (ushort b = t; b < 768; b += threads) {
    const uint count = atomic_load_explicit(&own[b / 256][b % 256], memory_order_relaxed);
    if (count) atomic_fetch_add_explicit(bins + b, count, memory_order_relaxed);
  }
}
