"""ONNX: graphs from models, and models from graphs. Needs the package onnx.

load takes the operators of IMPORTED, with constant shapes; save writes those smelt operations that EXPORTED of
onnx_export.py lists, in operator set 18. Others raise NotImplementedError with the name."""
import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt._smelt import array
from smelt.graph.building import Graph, TensorType
from smelt.graph.driver import as_array
from smelt.graph.onnx_export import OPSET, _package, save

__all__ = ["load", "save"]


class _Node:
    """One node of a model: its inputs as values or arrays (None where left out), and its attributes."""

    def __init__(self, proto: Any, values: dict[str, Any], opset: int):
        import onnx
        self.type, self.opset = proto.op_type, opset
        self.outputs = list(proto.output)
        self.inputs: list[Any] = [values[name] if name else None for name in proto.input]
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}

    def attribute(self, name: str, default: Any = None) -> Any:
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def given(self, index: int) -> Any:
        return self.inputs[index] if index < len(self.inputs) else None

    def constant(self, index: int) -> Any:
        """The elements of an input that must not depend on the graph's inputs, as a list; None if it is left out."""
        value = self.given(index)
        if value is None:
            return None
        if value.device == "graph":
            raise NotImplementedError(f"{self.type}: input {index} depends on the inputs; expected a constant")
        return value.tolist()

    def axes(self, index: int = 1) -> Any:
        """Axes from an attribute (older operator sets) or an input."""
        axes = self.attribute("axes")
        axes = self.constant(index) if axes is None else list(axes)
        return None if axes is None else tuple(axes)


def _elementwise(function: Callable) -> Callable:
    return lambda node: function(*node.inputs)


def _folded(function: Callable) -> Callable:
    def fold(node: _Node) -> array:
        result = node.inputs[0]
        for value in node.inputs[1:]:
            result = function(result, value)
        return result
    return fold


def _reduction(function: Callable) -> Callable:
    def reduce(node: _Node) -> array:
        axes = node.axes()
        if not axes and node.attribute("noop_with_empty_axes", 0):
            return node.inputs[0]
        return function(node.inputs[0], axis=axes or None, keepdims=bool(node.attribute("keepdims", 1)))
    return reduce


def _argument(function: Callable) -> Callable:
    def find(node: _Node) -> array:
        if node.attribute("select_last_index", 0):
            raise NotImplementedError(f"{node.type}: select_last_index")
        made = function(node.inputs[0], axis=node.attribute("axis", 0), keepdims=bool(node.attribute("keepdims", 1)))
        return made.astype(smelt.int64)
    return find


def _cast(node: _Node) -> array:
    import onnx
    name = onnx.TensorProto.DataType.Name(node.attribute("to")).lower()
    return node.inputs[0].astype({"float": "float32", "double": "float64"}.get(name, name))


def _clip(node: _Node) -> array:
    x, low, high = node.inputs[0], node.given(1), node.given(2)
    low = node.attribute("min") if low is None else low
    high = node.attribute("max") if high is None else high
    x = x if low is None else smelt.maximum(x, low)
    return x if high is None else smelt.minimum(x, high)


def _concat(node: _Node) -> array:
    return smelt.concatenate(node.inputs, axis=node.attribute("axis"))


def _divide(node: _Node) -> array:
    x, y = node.inputs
    if "int" not in x.dtype.name:
        return x / y
    q = smelt.floor_divide(smelt.abs(x), smelt.abs(y))  # ONNX truncates
    return q * smelt.sign(x) * smelt.sign(y)


def _expand(node: _Node) -> array:
    x, shape = node.inputs[0], node.constant(1)
    return smelt.broadcast_to(x, _broadcast(x.shape, shape))


def _broadcast(a: Any, b: Any) -> tuple[int, ...]:
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    return tuple(y if x == 1 else x for x, y in zip(a, b))


def _flatten(node: _Node) -> array:
    x, axis = node.inputs[0], node.attribute("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


def _gather(node: _Node) -> array:
    x, indices = node.inputs
    if indices.dtype.name == "int64":
        indices = indices.astype(smelt.int32)
    return smelt.take(x, indices, axis=node.attribute("axis", 0))


def _gelu(node: _Node) -> array:
    x = node.inputs[0]
    if node.attribute("approximate", "none") == "tanh":
        return 0.5 * x * (1 + smelt.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + smelt.erf(x * math.sqrt(0.5)))


def _gemm(node: _Node) -> array:
    a, b, c = node.inputs[0], node.inputs[1], node.given(2)
    a = smelt.transpose(a) if node.attribute("transA", 0) else a
    b = smelt.transpose(b) if node.attribute("transB", 0) else b
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    product = smelt.matmul(a, b)
    product = product if alpha == 1 else product * alpha
    return product if c is None else product + (c if beta == 1 else c * beta)


def _layer_norm(node: _Node) -> Any:
    x, axis = node.inputs[0], node.attribute("axis", -1)
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = smelt.mean(x, axis=axes, keepdims=True)
    scale = smelt.rsqrt(smelt.mean(smelt.square(x - mean), axis=axes, keepdims=True) + node.attribute("epsilon", 1e-5))
    y = (x - mean) * scale * node.inputs[1]
    return [y if node.given(2) is None else y + node.given(2), mean, scale]


def _leaky_relu(node: _Node) -> array:
    x = node.inputs[0]
    return smelt.where(x < 0, x * node.attribute("alpha", 0.01), x)


def _pad(node: _Node) -> array:
    x, pads, value, axes = node.inputs[0], node.constant(1), node.given(2), node.constant(3)
    if node.attribute("mode", "constant") != "constant" or min(pads) < 0:
        raise NotImplementedError("Pad: only constant padding, not negative, is supported")
    axes = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in axes]
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(axes):
        widths[axis] = (pads[i], pads[i + len(axes)])
    return smelt.pad(x, tuple(widths), constant_values=0 if value is None else value)


def _reshape(node: _Node) -> array:
    x, shape = node.inputs[0], node.constant(1)
    zero = not node.attribute("allowzero", 0)
    return smelt.reshape(x, tuple(x.shape[i] if size == 0 and zero else size for i, size in enumerate(shape)))


def _shape(node: _Node) -> array:
    shape = node.inputs[0].shape[node.attribute("start", 0):node.attribute("end")]
    return smelt.asarray(list(shape), dtype=smelt.int64)


def _slice(node: _Node) -> array:
    x, starts, stops = node.inputs[0], node.constant(1), node.constant(2)
    axes = node.constant(3)
    steps = node.constant(4) or [1] * len(starts)
    keys = [slice(None)] * x.ndim
    for axis, start, stop, step in zip(range(len(starts)) if axes is None else axes, starts, stops, steps):
        size = x.shape[axis]
        first = max(-size - 1, min(start, size))
        last = None if step < 0 and stop < -size else max(-size - 1, min(stop, size))
        keys[axis % x.ndim] = slice(first, last, step)
    return x[tuple(keys)]


def _softmax(logarithm: bool) -> Callable:
    def softmax(node: _Node) -> array:
        x, axis = node.inputs[0], node.attribute("axis", -1 if node.opset >= 13 else 1)
        axes = (axis,) if node.opset >= 13 else tuple(range(axis % x.ndim, x.ndim))
        y = smelt.softmax(x, axis=axes)
        return x - smelt.logsumexp(x, axis=axes, keepdims=True) if logarithm else y
    return softmax


def _split(node: _Node) -> list[array]:
    x, axis = node.inputs[0], node.attribute("axis", 0)
    sizes = node.attribute("split") or node.constant(1)
    if not sizes:
        part = -(-x.shape[axis] // len(node.outputs))
        sizes = [min(part, x.shape[axis] - i * part) for i in range(len(node.outputs))]
    return smelt.split(x, [sum(sizes[:i + 1]) for i in range(len(sizes) - 1)], axis=axis)


def _squeeze(node: _Node) -> array:
    axes = node.axes()
    return smelt.squeeze(node.inputs[0], axis=axes) if axes is not None else smelt.squeeze(node.inputs[0])


def _transpose(node: _Node) -> array:
    return smelt.transpose(node.inputs[0], node.attribute("perm"))


def _unsqueeze(node: _Node) -> array:
    return smelt.expand_dims(node.inputs[0], node.axes())


def _constant(node: _Node) -> array:
    import onnx
    for name in ("value_float", "value_int", "value_floats", "value_ints"):
        if name in node.attributes:
            return smelt.asarray(node.attributes[name], dtype=smelt.int64 if "int" in name else smelt.float32)
    return as_array(onnx.numpy_helper.to_array(node.attribute("value")))


def _constant_of_shape(node: _Node) -> array:
    import onnx
    value = node.attribute("value")
    filled = onnx.numpy_helper.to_array(value) if value is not None else None
    one = smelt.array(0.0) if filled is None else as_array(filled).reshape(())
    return smelt.broadcast_to(one, tuple(node.constant(0)))


_Functions = dict[str, Callable[..., Any]]

_ELEMENTWISE: _Functions = {
    "Abs": smelt.abs, "Acos": smelt.arccos, "Acosh": smelt.arccosh, "And": smelt.logical_and, "Asin": smelt.arcsin,
    "Asinh": smelt.arcsinh, "Atan": smelt.arctan, "Atanh": smelt.arctanh, "BitwiseAnd": smelt.bitwise_and,
    "BitwiseNot": smelt.bitwise_invert, "BitwiseOr": smelt.bitwise_or, "BitwiseXor": smelt.bitwise_xor,
    "Add": smelt.add, "Ceil": smelt.ceil, "Cos": smelt.cos, "Cosh": smelt.cosh, "Equal": smelt.equal,
    "Erf": smelt.erf, "Exp": smelt.exp, "Floor": smelt.floor, "Greater": smelt.greater,
    "GreaterOrEqual": smelt.greater_equal, "Identity": lambda x: x, "IsInf": smelt.isinf, "IsNaN": smelt.isnan,
    "Less": smelt.less, "LessOrEqual": smelt.less_equal, "Log": smelt.log, "MatMul": smelt.matmul,
    "Mul": smelt.multiply, "Neg": smelt.negative, "Not": smelt.logical_not, "Or": smelt.logical_or,
    "Pow": lambda x, y: smelt.power(x, y.astype(x.dtype)), "Reciprocal": smelt.reciprocal,
    "Relu": lambda x: smelt.maximum(x, 0), "Round": smelt.round, "Sigmoid": smelt.sigmoid, "Sign": smelt.sign,
    "Sin": smelt.sin, "Sinh": smelt.sinh, "Sqrt": smelt.sqrt, "Sub": smelt.subtract, "Tan": smelt.tan,
    "Tanh": smelt.tanh, "Where": smelt.where, "Xor": lambda x, y: smelt.not_equal(x, y),
    "Softplus": lambda x: smelt.logaddexp(x, 0.0), "Dropout": lambda x, *_: x,
}
_FOLDED: _Functions = {"Max": smelt.maximum, "Min": smelt.minimum, "Sum": smelt.add}
_REDUCED: _Functions = {
    "ReduceMax": smelt.max, "ReduceMean": smelt.mean, "ReduceMin": smelt.min, "ReduceProd": smelt.prod,
    "ReduceSum": smelt.sum, "ReduceLogSumExp": smelt.logsumexp,
    "ReduceSumSquare": lambda x, **options: smelt.sum(smelt.square(x), **options),
    "ReduceL2": lambda x, **options: smelt.sqrt(smelt.sum(smelt.square(x), **options)),
    "ReduceL1": lambda x, **options: smelt.sum(smelt.abs(x), **options),
}

# ONNX operators, and what computes them: a function of the node that returns its output or a list of its outputs.
IMPORTED: dict[str, Callable[[_Node], Any]] = {
    **{name: _elementwise(function) for name, function in _ELEMENTWISE.items()},
    **{name: _folded(function) for name, function in _FOLDED.items()},
    **{name: _reduction(function) for name, function in _REDUCED.items()},
    "ArgMax": _argument(smelt.argmax), "ArgMin": _argument(smelt.argmin), "Cast": _cast, "Clip": _clip,
    "Concat": _concat, "Constant": _constant, "ConstantOfShape": _constant_of_shape, "Div": _divide, "Expand": _expand,
    "Flatten": _flatten, "Gather": _gather, "Gelu": _gelu, "Gemm": _gemm, "LayerNormalization": _layer_norm,
    "LeakyRelu": _leaky_relu, "LogSoftmax": _softmax(True), "Pad": _pad, "Reshape": _reshape, "Shape": _shape,
    "Slice": _slice, "Softmax": _softmax(False), "Split": _split, "Squeeze": _squeeze, "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}


def _type_of(port: Any, shapes: dict[str, Any]) -> TensorType:
    import onnx
    tensor = port.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    if port.name in shapes:
        return TensorType(dtype, shapes[port.name], port.name)
    sizes: list[Any] = [size.dim_value if size.HasField("dim_value") else size.dim_param or "?" for size in tensor.shape.dim]
    unknown = [size for size in sizes if isinstance(size, str)]
    if unknown:
        raise ValueError(f"onnx: input '{port.name}' has a dimension '{unknown[0]}' of no fixed size; give its shape: "
                         f"load(…, shapes={{'{port.name}': (…)}})")
    return TensorType(dtype, sizes, port.name)


def load(model: Any, shapes: dict[str, Any] | None = None) -> Graph:
    """The graph of an ONNX model: a path, its bytes, or an onnx.ModelProto. shapes: of inputs by name, where the model
    leaves sizes open. NotImplementedError names an operator that IMPORTED lacks."""
    onnx = _package()
    proto = onnx.load_from_string(model) if isinstance(model, bytes) else \
        model if isinstance(model, onnx.ModelProto) else onnx.load(model)
    opset = max((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=OPSET)
    constants = {tensor.name: as_array(onnx.numpy_helper.to_array(tensor)) for tensor in proto.graph.initializer}
    ports = [port for port in proto.graph.input if port.name not in constants]
    graph = Graph(proto.graph.name or "onnx", [_type_of(port, shapes or {}) for port in ports])
    values: dict[str, Any] = {**constants, **{port.name: value for port, value in zip(ports, graph.inputs)}}
    for each in proto.graph.node:
        if each.op_type not in IMPORTED or each.domain not in ("", "ai.onnx"):
            raise NotImplementedError(f"onnx: operator '{each.op_type}' (node '{each.name}') is not supported; supported "
                                      f"are {', '.join(sorted(IMPORTED))}")
        node = _Node(each, values, opset)
        made = IMPORTED[each.op_type](node)
        values.update(zip(node.outputs, made if isinstance(made, (list, tuple)) else [made]))
    for port in proto.graph.output:
        graph.output(**{port.name: values[port.name]})
    return graph
