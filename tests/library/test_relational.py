#!/usr/bin/env python3
"""Relational functions of every type, select of every type, all and any of bools.

Usage: test_relational.py SMELT
"""
import math

from driver import Check, main, run
from numbers_of import BOOL, EVERY, REALS


def tests(smelt):
    failures = 0
    for t in REALS:
        smallest = math.ldexp(1.0, 1 - t.top)
        one = {
            "isfinite": math.isfinite,
            "isinf": math.isinf,
            "isnan": math.isnan,
            "isnormal": lambda x, least=smallest: math.isfinite(x) and abs(x) >= least,
            "signbit": lambda x: math.copysign(1, x) < 0,
        }
        checks = [Check(f"{name}(x)", BOOL, lambda x, y, f=f: f(x)) for name, f in one.items() if name != "signbit"]
        # The sign of a NaN is no value's; by its bits it is the pattern's.
        checks.append(Check("signbit(select(x, T(0), isnan(x)))", BOOL,
                            lambda x, y: not math.isnan(x) and math.copysign(1, x) < 0))
        unordered = lambda x, y: math.isnan(x) or math.isnan(y)
        checks += [Check("isunordered(x, y)", BOOL, unordered),
                   Check("isordered(x, y)", BOOL, lambda x, y: not unordered(x, y)),
                   Check("isordered(x, y0)", BOOL, lambda x, y, c: not unordered(x[c], y[0]), (2, 3, 4), whole=True),
                   Check("isunordered(x0, y)", BOOL, lambda x, y, c: unordered(x[0], y[c]), (2, 3, 4), whole=True)]
        failures += run(smelt, t.name, [t, t], checks)
    return failures


def select(smelt):
    failures = 0
    for t in EVERY:
        checks = [Check("select(x, y, z)", t, lambda x, y, z: y if z else x),
                  Check("select(x, y, z0)", t, lambda x, y, z, c: y[c] if z[0] else x[c], (2, 3, 4), whole=True),
                  Check("select(x, y0, z)", t, lambda x, y, z, c: y[0] if z[c] else x[c], (2, 3, 4), whole=True),
                  Check("select(x0, y, z)", t, lambda x, y, z, c: y[c] if z[c] else x[0], (2, 3, 4), whole=True),
                  Check("select(x, 0, z)", t, lambda x, y, z: 0 if z else x, (3,)),
                  Check("select(x, y, x == y)", t, lambda x, y, z: y if x == y else x)]
        failures += run(smelt, f"select of {t.name}", [t, t, BOOL], checks)
    return failures


def bools(smelt):
    checks = [Check("all(x)", BOOL, lambda x, y, c: all(x), whole=True, scalar=True),
              Check("any(x)", BOOL, lambda x, y, c: any(x), whole=True, scalar=True),
              Check("not(x)", BOOL, lambda x, y: not x),
              Check("!x", BOOL, lambda x, y: not x),
              Check("x && y", BOOL, lambda x, y: x and y),
              Check("x || y", BOOL, lambda x, y: x or y),
              Check("x == y", BOOL, lambda x, y: x == y),
              Check("x != y", BOOL, lambda x, y: x != y),
              Check("x & y", BOOL, lambda x, y: x and y, (2, 3, 4)),
              Check("x | y", BOOL, lambda x, y: x or y, (2, 3, 4)),
              Check("x ^ y", BOOL, lambda x, y: x != y, (2, 3, 4)),
              Check("x && y0", BOOL, lambda x, y, c: x[c] and y[0], whole=True)]
    return run(smelt, "bool", [BOOL, BOOL], checks)


main([tests, select, bools])
