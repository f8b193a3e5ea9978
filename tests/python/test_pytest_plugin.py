"""pytest --smelt-check: tests fail where a kernel that they launch has findings."""
import os
import subprocess
import sys

import pytest

TESTS = '''
import numpy as np
import pytest
import smelt

def run(shift):
    kernel = smelt.metal_kernel("moved", ["inp"], ["out"],
                                f"uint i = thread_position_in_grid.x; out[i] = inp[i + {shift}] + inp[i];")
    return kernel(inputs=[np.ones(8, dtype=np.float32)], output_shapes=[(8,)], output_dtypes=[smelt.float32], grid=(8, 1, 1),
                  threadgroup=(8, 1, 1))

def test_right():
    run(0)

def test_wrong():
    run(1)

def test_wrapped():
    try:
        run(1)
    except smelt.Error as error:
        raise RuntimeError("the layer failed") from error

@pytest.mark.smelt_unchecked
def test_left_alone():
    with pytest.raises(smelt.FaultError):
        run(1)
'''


@pytest.fixture
def run_tests(tmp_path):
    (tmp_path / "test_kernels.py").write_text(TESTS)

    def run(*options):
        environment = {**os.environ, "PYTEST_ADDOPTS": "", "SMELT_BOUNDS": "1"}
        environment.pop("SMELT_CHECK", None)
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "smelt.pytest_plugin", "-p", "no:cacheprovider", *options],
                              cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.stdout

    return run


def test_findings_fail_the_test(run_tests):
    text = run_tests("--smelt-check")
    assert "2 failed, 2 passed" in text
    assert text.count("out-of-bounds (SM001): thread (7, 0, 0) of threadgroup (0, 0, 0) reads inp[8], but 'inp' has 8 elements") >= 2
    assert "smelt check: 2 findings" in text


def test_nothing_changes_without_the_option(run_tests):
    text = run_tests()
    assert "smelt check" not in text
    assert "CheckError" not in text
