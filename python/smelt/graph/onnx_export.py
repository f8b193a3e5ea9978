"""ONNX: models from graphs. The public name is smelt.graph.onnx.save."""
from typing import Any

import smelt
from smelt.graph.building import Graph

OPSET = 18


def _package() -> Any:
    try:
        import onnx
    except ImportError:
        raise ImportError("smelt.graph.onnx needs the package onnx: pip install onnx") from None
    return onnx


# Elementwise operations, reductions and products of one ONNX operator, in the dtype that smelt computes them in.
EXPORTED = {
    "negative": "Neg", "abs": "Abs", "sign": "Sign", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "arcsin": "Asin", "arccos": "Acos", "arctan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "tanh": "Tanh", "arcsinh": "Asinh", "arccosh": "Acosh", "arctanh": "Atanh", "sigmoid": "Sigmoid", "erf": "Erf",
    "floor": "Floor", "ceil": "Ceil", "round": "Round", "isnan": "IsNaN", "isinf": "IsInf", "reciprocal": "Reciprocal",
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "power": "Pow", "maximum": "Max",
    "minimum": "Min", "equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater",
    "greater_equal": "GreaterOrEqual", "matmul": "MatMul",
}
_REDUCTIONS = {"sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}
_LOGICAL = {"logical_not": "Not", "logical_and": "And", "logical_or": "Or"}


class _Writer:
    """The nodes of a model that is being built."""

    def __init__(self) -> None:
        self.onnx = _package()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.names: dict[int, str] = {}
        self.types: dict[int, Any] = {}
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def element(self, dtype: Any) -> int:
        names = {"float32": "FLOAT", "float64": "DOUBLE"}
        return int(self.onnx.TensorProto.DataType.Value(names.get(dtype.name, dtype.name.upper())))

    def constant(self, values: Any) -> str:
        import numpy
        name = self.fresh()
        self.constants.append(self.onnx.numpy_helper.from_array(numpy.asarray(values), name))
        return name

    def integers(self, values: Any) -> str:
        import numpy
        return self.constant(numpy.array(values, numpy.int64))

    def add(self, operator: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        output = output or self.fresh()
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def read(self, value: int, dtype: Any) -> str:
        """A value, converted to a dtype."""
        name = self.names[value]
        return name if self.types[value][0] == dtype else self.add("Cast", [name], to=self.element(dtype))


def _common(writer: _Writer, node: dict[str, Any]) -> Any:
    """The dtype that an elementwise operation computes in."""
    name = node["name"]
    own = node["outputs"][0][1]
    if own.name != "bool":
        return own
    values = [smelt.zeros((), dtype=writer.types[v][0]) for v in node["inputs"]]
    weak = node["attributes"]["weak"]
    made = values[0] if len(values) == 1 else (values[0] + values[1])
    if len(values) == 2 and weak in (1, 2):
        strong = values[0 if weak == 2 else 1]
        soft = values[1 if weak == 2 else 0]
        number: Any = bool(0) if soft.dtype.name == "bool" else 0 if "int" in soft.dtype.name else 0.0
        made = strong + number
    return smelt.float32 if name in ("logical_not",) and made.dtype.name == "bool" else made.dtype


def _write_node(writer: _Writer, node: dict[str, Any], output: str) -> None:
    name, inputs, attributes = node["name"], node["inputs"], node["attributes"]
    dtype, shape = node["outputs"][0][1:]
    source = writer.types[inputs[0]] if inputs else None
    if name in EXPORTED:
        computed = _common(writer, node)
        made = [writer.read(v, computed) for v in inputs]
        writer.add(EXPORTED[name], made, output)
    elif name in _LOGICAL:
        writer.add(_LOGICAL[name], [writer.read(v, smelt.bool_) for v in inputs], output)
    elif name in ("identity", "stop_gradient"):
        writer.add("Identity", [writer.names[inputs[0]]], output)
    elif name == "astype":
        writer.add("Cast", [writer.names[inputs[0]]], output, to=writer.element(dtype))
    elif name == "square":
        x = writer.read(inputs[0], dtype)
        writer.add("Mul", [x, x], output)
    elif name == "rsqrt":
        writer.add("Reciprocal", [writer.add("Sqrt", [writer.read(inputs[0], dtype)])], output)
    elif name == "expm1":
        one = writer.add("Cast", [writer.constant(_float(1))], to=writer.element(dtype))
        writer.add("Sub", [writer.add("Exp", [writer.read(inputs[0], dtype)]), one], output)
    elif name == "log1p":
        one = writer.add("Cast", [writer.constant(_float(1))], to=writer.element(dtype))
        writer.add("Log", [writer.add("Add", [writer.read(inputs[0], dtype), one])], output)
    elif name == "not_equal":
        computed = _common(writer, node)
        writer.add("Not", [writer.add("Equal", [writer.read(v, computed) for v in inputs])], output)
    elif name == "isfinite":
        x = writer.names[inputs[0]]
        either = writer.add("Or", [writer.add("IsNaN", [x]), writer.add("IsInf", [x])])
        writer.add("Not", [either], output)
    elif name == "where":
        writer.add("Where", [writer.read(inputs[0], smelt.bool_), *(writer.read(v, dtype) for v in inputs[1:])], output)
    elif name in _REDUCTIONS:
        assert source is not None
        axes = attributes["axes"] if attributes["axes"] or attributes["no_axes"] else list(range(len(source[1])))
        writer.add(_REDUCTIONS[name], [writer.read(inputs[0], dtype), writer.integers(axes)], output,
                   keepdims=int(attributes["keepdims"]), noop_with_empty_axes=1)
    elif name == "reshape":
        writer.add("Reshape", [writer.names[inputs[0]], writer.integers(shape)], output, allowzero=1)
    elif name == "transpose":
        assert source is not None
        axes = attributes["axes"] or list(range(len(source[1])))[::-1]
        writer.add("Transpose", [writer.names[inputs[0]]], output, perm=[axis % len(axes) for axis in axes])
    elif name == "broadcast_to":
        writer.add("Expand", [writer.names[inputs[0]], writer.integers(shape)], output)
    elif name == "concatenate":
        axis = attributes["axes"][0] if attributes["axes"] else 0
        writer.add("Concat", [writer.read(v, dtype) for v in inputs], output, axis=axis)
    elif name == "slice":
        steps = [step or 1 for step in attributes["steps"]]
        stops = [stop if step > 0 or stop >= 0 else -2 ** 62 for stop, step in zip(attributes["stops"], steps)]
        writer.add("Slice", [writer.names[inputs[0]], *(writer.integers(v) for v in (
            attributes["starts"], stops, list(range(len(steps))), steps))], output)
    else:
        raise NotImplementedError(f"onnx: operation '{name}' has no ONNX operator here; supported are "
                                  f"{', '.join(sorted([*EXPORTED, *_REDUCTIONS, *_LOGICAL]))} and operations on shapes")


def _float(value: float) -> Any:
    import numpy
    return numpy.float32(value)


def save(graph: Graph, path: Any = None) -> Any:
    """The graph as an onnx.ModelProto, which is also written to `path`. Registered operations and kernels have no ONNX
    operator: NotImplementedError names the first."""
    onnx = _package()
    import numpy
    writer = _Writer()
    outputs = graph.handle.outputs()
    inputs: list[tuple[str, int]] = []
    for node in graph.handle.nodes():
        value, dtype, shape = node["outputs"][0]
        for each in node["outputs"]:
            writer.types[each[0]] = each[1:]
        if node["kind"] == "input":
            writer.names[value] = node["name"]
            inputs.append((node["name"], value))
        elif node["kind"] == "constant":
            writer.names[value] = writer.constant(numpy.asarray(node["constant"]))
        elif node["kind"] == "operation":
            writer.names[value] = writer.fresh()
            _write_node(writer, node, writer.names[value])
        else:
            raise NotImplementedError(f"onnx: '{node['name']}' is a {node['kind']}, which has no ONNX operator")

    def port(name: str, value: int) -> Any:
        dtype, shape = writer.types[value]
        return onnx.helper.make_tensor_value_info(name, writer.element(dtype), list(shape))

    for name, value in outputs:
        writer.add("Identity", [writer.names[value]], name)
    made = onnx.helper.make_model(
        onnx.helper.make_graph(writer.nodes, graph.name or "graph", [port(*p) for p in inputs], [port(*p) for p in outputs],
                               writer.constants),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)])
    onnx.checker.check_model(made)
    if path is not None:
        onnx.save(made, path)
    return made
