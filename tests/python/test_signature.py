"""inspect.signature of what can be called, also of what is written in C."""
import inspect

import numpy as np
import pytest

import smelt

TEXT = """
kernel void scale(device float *x [[buffer(0)]], constant float &by [[buffer(1)]], device float *spare [[buffer(2)]],
                  threadgroup float *shared [[threadgroup(0)]], uint i [[thread_position_in_grid]]) { x[i] *= by; }
kernel void gap(device float *x [[buffer(0)]], constant float &by [[buffer(3)]],
                uint i [[thread_position_in_grid]]) { x[i] *= by; }
kernel void named(device float *lambda [[buffer(0)]], uint i [[thread_position_in_grid]]) { lambda[i] = 1; }
"""


@pytest.fixture(scope="module")
def kernel():
    return smelt.metal_kernel(name="copied", input_names=["a"], output_names=["out"],
                              source="out[thread_position_in_grid.x] = a[thread_position_in_grid.x];")


def test_of_a_kernel(kernel):
    signature = inspect.signature(kernel)
    arguments = {"inputs": [1], "output_shapes": [(1,)], "output_dtypes": ["float32"], "grid": (1, 1, 1),
                 "threadgroup": (1, 1, 1)}
    assert signature.bind(**arguments)
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in signature.parameters.values())
    assert [name for name, p in signature.parameters.items() if p.default is p.empty] == ["grid", "threadgroup"]
    with pytest.raises(TypeError):
        signature.bind(**arguments, nothing=1)
    # Every keyword of the signature is one that the call knows.
    x = np.ones(1, np.float32)
    given = {name: None for name, p in signature.parameters.items() if p.default is not p.empty}
    kernel(**{**given, **arguments, "inputs": [x]})


def test_of_a_bound_kernel(kernel):
    bound = kernel.bind(inputs=[np.ones(1, np.float32)], output_shapes=[(1,)], output_dtypes=["float32"], grid=(1, 1, 1), threadgroup=(1, 1, 1))
    assert list(inspect.signature(bound).parameters) == ["inputs", "out", "stream"]
    assert inspect.signature(kernel.bind).parameters["out"].default is None


def test_of_functions_of_a_library():
    lib = smelt.library(TEXT)
    signature = inspect.signature(lib.scale)
    assert list(signature.parameters)[:4] == ["x", "by", "spare", "threads"]
    assert signature.parameters["x"].default is inspect.Parameter.empty
    assert signature.parameters["spare"].default is None  # which the code does not use
    x = np.ones(3, np.float32)
    bound = signature.bind(x, 2.0, threads=3)
    lib.scale(*bound.args, **bound.kwargs)
    assert x.tolist() == [2, 2, 2]
    assert inspect.signature(lib.gap).parameters["by"].kind is inspect.Parameter.KEYWORD_ONLY
    general = "(*arguments, threads=None, groups=None"
    assert str(inspect.signature(lib.named)).startswith(general)
    assert str(inspect.signature(smelt.library("kernel void bad(device int *x [[buffer(0)]]) { y; }").bad)).startswith(general)


def test_of_custom_functions_and_transforms():
    @smelt.custom_function
    def f(x, y=2):
        return x

    for made in (f, smelt.grad(f), smelt.value_and_grad(f), smelt.vmap(f)):
        assert str(inspect.signature(made)) == "(x, y=2)"


def test_everything_that_can_be_called_has_one():
    """But exceptions, and classes that nobody calls."""
    missing = []
    for name in smelt.__all__:
        value = getattr(smelt, name)
        if not callable(value) or name in ("Kernel", "Library") or (isinstance(value, type) and issubclass(value, Exception)):
            continue
        try:
            inspect.signature(value)
        except (TypeError, ValueError):
            missing.append(name)
    assert missing == []
