"""Models of Hugging Face transformers with smelt's kernels, next to the same models as they are.

    PYTHONPATH=build/python python bench/python/models.py [--device cuda] [JOB …]

Weights are random. Both sides run in turns; a row has the medians of both and how many times as fast smelt's is. Jobs:
vit (float32), sam (ViT-H's image encoder, 1024²), prefill and decode (a Llama of 8 billion parameters, 4096 tokens; of
its 32 equal layers --layers are run), decode-int4 (weights packed to 4 bits, next to bfloat16), call (the host's time of
one call of attention, next to torch's own)."""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers

import smelt.torch

Work = Callable[[], Any]


def seconds(work: Work, device: str) -> float:
    if device == "cpu":
        began = time.perf_counter()
        work()
        return time.perf_counter() - began
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000


@torch.no_grad()
def compare(name: str, stock: Work, ours: Work, device: str, rounds: int) -> None:
    """Medians of both, run in turns."""
    for work in (stock, ours, stock, ours):
        work()
    found = [(seconds(stock, device), seconds(ours, device)) for _ in range(rounds)]
    theirs, mine = (statistics.median(column) for column in zip(*found))
    print(f"{name:<28} stock {theirs * 1e3:9.3f} ms   smelt {mine * 1e3:9.3f} ms   {theirs / mine:.3f} × as fast", flush=True)


def vit(device: str, rounds: int, layers: int) -> None:
    config = transformers.ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536, num_hidden_layers=12)
    stock = transformers.ViTModel(config).eval().to(device)
    ours = copy.deepcopy(stock)
    ours.set_attn_implementation("smelt")
    pixels = torch.randn(4, 3, 224, 224, device=device)
    compare("ViT-S float32, 4 pictures", lambda: stock(pixels), lambda: ours(pixels), device, rounds)


def sam(device: str, rounds: int, layers: int) -> None:
    config = transformers.SamVisionConfig(hidden_size=1280, num_hidden_layers=layers, num_attention_heads=16, mlp_dim=5120,
                                          global_attn_indexes=list(range(layers - 1, 0, -4)))
    stock = transformers.SamVisionModel(config).eval().to(device, torch.bfloat16)
    ours = copy.deepcopy(stock)
    ours.set_attn_implementation("smelt")
    pixels = torch.randn(1, 3, 1024, 1024, device=device, dtype=torch.bfloat16)
    compare(f"SAM encoder bf16, {layers} layers", lambda: stock(pixels), lambda: ours(pixels), device, rounds)


def llama(device: str, layers: int, weights: str | None) -> tuple[Any, Any]:
    """The model as it is, and with smelt's kernels."""
    config = transformers.LlamaConfig(hidden_size=4096, intermediate_size=14336, num_hidden_layers=layers,
                                      num_attention_heads=32, num_key_value_heads=8, vocab_size=32000,
                                      max_position_embeddings=8192)
    with torch.device(device):
        stock = transformers.LlamaModel(config).eval().to(torch.bfloat16)
    ours = copy.deepcopy(stock)
    print(str(smelt.torch.optimize(ours, weights=weights)).replace("\n", "; "))
    return stock, ours


def prefill(device: str, rounds: int, layers: int) -> None:
    stock, ours = llama(device, layers, None)
    tokens = torch.randint(0, 32000, (1, 4096), device=device)
    compare(f"Llama 8B bf16 prefill, {layers} layers", lambda: stock(tokens, use_cache=False),
            lambda: ours(tokens, use_cache=False), device, rounds)


def decode(device: str, rounds: int, layers: int, weights: str | None = None) -> None:
    stock, ours = llama(device, layers, weights)
    tokens = torch.randint(0, 32000, (1, 4096), device=device)

    def step(model: Any, cache: Any) -> Work:
        def work() -> None:
            model(tokens[:, :1], past_key_values=cache, use_cache=True)
            cache.crop(4096)
        return work

    with torch.no_grad():
        caches = [model(tokens, use_cache=True).past_key_values for model in (stock, ours)]
    compare(f"Llama 8B {weights or 'bf16'} decode, {layers} layers", step(stock, caches[0]), step(ours, caches[1]), device,
            rounds)


def call(device: str, rounds: int, layers: int) -> None:
    """One call on few elements: the time until it returns."""
    q, k, v = (torch.randn(1, 1, 16, 32, device=device) for _ in range(3))
    sides = {"torch": lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v),
             "smelt": lambda: smelt.torch.scaled_dot_product_attention(q, k, v)}
    found: dict[str, list[float]] = {name: [] for name in sides}
    with torch.no_grad():
        for _ in range(rounds):
            for name, work in sides.items():
                began = time.perf_counter()
                for _ in range(200):
                    work()
                found[name].append((time.perf_counter() - began) / 200)
                if device != "cpu":
                    torch.cuda.synchronize()
    print("host time of a call of attention: " + ", ".join(f"{name} {statistics.median(times) * 1e6:.1f} µs"
                                                          for name, times in found.items()))


JOBS: dict[str, Callable[[str, int, int], None]] = {
    "vit": vit, "sam": sam, "prefill": prefill, "decode": decode,
    "decode-int4": lambda device, rounds, layers: decode(device, rounds, layers, "int4"), "call": call}


def main() -> None:
    parser = argparse.ArgumentParser(description="Models with smelt's kernels next to the same models as they are.")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(JOBS)} (default: all)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--layers", type=int, default=4, help="of the models whose layers are alike (default 4)")
    arguments = parser.parse_args()
    wrong = [job for job in arguments.jobs if job not in JOBS]
    if wrong:
        parser.error(f"job '{wrong[0]}' does not exist; expected some of {', '.join(JOBS)}")
    smelt.torch.transformers.register()
    for job in arguments.jobs or JOBS:
        JOBS[job](arguments.device, arguments.rounds, arguments.layers)


if __name__ == "__main__":
    main()
