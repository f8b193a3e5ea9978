"""smelt.linalg on values of graphs: the results, gradients and errors of direct calls, and invalid arguments."""
import numpy as np
import pytest

import smelt
from smelt import linalg
from smelt.graph import Graph, InferenceSession, TensorType

rng = np.random.default_rng()


def matrices(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def positive(*shape):
    x = matrices(*shape)
    return x @ x.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)


CALLS = {
    "cholesky": (lambda a: linalg.cholesky(a, check_symmetric=True), lambda: [positive(2, 5, 5)]),
    "upper": (lambda a: linalg.cholesky(a, True, on_failure="ignore"), lambda: [positive(6, 6)]),
    "extended": (lambda a: linalg.cholesky(a, precision="extended"), lambda: [positive(6, 6)]),
    "qr": (linalg.qr, lambda: [matrices(2, 7, 4)]),
    "complete": (lambda a: linalg.qr(a, "complete"), lambda: [matrices(5, 3)]),
    "r": (lambda a: linalg.qr(a, "r"), lambda: [matrices(3, 5)]),
    "lu": (linalg.lu, lambda: [matrices(2, 4, 6)]),
    "lu_factor": (linalg.lu_factor, lambda: [matrices(6, 4)]),
    "inv": (linalg.inv, lambda: [positive(3, 4, 4)]),
    "solve": (lambda a, b: linalg.solve(a, b=b), lambda: [positive(2, 1, 4, 4), matrices(3, 4, 2)]),
    "vector": (linalg.solve, lambda: [positive(4, 4), matrices(4)]),
    "triangular": (lambda a, b: linalg.solve_triangular(a, b, upper=True), lambda: [positive(4, 4), matrices(2, 4, 3)]),
    "right": (lambda a, b: linalg.solve_triangular(a, b, right=True), lambda: [positive(4, 4), matrices(2, 3, 4)]),
    "lstsq": (linalg.lstsq, lambda: [matrices(7, 4), matrices(7, 2)]),
    "flat": (linalg.lstsq, lambda: [matrices(3, 5), matrices(3)]),
    "dot": (lambda x, y: linalg.dot(x, y, precision="extended"), lambda: [matrices(2, 1, 9), matrices(3, 9)])}


def types_of(arrays):
    return [TensorType(smelt.float32, x.shape) for x in arrays]


def listed(made):
    return list(made) if isinstance(made, (list, tuple)) else [made]


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_a_direct_call(name):
    f, make = CALLS[name]
    arrays = make()
    graph = Graph.of(lambda *x: tuple(listed(f(*(a * 2.0 for a in x)))), *types_of(arrays))
    made = InferenceSession().load(graph).run(arrays)
    wanted = listed(f(*(smelt.array(x) * 2.0 for x in arrays)))
    assert len(made) == len(wanted)
    for a, b in zip(made, wanted):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("name", ["cholesky", "qr", "inv", "solve", "triangular", "lstsq"])
def test_gradients_are_those_of_direct_calls(name):
    f, make = CALLS[name]
    arrays = make()

    def loss(*x):
        return sum(smelt.sum(smelt.sin(part)) for part in listed(f(*x)))
    gradient = smelt.grad(loss, argnums=tuple(range(len(arrays))))
    graph = Graph.of(lambda *x: tuple(listed(gradient(*x))), *types_of(arrays))
    for a, b in zip(InferenceSession().load(graph).run(arrays), listed(gradient(*map(smelt.array, arrays)))):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6, atol=1e-6)


def test_failures_are_those_of_direct_calls():
    model = InferenceSession().load(Graph.of(linalg.cholesky, TensorType(smelt.float32, (2, 2))))
    with pytest.raises(ValueError, match="cholesky: pivot 1 is -3, expected a positive number"):
        model.run([np.array([[1, 2], [2, 1]], np.float32)])


@pytest.mark.parametrize("f, shapes, words", [
    (linalg.cholesky, [(2, 3)], r"cholesky: a has shape \(2, 3\); expected square matrices"),
    (linalg.dot, [(3, 1), (3, 5)], r"dot: x has shape \(3, 1\) and y \(3, 5\); expected the same last dimension"),
    (lambda a: linalg.inv(a.astype("int32")), [(3, 3)], "inv: the dtype is int32; expected a dtype of floats"),
    (linalg.qr, [(3,)], r"qr: a has shape \(3,\); expected matrices"),
    (linalg.solve, [(3, 3), (4, 2)], r"solve: a has shape \(3, 3\) and b \(4, 2\); expected as many rows"),
    (linalg.solve, [(2, 3, 3), (5, 3, 2)], r"solve: dimensions \(2,\) and \(5,\) do not match"),
    (lambda a: linalg.cholesky(a, report=linalg.Report()), [(3, 3)], "cholesky: report is given for a value of a graph"),
    (lambda a: linalg.cholesky(a, on_failure="skip"), [(3, 3)], "cholesky: on_failure is 'skip'; expected one of error, jitter"),
    (lambda a: linalg.solve(a, a[0], on_failure="skip"), [(3, 3)], "solve: on_failure is 'skip'; expected one of error, jitter"),
    (lambda a: linalg.dot(a, a, precision="double"), [(3, 3)], "dot: precision is 'double'; expected native or extended"),
    (lambda a: linalg.qr(a, tolerance=-1), [(3, 3)], "qr: jitter is 0, tolerance -1 and attempts 0, expected numbers of at least 0"),
    (lambda a: linalg.solve(a, a.astype("float16")), [(3, 3)], "solve: the dtypes are float32 and float16"),
])
def test_invalid_arguments_are_refused(f, shapes, words):
    with pytest.raises(ValueError, match=words):
        Graph.of(f, *[TensorType(smelt.float32, shape) for shape in shapes])
