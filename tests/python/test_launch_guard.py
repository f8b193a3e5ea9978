"""smelt.launch.Guard with kernels that hang, divide by zero, write NaN, report an error, or whose inputs are refused: first
without help, then with another device, then with a fallback."""

import warnings

import numpy as np
import pytest
import smelt
from smelt.launch import FallbackWarning, Guard

# Four elements and flags, of one thread.
DOUBLED = "for (uint i = 0; i < 4; i++) out[i] = 2 * x[i]; flags[0] = 1; flags[15] = 1;"
SICK = {
    "hangs": ("float s = 0; while (x[0] > 0) s += x[1]; out[0] = s; " + DOUBLED, smelt.TimeoutError, "time-out"),
    "divides by zero": (DOUBLED + " out[1] = x[0] / (x[1] - x[1]);", smelt.HealthError, "not finite, the first, inf, as element 1"),
    "divides zero by zero": (DOUBLED + " out[3] = (x[0] - x[0]) / (x[1] - x[1]);", smelt.HealthError, "not finite, the first, -?nan"),
    "writes NaN": (DOUBLED + " out[2] = NAN;", smelt.HealthError, "not finite, the first, nan, as element 2"),
    "reports an error": (DOUBLED + " flags[13] = 7; flags[14] = 3; flags[15] = 0;", smelt.HealthError,
                         "error 7, a column of zeros, with the value 3"),
    "does not finish": (DOUBLED + " flags[15] = 0;", smelt.HealthError, "did not finish"),
}
X = np.array([1, 2, 3, 4], np.float32)
CALL = dict(grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(4,), (16,)], output_dtypes=[smelt.float32] * 2, init_value=0)


def kernel_of(source):
    return smelt.metal_kernel(name="sick", input_names=["x"], output_names=["out", "flags"], source=source)


def guard_of(name, **more):
    return Guard(timeout=0.5 if name == "hangs" else 0, flags=1, codes={7: "a column of zeros"}, finite=True, **more)


@pytest.mark.parametrize("name", SICK)
def test_the_failure_is_raised_or_the_fallback_computes(name):
    source, error, words = SICK[name]
    kernel, guard = kernel_of(source), guard_of(name)
    with pytest.raises(error, match=words):
        guard.run(kernel, [X], **CALL)
    with_fallback = guard_of(name, devices=["cpu-scalar"], fallback=lambda x: (2 * x, np.ones(16, np.float32)))
    with pytest.warns(FallbackWarning, match=words + ".*; the fallback computes the result"):
        out, _ = with_fallback.run(kernel, [X], **CALL)
    np.testing.assert_array_equal(np.asarray(out), 2 * X)
    report = with_fallback.report
    assert report.fell_back and report.attempts == 2 and report.device == "cpu-scalar"
    # The device is as good as before.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out, _ = Guard(flags=1, finite=True).run(kernel_of(DOUBLED), [X], **CALL)
    np.testing.assert_array_equal(np.asarray(out), 2 * X)


@pytest.mark.parametrize("name", SICK)
def test_another_device_may_do_it(name):
    source, _, words = SICK[name]
    sick, good, tried = kernel_of(source), kernel_of(DOUBLED), []

    def kernel(inputs, device=None, **call):
        tried.append(device)
        if device != "cpu-scalar":
            return sick(inputs=inputs, device=device, **call)
        call.pop("timeout", None)  # what is to end has all the time it needs
        return good(inputs=inputs, device=device, **call)

    guard = guard_of(name, devices=["cpu", "cpu-scalar"])
    if name == "hangs":
        guard.devices = ["cpu-scalar"]  # one time-out is enough
    with pytest.warns(FallbackWarning, match=words + ".*; it was run on cpu-scalar"):
        out, _ = guard.run(kernel, [X], device="cpu", **CALL)
    np.testing.assert_array_equal(np.asarray(out), 2 * X)
    assert tried == ["cpu", *guard.devices] and not guard.report.fell_back and guard.report.attempts == len(tried)


def test_a_precondition_refuses_before_the_run():
    def at_most_three(x):
        if len(x) > 3:
            raise smelt.HealthError(f"x has {len(x)} elements, expected at most 3")

    def kernel(**call):
        raise AssertionError("the kernel ran")

    with pytest.raises(smelt.HealthError, match="x has 4 elements, expected at most 3"):
        Guard(precondition=at_most_three, devices=["cpu-scalar"]).run(kernel, [X], **CALL)
    guard = Guard(precondition=at_most_three, fallback=lambda x: (x, x))
    with pytest.warns(FallbackWarning, match="x has 4 elements.*; the fallback computes the result"):
        guard.run(kernel, [X], **CALL)
    assert guard.report.attempts == 0 and guard.report.fell_back and guard.report.status.endswith("HEALTH")


def test_mistakes_pass_through():
    guard = Guard(fallback=lambda x: pytest.fail("the fallback ran"), devices=["cpu-scalar"])
    with pytest.raises((TypeError, ValueError)):
        guard.run(kernel_of(DOUBLED), [X], **{**CALL, "threadgroup": (4096, 1, 1)})
