"""Calls that bypass torch's dispatcher: the same results and errors, and only where nothing needs the dispatcher."""

import gc
import weakref

import numpy
import pytest

torch = pytest.importorskip("torch")

import smelt.torch  # noqa: E402
from smelt.torch import plans  # noqa: E402

scaled = smelt.torch.TorchMetalKernel(
    name="tests::plan_scaled", source="uint i = thread_position_in_grid.x; out[i] = T(float(x[i]) * factor + more);",
    inputs={"x": torch.Tensor, "factor": float, "more": int}, results={"out": "x"}, templates={"T": "x"},
    result_shapes=lambda x, *_: [x.shape], torch_defn=lambda x, factor, more: x * factor + more, threads_per_grid=lambda x, *_: (x.numel(),),
    threads_per_threadgroup=(64,))


@smelt.torch.op("tests::plan_twice")
def twice(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return x * factor


class Modes(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(function._schema.name)
        return function(*args, **(kwargs or {}))


def kept():
    return [plan for plan in scaled._plans._plans.values() if callable(plan)]


def test_results_are_of_each_calls_inputs():
    for shape in ((3, 5), (4, 7), (3, 5)):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for turned in (False, True):
                for _ in range(3):
                    x = torch.randn(shape[::-1] if turned else shape).to(dtype)
                    x = x.T if turned else x
                    factor, more = float(torch.randn(())), int(torch.randint(-9, 9, ()))
                    made = scaled(x, factor, more)
                    expected = (x.double() * factor + more).to(dtype)
                    assert made.shape == x.shape and made.dtype == dtype
                    torch.testing.assert_close(made, expected, rtol=1e-2 if dtype != torch.float32 else 1e-5, atol=1e-2)
    assert len(kept()) >= 6


def test_large_integers_and_integers_for_floats():
    x = torch.ones(2, 2)
    for more in (1, -7, 3, 2**20):
        for _ in range(3):
            assert float(scaled(x, 2, more)[0, 0]) == 2.0 + float(more)
            with pytest.raises(ValueError, match="does not fit in int32"):
                scaled(x, 2, 2**40)
    with pytest.raises(Exception, match="factor|float"):
        scaled(x, "2", 1)


class Subclass(torch.Tensor):
    pass


def test_what_is_wrong_is_said_in_a_sentence():
    x = torch.randn(3, 5)
    for _ in range(3):
        scaled(x, 2.0, 1)
        for wrong in ([1.0, 2.0], numpy.ones(3, numpy.float32), 3):
            with pytest.raises(TypeError, match="tests::plan_scaled: input 'x' is of type .*; expected a torch.Tensor"):
                scaled(wrong, 2.0, 1)
        for wrong in (5, None, "64", ([64],), (1, 2, 3, 4)):
            with pytest.raises((TypeError, ValueError, RuntimeError), match="threads_per_threadgroup|threadgroup"):
                smelt.torch.TorchMetalKernel(
                    name="tests::plan_sizes", source="out[0] = x[0];", inputs=["x"], results={"out": "x"}, torch_defn=lambda x: x,
                    result_shapes=lambda x: [x.shape], threads_per_grid=(1,), threads_per_threadgroup=wrong)(x)
        assert isinstance(scaled(x.as_subclass(Subclass), 2.0, 1), torch.Tensor)
        assert scaled(x.to("meta"), 2.0, 1).is_meta and scaled(x[:0], 2.0, 1).shape == (0, 5)
        with pytest.raises(Exception, match="sparse|layout|Sparse"):
            scaled(x.to_sparse(), 2.0, 1)


def test_inputs_are_not_kept():
    array = numpy.ones((6, 9), numpy.float32)
    x, gone = torch.from_numpy(array), weakref.ref(array)
    before = len(kept())
    for _ in range(3):
        scaled(x, 2.0, 1)
    assert len(kept()) == before + 1
    del x, array
    gc.collect()
    assert gone() is None
    memory = [torch.randn(6, 9) for _ in range(3)]
    places = {each.data_ptr() for each in memory}
    results = [scaled(each, 1.0, 0) for each in memory]
    assert not places & {each.data_ptr() for each in results}
    for each, result in zip(memory, results):
        torch.testing.assert_close(each, result)


def test_calls_that_need_gradients_use_autograd():
    x = torch.randn(3, 5)
    for _ in range(3):
        scaled(x, 2.0, 1)
    x.requires_grad_()
    scaled(x, 2.0, 1).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((3, 5), 2.0))
    with torch.no_grad():
        assert not scaled(x, 2.0, 1).requires_grad
    assert not plans.is_plain((x,)) and plans.is_plain((x.detach(),))


@pytest.mark.parametrize("call", [lambda x: scaled(x, 2.0, 0), twice], ids=["kernel", "operation"])
def test_modes_transforms_and_profilers_see_the_operation(call):
    x = torch.randn(3, 5)
    for _ in range(3):
        expected = call(x)
    with Modes() as mode:
        call(x)
    assert any(name.startswith("tests::plan") for name in mode.seen)
    torch.testing.assert_close(torch.func.vmap(call)(torch.stack([x[None], x[None]]).reshape(2, 3, 5)),
                               torch.stack([expected, expected]))
    torch.testing.assert_close(torch.func.grad(lambda x: call(x).sum())(x) if call is not twice else torch.full_like(x, 2.0),
                               torch.full_like(x, 2.0))
    assert call(torch.randn(3, 5, device="meta")).is_meta
    assert call(torch.randn(0, 5)).shape == (0, 5)
    exported = torch.export.export(Module(call), (x,))
    assert any("plan_" in str(node.target) for node in exported.graph.nodes)
    with torch.autograd.profiler.profile() as profile:
        call(x)
    assert any("plan_" in event.key for event in profile.key_averages())


class Module(torch.nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, x):
        return self.call(x)


def test_attention_of_plain_tensors_equals_the_operations():
    q, k, v = (torch.randn(2, heads, rows, 16) for heads, rows in ((4, 5), (2, 12), (2, 12)))
    mask = torch.randn(5, 12)
    made = smelt.torch.scaled_dot_product_attention(q, k, v, mask=mask)
    usual = smelt.torch.scaled_dot_product_attention(q.requires_grad_(), k, v, mask=mask)
    assert usual.requires_grad and not made.requires_grad
    torch.testing.assert_close(made, usual.detach())
    with pytest.raises(ValueError, match="smelt.torch.scaled_dot_product_attention: q has shape"):
        smelt.torch.scaled_dot_product_attention(q.detach()[0], k, v)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_over_lines(dtype):
    from smelt.torch.attention import attention_over_lines
    q, k, v = (torch.randn(2, 3, 24, 20).to(dtype) for _ in range(3))
    lines, columns = torch.randn(2, 3, 24, 4).to(dtype), torch.randn(2, 3, 24, 6).to(dtype)
    scores = 0.3 * q.double() @ k.double().mT + (lines[..., None] + columns[..., None, :]).flatten(3).double()
    expected = scores.softmax(-1) @ v.double()
    allowed = 1e-5 if dtype == torch.float32 else 3e-2
    made = attention_over_lines(q, k, v, lines, columns, scale=0.3)
    torch.testing.assert_close(made.double(), expected, rtol=allowed, atol=allowed)
    for wrong, message in (((q[0], k, v, lines, columns), "q has shape"),
                           ((q, k, v, lines[0], columns), r"lines has shape \(3, 24, 4\); expected \(2, 3, 24\) and one"),
                           ((q, k, v, lines, columns[:, :1]), "columns has shape"),
                           ((q, k, v, lines, columns[..., :5]), "columns has 5 columns; expected a product of 24")):
        with pytest.raises(ValueError, match=message):
            attention_over_lines(*wrong, scale=0.3)
    if dtype == torch.float32:
        lines.requires_grad_()
        attention_over_lines(q, k, v, lines, columns, scale=0.3).sum().backward()
        assert lines.grad is not None and lines.grad.shape == lines.shape


def test_calls_through_the_dispatcher_take_the_short_way(monkeypatch):
    taken = []
    at_once = smelt.torch.Op._at_once

    def counted(self, args):
        made = at_once(self, args)
        if not torch.compiler.is_compiling():
            taken.append(made is not None)
        return made
    monkeypatch.setattr(smelt.torch.Op, "_at_once", counted)
    x = torch.randn(3)
    compiled = torch.compile(lambda x: twice(x + 1, 3.0), fullgraph=True)
    compiled(x)
    for call, expected in ((lambda: twice.overload(x, 3.0), x * 3), (lambda: twice.overload(x), x * 2),
                           (lambda: compiled(x), (x + 1) * 3)):
        taken.clear()
        torch.testing.assert_close(call(), expected)
        assert taken == [True]
    taken.clear()
    torch.testing.assert_close(twice.overload(x=x, factor=3.0), x * 3)
    assert taken == [True]
    taken.clear()
    with Modes() as mode:
        twice.overload(x)
    assert mode.seen[0] == "tests::plan_twice" and True not in taken


def test_an_operation_registered_again_replaces_the_short_way():
    for factor in (2, 3):
        @smelt.torch.op("tests::plan_again")
        def scaled_again(x: torch.Tensor) -> torch.Tensor:
            return x * factor

        @scaled_again.vjp
        def scaled_again_vjp(x, cotangent, output):
            return cotangent * factor
        x = torch.ones(2, requires_grad=True)
        assert torch.ops.tests.plan_again(x.detach()).tolist() == [factor] * 2
        torch.ops.tests.plan_again(x).sum().backward()
        assert x.grad.tolist() == [factor] * 2


def test_fresh_results_are_not_checked():
    for fresh in (False, True):
        @smelt.torch.op(f"tests::plan_fresh_{fresh}", fresh=fresh)
        def same(x: torch.Tensor) -> torch.Tensor:
            return x
        x = torch.ones(2)
        assert (same(x) is x) == fresh
