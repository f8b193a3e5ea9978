"""Samples of images, and what linear attention consists of."""
from smelt._smelt import apply, array, asarray, gated_delta as _gated_delta
from smelt.operations.types import Array, Stream

__all__ = ["chunk_inverse", "gated_delta", "grid_sample"]

_MODES = ("bilinear", "nearest")
_PADDING = ("zeros", "border")


def grid_sample(x: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False, *,
                stream: Stream = None) -> array:
    """Samples of images at points, with PyTorch's words, but channels last.

    x: (batches, height, width, channels). grid: (batches, rows, columns, 2), points (across, down) from -1 to 1: the edges
    of the image, or with align_corners the centres of its outer pixels. mode: "bilinear" or "nearest". padding_mode:
    "zeros" (pixels outside are 0) or "border" (points outside are moved to it). The result is (batches, rows, columns,
    channels) of the dtype of x. Raises ValueError for other shapes and words."""
    if mode not in _MODES or padding_mode not in _PADDING:
        raise ValueError(f"grid_sample: mode is {mode!r} and padding_mode {padding_mode!r}; expected 'bilinear' or 'nearest', "
                         "and 'zeros' or 'border'")
    settings = _MODES.index(mode), _PADDING.index(padding_mode), int(align_corners)
    return apply("grid_sample", (x, grid), starts=settings)


def chunk_inverse(a: Array, *, stream: Stream = None) -> array:
    """(I + S)⁻¹ of each chunk of a sequence, S the part of its square below the diagonal.

    a: (batches, length, heads, width), width at most 128: `width` rows of a head are one square. A last chunk of fewer
    rows is the smaller square it is; the columns past it are 0 in the result. Computed in float32 (or float64)."""
    return apply("chunk_inverse", (a,))


def gated_delta(q: Array, k: Array, v: Array, g: Array, beta: Array, *, scale: float | None = None,
                initial_state: Array | None = None, chunk: int = 64, stream: Stream = None) -> tuple[array, array]:
    """The gated delta rule, (results, final state): S = exp(g) S + k (beta (v - exp(g) Sᵀ k))ᵀ for each token; scale Sᵀ q.

    q, k: (batches, length, heads, depth), depth at most 256; v: (batches, length, heads, values); g, beta: (batches, length,
    heads). initial_state: (batches, heads, depth, values); None: zeros. scale: None is 1 / sqrt(depth). Gradients go through
    chunks of `chunk` tokens, at most 128. The results have the dtype of q, k and v; the state is float32 (or float64)."""
    q, k, v, g, beta = (asarray(a) for a in (q, k, v, g, beta))
    initial = None if initial_state is None else asarray(initial_state)
    out, states = _gated_delta(q, k, v, g, beta, initial, 0.0 if scale is None else float(scale), chunk)
    return out, states[:, -1]
