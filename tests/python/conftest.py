"""What all Python tests share."""
import functools
import importlib
import os

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


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
