"""Time-outs for whatever launches kernels, on any thread."""

from __future__ import annotations

import _thread
import ctypes
import functools
import math
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import smelt
from smelt import _smelt


class _Expired(BaseException):
    """What stops Python code whose time is over. No Exception, so that `except Exception` in that code lets it by.
    Each launch_with_timeout raises a class of its own: one within another lets the other's by."""


def launch_with_timeout(callable_kernel: Callable[..., Any], args: Sequence[Any] = (),
                        kwargs: Mapping[str, Any] | None = None, timeout_seconds: float = 1.0) -> Any:
    """callable_kernel(*args, **kwargs), or TimeoutError after timeout_seconds (fractions count).

    A kernel of smelt is given the time as its `timeout=` (unless kwargs has a shorter one), which includes the time to
    compile it. Any other function is interrupted where it stands: a kernel that it runs is stopped, so that the device
    can be used at once; Python code on the main thread by a timer signal, which also ends waiting in the operating
    system (time.sleep, a lock); Python code on other threads at its next step. There, code that stays in C for long,
    outside of smelt, cannot be stopped: the TimeoutError comes when it returns. On a GPU, launches that the function
    makes are waited for, as all that have a time-out; those of kernel.bind() are not stopped.

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
    sentence = f"{_name(callable_kernel)} ran longer than the time-out of {timeout_seconds:g} s and was stopped"
    class Expired(_Expired):
        pass

    try:
        return _run(functools.partial(callable_kernel, *args, **arguments), float(timeout_seconds), Expired)
    except Expired:
        raise TimeoutError(sentence) from None


def _is_kernel(function: Any) -> bool:
    """Whether it is one of smelt's own kernels or functions of a library, also as a functools.partial."""
    while isinstance(function, functools.partial):
        function = function.func
    return isinstance(function, (smelt.Kernel, smelt.Function))


def _run(function: Callable[[], Any], seconds: float, expired: type[_Expired]) -> Any:
    """function(), in which `expired` is raised once it has run that long; never behind it."""
    on_main = threading.current_thread() is threading.main_thread()
    # A handler that was not installed from Python could not be put back.
    by_signal = on_main and signal.getsignal(signal.SIGALRM) is not None
    handle, outer = _smelt._limit_begin(seconds)
    try:
        return (_run_with_signal if by_signal else _run_with_watcher)(function, seconds, expired, handle)
    finally:
        _smelt._limit_end(*outer)


def _run_with_signal(function: Callable[[], Any], seconds: float, expired: type[_Expired], handle: Any) -> Any:
    armed = True
    end, other, interval = time.monotonic() + seconds, math.inf, 0.0

    def ring(signum: int, frame: Any) -> None:
        nonlocal armed, other
        if time.monotonic() >= other:  # someone else's timer, on which ours was set
            other = time.monotonic() + interval if interval else math.inf
            _set_timer(min(end, other))
            if callable(handler):
                handler(signum, frame)
        elif armed:
            armed = False
            raise expired

    left, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    if left:
        other = time.monotonic() + left
    handler = signal.signal(signal.SIGALRM, ring)
    try:
        # Two of them: what ring raises may strike in the inner one, once, so that the outer one runs undisturbed.
        try:
            _set_timer(min(end, other))
            return function()
        finally:
            armed = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if other < math.inf:
            _set_timer(other, interval)


def _set_timer(at: float, interval: float = 0.0) -> None:
    """SIGALRM at a time of the monotonic clock, at once if that is over."""
    signal.setitimer(signal.ITIMER_REAL, max(1e-6, at - time.monotonic()), interval)


class _Watch:
    """The time-out of one function on a thread that signals do not reach."""

    def __init__(self, seconds: float, expired: type[_Expired], handle: Any) -> None:
        self.thread, self.expired, self.handle = threading.get_ident(), expired, handle
        self.end = time.monotonic() + seconds
        self.sent = False

    def strike(self) -> None:
        _raise_in(self.thread, self.expired)
        _smelt._limit_interrupt(self.handle, True)


# One thread strikes for all. (A new thread for each would not do: what is sent to a thread that is just starting
# another may reach that one.)
# Its locks are those of C: what strikes within a Condition's Python code may leave it locked.
_watching = threading.Lock()  # guards what follows, and strikes
_watched: list[_Watch] = []
_changes: queue.SimpleQueue[None] = queue.SimpleQueue()  # an item where one was added
_watcher_process = 0  # in which the thread runs: a forked child has none

_watches = threading.local()  # .stack: this thread's, the innermost last


def _watch_all() -> None:
    while True:
        with _watching:
            for watch in [w for w in _watched if w.end <= time.monotonic()]:
                _watched.remove(watch)
                watch.sent = True
                watch.strike()
            wait = min((max(0, w.end - time.monotonic()) for w in _watched), default=None)
        try:
            _changes.get(timeout=wait)
        except queue.Empty:
            pass


def _run_with_watcher(function: Callable[[], Any], seconds: float, expired: type[_Expired], handle: Any) -> Any:
    global _watcher_process
    watch = _Watch(seconds, expired, handle)
    outer = getattr(_watches, "stack", [])
    in_flight = None
    try:
        # Two of them, as above: what is sent strikes in the inner one at the latest. (What is sent for an outer
        # function may strike anywhere.)
        try:
            _watches.stack = [*outer, watch]
            with _watching:
                if _watcher_process != os.getpid():
                    _watched.clear()
                    _thread.start_new_thread(_watch_all, ())
                    _watcher_process = os.getpid()
                _watched.append(watch)
            _changes.put(None)
            return function()
        finally:
            with _watching:
                if watch in _watched:
                    _watched.remove(watch)
    except BaseException as error:
        in_flight = type(error)
        if watch.sent and in_flight is smelt.InterruptedError:
            raise expired from None
        raise
    finally:
        _watches.stack = outer
        if watch.sent:
            _raise_in(watch.thread, None)
            _smelt._limit_interrupt(handle, False)
            # A time-out that this one lies in may have struck at the same time, and what it sent be gone.
            for late in [w for w in outer if w.sent and w.expired is not in_flight][:1]:
                late.strike()


def _after_fork() -> None:
    global _watching, _changes
    _watching, _changes = threading.Lock(), queue.SimpleQueue()  # the parent's may be held


os.register_at_fork(after_in_child=_after_fork)


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Makes the thread raise the exception at its next step in Python; None takes back what it has not raised yet."""
    raised = ctypes.py_object(exception) if exception else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


def _name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", None) or repr(function)
