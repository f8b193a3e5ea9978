"""autotune: a function tries settings on its first call for a kind of arguments, and keeps the fastest, also for later processes."""
from __future__ import annotations

import functools
import hashlib
import inspect
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

from smelt import _smelt
from smelt.execution import default_device

__all__ = ["Autotuned", "Config", "autotune"]

_log = logging.getLogger("smelt.tuning")


class Config:
    """Settings to try: arguments of the tuned function."""

    def __init__(self, kwargs: dict[str, Any]) -> None:
        self.kwargs = dict(kwargs)

    def __repr__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.kwargs.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.kwargs == other.kwargs

    def __hash__(self) -> int:
        return hash(repr(self))


# ---- A function.

def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _word(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if _is_array(value) else repr(value)


def _flat(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in _flat(item)] if isinstance(result, (list, tuple)) else [result]


class Autotuned:
    """A function with settings to choose from: see autotune. notes: what was skipped in the last search, and why."""

    def __init__(self, fn: Callable[..., Any], configs: Sequence[Config], key: Sequence[str],
                 reference: Callable[..., Any] | None, tolerance: float, budget: float) -> None:
        functools.update_wrapper(self, fn)
        self.name = getattr(fn, "__name__", "function")
        self.fn, self.configs, self.key = fn, list(configs), list(key)
        self.reference, self.tolerance, self.budget = reference, tolerance, budget
        self.notes: list[tuple[Config, str]] = []
        self._signature = inspect.signature(fn)
        self._chosen: dict[tuple[str, str], Config] = {}
        self._check()

    def _check(self) -> None:
        name = self.name
        if not self.configs:
            raise ValueError(f"autotune: '{name}' has no configs, expected one or more")
        for word in [*self.key, *(word for config in self.configs for word in config.kwargs)]:
            if word not in self._signature.parameters:
                raise ValueError(f"autotune: '{word}' is not a parameter of '{name}', expected one of "
                                 f"{', '.join(self._signature.parameters)}")
        try:
            text = inspect.getsource(self.fn)
        except (OSError, TypeError):
            text = ""
        words = [getattr(self.fn, "__module__", ""), getattr(self.fn, "__qualname__", ""), text, *map(repr, self.configs)]
        self._identity = f"{self.name} {hashlib.sha256(chr(10).join(words).encode()).hexdigest()[:32]}"

    def _kind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
        """The machine, and the arguments that the choice depends on: those of `key`, and the dtypes of arrays."""
        bound = self._signature.bind_partial(*args, **kwargs)
        bound.apply_defaults()
        missing = [word for word in self.key if word not in bound.arguments]
        if missing:
            raise TypeError(f"autotune: '{missing[0]}', which the choice depends on, is not given")
        arrays = {word: value for word, value in bound.arguments.items() if _is_array(value)}
        device = next((value.device for value in arrays.values() if isinstance(value, _smelt.array)), default_device())
        words = [f"{word}={_word(bound.arguments[word])}" for word in self.key]
        words += [f"{word}:{value.dtype}" for word, value in arrays.items() if word not in self.key]
        return str(device), ", ".join(words)

    def _is_right(self, result: Any, expected: Any) -> bool:
        pairs = list(zip(_flat(result), _flat(expected), strict=True))
        return all(bool(_smelt.apply("all_close", (_smelt.asarray(a), _smelt.asarray(b)), numbers=(self.tolerance, self.tolerance)))
                   for a, b in pairs)

    def _search(self, args: tuple[Any, ...], kwargs: dict[str, Any], device: str, kind: str) -> Config:
        made: list[Any] = [None]
        expected: list[Any] = []

        def run(index: int) -> None:
            made[0] = None
            made[0] = self.fn(*args, **kwargs, **self.configs[index].kwargs)

        def check(index: int) -> bool:
            if not expected and self.reference is not None:
                expected.append(self.reference(*args, **kwargs))
            return self._is_right(made[0], expected[0])

        def progress(words: str, tried: int, count: int, note: str | None, best_seconds: float) -> None:
            if note is not None:
                self.notes.append((self.configs[tried - 1], note))
                _log.info("%s: %s is skipped: %s", self.name, words, note)
            if sys.stderr.isatty():
                best = f", best {1e3 * best_seconds:.4g} ms" if best_seconds else ""
                print(f"\rsmelt: tuning {self.name}: {tried} of {count}{best}   ", end="\n" if tried == count else "", file=sys.stderr,
                      flush=True)

        self.notes = []
        index, _, _ = _smelt.tune(self._identity, kind, device, list(map(repr, self.configs)), run,
                                  check if self.reference is not None else None, progress, max(self.budget, 1e-9))
        return self.configs[index]

    def best_config(self, *args: Any, **kwargs: Any) -> Config:
        """The settings for these arguments: chosen before, stored, or searched for now."""
        device, kind = self._kind(args, kwargs)
        config = self._chosen.get((device, kind))
        if config is None:
            config = self._chosen[device, kind] = self._search(args, kwargs, device, kind)
        return config

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs, **self.best_config(*args, **kwargs).kwargs)


def autotune(configs: Sequence[Config], key: Sequence[str], *, reference: Callable[..., Any] | None = None,
             tolerance: float = 1e-3, budget: float = 30.0) -> Callable[[Callable[..., Any]], Autotuned]:
    """Decorates a function whose arguments include settings, which callers then leave out.

    configs: the settings to try. key: arguments on which the choice depends; of arrays it is dtype and shape that count, and
    the dtypes of all arrays always do. The first call of a kind measures every config, for about `budget` seconds, and later
    calls take the fastest. Choices are stored in tuning.sqlite in the cache folder, for this machine, this text of the
    function and these configs. reference(*args), without settings, gives the right result: configs whose results are not
    within `tolerance` of it, that fail, or that are slow are skipped, and `notes` says why. The function is called several
    times with the same arguments, so it must not change them."""
    return lambda fn: Autotuned(fn, configs, key, reference, tolerance, budget)
