"""Time-outs for whatever launches kernels, on any thread."""

from __future__ import annotations

import ctypes
import functools
import math
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class _Expired(BaseException):
    """What stops Python code whose time is over. No Exception, so that `except Exception` in that code lets it by."""


def launch_with_timeout(callable_kernel: Callable[..., Any], args: Sequence[Any] = (),
                        kwargs: Mapping[str, Any] | None = None, timeout_seconds: float = 1.0) -> Any:
    """callable_kernel(*args, **kwargs), or TimeoutError after timeout_seconds (fractions count).

    A kernel of smelt is given the time as its `timeout=` (unless kwargs has a shorter one), so that the kernel itself
    is stopped and its device can be used at once; this includes the time to compile it. Any other function is
    interrupted where it stands: on the main thread by a timer signal, which also ends waiting in the operating system
    (time.sleep, a lock); on other threads at its next step in Python. Code that stays in C for long, outside smelt's
    kernels, cannot be stopped on other threads: the TimeoutError then comes when it returns.

    ValueError for a time that is not positive and finite. Whatever the callable raises passes through."""
    if isinstance(timeout_seconds, bool) or not isinstance(timeout_seconds, (int, float)):
        raise TypeError(f"timeout_seconds: expected a number of seconds, got {timeout_seconds!r}")
    if not 0 < timeout_seconds < math.inf:
        raise ValueError(f"timeout_seconds: expected a positive, finite number of seconds, got {timeout_seconds!r}")
    arguments = dict(kwargs or {})
    if _is_kernel(callable_kernel):
        own = arguments.get("timeout") or math.inf
        arguments["timeout"] = min(own, float(timeout_seconds))
        return callable_kernel(*args, **arguments)
    sentence = f"{_name(callable_kernel)} ran longer than the {timeout_seconds:g} s it was given and was stopped"
    try:
        return _run(functools.partial(callable_kernel, *args, **arguments), float(timeout_seconds))
    except _Expired:
        raise TimeoutError(sentence) from None


def _is_kernel(function: Any) -> bool:
    """Whether it is one of smelt's own kernels or functions of a library, also as a functools.partial."""
    while isinstance(function, functools.partial):
        function = function.func
    return type(function).__module__.partition(".")[0] == "smelt" and hasattr(type(function), "takes_timeout")


def _run(function: Callable[[], Any], seconds: float) -> Any:
    """function(), in which _Expired is raised once it has run that long; never behind it."""
    on_main = threading.current_thread() is threading.main_thread()
    # A handler that was not installed from Python could not be put back.
    if on_main and signal.getsignal(signal.SIGALRM) is not None:
        return _run_with_signal(function, seconds)
    return _run_with_watcher(function, seconds)


def _run_with_signal(function: Callable[[], Any], seconds: float) -> Any:
    armed = True

    def expire(signum: int, frame: Any) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise _Expired

    handler = signal.signal(signal.SIGALRM, expire)
    began = time.monotonic()
    # A timer that someone else set runs on behind ours.
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        # Two of them: _Expired may strike in the inner one, once, so that the outer one runs undisturbed.
        try:
            return function()
        finally:
            armed = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, left - (time.monotonic() - began)), interval)


def _run_with_watcher(function: Callable[[], Any], seconds: float) -> Any:
    thread = threading.get_ident()
    over = threading.Event()
    lock = threading.Lock()
    sent = False

    def watch() -> None:
        nonlocal sent
        if over.wait(seconds):
            return
        with lock:
            if not over.is_set():
                sent = True
                _raise_in(thread, _Expired)

    threading.Thread(target=watch, name="smelt-timeout", daemon=True).start()
    try:
        return function()
    finally:
        # _Expired may strike here too, once; then nothing is left to be taken back.
        with lock:
            over.set()
        if sent:
            _raise_in(thread, None)


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Makes the thread raise the exception at its next step in Python; None takes back what it has not raised yet."""
    raised = ctypes.py_object(exception) if exception else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


def _name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", None) or repr(function)
