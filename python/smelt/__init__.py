"""Metal compute kernels on machines without Metal: compile, run, check and differentiate them from Python."""

from typing import TYPE_CHECKING

from smelt._smelt import (
    BarrierError, BoundKernel, CompileError, DeviceLostError, Dtype, Error, FaultError, Function, InterruptedError,
    NoCompilerError, NoDeviceError, TimeoutError, UnsupportedError, __version__, array, asarray, bfloat16, bool_,
    complex64, devices, float16, float32, float64, from_dlpack, int16, int32, int64, int8, uint16, uint32, uint64,
    uint8,
)
from smelt import fast, metal, operations, random
from smelt.execution import default_device, eval, set_default_device, synchronize
from smelt.operations import *
from smelt.dtypes import (
    DtypeCategory, complexfloating, floating, generic, inexact, integer, issubdtype, number, signedinteger,
    unsignedinteger,
)
from smelt.kernel import Kernel, Launch, metal_kernel
from smelt.library import Library, compile_shader, library
from smelt.transforms import checkpoint, custom_function, grad, jvp, value_and_grad, vjp, vmap

__all__ = [
    "array", "asarray", "BarrierError", "bfloat16", "bool_", "BoundKernel", "checkpoint", "compile_shader",
    "CompileError", "complex64", "complexfloating", "custom_function", "default_device", "DeviceLostError",
    "devices", "Dtype", "DtypeCategory", "Error", "eval", "fast", "FaultError", "float16", "float32", "float64",
    "floating", "from_dlpack", "Function", "generic", "grad", "inexact", "int16", "int32", "int64", "int8",
    "integer", "InterruptedError", "issubdtype", "jvp", "Kernel", "Launch", "Library", "library", "metal",
    "metal_kernel", "NoCompilerError", "NoDeviceError", "number", "random", "set_default_device", "signedinteger",
    "synchronize", "TimeoutError", "uint16", "uint32", "uint64", "uint8", "unsignedinteger", "UnsupportedError",
    "value_and_grad", "vjp", "vmap", "__version__",
]
__all__ += operations.__all__


if TYPE_CHECKING:
    from smelt import doctor, launch, mlx, torch
else:
    def __getattr__(name):
        """Modules that are imported when they are first named, as they need other libraries or are seldom needed."""
        if name not in ("doctor", "launch", "mlx", "torch"):
            raise AttributeError(f"module 'smelt' has no attribute {name!r}")
        import importlib

        return importlib.import_module(f"smelt.{name}")
