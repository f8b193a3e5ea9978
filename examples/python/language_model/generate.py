"""Continues a text with a small Llama whose parts run as smelt's kernels.

    python examples/python/language_model/generate.py --prompt "And the king said" [--weights int4]

smelt.torch.optimize replaces norms, rotary positions, gated MLPs and attention, and packs the weights if --weights says
how; the report of what it did is printed first. The weights come from examples/python/language_model/train.py."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

import smelt.torch

sys.path.insert(0, str(Path(__file__).parent))

from letters import decode, encode, load_model  # noqa: E402


def write(prompt: str, letters: int, weights: str | None, temperature: float = 0.0, device: str = "cpu") -> tuple[str, str]:
    """The text, which begins with the prompt, and what was replaced. temperature 0: always the likeliest letter."""
    model = load_model().to(device)
    report = smelt.torch.optimize(model, weights=weights)
    tokens = encode(prompt)[None].to(device)
    chosen = {"do_sample": True, "temperature": temperature} if temperature else {"do_sample": False}
    found = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=letters, pad_token_id=0, **chosen)
    return decode(found[0]), str(report)


def main() -> None:
    parser = argparse.ArgumentParser(description="Continues a text with a small Llama.")
    parser.add_argument("--prompt", default="And the king said unto ")
    parser.add_argument("--letters", type=int, default=240)
    parser.add_argument("--weights", choices=["int4", "int8", "fp8"], help="pack the weights (default: as they are)")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--device", default="cpu", help="cpu (the default) or cuda")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    text, report = write(arguments.prompt, arguments.letters, arguments.weights, arguments.temperature, arguments.device)
    print(report, text, sep="\n\n")


if __name__ == "__main__":
    main()
