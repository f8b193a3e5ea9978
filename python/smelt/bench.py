"""Times of functions, and tables of them over a range of sizes, in the style of triton.testing."""
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any

from smelt.execution import synchronize

__all__ = ["Benchmark", "Report", "do_bench", "perf_report"]

_MODES: dict[str, Callable[[list[float]], Any]] = {"min": min, "max": max, "mean": fmean, "median": median, "all": list}


def _quantile(times: list[float], part: float) -> float:
    ordered, at = sorted(times), part * (len(times) - 1)
    low = int(at)
    return ordered[low] + (at - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def _once(fn: Callable[[], Any], device: str | None) -> float:
    start = perf_counter()
    fn()
    synchronize(device)
    return (perf_counter() - start) * 1e3


def do_bench(fn: Callable[[], Any], warmup: float = 25, rep: float = 100, quantiles: Sequence[float] | None = None,
             return_mode: str = "mean", *, device: str | None = None) -> Any:
    """Milliseconds that fn() takes, with the work it leaves to a device (None: the default one).

    fn runs for about `warmup` milliseconds, then for about `rep`, each at least once. Returns the times' quantiles if some
    are asked for (a number for one), else what return_mode names: "min", "max", "mean", "median", or "all" of them."""
    if return_mode not in _MODES:
        raise ValueError(f"return_mode is {return_mode!r}, expected one of {', '.join(_MODES)}")
    if quantiles is not None and not all(0 <= part <= 1 for part in quantiles):
        raise ValueError(f"quantiles are {list(quantiles)}, expected numbers from 0 to 1")
    estimate = max(min(_once(fn, device), _once(fn, device)), 1e-6)
    for _ in range(int(warmup / estimate)):
        _once(fn, device)
    times = [_once(fn, device) for _ in range(max(1, int(rep / estimate)))]
    if quantiles is None:
        return _MODES[return_mode](times)
    values = [_quantile(times, part) for part in quantiles]
    return values[0] if len(values) == 1 else values


@dataclass
class Benchmark:
    """What perf_report measures: a line for each of line_vals, at each of x_vals.

    The function is called with line_arg=value, each name of x_names = the point (or its part, if points are tuples), and
    `args`. It returns a number, or (value, low, high)."""
    x_names: Sequence[str]
    x_vals: Sequence[Any]
    line_arg: str
    line_vals: Sequence[Any]
    line_names: Sequence[str]
    plot_name: str
    args: dict[str, Any] = field(default_factory=dict)
    xlabel: str = ""
    ylabel: str = ""


class Report:
    """A function with its benchmarks: run() measures them."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = benchmarks

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def _measure(self, benchmark: Benchmark) -> list[dict[str, Any]]:
        rows = []
        for x in benchmark.x_vals:
            parts = tuple(x) if isinstance(x, (tuple, list)) else (x,) * len(benchmark.x_names)
            if len(parts) != len(benchmark.x_names):
                raise ValueError(f"{benchmark.plot_name}: point {x!r} has {len(parts)} parts, expected one for each of "
                                 f"{', '.join(benchmark.x_names)}")
            row: dict[str, Any] = dict(zip(benchmark.x_names, parts, strict=True))
            for value, name in zip(benchmark.line_vals, benchmark.line_names, strict=True):
                point = dict(zip(benchmark.x_names, parts, strict=True))
                result = self.fn(**point, **{benchmark.line_arg: value}, **benchmark.args)
                row[name] = result[0] if isinstance(result, (tuple, list)) else result
            rows.append(row)
        return rows

    def run(self, print_data: bool = False, save_path: str = "") -> list[list[dict[str, Any]]]:
        """A list of rows for each benchmark; printed as a table, or saved as PLOT_NAME.csv in a folder, if wanted."""
        results = []
        for benchmark in self.benchmarks:
            rows = self._measure(benchmark)
            if print_data:
                print(f"{benchmark.plot_name}{f' ({benchmark.ylabel})' if benchmark.ylabel else ''}:")
                print(_table(rows))
            if save_path:
                Path(save_path).mkdir(parents=True, exist_ok=True)
                lines = [",".join(rows[0]) if rows else ""] + [",".join(str(v) for v in row.values()) for row in rows]
                Path(save_path, f"{benchmark.plot_name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
            results.append(rows)
        return results


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "(no points)"
    lines = [list(rows[0])] + [[_cell(value) for value in row.values()] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Report]:
    """Decorates a function that measures one point of a benchmark: its run() measures all of them."""
    together = [benchmarks] if isinstance(benchmarks, Benchmark) else list(benchmarks)
    for benchmark in together:
        if len(benchmark.line_vals) != len(benchmark.line_names):
            raise ValueError(f"{benchmark.plot_name}: {len(benchmark.line_names)} line_names for "
                             f"{len(benchmark.line_vals)} line_vals, expected as many")
    return lambda fn: Report(fn, together)
