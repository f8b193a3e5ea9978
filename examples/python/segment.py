"""Colours what a word names in a picture of a street: a picture and a prompt in, a mask out.

    python examples/python/segmenter/scenes.py scene.png --seed 7
    python examples/python/segment.py --image scene.png --prompt car

writes scene.car.png, where all cars are blue, and prints the intersection over union with the mask that the scene was
drawn from (scene.labels.png), if that is there. All attention is smelt's, unless --attention stock is given."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent / "segmenter"))

import scenes  # noqa: E402
from model import ATTENTIONS, Segmenter, as_pictures, load_weights, overlap  # noqa: E402

BLUE = np.array([30, 90, 255], np.float32)


@torch.no_grad()
def segment(pixels: np.ndarray, prompt: str, attention: str = "smelt", device: str = "cpu") -> np.ndarray:
    """The mask of what the prompt names: bool (side, side). pixels: uint8 (side, side, 3), side = scenes.SIZE."""
    model = Segmenter(len(scenes.CLASSES), scenes.SIZE, ATTENTIONS[attention])
    load_weights(model)
    word = torch.tensor([[scenes.CLASSES.index(prompt)]], device=device)
    return (model.to(device).eval()(as_pictures(pixels[None], device), word)[0, 0] > 0).cpu().numpy()


def read_picture(path: Path) -> np.ndarray:
    picture = Image.open(path).convert("RGB")
    if picture.size != (scenes.SIZE, scenes.SIZE):
        picture = picture.resize((scenes.SIZE, scenes.SIZE), Image.Resampling.BOX)
    return np.asarray(picture)


def main() -> None:
    parser = argparse.ArgumentParser(description="Colours what a word names in a picture of a street.")
    parser.add_argument("--image", type=Path, required=True, help="a picture, as of segmenter/scenes.py")
    parser.add_argument("--prompt", choices=scenes.CLASSES, required=True)
    parser.add_argument("--attention", choices=sorted(ATTENTIONS), default="smelt")
    parser.add_argument("--device", default="cpu", help="cpu (the default) or cuda")
    parser.add_argument("--out", type=Path, help="default: IMAGE with .PROMPT.png")
    arguments = parser.parse_args()
    pixels = read_picture(arguments.image)
    mask = segment(pixels, arguments.prompt, arguments.attention, arguments.device)
    coloured = np.where(mask[:, :, None], pixels * 0.35 + BLUE * 0.65, pixels).astype(np.uint8)
    out = arguments.out or arguments.image.with_suffix(f".{arguments.prompt}.png")
    Image.fromarray(coloured).save(out)
    print(f"{out} written: {mask.mean():.1%} of the picture is {arguments.prompt}")
    truth = scenes.labels_path(arguments.image)
    if truth.exists():
        expected = np.asarray(Image.open(truth)) == scenes.CLASSES.index(arguments.prompt)
        print(f"intersection over union: {overlap(torch.from_numpy(mask[None]), torch.from_numpy(expected[None])).item():.3f}")


if __name__ == "__main__":
    main()
