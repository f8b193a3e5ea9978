"""Document 002 of the seeds, a whole .metal file, through smelt.library: the inverse of triangular blocks."""

import numpy as np
import pytest
import seeds
import smelt


@pytest.fixture(scope="module")
def invert():
    """The inverses of I + the strictly lower triangles in a (B, T, H, BT), with `threads` threads a group."""
    text = seeds.document("002")
    lib = smelt.library(text[text.index("#include"):])

    def run(a, threads):
        batch, rows, heads, width = a.shape
        out = np.full_like(a, np.nan)
        lib.chunk_tri_solve_invert_f32(a, out, np.array(a.shape, np.uint32), groups=(rows // width, heads, batch),
                                       group_size=(threads, 1, 1), threadgroup_memory={0: 2 * width * width * 4})
        return out

    return run


def blocks(a):
    """(B, T, H, BT) as matrices: (B, T / BT, H, BT, BT)."""
    batch, rows, heads, width = a.shape
    return a.reshape(batch, rows // width, width, heads, width).transpose(0, 1, 3, 2, 4)


# With 128 threads, some return before the barrier.
@pytest.mark.parametrize("threads", [64, 128])
@pytest.mark.parametrize("width", [64, 24, 1])
def test_triangular_inverse(invert, width, threads):
    a = np.random.default_rng().standard_normal((2, 3 * width, 2, width)).astype(np.float32) / max(1, width) ** 0.5
    strict = np.tril(blocks(a), -1)
    a = np.ascontiguousarray(strict.transpose(0, 1, 3, 2, 4).reshape(a.shape))
    inverse = blocks(invert(a, threads)).astype(np.float64)
    assert np.abs((np.eye(width) + strict) @ inverse - np.eye(width)).max() < 1e-4
    assert (np.triu(inverse, 1) == 0).all() and (np.diagonal(inverse, axis1=-2, axis2=-1) == 1).all()
