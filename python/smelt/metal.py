"""Traces, under MLX's names for captures of Metal's commands."""
import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager

from smelt._smelt import trace_start, trace_stop

__all__ = ["capture", "is_available", "start_capture", "stop_capture"]

_capturing = False


def is_available() -> bool:
    """Whether kernels run on Apple's Metal: False. They run on the devices of smelt.devices()."""
    return False


def start_capture(path: str | os.PathLike[str]) -> None:
    """Records what runs from here to stop_capture: compiles, copies, launches with grid, threadgroup, bytes and time.

    path: the file, which appears whole at stop_capture, or when the process ends. It opens in ui.perfetto.dev and in
    chrome://tracing (docs/tracing.md). ValueError if a capture is under way, OSError if the file cannot be written."""
    global _capturing
    trace_start(os.fspath(path))
    _capturing = True


def stop_capture() -> None:
    """Writes the file. ValueError if no capture is under way; OSError if it cannot be written."""
    global _capturing
    _capturing = False
    trace_stop()


@contextmanager
def capture(path: str | os.PathLike[str]) -> Iterator[None]:
    """The block as a capture: with smelt.metal.capture("trace.json"): ..."""
    start_capture(path)
    try:
        yield
    finally:
        stop_capture()


@atexit.register
def _stop_at_exit() -> None:
    if _capturing:
        stop_capture()
