"""Metal compute kernels on machines without Metal: compile, run, check and differentiate them from Python."""

from typing import TYPE_CHECKING

from smelt._smelt import (
    BarrierError, BoundKernel, CompileError, DeviceLostError, Dtype, Error, FaultError, Function, InterruptedError,
    NoCompilerError, NoDeviceError, TimeoutError, UnsupportedError, __version__, array, asarray, bfloat16, bool_,
    complex64, devices, float16, float32, float64, from_dlpack, int16, int32, int64, int8, uint16, uint32, uint64,
    uint8,
)
from smelt import fast, metal, random
from smelt.execution import default_device, eval, set_default_device, synchronize
from smelt.operations import *
from smelt.operations import __all__ as _operations
from smelt.dtypes import (
    DtypeCategory, complexfloating, floating, generic, inexact, integer, issubdtype, number, signedinteger,
    unsignedinteger,
)
from smelt.kernel import Kernel, Launch, metal_kernel
from smelt.library import Library, compile_shader, library
from smelt.transforms import checkpoint, custom_function, grad, jvp, value_and_grad, vjp, vmap

__all__ = [
    "BarrierError", "BoundKernel", "CompileError", "DeviceLostError", "Dtype", "DtypeCategory", "Error",
    "FaultError", "Function", "InterruptedError", "Kernel", "Launch", "Library", "NoCompilerError", "NoDeviceError",
    "TimeoutError", "UnsupportedError", "__version__", "array", "asarray", "bfloat16", "bool_", "compile_shader",
    "complex64", "complexfloating", "devices", "fast", "float16", "float32", "float64", "floating", "from_dlpack",
    "generic", "inexact", "int16", "int32", "int64", "int8", "integer", "issubdtype", "library", "metal_kernel",
    "number", "signedinteger", "uint16", "uint32", "uint64", "uint8", "unsignedinteger", "checkpoint",
    "custom_function", "default_device", "eval", "grad", "jvp", "metal", "random", "set_default_device", "synchronize",
    "value_and_grad", "vjp", "vmap", *_operations,
]


if not TYPE_CHECKING:
    def __getattr__(name):
        """smelt.mlx is imported when it is first named, as it needs MLX."""
        if name != "mlx":
            raise AttributeError(f"module 'smelt' has no attribute {name!r}")
        import importlib

        return importlib.import_module("smelt.mlx")
