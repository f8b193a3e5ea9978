"""Calls that need nothing of torch's dispatcher, and go past it: which those are, and what is kept for them.

The dispatcher takes a call through autograd, tracing, functorch and Python's wrappers of an operation, which costs tens of
microseconds. A call on plain tensors, whose gradient nobody needs, has the same result without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["SEEN", "Plans", "add_tensors", "is_plain", "is_watched"]

_STRIDED = torch.strided
_TYPES = frozenset((torch.Tensor, torch.nn.Parameter))
_MOST = 256  # calls of different shapes that one kernel keeps


def _private(module: Any, name: str) -> Callable:
    """A function of torch's own; without it no call is plain."""
    return getattr(module, name, lambda: True)


_function_modes = _private(torch._C, "_len_torch_function_stack")
_dispatch_modes = _private(torch._C, "_len_torch_dispatch_stack")
_transforms = _private(torch._C, "_are_functorch_transforms_active")
_tracing = _private(torch._C, "_get_tracing_state")
_profiling = _private(torch.autograd, "_profiler_enabled")
_grad_enabled = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling
_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_forward_ad = torch.autograd.forward_ad


def is_watched() -> bool:
    """Whether anything records, traces, transforms or watches operations now, apart from gradients."""
    return bool(_is_compiling() or _function_modes() or _dispatch_modes() or _transforms() or _tracing() or _profiling()
                or _forward_ad._current_level >= 0)


def is_plain(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether an operation on these tensors, now, is no more than its kernel: they are torch's own, dense, on a CPU or a GPU,
    their gradients are not needed, and nothing watches."""
    if is_watched():
        return False
    graded = _grad_enabled()
    for x in tensors:
        if type(x) not in _TYPES or (graded and x.requires_grad) or x.layout is not _STRIDED or not (x.is_cpu or x.is_cuda):
            return False
    return True


def add_tensors(key: list, inputs: Sequence, places: Sequence[int]) -> bool:
    """Adds to a key what a launch depends on, of the tensors at some places: not their elements. False: one is not plain, see
    is_plain, except that nothing watches."""
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


SEEN = object()  # of a key: there was one such call


class Plans:
    """What to do for calls of a kind, by the kind's key. A kind that comes again has a plan made; the oldest are dropped."""

    def __init__(self) -> None:
        self._plans: dict[tuple, Any] = {}

    def find(self, key: tuple) -> Any:
        """The plan; SEEN: keep() is to make it. None: the call goes the usual way, which also says what is wrong with it."""
        plan = self._plans.get(key)
        if plan is None and key not in self._plans:
            self._plans[key] = SEEN
            if len(self._plans) > _MOST:
                self._plans.pop(next(iter(self._plans)), None)
        return plan

    def keep(self, key: tuple, make: Callable[[], Any]) -> Any:
        """What `make` gives, which is the plan from now on; None in place of its exceptions."""
        try:
            plan = make()
        except Exception:
            plan = None
        self._plans[key] = plan
        return plan
