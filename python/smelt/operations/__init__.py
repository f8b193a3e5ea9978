"""Operations on arrays, by family; smelt exports them all by name. docs/operations.md describes them."""
from smelt.operations.attention import scaled_dot_product_attention
from smelt.operations.creation import (
    arange, eye, full, full_like, identity, linspace, ones, ones_like, tri, zeros, zeros_like,
)
from smelt.operations.elementwise import (
    abs, add, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, astype, bitwise_and, bitwise_invert,
    bitwise_or, bitwise_xor, ceil, clip, conj, conjugate, cos, cosh, degrees, divide, equal, erf, erfinv, exp, expm1, floor,
    floor_divide, greater, greater_equal, imag, isfinite, isinf, isnan, isneginf, isposinf, left_shift, less,
    less_equal, log, log10, log1p, log2, logaddexp, logical_and, logical_not, logical_or, maximum, minimum,
    multiply, nan_to_num, negative, not_equal, power, radians, real, reciprocal, remainder, right_shift, round,
    rsqrt, sigmoid, sign, sin, sinh, sqrt, square, stop_gradient, subtract, tan, tanh, where,
)
from smelt.operations.indexing import (
    put_along_axis, take, take_along_axis,
)
from smelt.operations.indexing import getitem as getitem, setitem as setitem  # for the extension module
from smelt.operations.nn import (
    conv1d, conv2d, conv3d, conv_general, conv_transpose1d, conv_transpose2d, conv_transpose3d, layer_norm, log_softmax, rms_norm, rope,
)
from smelt.operations.products import (
    addmm, allclose, array_equal, inner, isclose, matmul, outer, tensordot,
)
from smelt.operations.quantised import dequantize, quantize, quantized_matmul
from smelt.operations.reductions import (
    all, any, argmax, argmin, cummax, cummin, cumprod, cumsum, logsumexp, max, mean, min, prod, softmax, std, sum,
    var,
)
from smelt.operations.sorting import (
    argpartition, argsort, partition, sort, topk,
)
from smelt.operations.sequence import (
    chunk_inverse, gated_delta, grid_sample,
)
from smelt.operations.signal import (
    fft, fft2, fftn, hadamard_transform, ifft, ifft2, ifftn, irfft, irfft2, irfftn, rfft, rfft2, rfftn,
)
from smelt.operations.shapes import (
    broadcast_arrays, broadcast_to, concatenate, contiguous, diag, diagonal, expand_dims, flatten, moveaxis, pad,
    repeat, reshape, split, squeeze, stack, swapaxes, tile, transpose, tril, triu, unflatten, view,
)

__all__ = [
    "abs", "add", "addmm", "all", "allclose", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "argmax", "argmin", "array_equal", "astype", "bitwise_and", "bitwise_invert",
    "bitwise_or", "bitwise_xor", "broadcast_arrays", "broadcast_to", "ceil", "clip", "concatenate", "conj",
    "conjugate", "contiguous", "cos", "cosh", "cummax", "cummin", "cumprod", "cumsum", "degrees", "diag",
    "diagonal", "divide", "equal", "erf", "erfinv", "exp", "expand_dims", "expm1", "eye", "flatten", "floor", "floor_divide",
    "full", "full_like", "greater", "greater_equal", "identity", "imag", "inner", "isclose", "isfinite", "isinf",
    "isnan", "isneginf", "isposinf", "left_shift", "less", "less_equal", "linspace", "log", "log10", "log1p",
    "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "logsumexp", "matmul", "max", "maximum",
    "mean", "min", "minimum", "moveaxis", "multiply", "nan_to_num", "negative", "not_equal", "ones", "ones_like",
    "outer", "pad", "power", "prod", "put_along_axis", "dequantize", "quantize", "quantized_matmul", "radians", "real", "reciprocal", "remainder", "repeat",
    "reshape", "right_shift", "round", "rsqrt",
    "scaled_dot_product_attention", "sigmoid", "sign", "sin", "sinh", "softmax", "split", "sqrt",
    "square", "squeeze", "stack", "std", "stop_gradient", "subtract", "sum", "swapaxes", "take", "take_along_axis",
    "tan", "tanh", "tensordot", "tile", "transpose", "tri", "tril", "triu", "unflatten", "var", "view", "where", "zeros",
    "zeros_like",
    "layer_norm", "log_softmax", "rms_norm", "rope",
    "conv1d", "conv2d", "conv3d", "conv_general", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "argpartition", "argsort", "partition", "sort", "topk",
    "chunk_inverse", "grid_sample",
    "gated_delta",
    "fft", "fft2", "fftn", "hadamard_transform", "ifft", "ifft2", "ifftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]
