// The gated delta rule, token by token: with the state S (depth x values) of each head of each batch,
//
//   S = exp(g[t]) S;  S = S + k[t] (beta[t] (v[t] - Sᵀ k[t]))ᵀ;  out[t] = scale Sᵀ q[t]
//
// q, k: (batches, length, heads, DEPTH) and v, out: (batches, length, heads, values) of T; g, beta: (batches, length,
// heads) of float; initial: (batches, heads, DEPTH, values) of float, or 0 without INITIAL; states: (batches, chunks + 1,
// heads, DEPTH, values) of float, S before each chunk of `chunk` tokens and at the end. A thread has a column of S.
// The text stands behind the type T and the constants DEPTH, INITIAL, and on GPUs LANES, GROUP and WHOLE.

struct delta_size { uint length, heads, values, chunk, chunks; float scale; };

// Threads: (value, head, batch).
kernel void smelt_delta(const device T *q [[buffer(0)]], const device T *k [[buffer(1)]], const device T *v [[buffer(2)]],
                        const device float *g [[buffer(3)]], const device float *beta [[buffer(4)]],
                        const device float *initial [[buffer(5)]], device T *out [[buffer(6)]],
                        device float *states [[buffer(7)]], constant delta_size &size [[buffer(8)]],
                        uint3 at [[thread_position_in_grid]]) {
  float s[DEPTH];
  const long head = long(at.z) * size.heads + at.y, state = long(DEPTH) * size.values;
  for (int i = 0; i < DEPTH; i++) s[i] = INITIAL ? initial[head * state + long(i) * size.values + at.x] : 0.0f;
  for (uint t = 0; t < size.length; t++) {
    const long token = (long(at.z) * size.length + t) * size.heads + at.y;
    if (t % size.chunk == 0) {
      device float *to = states + ((long(at.z) * (size.chunks + 1) + t / size.chunk) * size.heads + at.y) * state + at.x;
      for (int i = 0; i < DEPTH; i++) to[long(i) * size.values] = s[i];
    }
    const float decay = exp(g[token]);
    float along = 0.0f, result = 0.0f;
    for (int i = 0; i < DEPTH; i++) {
      s[i] *= decay;
      along += s[i] * float(k[token * DEPTH + i]);
    }
    const float change = beta[token] * (float(v[token * size.values + at.x]) - along);
    for (int i = 0; i < DEPTH; i++) {
      s[i] += float(k[token * DEPTH + i]) * change;
      result += s[i] * float(q[token * DEPTH + i]);
    }
    out[token * size.values + at.x] = T(result * size.scale);
  }
  device float *to = states + ((long(at.z) * (size.chunks + 1) + size.chunks) * size.heads + at.y) * state + at.x;
  for (int i = 0; i < DEPTH; i++) to[long(i) * size.values] = s[i];
}

// ---- On GPUs, where one thread takes long for a token: LANES lanes of a simdgroup share a column. A lane has every
// LANES-th of the column's groups of GROUP elements, and loads what a token needs AHEAD tokens earlier. GROUP is 4 if the
// addresses of q and k are multiples of four elements. WHOLE: chunks are multiples of AHEAD tokens.

constant constexpr int COLUMNS = 32 / LANES, GROUPS = (DEPTH + GROUP * LANES - 1) / (GROUP * LANES), PER = GROUPS * GROUP;
constant constexpr int AHEAD = 8;
#define UNROLL _Pragma("clang loop unroll(full)")
typedef vec<T, GROUP == 4 ? 4 : 2> several;

struct token { float k[PER], q[PER], v, decay, beta; };

// Sums two values over the lanes of a column.
inline void over_lanes(thread float &a, thread float &b) {
  for (ushort n = LANES / 2; n > 0; n /= 2) {
    const float x = simd_shuffle_xor(a, n), y = simd_shuffle_xor(b, n);
    a += x, b += y;
  }
}
// A lane's elements of a vector of DEPTH elements; 0 beyond its end.
inline void load_part(const device T *from, uint part, thread float *to) {
  for (int i = 0; i < GROUPS; i++) {
    const uint first = (i * LANES + part) * GROUP;
    const bool inside = DEPTH % (GROUP * LANES) == 0 || first < DEPTH;
    if (GROUP == 4) {
      const several x = inside ? *(const device several *)(from + first) : several(0);
      for (int j = 0; j < GROUP; j++) to[i * GROUP + j] = float(x[j]);
    } else {
      to[i] = inside ? float(from[first]) : 0.0f;
    }
  }
}

// A lane's part of a column, and its place in the arrays.
struct column {
  float s[PER], result; // of the last token, before the lanes' results are added
  const device T *q, *k, *v;
  const device float *g, *beta;
  device T *out;        // of the last token
  device float *states;
  uint part;            // of LANES
  uint kept;            // the token before which S is stored next
  bool inside;
};

inline void load(thread token &to, thread const column &c) {
  load_part(c.k, c.part, to.k);
  load_part(c.q, c.part, to.q);
  to.v = float(*c.v), to.decay = *c.g, to.beta = *c.beta;
}
inline void go_on(thread column &c, delta_size size, uint tokens) {
  c.q += long(tokens) * size.heads * DEPTH, c.k += long(tokens) * size.heads * DEPTH;
  c.v += long(tokens) * size.heads * size.values;
  c.g += long(tokens) * size.heads, c.beta += long(tokens) * size.heads;
}
inline void keep(thread const column &c, delta_size size) {
  for (int i = 0; i < PER; i++) {
    const uint depth = (i / GROUP * LANES + c.part) * GROUP + i % GROUP;
    if (c.inside && depth < DEPTH) c.states[long(depth) * size.values] = c.s[i];
  }
}
inline void store(thread const column &c, delta_size size, float result) {
  if (c.inside && c.part == 0) *c.out = T(result * size.scale);
}

// Computes token t, and loads token t + AHEAD into x. Lanes add up the result of t - 1 together with a sum of t, so that
// one chain of shuffles serves both. The decay of the next token is computed here, before it is needed.
inline void advance(thread column &c, thread token &x, thread token &next, delta_size size, uint t, bool may_keep) {
  if (may_keep && t == c.kept) {
    keep(c, size);
    c.states += long(DEPTH) * size.values * size.heads;
    c.kept += size.chunk;
  }
  next.decay = exp(next.decay);
  float sum = 0.0f, odd = 0.0f, other = 0.0f, before = c.result;
  for (int i = 0; i < PER; i += 2) sum = fma(c.s[i], x.k[i], sum);
  for (int i = 1; i < PER; i += 2) odd = fma(c.s[i], x.k[i], odd);
  sum += odd;
  over_lanes(sum, before);
  if (t > 0) store(c, size, before);
  c.out += t > 0 ? size.heads * size.values : 0;
  const float change = x.beta * fma(-x.decay, sum, x.v);
  for (int i = 0; i < PER; i++) c.s[i] = fma(x.k[i], change, c.s[i] * x.decay);
  c.result = 0.0f;
  for (int i = 0; i < PER; i += 2) c.result = fma(c.s[i], x.q[i], c.result);
  for (int i = 1; i < PER; i += 2) other = fma(c.s[i], x.q[i], other);
  c.result += other;
  load(x, c);
  go_on(c, size, t + AHEAD + 1 < size.length ? 1 : 0);
}

// Threadgroups: (columns of a simdgroup, head, batch).
kernel void smelt_delta_lanes(const device T *q [[buffer(0)]], const device T *k [[buffer(1)]],
                              const device T *v [[buffer(2)]], const device float *g [[buffer(3)]],
                              const device float *beta [[buffer(4)]], const device float *initial [[buffer(5)]],
                              device T *out [[buffer(6)]], device float *states [[buffer(7)]],
                              constant delta_size &sizes [[buffer(8)]], uint3 at [[threadgroup_position_in_grid]],
                              uint lane [[thread_index_in_simdgroup]]) {
  const delta_size size = sizes; // stores might change what is behind the reference
  const uint wanted = at.x * COLUMNS + lane / LANES;
  column c;
  c.part = lane % LANES;
  c.inside = wanted < size.values;
  const uint value = c.inside ? wanted : 0;
  const long state = long(DEPTH) * size.values, head = long(at.z) * size.length * size.heads + at.y;
  c.q = q + head * DEPTH, c.k = k + head * DEPTH, c.g = g + head, c.beta = beta + head;
  c.v = v + head * size.values + value, c.out = out + head * size.values + value;
  c.states = states + (long(at.z) * (size.chunks + 1) * size.heads + at.y) * state + value;
  initial += (long(at.z) * size.heads + at.y) * state + value;
  c.kept = 0, c.result = 0.0f;
  for (int i = 0; i < PER; i++) {
    const uint depth = (i / GROUP * LANES + c.part) * GROUP + i % GROUP;
    c.s[i] = INITIAL && depth < DEPTH ? initial[long(depth) * size.values] : 0.0f;
  }
  token tokens[AHEAD];
  if (size.length > 0) {
    UNROLL for (int j = 0; j < AHEAD; j++) {
      load(tokens[j], c);
      go_on(c, size, uint(j) + 1 < size.length ? 1 : 0);
    }
    tokens[0].decay = exp(tokens[0].decay);
    uint begin = 0;
    for (; begin + AHEAD <= size.length; begin += AHEAD)
      UNROLL for (int j = 0; j < AHEAD; j++)
        advance(c, tokens[j], tokens[(j + 1) % AHEAD], size, begin + j, !WHOLE || j == 0);
    UNROLL for (int j = 0; j < AHEAD; j++)
      if (begin + j < size.length) advance(c, tokens[j], tokens[(j + 1) % AHEAD], size, begin + j, true);
    float unused = 0.0f;
    over_lanes(c.result, unused);
    store(c, size, c.result);
  }
  keep(c, size);
}
