"""QR of a tall, wide or square matrix by panels of Householder reflections, in one threadgroup.

    python examples/python/panel_qr.py [ROWS COLUMNS]

The kernel shows what factorisations need: one simdgroup does the delicate part (a panel's columns, one after another),
all threads do the bulk (the columns right of the panel), barriers stand between the two, and debug flags say what went
wrong. NumPy takes over, with a warning, where the kernel gives up."""

from __future__ import annotations

import sys

import numpy as np

import smelt
from smelt.launch import HEADER, DebugFlags, suggest_launch, with_fallback

# The reflection of column j is H = I - tau v vᵀ, with v[j] = 1; the rest of v lies below the diagonal of `work`.
SOURCE = """
    uint t = thread_index_in_threadgroup, threads = threads_per_threadgroup.x;
    uint lane = thread_index_in_simdgroup;
    uint m = A_shape[0], n = A_shape[1], rank = min(m, n);
    threadgroup bool failed;
    if (t == 0) {
        dbg_clear(dbg);
        dbg_threads(dbg, threads, threads, (m * n + threads - 1) / threads);
        dbg_preflight(dbg, m, n, MAX_SIDE, m * n, MAX_SIDE * MAX_SIDE);
        failed = false;
    }
    if (max(m, n) > MAX_SIDE) return;  // what the preflight refuses; the same for all threads
    for (uint i = t; i < m * n; i += threads) work[i] = A[i];
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);

    for (uint start = 0; start < rank; start += PANEL) {
        uint end = min(start + PANEL, rank);

        // The panel: columns start to end, by one simdgroup, a row in each lane.
        if (simdgroup_index_in_threadgroup == 0) {
            for (uint j = start; j < end; j++) {
                float largest = 0.0f;  // scales the sum of squares, which could overflow
                for (uint i = j + 1 + lane; i < m; i += 32) largest = max(largest, abs(work[i * n + j]));
                largest = simd_max(largest);
                float top = work[j * n + j];
                float scale = max(largest, abs(top)), sum = 0.0f;
                float unit = scale > 0.0f ? scale : 1.0f;  // max passes over NaN, which the sum must not
                for (uint i = j + 1 + lane; i < m; i += 32) sum += (work[i * n + j] / unit) * (work[i * n + j] / unit);
                sum = simd_sum(sum);
                float norm = unit * sqrt((top / unit) * (top / unit) + sum);
                // A column that is 0 below its diagonal is left as it is: tau = 0.
                float beta = top > 0.0f ? -norm : norm;
                float factor = largest > 0.0f ? (beta - top) / beta : 0.0f;
                if (lane == 0) {
                    tau[j] = factor;
                    dbg_value(dbg, 0, norm);
                    dbg_iterations(dbg, j + 1);
                    if (!dbg_finite(dbg, norm)) failed = true;
                    if (largest > 0.0f) work[j * n + j] = beta;
                }
                if (largest > 0.0f)
                    for (uint i = j + 1 + lane; i < m; i += 32) work[i * n + j] = work[i * n + j] / (top - beta);
                simdgroup_barrier(mem_flags::mem_device);
                for (uint c = j + 1; c < end; c++) {
                    float dot = lane == 0 ? work[j * n + c] : 0.0f;
                    for (uint i = j + 1 + lane; i < m; i += 32) dot += work[i * n + j] * work[i * n + c];
                    dot = factor * simd_sum(dot);
                    if (lane == 0) work[j * n + c] -= dot;
                    for (uint i = j + 1 + lane; i < m; i += 32) work[i * n + c] -= dot * work[i * n + j];
                }
                simdgroup_barrier(mem_flags::mem_device);
            }
        }
        threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
        if (failed) return;  // all threads see it: it is written in front of this barrier only

        // The columns right of the panel: one thread a column applies the panel's reflections in order.
        for (uint c = end + t; c < n; c += threads) {
            for (uint j = start; j < end; j++) {
                float dot = work[j * n + c];
                for (uint i = j + 1; i < m; i++) dot += work[i * n + j] * work[i * n + c];
                dot *= tau[j];
                work[j * n + c] -= dot;
                for (uint i = j + 1; i < m; i++) work[i * n + c] -= dot * work[i * n + j];
            }
        }
        threadgroup_barrier(mem_flags::mem_device);
    }

    // Q's columns are those of I with the reflections applied from the last to the first; R is what lies on and above
    // the diagonal.
    for (uint c = t; c < rank; c += threads) {
        for (uint i = 0; i < m; i++) Q[i * rank + c] = i == c ? 1.0f : 0.0f;
        for (uint j = c + 1; j-- > 0;) {
            float dot = Q[j * rank + c];
            for (uint i = j + 1; i < m; i++) dot += work[i * n + j] * Q[i * rank + c];
            dot *= tau[j];
            Q[j * rank + c] -= dot;
            for (uint i = j + 1; i < m; i++) Q[i * rank + c] -= dot * work[i * n + j];
        }
    }
    for (uint i = t; i < rank * n; i += threads) R[i] = i / n <= i % n ? work[i] : 0.0f;
    if (t == 0) dbg_succeed(dbg);
"""

KERNEL = smelt.metal_kernel(name="panel_qr", input_names=["A"], output_names=["Q", "R", "work", "tau", "dbg"],
                            source=SOURCE, header=HEADER)


def reference_qr(a: np.ndarray, panel: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """(Q, R) by LAPACK, in float32, for matrices that the kernel gives up."""
    q, r = np.linalg.qr(np.asarray(a, dtype=np.float64))
    return q.astype(np.float32), r.astype(np.float32)


def kernel_qr(a: np.ndarray, panel: int = 16, max_side: int = 2048) -> tuple[np.ndarray, np.ndarray]:
    """(Q, R) of a (m, n), float32: Q (m, r), R (r, n), r = min(m, n).

    panel: how many columns are factorised between two updates of the rest. KernelFlagError where a side is above
    max_side or a norm is not finite."""
    m, n = a.shape
    rank = min(m, n)
    grid, threadgroup = suggest_launch(a.shape, cooperative=True)
    q, r, _, _, dbg = KERNEL(inputs=[a], template=[("PANEL", panel), ("MAX_SIDE", max_side)], grid=grid,
                             threadgroup=threadgroup, output_shapes=[(m, rank), (rank, n), (m, n), (rank,), (16,)],
                             output_dtypes=[smelt.float32] * 5)
    DebugFlags.decode(dbg).check("panel_qr")
    return q, r


qr = with_fallback(kernel_qr, reference_qr)


def residuals(a: np.ndarray, q: np.ndarray, r: np.ndarray) -> tuple[float, float]:
    """||A - Q R|| / ||A|| and ||I - Qᵀ Q||, in float64."""
    a, q, r = (np.asarray(x, dtype=np.float64) for x in (a, q, r))
    return (float(np.linalg.norm(a - q @ r)) / max(float(np.linalg.norm(a)), 1e-300),
            float(np.linalg.norm(np.eye(q.shape[1]) - q.T @ q)))


def main() -> None:
    m, n = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (300, 200)
    a = np.random.default_rng(0).standard_normal((m, n)).astype(np.float32)
    q, r = qr(a)
    print("||A - QR|| / ||A|| = {:.2g}   ||I - QᵀQ|| = {:.2g}".format(*residuals(a, q, r)))


if __name__ == "__main__":
    main()
