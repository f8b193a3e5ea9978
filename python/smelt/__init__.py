"""Metal compute kernels on machines without Metal: compile, run, check and differentiate them from Python."""

from smelt._smelt import (
    BarrierError, BoundKernel, CompileError, DeviceLostError, Dtype, Error, FaultError, InterruptedError,
    NoCompilerError, NoDeviceError, TimeoutError, UnsupportedError, __version__, array, bfloat16, bool_, complex64,
    devices, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8,
)
from smelt import fast
from smelt.kernel import Kernel, Launch, metal_kernel

__all__ = [
    "BarrierError", "BoundKernel", "CompileError", "DeviceLostError", "Dtype", "Error", "FaultError",
    "InterruptedError", "Kernel", "Launch", "NoCompilerError", "NoDeviceError", "TimeoutError", "UnsupportedError",
    "__version__", "array", "bfloat16", "bool_", "complex64", "devices", "fast", "float16", "float32", "float64",
    "int16", "int32", "int64", "int8", "metal_kernel", "uint16", "uint32", "uint64", "uint8",
]
