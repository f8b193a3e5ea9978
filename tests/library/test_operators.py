#!/usr/bin/env python3
"""Operators of vectors of every type, with vectors and scalars, assignments, increments.

Usage: test_operators.py SMELT
"""
import itertools
import math
import operator
from fractions import Fraction

from driver import Check, main, run
from numbers_of import BOOL, INTEGERS, REALS


def exact(f, x, y):
    """A real operation before its one rounding."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return f(x, y) if f is not operator.truediv else divided(x, y)
    if f is operator.truediv and y == 0:
        return divided(x, y)
    result = f(Fraction(x), Fraction(y))
    return result if result else f(x, y)  # a zero with its sign


def divided(x, y):
    if math.isnan(x) or math.isnan(y) or (x == 0 and y == 0) or (math.isinf(x) and math.isinf(y)):
        return math.nan
    sign = math.copysign(1, x) * math.copysign(1, y)
    return sign * (math.inf if y == 0 or math.isinf(x) else 0.0)


def quotient(x, y):
    return 0 if y == 0 else (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)


COMPARISONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
               "&&": lambda x, y: bool(x) and bool(y), "||": lambda x, y: bool(x) or bool(y)}


def checks_of(t):
    real = t.kind == "f"
    top = t.bits - 1
    arithmetic = {"+": operator.add, "-": operator.sub, "*": operator.mul}
    if real:
        arithmetic["/"] = operator.truediv
        arithmetic = {op: lambda x, y, f=f: exact(f, x, y) for op, f in arithmetic.items()}
    else:
        arithmetic.update({"/": quotient, "%": lambda x, y: x - quotient(x, y) * y, "&": operator.and_, "|": operator.or_,
                           "^": operator.xor, "<<": lambda x, y: x << (y & top), ">>": lambda x, y: x >> (y & top)})
    wrap = (lambda v: t.rounded(v)) if real else (lambda v: t.value(v & ((1 << t.bits) - 1)))
    turn, checks = itertools.cycle((2, 3, 4)), []
    for op, f in arithmetic.items():
        count = f" & T({top})" if op in ("<<", ">>") else ""
        g = lambda x, y, f=f: wrap(f(x, y))
        checks += [Check(f"x {op} (y{count})", t, g, (next(turn),)),
                   Check(f"x {op} T(y0{count})", t, lambda x, y, c, g=g: g(x[c], y[0]), (next(turn),), whole=True),
                   Check(f"T(x0) {op} (y{count})", t, lambda x, y, c, g=g: g(x[0], y[c]), (next(turn),), whole=True),
                   Check(f"assigned(x, [&](thread V &v) {{ v {op}= (y{count}); }})", t, g, (next(turn),)),
                   Check(f"assigned(x, [&](thread V &v) {{ v {op}= T(y0{count}); }})", t,
                         lambda x, y, c, g=g: g(x[c], y[0]), (next(turn),), whole=True)]
    for op, f in COMPARISONS.items():
        checks += [Check(f"x {op} y", BOOL, f, (next(turn),)),
                   Check(f"x {op} y0", BOOL, lambda x, y, c, f=f: f(x[c], y[0]), (next(turn),), whole=True),
                   Check(f"x0 {op} y", BOOL, lambda x, y, c, f=f: f(x[0], y[c]), (next(turn),), whole=True)]
    one = 1.0 if real else 1
    plus, minus = arithmetic["+"], arithmetic["-"]
    checks += [Check("+x", t, lambda x, y: x, (2, 3, 4)), Check("-x", t, lambda x, y: -x if real else wrap(-x), (2, 3, 4)),
               Check("!x", BOOL, lambda x, y: not x, (2, 3, 4)),
               Check("x + 1", t, lambda x, y: wrap(plus(x, one)), (2, 3, 4)),
               Check("assigned(x, [](thread V &v) { v++; })", t, lambda x, y: wrap(plus(x, one)), (2, 3, 4)),
               Check("assigned(x, [](thread V &v) { --v; })", t, lambda x, y: wrap(minus(x, one)), (2, 3, 4)),
               Check("assigned(x, [](thread V &v) { v = v++; })", t, lambda x, y: x, (2,)),
               Check("x.x == x0 ? x : y", t, lambda x, y: x, (4,)) if not real else
               Check("true ? x : y", t, lambda x, y: x, (4,))]
    if not real:
        checks.append(Check("~x", t, lambda x, y: ~x, (2, 3, 4)))
    return checks


def operators(smelt):
    helper = "template <class V, class F> V assigned(V v, F f) { f(v); return v; }\n"
    return sum(run(smelt, t.name, [t, t], checks_of(t), extra=helper) for t in [*INTEGERS, *REALS])


main([operators])
