"""pytest --smelt-check: every kernel that a test launches on a CPU runs checked (docs/checking.md).

It needs nothing of the tests: also kernels launched by way of smelt.mlx and smelt.torch are checked. A test whose kernel
has findings fails with smelt.CheckError, and its report lists them."""

import os
from collections.abc import Iterator

import pytest

import smelt

VARIABLE = "SMELT_CHECK"
COUNT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --smelt-check."""
    parser.getgroup("smelt").addoption("--smelt-check", action="store_true",
                                       help="run the kernels of tests checked, and fail those with findings")


def pytest_configure(config: pytest.Config) -> None:
    """Names the marker."""
    config.addinivalue_line("markers", "smelt_unchecked: --smelt-check leaves this test's kernels alone")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Sets the variable around a test."""
    if not item.config.getoption("smelt_check") or item.get_closest_marker("smelt_unchecked"):
        yield
        return
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "1"
    yield
    if before is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = before


def described(finding: smelt.Finding) -> str:
    """As the command smelt check prints it, without the text of the line."""
    place = f"{finding.file}:{finding.line}:{finding.column}: " if finding.line else ""
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    return f"{place}{finding.kind} ({finding.code}): {finding.message}{times}"


def findings_of(error: BaseException | None) -> list[smelt.Finding]:
    """Those of the exception, or of one that it was raised from."""
    while error is not None and not isinstance(error, smelt.CheckError):
        error = error.__cause__ or error.__context__
    return list(error.findings) if error is not None else []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Adds the findings to the report of a test that they have failed."""
    outcome = yield
    if not item.config.getoption("smelt_check") or call.excinfo is None:
        return
    findings = findings_of(call.excinfo.value)
    if findings:
        report = outcome.get_result()  # type: ignore[attr-defined]
        report.sections.append(("smelt check", "\n".join(described(finding) for finding in findings)))
        item.config.stash[COUNT] = item.config.stash.get(COUNT, 0) + len(findings)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Counts them at the end."""
    count = config.stash.get(COUNT, 0)
    if count:
        terminalreporter.write_line(f"smelt check: {count} finding{'' if count == 1 else 's'}")
