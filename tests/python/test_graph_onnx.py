"""smelt.graph.onnx: models in and out, against ONNX's own reference evaluator; skipped where onnx is not installed."""

import numpy as np
import pytest
import smelt
from smelt.graph import Graph, InferenceSession, TensorType, operation

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from smelt.graph.onnx import load, save  # noqa: E402

F = TensorProto.FLOAT


def model_of(nodes, inputs, outputs, constants=(), opset=18):
    """inputs and outputs: (name, element type, shape); constants: (name, array)."""
    ports = [[helper.make_tensor_value_info(*port) for port in side] for side in (inputs, outputs)]
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(nodes, "test", *ports, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def check(model, feeds, tolerance=2e-6):
    expected = ReferenceEvaluator(model).run(None, feeds)
    loaded = InferenceSession().load(load(model))
    for one, other in zip(loaded.execute(**feeds), expected):
        assert one.shape == np.shape(other) and one.to_numpy().dtype == other.dtype
        np.testing.assert_allclose(one.to_numpy(), other, rtol=tolerance, atol=tolerance)


X = np.random.default_rng(1).uniform(0.1, 0.9, (3, 4, 5)).astype(np.float32)


@pytest.mark.parametrize("name", ["Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
                                  "Identity", "Log", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh",
                                  "Softplus", "Sqrt", "Tan", "Tanh", "LeakyRelu", "Softmax", "LogSoftmax", "Flatten", "Transpose"])
def test_one_input(name):
    check(model_of([helper.make_node(name, ["x"], ["y"])], [("x", F, X.shape)], [("y", F, None)]), {"x": X - 0.5 if name in (
        "Abs", "Relu", "LeakyRelu", "Sign", "Neg", "Softmax", "LogSoftmax") else X})


@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "MatMul"])
def test_two_inputs(name):
    y = np.random.default_rng(2).uniform(0.5, 2, (5, 2) if name == "MatMul" else (4, 1)).astype(np.float32)
    check(model_of([helper.make_node(name, ["x", "y"], ["z"])], [("x", F, X.shape), ("y", F, y.shape)], [("z", F, None)]),
          {"x": X, "y": y})


@pytest.mark.parametrize("name", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp",
                                  "ReduceSumSquare", "ReduceL1", "ReduceL2"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions(name, keepdims):
    node = helper.make_node(name, ["x", "axes"], ["y"], keepdims=keepdims)
    check(model_of([node], [("x", F, X.shape)], [("y", F, None)], [("axes", np.array([0, -1]))]), {"x": X})


def test_shapes_and_indices():
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["a"]),
             helper.make_node("Slice", ["a", "starts", "ends", "axes", "steps"], ["b"]),
             helper.make_node("Unsqueeze", ["b", "one"], ["c"]),
             helper.make_node("Expand", ["c", "wide"], ["d"]),
             helper.make_node("Concat", ["d", "d"], ["e"], axis=0),
             helper.make_node("Gather", ["e", "indices"], ["f"], axis=-1),
             helper.make_node("Split", ["f"], ["g", "h"], axis=0, num_outputs=2),
             helper.make_node("Squeeze", ["k", "one"], ["l"]), helper.make_node("Slice", ["g", "zero", "one", "one"], ["k"])]
    nodes[-2], nodes[-1] = nodes[-1], nodes[-2]
    check(model_of(nodes, [("x", F, X.shape)], [("h", F, None), ("l", F, None)],
                   [("shape", np.array([0, -1])), ("starts", np.array([-1])), ("ends", np.array([-2 ** 62])),
                    ("axes", np.array([1])), ("steps", np.array([-2])), ("one", np.array([1])), ("zero", np.array([0])),
                    ("wide", np.array([3, 2, 1])), ("indices", np.array([[0, -1], [3, 1]]))]), {"x": X})


def test_gemm_layer_norm_gelu():
    numbers = np.random.default_rng(3)
    w, b, scale = (numbers.standard_normal(s).astype(np.float32) for s in ((7, 5), (7,), (7,)))
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["a"], transB=1, alpha=0.5, beta=2.0),
             helper.make_node("LayerNormalization", ["a", "scale", "b"], ["n"], epsilon=1e-3),
             helper.make_node("Gelu", ["n"], ["y"])]
    check(model_of(nodes, [("x", F, (4, 5))], [("y", F, None)], [("w", w), ("b", b), ("scale", scale)], opset=20),
          {"x": X[0]}, 1e-5)


def test_what_is_not_supported():
    with pytest.raises(NotImplementedError, match="operator 'NonZero' .* is not supported; supported are Abs, "):
        load(model_of([helper.make_node("NonZero", ["x"], ["y"])], [("x", F, (3,))], [("y", TensorProto.INT64, None)]))
    open_size = model_of([helper.make_node("Relu", ["x"], ["y"])], [("x", F, ("batch", 3))], [("y", F, None)])
    with pytest.raises(ValueError, match="input 'x' has a dimension 'batch' of no fixed size"):
        load(open_size)
    assert load(open_size, shapes={"x": (2, 3)}).inputs[0].shape == (2, 3)


def exported(function, *arrays):
    """What a graph computes, and what ONNX's reference computes from its export."""
    graph = Graph.of(function, *[TensorType(a.dtype.name, a.shape, f"in{i}") for i, a in enumerate(arrays)])
    model = save(graph)
    ours = [t.to_numpy() for t in InferenceSession().load(graph).execute(*arrays)]
    theirs = ReferenceEvaluator(model).run(None, {f"in{i}": a for i, a in enumerate(arrays)})
    again = [t.to_numpy() for t in InferenceSession().load(load(model)).execute(*arrays)]
    return ours, theirs, again


@pytest.mark.parametrize("function", [
    lambda x: smelt.softmax(smelt.tanh(x) * 2 - 1, axis=-1),
    lambda x: smelt.sum(smelt.square(x), axis=(0, 2), keepdims=True) / smelt.max(x),
    lambda x: smelt.where(x > 0.5, smelt.exp(x), smelt.log1p(x)),
    lambda x: (x.reshape(12, 5) @ smelt.transpose(x.reshape(12, 5))).astype("int32"),
    lambda x: smelt.concatenate([x[:, ::-2], x[:, 1:3] + smelt.mean(x)], axis=1),
    lambda x: smelt.logical_and(smelt.isfinite(x), x != x[0]),
    lambda x: smelt.value_and_grad(lambda v: smelt.sum(smelt.sigmoid(v) * smelt.rsqrt(v)))(x)[1],
    lambda x: smelt.layer_norm(x, None, None, 1e-5) if hasattr(smelt, "layer_norm") else smelt.var(x, axis=-1),
])
def test_round_trip(function):
    ours, theirs, again = exported(function, X)
    for one, other, third in zip(ours, theirs, again):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(one, third, rtol=1e-6, atol=1e-7)


def test_what_has_no_operator():
    @operation("test_onnx_own", shape=lambda x: TensorType(x.dtype, x.shape))
    def own(x):
        return x * 2

    with pytest.raises(NotImplementedError, match="'test_onnx_own' is a custom, which has no ONNX operator"):
        save(Graph.of(own, TensorType("float32", (2,))))
    with pytest.raises(NotImplementedError, match="operation 'cumsum' has no ONNX operator here"):
        save(Graph.of(smelt.cumsum, TensorType("float32", (2,))))
