"""Trains the segmenter on drawn street scenes and writes its weights.

    python examples/python/segmenter/train.py [--device cuda] [--attention smelt] [--until 1250]

Forward and backward of every attention are smelt's, unless --attention stock is given. Every step asks for all words of
the vocabulary. After training, the masks of fresh scenes are compared with the truth, with either attention."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent))

import scenes  # noqa: E402
from model import ATTENTIONS, WEIGHTS, Segmenter, as_pictures, load_weights, overlap, save_weights  # noqa: E402

FRESH = 10_000_000  # seeds of the scenes that no training draws


def draw_scenes(first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures and labels of a range of seeds."""
    with ProcessPoolExecutor() as pool:
        drawn = list(pool.map(scenes.draw, range(first, first + count), chunksize=32))
    return np.stack([picture for picture, _ in drawn]), np.stack([labels for _, labels in drawn])


def masks_of(labels: torch.Tensor) -> torch.Tensor:
    """(B, side, side) of classes → bool (B, words, side, side)."""
    return labels[:, None] == torch.arange(len(scenes.CLASSES), device=labels.device)[:, None, None]


def all_words(count: int, device: str) -> torch.Tensor:
    return torch.arange(len(scenes.CLASSES), device=device).expand(count, -1)


def loss_of(logits: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Binary cross entropy, and for words that are in the picture the dice loss, which weighs small masks as much as
    large ones."""
    goal, found, there = expected.float(), torch.sigmoid(logits), expected.any(3).any(2)
    dice = 1 - (2 * (found * goal).sum((2, 3)) + 1) / (found.sum((2, 3)) + goal.sum((2, 3)) + 1)
    return functional.binary_cross_entropy_with_logits(logits, goal) + dice[there].mean()


def train(model: Segmenter, device: str, steps: int, until: int, batch: int, count: int, out: Path) -> None:
    """The learning rate rises and falls over `steps`; training ends at `until`. Weights are written on the way."""
    pixels, classes = draw_scenes(0, count)
    pictures, labels = torch.from_numpy(pixels).to(device), torch.from_numpy(classes).to(device)
    rng = np.random.default_rng(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps, pct_start=0.1)
    began, busy, total = time.perf_counter(), time.process_time(), torch.zeros((), device=device)
    words = all_words(batch, device)
    for step in range(1, until + 1):
        picked = torch.from_numpy(rng.integers(0, count, batch)).to(device)
        shown, truth = pictures[picked].permute(0, 3, 1, 2).float() / 255, labels[picked]
        if rng.uniform() < 0.5:  # a mirrored street is a street
            shown, truth = shown.flip(3), truth.flip(2)
        loss = loss_of(model(shown, words), masks_of(truth))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.detach()
        if step % 50 == 0:
            print(f"step {step}: loss {total.item() / 50:.4f}, {time.perf_counter() - began:.0f} s, of the processor "
                  f"{time.process_time() - busy:.0f} s", flush=True)
            total.zero_()
            save_weights(model, out)


@torch.no_grad()
def evaluate(model: Segmenter, device: str, count: int) -> dict[str, float]:
    """The mean intersection over union on fresh scenes, per word that is in the scene, and over all of these."""
    pixels, classes = draw_scenes(FRESH, count)
    overlaps, there = [], []
    for first in range(0, count, 32):
        pictures, expected = as_pictures(pixels[first:first + 32], device), masks_of(
            torch.from_numpy(classes[first:first + 32]).to(device))
        overlaps.append(overlap(model(pictures, all_words(len(pictures), device)) > 0, expected))
        there.append(expected.any(3).any(2))
    found, present = torch.cat(overlaps), torch.cat(there)
    means = {word: found[:, i][present[:, i]].mean().item() for i, word in enumerate(scenes.CLASSES)}
    return {**means, "all": found[present].mean().item()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains the segmenter and writes its weights.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--attention", choices=sorted(ATTENTIONS), default="smelt")
    parser.add_argument("--steps", type=int, default=1500, help="over which the learning rate rises and falls")
    parser.add_argument("--until", type=int, default=1250, help="the step that ends training; 0: only compares")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--scenes", type=int, default=4096)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = Segmenter(len(scenes.CLASSES), scenes.SIZE, ATTENTIONS[arguments.attention]).to(arguments.device)
    if arguments.until:
        train(model, arguments.device, arguments.steps, arguments.until, arguments.batch, arguments.scenes, arguments.out)
        save_weights(model, arguments.out)
    for name, attention in sorted(ATTENTIONS.items()):
        judged = Segmenter(len(scenes.CLASSES), scenes.SIZE, attention)
        load_weights(judged, arguments.out)
        means = evaluate(judged.to(arguments.device).eval(), arguments.device, 256)
        print(f"{name} attention: " + ", ".join(f"{word} {value:.3f}" for word, value in means.items()))


if __name__ == "__main__":
    main()
