"""Functions of smelt.linalg on values of graphs: they add nodes whose executions call them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from smelt._smelt import array

__all__ = ["in_graphs"]

P = ParamSpec("P")
R = TypeVar("R")

#: A result: "a" if it has the first input's dtype, "i" if it is int32; and its shape.
Sizes = tuple[str, tuple[int, ...]]
#: The results of a function, from its inputs and those of its options that they depend on.
Rule = Callable[..., list[Sizes]]

#: The parameters that are inputs of a node; all others are its options.
_MATRICES = ("a", "b", "x", "y")


def _is_value(x: Any) -> bool:
    return isinstance(x, array) and x.device == "graph"


def _matrices(name: str, a: Any) -> tuple[tuple[int, ...], int, int]:
    if a.ndim < 2:
        raise ValueError(f"{name}: a has shape {a.shape}; expected matrices")
    return a.shape[:-2], a.shape[-2], a.shape[-1]


def _square(name: str, a: Any) -> list[Sizes]:
    batch, m, n = _matrices(name, a)
    if m != n:
        raise ValueError(f"{name}: a has shape {a.shape}; expected square matrices")
    return [("a", (*batch, n, n))]


def _joined(name: str, one: tuple[int, ...], two: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(one), len(two))
    sizes = []
    for i, j in zip((1,) * (rank - len(one)) + one, (1,) * (rank - len(two)) + two):
        if i != j and 1 not in (i, j):
            raise ValueError(f"{name}: dimensions {one} and {two} do not match")
        sizes.append(j if i == 1 else i)
    return tuple(sizes)


def _solution(name: str, a: Any, b: Any, right: bool = False) -> list[Sizes]:
    """x in a @ x = b; with `right`, in x @ a = b."""
    batch, m, n = _matrices(name, a)
    if b.ndim == 1 and not batch and not right and b.shape[0] == m:
        return [("a", (n,))]
    if b.ndim < 2 or b.shape[-1 if right else -2] != (n if right else m):
        raise ValueError(f"{name}: a has shape {a.shape} and b {b.shape}; expected as many {'columns' if right else 'rows'}")
    both = _joined(name, batch, b.shape[:-2])
    return [("a", (*both, b.shape[-2], m) if right else (*both, n, b.shape[-1]))]


def _factors(a: Any, mode: str = "reduced") -> list[Sizes]:
    batch, m, n = _matrices("qr", a)
    rank = m if mode == "complete" else min(m, n)
    return [("a", (*batch, m, rank)), ("a", (*batch, rank, n))][mode == "r":]


def _lu_factor(a: Any) -> list[Sizes]:
    batch, m, n = _matrices("lu_factor", a)
    return [("a", (*batch, m, n)), ("i", (*batch, min(m, n)))]


def _lu(a: Any) -> list[Sizes]:
    batch, m, n = _matrices("lu", a)
    return [("i", (*batch, m)), ("a", (*batch, m, min(m, n))), ("a", (*batch, min(m, n), n))]


def _sums(x: Any, y: Any) -> list[Sizes]:
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-1]:
        raise ValueError(f"dot: x has shape {x.shape} and y {y.shape}; expected the same last dimension")
    return [("a", _joined("dot", x.shape[:-1], y.shape[:-1]))]


def _solved(a: Any, b: Any, right: bool = False) -> list[Sizes]:
    _square("solve_triangular", a)
    return _solution("solve_triangular", a, b, right)


def _solved_square(a: Any, b: Any) -> list[Sizes]:
    _square("solve", a)
    return _solution("solve", a, b)


#: The rule of each function.
_RULES: dict[str, Rule] = {
    "cholesky": lambda a: _square("cholesky", a), "inv": lambda a: _square("inv", a), "qr": _factors,
    "lu_factor": _lu_factor, "lu": _lu, "solve": _solved_square, "solve_triangular": _solved,
    "lstsq": lambda a, b: _solution("lstsq", a, b), "dot": _sums}

#: Functions without derivatives.
_CONSTANT = ("lu", "lu_factor")


def _list(made: Any) -> list:
    return list(made) if isinstance(made, (list, tuple)) else [made]


@functools.cache
def _operation(function: Callable) -> Any:
    """The registered operation that calls a function; its vector-Jacobian product is another registered operation."""
    from smelt import int32, vjp
    from smelt.dtypes import floating, issubdtype
    from smelt.graph import TensorType, operation

    name = function.__name__
    rule = _RULES[name]
    known = inspect.signature(rule).parameters

    def types(*values: Any, **options: Any) -> list[TensorType]:
        sizes = rule(*values, **{key: options[key] for key in options if key in known})
        return [TensorType(int32 if kind == "i" else values[0].dtype, shape) for kind, shape in sizes]

    def floats(made: Any) -> list:
        return [x for x in _list(made) if issubdtype(x.dtype, floating)]

    def gradients(*values: Any, inputs: int, device: str, out_types: list, **options: Any) -> list:
        return _list(vjp(lambda *x: floats(function(*x, **options)), list(values[:inputs]), list(values[inputs:]))[1])

    derivative = operation(f"smelt.linalg.{name}.vjp", opaque=True, shape=lambda *values, inputs, **options: [
        TensorType(x.dtype, x.shape) for x in values[:inputs]])(gradients)

    def differentiate(inputs: tuple, cotangents: tuple, outputs: tuple, **options: Any) -> list:
        given = [c for c, out in zip(cotangents, outputs) if issubdtype(out.dtype, floating)]
        return _list(derivative(*inputs, *given, inputs=len(inputs), **options))

    def run(*values: Any, device: str, out_types: list, **options: Any) -> list:
        return _list(function(*values, **options))

    rule_back = None if name in _CONSTANT else differentiate
    return operation(f"smelt.linalg.{name}", opaque=True, shape=types, vjp=rule_back)(run)


def _node(function: Callable, given: dict[str, Any]) -> Any:
    name = function.__name__
    if given.pop("report", None) is not None:
        raise ValueError(f"{name}: report is given for a value of a graph; expected None, as the call runs only when the graph "
                         "is executed")
    given.pop("stream", None)
    from smelt import asarray, zeros
    from smelt.dtypes import floating, issubdtype

    values = [asarray(given.pop(key)) for key in _MATRICES if key in given]
    if len({x.dtype for x in values}) > 1:
        raise ValueError(f"{name}: the dtypes are {' and '.join(x.dtype.name for x in values)}; expected the same dtype in "
                         "graphs")
    if not issubdtype(values[0].dtype, floating):
        raise ValueError(f"{name}: the dtype is {values[0].dtype.name}; expected a dtype of floats")
    # A call on empty batches checks the options now rather than when the graph is executed.
    options = {key: option for key, option in given.items() if key not in _MATRICES}
    function(*(zeros((0, 1, 1), x.dtype) for x in values), **options)
    made = _list(_operation(function)(*values, **options))
    return made[0] if len(made) == 1 else tuple(made)


def in_graphs(function: Callable[P, R]) -> Callable[P, R]:
    """The function, except that a call with a value of a graph adds a node to it. Options must then be constants."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> R:
        if any(map(_is_value, args)) or any(map(_is_value, options.values())):
            return _node(function, dict(signature.bind(*args, **options).arguments))
        return function(*args, **options)
    return called
