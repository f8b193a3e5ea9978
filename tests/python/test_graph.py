"""smelt.graph: random graphs, fused, unfused and computed one operation after the other; sessions; registered
operations; gradients."""

import os
import random
import re
import subprocess

import numpy as np
import pytest
import smelt
from smelt.graph import CPU, DType, Graph, InferenceSession, Tensor, TensorType, compile, operation, ops

DEVICES = [d for d in smelt.devices() if d != "cuda:1"]


def numpy_of(a):
    return np.array(a.astype("float32") if a.dtype.name == "bfloat16" else a)


# ---- Random graphs.

DTYPES = ["float32"] * 5 + ["float16", "bfloat16", "int32", "uint8", "bool", "int64"]
UNARY = [smelt.exp, smelt.sin, smelt.abs, smelt.tanh, smelt.square, smelt.negative, smelt.sigmoid, smelt.floor,
         smelt.isfinite, smelt.sqrt, lambda x: x.astype("float16"), lambda x: x.astype("int32"), lambda x: x * 2,
         lambda x: 1.5 - x, lambda x: x.astype("float32"), smelt.logical_not]
BINARY = [smelt.add, smelt.subtract, smelt.multiply, smelt.maximum, smelt.minimum, smelt.less, smelt.equal, smelt.divide]
REDUCE = [smelt.sum, smelt.max, smelt.min, smelt.mean, smelt.any, smelt.all, smelt.prod]


def random_inputs(draw, numbers):
    """Types and arrays of one common shape, of which some have dimensions of size 1 or lack the first."""
    base = [draw.choice([1, 2, 3, 5, 7, 33, 40, 130]) for _ in range(draw.choice([1, 2, 3]))]
    if draw.random() < 0.1:
        base[draw.randrange(len(base))] = 0
    if draw.random() < 0.15:
        base[draw.randrange(len(base))] = draw.choice([700, 1500, 9000])
        base = base[-2:]
    types, arrays = [], []
    for _ in range(draw.randint(1, 4)):
        shape = [1 if draw.random() < 0.25 else size for size in base]
        shape = shape[draw.choice([0, 0, 0, 1]):] if len(shape) > 1 else shape
        dtype = draw.choice(DTYPES)
        values = numbers.integers(0 if dtype[0] == "u" else -9, 9, shape) if "int" in dtype else \
            numbers.standard_normal(shape)
        types.append(TensorType(dtype, shape))
        arrays.append(smelt.array(np.asarray(values, np.float32)).astype(dtype))
    return types, arrays


def random_function(seed, nodes):
    def step(draw, pool):
        x, kind = draw.choice(pool[-6:]), draw.random()
        if kind < 0.4:
            return draw.choice(UNARY)(x)
        if kind < 0.7:
            return draw.choice(BINARY)(x, draw.choice(pool))
        if kind < 0.75:
            return smelt.where(draw.choice(pool), x, draw.choice(pool))
        if kind < 0.9 and x.ndim:
            axes = tuple(draw.sample(range(x.ndim), draw.randint(1, x.ndim)))
            return draw.choice(REDUCE)(x, axis=axes if draw.random() < 0.8 else None, keepdims=draw.random() < 0.6)
        if kind < 0.93 and x.ndim:
            # Of parts: smelt.softmax of an array is a kernel of its own.
            exps = smelt.exp(x - smelt.max(x, axis=-1, keepdims=True))
            return exps / smelt.sum(exps, axis=-1, keepdims=True)
        if kind < 0.95:
            return smelt.transpose(x)
        if kind < 0.97:
            return smelt.reshape(x, (-1,)) if x.size else x
        if kind < 0.985:
            return x[1:] if x.ndim and x.shape[0] > 1 else x
        return smelt.broadcast_to(x, (2,) + tuple(x.shape)) if x.ndim < 4 else x

    def function(*values):
        draw, pool = random.Random(seed), list(values)
        for _ in range(nodes):
            try:
                pool.append(step(draw, pool))
            except ValueError:
                continue  # shapes that cannot be broadcast, and reductions of nothing
        return [pool[-1]] + [draw.choice(pool) for _ in range(3)]
    return function


@pytest.mark.parametrize("device", DEVICES)
# SMELT_TEST_FULL=1: many more, as make check-long runs them.
@pytest.mark.parametrize("seed", range(300 if os.environ.get("SMELT_TEST_FULL") else 7))
def test_random_graphs_fused_unfused_and_eager(seed, device):
    if device == "cpu-scalar" and seed >= 3:
        pytest.skip("the scalar engine runs a part of them")
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    types, arrays = random_inputs(draw, numbers)
    function = random_function(seed, draw.randint(3, 25))
    session = InferenceSession([device])
    graph = Graph.of(function, *types)
    fused, unfused = session.load(graph), session.load(graph, fuse=False)
    results = zip(fused.run(arrays), unfused.run(arrays), function(*arrays), fused.run(arrays))
    for one, other, eager, again in results:
        assert one.dtype == eager.dtype and one.shape == eager.shape
        one, other, eager, again = map(numpy_of, (one, other, eager, again))
        # Bit for bit: a fused kernel rounds where its operations round.
        np.testing.assert_array_equal(one, again)
        np.testing.assert_array_equal(one, other)
        if device.startswith("cpu"):
            np.testing.assert_array_equal(one, eager)


# ---- Against NumPy in float64.

CHAINS = {
    "softmax": (lambda x, b: smelt.softmax(x + b, axis=-1),
                lambda x, b: np.exp(x + b - (x + b).max(-1, keepdims=True)) /
                np.exp(x + b - (x + b).max(-1, keepdims=True)).sum(-1, keepdims=True)),
    "layer_norm": (lambda x, b: (x - smelt.mean(x, axis=-1, keepdims=True)) /
                   smelt.sqrt(smelt.var(x, axis=-1, keepdims=True) + 1e-5) * b,
                   lambda x, b: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * b),
    "columns": (lambda x, b: smelt.sum(smelt.square(x * b), axis=0) * 0.5,
                lambda x, b: np.square(x * b).sum(0) * 0.5),
    "all": (lambda x, b: smelt.sqrt(smelt.mean(smelt.square(x - b))), lambda x, b: np.sqrt(np.square(x - b).mean())),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(1, 2), (3, 31), (5, 32), (4, 129), (2, 9000), (3001, 3), (300, 9001)])
@pytest.mark.parametrize("name", CHAINS)
def test_rows_and_columns(name, shape, device):
    if device == "cpu-scalar" and shape != (4, 129):
        pytest.skip("slow on the scalar engine")
    if not os.environ.get("SMELT_TEST_FULL") and (len(name) + sum(shape)) % 2:
        pytest.skip("SMELT_TEST_FULL=1 tries all shapes with all functions")
    function, reference = CHAINS[name]
    x = np.random.default_rng(1).standard_normal(shape).astype("f")
    b = np.random.default_rng(2).standard_normal(shape[1]).astype("f")
    model = InferenceSession([device]).load(Graph.of(function, TensorType.of(x), TensorType.of(b)))
    # One kernel, in stages where rows are few and long: then reductions of reduced values are kernels of their own. A
    # vector along one of several reduced dimensions is read by a kernel before, and a sum of one element is no reduction.
    steps = 4 if shape == (2, 9000) else 3 if name == "all" or shape[0] == 1 else 1
    assert model.info["steps"] <= steps, model.show()
    result = model.execute(x, b)[0].to_numpy()
    np.testing.assert_allclose(result, reference(x.astype("d"), b.astype("d")), rtol=2e-5, atol=2e-6)


def test_strided_inputs_are_read_as_they_are():
    x = np.random.default_rng(3).standard_normal((6, 8)).astype("f")
    model = InferenceSession().load(Graph.of(lambda a: smelt.exp(a) + a, TensorType("float32", (3, 6))))
    turned = smelt.array(x)[:, ::3].T
    np.testing.assert_array_equal(model.execute(turned)[0].to_numpy(), np.array(smelt.exp(turned) + turned))


# ---- Sessions.

def test_names_and_missing_inputs():
    with Graph("named", [TensorType("float32", (2,), "left"), TensorType("float32", (2,), "right")]) as graph:
        graph.output(difference=graph.inputs[0] - graph.inputs[1])
    model = InferenceSession(devices=[CPU()]).load(graph)
    assert model.execute_named(right=[1.0, 2.0], left=[5.0, 5.0])["difference"].to_numpy().tolist() == [4, 3]
    assert model.execute([5.0, 5.0], right=[1.0, 2.0])[0].to_numpy().tolist() == [4, 3]
    with pytest.raises(ValueError, match="input 'right' is missing"):
        model.execute([1.0, 2.0])
    with pytest.raises(ValueError, match="there is no further input 'middle'"):
        model.execute(left=[1.0, 2.0], middle=[1.0, 2.0])
    with pytest.raises(ValueError, match="input 'right' is int32 2, expected float32 2"):
        model.execute([1.0, 2.0], [1, 2])


def test_a_value_has_no_elements():
    graph = Graph("empty", [TensorType(DType.float32, (2,))])
    assert repr(graph.inputs[0]) == "value((2,), dtype=float32)" and graph.inputs[0].tensor is graph.inputs[0]
    for use in (np.asarray, lambda v: v.tolist(), bool, lambda v: v.item()):
        with pytest.raises((ValueError, BufferError), match="value of a graph|truth|one element"):
            use(graph.inputs[0])


def test_text_of_a_fused_kernel():
    model = InferenceSession().load(Graph.of(lambda x: smelt.tanh(x) * 2, TensorType("float32", (5,))))
    assert "fused kernel of 2 nodes over 5" in model.show()
    assert "kernel void smelt_fused(" in model.show(0) and "tanh(x)" in model.show(0)
    with pytest.raises(ValueError, match="step 3 does not exist"):
        model.show(3)


@pytest.mark.parametrize("dtype, access", [("float32", "v4.f32"), ("float16", "v4.b32|v4.u32|v8.b16"), ("bfloat16", "v4.b32|v4.u32|v8.b16")])
def test_a_chain_has_accesses_of_16_bytes_on_gpus(dtype, access, tmp_path, build_folder):
    model = InferenceSession().load(Graph.of(lambda x, y: smelt.abs(smelt.maximum(x * 2 + y, 0.5) * 3 - 4),
                                             *[TensorType(dtype, (1 << 22,))] * 2))
    (tmp_path / "chain.metal").write_text(model.show(0))
    ptx = subprocess.run([f"{build_folder}/bin/smelt", "show", str(tmp_path / "chain.metal"), "smelt_fused", "--stage", "ptx",
                          "--target", "sm_90a", "--grid", str(1 << 22), "--threadgroup", "256"],
                         check=True, capture_output=True, text=True).stdout
    assert len(re.findall(rf"ld\.global\.({access})", ptx)) >= 2 and re.search(rf"st\.global\.({access})", ptx), ptx


def test_compile_keeps_trees_and_types():
    calls = []

    @compile
    def step(parameters, x):
        calls.append(x)
        return {"sum": parameters["w"] * x + parameters["b"][0], "pair": (x, [x * 2])}

    for shape in [(3,), (3,), (2, 3)]:
        x = np.ones(shape, np.float32)
        made = step({"w": smelt.array(2.0), "b": [smelt.array(1.0)]}, x)
        assert np.array(made["sum"]).tolist() == np.full(shape, 3.0).tolist()
        assert np.array(made["pair"][1][0]).tolist() == np.full(shape, 2.0).tolist()
    assert len(calls) == 2


def test_kernels_are_nodes():
    cube = smelt.metal_kernel(name="cube", input_names=["x"], output_names=["y"],
                              source="uint i = thread_position_in_grid.x; y[i] = x[i] * x[i] * x[i];")

    def function(x):
        y = cube(inputs=[x * 2], grid=(x.size, 1, 1), threadgroup=(32, 1, 1), output_shapes=[x.shape], output_dtypes=[x.dtype])
        return (y[0] if isinstance(y, list) else y) + 1

    x = np.random.default_rng(4).standard_normal((5, 7)).astype("f")
    model = InferenceSession().load(Graph.of(function, TensorType.of(x)))
    assert [line.split(": ")[1].split(" of ")[0] for line in model.show().splitlines() if line.startswith("step")][1] \
        .startswith("%3 = cube")
    np.testing.assert_allclose(model.execute(x)[0].to_numpy(), (2 * x) ** 3 + 1, rtol=1e-6)


def test_nodes_of_a_graph():
    graph = Graph.of(lambda x: swish(smelt.sum(x, axis=1), beta=3.0), TensorType("float32", (2, 3), "x"))
    nodes = graph.handle.nodes()
    assert [(n["kind"], n["name"]) for n in nodes] == [("input", "x"), ("operation", "sum"), ("custom", "test_swish")]
    assert nodes[1]["attributes"]["axes"] == [1] and nodes[1]["inputs"] == [0]
    assert nodes[2]["outputs"] == [(2, smelt.float32, (2,))] and graph.handle.outputs() == [("output0", 2)]


# ---- Registered operations.

@operation("test_swish", shape=lambda x, *, beta: TensorType(x.dtype, x.shape))
def swish(x, *, beta, device):
    seen.append(device)
    return x * smelt.sigmoid(x * beta)


@swish.vjp
def _(inputs, cotangents, outputs, *, beta):
    x, = inputs
    s = smelt.sigmoid(x * beta)
    return [cotangents[0] * (s + beta * x * s * (1 - s))]


seen = []


def test_an_operation_eager_in_graphs_and_differentiated():
    x = np.random.default_rng(5).standard_normal(9).astype("f")
    expected = x / (1 + np.exp(-2 * x))
    seen.clear()
    np.testing.assert_allclose(np.array(swish(smelt.array(x), beta=2.0)), expected, rtol=1e-5)
    graph = Graph.of(lambda v: swish(v, beta=2.0), TensorType.of(x))
    assert seen == ["cpu"] and "test_swish" in str(graph)
    model = InferenceSession().load(graph)
    assert seen == ["cpu", "cpu"] and model.info["steps"] == 1
    np.testing.assert_allclose(model.execute(x)[0].to_numpy(), expected, rtol=1e-5)
    eager = np.array(smelt.grad(lambda v: smelt.sum(swish(v, beta=2.0)))(smelt.array(x)))
    value, gradient = InferenceSession().load(graph.gradient()).execute(x)
    np.testing.assert_array_equal(gradient.to_numpy(), eager)
    step = 1e-3
    f = lambda v: v / (1 + np.exp(-2 * v))
    np.testing.assert_allclose(eager, (f(x.astype("d") + step) - f(x.astype("d") - step)) / (2 * step), rtol=1e-4, atol=1e-5)


def test_opaque_operations_run_at_each_execution(tmp_path):
    library = smelt.library("""
        #include <metal_stdlib>
        kernel void rows(const device float *x [[buffer(0)]], device float *y [[buffer(1)]], constant uint &n [[buffer(2)]],
                         uint i [[thread_position_in_grid]]) {
            float sum = 0;
            for (uint k = 0; k < n; k++) sum += x[i * n + k];
            y[i] = sum;
        }""")
    calls = []

    @operation("test_rows", shape=lambda x: [TensorType(x.dtype, x.shape[:1]), TensorType("int32", ())], opaque=True)
    def rows(x):
        calls.append(x.device)
        y = smelt.array(np.full(x.shape[0], np.nan, np.float32))
        library.rows(x, y, np.uint32(x.shape[1]), threads=(x.shape[0], 1, 1))
        return [y, smelt.array(len(calls))]

    rows.vjp(lambda inputs, cotangents, outputs: smelt.broadcast_to(smelt.expand_dims(cotangents[0], 1), inputs[0].shape))
    x = np.random.default_rng(9).standard_normal((5, 7)).astype("f")

    def function(x):
        sums, count = rows(x * 2)
        return sums + 1, count, smelt.grad(lambda v: smelt.sum(rows(v)[0] * smelt.sum(v, axis=1)))(x)

    model = InferenceSession().load(Graph.of(function, TensorType.of(x)))
    assert calls == []
    for execution in (1, 2):
        sums, count, gradient = (t.to_numpy() for t in model.execute(x))
        np.testing.assert_allclose(sums, 2 * x.sum(1) + 1, rtol=1e-5)
        np.testing.assert_allclose(gradient, np.broadcast_to(2 * x.sum(1, keepdims=True), x.shape), rtol=1e-5)
        assert len(calls) == 2 * execution and count <= 2 * execution
    with pytest.raises(NotImplementedError, match="operation 'test_rows' is opaque"):
        model.save(tmp_path / "never")


def test_mistakes_in_registered_operations():
    @operation("test_wrong", shape=lambda x: TensorType("float32", x.shape))
    def wrong(x):
        return x.astype("int32")

    @operation("test_raises")
    def raises(x):
        raise KeyError("inside")

    x = smelt.array([1.0, 2.0])
    with pytest.raises(ValueError, match="test_wrong: output 0 is int32 2, expected float32 2"):
        wrong(x)
    with pytest.raises(ValueError, match="the types of its outputs are not given"):
        raises(x)
    with pytest.raises(KeyError, match="inside"):
        ops.custom("test_raises", [x], [TensorType("float32", (2,))])
    graph = Graph.of(lambda v: ops.custom("test_raises", [v], [TensorType("float32", (2,))])[0], TensorType.of(x))
    with pytest.raises(KeyError, match="inside"):
        InferenceSession().load(graph)
    with pytest.raises(TypeError, match="parameter 'p' is a <class 'list'>"):
        ops.custom("test_raises", [x], None, {"p": []})
    with pytest.raises(smelt.UnsupportedError, match="'test_wrong', which has no VJP"):
        Graph.of(lambda v: wrong(v) * 2, TensorType.of(x)).gradient()


# ---- Gradients.

GRADIENTS = {
    "elementwise": lambda x, w: smelt.sum(smelt.tanh(x) * smelt.exp(w) / (1 + smelt.square(x))),
    "reductions": lambda x, w: smelt.sum(smelt.logsumexp(x * w, axis=1) + smelt.max(x, axis=1) * smelt.mean(w)),
    "matmul": lambda x, w: smelt.sum(smelt.square(x @ smelt.transpose(w))),
    "shapes": lambda x, w: smelt.sum(smelt.concatenate([x[:, 1:], w[::-1, :2]], axis=1).reshape(-1) ** 3),
    "softmax": lambda x, w: smelt.sum(smelt.softmax(x, axis=-1) * w),
    "cumulative": lambda x, w: smelt.sum(smelt.cumsum(x, axis=1) * smelt.cumprod(w, axis=0)),
    "gather": lambda x, w: smelt.sum(smelt.take(x, smelt.array([0, 2, 2]), axis=1) * w[:, :3]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_against_finite_differences_in_float64(name):
    function, numbers = GRADIENTS[name], np.random.default_rng(6)
    x, w = (numbers.standard_normal((3, 4)) for _ in range(2))
    types = [TensorType("float64", (3, 4))] * 2
    model = InferenceSession().load(Graph.of(function, *types).gradient())
    value, *gradients = (t.to_numpy() for t in model.execute(x, w))
    plain = InferenceSession().load(Graph.of(function, *types))
    for which, gradient in enumerate(gradients):
        assert gradient.dtype == np.float64
        for index in np.ndindex(3, 4):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [x.copy(), w.copy()]
                moved[which][index] += step
                sides.append(float(plain.execute(*moved)[0].to_numpy()))
            assert gradient[index] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-7)
    # The same in float32, fused, is what smelt.grad gives.
    singles = [smelt.array(a.astype("f")) for a in (x, w)]
    fused = InferenceSession().load(Graph.of(function, *[TensorType("float32", (3, 4))] * 2).gradient())
    eager = smelt.grad(function, argnums=(0, 1))(*singles)
    for one, other in zip(fused.run(singles)[1:], eager):
        np.testing.assert_allclose(np.array(one), np.array(other), rtol=1e-5 if name == "softmax" else 0, atol=1e-7)


def test_forward_and_backward_are_one_graph():
    def loss(w, x, y):
        return smelt.mean(smelt.square(smelt.tanh(x @ w) - y))

    def step(w, x, y):
        value, gradient = smelt.value_and_grad(loss)(w, x, y)
        return w - 0.1 * gradient, value

    numbers = np.random.default_rng(7)
    arrays = [smelt.array(numbers.standard_normal(s).astype("f")) for s in ((4, 2), (16, 4), (16, 2))]
    model = InferenceSession().load(Graph.of(step, *map(TensorType.of, arrays)))
    for one, other in zip(model.run(arrays), step(*arrays)):
        np.testing.assert_array_equal(np.array(one), np.array(other))
    # Two products, and what lies between them in kernels of their own.
    assert model.info["steps"] <= 6, model.show()


def test_tensor():
    t = Tensor.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert t.shape == (2, 3) and t.dtype == smelt.float32 and t.to(CPU()) is t and t.device == CPU()
    assert np.asarray(t).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="device 'cuda:7' is not on this machine"):
        t.to("cuda:7")
