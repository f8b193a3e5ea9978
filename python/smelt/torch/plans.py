"""Which calls bypass torch's dispatcher, and what is kept for them.

The dispatcher leads a call through autograd, tracing, functorch and Python wrappers of an operation, which takes tens of
microseconds. A call on plain tensors whose gradient is not needed has the same result without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["SEEN", "Plans", "add_tensors", "is_plain", "is_simple", "is_watched"]

_STRIDED = torch.strided
_TYPES = frozenset((torch.Tensor, torch.nn.Parameter))
_MOST = 256  # calls of different shapes that one kernel keeps


def _private(module: Any, name: str) -> Callable:
    """A private function of torch; if torch lacks it, one that returns True, so that no call is plain."""
    return getattr(module, name, lambda: True)


_function_modes = _private(torch._C, "_len_torch_function_stack")
_dispatch_modes = _private(torch._C, "_len_torch_dispatch_stack")
_transforms = _private(torch._C, "_are_functorch_transforms_active")
_tracing = _private(torch._C, "_get_tracing_state")
_profiling = _private(torch.autograd, "_profiler_enabled")
_grad_enabled = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling
_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_forward_ad = torch.autograd.forward_ad  # its _current_level is -1 outside of forward_ad.dual_level


def is_watched() -> bool:
    """Whether anything records, traces, transforms or watches operations now, apart from gradients."""
    return bool(_is_compiling() or _function_modes() or _dispatch_modes() or _transforms() or _tracing() or _profiling()
                or getattr(_forward_ad, "_current_level", 0) >= 0)


def is_plain(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether an operation on these tensors is only its kernel now: they are of torch's own classes, their gradients are not
    needed, and is_watched() is false. The extension refuses those that are not dense in the memory of a CPU or a GPU."""
    for x in tensors:
        if type(x) not in _TYPES:
            return False
    return not (is_watched() or (_grad_enabled() and any(x.requires_grad for x in tensors)))


def is_simple(x: Any, graded: bool) -> bool:
    """is_plain for one value, which is also dense and on a CPU or a GPU, except for is_watched(). graded: gradients are
    enabled."""
    return type(x) in _TYPES and not (graded and x.requires_grad) and x.layout is _STRIDED and (x.is_cuda or x.is_cpu)


def add_tensors(key: list, inputs: Sequence, places: Sequence[int]) -> bool:
    """Adds to a key what a launch depends on of the tensors at some places, which excludes their elements. False: one of them
    is not plain (is_simple)."""
    graded = _grad_enabled()
    for i in places:
        x = inputs[i]
        if type(x) not in _TYPES or (graded and x.requires_grad) or x.layout is not _STRIDED:
            return False
        if x.is_cpu:
            key += (x.shape, x.stride(), x.dtype)
        elif x.is_cuda and _stream is not None:
            device = x.get_device()
            key += (x.shape, x.stride(), x.dtype, device, _stream(device))
        else:
            return False
    return True


SEEN = object()  # in place of a plan: there was one such call


class Plans:
    """What calls of a kind do, by the kind's key. The second call of a kind gets a plan; the oldest kinds are dropped."""

    def __init__(self) -> None:
        self._plans: dict[tuple, Any] = {}

    def find(self, key: tuple) -> Any:
        """The plan; SEEN: it is to be created, by keep(). None: the call goes through the dispatcher, whose errors say what is
        wrong with it."""
        plan = self._plans.get(key)
        if plan is None and key not in self._plans:
            self._plans[key] = SEEN
            if len(self._plans) > _MOST:
                self._plans.pop(next(iter(self._plans)), None)
        return plan

    def keep(self, key: tuple, make: Callable[[], Any]) -> Any:
        """The result of `make`, which is the plan from now on; None if it raises an exception."""
        try:
            plan = make()
        except Exception:
            plan = None
        self._plans[key] = plan
        return plan
