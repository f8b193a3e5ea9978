"""Samples of images, and what linear attention consists of."""
from smelt._smelt import apply, array
from smelt.operations.types import Array, Stream

__all__ = ["chunk_inverse", "grid_sample"]

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
