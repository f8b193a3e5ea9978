"""Debug flags: sixteen floats in which a kernel reports its progress and errors.

A kernel that may meet input it cannot handle writes them to an extra output instead of failing silently. The slots:

    0       1 once the checks before the work have passed
    1-3     the matrix: m, n, min(m, n)
    5-7     threads in a group, threads in all, work a thread
    8-11    intermediate values (norms, pivots), as the kernel likes
    12      iterations done
    13      error code, 0 for none
    14      the value that goes with the error code
    15      1 at the very end, if all went well

HEADER is Metal text with functions that fill them; DebugFlags reads them on the host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import smelt
from smelt._smelt import flags_header as _flags_header

#: How many floats one set of flags has: the last dimension of the output that holds them.
FLAG_COUNT = 16

#: What the error codes mean, unless a kernel brings its own table.
ERROR_CODES: Mapping[int, str] = {
    1: "the matrix is too large",
    2: "the work is too large",
    3: "too many iterations",
    4: "numerical instability",
    5: "numerical instability",
}

#: Metal functions that fill the flags: pass it as (part of) a kernel's `header`. `dbg` is the output itself, an
#: ordinary one or an atomic one. One thread should write, but any may call dbg_fail or dbg_finite: which of several
#: failures is kept is then open.
HEADER = _flags_header()


class KernelFlagError(smelt.Error):
    """A kernel's debug flags say that it did not succeed. `flags` is the DebugFlags that said so."""

    def __init__(self, message: str, flags: DebugFlags) -> None:
        super().__init__(message)
        self.flags = flags


def _number(value: float) -> int | float:
    """A whole number as an int, anything else (fractions, NaN) as it is: flags may be damaged."""
    return int(value) if math.isfinite(value) and value == int(value) else value


@dataclass(frozen=True)
class DebugFlags:
    """What one set of debug flags says. Counts that are not whole numbers (in a damaged buffer) stay floats."""

    started: bool
    rows: int | float
    columns: int | float
    rank: int | float
    threads_per_group: int | float
    total_threads: int | float
    work_per_thread: int | float
    values: tuple[float, float, float, float]
    iterations: int | float
    error_code: int | float
    error_value: float
    success: bool
    raw: tuple[float, ...] = field(repr=False)
    codes: Mapping[int, str] = field(default_factory=lambda: ERROR_CODES, repr=False, compare=False)

    @classmethod
    def decode(cls, buffer: Any, codes: Mapping[int, str] | None = None) -> DebugFlags:
        """The flags in `buffer`: 16 numbers of any shape, in anything NumPy reads (smelt.array, NumPy, a list …).

        `codes` adds to ERROR_CODES, or replaces entries: {6: "the matrix is not positive definite"}.
        ValueError where there are more or fewer than 16 numbers; decode_rows takes several sets at once."""
        raw = _floats(buffer)
        if raw.size != FLAG_COUNT:
            raise ValueError(f"debug flags: expected {FLAG_COUNT} numbers, got {raw.size} (shape {raw.shape}); "
                             "DebugFlags.decode_rows reads several sets")
        return cls._of(raw.reshape(FLAG_COUNT), codes)

    @classmethod
    def decode_rows(cls, buffer: Any, codes: Mapping[int, str] | None = None) -> list[DebugFlags]:
        """One DebugFlags for each row of a buffer of shape (…, 16): a kernel that works on many matrices at once."""
        raw = _floats(buffer)
        if raw.ndim == 0 or raw.shape[-1] != FLAG_COUNT:
            raise ValueError(f"debug flags: expected a last dimension of {FLAG_COUNT}, got shape {raw.shape}")
        return [cls._of(row, codes) for row in raw.reshape(-1, FLAG_COUNT)]

    @classmethod
    def _of(cls, raw: np.ndarray, codes: Mapping[int, str] | None) -> DebugFlags:
        f = tuple(float(value) for value in raw)
        return cls(started=f[0] == 1, rows=_number(f[1]), columns=_number(f[2]), rank=_number(f[3]),
                   threads_per_group=_number(f[5]), total_threads=_number(f[6]), work_per_thread=_number(f[7]),
                   values=(f[8], f[9], f[10], f[11]), iterations=_number(f[12]), error_code=_number(f[13]),
                   error_value=f[14], success=f[15] == 1, raw=f, codes={**ERROR_CODES, **(codes or {})})

    @property
    def ok(self) -> bool:
        """Whether the kernel started, set no error, and reached its end."""
        return self.problem is None

    @property
    def problem(self) -> str | None:
        """What went wrong, in words; None if nothing did."""
        if not _is_flag(self.raw[0]) or not _is_flag(self.raw[15]) or not isinstance(self.error_code, int):
            return (f"the flags were never written or are overwritten (start {self.raw[0]:g}, error code "
                    f"{self.raw[13]:g}, success {self.raw[15]:g}): run the kernel with init_value=0")
        if self.error_code:
            what = self.codes.get(self.error_code, "a code missing in the table of codes")
            when = "" if self.started else " (found before the work began)"
            return f"error {self.error_code}, {what}, with the value {self.error_value:g}{when}{self._after()}"
        if not self.started:
            return "the kernel never started: its start flag is 0" + (", yet it reports success" * self.success)
        if not self.success:
            return "the kernel started and did not finish: its success flag is 0" + self._after()
        return None

    def _after(self) -> str:
        return f", after {self.iterations} iterations" if self.iterations else ""

    def check(self, name: str | None = None) -> DebugFlags:
        """Returns itself if the kernel succeeded; else KernelFlagError, which names the kernel as `name`."""
        problem = self.problem
        if problem is None:
            return self
        size = f" on a {self.rows} × {self.columns} matrix" if self.rows or self.columns else ""
        raise KernelFlagError(f"{f'kernel {name!r}' if name else 'kernel'}{size}: {problem}", self)

    def __iter__(self) -> Iterator[float]:
        """The 16 numbers."""
        return iter(self.raw)


def check_flags(buffer: Any, codes: Mapping[int, str] | None = None, name: str | None = None) -> list[DebugFlags]:
    """Decodes every row of `buffer`, shape (…, 16), and returns the list; KernelFlagError for the first that failed,
    which says how many did."""
    rows = DebugFlags.decode_rows(buffer, codes)
    failed = [index for index, flags in enumerate(rows) if not flags.ok]
    if failed:
        flags = rows[failed[0]]
        where = f" (set {failed[0]}; {len(failed)} of {len(rows)} failed)" if len(rows) > 1 else ""
        try:
            flags.check(name)
        except KernelFlagError as error:
            raise KernelFlagError(f"{error}{where}", flags) from None
    return rows


def _floats(buffer: Any) -> np.ndarray:
    if hasattr(buffer, "__array__") or hasattr(buffer, "__buffer__"):
        return np.asarray(buffer).astype(np.float64)
    if hasattr(buffer, "__dlpack__"):
        return np.from_dlpack(buffer).astype(np.float64)
    return np.asarray(buffer, dtype=np.float64)


def _is_flag(value: float) -> bool:
    return value == 0 or value == 1
