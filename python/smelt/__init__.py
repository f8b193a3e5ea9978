"""Metal compute kernels on machines without Metal: compile, run, check and differentiate them from Python."""

from smelt._smelt import (
    BarrierError, CompileError, DeviceLostError, Dtype, Error, FaultError, InterruptedError, NoCompilerError, NoDeviceError, TimeoutError,
    UnsupportedError, __version__, array, bfloat16, bool_, complex64, devices, float16, float32, float64, int8, int16,
    int32, int64, uint8, uint16, uint32, uint64,
)

__all__ = [
    "BarrierError", "CompileError", "DeviceLostError", "Dtype", "Error", "FaultError", "InterruptedError", "NoCompilerError", "NoDeviceError",
    "TimeoutError", "UnsupportedError", "__version__", "array", "bfloat16", "bool_", "complex64", "devices", "float16",
    "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]
