"""Kernels as users write them, each against a plain reference of fresh random data, on both CPU engines, into outputs
that hold other values before. The engines' results must have the same bits."""
import numpy as np
import pytest

import smelt

CASES = []


def case(function):
    CASES.append(function)
    return function


class Body:
    def __init__(self, source, inputs, expected, grid, threadgroup, tolerance=0.0, template=None):
        self.source, self.inputs, self.grid, self.threadgroup = source, inputs, grid, threadgroup
        self.expected, self.tolerance, self.template = expected, tolerance, template

    def run(self, name, device):
        kernel = smelt.metal_kernel(name=name, input_names=list(self.inputs), output_names=list(self.expected), source=self.source)
        outputs = [poisoned(array) for array in self.expected.values()]
        kernel(inputs=list(self.inputs.values()), grid=self.grid, threadgroup=self.threadgroup, out=outputs, device=device,
               template=self.template, output_shapes=[array.shape for array in outputs],
               output_dtypes=[array.dtype for array in outputs])
        return outputs


class File:
    """`expected`: by the index of the argument, which is poisoned unless `keep`."""

    def __init__(self, source, arguments, expected, tolerance=0.0, keep=(), **launch):
        self.source = "#include <metal_stdlib>\nusing namespace metal;\n" + source
        self.arguments, self.expected, self.tolerance, self.keep, self.launch = arguments, expected, tolerance, keep, launch

    def run(self, name, device):
        arguments = [value.copy() if isinstance(value, np.ndarray) else value for value in self.arguments]
        for index, value in self.expected.items():
            if index not in self.keep:
                arguments[index] = poisoned(value)
        smelt.library(self.source).function(name)(*arguments, device=device, **self.launch)
        return [arguments[index] for index in self.expected]


def poisoned(like):
    return np.full(like.nbytes, 0xA5, np.uint8).view(like.dtype).reshape(like.shape)


@case
def scan_of_simdgroups(r):
    n = int(r.integers(33, 200))
    x = r.integers(0, 9, n).astype(np.int32)
    return Body("""
        uint t = thread_index_in_threadgroup, n = threads_per_threadgroup.x, sg = simdgroup_index_in_threadgroup;
        threadgroup int sums[32];
        int sum = simd_prefix_inclusive_sum(x[t]);
        if (thread_index_in_simdgroup == min(32u, n - sg * 32) - 1) sums[sg] = sum;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (sg == 0) {
            bool present = thread_index_in_simdgroup < simdgroups_per_threadgroup;
            int before = simd_prefix_exclusive_sum(present ? sums[thread_index_in_simdgroup] : 0);
            if (present) sums[thread_index_in_simdgroup] = before;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[t] = sum + sums[sg];""", {"x": x}, {"y": np.cumsum(x).astype(np.int32)}, (n, 1, 1), (n, 1, 1))


@case
def halving_after_returns(r):
    n = int(r.integers(2, 150))
    x = r.integers(0, 100, n).astype(np.int32)
    return Body("""
        threadgroup int s[256];
        uint t = thread_index_in_threadgroup, n = threads_per_threadgroup.x;
        s[t] = x[t];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[t] = -1;
        if (t >= (n + 1) / 2) return;
        for (uint m = n; m > 1;) {
            uint h = (m + 1) / 2;
            if (t < m / 2) s[t] += s[t + h];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            m = h;
        }
        if (t == 0) y[0] = s[0];""", {"x": x}, {"y": np.where(np.arange(n) == 0, x.sum(), -1).astype(np.int32)}, (n, 1, 1), (n, 1, 1))


@case
def rounds_that_differ_by_group(r):
    groups = int(r.integers(2, 6))
    x = r.integers(0, 100, groups * 64).astype(np.int32)
    expected = x.reshape(groups, 64).copy()
    for g in range(groups):
        for _ in range(g):
            expected[g] = np.roll(expected[g], -1) + g
    return Body("""
        threadgroup int s[64];
        uint t = thread_index_in_threadgroup, g = threadgroup_position_in_grid.x;
        int v = x[g * 64 + t];
        for (uint k = 0; k < g; k++) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            s[t] = v;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            v = s[(t + 1) & 63] + int(g);
        }
        y[g * 64 + t] = v;""", {"x": x}, {"y": expected.reshape(-1)}, (groups * 64, 1, 1), (64, 1, 1))


@case
def sums_of_lanes_that_leave(r):
    x = r.integers(1, 30, 64).astype(np.int32)
    expected = np.zeros(64, np.int32)
    for first in (0, 32):
        v, lanes = x[first:first + 32].copy(), slice(first, first + 32)
        while (v > 0).any():
            expected[lanes] += np.where(v > 0, v[v > 0].sum() % 7, 0)
            v -= v > 0
    return Body("uint i = thread_position_in_grid.x; int v = x[i], acc = 0; while (v > 0) { acc += simd_sum(v) % 7; v--; } y[i] = acc;",
                {"x": x}, {"y": expected}, (64, 1, 1), (64, 1, 1))


@case
def elimination(r):
    n = int(r.integers(1, 17))
    a, b = (r.normal(size=(n, n)) + (n + 5) * np.eye(n)).astype(np.float32), r.normal(size=n).astype(np.float32)
    return Body("""
        threadgroup float A[16][17];
        uint t = thread_index_in_threadgroup, n = a_shape[0];
        for (uint j = 0; j < n; j++) A[t][j] = a[t * n + j];
        A[t][n] = b[t];
        for (uint k = 0; k < n; k++) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (t == k) continue;
            float f = A[t][k] / A[k][k];
            for (uint j = k; j <= n; j++) A[t][j] -= f * A[k][j];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[t] = A[t][n] / A[t][t];""", {"a": a, "b": b},
                {"y": np.linalg.solve(a.astype(float), b.astype(float)).astype(np.float32)}, (n, 1, 1), (n, 1, 1), 1e-4)


@case
def attention_of_one_row(r):
    heads, rows, keys, size = 2, int(r.integers(1, 10)), int(r.integers(1, 40)), 32
    q, k, v = (r.normal(size=(heads, n, size)).astype(np.float16) for n in (rows, keys, keys))
    scores = q.astype(float) @ k.astype(float).transpose(0, 2, 1) / np.sqrt(size)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(float)
    return Body("""
        uint lane = thread_index_in_simdgroup, row = threadgroup_position_in_grid.y, h = row / q_shape[1];
        float own = float(q[row * D + lane]) * rsqrt(float(D)), most = -INFINITY, sum = 0, out = 0;
        for (int j = 0; j < k_shape[1]; j++) {
            uint at = (h * k_shape[1] + j) * D + lane;
            float score = simd_sum(own * float(k[at])), m = max(most, score), f = exp(most - m), p = exp(score - m);
            sum = sum * f + p;
            out = out * f + p * float(v[at]);
            most = m;
        }
        y[row * D + lane] = half(out / sum);""", {"q": q, "k": k, "v": v}, {"y": expected.astype(np.float16)}, (32, heads * rows, 1),
                (32, 1, 1), 2e-3, [("D", size)])


@case
def weights_of_four_bits(r):
    rows, terms = int(r.integers(1, 20)), 64
    codes = r.integers(0, 2**32, (rows, terms // 8)).astype(np.uint32)
    scales, x = r.normal(size=(rows, terms // 32)).astype(np.float16), r.normal(size=terms).astype(np.float16)
    weights = np.stack([(codes >> np.uint32(4 * j)) & 15 for j in range(8)], -1).reshape(rows, terms).astype(float) - 8
    expected = (weights * np.repeat(scales.astype(float), 32, 1)) @ x.astype(float)
    return Body("""
        uint row = thread_position_in_grid.y, lane = thread_index_in_simdgroup;
        float s = 0;
        for (uint j = lane; j < K / 8; j += 32) {
            uint32_t p = w[row * (K / 8) + j];
            float d = 0;
            for (int e = 0; e < 8; e++) d += float(int((p >> (4 * e)) & 15) - 8) * float(x[j * 8 + e]);
            s += d * float(scales[row * (K / 32) + j / 4]);
        }
        s = simd_sum(s);
        if (lane == 0) y[row] = s;""", {"w": codes, "scales": scales, "x": x}, {"y": expected.astype(np.float32)}, (32, rows, 1),
                (32, 1, 1), 1e-3, [("K", terms)])


@case
def distance_of_words(r):
    n, length = int(r.integers(1, 40)), 12
    a, b = (r.integers(0, 4, (n, length)).astype(np.uint8) for _ in range(2))

    def distance(s, t):
        d = list(range(length + 1))
        for i in range(1, length + 1):
            p, d[0] = d[0], i
            for j in range(1, length + 1):
                p, d[j] = d[j], min(d[j] + 1, d[j - 1] + 1, p + (s[i - 1] != t[j - 1]))
        return d[length]

    return Body("""
        uint g = thread_position_in_grid.x;
        const device uint8_t *s = a + g * 12, *t = b + g * 12;
        uint8_t d[13];
        for (uint8_t i = 0; i <= 12; i++) d[i] = i;
        for (int i = 1; i <= 12; i++) {
            uint8_t p = d[0];
            d[0] = i;
            for (int j = 1; j <= 12; j++) {
                uint8_t q = d[j], c = p + (s[i - 1] != t[j - 1]), m = d[j] + 1;
                if (d[j - 1] + 1 < m) m = d[j - 1] + 1;
                d[j] = c < m ? c : m;
                p = q;
            }
        }
        y[g] = d[12];""", {"a": a, "b": b}, {"y": np.array([distance(s, t) for s, t in zip(a, b)], np.int32)}, (n, 1, 1), (32, 1, 1))


@case
def states_of_a_machine(r):
    x = r.integers(0, 40, 257).astype(np.int32)

    def run(v):
        acc, state = 0, v % 3
        for _ in range(200):
            if state == 0:
                acc, v = acc + v, v - 2
                state = 1 if v > 10 else 2
            elif state == 1:
                acc, v = acc ^ v, v - 1
                state = 2 if v & 1 else 0
            else:
                acc, v = acc + 3, v - 3
                if v < 0:
                    break
                state = v % 2
        return acc

    return Body("""
        uint i = thread_position_in_grid.x;
        int v = x[i], acc = 0, state = v % 3;
        for (int round = 0; round < 200; round++)
            switch (state) {
            case 0: acc += v; v -= 2; state = v > 10 ? 1 : 2; break;
            case 1: acc ^= v; v -= 1; state = v & 1 ? 2 : 0; break;
            default: acc += 3; v -= 3; if (v < 0) goto out; state = v % 2; break;
            }
    out:
        y[i] = acc;""", {"x": x}, {"y": np.array([run(int(v)) for v in x], np.int32)}, (257, 1, 1), (64, 1, 1))


@case
def go_last_group(r):
    n = int(r.choice([100, 1000, 3333]))
    x, groups = r.integers(0, 100, n).astype(np.int32), -(-n // 64)
    return File("""
        kernel void go_last_group(device const int *x, device int *partial, device atomic_uint *done, device int *total,
                                  uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                                  uint g [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]],
                                  uint sg [[simdgroup_index_in_threadgroup]], uint count [[simdgroups_per_threadgroup]]) {
            threadgroup int s[32];
            threadgroup bool last;
            int v = simd_sum(x[i]);
            if (simd_is_first()) s[sg] = v;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (t == 0) {
                int sum = 0;
                for (uint j = 0; j < count; j++) sum += s[j];
                partial[g] = sum;
                atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
                last = atomic_fetch_add_explicit(done, 1, memory_order_relaxed) == groups - 1;
            }
            threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
            if (!last || t != 0) return;
            int sum = 0;
            for (uint j = 0; j < groups; j++) sum += partial[j];
            *total = sum;
        }""", [x, np.zeros(groups, np.int32), np.zeros(1, np.uint32), None], {3: np.array([x.sum()], np.int32)}, threads=n, group_size=64)


@case
def radix_pass(r):
    n = int(r.choice([5, 64, 256]))
    x = r.integers(0, 16, n).astype(np.uint32)
    return File("""
        kernel void radix_pass(device const uint *x, device uint *y, device uint *index, uint t [[thread_index_in_threadgroup]],
                               uint n [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                               uint sg [[simdgroup_index_in_threadgroup]]) {
            threadgroup uint count[16][8];
            uint v = x[t], rank = 0;
            for (uint b = 0; b < 16; b++) {
                uint votes = uint(uint64_t(simd_ballot(v == b)));
                if (v == b) rank = popcount(votes & ((1u << lane) - 1u));
                if (lane == 0) count[b][sg] = popcount(votes);
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (t == 0)
                for (uint b = 0, s = 0; b < 16; b++)
                    for (uint g = 0; g < (n + 31) / 32; g++) { uint c = count[b][g]; count[b][g] = s; s += c; }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            y[count[v][sg] + rank] = v;
            index[count[v][sg] + rank] = t;
        }""", [x, None, None], {1: np.sort(x), 2: np.argsort(x, kind="stable").astype(np.uint32)}, threads=n, group_size=n)


@case
def matrices_by_index(r):
    n = int(r.integers(2, 6))
    a, odd = r.normal(size=(n, 8, 8)).astype(np.float32), int(r.integers(0, 2))
    product = np.eye(8)
    for i in range(n):
        m = a[(i * 5) % n].astype(float)
        product = product @ m if (i + odd) % 2 else product + m
    return File("""
        kernel void matrices_by_index(device const float *a, device float *out, constant int &n, constant int &odd) {
            simdgroup_float8x8 m[6], p(1.0f), one(1.0f);
            for (int i = 0; i < n; i++) simdgroup_load(m[i], a + 64 * i, 8);
            for (int i = 0; i < n; i++) {
                simdgroup_float8x8 q;
                if ((i + odd) % 2) simdgroup_multiply(q, p, m[(i * 5) % n]);
                else simdgroup_multiply_accumulate(q, m[(i * 5) % n], one, p);
                p = q;
            }
            simdgroup_store(p, out, 8, ulong2(0, 0), true);
        }""", [a, None, n, odd], {1: np.ascontiguousarray(product.T).astype(np.float32)}, 1e-4, threads=32, group_size=32)


@case
def counters_that_wrap(r):
    n = int(r.choice([31, 100]))

    def expected(i):
        first = 250 + i % 6
        return sum((first + j) % 256 for j in range((10 - first) % 256)) + ((32767 - i % 3 + 2) & 0xFFFF)

    return File("""
        kernel void counters_that_wrap(device uint *y, uint i [[thread_position_in_grid]]) {
            uint s = 0;
            for (uchar c = uchar(250 + i % 6); c != 10; c++) s += c;
            short q = short(32767 - int(i % 3));
            q += 2;
            y[i] = s + uint(ushort(q));
        }""", [None], {0: np.array([expected(i) for i in range(n)], np.uint32)}, threads=n, group_size=64)


@case
def variances_by_welford(r):
    rows, columns = int(r.integers(1, 20)), int(r.choice([1, 5, 300]))
    x = (r.normal(size=(rows, columns)) + 3).astype(np.float16)
    return File("""
        static float3 join(float3 a, float3 b) {   // count, mean, sum of squares
            float n = a.x + b.x, d = b.y - a.y;
            return b.x == 0 ? a : float3(n, a.y + d * b.x / n, a.z + b.z + d * d * a.x * b.x / n);
        }
        kernel void variances_by_welford(device const half *x, device float *mean, device float *variance, constant uint &columns,
                                         uint r [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                                         uint n [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                                         uint sg [[simdgroup_index_in_threadgroup]], uint count [[simdgroups_per_threadgroup]]) {
            float3 own = 0;
            for (uint c = t; c < columns; c += n) own = join(own, float3(1, float(x[r * columns + c]), 0));
            for (ushort o = 16; o > 0; o /= 2) {
                float3 other = simd_shuffle_down(own, o);
                if (lane + o < 32) own = join(own, other);
            }
            threadgroup float3 parts[32];
            if (lane == 0) parts[sg] = own;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (t != 0) return;
            for (uint j = 1; j < count; j++) own = join(own, parts[j]);
            mean[r] = own.y;
            variance[r] = own.z / columns;
        }""", [x, None, None, columns], {1: x.astype(float).mean(1).astype(np.float32), 2: x.astype(float).var(1).astype(np.float32)},
                1e-5, groups=rows, group_size=96)


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_against_the_reference_on_both_engines(make):
    for seed in (1, None):
        kernel = make(np.random.default_rng(seed))
        results = [kernel.run(make.__name__, device) for device in ("cpu", "cpu-scalar")]
        for simd, scalar, expected in zip(*results, kernel.expected.values()):
            np.testing.assert_allclose(simd.astype(float), expected.astype(float), rtol=kernel.tolerance, atol=kernel.tolerance)
            np.testing.assert_array_equal(simd.view(np.uint8), scalar.view(np.uint8))
