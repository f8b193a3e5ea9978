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
    """What `make check` leaves to make check-long. Of `engine` and `device`, which are both of the CPU's, the scalar one, except
    in an eighth of the tests, as quick code is its code (below); and every second combination of two and more parameters, so
    that each value of each is tested."""
    def is_left_out(item):
        if FULL or not hasattr(item, "callspec"):
            return False
        engines = [item.callspec.params[name] for name in ("engine", "device") if name in item.callspec.params]
        others = [index for name, index in item.callspec.indices.items() if name not in ("engine", "device")]
        return ("cpu-scalar" in engines and not is_in_part(item, 8)) or (len(others) > 1 and sum(others) % 2 == 1)

    config.hook.pytest_deselected(items=[item for item in items if is_left_out(item)])
    items[:] = [item for item in items if not is_left_out(item)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Seven of eight tests run quick code, which has the same results and takes half the time to compile. The others, and
    all in make check-long, run the best, except in modules with QUICK: the best code of theirs takes seconds each."""
    in_part = is_in_part(item, 8) and not hasattr(item.module, "QUICK")
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
