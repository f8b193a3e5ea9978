#!/usr/bin/env python3
"""Pack and unpack functions against exact arithmetic: every form, float and half.

Usage: test_pack.py SMELT
"""
import math

from driver import Check, main, run
from numbers_of import BOOL, FLOAT, HALF, INT, UINT, USHORT

# name: bits of each component, first lowest; signed
FORMS = {"unorm4x8": ([8] * 4, False), "snorm4x8": ([8] * 4, True), "unorm2x16": ([16] * 2, False), "snorm2x16": ([16] * 2, True),
         "unorm10a2": ([10, 10, 10, 2], False), "snorm10a2": ([10, 10, 10, 2], True), "unorm565": ([5, 6, 5], False)}


def most(bits, signed):
    return (1 << (bits - signed)) - 1


def packed(components, widths, signed):
    word = shift = 0
    for x, bits in zip(components, widths):
        x = 0.0 if math.isnan(x) else min(max(x, -1.0 if signed else 0.0), 1.0)
        word |= (round(FLOAT.rounded(x * most(bits, signed))) & ((1 << bits) - 1)) << shift
        shift += bits
    return word


def unpacked(word, widths, signed, c):
    field = word >> sum(widths[:c]) & ((1 << widths[c]) - 1)
    if signed and field >> (widths[c] - 1):
        field -= 1 << widths[c]
    return max(FLOAT.rounded(field / most(widths[c], signed)), -1.0)


def packing(smelt):
    failures = 0
    for t in (FLOAT, HALF):
        checks = []
        for name, (widths, signed) in FORMS.items():
            text = f"pack_{t.name}_to_{name}(x)"
            result = USHORT if name == "unorm565" else UINT
            checks.append(Check(text, result, lambda x, c, w=widths, s=signed: packed(x, w, s), (len(widths),), whole=True, scalar=True))
        # Most of the usual points lie outside [-1, 1].
        near = [t.pattern(((k * 37) % 97) / 40.0 - 1.2) for k in range(96)]
        failures += run(smelt, f"pack {t.name}", [t], checks) + run(smelt, f"pack {t.name} near 1", [t], checks, [near])
    return failures


def unpacking(smelt):
    checks = []
    for t in (FLOAT, HALF):
        for name, (widths, signed) in FORMS.items():
            n = len(widths)
            word = f"unpack_{name}_to_{t.name}({'ushort(x0)' if name == 'unorm565' else 'x0'})"
            mask = 0xffff if name == "unorm565" else 0xffffffff
            checks.append(Check(word, t, lambda x, c, w=widths, s=signed, t=t, m=mask: t.rounded(unpacked(x[0] & m, w, s, c)), (n,),
                                whole=True))
    return run(smelt, "unpack", [UINT], checks)


def to_srgb(x):
    x = 0.0 if math.isnan(x) else min(max(x, 0.0), 1.0)
    return 12.92 * x if x < 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055


def from_srgb(x):
    return x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4


def srgb(smelt):
    """sRGB is a power, which is not exact: to the nearest step, of values that lie between two; back within a few ULP."""
    failures = 0
    for t in (FLOAT, HALF):
        near = [t.pattern(k / 95.0) for k in range(96)]
        wanted = [round(to_srgb(t.value(bits)) * 255) for bits in near]
        colours = Check(f"int(pack_{t.name}_to_srgb_unorm4x8({t.name}4(x0, x0, x0, 1)) & 255) - int(y0)", INT,
                        lambda x, y, c: 0, (4,), whole=True, scalar=True)
        alpha = Check(f"pack_{t.name}_to_srgb_unorm4x8({t.name}4(0, 0, 0, x0)) >> 24", UINT,
                      lambda x, y, c: packed([x[0]], [8], False), (4,), whole=True, scalar=True)
        failures += run(smelt, f"srgb {t.name}", [t, UINT], [colours, alpha], [near, wanted])
    names = [Check(f"all(fabs(float4(unpack_unorm4x8_srgb_to_{t.name}(x0)) - reference(x0)) <= {eps}f)", BOOL,
                   lambda x: True, (1,)) for t, eps in ((FLOAT, 3e-7), (HALF, 5e-4))]
    table = ", ".join(f"{from_srgb(k / 255.0)!r}f" for k in range(256))
    extra = f"""constant float steps[256] = {{{table}}};
float4 reference(uint x) {{ return float4(steps[x & 255], steps[x >> 8 & 255], steps[x >> 16 & 255], float(x >> 24) / 255); }}
"""
    return failures + run(smelt, "from srgb", [UINT], names, extra=extra)


main([packing, unpacking, srgb])
