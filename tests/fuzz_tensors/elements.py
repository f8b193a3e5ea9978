"""Element types of tensor operations: which go together, random elements as kernels read them, and their values."""
from typing import Any

import numpy as np
import smelt


def small_real(bits, exponent_bits, mantissa_bits, bias):
    """The value of each code of a format; NaN where it has none that is finite and at most 8."""
    codes = np.arange(2**bits)
    mantissa, exponent = codes & (2**mantissa_bits - 1), codes >> mantissa_bits & (2**exponent_bits - 1)
    magnitude = np.where(exponent, np.ldexp(1 + mantissa / 2**mantissa_bits, exponent - bias), np.ldexp(mantissa / 2**mantissa_bits, 1 - bias))
    values = np.where(codes >> (bits - 1), -magnitude, magnitude)
    return np.where(magnitude <= 8, values, np.nan)


# Name in Metal: bits, and the value of each code.
FORMATS = {
    "int4b_format": (4, np.where(np.arange(16) < 8, np.arange(16), np.arange(16) - 16.0)),
    "uint4b_format": (4, np.arange(16.0)),
    "int2b_format": (2, np.array([0.0, 1, -2, -1])),
    "uint2b_format": (2, np.arange(4.0)),
    "metal_fp4_e2m1_format": (4, small_real(4, 2, 1, 1)),
    "metal_fp8_e4m3_format": (8, small_real(8, 4, 3, 7)),
    "metal_fp8_e5m2_format": (8, small_real(8, 5, 2, 15)),
}
PLAIN: dict[str, Any] = {"float": np.float32, "half": np.float16, "bfloat": smelt.bfloat16, "int8_t": np.int8, "uint8_t": np.uint8, "int": np.int32}
# Half a unit in the last place, relative, and the smallest step.
PRECISION = {"float": (2.0**-24, 2.0**-149), "half": (2.0**-11, 2.0**-25), "bfloat": (2.0**-8, 2.0**-133)}
HANDLES = {"metal_fp4_e2m1_format": "fp4_e2m1", "metal_fp8_e4m3_format": "fp8_e4m3", "metal_fp8_e5m2_format": "fp8_e5m2"}


def rows():
    """Every left and right element type with the destinations that the type table gives them."""
    table = []
    for whole in ("int8_t", "uint8_t"):
        table += [("half", whole, ("half", "float")), (whole, "half", ("half", "float")), ("float", whole, ("float",)),
                  (whole, "float", ("float",)), (whole, whole, ("int",)), ("bfloat", whole, ("bfloat", "float")),
                  (whole, "bfloat", ("bfloat", "float"))]
    table += [("half", "half", ("half", "float")), ("half", "float", ("float",)), ("float", "half", ("float",)),
              ("float", "float", ("float",)), ("bfloat", "bfloat", ("bfloat", "float")), ("bfloat", "float", ("float",)),
              ("float", "bfloat", ("float",)), ("bfloat", "half", ("bfloat", "half", "float")), ("half", "bfloat", ("bfloat", "half", "float"))]
    for bits in (4, 2):
        for sign, whole in (("", "int8_t"), ("u", "uint8_t")):
            packed = f"{sign}int{bits}b_format"
            table += [("half", packed, ("half", "float")), ("bfloat", packed, ("bfloat", "float")), (whole, packed, ("int",))]
    for packed in ("metal_fp4_e2m1_format", "metal_fp8_e4m3_format", "metal_fp8_e5m2_format"):
        table += [("half", packed, ("half", "float")), (packed, packed, ("half", "float"))]
    return table


class Matrix:
    """Random elements: `stored` as a kernel reads it, rows of `stride` elements, and the values of what is not padding."""

    def __init__(self, rng, kind, rows_, columns, stride, whole):
        self.kind, self.stride = kind, stride
        self.packed = kind in FORMATS
        self.bits = FORMATS[kind][0] if self.packed else 8 * np.dtype(PLAIN[kind]).itemsize
        if self.packed:
            values = FORMATS[kind][1]
            codes = rng.choice(np.flatnonzero(~np.isnan(values)), (rows_, stride)).astype(np.uint8)
            self.values = values[codes][:, :columns]
            spread = (codes[..., None] >> np.arange(self.bits, dtype=np.uint8)) & 1
            self.stored = np.packbits(spread.reshape(-1), bitorder="little")
        else:
            dtype = np.dtype(PLAIN[kind])
            if kind in ("int8_t", "uint8_t"):
                elements = rng.integers(*((-128, 128) if kind == "int8_t" else (0, 256)), (rows_, stride)) if whole else rng.integers(0, 9, (rows_, stride))
            else:
                elements = rng.integers(-4, 5, (rows_, stride)) if whole else rng.standard_normal((rows_, stride))
            elements = elements.astype(dtype)
            self.values = elements[:, :columns].astype(np.float64)
            # What lies between the rows is no number: whoever reads it shows.
            if dtype.kind not in "iu":
                elements[:, columns:] = np.nan
            self.stored = elements.reshape(-1)
