"""grid_sample and its gradient in plain NumPy, float64, after their definition: for tests."""

import numpy as np


def corners(grid, height, width):
    """(image row, column, weight, weight's derivative by x in pixels, by y) of the four corners of each point."""
    x = ((grid[..., 0].astype(np.float64) + 1) * width - 1) / 2
    y = ((grid[..., 1].astype(np.float64) + 1) * height - 1) / 2
    left, top = np.floor(x), np.floor(y)
    for dy in (0, 1):
        for dx in (0, 1):
            across = x - left if dx else left + 1 - x
            down = y - top if dy else top + 1 - y
            yield ((top + dy).astype(int), (left + dx).astype(int), across * down, down * (1 if dx else -1),
                   across * (1 if dy else -1))


def pixels(x, rows, columns):
    """x (B, H, W, C) at rows, columns (B, N, M): (B, N, M, C), 0 outside; and whether each is inside."""
    inside = (rows >= 0) & (rows < x.shape[1]) & (columns >= 0) & (columns < x.shape[2])
    batch = np.arange(x.shape[0])[:, None, None]
    values = x.astype(np.float64)[batch, rows.clip(0, x.shape[1] - 1), columns.clip(0, x.shape[2] - 1)]
    return np.where(inside[..., None], values, 0), inside


def forward(x, grid):
    """The samples (B, N, M, C) of x (B, H, W, C) at grid (B, N, M, 2)."""
    return sum(weight[..., None] * pixels(x, rows, columns)[0]
               for rows, columns, weight, _, _ in corners(grid, *x.shape[1:3]))


def backward(x, grid, cotangent):
    """The gradients by x and by grid."""
    height, width = x.shape[1:3]
    x_grad, grid_grad = np.zeros(x.shape), np.zeros(grid.shape)
    batch = np.broadcast_to(np.arange(x.shape[0])[:, None, None], grid.shape[:3])
    g = cotangent.astype(np.float64)
    for rows, columns, weight, by_x, by_y in corners(grid, height, width):
        values, inside = pixels(x, rows, columns)
        np.add.at(x_grad, (batch[inside], rows[inside], columns[inside]), (weight[..., None] * g)[inside])
        grid_grad[..., 0] += by_x * (values * g).sum(-1) * width / 2
        grid_grad[..., 1] += by_y * (values * g).sum(-1) * height / 2
    return x_grad, grid_grad
