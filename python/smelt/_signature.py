"""What inspect.signature says of objects whose call is written in C: kernels, bound kernels, functions of libraries."""
from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

_NAMED = Parameter.KEYWORD_ONLY


class CallSignature:
    """The attribute __signature__ of a class's instances; the class itself has none."""

    def __init__(self, of: Callable[[Any], Signature]):
        self._of = of

    def __get__(self, instance: Any, owner: type | None = None) -> Signature:
        if instance is None:
            raise AttributeError("__signature__")
        return self._of(instance)


def _options(**defaults: Any) -> list[Parameter]:
    return [Parameter(name, _NAMED, default=default) for name, default in defaults.items()]


_KERNEL = Signature([
    *_options(inputs=None, output_shapes=None, output_dtypes=None),
    Parameter("grid", _NAMED), Parameter("threadgroup", _NAMED),
    *_options(template=None, init_value=None, verbose=False, stream=None, device=None, timeout=None, profile=None,
              ensure_row_contiguous=None, out=None, output_kind=None, check=False),
], return_annotation=list)

_BOUND = Signature([Parameter("inputs", Parameter.VAR_POSITIONAL), *_options(out=None, stream=None)],
                   return_annotation=list)

_FUNCTION_OPTIONS = _options(threads=None, groups=None, group_size=None, threadgroup_memory=None, device=None,
                             stream=None, timeout=None, profile=None, arg_casts=None, check=False)


def kernel_signature(_: Any) -> Signature:
    """Of a kernel from a body."""
    return _KERNEL


def bound_signature(_: Any) -> Signature:
    """Of a kernel with its arguments."""
    return _BOUND


def function_signature(function: Any) -> Signature:
    """Of a function of a library: its buffers by name, in the order of their indices, which are the places of arguments
    given by position. Compiles the function; of one that does not compile, or whose parameters have names that no
    argument of Python can have, it is the general form."""
    try:
        buffers = sorted((p for p in function.parameters if not p["threadgroup"]), key=lambda p: p["index"])
        arguments = []
        for place, buffer in enumerate(buffers):
            kind = Parameter.POSITIONAL_OR_KEYWORD if buffer["index"] == place else _NAMED
            default = Parameter.empty if buffer["used"] else None
            arguments.append(Parameter(buffer["name"], kind, default=default))
        # What need not be given may stand in front of what must be: that can be written by name only.
        for before, after in zip(reversed(arguments[:-1]), reversed(arguments[1:])):
            if before.default is None and after.default is Parameter.empty:
                raise ValueError("an argument without a default follows one with a default")
        return Signature([*arguments, *_FUNCTION_OPTIONS], return_annotation=None)
    except (ValueError, RuntimeError, OSError, MemoryError):
        everything = Parameter("arguments", Parameter.VAR_POSITIONAL), Parameter("named", Parameter.VAR_KEYWORD)
        return Signature([everything[0], *_FUNCTION_OPTIONS, everything[1]], return_annotation=None)
