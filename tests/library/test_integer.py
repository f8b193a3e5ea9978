#!/usr/bin/env python3
"""Functions of integers: every function, every type, scalars, vectors, and vectors with scalars.

Usage: test_integer.py SMELT
"""
import itertools

from driver import Check, main, run
from numbers_of import INT, INTEGERS, SHORT, UINT, USHORT


def wrap(t, value):
    return t.value(value & ((1 << t.bits) - 1))


def cut(t, value):
    return min(max(value, t.low), t.high)


def leading(t, x):
    return t.bits - t.pattern(x).bit_length()


def trailing(t, x):
    bits = t.pattern(x)
    return t.bits if bits == 0 else (bits & -bits).bit_length() - 1


def reversed_bits(t, x):
    return t.value(int(format(t.pattern(x), f"0{t.bits}b")[::-1], 2))


def rotated(t, x, y):
    bits, count = t.pattern(x), t.pattern(y) % t.bits
    return wrap(t, bits << count | bits >> (t.bits - count))


def extracted(t, x, offset, bits):
    field = (t.pattern(x) >> offset) & ((1 << bits) - 1)
    return field - (1 << bits) if t.kind == "i" and bits and field >> (bits - 1) else field


def inserted(t, x, y, offset, bits):
    mask = ((1 << bits) - 1) << offset
    return t.value((t.pattern(x) & ~mask) | ((t.pattern(y) << offset) & mask))


def checks_of(t):
    """Two-argument functions also with a scalar beside the vector."""
    one = {
        "abs": lambda x: wrap(t, abs(x)),
        "clz": lambda x: leading(t, x),
        "ctz": lambda x: trailing(t, x),
        "popcount": lambda x: bin(t.pattern(x)).count("1"),
        "reverse_bits": lambda x: reversed_bits(t, x),
    }
    two = {
        "absdiff": lambda x, y: abs(x - y),
        "addsat": lambda x, y: cut(t, x + y),
        "subsat": lambda x, y: cut(t, x - y),
        "hadd": lambda x, y: (x + y) >> 1,
        "rhadd": lambda x, y: (x + y + 1) >> 1,
        "max": max,
        "min": min,
        "mulhi": lambda x, y: (x * y) >> t.bits,
        "rotate": lambda x, y: rotated(t, x, y),
    }
    three = {
        # clamp is below: its bounds must be in order
        "madhi": lambda x, y, z: wrap(t, ((x * y) >> t.bits) + z),
        "madsat": lambda x, y, z: cut(t, x * y + z),
        "max3": max,
        "min3": min,
        "median3": lambda x, y, z: sorted((x, y, z))[1],
    }
    checks = []
    turn = itertools.cycle((2, 3, 4))  # a vector with a scalar: of one width a function
    for name, f in one.items():
        checks.append(Check(f"{name}(x)", t, lambda x, y, z, f=f: f(x)))
    for name, f in two.items():
        result = t.unsigned if name == "absdiff" else t
        checks.append(Check(f"metal::{name}(x, y)", result, lambda x, y, z, f=f: f(x, y)))
        checks.append(Check(f"{name}(x, y0)", result, lambda x, y, z, c, f=f: f(x[c], y[0]), (next(turn),), whole=True))
        checks.append(Check(f"{name}(x0, y)", result, lambda x, y, z, c, f=f: f(x[0], y[c]), (next(turn),), whole=True))
    for name, f in three.items():
        checks.append(Check(f"{name}(x, y, z)", t, lambda x, y, z, f=f: f(x, y, z)))
        checks.append(Check(f"{name}(x, y0, z0)", t, lambda x, y, z, c, f=f: f(x[c], y[0], z[0]), (next(turn),), whole=True))
    checks.append(Check("clamp(x, min(y, z), max(y, z))", t, lambda x, y, z: min(max(x, min(y, z)), max(y, z))))
    checks.append(Check("clamp(x, min(y0, z0), max(y0, z0))", t,
                        lambda x, y, z, c: min(max(x[c], min(y[0], z[0])), max(y[0], z[0])), (next(turn),), whole=True))
    checks.append(Check("clamp(x, 1, 9)", t, lambda x, y, z: min(max(x, 1), 9), (next(turn),)))
    for offset, bits in ((0, t.bits), (3, 4), (t.bits - 5, 5), (t.bits - 1, 1), (2, 0)):
        checks.append(Check(f"extract_bits(x, {offset}, {bits})", t, lambda x, y, z, o=offset, b=bits: extracted(t, x, o, b)))
        checks.append(Check(f"insert_bits(x, y, {offset}u, {bits}u)", t,
                            lambda x, y, z, o=offset, b=bits: inserted(t, x, y, o, b)))
    checks.append(Check("insert_bits(x, y0, 1, 5)", t, lambda x, y, z, c: inserted(t, x[c], y[0], 1, 5), (2, 3, 4), whole=True))
    if t in (INT, UINT):  # of operands of 24 bits, which shifts make
        small = lambda v: v >> 8
        checks.append(Check("mul24(x >> 8, y >> 8)", t, lambda x, y, z: wrap(t, small(x) * small(y))))
        checks.append(Check("mul24(x >> 8, y0 >> 8)", t, lambda x, y, z, c: wrap(t, small(x[c]) * small(y[0])), (2, 3, 4), whole=True))
        checks.append(Check("mad24(x >> 8, y >> 8, z)", t, lambda x, y, z: wrap(t, small(x) * small(y) + z)))
    return checks


def integers(smelt):
    return sum(run(smelt, t.name, [t, t, t], checks_of(t)) for t in INTEGERS)


def mixed_counts(smelt):
    """Offsets and sizes of bit fields of other integer types than the value's."""
    checks = [Check("extract_bits(x, uint(y0) & 3, ushort(4))", INT,
                    lambda x, y, c: extracted(INT, x[c], y[0] & 3, 4), whole=True),
              Check("popcount(y)", USHORT, lambda x, y: bin(y).count("1"))]
    return run(smelt, "int and ushort", [INT, USHORT], checks) + run(
        smelt, "short literals", [SHORT, SHORT],
        [Check("max(x, 3)", SHORT, lambda x, y: max(x, 3), (2, 3, 4)), Check("min(-1, x)", SHORT, lambda x, y: min(-1, x), (2, 3, 4))])


main([integers, mixed_counts])
