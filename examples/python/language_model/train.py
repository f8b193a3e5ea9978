"""Trains a small Llama on a text, letter by letter, and writes its weights.

    apt-get install bible-kjv bible-kjv-text
    bible 'gen1:1-rev22:21' > bible.txt
    python examples/python/language_model/train.py bible.txt [--device cuda]"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))

from letters import CONTEXT, LETTERS, WEIGHTS, encode, new_model, save_weights  # noqa: E402


def read_text(path: Path) -> str:
    """The sentences of the text: without headings, verse numbers and line breaks."""
    lines = [re.sub(r"^\s*\d+\s", "", line).strip() for line in path.read_text().splitlines()]
    text = " ".join(line for line in lines if line and not re.fullmatch(r"[\w ]+ \d+", line))
    return "".join(letter for letter in text if letter in LETTERS)


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a small Llama on a text, letter by letter.")
    parser.add_argument("text", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    data = encode(read_text(arguments.text)).to(arguments.device)
    model = new_model().train().to(arguments.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, arguments.steps, pct_start=0.04)
    began, total = time.perf_counter(), torch.zeros((), device=arguments.device)
    offsets = torch.arange(CONTEXT + 1, device=arguments.device)
    for step in range(arguments.steps):
        first = torch.randint(0, len(data) - CONTEXT - 1, (arguments.batch, 1), device=arguments.device)
        rows = data[first + offsets]
        with torch.autocast(arguments.device, torch.bfloat16):
            logits = model(rows[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.detach()
        if (step + 1) % 250 == 0:
            print(f"step {step + 1}: {total.item() / 250:.3f} nats per letter, {time.perf_counter() - began:.0f} s", flush=True)
            total.zero_()
    save_weights(model, arguments.out)


if __name__ == "__main__":
    main()
