"""Metal compute kernels on machines without Metal: compile, run, check and differentiate them from Python."""

from smelt._smelt import (
    BarrierError, CompileError, DeviceLostError, Dtype, Error, FaultError, InterruptedError, NoCompilerError, NoDeviceError, TimeoutError,
    UnsupportedError, __version__, array, bfloat16, bool_, complex64, devices, float16, float32, float64, int8, int16,
    int32, int64, uint8, uint16, uint32, uint64,
)
from smelt import fast
from smelt.kernel import BoundKernel, Kernel, Launch, metal_kernel

__all__ = [
    "BoundKernel", "Kernel", "Launch", "fast", "metal_kernel",
    "BarrierError", "CompileError", "DeviceLostError", "Dtype", "Error", "FaultError", "InterruptedError", "NoCompilerError", "NoDeviceError",
    "TimeoutError", "UnsupportedError", "__version__", "array", "bfloat16", "bool_", "complex64", "devices", "float16",
    "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]
