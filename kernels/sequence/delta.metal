// The gated delta rule, token by token: with the state S (depth x values) of each head of each batch,
//
//   S = exp(g[t]) S;  S = S + k[t] (beta[t] (v[t] - Sᵀ k[t]))ᵀ;  out[t] = scale Sᵀ q[t]
//
// q, k: (batches, length, heads, DEPTH) and v, out: (batches, length, heads, values) of T; g, beta: (batches, length,
// heads) of float; initial: (batches, heads, DEPTH, values) of float, or 0 without INITIAL; states: (batches, chunks + 1,
// heads, DEPTH, values) of float, S before each chunk of `chunk` tokens and at the end. A thread has a column of S. The
// text stands behind the type T and the constants DEPTH and INITIAL.

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
