"""Guards: a time-out, flags, finite results, other devices and a fallback for one launch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import smelt
from smelt._smelt import guard_run
from smelt.launch.fallback import FAILURES, FallbackWarning

__all__ = ["Guard", "GuardReport"]


@dataclass
class GuardReport:
    """What became of a guarded run: how many attempts there were, the device of the last, whether the fallback computed
    the result, and the first failure: its status's name, its message, its exception (None if a guard's own check failed)."""

    attempts: int
    device: str
    fell_back: bool
    status: str
    message: str
    error: BaseException | None


@dataclass
class Guard:
    """How a kernel is launched with care: smelt_guard of the C API.

    timeout: seconds for each attempt; 0: none. flags: the number of the output that holds debug flags. codes: what their
    error codes mean. finite: float outputs must be finite. devices: where to try again after a failure, in order.
    precondition: called with the inputs; it refuses them by raising smelt.HealthError or another failure, and then the
    fallback is next. fallback: called with the inputs, computes the outputs. report: the last run's, or None."""

    timeout: float = 0.0
    flags: int | None = None
    codes: Mapping[int, str] | None = None
    finite: bool = False
    devices: Sequence[str] = ()
    precondition: Callable[..., Any] | None = None
    fallback: Callable[..., Any] | None = None
    report: GuardReport | None = None

    def run(self, kernel: Callable[..., Any], inputs: Sequence[Any], *, device: str | None = None, **call: Any) -> list[Any]:
        """kernel(inputs=inputs, **call) under the guard: a list of smelt.array. The first failure is raised if nothing
        helps; a FallbackWarning says what helped."""
        arrays = [smelt.asarray(x) for x in inputs]
        count = len(call["output_dtypes"])

        def attempt(where: str | None, timeout: float) -> Any:
            own = {**call, "timeout": timeout} if timeout else call
            return kernel(inputs=arrays, device=where, **own) if where else kernel(inputs=arrays, **own)

        check, instead = self.precondition, self.fallback
        outputs, found = guard_run(
            str(getattr(kernel, "name", "kernel")), attempt, None if check is None else lambda: check(*inputs),
            None if instead is None else lambda: [smelt.asarray(x) for x in instead(*inputs)],
            FAILURES, count, device, float(self.timeout), 0 if self.flags is None else self.flags + 1,
            tuple((self.codes or {}).items()), self.finite, tuple(self.devices))
        self.report = GuardReport(*found)
        if self.report.message:
            what = "the fallback computes the result" if self.report.fell_back else f"it was run on {self.report.device}"
            warnings.warn(f"{self.report.message}; {what}", FallbackWarning, stacklevel=2)
        return list(outputs)
