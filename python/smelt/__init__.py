"""Metal compute kernels on machines without Metal: compile, run, check and differentiate them from Python."""

from typing import TYPE_CHECKING

from smelt._smelt import (
    BarrierError, BoundKernel, CheckError, CompileError, DeviceLostError, Dtype, Error, FaultError, Finding, Function, HealthError,
    InterruptedError, NoCompilerError, NoDeviceError, Tensor, TimeoutError, UnsupportedError, __version__, array, asarray,
    bfloat16, bool_, complex64, devices, findings, float16, float32, float64, from_dlpack, int16, int32, int64, int8, uint16, uint32, uint64,
    uint8,
)
from smelt import bench, fast, linalg, metal, random, safetensors
from smelt.execution import default_device, eval, set_default_device, synchronize
from smelt.layout import print_layout
from smelt.operations import (
    abs, add, addmm, all, allclose, any, arange, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, argmax,
    argmin, array_equal, astype, bitwise_and, bitwise_invert, bitwise_or, bitwise_xor, broadcast_arrays,
    broadcast_to, ceil, clip, concatenate, conj, conjugate, contiguous, cos, cosh, cummax, cummin, cumprod, cumsum,
    degrees, diag, diagonal, dequantize, divide, equal, erf, erfinv, exp, expand_dims, expm1, eye, flatten, floor, floor_divide, full,
    full_like, greater, greater_equal, identity, imag, inner, isclose, isfinite, isinf, isnan, isneginf, isposinf,
    left_shift, less, less_equal, linspace, log, log10, log1p, log2, logaddexp, logical_and, logical_not,
    logical_or, logsumexp, matmul, max, maximum, mean, min, minimum, moveaxis, multiply, nan_to_num, negative,
    not_equal, ones, ones_like, outer, pad, power, prod, put_along_axis, quantize, quantized_matmul, radians, real, reciprocal, remainder,
    repeat, reshape, right_shift, round, rsqrt, scaled_dot_product_attention, sigmoid, sign, sin, sinh, softmax, split, sqrt, square, squeeze,
    stack, std, stop_gradient, subtract, sum, swapaxes, take, take_along_axis, tan, tanh, tensordot, tile,
    transpose, tri, tril, triu, unflatten, var, view, where, zeros, zeros_like,
    layer_norm, log_softmax, rms_norm, rope,
    conv1d, conv2d, conv3d, conv_general, conv_transpose1d, conv_transpose2d, conv_transpose3d,
    argpartition, argsort, partition, sort, topk,
    chunk_inverse, grid_sample,
    gated_delta,
    fft, fft2, fftn, hadamard_transform, ifft, ifft2, ifftn, irfft, irfft2, irfftn, rfft, rfft2, rfftn,
)
from smelt.dtypes import (
    DtypeCategory, complexfloating, floating, generic, inexact, integer, issubdtype, number, signedinteger,
    unsignedinteger,
)
from smelt.kernel import Kernel, Launch, metal_kernel
from smelt.library import Library, compile_shader, library
from smelt.tuning import Config, autotune
from smelt.transforms import checkpoint, custom_function, grad, jvp, value_and_grad, vjp, vmap

__all__ = [
    "abs", "add", "addmm", "all", "allclose", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "argmax", "argmin", "array", "array_equal", "asarray", "astype", "autotune", "BarrierError",
    "bench", "bfloat16", "bitwise_and", "bitwise_invert", "bitwise_or", "bitwise_xor", "bool_", "BoundKernel",
    "broadcast_arrays", "broadcast_to", "ceil", "CheckError", "checkpoint", "clip", "compile_shader", "CompileError",
    "complex64", "Config", "complexfloating", "concatenate", "conj", "conjugate", "contiguous", "cos", "cosh", "cummax",
    "cummin",
    "cumprod", "cumsum", "custom_function", "default_device", "degrees", "dequantize", "DeviceLostError", "devices", "diag",
    "diagonal", "divide", "Dtype", "DtypeCategory", "equal", "erf", "erfinv", "Error", "eval", "exp", "expand_dims", "expm1",
    "eye", "fast", "FaultError", "Finding", "findings", "flatten", "float16", "float32", "float64", "floating", "floor",
    "floor_divide",
    "from_dlpack", "full", "full_like", "Function", "generic", "grad", "greater", "greater_equal", "identity",
    "HealthError", "imag", "inexact", "inner", "int16", "int32", "int64", "int8", "integer", "InterruptedError", "isclose",
    "isfinite", "isinf", "isnan", "isneginf", "isposinf", "issubdtype", "jvp", "Kernel", "Launch", "left_shift",
    "less", "less_equal", "Library", "library", "linalg", "linspace", "log", "log10", "log1p", "log2", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logsumexp", "matmul", "max", "maximum", "mean", "metal",
    "metal_kernel", "min", "minimum", "moveaxis", "multiply", "nan_to_num", "negative", "NoCompilerError",
    "NoDeviceError", "not_equal", "number", "ones", "ones_like", "outer", "pad", "power", "print_layout", "prod", "put_along_axis",
    "quantize", "quantized_matmul", "radians", "random", "real", "reciprocal", "remainder", "repeat", "reshape", "right_shift", "round", "rsqrt", "safetensors",
    "scaled_dot_product_attention",
    "set_default_device", "sigmoid", "sign", "signedinteger", "sin", "sinh", "softmax", "split", "sqrt", "square",
    "squeeze", "stack", "std", "stop_gradient", "subtract", "sum", "swapaxes", "synchronize", "take",
    "take_along_axis", "tan", "tanh", "Tensor", "tensordot", "tile", "TimeoutError", "transpose", "tri", "tril", "triu",
    "uint16", "uint32", "uint64", "uint8", "unflatten", "unsignedinteger", "UnsupportedError", "value_and_grad",
    "var", "view", "vjp", "vmap", "where", "zeros", "zeros_like", "__version__",
    "layer_norm", "log_softmax", "rms_norm", "rope",
    "conv1d", "conv2d", "conv3d", "conv_general", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "argpartition", "argsort", "partition", "sort", "topk",
    "chunk_inverse", "grid_sample",
    "gated_delta",
    "fft", "fft2", "fftn", "hadamard_transform", "ifft", "ifft2", "ifftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]


if TYPE_CHECKING:
    from smelt import doctor, graph, launch, mlx, torch
    from smelt.torch import export as export
else:
    def __getattr__(name):
        """Modules that are imported when they are first named, as they need other libraries or are seldom needed."""
        if name not in ("doctor", "export", "graph", "launch", "mlx", "torch"):
            raise AttributeError(f"module 'smelt' has no attribute {name!r}")
        import importlib

        return importlib.import_module("smelt.torch").export if name == "export" else importlib.import_module(f"smelt.{name}")
