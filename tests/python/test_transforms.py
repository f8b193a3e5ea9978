"""Derivatives: against differences of functions computed in double precision, nested, and through custom functions."""
import gc
import threading
import typing

import numpy as np
import pytest
import smelt

rng = np.random.default_rng()


def differences(function, arguments, place, step=1e-5):
    """The gradient of a scalar NumPy function by one argument, by central differences in double precision."""
    arguments = [np.array(a, dtype=np.float64) for a in arguments]
    gradient = np.zeros_like(arguments[place])
    for i in np.ndindex(gradient.shape):
        ends = []
        for sign in (1, -1):
            moved = [a.copy() for a in arguments]
            moved[place][i] += sign * step
            ends.append(function(*moved))
        gradient[i] = (ends[0] - ends[1]) / (2 * step)
    return gradient


FUNCTIONS: dict[str, tuple[typing.Callable, list]] = {
    "elementwise": (lambda m, x, y: m.sum(m.exp(x) * m.sin(y) / (1 + x * x)), [(3, 4), (4,)]),
    "broadcast": (lambda m, x, y: m.sum((x[:, None] - y) ** 2 * x[:, None]), [(5,), (3,)]),
    "matmul": (lambda m, x, y: m.sum(m.tanh(m.matmul(x, y)) ** 2), [(2, 3, 4), (4, 5)]),
    "softmax": (lambda m, x, y: m.sum(y * m.exp(x - m.max(x, 1, keepdims=True)) / m.sum(m.exp(x - m.max(x, 1, keepdims=True)),
                                                                                        1, keepdims=True)), [(3, 5), (5,)]),
    "gather": (lambda m, x, y: m.sum(x[np.array([0, 2, 2]), np.array([1, 1, 3])] * y) + m.sum(x[::2, 1:]), [(3, 4), (3,)]),
    "shapes": (lambda m, x, y: m.sum(m.concatenate([m.reshape(x, (4, 3)), y], 1).T[1:3] ** 3), [(3, 4), (4, 2)]),
    "where": (lambda m, x, y: m.sum(m.where(x > 0, x * y, -x)), [(7,), (7,)]),
    "means": (lambda m, x, y: m.mean(m.var(x, 0) * y) + m.prod(y), [(6, 3), (3,)]),
    "cumulative": (lambda m, x, y: m.sum(m.cumsum(x, 1) * y), [(2, 5), (5,)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_differences(name):
    function, shapes = FUNCTIONS[name]
    values = [rng.uniform(0.2, 1.2, shape) * rng.choice([-1, 1], shape) for shape in shapes]
    arrays = [smelt.array(v) for v in values]

    def smelts(x, y):
        return function(smelt, x, y)
    value, gradients = smelt.value_and_grad(smelts, (0, 1))(*arrays)
    np.testing.assert_allclose(value.item(), function(np, *values), rtol=1e-4, atol=1e-4)
    tangents = [smelt.array(rng.standard_normal(shape)) for shape in shapes]
    along = 0.0
    for place in (0, 1):
        wanted = differences(lambda x, y: function(np, x, y), values, place)
        np.testing.assert_allclose(np.asarray(gradients[place]), wanted, rtol=2e-3, atol=2e-3)
        along += float((wanted * np.asarray(tangents[place])).sum())
    made = smelt.jvp(smelts, arrays, tangents)[1][0].item()
    assert abs(made - along) <= 3e-3 * (1 + abs(along))


def test_gradients_of_gradients():
    x = smelt.array(1.5)
    assert abs(smelt.grad(smelt.grad(smelt.grad(lambda t: t**4)))(x).item() - 24 * 1.5) < 1e-3
    inner = smelt.grad(lambda t, y: smelt.sin(t) * y * t)
    mixed = smelt.grad(lambda y: inner(x, y) * y)(smelt.array(2.0)).item()
    assert abs(mixed - 2 * 2 * (np.cos(1.5) * 1.5 + np.sin(1.5))) < 1e-4


def test_trees_argnums_argnames():
    def loss(parameters, x, scale=None):
        return ((parameters["w"][0] * x + parameters["b"]) * (1 if scale is None else scale)).sum(), "aux"
    parameters = {"w": [smelt.array([1.0, 2.0])], "b": smelt.array(3.0)}
    x = smelt.array([5.0, 7.0])
    (value, aux), gradient = smelt.value_and_grad(loss)(parameters, x)
    assert value.item() == 25 and aux == "aux"
    assert gradient["w"][0].tolist() == [5, 7] and gradient["b"].item() == 2
    both = smelt.grad(loss, argnums=[0, 1])(parameters, x)
    assert both[1].tolist() == [1, 2]
    positional, named = smelt.grad(loss, argnums=1, argnames="scale")(parameters, x, scale=smelt.array(2.0))
    assert positional.tolist() == [2, 4] and named["scale"].item() == 25
    assert smelt.grad(loss, argnames=["scale"])(parameters, x, scale=smelt.array(2.0))[1]["scale"].item() == 25


square = smelt.metal_kernel(
    name="square_of", input_names=["a"], output_names=["o"],
    source="uint i = thread_position_in_grid.x; o[i] = a[i] * a[i];")


def squared(x):
    return square(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(x.size, 1, 1), threadgroup=(8, 1, 1))[0]


def make_custom():
    @smelt.custom_function
    def scaled_square(x, y):
        return squared(x) * y

    @scaled_square.vjp
    def rule(primals, cotangent, output):
        x, y = primals
        assert np.allclose(np.asarray(output), np.asarray(x) ** 2 * np.asarray(y))
        return 2 * cotangent * x * y, cotangent * x * x

    return scaled_square


def test_custom_function():
    x, y = smelt.array([1.0, 2.0, 3.0]), smelt.array([4.0, 5.0, 6.0])
    f = make_custom()
    assert np.asarray(f(x, y)).tolist() == [4, 20, 54]
    gradients = smelt.grad(lambda a, b: smelt.sum(smelt.sin(f(a, b))), (0, 1))(x, y)
    cosine = np.cos([4.0, 20.0, 54.0])
    np.testing.assert_allclose(np.asarray(gradients[0]), cosine * 2 * [4, 10, 18], rtol=1e-4)
    np.testing.assert_allclose(np.asarray(gradients[1]), cosine * [1, 4, 9], rtol=1e-4)
    second = smelt.grad(lambda a: smelt.sum(smelt.grad(lambda b: smelt.sum(f(b, y)))(a)))(x)
    assert np.asarray(second).tolist() == [8, 10, 12]  # the rule is made of operations, and differentiated
    assert "vjp" in repr(f)


def test_custom_functions_may_differentiate_inside():
    """What is differentiated there is not recorded by the caller's transformation."""
    f = smelt.custom_function(lambda x: smelt.grad(lambda y: smelt.sum(smelt.square(y)))(x))
    f.vjp(lambda primals, cotangents, outputs: 7 * cotangents)
    x = smelt.array([1.0, -3.0])
    assert f(x).tolist() == [2, -6]
    value, gradient = smelt.value_and_grad(lambda x: smelt.sum(f(x)))(x)
    assert value.item() == -4 and gradient.tolist() == [7, 7]


def test_custom_function_of_one_argument_and_several_results():
    @smelt.custom_function
    def both(x):
        return squared(x), x + 1

    @both.vjp
    def rule(primal, cotangents, outputs):
        assert isinstance(primal, smelt.array) and isinstance(cotangents, tuple) and len(outputs) == 2
        return 2 * primal * cotangents[0] + 10 * cotangents[1]

    x = smelt.array([1.0, 2.0])
    gradient = smelt.grad(lambda t: smelt.sum(both(t)[0]) + 3 * smelt.sum(both(t)[1]))(x)
    assert gradient.tolist() == [32, 34]


def test_custom_jvp_and_vmap():
    f = make_custom()

    @f.jvp
    def forward(primals, tangents):
        return 2 * primals[0] * primals[1] * tangents[0] + 100 * tangents[1]

    @f.vmap
    def batched(inputs, axes):
        assert axes == (0, None)
        return f(inputs[0], smelt.broadcast_to(inputs[1], inputs[0].shape)), 0

    x, y = smelt.array([1.0, 2.0]), smelt.array([3.0, 4.0])
    _, (tangent,) = smelt.jvp(f, [x, y], [smelt.ones_like(x), smelt.ones_like(y)])
    assert tangent.tolist() == [106, 116]
    assert np.asarray(smelt.vmap(f, in_axes=(0, None))(smelt.stack([x, x + 1]), y)).tolist() == [[3, 16], [12, 36]]


def test_vmap_is_a_loop_over_slices():
    a, b = rng.standard_normal((3, 4, 5)).astype(np.float32), rng.standard_normal((5, 2, 3)).astype(np.float32)
    made = smelt.vmap(lambda x, y: x @ y, in_axes=(0, 2), out_axes=1)(smelt.array(a), smelt.array(b))
    wanted = np.stack([a[i] @ b[:, :, i] for i in range(3)], 1)
    np.testing.assert_allclose(np.asarray(made), wanted, rtol=1e-4, atol=1e-4)


def test_a_kernel_has_no_derivative_of_its_own():
    x = smelt.array([1.0, 2.0])
    with pytest.raises((ValueError, NotImplementedError, smelt.Error), match="square_of"):
        smelt.grad(lambda t: smelt.sum(squared(t)))(x)
    assert smelt.grad(lambda t: smelt.sum(t * smelt.stop_gradient(squared(t))))(x).tolist() == [1, 4]
    bound = square.bind(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(2, 1, 1), threadgroup=(2, 1, 1))
    with pytest.raises((ValueError, NotImplementedError, smelt.Error), match="square_of"):
        smelt.grad(lambda t: smelt.sum(bound(t)[0]))(x)


def test_errors():
    x = smelt.array([1.0, 2.0])
    with pytest.raises(ValueError, match="scalar"):
        smelt.grad(lambda t: t * 2)(x)
    with pytest.raises(ValueError, match="float cannot be"):
        smelt.grad(lambda t: t * 2)(1.0)
    with pytest.raises(ValueError, match="cotangents 0 has shape"):
        smelt.vjp(lambda t: t * 2, [x], [smelt.ones((3,))])
    with pytest.raises(ValueError, match="argnums"):
        smelt.grad(lambda t: t.sum(), argnums=1)(x)
    broken = smelt.custom_function(lambda t: t * 1)
    broken.vjp(lambda primals, cotangents, outputs: {}[1])
    with pytest.raises(KeyError):
        smelt.grad(lambda t: smelt.sum(broken(t)))(x)
    broken.vjp(lambda primals, cotangents, outputs: (cotangents, cotangents))
    with pytest.raises(ValueError, match="2 gradients; expected 1"):
        smelt.grad(lambda t: smelt.sum(broken(t)))(x)
    assert smelt.grad(lambda t: smelt.sum(t * t))(x).tolist() == [2, 4]  # nothing is left open


def test_checkpoint():
    calls = []

    @smelt.checkpoint
    def f(x, y):
        calls.append(1)
        return smelt.exp(x) * y

    x, y = smelt.array([0.5]), smelt.array([2.0])
    gradients = smelt.grad(lambda a, b: smelt.sum(f(a, b)), (0, 1))(x, y)
    np.testing.assert_allclose([g.item() for g in gradients], [2 * np.exp(0.5), np.exp(0.5)], rtol=1e-5)
    assert len(calls) == 2


def test_threads_have_tapes_of_their_own():
    wrong = []

    def work(factor):
        for _ in range(20):
            made = smelt.grad(lambda t: smelt.sum(t * t * factor))(smelt.array([1.0, 2.0])).tolist()
            if made != [2 * factor, 4 * factor]:
                wrong.append(made)
    threads = [threading.Thread(target=work, args=(float(i + 1),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_is_kept():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    f, x = make_custom(), smelt.ones((1000,))
    for round in range(600):
        smelt.grad(lambda t: smelt.sum(f(t, t) * smelt.exp(t)))(x)
        if round == 100:
            gc.collect()
            before = resident()
    gc.collect()
    assert resident() - before < 4 << 20
