"""Differentiation: vjp, jvp, grad, value_and_grad, and functions with derivatives of their own.

They go through smelt's operations and through custom functions. A kernel has no derivative: what is differentiated
through one that is not inside a custom function raises ValueError with the kernel's name."""
import functools
from collections.abc import Callable, Sequence
from typing import Any

from smelt._smelt import (
    Tape, apply, array, tape_pause, tape_record, tape_resume, tape_tracks,
)
from smelt.operations import expand_dims, moveaxis, stack
from smelt.tree import leaves, tree_map, unflatten

__all__ = ["checkpoint", "custom_function", "grad", "jvp", "value_and_grad", "vjp", "vmap"]


def _variables(arrays: Sequence[Any], what: str) -> list[array]:
    """New handles on the arrays, which a tape tells apart from all others."""
    for a in arrays:
        if not isinstance(a, array):
            raise ValueError(f"{what}: {type(a).__name__} cannot be differentiated by; expected a smelt.array")
    return [apply("identity", (a,)) for a in arrays]


def _arrays(outputs: Any, what: str) -> list[array]:
    found = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    for a in found:
        if not isinstance(a, array):
            raise ValueError(f"{what}: the function returned {type(a).__name__}; expected smelt.array, or a list of them")
    return found


class _Recording:
    """A tape that ends with the block, and variables on it."""

    def __init__(self, variables: list[array]):
        self.variables = variables

    def __enter__(self) -> Tape:
        self.tape = Tape()
        for variable in self.variables:
            self.tape.watch(variable)
        return self.tape

    def __exit__(self, *exception: object) -> None:
        self.tape.end()


def _check_shapes(what: str, arrays: Sequence[array], like: Sequence[array], names: tuple[str, str]) -> None:
    if len(arrays) != len(like):
        raise ValueError(f"{what}: {len(arrays)} {names[0]} for {len(like)} {names[1]}; expected one for each")
    for i, (a, b) in enumerate(zip(arrays, like)):
        if a.shape != b.shape:
            raise ValueError(f"{what}: {names[0]} {i} has shape {a.shape}; expected {b.shape}, that of {names[1]} {i}")


def vjp(fun: Callable, primals: Sequence[array], cotangents: Sequence[array]) -> tuple[list[array], list[array]]:
    """(outputs, gradients) of fun(*primals): gradients[i] is the sum over outputs of cotangents[j] times the derivative
    of output j by primal i. cotangents are of the shapes of the outputs. ValueError where numbers or shapes differ."""
    variables = _variables(primals, "vjp")
    with _Recording(variables) as tape:
        outputs = _arrays(fun(*variables), "vjp")
    _check_shapes("vjp", cotangents, outputs, ("cotangents", "outputs"))
    return outputs, tape.vjp(outputs, list(cotangents), variables)


def jvp(fun: Callable, primals: Sequence[array], tangents: Sequence[array]) -> tuple[list[array], list[array]]:
    """(outputs, tangents) of fun(*primals): tangent j is the sum over primals of the derivative of output j by primal i
    times tangents[i], which are of the shapes of the primals."""
    _check_shapes("jvp", tangents, primals, ("tangents", "primals"))
    variables = _variables(primals, "jvp")
    with _Recording(variables) as tape:
        outputs = _arrays(fun(*variables), "jvp")
    return outputs, tape.jvp(variables, list(tangents), outputs)


def value_and_grad(fun: Callable, argnums: int | Sequence[int] | None = None,
                   argnames: str | Sequence[str] = ()) -> Callable:
    """A function that returns (value, gradient): of fun's scalar result by some of its arguments, which are arrays or
    trees of arrays (lists, tuples, dictionaries).

    argnums: the places of these arguments; by default 0, or none where argnames are given. argnames: keyword arguments.
    The gradient is of one argument's form, or a tuple of several; with argnames, a pair of that and a dictionary.
    fun may return a tuple whose first item is the scalar. ValueError if it is not a scalar."""
    numbers = (0,) if argnums is None and not argnames else () if argnums is None else argnums
    single = isinstance(numbers, int) or argnums is None
    numbers = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)

    @functools.wraps(fun)
    def value_and_gradient(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        for number in numbers:
            if not -len(args) <= number < len(args):
                raise ValueError(f"grad: argnums has {number}, but the function was called with {len(args)} arguments")
        for name in names:
            if name not in kwargs:
                raise ValueError(f"grad: argnames has '{name}', which is not a keyword argument of the call")
        trees = [args[number] for number in numbers] + [kwargs[name] for name in names]
        flat = [leaves(tree) for tree in trees]
        variables = _variables([leaf for items in flat for leaf in items], "grad")
        parts, at = [], 0
        for tree, items in zip(trees, flat):
            parts.append(unflatten(tree, variables[at:at + len(items)]))
            at += len(items)
        given, named = list(args), dict(kwargs)
        for place, number in enumerate(numbers):
            given[number] = parts[place]
        for place, name in enumerate(names):
            named[name] = parts[len(numbers) + place]
        with _Recording(variables) as tape:
            value = fun(*given, **named)
        loss = value[0] if isinstance(value, (tuple, list)) and value else value
        if not isinstance(loss, array) or loss.size != 1 or loss.ndim:
            shape = f"an array of shape {loss.shape}" if isinstance(loss, array) else type(loss).__name__
            raise ValueError(f"grad: the function returned {shape}; expected a scalar array, of shape ()")
        gradients = iter(tape.vjp([loss], [None], variables))
        made = [tree_map(lambda leaf: next(gradients), tree) for tree in trees]
        positional: Any = made[0] if single and numbers else tuple(made[:len(numbers)])
        if not names:
            return value, positional
        return value, (positional if numbers else None, dict(zip(names, made[len(numbers):])))

    return value_and_gradient


def grad(fun: Callable, argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = ()) -> Callable:
    """As value_and_grad, but the function returns the gradient alone."""
    both = value_and_grad(fun, argnums, argnames)

    @functools.wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return gradient


def checkpoint(fun: Callable) -> Callable:
    """A function that keeps nothing for its derivative but its arguments: it is computed once more for that."""
    wrapped = custom_function(fun)

    @wrapped.vjp
    def again(primals: Any, cotangents: Any, _: Any) -> Any:
        inputs = primals if isinstance(primals, tuple) else (primals,)
        flat = [leaf for leaf in leaves(inputs) if isinstance(leaf, array)]

        def flattened(*arrays: array) -> list[array]:
            return leaves(fun(*_replaced(inputs, arrays)))

        gradients = vjp(flattened, flat, leaves(cotangents))[1]
        made = _replaced(inputs, gradients)
        return made if isinstance(primals, tuple) else made[0]

    return wrapped


def _replaced(tree: Any, arrays: Sequence[array]) -> Any:
    """The tree with other arrays; its other leaves stay."""
    left = iter(arrays)
    return tree_map(lambda leaf: next(left) if isinstance(leaf, array) else leaf, tree)


class custom_function:
    """A function whose derivatives are given by functions of its author; a decorator.

    @smelt.custom_function
    def f(x, y): ...

    @f.vjp
    def f_vjp(primals, cotangents, outputs): ...

    primals are f's arguments, a tuple, or the argument itself if f has one; cotangents and outputs have the form of
    what f returned. The VJP returns a gradient for each argument in the form of primals; None stands for zeros.
    f.jvp takes (primals, tangents); f.vmap takes (inputs, axes) and returns (outputs, axes). f may use kernels. Without
    a VJP the function is differentiated as any other."""

    def __init__(self, f: Callable):
        functools.update_wrapper(self, f)
        self.f = f
        self._vjp: Callable | None = None
        self._jvp: Callable | None = None
        self._vmap: Callable | None = None

    def vjp(self, f: Callable) -> "custom_function":
        """Sets the function that gives vector-Jacobian products."""
        self._vjp = f
        return self

    def jvp(self, f: Callable) -> "custom_function":
        """Sets the function that gives Jacobian-vector products."""
        self._jvp = f
        return self

    def vmap(self, f: Callable) -> "custom_function":
        """Sets the function that smelt.vmap calls instead of this one."""
        self._vmap = f
        return self

    def __repr__(self) -> str:
        rules = [name for name in ("vjp", "jvp", "vmap") if getattr(self, f"_{name}")]
        return f"<smelt.custom_function {self.f.__name__}: {', '.join(rules) or 'no rules'}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        inputs = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, array)]
        if (self._vjp is None and self._jvp is None) or not any(tape_tracks(a) for a in inputs):
            return self.f(*args, **kwargs)
        tape_pause()
        try:
            made = self.f(*args, **kwargs)
        finally:
            tape_resume()
        flat = leaves(made)
        _arrays(flat, self.f.__name__)
        # What f passed through becomes a result of its own.
        tape_pause()
        try:
            outputs = [apply("identity", (a,)) for a in flat]
        finally:
            tape_resume()
        made = unflatten(made, outputs)
        vjp_rule = self._rule_vjp(self._vjp, args, kwargs, made) if self._vjp else None
        jvp_rule = self._rule_jvp(self._jvp, args, kwargs) if self._jvp else None
        tape_record(self.f.__name__, inputs, outputs, vjp_rule, jvp_rule)
        return made

    def _primals(self, args: tuple, kwargs: dict, inputs: list[array]) -> Any:
        args, kwargs = _replaced((args, kwargs), inputs)
        everything = (*args, *kwargs.values())
        return everything[0] if len(everything) == 1 else everything

    def _flat(self, args: tuple, kwargs: dict, result: Any, what: str) -> list[array | None]:
        """What a rule gave for the arguments, for each of their arrays."""
        everything = (*args, *kwargs.values())
        parts = (result,) if len(everything) == 1 else result
        if len(everything) == 1 and isinstance(result, (tuple, list)) and not isinstance(everything[0], (tuple, list)):
            parts = result
        if not isinstance(parts, (tuple, list)) or len(parts) != len(everything):
            count = len(parts) if isinstance(parts, (tuple, list)) else 1
            raise ValueError(f"{self.f.__name__}: its {what} returned {count} gradients; expected {len(everything)}, one for "
                             "each argument")
        flat: list[array | None] = []
        for part, argument in zip(parts, everything):
            own = [leaf for leaf in leaves(argument) if isinstance(leaf, array)]
            given = [None] * len(own) if part is None else leaves(part)
            if own and len(given) != len(own):
                raise ValueError(f"{self.f.__name__}: its {what} returned {len(given)} arrays for an argument of {len(own)}")
            flat += given[:len(own)]
        return flat

    def _rule_vjp(self, given: Callable, args: tuple, kwargs: dict, made: Any) -> Callable:
        def rule(inputs: list[array], outputs: list[array], cotangents: list[array]) -> list[array | None]:
            result = given(self._primals(args, kwargs, inputs), unflatten(made, cotangents), unflatten(made, outputs))
            return self._flat(args, kwargs, result, "VJP")
        made = unflatten(made, [0] * len(leaves(made)))  # its form alone
        return rule

    def _rule_jvp(self, given: Callable, args: tuple, kwargs: dict) -> Callable:
        def rule(inputs: list[array], outputs: list[array], tangents: list[array]) -> list[array | None]:
            return leaves(given(self._primals(args, kwargs, inputs), self._primals(args, kwargs, tangents)))
        return rule


def vmap(fun: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Callable:
    """A function that takes arrays with one more axis and calls fun for each slice along it; results are stacked.

    in_axes: for each argument the axis, or None for one that is the same for all; out_axes likewise for the results. A
    custom_function with a vmap of its own is called once with everything. Slices are computed one after the other."""

    @functools.wraps(fun)
    def mapped(*args: Any) -> Any:
        axes = list(in_axes) if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
        if len(axes) != len(args):
            raise ValueError(f"vmap: in_axes has {len(axes)} axes for {len(args)} arguments")
        sizes = {leaf.shape[axis] for arg, axis in zip(args, axes) if axis is not None for leaf in leaves(arg)}
        if len(sizes) != 1:
            raise ValueError(f"vmap: the arguments have sizes {sorted(sizes)} along their axes; expected one size")
        if isinstance(fun, custom_function) and fun._vmap is not None:
            single = len(args) == 1
            outputs, axis = fun._vmap(args[0] if single else args, axes[0] if single else tuple(axes))
            return _moved(outputs, axis, out_axes)
        results = []
        for i in range(sizes.pop()):
            slices = [tree_map(lambda leaf: leaf[(slice(None),) * (axis % leaf.ndim) + (i,)], arg) if axis is not None
                      else arg for arg, axis in zip(args, axes)]
            results.append(fun(*slices))
        flat = [leaves(result) for result in results]
        stacked = [stack([items[j] for items in flat]) for j in range(len(flat[0]))] if flat else []
        return _moved(unflatten(results[0], stacked), 0, out_axes)

    return mapped


def _moved(outputs: Any, axes: Any, wanted: Any) -> Any:
    """Results whose mapped axis, `axes` of each, becomes the wanted one."""
    flat = leaves(outputs)
    from_axes = list(axes) if isinstance(axes, (list, tuple)) else [axes] * len(flat)
    to_axes = list(wanted) if isinstance(wanted, (list, tuple)) else [wanted] * len(flat)
    moved = [a if source == target else expand_dims(a, target) if source is None else moveaxis(a, source, target)
             for a, source, target in zip(flat, from_axes, to_axes)]
    return unflatten(outputs, moved)
