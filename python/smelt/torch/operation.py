"""Functions of tensors as operations of PyTorch: `op`, `from_kernel` and `autograd_function`."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import library as torch_library

import smelt
from smelt.torch.plans import is_simple, is_watched

__all__ = ["Op", "autograd_function", "from_kernel", "op"]

_BY_POSITION = inspect.Parameter.POSITIONAL_OR_KEYWORD
_SHORT: dict[str, torch_library.Library] = {}  # by the operation's name: what Op._shorten registered


def op(name: str, *, fresh: bool = False) -> Callable[[Callable], Op]:
    """A decorator that registers a function of tensors as the operation `name`, "library::operation", of PyTorch.

        @smelt.torch.op("mylib::scale")
        def scale(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor: ...

        @scale.vjp
        def scale_vjp(primals, cotangent, output): ...

    The function may call kernels and torch's operations. Its parameters are tensors where they are not annotated, else
    what torch's schemas allow: torch.Tensor, int, float, bool, str, torch.dtype, torch.device, sequences of numbers, and
    any of these or None (`float | None`). It returns one tensor, or a tuple of as many as its annotation says
    (`tuple[torch.Tensor, torch.Tensor]`). It sees tensors without their gradients, in any layout; it may not write into
    them. A result that shares memory with an argument is copied.

    Where torch traces with tensors that have shapes but no elements (torch.compile, torch.export, the device "meta"),
    the function is run too: kernels then give back empty tensors of their output_shapes. A function that looks at
    elements, or calls functions of a smelt.library, needs `Op.fake`.

    fresh: the function promises that its results share no memory with arguments or each other, as those of kernels; calls
    need not check it then, and take less time.

    Where an argument has no elements and so no result has any, nothing is launched; a gradient is then zeros.

    A smelt.custom_function can be given as well, and brings its VJP. A name that is registered again is replaced.
    ValueError for a name of another form, or a signature that torch's schemas cannot express."""
    if not isinstance(name, str) or [bool(part) for part in name.split("::")] != [True, True]:
        raise ValueError(f"smelt.torch.op: the name is {name!r}; expected \"library::operation\"")

    def register(function: Callable) -> Op:
        return Op(name, function, fresh)

    return register


class Op:
    """An operation of PyTorch, from `op` or `from_kernel`. Call it with tensors, like the function it wraps."""

    def __init__(self, name: str, function: Any, fresh: bool = False):
        given_vjp = None
        if isinstance(function, smelt.custom_function):
            function, given_vjp = function.f, function._vjp
        functools.update_wrapper(self, function)
        self.name = name
        self._function = function
        self._fresh = fresh
        self._vjp: Callable | None = None
        self._vjp_advice = "give one with .vjp"
        self._vjp_op: Any = None
        self._vjp_step: Any = None
        self._fake: Callable | None = None
        self._signature, self._outputs = _typed_signature(name, function)
        self._kinds = [_kind_of(parameter.annotation) for parameter in self._signature.parameters.values()]
        definition = torch.library.custom_op(name, self._run, mutates_args=(), schema=_schema(name, self._signature))
        self._definition = definition
        definition.register_fake(self._run_fake)
        definition.register_autograd(self._backward, setup_context=self._keep)
        library, _, operation = name.partition("::")
        self.overload = getattr(getattr(torch.ops, library), operation).default
        """torch's object for the operation, which torch.library.opcheck takes."""
        definition.register_vmap(functools.partial(_mapped, self.overload))
        self._shorten()
        self._functional = self._make_functional()
        if given_vjp is not None:
            self.vjp(given_vjp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) == len(self._kinds):
            made = self._at_once(args)
            if made is not None:
                return made
        if _transformed():
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return self._functional.apply(*bound.args)
        return self.overload(*args, **kwargs)

    def _at_once(self, args: Sequence) -> Any:
        """The result of a call that needs nothing of torch's dispatcher; else None."""
        if is_watched():
            return None
        given, graded, some = args, torch.is_grad_enabled(), False
        for i, (x, (kind, optional)) in enumerate(zip(args, self._kinds)):
            if kind is torch.Tensor and x is not None:
                if not is_simple(x, graded) or x.numel() == 0:
                    return None
                some = True
            elif x is None:
                if not optional:
                    return None
            elif type(x) is not kind:
                if kind is not float or type(x) is not int:
                    return None
                given = (*given[:i], float(x), *given[i + 1:])
        if not some:
            return None
        if not graded:
            return _results(self.name, self._function(*given), self._outputs, None if self._fresh else args)
        with torch.no_grad():
            return _results(self.name, self._function(*given), self._outputs, None if self._fresh else args)

    def _shorten(self) -> None:
        """Lets calls through torch's dispatcher, as those of compiled graphs, take the same short way: the dispatcher's
        first stop, autograd, calls _at_once. Where torch has other internals, calls take the long way."""
        before = _SHORT.pop(self.name, None)
        if before is not None:
            before._destroy()
        try:
            from torch._library.autograd import make_autograd_impl
            whole = make_autograd_impl(self.overload, self._definition)
            library, _, operation = self.name.partition("::")
            short = torch_library.Library(library, "FRAGMENT")
        except (ImportError, AttributeError, TypeError):
            return
        count = len(self._kinds)

        def run(keys: Any, *args: Any, **named: Any) -> Any:
            if not named:
                given = args if len(args) == count else _filled(self._signature, args)
                made = self._at_once(given)
                if made is not None:
                    return made
            return whole(keys, *args, **named)

        for key in ("AutogradCPU", "AutogradCUDA"):
            short.impl(operation, run, key, with_keyset=True)
        _SHORT[self.name] = short

    def _make_functional(self) -> Any:
        """The operation as torch.func takes it."""
        members = {"forward": staticmethod(self.overload), "backward": staticmethod(self._backward),
                   "setup_context": staticmethod(_keep), "generate_vmap_rule": True}
        return type(self.name.partition("::")[2], (torch.autograd.Function,), members)

    def __repr__(self) -> str:
        return f"<smelt.torch.Op {self.name}{self._signature}>"

    def vjp(self, function: Callable | None = None, *, differentiable: bool = False) -> Any:
        """Sets the vector-Jacobian product; a decorator.

        function(primals, cotangents, outputs), as that of smelt.custom_function: primals are the arguments, a tuple, or
        the argument itself if the operation has one; cotangents and outputs have the form of what the operation
        returns. It returns a gradient for each argument in the form of primals: a tensor of the argument's shape, which
        is cast to its dtype; None stands for zeros, and is what arguments other than floating-point tensors have.

        It is an operation of its own, "library::operation_vjp", and may call kernels; a gradient of a gradient through
        it is a RuntimeError. With differentiable=True it is not, and may call torch's operations and those of `op`
        only: torch then differentiates and traces them."""
        if function is None:
            return functools.partial(self.vjp, differentiable=differentiable)
        if self._vjp is not None:
            raise ValueError(f"{self.name} has a VJP; expected one for an operation")
        if not differentiable:
            call = self._vjp_op = self._register_vjp(function)
            self._vjp_step = _vjp_step(
                self.name, lambda primals, cotangents, outputs, wanted, _: call(*primals, cotangents, outputs, wanted),
                mapped=True, advice=_DIFFERENTIABLE)
        self._vjp = function
        return function

    def fake(self, function: Callable) -> Callable:
        """Sets the function that runs instead of the operation's where torch traces; a decorator. It takes the same
        arguments, of which tensors have no elements, and returns new tensors of the right shape, dtype and device,
        `x.new_empty(shape)`. Sizes may be symbols: they can be computed with, not compared with."""
        self._fake = function
        return function

    def _run(self, *args: Any) -> Any:
        with torch.no_grad():
            empty = _empty_results(self._run_fake, args)
            return _results(self.name, self._function(*args), self._outputs, args) if empty is None else empty

    def _run_fake(self, *args: Any) -> Any:
        with torch.no_grad():
            return _results(self.name, (self._fake or self._function)(*args), self._outputs, args)

    def _keep(self, ctx: Any, inputs: tuple, output: Any) -> None:
        _keep(ctx, _filled(self._signature, inputs), output)

    def _backward(self, ctx: Any, *cotangents: Any) -> tuple:
        if self._vjp is None:
            raise RuntimeError(f"{self.name} has no VJP, and no gradient goes through it; {self._vjp_advice}")
        primals, outputs = _kept(ctx)
        filled = _cotangents(cotangents, outputs)
        wanted = list(ctx.needs_input_grad[:len(primals)]) + [False] * (len(primals) - len(ctx.needs_input_grad))
        gradients: Sequence
        if self._vjp_op is None:
            gradients = _gradients(self.name, self._vjp, primals, filled, outputs, self._outputs, wanted)
        elif _transformed():
            gradients = _through(self._vjp_step, primals, filled, outputs, wanted, self._outputs is not None)
        else:
            gradients = self._vjp_op(*primals, filled, outputs, wanted)
        return _placed(gradients, wanted)[:len(ctx.needs_input_grad)]

    def _register_vjp(self, function: Callable) -> Any:
        """function as an operation: of the arguments, the cotangents, the outputs, and whether each argument's gradient
        is wanted. It gives the wanted ones."""
        name = f"{self.name}_vjp"
        added = {"cotangents": list[torch.Tensor], "outputs": list[torch.Tensor], "wanted": list[bool]}
        parameters = [p.replace(default=p.empty) for p in self._signature.parameters.values()]
        for added_name, annotation in added.items():
            while added_name in self._signature.parameters:
                added_name += "_"
            parameters.append(inspect.Parameter(added_name, _BY_POSITION, annotation=annotation))
        signature = inspect.Signature(parameters, return_annotation=list[torch.Tensor])

        def run(*args: Any) -> list:
            *primals, cotangents, outputs, wanted = args
            return _run_vjp(self.name, function, primals, cotangents, outputs, self._outputs, wanted)

        def run_fake(*args: Any) -> list:
            *primals, _, _, wanted = args
            return [primal.new_empty(primal.shape) for primal, want in zip(primals, wanted) if want]

        definition = torch.library.custom_op(name, run, mutates_args=(), schema=_schema(name, signature))
        definition.register_fake(run_fake)
        definition.register_autograd(functools.partial(_refuse_double, self.name, _DIFFERENTIABLE),
                                     setup_context=_keep_nothing)
        library, _, operation = name.partition("::")
        overload = getattr(getattr(torch.ops, library), operation).default
        definition.register_vmap(functools.partial(_mapped, overload))
        return overload


def from_kernel(
    name: str,
    kernel: smelt.Kernel,
    *,
    output_shapes: Any,
    output_dtypes: Any,
    grid: Any,
    threadgroup: Any,
    types: Mapping[str, Any] | None = None,
    vjp: Callable | None = None,
    **arguments: Any,
) -> Op:
    """The kernel as the operation `name`: its parameters are the kernel's inputs, and its results the kernel's outputs,
    one tensor or a tuple.

    output_shapes, output_dtypes, grid, threadgroup and the other arguments of the kernel's call (template, init_value,
    math …) are what the call takes, or functions of the operation's arguments that return it:

        smelt.torch.from_kernel(
            "mylib::double", kernel, output_shapes=lambda x: [x.shape], output_dtypes=lambda x: [x.dtype],
            grid=lambda x: (x.numel(), 1, 1), threadgroup=(256, 1, 1))

    types: the type of inputs that are not tensors, as {"scale": float}. vjp: as for Op.vjp. ValueError for a name in
    types that is not an input."""
    for key in types or {}:
        if key not in kernel.input_names:
            raise ValueError(f"{name}: types has {key!r}; the inputs of kernel '{kernel.name}' are "
                             f"{', '.join(kernel.input_names)}")
    count = len(kernel.output_names)
    settings = {"output_shapes": output_shapes, "output_dtypes": output_dtypes, "grid": grid,
                "threadgroup": threadgroup, **arguments}

    def run(*inputs: Any) -> Any:
        call = {key: value(*inputs) if _is_rule(value) else value for key, value in settings.items()}
        outputs = kernel(inputs=list(inputs), **call)
        return outputs[0] if count == 1 else tuple(outputs)

    run.__name__ = run.__qualname__ = kernel.name
    names = f"({', '.join(kernel.input_names)}) -> ({', '.join(kernel.output_names)})"
    run.__doc__ = f"The kernel '{kernel.name}': {names}."
    returned = torch.Tensor if count == 1 else tuple[(torch.Tensor,) * count]  # type: ignore[misc]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(each, _BY_POSITION, annotation=(types or {}).get(each, torch.Tensor))
         for each in kernel.input_names], return_annotation=returned)
    made = Op(name, run, fresh="out" not in arguments)
    if vjp is not None:
        made.vjp(vjp)
    return made


def _is_rule(value: Any) -> bool:
    """Is it a function of the operation's arguments, and no dtype?"""
    return callable(value) and not isinstance(value, (type, smelt.Dtype))


def autograd_function(forward: Callable, vjp: Callable) -> Any:
    """A torch.autograd.Function, to be called with `.apply(...)`, of a function of tensors and its VJP, both as for
    `op` and `Op.vjp`. Nothing is registered; torch.compile does not see into it, torch.func.vmap does not know it, and
    a gradient of a gradient is a RuntimeError."""
    name = getattr(forward, "__name__", "function")

    def run(*args: Any) -> Any:
        result = forward(*args)
        return _results(name, result, len(result) if isinstance(result, (tuple, list)) else None, args)

    def call_vjp(primals: list, cotangents: list, outputs: list, wanted: list, several: bool) -> list:
        return _run_vjp(name, vjp, primals, cotangents, outputs, len(outputs) if several else None, wanted)

    step = _vjp_step(name, call_vjp, mapped=False, advice="smelt.torch.op can have one")

    class Function(torch.autograd.Function):
        """Made by smelt.torch.autograd_function."""

        @staticmethod
        def forward(*args: Any) -> Any:
            empty = _empty_results(run, args)
            return run(*args) if empty is None else empty

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            ctx.several = isinstance(output, tuple)
            _keep(ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> tuple:
            primals, outputs = _kept(ctx)
            wanted = list(ctx.needs_input_grad)
            filled = _cotangents(cotangents, outputs)
            return _placed(_through(step, primals, filled, outputs, wanted, ctx.several), wanted)

    Function.__name__ = Function.__qualname__ = name
    return Function


# ---- Signatures.

def _typed_signature(name: str, function: Callable) -> tuple[inspect.Signature, int | None]:
    """The function's signature with every annotation resolved, tensors where there is none, and how many tensors it
    returns in a tuple (None: it returns one tensor)."""
    signature = inspect.signature(function, eval_str=True)
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.kind is not _BY_POSITION:
            raise ValueError(f"{name}: the parameter '{parameter}' cannot be given by position, as torch's "
                             "operations require")
        bare = parameter.annotation is inspect.Parameter.empty
        parameters.append(parameter.replace(annotation=torch.Tensor) if bare else parameter)
    returned = signature.return_annotation
    if returned is inspect.Signature.empty:
        returned = torch.Tensor
    if returned is torch.Tensor:
        count = None
    else:
        types = getattr(returned, "__args__", ())
        if getattr(returned, "__origin__", None) is not tuple or not types or any(t is not torch.Tensor for t in types):
            raise ValueError(f"{name}: the function is annotated to return {returned}; expected torch.Tensor, or a "
                             "tuple of as many as it returns, such as tuple[torch.Tensor, torch.Tensor]")
        count = len(types)
    for parameter in parameters:
        if "Tensor" in str(parameter.annotation) and getattr(parameter.annotation, "__origin__", None) in (list, tuple):
            raise ValueError(f"{name}: the parameter '{parameter.name}' is a list of tensors; expected a parameter for "
                             "each")
    return inspect.Signature(parameters, return_annotation=returned), count


def _kind_of(annotation: Any) -> tuple[Any, bool]:
    """The type that Op._at_once expects of an argument (None: it accepts none), and whether the argument may be None."""
    kinds = [each for each in typing.get_args(annotation) if each is not type(None)]
    optional = len(kinds) == 1 and type(None) in typing.get_args(annotation)
    kind = kinds[0] if optional else annotation
    return (kind if kind in (torch.Tensor, int, float, bool, str) else None), optional


def _schema(name: str, signature: inspect.Signature) -> str:
    """The signature in torch's language of schemas."""
    def prototype() -> None:
        """Stands for the function."""

    prototype.__signature__ = signature  # type: ignore[attr-defined]
    try:
        return torch.library.infer_schema(prototype, mutates_args=())
    except ValueError as error:
        raise ValueError(f"{name}: torch's schemas cannot express the signature {signature}: {error}") from error


def _filled(signature: inspect.Signature, args: Sequence) -> tuple:
    """The arguments, with the defaults of those that were left out."""
    return (*args, *(p.default for p in list(signature.parameters.values())[len(args):]))


# ---- Results.

def _results(name: str, result: Any, count: int | None, args: Sequence | None) -> Any:
    """What the function returned, checked: a tensor, or a tuple of count; none shares memory with an argument. args: None
    if they are known to share none."""
    if count is None:
        if not isinstance(result, torch.Tensor):
            raise TypeError(f"{name}: the function returned {_kind(result)}; expected one tensor")
        return result if args is None else _unshared([result], args)[0]
    if not isinstance(result, (tuple, list)) or len(result) != count:
        raise TypeError(f"{name}: the function returned {_kind(result)}; expected a tuple of {count} tensors")
    for i, each in enumerate(result):
        if not isinstance(each, torch.Tensor):
            raise TypeError(f"{name}: result {i} of the function is {_kind(each)}; expected a tensor")
    return tuple(result) if args is None else tuple(_unshared(list(result), args))


def _empty_results(run: Callable, args: Sequence) -> Any:
    """The results of run, where an argument has no elements and so has no result: a launch has at least one thread.
    None otherwise. Shapes are found with tensors of the device "meta"."""
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    if not any(each.numel() == 0 for each in tensors):
        return None
    try:
        results = run(*(arg.to("meta") if isinstance(arg, torch.Tensor) else arg for arg in args))
    except Exception:  # The function needs elements: it runs as it is.
        return None
    several = isinstance(results, tuple)
    results = results if several else (results,)
    if any(each.numel() for each in results):
        return None
    results = tuple(torch.empty(each.shape, dtype=each.dtype, device=tensors[0].device) for each in results)
    return results if several else results[0]


def _kind(value: Any) -> str:
    """What a value is, for messages."""
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"


def _unshared(tensors: list, args: Sequence) -> list:
    """The tensors; those that lie in the memory of an argument, or of one before them, as copies: torch's operations
    have none that share."""
    seen = set()
    for arg in args:
        if isinstance(arg, torch.Tensor) and (place := _storage(arg)) is not None:
            seen.add(place)
    made = []
    for tensor in tensors:
        if _storage(tensor) in seen:
            tensor = tensor.clone(memory_format=torch.contiguous_format)
        if (place := _storage(tensor)) is not None:
            seen.add(place)
        made.append(tensor)
    return made


def _storage(tensor: Any) -> int | None:
    """A number for the memory of a tensor; None for one that wraps others, under torch.func."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return None


# ---- Gradients.

def _keep(ctx: Any, inputs: Sequence, output: Any) -> None:
    """Keeps the VJP's arguments."""
    outputs = output if isinstance(output, (tuple, list)) else (output,)
    ctx.plain = [None if isinstance(each, torch.Tensor) else each for each in inputs]
    ctx.places = [i for i, each in enumerate(inputs) if isinstance(each, torch.Tensor)]
    ctx.save_for_backward(*(inputs[i] for i in ctx.places), *outputs)


def _keep_nothing(ctx: Any, inputs: Sequence, output: Any) -> None:
    """For operations whose gradient is refused."""


def _kept(ctx: Any) -> tuple[list, list]:
    """The arguments and the outputs that _keep kept."""
    primals, saved = list(ctx.plain), list(ctx.saved_tensors)
    for i, tensor in zip(ctx.places, saved):
        primals[i] = tensor
    return primals, saved[len(ctx.places):]


def _cotangents(cotangents: Sequence, outputs: Sequence) -> list:
    """The cotangents, zeros for unused results."""
    return [torch.zeros_like(out) if each is None else each for each, out in zip(cotangents, outputs)]


def _gradients(
    name: str, vjp: Callable, primals: Sequence, cotangents: Sequence, outputs: Sequence, count: int | None,
    wanted: Sequence,
) -> list:
    """The gradients of the wanted arguments, of their shapes and dtypes, from the VJP."""
    single = len(primals) == 1
    form = (lambda tensors: tensors[0]) if count is None else tuple
    given = vjp(primals[0] if single else tuple(primals), form(cotangents), form(outputs))
    if single and not isinstance(given, (tuple, list)):
        given = (given,)
    if not isinstance(given, (tuple, list)) or len(given) != len(primals):
        raise ValueError(f"{name}: its VJP returned {_kind(given)}; expected {len(primals)} gradients, one for each "
                         "argument")
    gradients = []
    for i, (gradient, primal, want) in enumerate(zip(given, primals, wanted)):
        if not want:
            continue
        if gradient is None:
            gradient = torch.zeros_like(primal, memory_format=torch.contiguous_format)
        if not isinstance(gradient, torch.Tensor):
            raise TypeError(f"{name}: gradient {i} of its VJP is {_kind(gradient)}; expected a tensor or None")
        if gradient.shape != primal.shape:
            raise ValueError(f"{name}: gradient {i} of its VJP has shape {tuple(gradient.shape)}; expected "
                             f"{tuple(primal.shape)}, that of the argument")
        gradients.append(gradient.to(device=primal.device, dtype=primal.dtype).contiguous())
    return gradients


def _run_vjp(
    name: str, vjp: Callable, primals: Sequence, cotangents: Sequence, outputs: Sequence, count: int | None,
    wanted: Sequence,
) -> list:
    """_gradients as an operation gives them: in memory of their own. Without a cotangent's element they are zeros."""
    with torch.no_grad():
        if all(each.numel() == 0 for each in cotangents):
            return [torch.zeros_like(primal, memory_format=torch.contiguous_format)
                    for primal, want in zip(primals, wanted) if want]
        gradients = _gradients(name, vjp, primals, cotangents, outputs, count, wanted)
        return _unshared(gradients, [*primals, *cotangents, *outputs])


def _vjp_step(name: str, call: Callable, mapped: bool, advice: str) -> Any:
    """call(primals, cotangents, outputs, wanted, several) as a step of torch's own, for _through: one that torch.func
    knows, and whose gradient is refused rather than lost. mapped: it can run under torch.func.vmap."""
    def forward(count: int, several: bool, wanted: list, *values: Any) -> tuple:
        outputs = (len(values) - count) // 2
        return tuple(call(list(values[:count]), list(values[count:count + outputs]), list(values[count + outputs:]),
                          wanted, several))

    members = {"forward": staticmethod(forward), "setup_context": staticmethod(_keep_nothing),
               "backward": staticmethod(functools.partial(_refuse_double, name, advice)), "generate_vmap_rule": mapped}
    return type(f"{name}_vjp", (torch.autograd.Function,), members)


def _through(step: Any, primals: list, cotangents: list, outputs: list, wanted: list, several: bool) -> tuple:
    """The gradients that a _vjp_step gives."""
    return step.apply(len(primals), several, wanted, *primals, *cotangents, *outputs)


def _placed(gradients: Sequence, wanted: Sequence) -> tuple:
    """The gradients of the wanted arguments at their places, None for the others."""
    left = iter(gradients)
    return tuple(next(left) if want else None for want in wanted)


def _transformed() -> bool:
    """Is this within a transform of torch.func? Those ignore the gradients that torch.library registers, but they
    use torch.autograd.Function's."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


_DIFFERENTIABLE = "build the VJP from operations that have one, and give it with .vjp(differentiable=True)"


def _refuse_double(name: str, advice: str, ctx: Any, *cotangents: Any) -> Any:
    raise RuntimeError(f"{name}: the gradient of its gradient is requested, but its VJP has none; {advice}")


# ---- Tracing and mapping.

def _mapped(overload: Any, info: Any, dims: Sequence, *args: Any) -> tuple:
    """The operation under torch.func.vmap: called for each slice, results stacked along a first axis."""
    def at(value: Any, dim: Any, i: int) -> Any:
        if isinstance(value, (list, tuple)) and isinstance(dim, (list, tuple)):
            return [at(each, its, i) for each, its in zip(value, dim)]
        return value if dim is None else value.select(dim, i)

    results = [overload(*(at(arg, dim, i) for arg, dim in zip(args, dims))) for i in range(info.batch_size)]
    if isinstance(results[0], torch.Tensor):
        return torch.stack(results), 0
    kind = type(results[0])
    return kind(torch.stack(each) for each in zip(*results)), kind([0] * len(results[0]))



def _traced_call(kernel: Any, arguments: Mapping[str, Any]) -> list | None:
    """The extension asks this where a kernel's call failed at its inputs: the outputs, without elements, if torch is
    tracing (an input is a tensor of torch that has none), else None."""
    from torch._subclasses.fake_tensor import FakeTensor
    inputs = arguments.get("inputs")
    if not isinstance(inputs, (list, tuple)):
        return None
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    if not any(isinstance(each, FakeTensor) or each.is_meta for each in tensors):
        return None
    if arguments.get("out") is not None:
        return list(arguments["out"])
    first = next((each for each in tensors if each.device.type != "cpu"), tensors[0])
    shapes, dtypes = arguments.get("output_shapes"), arguments.get("output_dtypes")
    for what, given in (("output_shapes", shapes), ("output_dtypes", dtypes)):
        if not isinstance(given, (list, tuple)) or len(given) != len(kernel.output_names):
            raise ValueError(f"kernel '{kernel.name}': {what} is {given!r}; expected one for each of: "
                             f"{', '.join(kernel.output_names)}")
    assert shapes is not None and dtypes is not None
    return [first.new_empty(tuple(shape) if isinstance(shape, (list, tuple)) else (shape,), dtype=_torch_dtype(dtype))
            for shape, dtype in zip(shapes, dtypes)]


def _torch_dtype(dtype: Any) -> Any:
    """torch's dtype for an object that names one."""
    return dtype if isinstance(dtype, torch.dtype) else getattr(torch, smelt.Dtype(dtype).name.rstrip("_"))
