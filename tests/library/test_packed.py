#!/usr/bin/env python3
"""Packed vectors of every type and size: in memory, as vectors, in expressions.

Usage: test_packed.py SMELT
"""
from driver import Check, main, run
from numbers_of import BOOL, EVERY


def checks_of(t):
    checks = []
    for n in (2, 3, 4):
        packed = f"packed_{t.name}{n}"
        memory = f"((device const {packed} *)x_values)[start / {n}]"
        first, second = (lambda x, y: x), (lambda x, y: y)
        checks += [
            Check(f"{t.name}{n}({packed}(x))", t, first, (n,)),
            Check(f"{t.name}{n}({memory})", t, first, (n,)),
            Check(f"{t.name}{n}({memory}.{'yxzw'[:n]})", t, lambda x, y, c: x[{0: 1, 1: 0}.get(c, c)], (n,), whole=True),
            Check(f"T({memory}[i % {n}])", t, first, (n,), scalar=True),
            Check(f"stored<{packed}, {t.name}{n}>(x, y)", t, lambda x, y, c: y[c] if c == 1 else x[c], (n,), whole=True),
            Check(f"{packed}(x) == y", BOOL, lambda x, y: x == y, (n,)),
            Check(f"x != {packed}(y)", BOOL, lambda x, y: x != y, (n,)),
            Check(f"select({packed}(x), y, true)", t, second, (n,)),
            Check(f"{packed}(x) && {packed}(y)", BOOL, lambda x, y: bool(x) and bool(y), (n,)),
        ]
        if t.kind in "iu":
            wrap = lambda v: t.value(v & ((1 << t.bits) - 1))
            checks += [Check(f"{packed}(x) + y", t, lambda x, y: wrap(x + y), (n,)),
                       Check(f"x ^ {packed}(y)", t, lambda x, y: x ^ y, (n,)),
                       Check(f"{packed}(x) * T(3)", t, lambda x, y: wrap(x * 3), (n,)),
                       Check(f"max({packed}(x), y)", t, lambda x, y: max(x, y), (n,)),
                       Check(f"changed<{packed}, {t.name}{n}>(x, y)", t, lambda x, y: wrap(x - y), (n,))]
    return checks


HELPERS = """
template <class P, class V> V stored(V x, V y) {
  P p = x;
  p.y = y.y;
  P q;
  q = p;
  return q;
}
template <class P, class V> V changed(V x, V y) {
  P p(x);
  p -= y;
  return V(p);
}
"""


def packed(smelt):
    failures = 0
    for t in EVERY:
        sizes = "".join(f"static_assert(sizeof(packed_{t.name}{n}) == {n * t.bits // 8} && alignof(packed_{t.name}{n}) == {t.bits // 8}"
                        f" && is_same_v<packed_vec<{t.name}, {n}>, packed_{t.name}{n}>, \"\");\n" for n in (2, 3, 4))
        failures += run(smelt, f"packed {t.name}", [t, t], checks_of(t), extra=HELPERS + sizes)
    return failures


main([packed])
