"""smelt.torch: kernels as operations of PyTorch, on every device that torch has."""

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import smelt  # noqa: E402
import smelt.torch  # noqa: E402
from torch_devices import DEVICES, needs_gpu  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning", "ignore:.*torch.jit:DeprecationWarning")

# (B, H, W, C), (N, M): channels on both sides of a simdgroup, odd sizes, single pixels.
SIZES = [((1, 4, 6, 4), (3, 5)), ((2, 5, 7, 33), (3, 4)), ((1, 9, 3, 1), (4, 4)), ((3, 1, 1, 2), (2, 3))]

kernel = smelt.metal_kernel(name="scaled_square", input_names=["x", "factor"], output_names=["out"], source="""
    uint i = thread_position_in_grid.x;
    out[i] = T(float(x[i]) * float(x[i]) * factor);
""")


def whole(x):
    """The grid of a thread for each element."""
    return (x.numel(), 1, 1)


def squared(x, factor):
    return kernel(inputs=[x, factor], template=[("T", x.dtype)], grid=whole(x), threadgroup=(64, 1, 1),
                  output_shapes=[x.shape], output_dtypes=[x.dtype])[0]


@smelt.torch.op("smelt_test::scaled_square")
def scaled_square(x: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
    """factor * x * x."""
    return squared(x, factor)


@scaled_square.vjp
def scaled_square_vjp(primals, cotangent, output):
    x, factor = primals
    return 2 * factor * x * cotangent, None


@pytest.fixture(scope="module")
def example(source_folder):
    sys.path.insert(0, f"{source_folder}/examples/python")
    try:
        return pytest.importorskip("grid_sample")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def grid_sample(example):
    """The example's custom function as an operation, with nothing added."""
    return smelt.torch.op("smelt_test::grid_sample")(example.grid_sample)


def theirs(x, grid):
    sampled = torch.nn.functional.grid_sample(x.permute(0, 3, 1, 2), grid, mode="bilinear", padding_mode="zeros",
                                              align_corners=False)
    return sampled.permute(0, 2, 3, 1)


def data(shape, points, device="cpu", reach=1.3):
    """Images and points, away from the lines between pixels, where there is no derivative."""
    rng = np.random.default_rng()
    grid = rng.uniform(-reach, reach, (shape[0], *points, 2))
    for axis, size in ((0, shape[2]), (1, shape[1])):
        at = ((grid[..., axis] + 1) * size - 1) / 2
        grid[..., axis] = ((np.floor(at) + np.clip(at - np.floor(at), 0.2, 0.8)) * 2 + 1) / size - 1
    return (torch.tensor(rng.standard_normal(shape), dtype=torch.float32, device=device, requires_grad=True),
            torch.tensor(grid, dtype=torch.float32, device=device, requires_grad=True))


# ---- An operation.

@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_elementwise(device, dtype):
    x = torch.randn(3, 5, device=device).to(dtype).requires_grad_()
    out = scaled_square(x, 3.0)
    assert out.device == x.device and out.dtype == dtype and out.requires_grad
    tolerance = {torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
    torch.testing.assert_close(out, 3 * x * x, rtol=tolerance, atol=tolerance)
    out.sum().backward()
    assert x.grad.dtype == dtype
    torch.testing.assert_close(x.grad, 6 * x.detach(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("view", [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[1:, 1:],
                                  lambda x: x[:, :1].expand(4, 6)])
def test_views(device, view):
    base = torch.randn(4, 6, device=device, requires_grad=True)
    x = view(base)
    torch.testing.assert_close(scaled_square(x), x * x)
    ours, = torch.autograd.grad(scaled_square(x).sum(), base)
    plain, = torch.autograd.grad((x * x).sum(), base)
    torch.testing.assert_close(ours, plain)


def test_opcheck_of_an_elementwise_operation():
    for args in ((torch.randn(4, 3, requires_grad=True), 2.0), (torch.randn(5).half(),), (torch.randn(4, 3).t(), 0.5)):
        torch.library.opcheck(scaled_square.overload, args)


def test_keywords_defaults_and_names():
    x = torch.randn(3)
    assert torch.equal(scaled_square(x=x, factor=2.0), scaled_square(x, 2.0))
    assert torch.equal(torch.ops.smelt_test.scaled_square(x), scaled_square(x, 1.0))
    assert scaled_square.__doc__ == "factor * x * x." and "smelt_test::scaled_square(x" in repr(scaled_square)


@pytest.mark.parametrize("device", DEVICES)
def test_without_elements(device, grid_sample):
    x = torch.empty(0, 3, device=device, requires_grad=True)
    out = scaled_square(x)
    assert out.shape == (0, 3) and out.device == x.device
    out.sum().backward()
    assert x.grad.shape == (0, 3)
    x, grid = data((2, 3, 4, 5), (2, 2), device)
    out = grid_sample(x, grid[:, :0])
    assert out.shape == (2, 0, 2, 5)
    out.sum().backward()
    assert torch.equal(x.grad, torch.zeros_like(x))
    torch.library.opcheck(scaled_square.overload, (torch.empty(0, 3, device=device, requires_grad=True),))


def test_one_argument_without_elements_and_a_result_with_some():
    added = smelt.torch.op("smelt_test::added")(lambda x, more: squared(x, 1.0) + more.sum())
    assert torch.equal(added(torch.full((3,), 2.0), torch.empty(0)), torch.full((3,), 4.0))


def test_on_the_device_meta():
    out = scaled_square(torch.empty(2, 3, dtype=torch.float16, device="meta"))
    assert out.shape == (2, 3) and out.dtype == torch.float16 and out.device.type == "meta"


both = smelt.metal_kernel(name="both", input_names=["a", "b"], output_names=["sum", "product"], source="""
    uint i = thread_position_in_grid.x;
    sum[i] = a[i] + b[i];
    product[i] = a[i] * b[i];
""")


@pytest.fixture(scope="module")
def sum_and_product():
    """From a kernel with two outputs; shapes, dtypes and the grid follow from the arguments."""
    def vjp(primals, cotangents, outputs):
        (a, b), (by_sum, by_product) = primals, cotangents
        assert isinstance(outputs, tuple) and len(outputs) == 2
        return by_sum + by_product * b, by_sum + by_product * a

    return smelt.torch.from_kernel(
        "smelt_test::both", both, output_shapes=lambda a, b: [a.shape, a.shape],
        output_dtypes=lambda a, b: [a.dtype] * 2, grid=lambda a, b: whole(a), threadgroup=(32, 1, 1), vjp=vjp)


@pytest.mark.parametrize("device", DEVICES)
def test_several_results(device, sum_and_product):
    a, b = (torch.randn(7, device=device, requires_grad=True) for _ in range(2))
    total, product = sum_and_product(a, b)
    torch.testing.assert_close((total, product), (a + b, a * b))
    ours = torch.autograd.grad((total * 3 + product.sin()).sum(), (a, b))
    torch.testing.assert_close(ours, torch.autograd.grad(((a + b) * 3 + (a * b).sin()).sum(), (a, b)))
    # One result is not used: its cotangent is zeros.
    ours = torch.autograd.grad(sum_and_product(a, b)[1].sum(), (a, b))
    torch.testing.assert_close(ours, (b.detach(), a.detach()))
    torch.library.opcheck(sum_and_product.overload, (a, b))


def test_arguments_that_are_none_or_integers():
    @smelt.torch.op("smelt_test::masked")
    def masked(x: torch.Tensor, mask: torch.Tensor | None, repeats: int, scale: float | None = None) -> torch.Tensor:
        out = squared(x, float(repeats) * (scale or 1.0))
        return out if mask is None else out * mask

    @masked.vjp
    def masked_vjp(primals, cotangent, output):
        x, mask, repeats, scale = primals
        return 2 * repeats * (scale or 1.0) * x * cotangent * (1 if mask is None else mask), None, None, None

    x, mask = torch.randn(5, requires_grad=True), torch.tensor([1, 0, 1, 0, 1])
    for arguments in ((x, None, 3), (x, mask, 2, 0.5), (x, mask, 1, None)):
        repeats, scale = arguments[2], (arguments[3:] or (None,))[0] or 1.0
        expected = x * x * repeats * scale * (1 if arguments[1] is None else mask)
        torch.testing.assert_close(masked(*arguments), expected)
        torch.testing.assert_close(*(torch.autograd.grad(out.sum(), x) for out in (masked(*arguments), expected)))
        torch.library.opcheck(masked.overload, arguments)
    # A gradient of None for a tensor that needs one is zeros.
    soft = torch.rand(5, requires_grad=True)
    assert torch.equal(torch.autograd.grad(masked(x, soft, 1).sum(), soft)[0], torch.zeros(5))


def test_results_that_share_memory_are_copied():
    same = smelt.torch.op("smelt_test::same")(lambda x: x)

    @same.vjp
    def same_vjp(x, cotangent, output):
        return cotangent

    x = torch.randn(4, requires_grad=True)
    out = same(x)
    assert torch.equal(out, x) and out.data_ptr() != x.data_ptr()
    torch.library.opcheck(same.overload, (x,))
    torch.testing.assert_close(torch.autograd.grad(out.sum(), x)[0], torch.ones(4))


def test_a_function_of_a_library_has_a_fake():
    library = smelt.library("kernel void twice(device const float *x, device float *out, "
                            "uint i [[thread_position_in_grid]]) { out[i] = 2 * x[i]; }")

    @smelt.torch.op("smelt_test::twice")
    def twice(x):
        out = torch.empty_like(x)
        library.twice(x, out, threads=x.numel())
        return out

    assert torch.equal(twice(torch.ones(3)), torch.full((3,), 2.0))
    with pytest.raises(TypeError, match="smelt.torch"):
        fake_run(twice)
    twice.fake(lambda x: torch.empty_like(x))
    torch.library.opcheck(twice.overload, (torch.ones(3),))


def fake_run(operation):
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        return operation(torch.ones(3))


# ---- grid_sample.

@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape, points", SIZES)
def test_grid_sample_equals_torch_s(device, shape, points, grid_sample):
    x, grid = data(shape, points, device)
    ours, expected = grid_sample(x, grid), theirs(x, grid)
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)
    cotangent = torch.randn_like(expected)
    for actual, wanted in zip(torch.autograd.grad(ours, (x, grid), cotangent),
                              torch.autograd.grad(expected, (x, grid), cotangent)):
        torch.testing.assert_close(actual, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_only_the_gradients_that_are_wanted(device, grid_sample):
    x, grid = data((1, 4, 5, 3), (2, 2), device)
    out = grid_sample(x.detach(), grid)
    out.sum().backward()
    expected, = torch.autograd.grad(theirs(x.detach(), grid).sum(), grid)
    torch.testing.assert_close(grid.grad, expected, rtol=1e-4, atol=1e-4)
    assert not grid_sample(x.detach(), grid.detach()).requires_grad
    with torch.no_grad():
        assert not grid_sample(x, grid).requires_grad


@pytest.mark.parametrize("device", DEVICES)
def test_opcheck_of_grid_sample(device, grid_sample):
    for shape, points in SIZES[:3]:
        torch.library.opcheck(grid_sample.overload, data(shape, points, device))
    x, grid = data((2, 5, 4, 6), (2, 3), device)
    torch.library.opcheck(grid_sample.overload, (x.transpose(1, 2), grid[:, ::2]))


@pytest.mark.parametrize("device", DEVICES)
def test_gradcheck_of_grid_sample(device, grid_sample):
    """The kernels compute in float32. Between the lines samples are linear in x, in each coordinate of a point, and in
    its channels, so a wide step has no error but that of rounding, ~1e-7 / eps. nondet_tol: atomic additions are in any
    order."""
    x, grid = data((2, 3, 4, 3), (2, 3), device)
    settings = {"eps": 1e-2, "atol": 2e-3, "rtol": 1e-3, "nondet_tol": 1e-4}
    with pytest.warns(UserWarning, match="double"):
        assert torch.autograd.gradcheck(grid_sample, (x, grid), **settings)

    wrong = smelt.torch.op("smelt_test::wrong")(lambda x, grid: grid_sample(x, grid))

    @wrong.vjp
    def wrong_vjp(primals, cotangent, output):
        by_x, by_grid = torch.ops.smelt_test.grid_sample_vjp(*primals, [cotangent], [output], [True, True])
        return by_x, by_grid * 1.1

    with pytest.warns(UserWarning, match="double"), pytest.raises(RuntimeError, match="Jacobian"):
        torch.autograd.gradcheck(wrong, (x, grid), **settings)


@pytest.mark.parametrize("device", DEVICES)
def test_half_precision_images(device, grid_sample):
    x, grid = data((1, 4, 5, 3), (2, 2), device)
    half = x.detach().half().requires_grad_()
    out = grid_sample(half, grid)
    assert out.dtype == torch.float16
    torch.testing.assert_close(out.float(), theirs(half.float(), grid), rtol=2e-3, atol=2e-3)
    out.float().sum().backward()
    assert half.grad.dtype == torch.float16
    expected, = torch.autograd.grad(theirs(x, grid).sum(), x)
    torch.testing.assert_close(half.grad.float(), expected, rtol=1e-2, atol=1e-2)
    # The kernel's gradient is float32; the operation's is of the image's dtype, as torch is told before it runs.
    by_half, by_grid = torch.ops.smelt_test.grid_sample_vjp(half.detach(), grid.detach(), [out.detach()], [out.detach()],
                                                            [True, True])
    assert by_half.dtype == torch.float16 and by_grid.dtype == torch.float32


# ---- torch's other machinery.

@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile(device, backend, grid_sample):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = torch.nn.Parameter(torch.tensor([0.05, -0.02], device=device))

        def forward(self, x, grid):
            return grid_sample(x.tanh(), grid + self.shift).square().mean()

    torch.compiler.reset()
    model = Model()
    compiled = torch.compile(model, backend=backend, fullgraph=True, dynamic=True)
    for shape, points in (((1, 4, 6, 4), (3, 5)), ((2, 5, 7, 3), (3, 4)), ((3, 6, 5, 33), (2, 7))):
        x, grid = data(shape, points, device)
        ours = torch.autograd.grad(compiled(x, grid), (x, grid, model.shift))
        plain = torch.autograd.grad(model(x, grid), (x, grid, model.shift))
        torch.testing.assert_close(ours, plain, rtol=1e-3, atol=1e-5)


def test_export():
    class Model(torch.nn.Module):
        def forward(self, x):
            return scaled_square(x, 2.0) + 1

    exported = torch.export.export(Model(), (torch.randn(3, 4),), dynamic_shapes=({0: torch.export.Dim("n")},))
    assert "smelt_test.scaled_square" in str(exported.graph)
    x = torch.randn(9, 4)
    torch.testing.assert_close(exported.module()(x), 2 * x * x + 1)


@pytest.mark.parametrize("device", DEVICES)
def test_torch_func(device, grid_sample):
    def loss(sample):
        return lambda x, grid: sample(x, grid).square().sum()

    pairs = [data((1, 4, 5, 3), (2, 3), device) for _ in range(3)]
    xs, grids = (torch.stack([pair[i].detach() for pair in pairs]) for i in (0, 1))
    torch.testing.assert_close(torch.func.vmap(grid_sample)(xs, grids), torch.func.vmap(theirs)(xs, grids))
    torch.testing.assert_close(torch.func.vmap(grid_sample, (0, None))(xs, grids[0]),
                               torch.stack([theirs(x, grids[0]) for x in xs]))
    torch.testing.assert_close(torch.func.grad(loss(grid_sample), (0, 1))(xs[0], grids[0]),
                               torch.func.grad(loss(theirs), (0, 1))(xs[0], grids[0]), rtol=1e-4, atol=1e-4)
    ours = torch.func.vmap(torch.func.grad(loss(grid_sample), (0, 1)))(xs, grids)
    for i in range(3):
        plain = torch.func.grad(loss(theirs), (0, 1))(xs[i], grids[i])
        torch.testing.assert_close((ours[0][i], ours[1][i]), plain, rtol=1e-4, atol=1e-4)
    x = torch.randn(4, device=device)
    torch.testing.assert_close(torch.func.grad(lambda x: scaled_square(x).sum())(x), 2 * x)  # factor left out
    with pytest.raises(NotImplementedError, match="jvp"):
        torch.func.jvp(loss(grid_sample), (xs[0], grids[0]), (xs[0], grids[0]))


def test_the_gradient_of_a_gradient():
    x = torch.randn(4, requires_grad=True)
    first, = torch.autograd.grad(scaled_square(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="scaled_square: the gradient of its gradient.*differentiable=True"):
        first.sum().backward()

    smooth = smelt.torch.op("smelt_test::smooth")(lambda x: squared(x, 1.0))

    @smooth.vjp(differentiable=True)
    def smooth_vjp(x, cotangent, output):
        return 2 * x * cotangent

    first, = torch.autograd.grad((smooth(x) * x).sum(), x, create_graph=True)
    second, = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(first.detach(), 3 * x.detach() ** 2)
    torch.testing.assert_close(second, 6 * x.detach())
    torch.library.opcheck(smooth.overload, (x,))


@pytest.mark.parametrize("device", DEVICES)
def test_training_lowers_the_loss(device, grid_sample):
    torch.manual_seed(0)
    x, points = data((1, 16, 16, 2), (8, 8), device, reach=0.7)
    x = x.detach()
    target = grid_sample(x, points.detach()).detach()
    image = torch.zeros_like(x, requires_grad=True)
    optimizer = torch.optim.Adam([image], lr=0.1)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (grid_sample(image, points.detach()) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]


@needs_gpu
def test_the_current_stream(grid_sample):
    """Forward and backward are in the order of the stream that is current, behind slow work on it."""
    x, grid = data((2, 32, 32, 33), (16, 16), "cuda")
    expected = torch.autograd.grad(theirs(x, grid).square().sum(), (x, grid))
    grid_sample(x, grid).sum().backward()
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        late = torch.full_like(x, float("nan"))
        torch.cuda._sleep(200_000_000)
        late.copy_(x.detach())
        late.requires_grad_()
        ours = torch.autograd.grad(grid_sample(late, grid).square().sum(), (late, grid))
        assert not stream.query(), "the call waited for the stream"
    stream.synchronize()
    torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-3)


# ---- torch.autograd.Function.

@pytest.mark.parametrize("device", DEVICES)
def test_autograd_function(device, example):
    function = smelt.torch.autograd_function(example.forward, lambda primals, g, out: example.backward(*primals, g))
    assert issubclass(function, torch.autograd.Function)
    x, grid = data((2, 5, 7, 33), (3, 4), device)
    ours, plain = (torch.autograd.grad(out.square().sum(), (x, grid), create_graph=True)
                   for out in (function.apply(x, grid), theirs(x, grid)))
    for actual, wanted in zip(ours, plain):
        torch.testing.assert_close(actual.detach(), wanted.detach(), rtol=1e-3, atol=1e-3)
    with pytest.raises(RuntimeError, match="the gradient of its gradient"):
        ours[0].sum().backward()
    by_func = torch.func.grad(lambda x: function.apply(x, grid.detach()).square().sum())(x.detach())
    torch.testing.assert_close(by_func, plain[0].detach(), rtol=1e-3, atol=1e-3)
    assert function.apply(x, grid[:, :0]).shape == (2, 0, 4, 33)


# ---- Mistakes.

@pytest.mark.parametrize("name", ["grid_sample", "a::b::c", "::a", "a::", 3])
def test_names(name):
    with pytest.raises(ValueError, match=r"expected \"library::operation\""):
        smelt.torch.op(name)


def test_signatures():
    def register(function):
        return smelt.torch.op("smelt_test::bad")(function)

    def any_number(*tensors): ...
    def object_taken(x: dict): ...
    def text_returned(x) -> str: ...
    def tensors_taken(x: list[torch.Tensor]): ...
    for function, message in ((any_number, "by position"), (object_taken, "torch's schemas cannot express"),
                              (text_returned, "expected torch.Tensor, or a tuple"),
                              (tensors_taken, "a list of tensors")):
        with pytest.raises(ValueError, match=message):
            register(function)


def test_results_that_are_wrong():
    cases = [(lambda x: None, "returned None; expected one tensor"),
             (lambda x: [x, x], "returned a list of 2; expected one tensor")]
    for function, message in cases:
        with pytest.raises(TypeError, match=message):
            smelt.torch.op("smelt_test::bad")(function)(torch.ones(3))

    @smelt.torch.op("smelt_test::bad_pair")
    def pair(x) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, 2

    with pytest.raises(TypeError, match="smelt_test::bad_pair: result 1 of the function is a int"):
        pair(torch.ones(3))


def test_gradients_that_are_wrong():
    cases = [(lambda p, g, o: (g, g), ValueError, "returned a tuple of 2; expected 1 gradients"),
             (lambda p, g, o: g.sum(), ValueError, r"gradient 0 of its VJP has shape \(\); expected \(3,\)"),
             (lambda p, g, o: 3.0, TypeError, "gradient 0 of its VJP is a float")]
    for vjp, error, message in cases:
        bad = smelt.torch.op("smelt_test::bad_gradient")(lambda x: x + 1)
        bad.vjp(vjp)
        with pytest.raises(error, match=message):
            bad(torch.ones(3, requires_grad=True)).sum().backward()
        with pytest.raises(ValueError, match="has a VJP"):
            bad.vjp(vjp)


def test_no_vjp_is_said():
    alone = smelt.torch.op("smelt_test::alone")(lambda x: squared(x, 1.0))
    out = alone(torch.ones(3, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"smelt_test::alone has no VJP.*give one with \.vjp"):
        out.sum().backward()


def test_types_of_a_kernel_are_of_its_inputs():
    with pytest.raises(ValueError, match="types has 'y'; the inputs of kernel 'scaled_square' are x, factor"):
        smelt.torch.from_kernel("smelt_test::typed", kernel, output_shapes=None, output_dtypes=None, grid=None,
                                threadgroup=None, types={"y": float})


def test_from_a_kernel_with_numbers():
    made = smelt.torch.from_kernel(
        "smelt_test::from_kernel", kernel, types={"factor": float}, output_shapes=lambda x, factor: [x.shape],
        output_dtypes=[smelt.float32], template=[("T", smelt.float32)], grid=lambda x, factor: whole(x),
        threadgroup=(64, 1, 1))
    x = torch.randn(6)
    torch.testing.assert_close(made(x, 2.0), 2 * x * x)
    torch.library.opcheck(made.overload, (x, 2.0))


def test_a_kernel_says_what_is_wrong_while_torch_traces():
    short = smelt.torch.op("smelt_test::short")(
        lambda x: kernel(inputs=[x, 1.0], template=[("T", x.dtype)], grid=whole(x), threadgroup=(64, 1, 1),
                         output_shapes=[], output_dtypes=[x.dtype])[0])
    with pytest.raises(ValueError, match=r"output_shapes is \[\]; expected one for each of: out"):
        short(torch.empty(3, device="meta"))


def test_other_mistakes_of_calls_are_said_as_before():
    for inputs, message in ((np.ones(2, np.float32), "expected a list of arrays"),
                            ([torch.ones(2)], "inputs has length 1"), ([torch.ones(2), {}], "input 'factor'"),
                            (None, "inputs is missing")):
        with pytest.raises((TypeError, ValueError), match=message):
            kernel(inputs=inputs, grid=(2, 1, 1), threadgroup=(2, 1, 1), output_shapes=[2], output_dtypes=["float32"])
