"""Graphs in files: what they hold, damage, the command that runs them. And attention, a step of graphs that files hold."""

import json
import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest
import smelt
from smelt.graph import Graph, InferenceSession, TensorType, ops

QUICK = True  # only make check-long runs the best code


def saved(tmp_path):
    def function(x, w, b):
        y = smelt.tanh(x @ w + b)
        return smelt.softmax(y, axis=-1), smelt.cumsum(y, axis=0), ops.custom(
            "matrix_multiplication", [x, w], parameters={"algorithm": "tiled"})[0]

    numbers = np.random.default_rng(8)
    arrays = [numbers.standard_normal(shape).astype("f") for shape in ((20, 30), (30, 40), (40,))]
    model = InferenceSession().load(Graph.of(function, *map(TensorType.of, arrays)))
    model.save(tmp_path / "model.graph")
    return arrays, model


def test_a_saved_model_runs_without_a_compiler(tmp_path):
    arrays, model = saved(tmp_path)
    np.savez(tmp_path / "inputs.npz", *arrays)
    np.savez(tmp_path / "outputs.npz", *[t.to_numpy() for t in model.execute(*arrays)])
    program = f"""
import numpy as np, smelt
from smelt.graph import InferenceSession
inputs, outputs = (list(np.load({str(tmp_path)!r} + "/" + name).values()) for name in ("inputs.npz", "outputs.npz"))
model = InferenceSession().load({str(tmp_path)!r} + "/model.graph")
assert all(np.array_equal(a.to_numpy(), b) for a, b in zip(model.execute(*inputs), outputs))
try:
    smelt.exp(smelt.array([1.0]))
except smelt.NoCompilerError:
    print("no compiler")
"""
    environment = dict(os.environ, SMELT_CLANG="/nonexistent", SMELT_CACHE_DIR=str(tmp_path / "cache"))
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "no compiler\n", done.stderr


def launches_while_saving(model, tmp_path):
    """Saves it as model.graph; the names of the kernels that ran meanwhile."""
    smelt.metal.start_capture(tmp_path / "trace.json")
    try:
        model.save(tmp_path / "model.graph")
    finally:
        smelt.metal.stop_capture()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    return {event["name"] for event in events if event.get("cat") == "launch"}


def test_equal_layers_share_their_kernels(tmp_path):
    """A model of 32 layers compiles as many kernels as one of two, and a file holds each once."""
    def layers(count):
        def function(x, w):
            for _ in range(count):
                y = smelt.softmax(smelt.where(x > 0, x, 2 * x) + 1, axis=-1)
                x = x + smelt.tanh((y * y + w).astype(smelt.float16).astype(smelt.float32) @ w)
            return x
        return function

    square = np.random.default_rng(4).standard_normal((24, 24)).astype("f")
    held = []
    for count in (2, 5):
        model = InferenceSession().load(Graph.of(layers(count), TensorType.of(square), TensorType.of(square)))
        model.save(tmp_path / "model.graph")
        held.append((tmp_path / "model.graph").read_bytes().count(b"smelt_fused"))
    assert held[0] == held[1] > 0, held


def test_saving_computes_nothing_that_machine_code_does_not_depend_on(tmp_path):
    """A large model's products and attention take minutes."""
    def function(x, w):
        y = (x @ w).reshape(1, 2, 40, 32)
        y = smelt.scaled_dot_product_attention(y, y, y, scale=0.2)
        row = kernel_graph(smelt.softmax(y, axis=-1).reshape(-1)[:8])[0]
        order = smelt.argsort(row)
        wide = smelt.take(row.astype(smelt.float64), order)
        ladder = ops.custom("matrix_multiplication", [x, w], parameters={"algorithm": "tiled"})[0]
        return (smelt.cumsum(wide.astype(smelt.float32)), smelt.tanh(ladder), smelt.sort(y, axis=1),
                smelt.take(y, smelt.argmax(y, axis=-1), axis=2), smelt.real(smelt.fft(x)))

    numbers = np.random.default_rng(6)
    arrays = [numbers.standard_normal(shape).astype("f") for shape in ((80, 24), (24, 32))]
    model = InferenceSession().load(Graph.of(function, *map(TensorType.of, arrays)))
    launches = launches_while_saving(model, tmp_path)
    assert launches and all("tiled" in name for name in launches), launches
    found = executed_fresh(tmp_path, tmp_path / "model.graph", arrays)
    for a, b in zip(found, model.execute(*arrays), strict=True):
        np.testing.assert_array_equal(a, b.to_numpy())


SAVE = """
import sys
import smelt
from smelt.graph import Graph, InferenceSession, TensorType

def function(x, w):
    y = (x @ w).reshape(1, 2, 40, 32)
    y = smelt.scaled_dot_product_attention(y, y, y, scale=0.2)
    return smelt.sort(smelt.softmax(y, axis=-1), axis=1), smelt.cumsum(y, axis=-1), smelt.real(smelt.fft(x))

arrays = [TensorType(smelt.float32, shape) for shape in ((80, 24), (24, 32))]
InferenceSession().load(Graph.of(function, *arrays)).save(sys.argv[1])
"""


def test_saved_code_is_that_of_the_graphs_launches(tmp_path):
    """Saving compiles each kernel for the graph's launches and once for all others; loading compiles nothing."""
    caches = [tmp_path / name for name in ("saving", "loading")]
    subprocess.run([sys.executable, "-c", SAVE, tmp_path / "model.graph"], check=True,
                   env={**os.environ, "SMELT_CACHE_DIR": str(caches[0])})
    kernels, codes = (len(list(caches[0].glob(pattern))) for pattern in ("*.bitcode", "*.image"))
    assert kernels > 5 and 2 <= codes / kernels < 3, (kernels, codes)
    numbers = np.random.default_rng(6)
    arrays = [numbers.standard_normal(shape).astype("f") for shape in ((80, 24), (24, 32))]
    executed_fresh(tmp_path, tmp_path / "model.graph", arrays, SMELT_CACHE_DIR=str(caches[1]))
    assert not list(caches[1].glob("*.image"))


def test_saved_attention_runs_with_any_number_of_threads(tmp_path):
    """Without a compiler, and with the same bits."""
    def function(x):
        return smelt.scaled_dot_product_attention(x, x, x, scale=0.2)

    path, array = tmp_path / "model.graph", np.random.default_rng(4).standard_normal((1, 4, 256, 32)).astype("f")
    InferenceSession().load(Graph.of(function, TensorType.of(array))).save(path)
    few, many = (executed_fresh(tmp_path, path, [array], SMELT_THREADS=threads, SMELT_CLANG="/nonexistent",
                                SMELT_CACHE_DIR=str(tmp_path / threads)) for threads in ("2", "8"))
    np.testing.assert_array_equal(few, many)


def test_streams_are_saved(tmp_path):
    def chains(x):
        values = [x * i for i in range(1, 5)]
        for _ in range(4):
            values = [smelt.cumsum(value, axis=0) for value in values]
        return values

    x = np.random.default_rng(4).standard_normal((50, 7)).astype("f")
    graph = Graph.of(chains, TensorType.of(x))
    in_order, at_once = (InferenceSession().load(graph, streams=count) for count in (0, 3))
    assert at_once.info["peak_bytes"] > in_order.info["peak_bytes"]  # the chains' buffers are not shared
    at_once.save(tmp_path / "streams.graph", code=False)
    loaded = InferenceSession().load(tmp_path / "streams.graph")
    assert loaded.info["peak_bytes"] == at_once.info["peak_bytes"]
    for model in (at_once, loaded):
        for made, wanted in zip(model.execute(x), in_order.execute(x)):
            assert np.array_equal(made.to_numpy(), wanted.to_numpy())
    with pytest.raises(ValueError, match="streams is 65, expected 0 to 64"):
        InferenceSession().load(graph, streams=65)


def test_damaged_files_are_refused(tmp_path):
    saved(tmp_path)
    whole = (tmp_path / "model.graph").read_bytes()
    draw = random.Random(0)
    cases = [b"", whole[:5], whole[:40], whole[:len(whole) // 2], whole[:-8], b"smeltgraph1" + whole[11:]]
    for _ in range(150 if "SMELT_TEST_FULL" in os.environ else 30):  # within the graph; what follows is machine code
        at = draw.randrange(12, 6000)
        cases.append(whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1:])
    for case in cases:
        (tmp_path / "damaged.graph").write_bytes(case)
        try:
            InferenceSession().load(tmp_path / "damaged.graph")
        except (ValueError, smelt.Error):
            continue  # a change of a constant, a name or a number is not found
        assert len(case) == len(whole)


def run_fresh(program, **environment):
    """The program's output, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


EXECUTE = """
import numpy as np
from smelt.graph import InferenceSession
arrays = list(np.load({inputs!r}).values())
np.savez({outputs!r}, *[t.to_numpy() for t in InferenceSession().load({path!r}).execute(*arrays)])
"""


def executed_fresh(tmp_path, path, arrays, **environment):
    """The outputs of a stored graph in a process of its own."""
    np.savez(tmp_path / "given.npz", *arrays)
    run_fresh(EXECUTE.format(inputs=str(tmp_path / "given.npz"), outputs=str(tmp_path / "made.npz"), path=str(path)),
              **environment)
    return list(np.load(tmp_path / "made.npz").values())


def kernel_graph(x):
    kernel = smelt.metal_kernel(
        name="shifted", input_names=["x", "by"], output_names=["y", "count"], atomic_outputs=False,
        header="template <typename U> U doubled(U v) { return v + v; }\n",
        source="uint i = thread_position_in_grid.x; if (i < N) y[i] = doubled(x[i]) + T(by); if (i == 0) count[0] = N;")
    return kernel(inputs=[smelt.tanh(x), 3.0], template=[("T", x.dtype), ("N", 5)], grid=(8, 1, 1), threadgroup=(4, 1, 1),
                  output_shapes=[(8,), (1,)], output_dtypes=[x.dtype, smelt.int32], init_value=7)


def test_kernel_bodies_are_saved_as_text(tmp_path):
    x = np.random.default_rng(3).standard_normal(8).astype("f")
    model = InferenceSession().load(Graph.of(kernel_graph, TensorType("float32", (8,))))
    model.save(tmp_path / "model.graph")
    y, count = executed_fresh(tmp_path, tmp_path / "model.graph", [x])
    np.testing.assert_allclose(y[:5], 2 * np.tanh(x[:5]) + 3, rtol=1e-6)
    assert (y[5:] == 7).all() and count == [5]
    with pytest.raises(OSError):
        model.save(tmp_path / "no folder" / "model")


def test_models_without_code_are_small_and_need_the_compiler(tmp_path):
    arrays, model = saved(tmp_path)
    model.save(tmp_path / "small.graph", code=False)
    assert (tmp_path / "small.graph").stat().st_size < 8192 < (tmp_path / "model.graph").stat().st_size
    for found, expected in zip(executed_fresh(tmp_path, tmp_path / "small.graph", arrays), model.execute(*arrays)):
        np.testing.assert_array_equal(found, expected.to_numpy())
    with pytest.raises(AssertionError, match="NoCompilerError"):
        executed_fresh(tmp_path, tmp_path / "small.graph", arrays, SMELT_CLANG="/nonexistent",
                       SMELT_CACHE_DIR=str(tmp_path / "cache"))


def test_constants_that_halves_express_take_half_the_room(tmp_path):
    numbers = np.random.default_rng(5).standard_normal((64, 64))
    sizes = {}
    for name, weights in (("halves", numbers.astype(np.float16).astype("f")), ("floats", numbers.astype("f"))):
        weights[0, :3] = [-0.0, np.inf, -np.inf]
        model = InferenceSession().load(Graph.of(lambda x: smelt.where(x > 0, smelt.array(weights), 0.0),
                                                 TensorType("float32", (64, 64))))
        model.save(tmp_path / name, code=False)
        sizes[name] = (tmp_path / name).stat().st_size
        found = InferenceSession().load(tmp_path / name).execute(np.ones((64, 64), "f"))[0].to_numpy()
        assert found.tobytes() == weights.tobytes()
    assert sizes["floats"] - sizes["halves"] == 64 * 64 * 2


def smelt_command(*arguments):
    command = pathlib.Path(os.environ["SMELT_BUILD"]) / "bin" / "smelt"
    return subprocess.run([str(command), *map(str, arguments)], capture_output=True, text=True)


def smelt_run(*arguments):
    return smelt_command("run", *arguments)


@pytest.mark.skipif("SMELT_BUILD" not in os.environ, reason="needs the command of the build")
def test_the_command_runs_saved_models(tmp_path):
    x, w = (np.random.default_rng(6).standard_normal(shape).astype("f") for shape in ((3, 4), (4, 2)))
    graph = Graph("product", [TensorType("float32", (3, 4), "x"), TensorType("float32", (4, 2), "w")])
    graph.output(y=graph.inputs[0] @ graph.inputs[1], total=smelt.sum(graph.inputs[0]))
    path = tmp_path / "model.smeltlib"
    InferenceSession().load(graph).save(path)
    for name, array in (("x", x), ("w", w)):
        np.save(tmp_path / f"{name}.npy", array)
    given = [path, "-i", f"w={tmp_path}/w.npy", "-i", f"x={tmp_path}/x.npy"]
    done = smelt_run(*given, "-o", f"y={tmp_path}/y.npy", "--repeat", 3)
    assert done.returncode == 0 and done.stdout.startswith("total float32") and "median of 3 executions" in done.stdout
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), x @ w, rtol=1e-5)
    assert [each["name"] for each in json.loads(smelt_run(*given, "--json").stdout)["outputs"]] == ["y", "total"]
    for wrong, status, message in [
            (given[:3], 1, "input 'x' (float32 3x4) is missing: -i x=FILE.npy"),
            ([*given, "-i", "v=2"], 1, "input 'v' does not exist in the graph; expected one like 'x'"),
            ([*given, "-o", "z=z.npy"], 1, "output 'z' does not exist in the graph; expected one like 'y'"),
            ([path, "-i", "x=2.0", "-i", f"w={tmp_path}/w.npy"], 1, "input 'x' is float32 scalar, expected float32 3x4"),
            ([*given, "--grid", "4"], 2, "is a graph, not a kernel"),
            ([*given, "-o", "y:float32:3x2"], 2, "output 'y' of a graph has its own dtype and shape; expected -o y=FILE"),
    ]:
        done = smelt_run(*wrong)
        assert done.returncode == status and message in done.stderr, (wrong, done.stderr)
    done = smelt_command("show", path)
    assert done.returncode and "is a graph, which smelt run executes; expected kernels" in done.stderr
    (tmp_path / "cut.smeltlib").write_bytes(path.read_bytes()[:-9])
    done = smelt_run(tmp_path / "cut.smeltlib", *given[1:])
    assert done.returncode == 2 and "cut.smeltlib is damaged or cut short" in done.stderr


# ---- Attention.

# Each mask compiles kernels of its own: make check runs two.
@pytest.mark.parametrize("mask, sinks", [("causal", False), ("floats", True),
                                         *([(None, False), ("bools", False)] if "SMELT_TEST_FULL" in os.environ else [])])
def test_attention_in_a_graph_is_that_of_arrays(tmp_path, mask, sinks):
    numbers = np.random.default_rng(9)
    q, k, v = (numbers.standard_normal(shape).astype("f") for shape in ((2, 4, 5, 24), (2, 2, 70, 24), (2, 2, 70, 8)))
    options = {"scale": 0.2}
    if mask == "bools":
        options["mask"] = numbers.random((2, 1, 5, 70)) < 0.5
    elif mask is not None:
        options["mask"] = mask if mask == "causal" else numbers.standard_normal((5, 70)).astype("f")
    if sinks:
        options["sinks"] = numbers.standard_normal(4).astype("f")

    def attend(q, k, v):
        return smelt.scaled_dot_product_attention(q + 0.0, k, v, **options) * 2

    model = InferenceSession().load(Graph.of(attend, *map(TensorType.of, (q, k, v))))
    expected = np.array(attend(q, k, v))
    np.testing.assert_array_equal(model.execute(q, k, v)[0].to_numpy(), expected)
    assert "attention" in model.show()
    model.save(tmp_path / "model.graph")
    made, = executed_fresh(tmp_path, tmp_path / "model.graph", [q, k, v], SMELT_CLANG="/nonexistent",
                           SMELT_CACHE_DIR=str(tmp_path / "cache"))
    np.testing.assert_array_equal(made, expected)


def test_attention_in_a_graph_has_gradients():
    numbers = np.random.default_rng(10)
    q, k, v = (numbers.standard_normal((1, 2, 6, 8)).astype("f") for _ in range(3))

    def loss(q, k, v):
        return smelt.sum(smelt.square(smelt.scaled_dot_product_attention(q, k, v, scale=0.3)))

    model = InferenceSession().load(Graph.of(lambda q, k, v: smelt.grad(loss, argnums=(0, 1, 2))(q, k, v),
                                             *map(TensorType.of, (q, k, v))))
    for found, expected in zip(model.execute(q, k, v), smelt.grad(loss, argnums=(0, 1, 2))(
            smelt.array(q), smelt.array(k), smelt.array(v))):
        np.testing.assert_allclose(found.to_numpy(), np.array(expected), rtol=1e-4, atol=1e-5)
