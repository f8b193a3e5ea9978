"""smelt.torch.capturing: steps of decoders that are replayed give what they give when they run."""

import contextlib
import copy
import functools
import gc
import weakref

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import smelt.torch  # noqa: E402
from smelt.torch import capturing  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


STOCK_RECORD = capturing._record


class PretendedGraph:
    """On a CPU: does what a CUDA graph does. A capture runs nothing, so the cache's memory is put back."""
    count = replays = 0

    def __init__(self, work):
        PretendedGraph.count += 1
        self._name, cache = next((name, x) for name, x in work.keywords.items() if isinstance(x, transformers.Cache))
        self._cache, self._held = weakref.ref(cache), cache.layers
        self._rest = functools.partial(work.func, *work.args, **{k: v for k, v in work.keywords.items() if v is not cache})
        self.made = self._without_effects()
        self._results = _tensors(self.made)

    def _work(self):
        return self._rest(**{self._name: self._cache()})

    def _without_effects(self):
        memory = [x for layer in self._held for x in (layer.keys, layer.values, layer.cumulative_length)]
        before = [x.clone() for x in memory]
        made = self._work()
        for x, old in zip(memory, before):
            x.copy_(old)
        for x in _tensors(made):
            x.fill_(float("nan"))
        return made

    def replay(self):
        PretendedGraph.replays += 1
        for own, new in zip(self._results, _tensors(self._work()), strict=True):
            own.copy_(new)


def _tensors(made):
    return [x for x in made.values() if isinstance(x, torch.Tensor)]


@pytest.fixture(autouse=True)
def graphs(monkeypatch):
    """Counts graphs; on a CPU, stands in for them."""
    PretendedGraph.count = PretendedGraph.replays = 0
    if torch.cuda.is_available():
        stock = capturing._record

        class Counted:
            def __init__(self, graph):
                PretendedGraph.count += 1
                self._graph = graph

            def replay(self):
                PretendedGraph.replays += 1
                self._graph.replay()

        def record(work, device):
            graph, made = stock(work, device)
            return Counted(graph), made
        monkeypatch.setattr(capturing, "_record", record)
    else:
        def pretend(work, device):
            graph = PretendedGraph(work)
            return graph, vars(graph).pop("made")
        for name, stand_in in {"_is_gpu": lambda device: True, "_is_capturing": lambda device: False, "_stream": lambda device: 0,
                               "_warm_up": lambda device, work: work(), "_record": pretend}.items():
            monkeypatch.setattr(capturing, name, stand_in)
    return PretendedGraph


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "vocab_size": 101, "max_position_embeddings": 256}


def decoder(kind="Llama", **settings):
    config = getattr(transformers, f"{kind}Config")(**SMALL, **settings)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval().to(DEVICE)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0 if weight.ndim > 1 else 1, 0.1)
    return model


def generated(model, tokens, **settings):
    return model.generate(tokens, attention_mask=torch.ones_like(tokens), do_sample=False, pad_token_id=0, **settings)


def static_cache(model, tokens, length=40):
    cache = transformers.StaticCache(config=model.config, max_cache_len=length)
    model(tokens, past_key_values=cache, use_cache=True)
    return cache


def steps(model, cache, count, rows=2):
    """Logits of steps with tokens that differ."""
    return [model(torch.full((rows, 1), 3 + i, device=DEVICE), past_key_values=cache, use_cache=True).logits for i in range(count)]


@torch.no_grad()
def test_generated_tokens_are_those_without_capture(graphs):
    model = decoder()
    tokens = torch.randint(3, 101, (2, 7), device=DEVICE)
    expected = generated(model, tokens, max_new_tokens=20)
    report = smelt.torch.optimize(model, capture=True)
    assert report.replaced["steps"] == "captured steps"
    assert torch.equal(generated(model, tokens, max_new_tokens=20), expected)
    assert graphs.count == 1 and graphs.replays >= 15
    assert torch.equal(generated(model, tokens[:1], max_new_tokens=9), generated(model, tokens[:1], max_new_tokens=9))


@torch.no_grad()
def test_each_step_has_results_of_its_own(graphs):
    model = decoder()
    tokens = torch.randint(3, 101, (2, 5), device=DEVICE)
    expected = steps(model, static_cache(model, tokens), 9)
    capturing.capture_steps(model)
    cache = static_cache(model, tokens)
    found = steps(model, cache, 9)
    for a, b in zip(found, expected):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    assert graphs.replays == 7 and int(cache.get_seq_length()) == 14
    out = model(tokens[:, :1], past_key_values=cache, use_cache=True)
    assert out.past_key_values is cache and isinstance(out, transformers.utils.ModelOutput)


@torch.no_grad()
def test_two_caches_have_two_graphs_which_end_with_them(graphs):
    model = decoder()
    capturing.capture_steps(model)
    tokens = torch.randint(3, 101, (2, 5), device=DEVICE)
    first, second = static_cache(model, tokens), static_cache(model, tokens, 64)
    for a, b in zip(steps(model, first, 6), steps(model, second, 6)):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    assert graphs.count == 2
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


@torch.no_grad()
def test_the_graphs_used_last_are_kept(graphs, monkeypatch):
    """Kinds of steps that come and go, here of numbers that differ, do not displace the graph of all other steps."""
    monkeypatch.setattr(capturing, "_MOST", 3)
    model = decoder()
    capturing.capture_steps(model)
    cache = static_cache(model, torch.randint(3, 101, (2, 5), device=DEVICE), 64)
    token = torch.full((2, 1), 3, device=DEVICE)
    for i in range(6):
        steps(model, cache, 3)
        model(token, past_key_values=cache, use_cache=True, output_attentions=False, logits_to_keep=i + 1)
    assert graphs.count == 1


@torch.no_grad()
def test_weights_that_change_in_place_or_move_are_seen(graphs):
    model = decoder()
    capturing.capture_steps(model)
    cache = static_cache(model, torch.randint(3, 101, (2, 5), device=DEVICE))
    steps(model, cache, 4)
    for weight in (model.lm_head.weight, model.model.norm.weight):
        weight.zero_()
        assert bool((steps(model, cache, 1)[0] == 0).all())
        weight.normal_()
        weight.data = weight.data.clone() * 0
        assert bool((steps(model, cache, 4)[3] == 0).all())
        weight.data = torch.randn_like(weight)
        assert bool((steps(model, cache, 1)[0] != 0).any())


@pytest.mark.parametrize("change", ["dynamic cache", "no cache", "two tokens", "training", "gradients", "watched"])
def test_other_calls_run_as_before(change, graphs):
    model = decoder()
    capturing.capture_steps(model)
    tokens = torch.randint(3, 101, (2, 5), device=DEVICE)
    with torch.no_grad():
        cache = model(tokens, use_cache=True).past_key_values if change == "dynamic cache" else static_cache(model, tokens, 80)
    settings = {} if change == "no cache" else {"past_key_values": cache, "use_cache": True}
    token = tokens[:, :2 if change == "two tokens" else 1]
    model.train(change == "training")
    watched = FlopCounterMode(display=False) if change == "watched" else contextlib.nullcontext()
    with torch.set_grad_enabled(change == "gradients"), watched:
        for _ in range(5):
            out = model(token, **settings)
    assert graphs.count == 0 and out.logits.requires_grad == (change == "gradients")


@torch.no_grad()
def test_autocast_runs_as_before(graphs):
    model = decoder().bfloat16()  # stock's caches do not take the mixture that autocast makes of float32
    capturing.capture_steps(model)
    with torch.autocast(DEVICE, torch.bfloat16):
        steps(model, static_cache(model, torch.randint(3, 101, (2, 5), device=DEVICE)), 5)
    assert graphs.count == 0


@torch.no_grad()
def test_what_cannot_be_captured_is_a_warning(graphs, monkeypatch):
    def fail(work, device):
        raise RuntimeError("operation not permitted when stream is capturing")
    monkeypatch.setattr(capturing, "_record", fail)
    model = decoder()
    capturing.capture_steps(model)
    cache = static_cache(model, torch.randint(3, 101, (2, 5), device=DEVICE))
    with pytest.warns(RuntimeWarning, match="a step of LlamaForCausalLM cannot be captured as a CUDA graph and runs as before: "
                                            "operation not permitted") as found:
        steps(model, cache, 6)
    assert len([w for w in found if w.category is RuntimeWarning]) == 1 and int(cache.get_seq_length()) == 11


@torch.no_grad()
def test_sliding_windows_keep_lengths_in_python_and_run_as_before(graphs):
    model = decoder("Mistral", sliding_window=6)
    tokens = torch.randint(3, 101, (2, 7), device=DEVICE)
    expected = generated(model, tokens, max_new_tokens=12)
    smelt.torch.optimize(model, capture=True)
    assert torch.equal(generated(model, tokens, max_new_tokens=12), expected) and graphs.count == 0


@torch.no_grad()
def test_copies_of_a_model_have_graphs_of_their_own(graphs):
    model = decoder()
    capturing.capture_steps(model)
    tokens = torch.randint(3, 101, (2, 5), device=DEVICE)
    steps(model, static_cache(model, tokens), 4)
    other = copy.deepcopy(model)
    other.lm_head.weight.zero_()
    for _ in range(2):
        assert bool((steps(other, static_cache(other, tokens), 4)[3] == 0).all())
        assert bool((steps(model, static_cache(model, tokens), 4)[3] != 0).any())
    capturing.capture_steps(model)  # twice is once
    assert bool((steps(model, static_cache(model, tokens), 4)[3] != 0).any())


@torch.no_grad()
def test_a_cache_with_another_length_is_captured_again(graphs):
    model = decoder()
    capturing.capture_steps(model)
    cache = static_cache(model, torch.randint(3, 101, (2, 5), device=DEVICE))
    steps(model, cache, 4)
    for layer in cache.layers:
        layer.cumulative_length = layer.cumulative_length - 4
    steps(model, cache, 4)
    assert graphs.count == 2 and int(cache.get_seq_length()) == 9


@torch.no_grad()
def test_a_forward_that_is_no_method_is_captured(graphs):
    """As accelerate sets it."""
    model = decoder()
    model.forward = functools.partial(type(model).forward, model)
    capturing.capture_steps(model)
    steps(model, static_cache(model, torch.randint(3, 101, (2, 5), device=DEVICE)), 4)
    assert graphs.count == 1


def test_what_is_no_module_is_an_error():
    with pytest.raises(TypeError, match="capture_steps: model is of type str; expected a torch.nn.Module"):
        capturing.capture_steps("model")


class PretendedCuda:
    """Current streams, and torch.cuda.graph as in older versions of torch: if a capture fails, its stream stays current."""

    def __init__(self, monkeypatch):
        self.current, self.captures = "user's", []
        for name, stand_in in {"CUDAGraph": object, "Stream": lambda device: [device], "device": contextlib.nullcontext,
                               "current_stream": lambda device: self.current, "stream": self.stream, "graph": self.graph}.items():
            monkeypatch.setattr(torch.cuda, name, stand_in)
        monkeypatch.setattr(capturing, "_streams", functools.cache(capturing._streams.__wrapped__))

    @contextlib.contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    @contextlib.contextmanager
    def graph(self, _, stream=None):
        before, self.current = self.current, stream
        self.captures.append(stream)
        yield
        self.current = before


def test_each_gpu_has_streams_of_its_own(monkeypatch):
    cuda = PretendedCuda(monkeypatch)
    for index in (0, 1, 0):
        STOCK_RECORD(lambda: None, torch.device("cuda", index))
    assert [stream[0].index for stream in cuda.captures] == [0, 1, 0] and cuda.captures[0] is cuda.captures[2]


def test_a_capture_that_fails_leaves_the_current_stream(monkeypatch):
    def fail():
        raise RuntimeError("operation not permitted when stream is capturing")
    cuda = PretendedCuda(monkeypatch)
    with pytest.raises(RuntimeError, match="not permitted"):
        STOCK_RECORD(fail, torch.device("cuda", 0))
    assert cuda.current == "user's"
