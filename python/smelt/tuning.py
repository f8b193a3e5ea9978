"""autotune: a function tries settings on its first call for a kind of arguments, and keeps the fastest, also for later processes."""
from __future__ import annotations

import functools
import hashlib
import inspect
import json
import logging
import platform
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, time
from typing import Any

from smelt import _smelt
from smelt.bench import do_bench
from smelt.execution import default_device, synchronize

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


# ---- The results of a machine, in the cache folder.

_SCHEMA = """CREATE TABLE IF NOT EXISTS results (machine TEXT, function TEXT, key TEXT, config TEXT, milliseconds REAL, made REAL,
             PRIMARY KEY (machine, function, key))"""


def _database() -> Path | None:
    try:
        return Path(_smelt.cache_usage()[0], "tuning.sqlite")
    except _smelt.Error:
        return None


def _execute(statement: str, values: tuple[Any, ...]) -> list[Any]:
    """The rows; none if there is no database, or it cannot be used. Other processes wait for each other, ten seconds at most."""
    path = _database()
    if path is None:
        return []
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=10)) as connection, connection:
            connection.execute(_SCHEMA)
            return connection.execute(statement, values).fetchall()
    except (sqlite3.Error, OSError) as error:
        _log.warning("tuning results: %s: %s", path, error)
        return []


def _processor() -> str:
    """The processor's name and instruction sets."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    wanted = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return "\n".join(dict.fromkeys(wanted))


@functools.cache
def machine_of(device: str) -> str:
    """The fingerprint of what a device's times depend on."""
    kind = device.split(":", maxsplit=1)[0]
    rows = [row for row in _smelt.device_table() if row["name"] in (device, kind)]
    told = [(row["description"], row["threads"], row["vector_bits"], row["driver_version"]) for row in rows]
    words = [_smelt.__version__, device, str(told), _processor() if kind.startswith("cpu") else ""]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:32]


# ---- A function.

def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _word(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if _is_array(value) else repr(value)


def _flat(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in _flat(item)] if isinstance(result, (list, tuple)) else [result]


@dataclass
class _Search:
    """One search in progress."""
    best: Config | None = None
    milliseconds: float = float("inf")
    tried: int = 0


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
        self._identity = hashlib.sha256("\n".join(words).encode()).hexdigest()[:32]

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

    def _stored(self, device: str, kind: str) -> Config | None:
        rows = _execute("SELECT config FROM results WHERE machine = ? AND function = ? AND key = ?",
                        (machine_of(device), self._identity, kind))
        words = {repr(config): config for config in self.configs}
        return words.get(json.loads(rows[0][0])) if rows else None

    def _is_right(self, result: Any, expected: Any) -> bool:
        pairs = list(zip(_flat(result), _flat(expected), strict=True))
        return all(bool(_smelt.apply("all_close", (_smelt.asarray(a), _smelt.asarray(b)), numbers=(self.tolerance, self.tolerance)))
                   for a, b in pairs)

    def _try(self, config: Config, call: Callable[[Config], Any], expected: Any, device: str, search: _Search) -> None:
        """Measures a config; one that fails, is wrong or slow is noted."""
        try:
            result = call(config)
            synchronize(device)
            if self.reference is not None and not self._is_right(result, expected):
                self._note(config, "wrong result")
                return
            start = perf_counter()
            call(config)
            synchronize(device)
            once = (perf_counter() - start) * 1e3
            if once > 3 * search.milliseconds:
                self._note(config, f"slow: {once:.4g} ms, where another takes {search.milliseconds:.4g}")
                return
            milliseconds = do_bench(lambda: call(config), warmup=5, rep=50, return_mode="median", device=device)
        except Exception as error:  # whatever a setting makes of the function: the others go on
            self._note(config, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
            return
        if milliseconds < search.milliseconds:
            search.best, search.milliseconds = config, milliseconds

    def _note(self, config: Config, text: str) -> None:
        self.notes.append((config, text))
        _log.info("%s: %s is skipped: %s", self.name, config, text)

    def _show(self, search: _Search) -> None:
        if sys.stderr.isatty():
            best = f", best {search.milliseconds:.4g} ms" if search.best else ""
            end = "\n" if search.tried == len(self.configs) else ""
            print(f"\rsmelt: tuning {self.name}: {search.tried} of {len(self.configs)}{best}   ", end=end, file=sys.stderr, flush=True)

    def _search(self, args: tuple[Any, ...], kwargs: dict[str, Any], device: str) -> _Search:
        def call(config: Config) -> Any:
            return self.fn(*args, **kwargs, **config.kwargs)

        self.notes = []
        search, end = _Search(), perf_counter() + self.budget
        expected = self.reference(*args, **kwargs) if self.reference is not None else None
        for config in self.configs:
            if search.best is not None and perf_counter() > end:
                self._note(config, f"the time budget of {self.budget:g} s is spent")
            else:
                self._try(config, call, expected, device, search)
            search.tried += 1
            self._show(search)
        if search.best is None:
            raise RuntimeError(f"autotune: none of the {len(self.configs)} configs of '{self.name}' works; {self.notes[0][0]}: "
                               f"{self.notes[0][1]}")
        return search

    def best_config(self, *args: Any, **kwargs: Any) -> Config:
        """The settings for these arguments: chosen before, stored, or searched for now."""
        device, kind = self._kind(args, kwargs)
        config = self._chosen.get((device, kind)) or self._stored(device, kind)
        if config is None:
            search = self._search(args, kwargs, device)
            assert search.best is not None
            config = search.best
            _execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)",
                     (machine_of(device), self._identity, kind, json.dumps(repr(config)), search.milliseconds, time()))
        self._chosen[device, kind] = config
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
