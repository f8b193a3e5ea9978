"""Models of Hugging Face transformers with smelt's kernels, next to the same models as they are.

    PYTHONPATH=build/python python bench/python/models.py [--device cuda] [--compile] [JOB …]

Weights are random. Both sides run in turns; a row has the medians of both and how many times as fast smelt's is. Jobs:
vit (float32; only attention is smelt's), vit-optimized (the same by smelt.torch.optimize), sam (ViT-H's image encoder,
1024²; its --layers are rounded up to a multiple of 8), prefill and decode (a Llama of 8 billion parameters, 4096 tokens;
of its 32 equal layers --layers are run), decode-int4 (weights packed to 4 bits, next to bfloat16), call (the host's time
of one call of attention, next to torch's own). prefill-int4 is prefill with packed weights. decode-captured and
decode-int4-captured replay a step of both sides as a CUDA graph, which takes little of the host's time. generate-int4 is
model.generate() of both, smelt's with capture=True."""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import transformers

import smelt.torch

Work = Callable[[], Any]


class Settings(NamedTuple):
    device: str
    rounds: int
    layers: int
    compile: bool
    clock: Callable[[], float]

    def ready(self, model: Any) -> Any:
        return torch.compile(model, fullgraph=True) if self.compile else model


def seconds(work: Work, device: str, clock: Callable[[], float] = time.perf_counter) -> float:
    if device == "cpu":
        began = clock()
        work()
        return clock() - began
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000


@torch.no_grad()
def compare(name: str, stock: Work, ours: Work, to: Settings) -> None:
    """Medians of both, run in turns."""
    for work in (stock, ours, stock, ours):
        work()
    found = [(seconds(stock, to.device, to.clock), seconds(ours, to.device, to.clock)) for _ in range(to.rounds)]
    theirs, mine = (statistics.median(column) for column in zip(*found))
    name = f"{name}{', compiled' if to.compile else ''}"
    print(f"{name:<44} stock {theirs * 1e3:9.3f} ms   smelt {mine * 1e3:9.3f} ms   {theirs / mine:.3f} × as fast", flush=True)


def vit(to: Settings, optimize: bool = False) -> None:
    config = transformers.ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536, num_hidden_layers=12)
    stock = transformers.ViTModel(config).eval().to(to.device)
    ours = copy.deepcopy(stock)
    if optimize:
        print(str(smelt.torch.optimize(ours)).replace("\n", "; "))
    else:
        ours.set_attn_implementation("smelt")
    stock, ours = to.ready(stock), to.ready(ours)
    pixels = torch.randn(4, 3, 224, 224, device=to.device)
    compare(f"ViT-S float32, 4 pictures{', optimized' if optimize else ''}", lambda: stock(pixels), lambda: ours(pixels), to)


def sam(to: Settings) -> None:
    layers = (to.layers + 7) // 8 * 8  # one of eight attends to the whole image, the others to windows
    config = transformers.SamVisionConfig(hidden_size=1280, num_hidden_layers=layers, num_attention_heads=16, mlp_dim=5120,
                                          initializer_range=0.02, global_attn_indexes=list(range(7, layers, 8)))
    stock = transformers.SamVisionModel(config).eval().to(to.device, torch.bfloat16)
    ours = copy.deepcopy(stock)
    ours.set_attn_implementation("smelt")
    stock, ours = to.ready(stock), to.ready(ours)
    pixels = torch.randn(1, 3, 1024, 1024, device=to.device, dtype=torch.bfloat16)
    compare(f"SAM encoder bf16, {layers} layers", lambda: stock(pixels), lambda: ours(pixels), to)


LLAMA_8B = {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
            "vocab_size": 32000, "max_position_embeddings": 8192}


def llama(to: Settings, weights: str | None) -> tuple[Any, Any]:
    """The model as it is, and with smelt's kernels."""
    config = transformers.LlamaConfig(**LLAMA_8B, num_hidden_layers=to.layers)
    with torch.device(to.device):
        stock = transformers.LlamaModel(config).eval().to(torch.bfloat16)
    ours = copy.deepcopy(stock)
    print(str(smelt.torch.optimize(ours, weights=weights)).replace("\n", "; "))
    return stock, ours


def captured(work: Work, cache: Any) -> Work:
    """The replay of a CUDA graph, captured from the work, with the memory of the cache as it is before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    held = [(layer.keys, layer.values) for layer in cache.layers]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()

    def replay() -> None:
        assert held
        graph.replay()
    return replay


def prefill(to: Settings, weights: str | None = None) -> None:
    stock, ours = (to.ready(model) for model in llama(to, weights))
    tokens = torch.randint(0, 32000, (1, 4096), device=to.device)
    compare(f"Llama 8B {weights or 'bf16'} prefill, {to.layers} layers", lambda: stock(tokens, use_cache=False),
            lambda: ours(tokens, use_cache=False), to)


def decode(to: Settings, weights: str | None = None, capture: bool = False) -> None:
    stock, ours = llama(to, weights)
    tokens = torch.randint(0, 32000, (1, 4096), device=to.device)

    def step(model: Any, cache: Any) -> Work:
        def work() -> None:
            model(tokens[:, :1], past_key_values=cache, use_cache=True)
            cache.crop(-1)
        return work

    with torch.no_grad():
        caches = [model(tokens, use_cache=True).past_key_values for model in (stock, ours)]
        steps = [step(model, cache) for model, cache in zip((stock, ours), caches)]
        if capture:
            steps = [captured(work, cache) for work, cache in zip(steps, caches)]
    compare(f"Llama 8B {weights or 'bf16'} decode{', captured' if capture else ''}, {to.layers} layers", *steps, to)


def generate(to: Settings) -> None:
    """The time per token of generate() after 4096 tokens: stock with its defaults, and smelt's with captured steps."""
    config = transformers.LlamaConfig(**LLAMA_8B, num_hidden_layers=to.layers, bos_token_id=1, eos_token_id=None)
    with torch.device(to.device):
        stock = transformers.LlamaForCausalLM(config).eval().to(torch.bfloat16)
    ours = copy.deepcopy(stock)
    print(str(smelt.torch.optimize(ours, weights="int4", capture=True)).replace("\n", "; "))
    tokens = torch.randint(3, 32000, (1, 4096), device=to.device)
    few, many = 8, 40

    def per_token(model: Any) -> float:
        def once(count: int) -> float:
            return seconds(lambda: model.generate(tokens, attention_mask=torch.ones_like(tokens), do_sample=False, pad_token_id=0,
                                                  min_new_tokens=count, max_new_tokens=count), to.device)
        return (once(many) - once(few)) / (many - few)

    per_token(stock), per_token(ours)
    found = [(per_token(stock), per_token(ours)) for _ in range(to.rounds)]
    theirs, mine = (statistics.median(column) for column in zip(*found))
    print(f"Llama 8B int4 generate(), {to.layers} layers: stock {theirs * 1e3:.3f} ms per token, smelt {mine * 1e3:.3f}, "
          f"{theirs / mine:.3f} × as fast")


def call(to: Settings) -> None:
    """One call on few elements: the time until it returns."""
    q, k, v = (torch.randn(1, 1, 16, 32, device=to.device) for _ in range(3))
    sides = {"torch": lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v),
             "smelt": lambda: smelt.torch.scaled_dot_product_attention(q, k, v)}
    found: dict[str, list[float]] = {name: [] for name in sides}
    with torch.no_grad():
        for _ in range(to.rounds):
            for name, work in sides.items():
                began = time.perf_counter()
                for _ in range(200):
                    work()
                found[name].append((time.perf_counter() - began) / 200)
                if to.device != "cpu":
                    torch.cuda.synchronize()
    print("host time of a call of attention: " + ", ".join(f"{name} {statistics.median(times) * 1e6:.1f} µs"
                                                          for name, times in found.items()))


JOBS: dict[str, Callable[[Settings], None]] = {
    "vit": vit, "vit-optimized": lambda to: vit(to, True), "sam": sam, "prefill": prefill, "prefill-int4": lambda to: prefill(to, "int4"),
    "decode": decode, "decode-int4": lambda to: decode(to, "int4"),
    "decode-captured": lambda to: decode(to, capture=True),
    "decode-int4-captured": lambda to: decode(to, "int4", True),
    "generate-int4": generate, "call": call}
COMPILED = ("vit", "vit-optimized", "sam", "prefill", "prefill-int4")


def main() -> None:
    parser = argparse.ArgumentParser(description="Models with smelt's kernels next to the same models as they are.")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(JOBS)} (default: all)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--layers", type=int, default=4, help="of the models whose layers are alike (default 4)")
    parser.add_argument("--processor-time", action="store_true", help="on a CPU: the time that the process ran, for a machine with "
                        "other work (with OMP_NUM_THREADS=1 and SMELT_THREADS=1, as waiting threads count)")
    parser.add_argument("--compile", action="store_true", help=f"both sides of {', '.join(COMPILED)} by torch.compile")
    arguments = parser.parse_args()
    wrong = [job for job in arguments.jobs if job not in JOBS]
    if wrong:
        parser.error(f"job '{wrong[0]}' does not exist; expected some of {', '.join(JOBS)}")
    smelt.torch.transformers.register()
    for job in arguments.jobs or JOBS:
        compiled = arguments.compile and job in COMPILED
        JOBS[job](Settings(arguments.device, arguments.rounds, arguments.layers, compiled,
                           time.process_time if arguments.processor_time else time.perf_counter))


if __name__ == "__main__":
    main()
