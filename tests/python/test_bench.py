"""smelt.bench: times, quantiles, tables."""

import time

import pytest
import smelt
from smelt.bench import Benchmark, do_bench, perf_report


def test_times_are_those_of_the_function():
    assert 10 <= do_bench(lambda: time.sleep(0.01), warmup=1, rep=30, return_mode="min") < 1000
    times = do_bench(lambda: time.sleep(0.001), warmup=1, rep=20, return_mode="all")
    assert len(times) >= 1 and all(value >= 1 for value in times)
    low, middle, high = do_bench(lambda: smelt.ones((10,)) + 1, rep=5, quantiles=[0.2, 0.5, 0.8])
    assert 0 < low <= middle <= high
    assert isinstance(do_bench(lambda: None, rep=1, quantiles=[0.5]), float)


def test_calls_that_take_long_are_timed_once_more():
    calls = []
    do_bench(lambda: calls.append(time.sleep(0.05)), warmup=1, rep=1)
    assert len(calls) == 3


@pytest.mark.parametrize("settings, message", [({"return_mode": "sum"}, "return_mode is 'sum', expected one of min, max"),
                                               ({"quantiles": [2]}, r"quantiles are \[2\], expected numbers from 0 to 1")])
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        do_bench(lambda: None, **settings)


def report(**changes):
    settings = {"x_names": ["m", "n"], "x_vals": [2, (3, 4)], "line_arg": "way", "line_vals": ["+", "*"],
                "line_names": ["sum", "product"], "plot_name": "numbers", "args": {"k": 10}, "ylabel": "units"}

    @perf_report(Benchmark(**settings | changes))
    def measure(m, n, way, k):
        return (m + n + k, 0, 1) if way == "+" else m * n * k

    return measure


def test_every_line_is_measured_at_every_point(capsys, tmp_path):
    measure = report()
    rows = measure.run(print_data=True, save_path=str(tmp_path))
    assert rows == [[{"m": 2, "n": 2, "sum": 14, "product": 40}, {"m": 3, "n": 4, "sum": 17, "product": 120}]]
    assert capsys.readouterr().out.splitlines() == ["numbers (units):", "m  n  sum  product", "2  2   14       40",
                                                    "3  4   17      120"]
    assert (tmp_path / "numbers.csv").read_text() == "m,n,sum,product\n2,2,14,40\n3,4,17,120\n"
    assert measure(1, 2, "*", 3) == 6


def test_benchmarks_are_checked():
    with pytest.raises(ValueError, match="numbers: 1 line_names for 2 line_vals, expected as many"):
        report(line_names=["one"])
    with pytest.raises(ValueError, match=r"numbers: point \(1, 2, 3\) has 3 parts, expected one for each of m, n"):
        report(x_vals=[(1, 2, 3)]).run()
