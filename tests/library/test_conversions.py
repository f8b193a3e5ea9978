#!/usr/bin/env python3
"""Conversions between all types, of scalars and vectors; as_type between all types of one size.

Usage: test_conversions.py SMELT
"""
from driver import Check, main, run
from numbers_of import BFLOAT, EVERY, HALF


def conversions(smelt):
    failures = 0
    for source in EVERY:
        checks = []
        for target in EVERY:
            f = lambda x, t=target: t.rounded(x)
            checks.append(Check(f"{target.name}(x)", target, f, (1,)))
            checks.append(Check(f"({target.name})x", target, f, (1,)))
            checks.append(Check(f"static_cast<{target.name}>(x)", target, f, (1,)))
            for width in (2, 3, 4):
                checks.append(Check(f"{target.name}{width}(x)", target, f, (width,)))
            if {source, target} == {HALF, BFLOAT}:
                continue  # half and bfloat convert only by a cast of their own
            checks.append(Check(f"{target.name}2(x0)", target, lambda x, c, t=target: t.rounded(x[0]), (2,), whole=True))
        failures += run(smelt, f"from {source.name}", [source], checks)
    return failures


def bits(smelt):
    failures = 0
    for source in EVERY[1:]:  # a bool has no bits of its own
        checks = []
        for target in EVERY[1:]:
            name, low = target.name, (1 << target.bits) - 1
            if target.bits == source.bits:
                checks.append(Check(f"as_type<{name}>(x)", target, lambda x: x, (1,), raw=True))
                checks += [Check(f"as_type<{name}{width}>(x)", target, lambda x: x, (width,), raw=True) for width in (2, 3, 4)]
            elif target.bits * 2 == source.bits:
                for c, which in enumerate("xy"):
                    part = lambda x, low=low, shift=target.bits * c: x >> shift & low
                    checks.append(Check(f"as_type<{name}2>(x).{which}", target, part, (1,), raw=True))
            elif target.bits * 4 == source.bits:
                part = lambda x, low=low, shift=target.bits * 2: x >> shift & low
                checks.append(Check(f"as_type<{name}4>(x).z", target, part, (1,), raw=True))
            elif target.bits == source.bits * 2:
                joined = lambda x, c, shift=source.bits: x[0] | x[1] << shift
                checks.append(Check(f"as_type<{name}>(x)", target, joined, (2,), whole=True, scalar=True, raw=True))
        failures += run(smelt, f"bits of {source.name}", [source], checks)
    return failures


main([conversions, bits])
