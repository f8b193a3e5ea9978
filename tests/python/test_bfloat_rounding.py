"""Arithmetic of bfloat and half with all 65536 values: every operation rounds, even if values stay in 32 bits between two."""
import numpy as np
import pytest

import smelt

ALL = np.arange(65536, dtype=np.uint16)
# Each expression in Metal and in Python, where r rounds to the type.
CHAINS = [
    ("a * T(0.5)", lambda a, b, r: r(a * np.float32(0.5))),
    ("2 * a + b", lambda a, b, r: r(r(2 * a) + b)),
    ("(a + a) * b", lambda a, b, r: r(r(a + a) * b)),
    ("-(a * b) - a", lambda a, b, r: r(-r(a * b) - a)),
    ("-4 * (a * b) + b", lambda a, b, r: r(r(-4 * r(a * b)) + b)),
    ("fabs(a - b) * T(0.5) + a", lambda a, b, r: r(r(np.abs(r(a - b)) * np.float32(0.5)) + a)),
    ("(a * b > b ? a * b : b) * a", lambda a, b, r: r(np.where(r(a * b) > b, r(a * b), b) * a)),
    ("(a < b ? 2 * a : T(3)) - b", lambda a, b, r: r(np.where(a < b, r(2 * a), np.float32(3)) - b)),
    ("max(T(a * b), T(0.5)) * T(3)", lambda a, b, r: r(np.fmax(r(a * b), np.float32(0.5)) * np.float32(3))),
]


def rounded_to_bfloat(x):
    bits = x.astype(np.float32).view(np.uint32)
    nearest = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
    return np.where(np.isnan(x), np.float32(np.nan), nearest.view(np.float32))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_every_operation_rounds(dtype):
    generator = np.random.default_rng()
    others = generator.permutation(ALL)
    others[:4096] = ALL[:4096] & 0x8000 | 0x3f80  # 1 and -1: ties are frequent
    if dtype == "float16":
        name, round_to = "half", lambda x: x.astype(np.float16).astype(np.float32)
        a, b = (bits.view(np.float16).astype(np.float32) for bits in (ALL, others))
    else:
        name, round_to = "bfloat", rounded_to_bfloat
        a, b = ((bits.astype(np.uint32) << 16).view(np.float32) for bits in (ALL, others))
    source = "#pragma clang fp contract(off)\n"
    source += f"uint i = thread_position_in_grid.x; typedef {name} T; T a = as_type<T>(x[i]), b = as_type<T>(y[i]);\n"
    source += "".join(f"o{n}[i] = float({text});\n" for n, (text, _) in enumerate(CHAINS))
    kernel = smelt.metal_kernel(name=f"chains_{name}", input_names=["x", "y"],
                                output_names=[f"o{n}" for n in range(len(CHAINS))], source=source)
    made = kernel(inputs=[ALL, others], output_shapes=[ALL.shape] * len(CHAINS),
                  output_dtypes=[smelt.float32] * len(CHAINS), grid=(ALL.size, 1, 1), threadgroup=(256, 1, 1))
    with np.errstate(all="ignore"):
        for out, (text, expected) in zip(made, CHAINS):
            want = expected(a, b, round_to).astype(np.float32)
            np.testing.assert_array_equal(np.isnan(out), np.isnan(want), text)
            np.testing.assert_array_equal(out.view(np.uint32)[~np.isnan(want)],
                                          want.view(np.uint32)[~np.isnan(want)], text)
