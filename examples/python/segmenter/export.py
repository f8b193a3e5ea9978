"""Exports the trained segmenter as the package that `make demo` runs, with a scene for it.

    python examples/python/segmenter/export.py [--folder examples/demo] [--seed 20000007]

writes segmenter.smeltlib (inputs: pictures, float32 (1, 3, 96, 96) of 0 to 1, and words, int64 (1, 1); output: masks),
street.png and street.labels.png. The package has no machine code, so it runs on every CPU with smelt's compiler."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

import smelt

sys.path.insert(0, str(Path(__file__).parent))

import scenes  # noqa: E402
from model import Segmenter, load_weights, smelt_attention  # noqa: E402


def export(path: Path, code: bool = False) -> None:
    model = Segmenter(len(scenes.CLASSES), scenes.SIZE, smelt_attention)
    load_weights(model)
    example = torch.zeros(1, 3, scenes.SIZE, scenes.SIZE), torch.zeros(1, 1, dtype=torch.int64)
    smelt.export(model.eval(), example, path, output_names=["masks"], code=code)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exports the trained segmenter as a package.")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[2] / "demo")
    parser.add_argument("--seed", type=int, default=20_000_007, help="of the scene")
    arguments = parser.parse_args()
    export(arguments.folder / "segmenter.smeltlib")
    scenes.save(arguments.folder / "street.png", arguments.seed)
    print(f"segmenter.smeltlib, street.png and street.labels.png written to {arguments.folder}")


if __name__ == "__main__":
    main()
