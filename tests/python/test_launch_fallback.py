"""smelt.launch: a reference behind a kernel that fails."""

import threading
import warnings

import numpy as np
import pytest
import smelt
from smelt.launch import (FallbackWarning, DebugFlags, KernelFlagError, NotFiniteError, check_finite,
                          with_fallback)


def raises(error):
    def kernel(*args, **kwargs):
        raise error
    return kernel


def test_a_kernel_that_succeeds_is_all_that_runs():
    function = with_fallback(lambda x, y=0: x + y, raises(AssertionError("the reference ran")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(2, y=3) == 5
    assert (function.calls, function.fallbacks, function.last_error) == (1, 0, None)


@pytest.mark.parametrize("error", [smelt.CompileError("it does not compile"), TimeoutError("it ran longer than 1 s"),
                                   smelt.DeviceLostError("reset it"), MemoryError("no room for 1 GiB"),
                                   KernelFlagError("never started", DebugFlags.decode([0] * 16))])
def test_a_failure_is_a_warning_that_says_why(error):
    def cholesky_kernel(a, lower=True):
        raise error

    def numpy_cholesky(a, lower=True):
        return ("reference", a, lower)

    function = with_fallback(cholesky_kernel, numpy_cholesky)
    with pytest.warns(FallbackWarning) as caught:
        assert function(5, lower=False) == ("reference", 5, False)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert str(caught[0].message) == (f"cholesky_kernel failed ({type(error).__name__}: {error}); the reference "
                                      "numpy_cholesky computes the result (fallback 1 of 1 calls)")
    assert function.last_error is error
    assert "cholesky_kernel with fallback to numpy_cholesky: 1 of 1 calls fell back" in repr(function)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(2), smelt.InterruptedError("as asked"),
                                   TypeError("x must be an array"),
                                   ValueError("grid"), IndexError("list"),
                                   AssertionError("no"), NameError("y")])
def test_mistakes_and_interrupts_pass_through(error):
    function = with_fallback(raises(error), lambda: "hidden")
    with pytest.raises(type(error)) as caught:
        function()
    assert caught.value is error and function.fallbacks == 0


def test_the_references_own_failure_passes_through():
    function = with_fallback(raises(TimeoutError("slow")), raises(TimeoutError("slow, too")))
    with pytest.warns(FallbackWarning), pytest.raises(TimeoutError, match="slow, too"):
        function()


def test_other_failures_on_request():
    function = with_fallback(raises(OSError("no device")), lambda: "reference", failures=(OSError,))
    with pytest.warns(FallbackWarning, match="no device"):
        assert function() == "reference"
    function = with_fallback(raises(smelt.Error("slow")), lambda: "reference", failures=(OSError,))
    with pytest.raises(smelt.Error):
        function()


def test_it_decorates():
    @with_fallback(reference_fn=np.abs, check_finite=True)
    def root(x):
        """The square root."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(x)

    assert root.__name__ == "root" and root.__doc__ == "The square root."
    assert root(4.0) == 2
    with pytest.warns(FallbackWarning, match="root failed .NotFiniteError: the result holds 1 values of 2 that are not "
                                             r"finite, the first, nan, at \[1\].; the reference absolute"):
        assert root(np.array([1.0, -9.0])).tolist() == [1, 9]
    assert (root.calls, root.fallbacks) == (2, 1)
    for wrong in (lambda: with_fallback(), lambda: with_fallback(root, 3), lambda: with_fallback(root)):
        with pytest.raises(TypeError, match="reference_fn"):
            wrong()


def test_values_that_are_not_finite():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bad = np.array([[1, 2], [3, np.inf]])
    for value in (bad, bad.astype(np.float16), bad.astype(np.complex64), bad.astype(ml_dtypes.bfloat16),
                  [np.zeros(3), bad], {"x": (1, bad)}, float("nan")):
        with pytest.raises(NotFiniteError):
            check_finite(value)
    with pytest.raises(NotFiniteError, match=r"the result\['q'\]\[1\] holds 1 values of 4 .* first, inf, at \[1, 1\]"):
        check_finite({"q": [np.zeros(3), bad]})
    for value in (None, 3, "nan", np.arange(4), np.zeros((0, 2)), [True, 2.5], np.array(["nan"])):
        check_finite(value)


def test_torch_and_mlx_arrays_are_looked_at():
    torch = pytest.importorskip("torch")
    bad = torch.tensor([1.0, float("nan")], requires_grad=True)
    for value in (bad, bad.to(torch.bfloat16)):
        with pytest.raises(NotFiniteError, match="1 values of 2"):
            check_finite(value)
    check_finite(torch.zeros(2, dtype=torch.bfloat16))


def test_mlx_bfloat16_is_looked_at():
    mx = pytest.importorskip("mlx.core")
    with pytest.raises(NotFiniteError):
        check_finite(mx.array([1.0, float("inf")]).astype(mx.bfloat16))
    check_finite(mx.array([1.0, 2.0]).astype(mx.bfloat16))


def test_threads_count_together():
    function = with_fallback(raises(TimeoutError("slow")), lambda: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=lambda: [function() for _ in range(200)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (function.calls, function.fallbacks) == (800, 800)


# ---- Failures of real kernels.


def doubled(source, **options):
    """A function that doubles an array by the kernel body."""
    kernel = smelt.metal_kernel(name="doubled", input_names=["x"], output_names=["out"], source=source)
    return lambda x: kernel(inputs=[x], grid=(x.size, 1, 1), threadgroup=(32, 1, 1), output_shapes=[x.shape],
                            output_dtypes=[x.dtype], **options)[0]


@pytest.mark.parametrize("source, why", [
    ("out[thread_position_in_grid.x] = 2 * y;", "undeclared identifier 'y'"),
    ("while (x[0] > 0) { x_count += 1; } out[0] = 1;", "x_count"),
    ("if (thread_position_in_grid.x == 1) threadgroup_barrier(mem_flags::mem_threadgroup); out[0] = 1;", "barrier"),
    ("out[thread_position_in_grid.x] = x[thread_position_in_grid.x + (1l << 44)];", "(?i)memory|fault|address"),
])
def test_a_kernels_failure_falls_back(source, why):
    x = np.arange(40, dtype=np.float32)
    function = with_fallback(doubled(source), lambda x: 2 * x)
    with pytest.warns(FallbackWarning, match=why):
        assert (function(x) == 2 * x).all()
    # The device is as good as before.
    assert (np.asarray(doubled("uint i = thread_position_in_grid.x; out[i] = 2 * x[i];")(x)) == 2 * x).all()


def test_a_kernel_that_never_ends_falls_back():
    x = np.arange(1, 41, dtype=np.float32)
    endless = doubled("float s = 0; while (x[0] > 0) s += x[1]; out[0] = s;", timeout=0.2)
    function = with_fallback(endless, lambda x: 2 * x)
    with pytest.warns(FallbackWarning, match="TimeoutError"):
        assert (function(x) == 2 * x).all()


def test_wrong_arguments_do_not_fall_back():
    kernel = smelt.metal_kernel(name="k", input_names=["x"], output_names=["out"], source="out[0] = x[0];")
    function = with_fallback(kernel, raises(AssertionError("the reference ran")))
    with pytest.raises((TypeError, ValueError)):
        function(inputs=[], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(1,)], output_dtypes=[smelt.float32])
    with pytest.raises((TypeError, ValueError)):
        function(inputs=[1.0], grid=(1, 1, 1), threadgroup=(2048, 1, 1), output_shapes=[(1,)],
                 output_dtypes=[smelt.float32])
