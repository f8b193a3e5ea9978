"""smelt.jax: kernels and functions of smelt under JAX's jit, grad and vmap, against JAX and NumPy."""
import threading

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402

import smelt  # noqa: E402
import smelt.jax  # noqa: E402

RNG = np.random.default_rng(18)
# Otherwise, JAX's own products on a GPU round their factors to 10 bits.
jax.config.update("jax_default_matmul_precision", "highest")
I = "uint i = thread_position_in_grid.x;\n"


def normal(*shape, dtype=np.float32):
    return jnp.asarray(RNG.standard_normal(shape), dtype)


def scaled(factor=3):
    """A kernel with a template parameter, for any number of elements."""
    kernel = smelt.jax.metal_kernel("scaled", ["x", "shift"], ["out"], I + "out[i] = T(float(x[i]) * F + shift);")

    def call(x, shift=0.0):
        return kernel(inputs=[x, shift], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(x.size, 1, 1),
                      threadgroup=(min(x.size, 64), 1, 1), template=[("T", x.dtype), ("F", factor)])[0]
    return call


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16, jnp.bfloat16, jnp.int32, jnp.uint8])
def test_kernel_runs_in_and_outside_of_jit(dtype):
    x = jnp.arange(35).reshape(5, 7).astype(dtype)
    f = scaled(2)
    wanted = np.asarray(x).astype(np.float32) * 2 + 1
    for g in (f, jax.jit(f)):
        made = g(x, 1.0)
        assert made.dtype == x.dtype and made.shape == x.shape
        assert np.array_equal(np.asarray(made).astype(np.float32), wanted)
    assert np.array_equal(jax.jit(lambda x: f(x + 1, x.astype(jnp.float32)[0, 0]) - 1)(x).astype(jnp.float32),
                          (np.asarray(x).astype(np.float32) + 1) * 2 - 1)


def test_kernel_has_several_outputs_and_an_initial_value():
    kernel = smelt.jax.metal_kernel("split", ["x"], ["low", "count"],
                                    I + "low[i] = min(x[i], 0.5f);\nif (x[i] > 0.5f) count[i % 4] = i;")
    x = jnp.linspace(0, 1, 32)
    low, count = jax.jit(lambda x: kernel(inputs=[x], output_shapes=[(32,), (4,)], output_dtypes=[jnp.float32, jnp.int32],
                                          grid=(32, 1, 1), threadgroup=(32, 1, 1), init_value=7))(x * 0.5)
    assert np.allclose(low, np.minimum(x * 0.5, 0.5)) and np.array_equal(count, np.full(4, 7))


def test_kernel_is_mapped_and_scanned():
    f, x = scaled(), normal(4, 3, 5)
    assert np.allclose(jax.vmap(f)(x), x * 3)
    assert np.allclose(jax.vmap(f, in_axes=2)(x), np.moveaxis(np.asarray(x), 2, 0) * 3)
    assert np.allclose(jax.jit(jax.vmap(jax.vmap(f)))(x), x * 3)
    total, _ = jax.lax.scan(lambda carry, row: (carry + f(row), None), jnp.zeros(5), x[0])
    assert np.allclose(total, (x[0] * 3).sum(0), atol=1e-5)


def test_kernel_gets_a_derivative_from_jax():
    f, g = scaled(3), scaled(3)

    @jax.custom_vjp
    def triple(x):
        return f(x)

    triple.defvjp(lambda x: (triple(x), None), lambda _, c: (g(c),))
    x = normal(6)
    assert np.allclose(jax.jit(jax.grad(lambda x: (triple(x) ** 2).sum()))(x), 18 * x, atol=1e-5)
    with pytest.raises(smelt.UnsupportedError, match="through 'scaled', which has no VJP"):
        jax.grad(lambda x: f(x).sum())(x)


def test_function_is_differentiated_as_smelt_does():
    @smelt.jax.function
    def attend(q, k, v):
        scores = smelt.softmax(smelt.matmul(q, smelt.swapaxes(k, -1, -2)) * 0.5, axis=-1)
        return smelt.matmul(scores, v)

    def reference(q, k, v):
        return jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) * 0.5, axis=-1) @ v

    arrays = normal(2, 9, 4), normal(2, 11, 4), normal(2, 11, 3)
    assert np.allclose(attend(*arrays), reference(*arrays), atol=1e-5)
    weights = normal(2, 9, 3)
    for order in ((0,), (0, 1, 2)):
        made, wanted = (jax.jit(jax.grad(lambda *a: (f(*a) * weights).sum(), argnums=order))(*arrays)
                        for f in (attend, reference))
        for a, b in zip(made, wanted):
            assert np.allclose(a, b, atol=1e-5)


def test_function_is_differentiated_twice():
    cube = smelt.jax.function(lambda x: x * x * smelt.tanh(x))
    f = jax.grad(lambda x: jnp.sum(cube(x)))
    wanted = jax.grad(lambda x: jnp.sum(x * x * jnp.tanh(x)))
    x, v = normal(5), normal(5)
    second, reference = (jax.grad(lambda x: jnp.vdot(g(x), v))(x) for g in (f, wanted))
    assert np.allclose(second, reference, atol=1e-5)


def test_custom_function_with_a_kernel_keeps_its_vjp():
    forward = smelt.metal_kernel("square", ["x"], ["out"], I + "out[i] = x[i] * x[i];")
    backward = smelt.metal_kernel("square_vjp", ["x", "c"], ["out"], I + "out[i] = 2 * x[i] * c[i];")

    def launch(kernel, *arrays):
        x = arrays[0]
        return kernel(inputs=list(arrays), output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(x.size, 1, 1),
                      threadgroup=(32, 1, 1))[0]

    @smelt.custom_function
    def square(x):
        return launch(forward, x)

    @square.vjp
    def square_vjp(x, cotangent, output):
        return launch(backward, x, cotangent)

    f = smelt.jax.function(square)
    x = normal(7, 5)
    assert np.allclose(jax.jit(f)(x), x * x, atol=1e-6)
    assert np.allclose(jax.jit(jax.grad(lambda x: f(x).sum()))(x), 2 * x, atol=1e-6)
    assert np.allclose(jax.vmap(jax.grad(lambda x: f(x).sum()))(x), 2 * x, atol=1e-6)


def test_function_takes_and_returns_trees_and_integers():
    @smelt.jax.function
    def step(parameters, indexes):
        rows = smelt.take(parameters["table"], indexes, axis=0)
        return {"sum": smelt.sum(rows * parameters["scale"], axis=0), "count": indexes + 1}

    parameters = {"table": normal(6, 3), "scale": normal(3)}
    indexes = jnp.array([5, 0, 5])
    made = jax.jit(step)(parameters, indexes)
    assert np.allclose(made["sum"], np.asarray(parameters["table"])[[5, 0, 5]].sum(0) * parameters["scale"], atol=1e-5)
    assert np.array_equal(made["count"], [6, 1, 6])
    gradient = jax.grad(lambda p: step(p, indexes)["sum"].sum())(parameters)
    wanted = np.zeros((6, 3), np.float32)
    wanted[5], wanted[0] = 2 * parameters["scale"], parameters["scale"]
    assert np.allclose(gradient["table"], wanted, atol=1e-5)


def test_random_functions_agree_with_jax():
    unary = [("tanh", jnp.tanh), ("sigmoid", jax.nn.sigmoid), ("exp", jnp.exp), ("square", jnp.square), ("sin", jnp.sin)]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        picks = rng.integers(0, len(unary), 4)

        def of(names, matmul, x, w):
            for name in names:
                x = name(matmul(x, w)) * 0.5 + x
            return x

        ours = smelt.jax.function(lambda x, w, p=picks: of([getattr(smelt, unary[i][0]) for i in p], smelt.matmul, x, w))
        x, w = normal(int(rng.integers(1, 40)), 6), normal(6, 6) * 0.3

        def loss(f):
            return jax.jit(jax.value_and_grad(lambda x, w: jnp.sum(f(x, w) ** 2), argnums=(0, 1)))

        made = loss(ours)(x, w)
        wanted = loss(lambda x, w, p=picks: of([unary[i][1] for i in p], jnp.matmul, x, w))(x, w)
        for a, b in zip(jax.tree_util.tree_leaves(made), jax.tree_util.tree_leaves(wanted)):
            assert np.allclose(a, b, rtol=2e-4, atol=2e-4)


def test_threads_call_the_same_function():
    f = jax.jit(smelt.jax.function(lambda x: smelt.softmax(x * 2, axis=-1)))
    inputs = [normal(8, 33) for _ in range(6)]
    made: dict[int, list] = {}

    def run(i):
        made[i] = [np.asarray(f(inputs[i])) for _ in range(5)]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, x in enumerate(inputs):
        for y in made[i]:
            assert np.allclose(y, jax.nn.softmax(x * 2, axis=-1), atol=1e-6)


def test_empty_arrays_and_scalars():
    f = smelt.jax.function(lambda x, y: x * 2 + y)
    assert f(jnp.zeros((0, 3)), jnp.zeros(3)).shape == (0, 3)
    assert float(jax.jit(f)(1.5, 2.0)) == 5


def test_what_is_wrong_is_said():
    f = scaled()
    with pytest.raises(jax.errors.JaxRuntimeError, match="nonsense"):
        kernel = smelt.jax.metal_kernel("broken", ["x"], ["out"], "out[0] = nonsense;")
        # On a GPU, the work runs, and fails, after the call.
        jax.block_until_ready(kernel(inputs=[jnp.ones(3)], output_shapes=[(3,)], output_dtypes=[jnp.float32],
                                     grid=(3, 1, 1), threadgroup=(3, 1, 1)))
    with pytest.raises(TypeError, match=r"kernel 'scaled': grid is 5; expected a sequence of integers"):
        smelt.jax.metal_kernel("scaled", ["x"], ["out"], "out[0] = x[0];")(
            inputs=[jnp.ones(3)], output_shapes=[(3,)], output_dtypes=[jnp.float32], grid=5, threadgroup=(3, 1, 1))
    with pytest.raises(TypeError, match="'number' returned int as output 0"):
        smelt.jax.function(number)(jnp.ones(3))
    with pytest.raises(ValueError, match="4 and 3|3 and 4|broadcast"):
        smelt.jax.function(lambda x, y: x + y)(jnp.ones(3), jnp.ones(4))
    assert f(jnp.ones(2)).shape == (2,)


def number(x):
    return 3


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="smelt.jax.function: f is 3, expected a function of smelt arrays"):
        smelt.jax.function(3)
