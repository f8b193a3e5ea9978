"""smelt.torch.linear: layers that `optimize` sets where smelt's products are faster give what torch's give."""

import copy

import pytest

torch = pytest.importorskip("torch")

import smelt.torch  # noqa: E402
from smelt.graph import InferenceSession  # noqa: E402
from smelt.torch import linear  # noqa: E402
from torch import library as torch_library, nn  # noqa: E402
from torch.nn import functional  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning", "ignore:.*torch.jit:DeprecationWarning")


@pytest.fixture
def products(monkeypatch):
    """The names of operations that smelt computed, with is_faster() on any machine."""
    seen = []
    apply = linear._apply

    def noted(name, *args, **named):
        seen.append(name)
        return apply(name, *args, **named)
    monkeypatch.setattr("smelt.torch.optimizing.is_faster", lambda: True)
    monkeypatch.setattr(linear, "_apply", noted)
    return seen


def pair(columns=384, results=1536, bias=True):
    """torch's layer and smelt's, with the same weights."""
    stock = nn.Linear(columns, results, bias=bias)
    ours = nn.Sequential(copy.deepcopy(stock))
    report = smelt.torch.optimize(ours)
    assert report.replaced == {"0": "linear layer"} and type(ours[0]) is linear.Linear
    return stock, ours


def exact(stock, x):
    return functional.linear(x.double(), stock.weight.double(), None if stock.bias is None else stock.bias.double())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(5, 384), (2, 3, 7, 384), (50, 384), (384,), (1, 384), (0, 384)])
def test_values(products, shape, bias):
    """Few rows and little work are torch's."""
    stock, ours = pair(bias=bias)
    x = torch.randn(shape)
    for graded in (True, False):
        with torch.set_grad_enabled(graded):
            made = ours(x)
            torch.testing.assert_close(made, exact(stock, x).float(), rtol=1e-4, atol=1e-5)
    assert products == (["matmul"] * 2 if x.numel() >= 4 * 384 else [])


def test_strided_input(products):
    stock, ours = pair()
    x = torch.randn(384, 2, 9).permute(2, 1, 0)[:, :1]
    with torch.no_grad():
        torch.testing.assert_close(ours(x), stock(x), rtol=1e-4, atol=1e-5)
    assert products == ["matmul"]


def test_gradients(products):
    stock, ours = pair()
    x = torch.randn(3, 5, 384, requires_grad=True)
    g = torch.randn(3, 5, 1536)
    theirs = torch.autograd.grad(stock(x), [x, *stock.parameters()], g)
    mine = torch.autograd.grad(ours(x), [x, *ours.parameters()], g)
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    assert products == ["matmul"]


def test_other_types_are_torchs(products):
    """Half precision, autocast, and a mistake, whose message is torch's."""
    stock, ours = pair()
    x = torch.randn(7, 384)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(ours(x), stock(x)) and ours(x).dtype == torch.bfloat16
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        ours(torch.randn(7, 100))
    assert torch.equal(ours.half()(x.half()), stock.half()(x.half()))
    assert products == []


def test_compiled_mapped_and_copied(products):
    stock, ours = pair()
    x = torch.randn(7, 384)
    expected = stock(x)
    found = {"compile": torch.compile(ours, fullgraph=True)(x), "copy": copy.deepcopy(ours)(x), "vmap": torch.func.vmap(ours)(x[None])[0],
             "export": torch.export.export(ours, (x,)).module()(x)}
    for name, made in found.items():
        torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")
    assert len(products) == 4
    torch_library.opcheck(torch.ops.smelt.linear.default, (x, stock.weight, stock.bias))


def test_packages_have_the_product(products, tmp_path):
    stock, ours = pair()
    x = torch.randn(7, 384)
    smelt.export(ours, (x,), tmp_path / "model.smeltlib", code=False)
    made, = InferenceSession().load(tmp_path / "model.smeltlib").execute(x)
    torch.testing.assert_close(torch.as_tensor(made), stock(x).detach(), rtol=1e-4, atol=1e-5)


def test_layers_keep_what_they_have(products):
    model = nn.Sequential(nn.Linear(384, 1536))
    weight, calls = model[0].weight, []
    model[0].register_forward_hook(lambda *args: calls.append(1))
    names = list(model.state_dict())
    smelt.torch.optimize(model)
    model(torch.randn(7, 384))
    assert model[0].weight is weight and calls == [1] and list(model.state_dict()) == names and "by smelt" in repr(model)


def test_replaced_layers_can_be_packed(products):
    model = nn.Sequential(nn.Linear(384, 128))
    smelt.torch.optimize(model)
    assert smelt.torch.optimize(model, weights="int8").replaced == {"0": "int8 weights"}


def test_forward_derivatives(products):
    stock, ours = pair()
    x = torch.randn(7, 384)
    for made, expected in zip(*(torch.func.jvp(layer, (x,), (x,)) for layer in (ours, stock))):
        torch.testing.assert_close(made, expected)


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
@pytest.mark.parametrize("columns, results", [(0, 5), (5, 0)])
def test_layers_without_elements(products, columns, results):
    stock, ours = pair(columns, results)
    x = torch.randn(3, columns, requires_grad=True)
    theirs = torch.autograd.grad(stock(x).sum(), [x, *stock.parameters()])
    for a, b in zip(torch.autograd.grad(ours(x).sum(), [x, *ours.parameters()]), theirs):
        assert torch.equal(a, b)


def test_weights_elsewhere_are_torchs(products):
    """As torch's layer: a tensor without elements, or an error."""
    stock, ours = (layer.to("meta") for layer in pair())
    x = torch.randn(7, 384)
    assert all(_outcome(ours, x) == _outcome(stock, x) for _ in range(2)) and products == []


def _outcome(layer, x):
    with torch.no_grad():
        try:
            return layer(x).device, layer(x).shape
        except RuntimeError as error:
            return str(error)


@pytest.mark.parametrize("vendor, mkl, faster", [
    ("GenuineIntel", True, False), ("AuthenticAMD", True, True), ("AuthenticAMD", False, False), ("", True, False)])
def test_where_products_are_faster(monkeypatch, vendor, mkl, faster):
    monkeypatch.setattr(linear, "_vendor", lambda: vendor)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: mkl)
    assert linear.is_faster.__wrapped__() is faster
