"""Helpers around launches: debug flags, time-outs, a reference to fall back to, sizes of grids and threadgroups."""

from smelt.launch.fallback import FAILURES, FallbackWarning, NotFiniteError, check_finite, with_fallback
from smelt.launch.flags import ERROR_CODES, FLAG_COUNT, HEADER, DebugFlags, KernelFlagError, check_flags
from smelt.launch.guard import Guard, GuardReport
from smelt.launch.sizing import suggest_launch, suggest_threadgroup
from smelt.launch.timeout import launch_with_timeout

__all__ = ["ERROR_CODES", "FAILURES", "FLAG_COUNT", "HEADER", "DebugFlags", "FallbackWarning", "Guard", "GuardReport", "KernelFlagError",
           "NotFiniteError", "check_finite", "check_flags", "launch_with_timeout", "suggest_launch",
           "suggest_threadgroup", "with_fallback"]
