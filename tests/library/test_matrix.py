#!/usr/bin/env python3
"""Matrices of every type and shape: constructors, elements, operators, transpose, determinant. The elements are small whole
numbers, of which all results are exact.

Usage: test_matrix.py SMELT
"""
import itertools

from driver import POINTS, Check, main, run
from numbers_of import BOOL, REALS, ULONG

HELPERS = """
template <int C, int R> matrix<T, C, R> load(device const T *values, uint i, uint shift) {
  matrix<T, C, R> m;
  for (int c = 0; c < C; c++)
    for (int r = 0; r < R; r++) m[c][r] = values[i + shift + c * R + r];
  return m;
}
template <int N> vec<T, N> load(device const T *values, uint i, uint shift) {
  vec<T, N> v;
  for (int c = 0; c < N; c++) v[c] = values[i + shift + c];
  return v;
}
// All elements in one number.
template <int C, int R> ulong code(matrix<T, C, R> m) {
  ulong h = 0;
  for (int c = 0; c < C; c++)
    for (int r = 0; r < R; r++) h = h * 31 + ulong(long(m[c][r]));
  return h;
}
template <int N> ulong code(vec<T, N> v) {
  ulong h = 0;
  for (int c = 0; c < N; c++) h = h * 31 + ulong(long(v[c]));
  return h;
}
template <class M> M changed(M a, M b) {
  a += b;
  a *= T(2);
  a -= b;
  a[1] = b[0];
  a[0].y = 5;
  a[1][0] += 1;
  return a;
}
"""


def code(columns):
    h = 0
    for value in itertools.chain(*columns):
        h = (h * 31 + int(value)) % 2**64
    return h


def multiply(a, b):
    """Columns of a times columns of b."""
    return [[sum(a[k][r] * column[k] for k in range(len(a))) for r in range(len(a[0]))] for column in b]


def transposed(m):
    return [list(row) for row in zip(*m)]


def determinant(m):
    if len(m) == 1:
        return m[0][0]
    return sum((-1) ** c * m[c][0] * determinant([column[1:] for k, column in enumerate(m) if k != c]) for c in range(len(m)))


def changed(a, b):
    m = [[(p + q) * 2 - q for p, q in zip(x, y)] for x, y in zip(a, b)]
    m[1] = list(b[0])
    m[0][1] = 5
    m[1][0] += 1
    return m


def checks_of(t, values, shapes):
    def matrix(i, shift, columns, rows):
        return [[values[i + shift + c * rows + r] for r in range(rows)] for c in range(columns)]

    def number(text, f):
        """f gets the thread's number: x is what the driver passes, the index."""
        return Check(text, ULONG, lambda x, k: f(k), (1,))

    checks = []
    for c, r in shapes:
        name = f"{t.name}{c}x{r}"
        a, b = f"load<{c}, {r}>(x_values, i, 0)", f"load<{c}, {r}>(x_values, i, 5)"
        A = lambda i, c=c, r=r: matrix(i, 0, c, r)
        B = lambda i, c=c, r=r: matrix(i, 5, c, r)
        V = lambda i, n: [values[i + 9 + k] for k in range(n)]
        scaled = lambda m, f: [[f(e) for e in column] for column in m]
        elements = ", ".join(f"x_values[i + {k}]" for k in range(c * r))
        columns = ", ".join(f"load<{r}>(x_values, i, {k * r})" for k in range(c))
        other = 2 + (c + r) % 3
        checks += [
            number(f"code({name}({elements}))", lambda i, A=A: code(A(i))),
            number(f"code({name}({columns}))", lambda i, A=A: code(A(i))),
            number(f"code([&] {{ {name} m = {{{columns}}}; return m; }}())", lambda i, A=A: code(A(i))),
            number(f"code({name}(x))", lambda i, c=c, r=r: code([[values[i] if p == q else 0 for q in range(r)] for p in range(c)])),
            number(f"code({name}(float{c}x{r}({a})))", lambda i, A=A: code(A(i))),
            number(f"code({a} + {b})", lambda i, A=A, B=B: code([[p + q for p, q in zip(x, y)] for x, y in zip(A(i), B(i))])),
            number(f"code({a} - {b})", lambda i, A=A, B=B: code([[p - q for p, q in zip(x, y)] for x, y in zip(A(i), B(i))])),
            number(f"code(-{a})", lambda i, A=A: code(scaled(A(i), lambda e: -e))),
            number(f"code({a} * T(3))", lambda i, A=A: code(scaled(A(i), lambda e: 3 * e))),
            number(f"code(2 * {a})", lambda i, A=A: code(scaled(A(i), lambda e: 2 * e))),
            number(f"code({a} * load<{c}>(x_values, i, 9))", lambda i, A=A, c=c: code(multiply(A(i), [V(i, c)]))),
            number(f"code(load<{r}>(x_values, i, 9) * {a})",
                   lambda i, A=A, r=r: code([[sum(p * q for p, q in zip(V(i, r), column)) for column in A(i)]])),
            number(f"code({a} * load<{other}, {c}>(x_values, i, 3))",
                   lambda i, A=A, c=c, k=other: code(multiply(A(i), matrix(i, 3, k, c)))),
            number(f"code(transpose({a}))", lambda i, A=A: code(transposed(A(i)))),
            number(f"code(changed({a}, {b}))", lambda i, A=A, B=B: code(changed(A(i), B(i)))),
            Check(f"{a} == {b}", BOOL, lambda x, k, A=A, B=B: A(k) == B(k), (1,)),
            Check(f"{a} != {a}", BOOL, lambda x, k: False, (1,)),
        ]
        if c == r:
            checks += [number(f"ulong(long(determinant({a})))", lambda i, A=A: determinant(A(i)) % 2**64),
                       number(f"code([&] {{ {name} m = {a}; m *= {b}; return m; }}())",
                              lambda i, A=A, B=B: code(multiply(A(i), B(i))))]
    return checks


def matrices(smelt):
    failures = 0
    for t in REALS:
        values = [int(v) for v in (t.value(t.pattern(float((7 * k * k + 3 * k) % 5 - 2))) for k in range(POINTS + 40))]
        inputs = [[t.pattern(float(v)) for v in values], list(range(POINTS))]
        sizes = "".join(f"static_assert(sizeof({t.name}{c}x{r}) == {c * (4 if r > 2 else 2) * t.bits // 8} && "
                        f"is_same_v<matrix<{t.name}, {c}, {r}>, {t.name}{c}x{r}>, \"\");\n" for c in (2, 3, 4) for r in (2, 3, 4))
        extra = f"typedef {t.name} T;\n" + HELPERS + sizes
        for n, shape in enumerate(itertools.product((2, 3, 4), repeat=2)):
            # A third of the checks for each type and shape, in turn: all of them are much code.
            checks = checks_of(t, values, [shape])[(n + REALS.index(t)) % 3::3]
            failures += run(smelt, f"matrices of {t.name}", [t, ULONG], checks, inputs, extra)
    return failures


main([matrices])
