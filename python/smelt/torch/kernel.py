"""Metal source as an operation of PyTorch, with a reference written in PyTorch: `TorchMetalKernel`."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

import smelt
from smelt.torch.operation import Op, _is_rule, _torch_dtype
from smelt.torch.plans import SEEN, Plans, add_tensors, is_watched

__all__ = ["TorchMetalKernel", "Verification"]

_BY_POSITION = inspect.Parameter.POSITIONAL_OR_KEYWORD
_LAUNCH = ("threads_per_grid", "threads_per_threadgroup", "result_sizes", "result_ranks")
_WHOLE_SOURCE = re.compile(r"\bkernel\s+void\s|\[\[\s*kernel\s*\]\]")
_METAL_TYPES = {
    torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat", torch.int8: "char", torch.uint8: "uchar",
    torch.int16: "short", torch.uint16: "ushort", torch.int32: "int", torch.uint32: "uint", torch.int64: "long",
    torch.uint64: "ulong", torch.bool: "bool",
}
_TOLERANCES = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


_KERNELS: dict[str, TorchMetalKernel] = {}  # by name: the last of each


class Verification(NamedTuple):
    """What `TorchMetalKernel.verify` compared, as (name, largest difference, allowed difference)."""

    results: list[tuple[str, float, float]]
    gradients: list[tuple[str, float, float]]


class TorchMetalKernel:
    """A kernel written in Metal as the operation `name` of PyTorch: "library::operation", or "operation", which is
    "smelt::operation".

        scale = smelt.torch.TorchMetalKernel(
            name="mylib::scale", source="uint i = thread_position_in_grid.x; out[i] = T(float(x[i]) * factor);",
            inputs={"x": torch.Tensor, "factor": float}, results=["out"], templates={"T": "x"},
            torch_defn=lambda x, factor: x * factor)
        y = scale(x, 2.0, threads_per_grid=lambda x, factor: (x.numel(), 1, 1), threads_per_threadgroup=(256, 1, 1))

    source: the body of a kernel, as for smelt.metal_kernel; or whole Metal source, whose function has the operation's
        name or is the only one, and a buffer for each input and result, with these names.
    inputs: names, of tensors; or a dict of names and types (torch.Tensor, int, float, bool).
    results: names; or a dict of names and dtypes, each a dtype or the name of an input or template that has it. Without
        one a result has the dtype that torch_defn gives it, else that of the first tensor.
    templates: names and values: a dtype, int or bool; the name of an input, for its dtype; or a function of the inputs.
        A body has them as template parameters. Whole source sees types and constants of these names.
    torch_defn: the same function in PyTorch. Result shapes come from it where none are given, gradients where there is
        no vjp, and verify compares with it.
    threads_per_grid, threads_per_threadgroup, result_shapes (a shape per result): what calls use that do not give
        their own. Here and in calls they are values or functions of the inputs, whose sizes may be symbols.
    vjp: as for Op.vjp; differentiable: as there.
    autocast: what torch.autocast does with floating-point inputs: False, nothing; True, it casts them to its dtype; a
        dtype: it casts them to that.
    header, init_value, ensure_row_contiguous, compile_options: as for smelt.metal_kernel and its calls.

    The operation works with autograd, torch.compile, torch.export and torch.func. A call never waits for a device.
    ValueError for arguments that do not fit together."""

    def __init__(
        self,
        name: str,
        source: str,
        inputs: Sequence[str] | Mapping[str, Any],
        results: Sequence[str] | Mapping[str, Any],
        *,
        templates: Mapping[str, Any] | None = None,
        torch_defn: Callable | None = None,
        threads_per_grid: Any = None,
        threads_per_threadgroup: Any = None,
        result_shapes: Any = None,
        vjp: Callable | None = None,
        differentiable: bool = False,
        autocast: bool | torch.dtype = False,
        header: str = "",
        init_value: Any = None,
        ensure_row_contiguous: bool = True,
        compile_options: dict[str, str] | None = None,
    ):
        self.name = name if "::" in str(name) else f"smelt::{name}"
        self.source = source
        self.torch_defn = torch_defn
        self.types = dict(inputs) if isinstance(inputs, Mapping) else dict.fromkeys(inputs, torch.Tensor)
        self.results = dict(results) if isinstance(results, Mapping) else dict.fromkeys(results)
        self.templates = dict(templates or {})
        self._check_names()
        self._rules = {"threads_per_grid": threads_per_grid, "threads_per_threadgroup": threads_per_threadgroup,
                       "result_shapes": result_shapes}
        self._has_vjp = vjp is not None
        self._autocast = autocast
        self._program: Any = _Source(self, compile_options, header) if _WHOLE_SOURCE.search(source) else _Body(
            self, compile_options, header, init_value, ensure_row_contiguous)
        self._plans = Plans()
        self._kinds = tuple(self.types.values())
        self._tensors = [i for i, kind in enumerate(self._kinds) if kind is torch.Tensor]
        self._by_reference = result_shapes is None or (torch_defn is not None and None in self.results.values())
        self._numbers = [(i, kind) for i, kind in enumerate(self._kinds) if kind is not torch.Tensor]
        self._computed = [name for name, value in self.templates.items() if _is_rule(value)]
        self._shapes = functools.lru_cache(maxsize=256)(self._reference_shapes)
        self.op = Op(self.name, self._function())
        """The operation; its `overload` is torch's object."""
        self.op.fake(self._fake)
        self.op._vjp_advice = "give torch_defn or vjp where the kernel is made"
        if vjp is not None:
            self.op.vjp(functools.partial(self._given_vjp, vjp), differentiable=differentiable)
        elif torch_defn is not None:
            self.op.vjp(self._reference_vjp, differentiable=True)
        _KERNELS[self.name] = self
        self.__name__ = self.name.partition("::")[2]
        self.__doc__ = getattr(torch_defn, "__doc__", None) or f"The kernel '{self.name}'."

    def __repr__(self) -> str:
        return f"<smelt.torch.TorchMetalKernel '{self.name}' ({', '.join(self.types)}) -> ({', '.join(self.results)})>"

    def __call__(self, *inputs: Any, threads_per_grid: Any = None, threads_per_threadgroup: Any = None,
                 result_shapes: Any = None, **named: Any) -> Any:
        """The result, or a tuple of them. Sizes that are not given here are those that the kernel was made with."""
        inputs = self._all_inputs(inputs, named)
        if self._autocast is not False:
            inputs = self._cast(inputs)
        grid = self._sizes("threads_per_grid", threads_per_grid, inputs)
        group = self._sizes("threads_per_threadgroup", threads_per_threadgroup, inputs)
        shapes = _resolved(result_shapes, inputs)
        made = self._at_once(inputs, grid, group, shapes)
        if made is not None:
            return made[0] if len(made) == 1 else tuple(made)
        self._check_call(inputs, grid, group)
        if shapes is None:
            sizes = ranks = None
        else:
            self._check_shapes(shapes)
            sizes, ranks = [size for shape in shapes for size in shape], [len(shape) for shape in shapes]
        return self.op(*inputs, None if grid is None else list(grid), None if group is None else list(group),
                       sizes, ranks)

    def verify(self, *inputs: Any, rtol: float | None = None, **launch: Any) -> Verification:
        """Runs the kernel and torch_defn on the inputs, compares results and, where the kernel has a VJP, gradients.

        torch_defn runs on the inputs converted to float64. A difference is allowed up to rtol times the largest
        magnitude of the expected tensor, or 1 if that is smaller. rtol depends on the dtype if it is None. launch: what
        the call takes. Returns the differences; AssertionError names the first tensor that differs by more."""
        if self.torch_defn is None:
            raise ValueError(f"{self.name}: verify has nothing to compare with; expected a kernel with torch_defn")
        places = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.is_floating_point()]
        ours = [x.detach().requires_grad_(self._has_vjp) if i in places else x for i, x in enumerate(inputs)]
        exact = [x.detach().double().requires_grad_(self._has_vjp) if i in places else x for i, x in enumerate(inputs)]
        made, expected = _several(self(*ours, **launch)), _several(self.torch_defn(*exact))
        if len(made) != len(expected):
            raise ValueError(f"{self.name}: torch_defn returned {len(expected)} tensors; expected one for each of: "
                             f"{', '.join(self.results)}")
        compared = [self._compare(f"result '{name}'", a, b, rtol) for name, a, b in zip(self.results, made, expected)]
        if not self._has_vjp:
            return Verification(compared, [])
        pairs = [(a, b) for a, b in zip(made, expected) if a.requires_grad and b.requires_grad]
        cotangents = [torch.randn_like(a) for a, _ in pairs]
        found = torch.autograd.grad([a for a, _ in pairs], [ours[i] for i in places], cotangents, allow_unused=True)
        wanted = torch.autograd.grad([b for _, b in pairs], [exact[i] for i in places],
                                     [each.to(b.dtype) for each, (_, b) in zip(cotangents, pairs)], allow_unused=True)
        names = list(self.types)
        gradients = []
        for i, a, b in zip(places, found, wanted):
            a, b = (torch.zeros_like(inputs[i]) if each is None else each for each in (a, b))
            gradients.append(self._compare(f"the gradient of '{names[i]}'", a, b, rtol))
        return Verification(compared, gradients)

    def shard(self, rules: Sequence[tuple[Sequence, Sequence]]) -> None:
        """Lets the operation take DTensors. rules: pairs of placements, (of each input, of each result); None for an
        input that is not a tensor. Each process runs the kernel on its part; replicated tensors need no rule.

        Sizes must come from functions given where the kernel was made, as those see each part's shape."""
        from torch.distributed.tensor import Replicate
        from torch.distributed.tensor.experimental import register_sharding
        for inputs, results in rules:
            if len(inputs) != len(self.types) or len(results) != len(self.results):
                raise ValueError(f"{self.name}: a rule has {len(inputs)} placements of inputs and {len(results)} of results; "
                                 f"expected {len(self.types)} and {len(self.results)}")
        replicated = ([Replicate() if kind is torch.Tensor else None for kind in self.types.values()],
                      [Replicate()] * len(self.results))
        accepted = [(list(results), [*inputs, *(None,) * len(_LAUNCH)]) for inputs, results in [*rules, replicated]]

        def placements(*args: Any, **named: Any) -> list:
            return [(results, inputs[:len(args)]) for results, inputs in accepted]
        register_sharding(self.op.overload)(placements)

    @staticmethod
    def of(overload: Any) -> TorchMetalKernel | None:
        """The kernel whose operation torch's object stands for; None if there is none."""
        schema = getattr(overload, "_schema", None)
        return None if schema is None else _KERNELS.get(schema.name)

    def trace(self, args: Sequence, seen: Sequence) -> Any:
        """The results as values of a smelt graph: args are the operation's arguments with values for tensors, and seen
        the same with tensors that need no elements. NotImplementedError for whole source."""
        if not isinstance(self._program, _Body):
            raise NotImplementedError(f"{self.name}: whole source cannot be part of a graph; expected the body of a kernel")
        inputs, grid, group, shapes, dtypes = self._launch(seen)
        made = self._program.trace(args[:len(self.types)], inputs, grid, group, shapes, dtypes)
        return made[0] if len(self.results) == 1 else made

    # ---- Calls.

    def _at_once(self, inputs: tuple, grid: Any, group: Any, shapes: Any) -> list | None:
        """The results of a call that needs nothing of torch's dispatcher, by the plan of an earlier call like it; else None."""
        key: list = []
        if is_watched() or not add_tensors(key, inputs, self._tensors):
            return None
        given = inputs
        for i, kind in self._numbers:
            x = inputs[i]
            if type(x) is not kind:
                if kind is not float or type(x) is not int:
                    return None
                given = (*given[:i], float(x), *given[i + 1:])
            # Numbers do not change a launch, except the type of a large integer; but torch_defn may depend on them.
            if self._by_reference:
                key.append(x)
            elif kind is int:
                key.append(-2**31 <= x < 2**31)
        if grid is None:
            grid = self._sizes("threads_per_grid", self._rules["threads_per_grid"], inputs)
        if group is None:
            group = self._sizes("threads_per_threadgroup", self._rules["threads_per_threadgroup"], inputs)
        if shapes is None:
            shapes = _resolved(self._rules["result_shapes"], inputs)
        if grid is None or group is None:
            return None
        key += (grid, group)
        if shapes is not None:
            self._check_shapes(shapes)
            key += map(tuple, shapes)
        for name in self._computed:
            value = self._template(name, inputs)
            key += (type(value), value)
        try:
            plan = self._plans.find(tuple(key))
        except TypeError:  # A size is unhashable: the call through the dispatcher says what is wrong.
            return None
        if plan is SEEN:
            plan = self._plans.keep(tuple(key), lambda: self._plan(given, grid, group, shapes))
        return None if plan is None else plan(*given)

    def _plan(self, inputs: tuple, grid: Any, group: Any, shapes: Any) -> Callable | None:
        """A function that returns the results for inputs like these; None where nothing is launched."""
        sizes = ranks = None
        if shapes is not None:
            self._check_shapes(shapes)
            sizes, ranks = [size for shape in shapes for size in shape], [len(shape) for shape in shapes]
        with torch.no_grad():
            inputs, grid, group, shapes, dtypes = self._launch((*inputs, list(grid), list(group), sizes, ranks))
            if any(inputs[i].numel() == 0 for i in self._tensors):
                return None
            return self._program.plan(inputs, grid, group, shapes, dtypes)

    def _all_inputs(self, given: tuple, named: Mapping[str, Any]) -> tuple:
        if named:
            left = list(self.types)[len(given):]
            for name in named:
                if name not in left:
                    raise TypeError(f"{self.name}: the argument '{name}' is unknown or given twice; expected "
                                    f"{', '.join(self.types)}")
            given = (*given, *(named[name] for name in left if name in named))
        if len(given) != len(self.types):
            raise TypeError(f"{self.name}: inputs given: {len(given)}; expected {len(self.types)}: {', '.join(self.types)}")
        return given

    def _cast(self, inputs: tuple) -> tuple:
        """Under torch.autocast, in the dtype of `autocast`."""
        kind = next(x.device.type for x in inputs if isinstance(x, torch.Tensor))
        if not torch.is_autocast_enabled(kind):
            return inputs
        dtype = torch.get_autocast_dtype(kind) if self._autocast is True else self._autocast
        return tuple(x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs)

    def _function(self) -> Callable:
        """What the operation runs, with a signature that torch's schemas express."""
        def run(*args: Any) -> Any:
            inputs, grid, group, shapes, dtypes = self._launch(args)
            made = self._program.run(inputs, grid, group, shapes, dtypes)
            return made[0] if len(self.results) == 1 else tuple(made)

        count = len(self.results)
        returned = torch.Tensor if count == 1 else tuple[(torch.Tensor,) * count]  # type: ignore[misc]
        parameters = [inspect.Parameter(name, _BY_POSITION, annotation=kind) for name, kind in self.types.items()]
        parameters += [inspect.Parameter(name, _BY_POSITION, annotation=Sequence[int] | None, default=None)
                       for name in _LAUNCH]
        run.__name__ = run.__qualname__ = self.name.partition("::")[2]
        run.__signature__ = inspect.Signature(parameters, return_annotation=returned)  # type: ignore[attr-defined]
        return run

    def _parts(self, args: Sequence) -> tuple:
        """The inputs, and the four arguments of _LAUNCH, which torch leaves out where they have their defaults."""
        count = len(self.types)
        launch = (*args[count:], *(None,) * (count + len(_LAUNCH) - len(args)))
        return args[:count], *launch

    def _launch(self, args: Sequence) -> tuple:
        """The inputs, the launch's sizes, and the shapes and dtypes of the results."""
        inputs, grid, group, sizes, ranks = self._parts(args)
        sizes_of = {"threads_per_grid": grid, "threads_per_threadgroup": group}
        for what, given in sizes_of.items():
            if given is None:
                given = self._sizes(what, self._rules[what], inputs)
            if given is None:
                raise ValueError(f"{self.name}: {what} is missing; expected up to three sizes, in the call or where "
                                 "the kernel is made")
            sizes_of[what] = (*given, *(1,) * (3 - len(given)))
        shapes, dtypes = self._results(inputs, sizes, ranks)
        return inputs, *sizes_of.values(), shapes, dtypes

    def _fake(self, *args: Any) -> Any:
        """The results without elements."""
        inputs, _, _, sizes, ranks = self._parts(args)
        first = next(x for x in inputs if isinstance(x, torch.Tensor))
        shapes, dtypes = self._results(inputs, sizes, ranks)
        made = [first.new_empty(tuple(shape), dtype=dtype) for shape, dtype in zip(shapes, dtypes)]
        return made[0] if len(made) == 1 else tuple(made)

    def _results(self, inputs: Sequence, sizes: Any, ranks: Any) -> tuple[list, list]:
        """Shapes and dtypes."""
        shapes = None
        if ranks is not None:
            left = iter(sizes)
            shapes = [[next(left) for _ in range(rank)] for rank in ranks]
        elif self._rules["result_shapes"] is not None:
            shapes = _resolved(self._rules["result_shapes"], inputs)
            self._check_shapes(shapes)
        named = list(self.results.values())
        if shapes is not None and (None not in named or self.torch_defn is None):
            return shapes, [self._dtype(each, inputs) for each in named]
        if self.torch_defn is None:
            raise ValueError(f"{self.name}: result_shapes is missing; expected a shape for each of "
                             f"{', '.join(self.results)}, or a kernel with torch_defn")
        known = self._like_reference(inputs)
        return (shapes or [shape for shape, _ in known],
                [dtype if each is None else self._dtype(each, inputs) for each, (_, dtype) in zip(named, known)])

    def _like_reference(self, inputs: Sequence) -> list:
        """(shape, dtype) of each result of torch_defn."""
        if any(_is_fake(x) for x in inputs):
            return _described(self._without_autocast(inputs))
        return self._shapes(tuple((tuple(x.shape), x.dtype) if isinstance(x, torch.Tensor) else x for x in inputs))

    def _reference_shapes(self, described: tuple) -> list:
        return _described(self._without_autocast(
            [torch.empty(x[0], dtype=x[1], device="meta") if isinstance(x, tuple) else x for x in described]))

    def _without_autocast(self, inputs: Sequence) -> tuple:
        kind = next(x.device.type for x in inputs if isinstance(x, torch.Tensor))
        with torch.no_grad(), torch.autocast("cpu" if kind == "meta" else kind, enabled=False):
            return _several(self.torch_defn(*inputs))  # type: ignore[misc]

    def _dtype(self, given: Any, inputs: Sequence) -> torch.dtype:
        """What a result's or template's dtype stands for."""
        if given is None:
            return next(x.dtype for x in inputs if isinstance(x, torch.Tensor))
        if isinstance(given, str) and given in self.templates:
            return self._dtype(self._template(given, inputs), inputs)
        if isinstance(given, str) and given in self.types:
            return inputs[list(self.types).index(given)].dtype
        return _torch_dtype(given)

    def _template(self, name: str, inputs: Sequence) -> Any:
        """The value of a template: torch's dtype, an int or a bool."""
        value = self.templates[name]
        value = value(*inputs) if _is_rule(value) else value
        return value if isinstance(value, (int, bool)) else self._dtype(value, inputs)

    # ---- Gradients.

    def _given_vjp(self, vjp: Callable, primals: Sequence, cotangents: Any, outputs: Any) -> tuple:
        count = len(self.types)
        inputs = primals[:count]
        given = vjp(inputs[0] if count == 1 else tuple(inputs), cotangents, outputs)
        if count == 1 and not isinstance(given, (tuple, list)):
            given = (given,)
        if not isinstance(given, (tuple, list)) or len(given) != count:
            raise ValueError(f"{self.name}: its VJP returned {given!r:.80}; expected {count} gradients, one for each of "
                             f"{', '.join(self.types)}")
        return (*given, *(None,) * len(_LAUNCH))

    def _reference_vjp(self, primals: Sequence, cotangents: Any, outputs: Any) -> tuple:
        """By torch_defn, computed again."""
        inputs = primals[:len(self.types)]
        places = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.is_floating_point()]

        def reference(*tensors: torch.Tensor) -> Any:
            called = list(inputs)
            for i, tensor in zip(places, tensors):
                called[i] = tensor
            return self.torch_defn(*called)  # type: ignore[misc]

        expected, pull = torch.func.vjp(reference, *(inputs[i] for i in places))
        given = tuple(g.to(e.dtype) for g, e in zip(_several(cotangents), _several(expected)))
        found = pull(given if isinstance(expected, (tuple, list)) else given[0])
        gradients: list = [None] * len(primals)
        for i, gradient in zip(places, found):
            gradients[i] = gradient
        return tuple(gradients)

    # ---- Checks.

    def _check_call(self, inputs: Sequence, grid: Any, group: Any) -> None:
        """Names a wrong argument in a sentence; torch's dispatcher would print its schema."""
        for (name, kind), x in zip(self.types.items(), inputs):
            if kind is torch.Tensor and not isinstance(x, torch.Tensor):
                raise TypeError(f"{self.name}: input '{name}' is of type {type(x).__name__}; expected a torch.Tensor")
            if kind is not torch.Tensor and (x is None or isinstance(x, (str, bytes, list, tuple, dict))):
                raise TypeError(f"{self.name}: input '{name}' is {x!r:.80}; expected a number of type {kind.__name__}")
        for what, sizes in (("threads_per_grid", grid), ("threads_per_threadgroup", group)):
            if sizes is not None and any(isinstance(size, (float, str, torch.Tensor)) for size in sizes):
                raise TypeError(f"{self.name}: {what} is {sizes!r:.80}; expected up to three whole numbers")

    def _check_names(self) -> None:
        if not re.fullmatch(r"\w+::\w+", self.name):
            raise ValueError(f"TorchMetalKernel: the name is {self.name.removeprefix('smelt::')!r}; expected \"operation\" or "
                             "\"library::operation\", of letters, digits and underscores")
        if not self.results:
            raise ValueError(f"{self.name}: results is empty; expected a name or more")
        if torch.Tensor not in self.types.values():
            raise ValueError(f"{self.name}: inputs are {', '.join(self.types) or 'empty'}; expected a tensor or more")
        for name in self.types:
            if name in self.results or name in _LAUNCH:
                raise ValueError(f"{self.name}: the input's name '{name}' is taken; expected another")
        for what, names in (("results", self.results), ("templates", self.templates)):
            for name, value in names.items():
                if isinstance(value, str) and value not in self.types and not (
                        what == "results" and value in self.templates) and not hasattr(torch, value):
                    raise ValueError(f"{self.name}: {what} has '{name}': {value!r}; expected a dtype or one of: "
                                     f"{', '.join([*self.types, *(self.templates if what == 'results' else ())])}")

    def _sizes(self, what: str, value: Any, inputs: Sequence) -> tuple | None:
        """The sizes of a launch that `value`, or what it returns for the inputs, gives; None: none."""
        value = _resolved(value, inputs)
        if value is not None and not hasattr(value, "__iter__"):
            raise TypeError(f"{self.name}: {what} is {value!r}; expected up to three sizes")
        return None if value is None else tuple(value)

    def _check_shapes(self, shapes: Any) -> None:
        if not isinstance(shapes, (list, tuple)) or len(shapes) != len(self.results) or not all(
                isinstance(shape, (list, tuple)) for shape in shapes):
            raise ValueError(f"{self.name}: result_shapes is {shapes!r}; expected a shape for each of: "
                             f"{', '.join(self.results)}")

    def _compare(self, what: str, made: torch.Tensor, expected: torch.Tensor, rtol: float | None) -> tuple:
        if made.shape != expected.shape:
            raise AssertionError(f"{self.name}: {what} has shape {tuple(made.shape)}; torch_defn gives "
                                 f"{tuple(expected.shape)}")
        a, b = made.detach().double(), expected.detach().double()
        if a.numel() == 0:
            return what, 0.0, 0.0
        scale = max(1.0, float(b[b.isfinite()].abs().max()) if b.isfinite().any() else 1.0)
        allowed = scale * (_TOLERANCES.get(made.dtype, 0.0) if rtol is None else rtol)
        same = (a == b) | (a.isnan() & b.isnan())
        difference = float(torch.where(same, 0.0, (a - b).abs().nan_to_num(nan=float("inf"))).max())
        if difference > allowed:
            raise AssertionError(f"{self.name}: {what} differs from torch_defn by {difference:.3g}; expected at most "
                                 f"{allowed:.3g}")
        return what, difference, allowed


# ---- The two forms of source.

class _Body:
    """The body of a function, by smelt.metal_kernel."""

    def __init__(self, owner: TorchMetalKernel, options: Any, header: str, init_value: Any, contiguous: bool):
        self._owner = owner
        self._init_value = init_value
        self._kernel = smelt.metal_kernel(
            name=re.sub(r"\W", "_", owner.name.partition("::")[2]), input_names=list(owner.types),
            output_names=list(owner.results), source=owner.source, header=header, compile_options=options,
            ensure_row_contiguous=contiguous)

    def run(self, inputs: Sequence, grid: Any, group: Any, shapes: Sequence, dtypes: Sequence) -> list:
        return self.trace(inputs, inputs, grid, group, shapes, dtypes)

    def trace(self, given: Sequence, inputs: Sequence, grid: Any, group: Any, shapes: Sequence, dtypes: Sequence) -> list:
        """The kernel of `given`, arrays of any kind; templates depend on inputs."""
        return self._kernel(**self._arguments(given, inputs, grid, group, shapes, dtypes))

    def _arguments(self, given: Sequence, inputs: Sequence, grid: Any, group: Any, shapes: Sequence,
                   dtypes: Sequence) -> dict[str, Any]:
        return {
            "inputs": list(given), "template": [(name, self._owner._template(name, inputs)) for name in self._owner.templates],
            "grid": grid, "threadgroup": group, "output_shapes": shapes, "output_dtypes": dtypes,
            "init_value": self._init_value}

    def plan(self, inputs: Sequence, grid: Any, group: Any, shapes: Sequence, dtypes: Sequence) -> Callable:
        """run() for inputs like these, checked and compiled. It keeps no references to the inputs."""
        bound = self._kernel.bind(**self._arguments(inputs, inputs, grid, group, shapes, dtypes))
        bound._forget()
        return bound


class _Source:
    """Whole Metal source, compiled for each set of templates."""

    def __init__(self, owner: TorchMetalKernel, options: Any, header: str):
        self._owner = owner
        self._options = options
        self._header = header
        self._function = functools.lru_cache(maxsize=64)(self._compiled)

    def _compiled(self, templates: tuple) -> Any:
        lines = [f"constant constexpr {'bool' if isinstance(value, bool) else 'int'} {name} = {str(value).lower()};"
                 if isinstance(value, (int, bool)) else f"typedef {_METAL_TYPES[value]} {name};"
                 for name, value in templates]
        text = f"{self._header}\n{' '.join(lines)}\n#line 1\n{self._owner.source}"
        library = smelt.library(text, compile_options=self._options)
        name = self._owner.name.partition("::")[2]
        if name not in library.functions and len(library.functions) != 1:
            raise ValueError(f"{self._owner.name}: the source has the functions {', '.join(library.functions)}; expected "
                             f"'{name}', or a single one")
        function = library.function(name if name in library.functions else None)
        buffers = {each["name"] for each in function.parameters}
        for each in (*self._owner.types, *self._owner.results):
            if each not in buffers:
                raise ValueError(f"{self._owner.name}: '{each}' is not a buffer of the function; expected one of: "
                                 f"{', '.join(sorted(buffers))}")
        return function

    def run(self, inputs: Sequence, grid: Any, group: Any, shapes: Sequence, dtypes: Sequence) -> list:
        function = self._function(tuple((name, self._owner._template(name, inputs)) for name in self._owner.templates))
        first = next(x for x in inputs if isinstance(x, torch.Tensor))
        made = [first.new_empty(tuple(shape), dtype=dtype) for shape, dtype in zip(shapes, dtypes)]
        given = {name: x.contiguous() if isinstance(x, torch.Tensor) else x for name, x in zip(self._owner.types, inputs)}
        function(**given, **dict(zip(self._owner.results, made)), threads=grid, group_size=group)
        return made

    def plan(self, inputs: Sequence, grid: Any, group: Any, shapes: Sequence, dtypes: Sequence) -> Callable:
        return lambda *given: self.run(given, grid, group, shapes, dtypes)


# ---- Small things.

def _resolved(value: Any, inputs: Sequence) -> Any:
    """A value, or what a function of the inputs gives for it."""
    return value(*inputs) if callable(value) else value


def _several(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _described(tensors: Sequence) -> list:
    return [(tuple(each.shape), each.dtype) for each in tensors]


def _is_fake(value: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor
    return isinstance(value, torch.Tensor) and (isinstance(value, FakeTensor) or value.is_meta)
