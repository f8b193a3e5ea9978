"""What all Python tests share."""
import functools
import importlib
import os
import zlib

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FULL = "SMELT_TEST_FULL" in os.environ  # as in make check-long


def is_in_part(item, of):
    """Whether a test is in the part, one of `of`, that its name chooses."""
    return zlib.crc32(item.name.encode()) % of == 0


def pytest_collection_modifyitems(config, items):
    """Deselects the tests that `make check` leaves to make check-long: those with the scalar engine as `engine` or `device`,
    except for an eighth, since quick code (below) is that engine's code; and every second combination of two or more
    parameters, so that each value of each parameter is still tested."""
    numbers: dict = {}

    def number(item, names):
        """The number of the item's values of these parameters, in the order in which they first occur."""
        seen = numbers.setdefault((item.function, names), {})
        return seen.setdefault(repr([item.callspec.params[name] for name in names]), len(seen))

    def choices(item):
        """For each `parametrize` mark, its parameters and the number of their values."""
        words = [mark.args[0] for mark in item.iter_markers("parametrize")]  # "a, b", or ["a", "b"]
        names = [tuple(map(str.strip, each.split(","))) if isinstance(each, str) else tuple(each) for each in words]
        return [(each, number(item, each)) for each in names if each[0] not in ("engine", "device")]

    def is_left_out(item):
        engines = {item.callspec.params.get(name) for name in ("engine", "device")}
        several = [place for names, place in choices(item) if len(numbers[item.function, names]) > 1]
        scalar = "cpu-scalar" in engines and not is_in_part(item, 8) and "scalar_engine" not in item.name
        return scalar or (len(several) > 1 and sum(several) % 2 == 1)

    varied = [] if FULL else [item for item in items if hasattr(item, "callspec")]
    for item in varied:
        choices(item)
    left_out = [item for item in varied if is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    without = set(left_out)
    items[:] = [item for item in items if item not in without]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Fifteen of sixteen tests run quick code, which has the same results and takes half the time to compile. The others, and all
    tests of make check-long, run the best code. In make check, modules with QUICK run only quick code, since each of their
    tests would take seconds to compile."""
    in_part = is_in_part(item, 16) and not hasattr(item.module, "QUICK")
    os.environ["SMELT_TIERS"] = "0" if FULL or in_part else "quick"


@pytest.fixture(scope="session")
def build_folder():
    """The build folder that is tested."""
    return os.environ.get("SMELT_BUILD", os.path.join(ROOT, "build"))


@pytest.fixture(scope="session")
def source_folder():
    """The root of the source tree."""
    return ROOT


@pytest.fixture(scope="module")
def example(request, source_folder):
    """The example that the module test_example_NAME is about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(f"{source_folder}/examples/python")
        return importlib.import_module(request.module.__name__.removeprefix("test_example_"))


@pytest.fixture(params=["cpu", "cpu-scalar"])
def engine(request, monkeypatch):
    """Both engines of the CPU, one after the other: functions of smelt.operations then run on this device."""
    from smelt import operations, random
    for name in ("elementwise", "nn", "quantised", "reductions", "sequence", "shapes", "signal", "sorting"):
        module = getattr(operations, name, None)
        if hasattr(module, "apply"):
            monkeypatch.setattr(module, "apply", functools.partial(module.apply, device=request.param))
    monkeypatch.setattr(random, "default_device", lambda: request.param)
    return request.param


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    """A file without a test in it, and nothing skipped that says why, is a mistake, not a skipped test."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not terminalreporter.stats.get("skipped"):
        terminalreporter.section("no test was found, and none says that it is skipped")
        config.pluginmanager.get_plugin("terminalreporter")._session.exitstatus = pytest.ExitCode.TESTS_FAILED
