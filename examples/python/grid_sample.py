"""Bilinear sampling of images at points, and its gradient: a fused kernel with a custom VJP.

    python examples/python/grid_sample.py

x (B, H, W, C) are images, grid (B, N, M, 2) points (x, y) in [-1, 1], which are the outer edges of the image; the
result is (B, N, M, C). What lies outside an image counts as 0."""

from __future__ import annotations

import math

import numpy as np

import smelt

# Where a point falls: corner (0, 0) is `left`, `top`; `east` and `south` are how far from it, in [0, 1).
HEADER = """
struct sample {
    int left, top;
    float east, south;
    // In pixels; what lies far outside touches no corner wherever it is, and stays in the range of int.
    static float pixels(float at, int size) { return clamp(((at + 1.0f) * size - 1.0f) / 2.0f, -2.0f, size + 1.0f); }
    sample(float x, float y, int width, int height) {
        x = pixels(x, width), y = pixels(y, height);
        left = int(floor(x)), top = int(floor(y));
        east = x - floor(x), south = y - floor(y);
    }
};
"""

FORWARD = """
    uint element = thread_position_in_grid.x;
    int H = x_shape[1], W = x_shape[2];
    uint C = x_shape[3], point = element / C, channel = element % C;
    uint image = point / uint(grid_shape[1] * grid_shape[2]);
    sample at(grid[2 * point], grid[2 * point + 1], W, H);
    float sum = 0.0f;
    for (int dy = 0; dy < 2; dy++)
        for (int dx = 0; dx < 2; dx++) {
            int row = at.top + dy, column = at.left + dx;
            if (row < 0 || row >= H || column < 0 || column >= W) continue;
            float weight = (dx ? at.east : 1.0f - at.east) * (dy ? at.south : 1.0f - at.south);
            sum += weight * float(x[((image * H + row) * W + column) * C + channel]);
        }
    out[element] = T(sum);
"""

# A simdgroup stays within one point: channels are padded to a multiple of 32, and lanes past the last one add 0. So
# the sums over channels take two atomic additions a simdgroup.
BACKWARD = """
    int H = x_shape[1], W = x_shape[2];
    uint C = x_shape[3], padded = (C + 31) / 32 * 32;
    uint point = thread_position_in_grid.x / padded, channel = thread_position_in_grid.x % padded;
    uint image = point / uint(grid_shape[1] * grid_shape[2]);
    sample at(grid[2 * point], grid[2 * point + 1], W, H);
    float by_x = 0.0f, by_y = 0.0f;
    if (channel < C) {
        float slope = cotangent[point * C + channel];
        for (int dy = 0; dy < 2; dy++)
            for (int dx = 0; dx < 2; dx++) {
                int row = at.top + dy, column = at.left + dx;
                if (row < 0 || row >= H || column < 0 || column >= W) continue;
                float across = dx ? at.east : 1.0f - at.east, down = dy ? at.south : 1.0f - at.south;
                uint place = ((image * H + row) * W + column) * C + channel;
                atomic_fetch_add_explicit(&x_grad[place], across * down * slope, memory_order_relaxed);
                by_x += (dx ? down : -down) * float(x[place]) * slope;
                by_y += (dy ? across : -across) * float(x[place]) * slope;
            }
    }
    by_x = simd_sum(by_x);
    by_y = simd_sum(by_y);
    if (thread_index_in_simdgroup == 0) {
        // An image is 2 wide and 2 high in the grid's units; W / 2.0f, not W / 2, or an odd width is cut.
        atomic_fetch_add_explicit(&grid_grad[2 * point], by_x * (W / 2.0f), memory_order_relaxed);
        atomic_fetch_add_explicit(&grid_grad[2 * point + 1], by_y * (H / 2.0f), memory_order_relaxed);
    }
"""

forward_kernel = smelt.metal_kernel(name="grid_sample", input_names=["x", "grid"], output_names=["out"],
                                    source=FORWARD, header=HEADER)
backward_kernel = smelt.metal_kernel(name="grid_sample_vjp", input_names=["x", "grid", "cotangent"],
                                     output_names=["x_grad", "grid_grad"], source=BACKWARD, header=HEADER,
                                     atomic_outputs=True)


def forward(x, grid):
    """The samples (B, N, M, C) of x (B, H, W, C) at grid (B, N, M, 2), in the dtype of x."""
    batch, rows, columns, _ = grid.shape
    shape = (batch, rows, columns, x.shape[3])
    return forward_kernel(inputs=[x, grid], template=[("T", x.dtype)], grid=(math.prod(shape), 1, 1),
                          threadgroup=(256, 1, 1), output_shapes=[shape], output_dtypes=[x.dtype])[0]


def backward(x, grid, cotangent):
    """The gradients of forward by x and by grid, float32, for the cotangent (B, N, M, C) of its result."""
    batch, rows, columns, _ = grid.shape
    threads = batch * rows * columns * -(-x.shape[3] // 32) * 32
    return backward_kernel(inputs=[x, grid, cotangent], grid=(threads, 1, 1), threadgroup=(256, 1, 1),
                           output_shapes=[x.shape, grid.shape], output_dtypes=[smelt.float32, smelt.float32],
                           init_value=0)


@smelt.custom_function
def grid_sample(x, grid):
    """forward, with backward as its VJP."""
    return forward(x, grid)


@grid_sample.vjp
def grid_sample_vjp(primals, cotangent, output):
    x, grid = primals
    return tuple(backward(x, grid, cotangent))


def main() -> None:
    rng = np.random.default_rng(0)
    x = smelt.array(rng.standard_normal((1, 5, 7, 3), dtype=np.float32))
    grid = smelt.array(rng.uniform(-1, 1, (1, 2, 2, 2)).astype(np.float32))
    out, grads = smelt.vjp(grid_sample, [x, grid], [smelt.array(np.ones((1, 2, 2, 3), np.float32))])
    print("samples", out[0].shape, "gradient by the images", grads[0].shape, "by the points", grads[1].shape)


if __name__ == "__main__":
    main()
