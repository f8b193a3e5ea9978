// The gated delta rule, token by token: with the state S (depth x values) of each head of each batch,
//
//   S = exp(g[t]) S;  S = S + k[t] (beta[t] (v[t] - Sᵀ k[t]))ᵀ;  out[t] = scale Sᵀ q[t]
//
// q, k: (batches, length, heads, DEPTH) and v, out: (batches, length, heads, values) of T; g, beta: (batches, length,
// heads) of float; initial: (batches, heads, DEPTH, values) of float, or 0 without INITIAL; states: (batches, chunks + 1,
// heads, DEPTH, values) of float, S before each chunk of `chunk` tokens and at the end. A thread has a column of S.
// The text stands behind the type T and the constants DEPTH, INITIAL and LANES, the threads of a column on GPUs.

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

// ---- On GPUs, whose threads take long from one token to the next: LANES lanes of a simdgroup share a column, each
// with every LANES-th element of it, and what later tokens need is loaded AHEAD of its use.

constant constexpr int COLUMNS = 32 / LANES, PER = (DEPTH + LANES - 1) / LANES, AHEAD = 4;

struct token { float k[PER], q[PER], v, decay, beta; };

inline float over_lanes(float value) {
  for (ushort n = LANES / 2; n > 0; n /= 2) value += simd_shuffle_xor(value, n);
  return value;
}

// Threadgroups: (columns of a simdgroup, head, batch).
kernel void smelt_delta_lanes(const device T *q [[buffer(0)]], const device T *k [[buffer(1)]],
                              const device T *v [[buffer(2)]], const device float *g [[buffer(3)]],
                              const device float *beta [[buffer(4)]], const device float *initial [[buffer(5)]],
                              device T *out [[buffer(6)]], device float *states [[buffer(7)]],
                              constant delta_size &size [[buffer(8)]], uint3 at [[threadgroup_position_in_grid]],
                              uint lane [[thread_index_in_simdgroup]]) {
  const uint part = lane % LANES, wanted = at.x * COLUMNS + lane / LANES;
  const bool inside = wanted < size.values;
  const uint column = inside ? wanted : 0;
  const long head = long(at.z) * size.heads + at.y, state = long(DEPTH) * size.values;
  const long first = long(at.z) * size.length * size.heads + at.y;
  float s[PER];
  token tokens[AHEAD];
  for (int i = 0; i < PER; i++) {
    const uint depth = i * LANES + part;
    s[i] = INITIAL && depth < DEPTH ? initial[head * state + long(depth) * size.values + column] : 0.0f;
  }
#define LOAD(to, t)                                                                            \
  {                                                                                            \
    const long place = first + long(min(uint(t), size.length - 1)) * size.heads;               \
    for (int i = 0; i < PER; i++) {                                                            \
      const uint depth = i * LANES + part;                                                     \
      to.k[i] = depth < DEPTH ? float(k[place * DEPTH + depth]) : 0.0f;                        \
      to.q[i] = depth < DEPTH ? float(q[place * DEPTH + depth]) : 0.0f;                        \
    }                                                                                          \
    to.v = float(v[place * size.values + column]);                                             \
    to.decay = g[place];                                                                       \
    to.beta = beta[place];                                                                     \
  }
#define KEEP(chunk)                                                                                                   \
  {                                                                                                                   \
    device float *to = states + ((long(at.z) * (size.chunks + 1) + chunk) * size.heads + at.y) * state + column;      \
    for (int i = 0; i < PER; i++)                                                                                     \
      if (inside && i * LANES + part < DEPTH) to[long(i * LANES + part) * size.values] = s[i];                        \
  }
  if (size.length > 0)
    for (int j = 0; j < AHEAD; j++) LOAD(tokens[j], j)
  uint next = 0, chunk = 0;
  for (uint begin = 0; begin < size.length; begin += AHEAD) {
    for (int j = 0; j < AHEAD; j++) {
      const uint t = begin + j;
      if (t < size.length) {
        if (t == next) {
          KEEP(chunk)
          chunk++;
          next += size.chunk;
        }
        const float decay = exp(tokens[j].decay);
        float along = 0.0f, result = 0.0f;
        for (int i = 0; i < PER; i++) {
          s[i] *= decay;
          along += s[i] * tokens[j].k[i];
        }
        const float change = tokens[j].beta * (tokens[j].v - over_lanes(along));
        for (int i = 0; i < PER; i++) {
          s[i] += tokens[j].k[i] * change;
          result += s[i] * tokens[j].q[i];
        }
        result = over_lanes(result);
        if (part == 0 && inside) out[(first + long(t) * size.heads) * size.values + column] = T(result * size.scale);
        LOAD(tokens[j], t + AHEAD)
      }
    }
  }
  KEEP(size.chunks)
}
