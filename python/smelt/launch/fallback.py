"""A kernel with a plain reference behind it, for when the kernel fails."""

from __future__ import annotations

import functools
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import smelt
from smelt._smelt import guard_run
from smelt.launch.flags import KernelFlagError


class FallbackWarning(RuntimeWarning):
    """A kernel failed, and its reference computed the result."""


class NotFiniteError(ArithmeticError):
    """A kernel's result holds NaN or infinity, where with_fallback was asked to look for them."""


#: What counts as the kernel's failure: errors of compiling and running (smelt.Error), flags, time-outs, no memory, NaN.
#: Wrong arguments (TypeError, ValueError) are the caller's mistake, and interrupts are the caller's wish: both pass
#: through.
FAILURES: tuple[type[Exception], ...] = (smelt.Error, KernelFlagError, TimeoutError, MemoryError, NotFiniteError)


class _Passing(BaseException):
    """Carries an exception that is no failure of the kernel, though its class is among them."""


class WithFallback:
    """What with_fallback returns: called like the kernel function it wraps.

    calls, fallbacks: how often it was called, and how often the reference had to step in.
    last_error: the kernel's latest failure, or None. kernel, reference: the two functions."""

    def __init__(self, kernel_fn: Callable[..., Any], reference_fn: Callable[..., Any], check_finite: bool,
                 failures: tuple[type[Exception], ...]) -> None:
        self.kernel, self.reference = kernel_fn, reference_fn
        self.calls = self.fallbacks = 0
        self.last_error: Exception | None = None
        self._check_finite, self._failures = check_finite, failures
        self._lock = threading.Lock()
        functools.update_wrapper(self, kernel_fn, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            self.calls += 1
        results: list[Any] = []

        def attempt(device: str | None, timeout: float) -> None:
            try:
                result = self.kernel(*args, **kwargs)
            except smelt.InterruptedError as error:
                raise _Passing from error
            if self._check_finite:
                check_finite(result)
            results.append(result)

        try:
            _, found = guard_run(_name(self.kernel), attempt, None, lambda: (), self._failures, 0, None, 0.0, 0, (), False, ())
        except _Passing as error:
            raise error.__cause__ or error
        if results:
            return results[0]
        failure = found[5]
        assert isinstance(failure, Exception)
        with self._lock:
            self.fallbacks += 1
            self.last_error = failure
            count = self.fallbacks
        warnings.warn(f"{_name(self.kernel)} failed ({type(failure).__name__}: {failure}); the reference "
                      f"{_name(self.reference)} computes the result (fallback {count} of {self.calls} calls)",
                      FallbackWarning, stacklevel=2)
        return self.reference(*args, **kwargs)

    def __repr__(self) -> str:
        return (f"<{_name(self.kernel)} with fallback to {_name(self.reference)}: "
                f"{self.fallbacks} of {self.calls} calls fell back>")


def with_fallback(kernel_fn: Callable[..., Any] | None = None, reference_fn: Callable[..., Any] | None = None, *,
                  check_finite: bool = False,
                  failures: tuple[type[Exception], ...] = FAILURES) -> Any:
    """A function that calls kernel_fn, and where it fails warns (FallbackWarning, saying why) and calls reference_fn
    with the same arguments.

        cholesky = with_fallback(gpu_cholesky, numpy_cholesky)

        @with_fallback(reference_fn=numpy_cholesky, check_finite=True)
        def cholesky(a): ...

    A failure is: a compile error, fault, barrier error, lost device or another smelt.Error; TimeoutError;
    KernelFlagError (let kernel_fn end with DebugFlags.decode(dbg).check()); MemoryError; with check_finite=True, NaN
    or infinity in a floating-point result (an array, or arrays in a tuple, list or dict). `failures` replaces that
    list. Everything else passes through: TypeError and ValueError for wrong arguments, KeyboardInterrupt and
    smelt.InterruptedError, and what reference_fn raises. The result counts its fallbacks: see WithFallback."""
    if kernel_fn is None:
        if reference_fn is None:
            raise TypeError("with_fallback: reference_fn is missing")
        return functools.partial(with_fallback, reference_fn=reference_fn, check_finite=check_finite,
                                 failures=failures)
    if not callable(kernel_fn):
        raise TypeError(f"with_fallback: kernel_fn must be callable, got {kernel_fn!r}")
    if not callable(reference_fn):
        raise TypeError(f"with_fallback: reference_fn must be callable, got {reference_fn!r}")
    return WithFallback(kernel_fn, reference_fn, check_finite, failures)


def check_finite(result: Any) -> None:
    """NotFiniteError where a floating-point array in `result` (an array, or a tuple, list or dict of such) holds NaN
    or infinity; it says which array, how many, and where the first is."""
    _check_finite(result, "the result")


def _check_finite(value: Any, where: str) -> None:
    if value is None or isinstance(value, (str, bytes, bool, int)):
        return
    if isinstance(value, dict):
        for key, part in value.items():
            _check_finite(part, f"{where}[{key!r}]")
        return
    if isinstance(value, (tuple, list)):
        for index, part in enumerate(value):
            _check_finite(part, f"{where}[{index}]")
        return
    array = _as_numpy(value)
    if not np.issubdtype(array.dtype, np.inexact) and not array.dtype.name.startswith(("bfloat", "float")):
        return
    bad = ~np.isfinite(array)
    if bad.any():
        first = np.argwhere(bad)[0].tolist() if array.ndim else []
        raise NotFiniteError(f"{where} holds {np.count_nonzero(bad)} values of {array.size} that are not finite, the "
                             f"first, {array[tuple(first)]}, at {first}")


def _as_numpy(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):  # torch: off the tape, off the device
        value = value.detach().cpu()
    if str(getattr(value, "dtype", "")) in ("torch.bfloat16", "mlx.core.bfloat16"):  # which NumPy cannot read there
        value = value.float() if hasattr(value, "float") else value.astype(sys.modules["mlx.core"].float32)
    return np.asarray(value)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", None) or repr(function)
