"""Calls that need nothing of torch's dispatcher, and go past it: which those are, and what is kept for them.

The dispatcher takes a call through autograd, tracing, functorch and Python's wrappers of an operation, which costs tens of
microseconds. A call on plain tensors, whose gradient nobody needs, has the same result without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["Plans", "is_plain", "tensor_key"]

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


def is_plain(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether an operation on these tensors, now, is no more than its kernel: they are torch's own and dense, and nothing
    records, traces, transforms or watches operations, and they are on a CPU or a GPU."""
    if _is_compiling() or _function_modes() or _dispatch_modes() or _transforms() or _tracing() or _profiling():
        return False
    if _forward_ad._current_level >= 0:
        return False
    graded = _grad_enabled()
    for x in tensors:
        if type(x) not in _TYPES or (graded and x.requires_grad) or x.layout is not torch.strided or not (x.is_cpu or x.is_cuda):
            return False
    return True


def tensor_key(x: torch.Tensor) -> tuple | None:
    """What a launch depends on, of a tensor: not its elements. None: nothing can be kept for it."""
    if x.is_cpu:
        return x.shape, x.stride(), x.dtype
    if not x.is_cuda or _stream is None:
        return None
    device = x.get_device()
    return x.shape, x.stride(), x.dtype, device, _stream(device)


_NEW, _SEEN = object(), object()


class Plans:
    """What to do for calls of a kind, by the kind's key. A kind that comes again has a plan made; the oldest are dropped."""

    def __init__(self) -> None:
        self._plans: dict[tuple, Any] = {}

    def find(self, key: tuple, make: Callable[[], Any]) -> Any:
        """The plan. None: the call goes the usual way, which also says what is wrong with it: it is the first of its kind, or
        `make` gave None or an exception."""
        plan = self._plans.get(key, _NEW)
        if plan is _NEW:
            self._plans[key] = _SEEN
            if len(self._plans) > _MOST:
                self._plans.pop(next(iter(self._plans)), None)
            return None
        if plan is _SEEN:
            try:
                plan = make()
            except Exception:
                plan = None
            self._plans[key] = plan
        return plan
