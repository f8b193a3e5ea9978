"""smelt.torch.TorchMetalKernel: Metal source with a reference in PyTorch, under everything that torch does with operations."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from smelt.torch import QuantizedLinear, TorchMetalKernel, scaled_dot_product_attention  # noqa: E402
from torch_devices import DEVICES, needs_gpu  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning", "ignore:.*torch.jit:DeprecationWarning")

ROWS = """
    uint row = thread_position_in_grid.x;
    uint n = x_shape[1];
    float squares = 0;
    for (uint i = 0; i < n; i++) squares += float(x[row * n + i]) * float(x[row * n + i]);
    float factor = rsqrt(squares / n + eps);
    for (uint i = 0; i < n; i++) out[row * n + i] = T(float(x[row * n + i]) * factor * float(weight[i]));
    factors[row] = factor;
"""


def norm(x, weight, eps):
    factors = torch.rsqrt(x.float().square().mean(1) + eps) if x.dtype != torch.float64 else torch.rsqrt(
        x.square().mean(1) + eps)
    return (x * factors[:, None] * weight).to(x.dtype), factors


def norm_vjp(primals, cotangents, outputs):
    x, weight, _ = primals
    g, f = cotangents[0].float() * weight.float(), outputs[1][:, None]
    x_hat = x.float() * f
    by_factor = (g * x.float()).sum(1, keepdim=True) + cotangents[1][:, None]
    by_x = g * f - by_factor * f**2 * x_hat / x.shape[1]
    return by_x, (cotangents[0].float() * x_hat).sum(0), None


def make(name, **changed):
    arguments = dict(source=ROWS, inputs={"x": torch.Tensor, "weight": torch.Tensor, "eps": float},
                     results={"out": "T", "factors": torch.float32}, templates={"T": "x"}, torch_defn=norm,
                     threads_per_grid=lambda x, *_: (x.shape[0],), threads_per_threadgroup=(32,))
    return TorchMetalKernel(f"smelt_test::{name}", **{**arguments, **changed})


by_reference = make("rms_by_reference")
by_vjp = make("rms_by_vjp", vjp=norm_vjp, result_shapes=lambda x, *_: [x.shape, [x.shape[0]]])
# Whole source, and sizes in each call.
add_source = """
#include <metal_stdlib>
using namespace metal;
kernel void ignored_name(device const T *x [[buffer(0)]], device const T *y [[buffer(1)]], constant float &factor [[buffer(2)]],
                         device T *out [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    out[i] = T(float(x[i]) + FACTOR * factor * float(y[i]));
}
"""
added = TorchMetalKernel("smelt_test_added", add_source, {"x": torch.Tensor, "y": torch.Tensor, "factor": float}, ["out"],
                         templates={"T": "x", "FACTOR": 3}, torch_defn=lambda x, y, factor: x + 3 * factor * y)
LAUNCH = {"threads_per_grid": lambda x, *_: (x.numel(), 1, 1), "threads_per_threadgroup": (64, 1, 1)}


def data(dtype=torch.float32, device="cpu", rows=5, columns=7):
    return (torch.randn(rows, columns, dtype=dtype, device=device, requires_grad=True),
            torch.randn(columns, dtype=dtype, device=device, requires_grad=True), 1e-5)


def close(made, expected):
    torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", [by_reference, by_vjp], ids=str)
def test_results_and_gradients(kernel, device):
    inputs = data(device=device)
    made, expected = kernel(*inputs), norm(*inputs)
    g = torch.randn_like(inputs[0]), torch.randn(5, device=device)
    for a, b in zip(made, expected):
        close(a, b)
    for a, b in zip(torch.autograd.grad(made, inputs[:2], g), torch.autograd.grad(expected, inputs[:2], g)):
        close(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_verify(dtype):
    for kernel in (by_reference, by_vjp):
        checked = kernel.verify(*data(dtype, rows=33, columns=65))
        assert [each[0] for each in checked.results] == ["result 'out'", "result 'factors'"]
        assert len(checked.gradients) == (2 if kernel is by_vjp else 0)
    assert added.verify(torch.randn(9, dtype=dtype), torch.randn(9, dtype=dtype), 0.5, **LAUNCH).results[0][1] < 0.1


def test_verify_names_what_differs():
    wrong = make("rms_wrong", torch_defn=lambda *inputs: (norm(*inputs)[0] * 1.01, norm(*inputs)[1]))
    with pytest.raises(AssertionError, match="result 'out' differs from torch_defn by"):
        wrong.verify(*data())
    wrong = make("rms_wrong_vjp", vjp=lambda p, c, o: (norm_vjp(p, c, o)[0], norm_vjp(p, c, o)[1] * 1.01, None))
    with pytest.raises(AssertionError, match="the gradient of 'weight' differs"):
        wrong.verify(*data(rows=50))
    shaped = make("rms_shaped", result_shapes=lambda x, *_: [x.shape, [x.shape[0] + 1]])
    with pytest.raises(AssertionError, match=r"result 'factors' has shape \(6,\); torch_defn gives \(5,\)"):
        shaped.verify(*data())
    with pytest.raises(ValueError, match="expected a kernel with torch_defn"):
        make("rms_alone", torch_defn=None).verify(*data())


@pytest.mark.parametrize("kernel", [by_reference, by_vjp], ids=str)
def test_opcheck(kernel):
    torch.library.opcheck(kernel.op.overload, data())
    torch.library.opcheck(kernel.op.overload, data(torch.float16))


def test_opcheck_with_sizes_in_the_call():
    torch.library.opcheck(added.op.overload, (torch.randn(3, 2, requires_grad=True), torch.randn(3, 2), 2.0, [6], [64], [3, 2], [2]))


def test_sizes_of_the_call():
    x, y = torch.randn(4, 6).t(), torch.randn(6, 4)
    close(added(x, y, 2.0, **LAUNCH), x + 6 * y)
    flat = added(x, y, factor=2.0, result_shapes=lambda x, *_: [[x.numel()]], threads_per_grid=(24,), threads_per_threadgroup=(24,))
    close(flat, (x + 6 * y).flatten())
    assert torch.equal(torch.ops.smelt.smelt_test_added(x, y, 2.0, [24], [24]), flat.reshape(6, 4))


@pytest.mark.parametrize("kernel", [by_reference, by_vjp], ids=str)
def test_compile_without_a_graph_break_and_with_symbolic_sizes(kernel):
    def loss(x, weight):
        return kernel(x * 2, weight, 1e-5)[0].square().sum() + added(x, x, 1.0, **LAUNCH).sum()

    def expected(x, weight):
        return norm(x * 2, weight, 1e-5)[0].square().sum() + 4 * x.sum()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (5, 8, 3):
        inputs = data(rows=rows)[:2]
        close(compiled(*inputs), expected(*inputs))
        for a, b in zip(torch.autograd.grad(compiled(*inputs), inputs), torch.autograd.grad(expected(*inputs), inputs)):
            close(a, b)


def test_export_with_a_dimension_that_varies():
    class Model(torch.nn.Module):
        def forward(self, x, weight):
            return by_vjp(x, weight, 1e-5)[0] + added(x, x, 1.0, result_shapes=lambda x, *_: [x.shape], **LAUNCH)
    example = [x.detach() for x in data()[:2]]
    program = torch.export.export(Model(), tuple(example), dynamic_shapes={"x": {0: torch.export.Dim("rows")}, "weight": None})
    assert "smelt_test.rms_by_vjp" in str(program.graph)
    x, weight = (x.detach() for x in data(rows=11)[:2])
    close(program.module()(x, weight), norm(x, weight, 1e-5)[0] + 4 * x)


@pytest.mark.parametrize("kernel", [by_reference, by_vjp], ids=str)
def test_torch_func(kernel):
    _, weight, eps = data()
    weight = weight.detach()
    xs = torch.randn(3, 5, 7)
    close(torch.func.vmap(lambda x: kernel(x, weight, eps)[0])(xs), torch.stack([norm(x, weight, eps)[0] for x in xs]))

    def loss(run):
        return lambda x: run(x, weight, eps)[0].square().sum()
    close(torch.func.grad(loss(kernel))(xs[0]), torch.func.grad(loss(norm))(xs[0]))
    close(torch.func.vmap(torch.func.grad(loss(kernel)))(xs), torch.func.vmap(torch.func.grad(loss(norm)))(xs))


def test_gradients_of_gradients_by_the_reference():
    x, weight, eps = data()
    grads = []
    for run in (by_reference, norm):
        first, = torch.autograd.grad(run(x, weight, eps)[0].square().sum(), x, create_graph=True)
        grads.append(torch.autograd.grad(first.square().sum(), x)[0])
    torch.testing.assert_close(*grads, rtol=1e-3, atol=1e-4)


def test_autocast():
    x, weight, eps = data()
    lowered = make("rms_lowered", autocast=True)
    raised = make("rms_raised", autocast=torch.float32)
    for run in (lowered, torch.compile(lambda *args: lowered(*args), backend="aot_eager", fullgraph=True)):
        assert run(x, weight, eps)[0].dtype == torch.float32
        with torch.autocast("cpu", torch.bfloat16):
            made = run(x, weight, eps)[0]
            assert made.dtype == torch.bfloat16
        made.sum().backward()
        assert x.grad.dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert raised(x.half(), weight.half(), eps)[0].dtype == torch.float32
        assert by_reference(x.half(), weight.half(), eps)[0].dtype == torch.float16


def test_slices_of_a_distributed_tensor(tmp_path):
    """Each of two processes runs the kernel on its rows."""
    script = tmp_path / "sharded.py"
    script.write_text(f"""
import sys
sys.path[:0] = {[os.path.dirname(__file__), *sys.path]!r}
import torch, torch.distributed as dist
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
from test_torch_kernel import by_vjp, norm
dist.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=int(sys.argv[1]), world_size=2)
mesh = init_device_mesh("cpu", (2,))
by_vjp.shard([([Shard(0), Replicate(), None], [Shard(0), Shard(0)])])
torch.manual_seed(1)
x, weight = torch.randn(6, 7), torch.randn(7)
out, factors = by_vjp(distribute_tensor(x, mesh, [Shard(0)]), distribute_tensor(weight, mesh, [Replicate()]), 1e-5)
assert out.placements == (Shard(0),) and out.to_local().shape == (3, 7), out
torch.testing.assert_close(out.full_tensor(), norm(x, weight, 1e-5)[0])
out, _ = by_vjp(distribute_tensor(x, mesh, [Shard(1)]), distribute_tensor(weight, mesh, [Shard(0)]), 1e-5)
torch.testing.assert_close(out.full_tensor(), norm(x, weight, 1e-5)[0])
dist.destroy_process_group()
""")
    if not torch.distributed.is_available():
        pytest.skip("torch has no torch.distributed")
    running = [subprocess.Popen([sys.executable, str(script), str(rank)], stderr=subprocess.PIPE, text=True) for rank in (0, 1)]
    failed = [process.communicate(timeout=240)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], failed


@needs_gpu
def test_no_call_waits_for_the_device():
    inputs = data(device="cuda")
    by_vjp(*inputs)[0].sum().backward()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        by_vjp(*inputs)[0].sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@needs_gpu
def test_streams_and_graphs():
    x, weight, eps = (each.detach() if isinstance(each, torch.Tensor) else each for each in data(device="cuda"))
    by_vjp(x, weight, eps)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        made = by_vjp(x, weight, eps)[0]
    torch.cuda.current_stream().wait_stream(stream)
    close(made, norm(x, weight, eps)[0])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = by_vjp(by_vjp(x, weight, eps)[0], weight, eps)[0]  # which releases a result of the other stream
    for _ in range(3):
        x.normal_()
        made.zero_()
        graph.replay()
        close(made, norm(norm(x, weight, eps)[0], weight, eps)[0])


turned = TorchMetalKernel(
    name="smelt_test::turned",
    source="""
        uint i = thread_position_in_grid.x, rest = i;
        long at = 0;
        for (int d = x_ndim - 1; d >= 0; d--) { at += rest % x_shape[d] * x_strides[d]; rest /= x_shape[d]; }
        out[i] = x[at];
    """,
    inputs=["x"], results=["out"], ensure_row_contiguous=False, torch_defn=lambda x: x.contiguous(),
    threads_per_grid=lambda x: (x.numel(),), threads_per_threadgroup=(64,))


@needs_gpu
@torch.no_grad()
def test_sizes_in_graphs():
    """Shapes that a kernel reads by an index that changes are in memory of the GPU."""
    x = torch.randn(3, 5, 7, device="cuda")
    views = [x.permute(2, 0, 1), x.mT, x[:, ::2], x]
    for view in views:
        turned(view)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = [turned(view) for view in views]
    for _ in range(2):
        x.normal_()
        for _ in range(100):  # others use what their copies went through
            turned(x[1:, 1:])
        graph.replay()
        for a, b in zip(made, views):
            assert torch.equal(a, b)


@needs_gpu
@torch.no_grad()
def test_attention_and_packed_layers_in_graphs():
    layer = QuantizedLinear.pack(torch.nn.Linear(256, 192, device="cuda", dtype=torch.bfloat16), "int4")
    x = torch.randn(1, 256, device="cuda", dtype=torch.bfloat16)
    q, k, v = (torch.randn(1, heads, rows, 64, device="cuda", dtype=torch.bfloat16) for heads, rows in ((4, 1), (2, 4097), (2, 4097)))

    def step():
        return layer(x), scaled_dot_product_attention(q, k, v)
    for _ in range(2):
        made = step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = step()
    for _ in range(3):
        for each in (x, q, k, v):
            each.normal_()
        graph.replay()
        for a, b in zip(made, step()):
            torch.testing.assert_close(a, b)


def test_messages():
    x = torch.randn(3)
    for changed, message in (
        ({"results": []}, "results is empty"), ({"inputs": {"eps": float}}, "expected a tensor or more"),
        ({"inputs": ["x", "out"], "results": ["out"]}, "the input's name 'out' is taken"),
        ({"templates": {"T": "y"}}, "templates has 'T': 'y'; expected a dtype or one of: x, weight, eps"),
    ):
        with pytest.raises(ValueError, match=message):
            make("rms_refused", **changed)
    with pytest.raises(TypeError, match="inputs given: 1; expected 3: x, y, factor"):
        added(x, **LAUNCH)
    with pytest.raises(TypeError, match="the argument 'z' is unknown or given twice"):
        added(x, x, z=2.0)
    with pytest.raises(ValueError, match="threads_per_grid is missing"):
        added(x, x, 1.0)
    with pytest.raises(ValueError, match=r"result_shapes is \[3\]; expected a shape for each of: out"):
        added(x, x, 1.0, result_shapes=[3], **LAUNCH)
    with pytest.raises(ValueError, match="result_shapes is missing; expected a shape for each of out, factors"):
        make("rms_shapeless", torch_defn=None)(*data())
    nameless = TorchMetalKernel("smelt_test::nameless", add_source.replace(" y ", " z ").replace("*y ", "*z ").replace("y[", "z["),
                                {"x": torch.Tensor, "y": torch.Tensor, "factor": float}, ["out"], templates={"T": "x", "FACTOR": 3},
                                result_shapes=lambda x, *_: [x.shape], **LAUNCH)
    with pytest.raises(ValueError, match="'y' is not a buffer of the function; expected one of: factor, out, x, z"):
        nameless(x, x, 1.0)


def test_wrong_arguments_are_named_in_a_sentence():
    settings = {"source": "uint i = thread_position_in_grid.x; out[i] = x[i] * s;", "inputs": {"x": torch.Tensor, "s": float},
                "results": ["out"], "threads_per_grid": lambda x, s: (8,), "threads_per_threadgroup": (8,)}
    kernel = TorchMetalKernel("smelt_test::arguments", result_shapes=lambda x, s: [x.shape], **settings)
    x = torch.ones(8)
    for wrong, message in (
            (lambda: kernel(x.numpy(), 2.0), "smelt_test::arguments: input 'x' is of type ndarray; expected a torch.Tensor"),
            (lambda: kernel([1.0], 2.0), "smelt_test::arguments: input 'x' is of type list; expected a torch.Tensor"),
            (lambda: kernel(x, "2"), "smelt_test::arguments: input 's' is '2'; expected a number of type float"),
            (lambda: kernel(x, None), "smelt_test::arguments: input 's' is None; expected a number of type float"),
            (lambda: kernel(x, 2.0, threads_per_grid=(8.0,)),
             "smelt_test::arguments: threads_per_grid is (8.0,); expected up to three whole numbers")):
        with pytest.raises(TypeError) as error:
            wrong()
        assert str(error.value) == message
    with pytest.raises(ValueError, match="the name is 'a b'; expected \"operation\" or \"library::operation\", of letters, digits"):
        TorchMetalKernel("a b", **settings)
    with pytest.raises(RuntimeError, match="arguments has no VJP.*; give torch_defn or vjp where the kernel is made"):
        kernel(x.clone().requires_grad_(), 2.0).sum().backward()
