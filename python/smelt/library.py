"""Whole .metal files and packages: `smelt.library`."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping, Sequence
from typing import Any

from smelt import _origin, _smelt
from smelt._signature import CallSignature, function_signature
from smelt._smelt import Error, Function, UnsupportedError
from smelt.kernel import math_mode_number, version_number


setattr(Function, "__signature__", CallSignature(function_signature))


class Library(_smelt.Library):
    """The kernel functions of a .metal file or package, from `smelt.library`. `lib.my_kernel` is the function of that
    name, as is `lib.function("my_kernel")`, which also takes values of function constants; `lib.functions` has the
    names. A kernel in a namespace is called "blas::axpy", and also "axpy" if no other kernel has that name. Calls of
    functions are described at `smelt.Function`."""

    _origin: _origin.Origin | None = None

    def function(self, name: str | None = None, constants: dict[int | str, Any] | None = None) -> Function:
        """The function called `name` (its host name; None: the only one), with values for function constants: a dict
        of indices or names and numbers, bools, or lists of 2 to 4 of them for vectors. Compiled at its first call.
        ValueError lists the names there are."""
        return self._function(name, constants)

    def _compile(self, names: Sequence[str] | None) -> None:
        """Compiles functions; None: all but those that read a function constant, whose values come later. The first
        failure is raised, with a note about others."""
        failure, others = None, []
        for name in self.functions if names is None else names:
            try:
                _ = self._function(name, None).parameters
            except (Error, ValueError) as error:
                if names is None and isinstance(error, ValueError) and "function constant" in str(error):
                    continue
                if failure is None:
                    failure = error
                else:
                    others.append(name)
        if failure is not None and others:
            failure.add_note(f"{len(others)} more functions do not compile: {', '.join(others)}")
        if failure is not None:
            raise failure

    def __getattr__(self, name: str) -> Function:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            function = self._function(name, None)
        except (ValueError, UnsupportedError) as error:
            raise AttributeError(str(error)) from None
        self.__dict__[name] = function
        return function

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.functions})

    def __repr__(self) -> str:
        return f"<smelt.Library: {', '.join(self.functions)}>"

    def build(
        self,
        path: str | os.PathLike[str],
        targets: Sequence[str] = (),
        *,
        entries: Sequence[str] | None = None,
        constants: dict[int | str, Any] | None = None,
        threadgroups: Sequence[Sequence[int]] = (),
        keep_going: bool = False,
        jobs: int = 0,
    ) -> list[dict[str, Any]]:
        """Compiles the functions into a package, which `smelt.library` loads without a compiler.

        Args:
            path: the file to write, "kernels.smeltlib".
            targets: "cpu" (this machine, the default), "x86-64", "x86-64-v3", "x86-64-v4", "sm_80" … "sm_90a".
            entries: names of the functions; None: all.
            constants: values of function constants.
            threadgroups: sizes of threadgroups to compile for, in addition to code for any size.
            keep_going: write the others when a function fails; the first failure is raised all the same.
            jobs: how many are compiled at once; 0: one a CPU.

        Returns a dict for each function: entry, targets, seconds, status, message, codes, bytes.
        """
        sizes = tuple(tuple(size) if isinstance(size, Sequence) else (size,) for size in threadgroups)
        names = None if entries is None else tuple(entries)
        return self._build(os.fspath(path), tuple(targets), names, constants, sizes, keep_going, jobs)


def _looks_like_source(text: str) -> bool:
    return "\n" in text or "{" in text


def library(
    path_or_source: str | bytes | os.PathLike[str],
    *,
    compile_options: dict[str, str] | None = None,
    metal_version: str | float | None = None,
    include_paths: Sequence[str | os.PathLike[str]] = (),
    macros: Mapping[str, Any] | None = None,
    compile: bool | Sequence[str] = False,
) -> Library:
    """Loads a .metal file, the text of one, or a package.

    Args:
        path_or_source: a path; or text, which has a line end or a brace in it; or the bytes of a package.
        compile_options: {"math_mode": "safe" | "relaxed" | "fast"}; of text only, as what follows.
        metal_version: "3.2" (the default), "4.0" …: what `__METAL_VERSION__` is.
        include_paths: folders in which `#include` looks.
        macros: {"TILE": 16, "T": "half", "DEBUG": True}: defined before the text; True is 1 and False is 0.
        compile: True compiles all functions now, for the CPU, so that what is wrong with one is raised here; a list of
            names compiles those. Functions that read function constants are left out by True, as their values come
            with `Library.function`.

    Otherwise nothing is compiled before a function's first call. Raises OSError for a file that cannot be read, ValueError for
    a damaged package and for options that cannot be. Packages hold machine code, which is run as it is: load only
    those whose maker is trusted.
    """
    path = source = package = None
    if isinstance(path_or_source, (bytes, bytearray, memoryview)):
        package = bytes(path_or_source)
    elif isinstance(path_or_source, str) and _looks_like_source(path_or_source):
        source = path_or_source
    else:
        path = _path_of(path_or_source)
    if isinstance(include_paths, (str, bytes, os.PathLike)):
        raise TypeError(f"library: include_paths is {include_paths!r} ({type(include_paths).__name__}); expected a list of folders")
    paths = tuple(os.fspath(folder) for folder in include_paths)
    names = [compile] if isinstance(compile, str) else None if compile is True else compile or []
    made = _make(path, source, package, math_mode_number("library", compile_options),
                 version_number("library", metal_version), paths, _macro_strings(macros))
    if names is None or names:
        made._compile(names)
    return made


def _path_of(value: Any) -> str:
    try:
        return os.fspath(value)
    except TypeError:
        raise TypeError(f"library: path_or_source is {value!r:.80} ({type(value).__name__}); expected a path, the text of "
                        "kernels, or the bytes of a package") from None


def _macro_strings(macros: Mapping[str, Any] | None) -> tuple[str, ...]:
    if macros is None:
        return ()
    if not isinstance(macros, Mapping):
        raise TypeError(f"library: macros is of type {type(macros).__name__}; expected a dict, such as {{'TILE': 16}}")
    for name, text in macros.items():
        if "=" in str(name):
            raise ValueError(f"library: macro name {name!r} is invalid; expected an identifier")
        if not isinstance(text, (str, numbers.Number)):
            raise TypeError(f"library: macro '{name}' is {text!r:.80}; expected a number, a bool or a string")
    return tuple(f"{name}={int(text) if isinstance(text, bool) else text}" for name, text in macros.items())


def _make(path: str | None, source: str | None, package: bytes | None, math: int, version: int,
          paths: tuple[str, ...], macros: tuple[str, ...] = ()) -> Library:
    """A library with the place of its text in the caller's file."""
    origin = None if source is None else _origin.origin_of({"library.metal": source})
    try:
        made = Library(path, source, package, math, version, paths, macros)
    except Error as error:
        if origin is not None:
            _origin.locate(origin, error)
        raise
    made._origin = origin
    return made


def compile_shader(source: str) -> Library:
    """`library` of a text, under the name that PyTorch has for it."""
    return _make(None, source, None, 0, 0, ())
