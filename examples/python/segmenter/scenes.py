"""Procedurally drawn street scenes with the class of every pixel.

    python examples/python/segmenter/scenes.py scene.png --seed 7

writes the picture, and the classes of its pixels as scene.labels.png (values are indices into `CLASSES`)."""

from __future__ import annotations

import argparse
import colorsys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

SIZE = 96  # of a picture's sides, in pixels
CLASSES = ["sky", "building", "tree", "road", "sidewalk", "car", "bus", "person"]  # also the vocabulary of prompts
_FINE = 2  # pixels are drawn this many times as fine, and averaged


class _Canvas:
    """A picture and the classes of its pixels; coordinates are 0 to 1, from the upper left corner."""

    def __init__(self) -> None:
        side = SIZE * _FINE
        self.picture, self.labels = Image.new("RGB", (side, side)), Image.new("L", (side, side))
        self._pens = ImageDraw.Draw(self.picture), ImageDraw.Draw(self.labels)

    def draw(self, shape: str, where: list[float], colour: tuple[int, int, int], label: str, **options: Any) -> None:
        """A shape of ImageDraw (rectangle, ellipse, polygon, rounded_rectangle) at x0, y0, x1, y1, …"""
        where = [value * SIZE * _FINE for value in where]
        for pen, fill in zip(self._pens, (colour, CLASSES.index(label))):
            getattr(pen, shape)(where, fill=fill, **options)


def _shade(rng: np.random.Generator, hue: float, saturation: float, value: float, spread: float = 0.08) -> tuple[int, int, int]:
    """A colour near the given one."""
    near = [component + rng.uniform(-spread, spread) for component in (hue, saturation, value)]
    red, green, blue = colorsys.hsv_to_rgb(near[0] % 1, min(max(near[1], 0), 1), min(max(near[2], 0), 1))
    return int(red * 255), int(green * 255), int(blue * 255)


def _darker(colour: tuple[int, int, int], factor: float) -> tuple[int, int, int]:
    return int(colour[0] * factor), int(colour[1] * factor), int(colour[2] * factor)


def _sky(canvas: _Canvas, rng: np.random.Generator) -> None:
    top = np.array(_shade(rng, rng.choice([0.58, 0.6, 0.07]), 0.45, 0.8, 0.1))
    for row in range(16):
        colour = tuple(int(c) for c in top + (255 - top) * row / 24)
        canvas.draw("rectangle", [0, row / 16, 1, (row + 1) / 16], colour, "sky")  # type: ignore[arg-type]
    for _ in range(rng.integers(0, 4)):
        x, y, width = rng.uniform(0, 1), rng.uniform(0, 0.25), rng.uniform(0.1, 0.3)
        canvas.draw("ellipse", [x - width / 2, y, x + width / 2, y + width * 0.3], _shade(rng, 0.6, 0.03, 0.95, 0.04), "sky")


def _building(canvas: _Canvas, rng: np.random.Generator, left: float, right: float, ground: float) -> None:
    top = ground - rng.uniform(0.2, 0.55)
    wall = _shade(rng, rng.choice([0.03, 0.08, 0.1, 0.6]), rng.uniform(0.05, 0.5), rng.uniform(0.4, 0.85))
    window = _shade(rng, 0.57, 0.3, rng.choice([0.3, 0.9]))
    canvas.draw("rectangle", [left, top, right, ground], wall, "building")
    step, height = rng.uniform(0.05, 0.08), rng.uniform(0.06, 0.1)
    for y in np.arange(top + 0.03, ground - height, height):
        for x in np.arange(left + 0.02, right - step * 0.6, step):
            canvas.draw("rectangle", [x, y, x + step * 0.5, y + height * 0.5], window, "building")


def _tree(canvas: _Canvas, rng: np.random.Generator, x: float, ground: float) -> None:
    height = rng.uniform(0.24, 0.4)
    canvas.draw("rectangle", [x - height * 0.05, ground - height * 0.5, x + height * 0.05, ground],
                _shade(rng, 0.07, 0.5, 0.35), "tree")
    leaves = _shade(rng, rng.choice([0.3, 0.33, 0.25, 0.1]), 0.6, rng.uniform(0.3, 0.6))
    for _ in range(5):
        cx, cy = x + rng.uniform(-0.2, 0.2) * height, ground - height * rng.uniform(0.55, 0.85)
        radius = height * rng.uniform(0.2, 0.32)
        canvas.draw("ellipse", [cx - radius, cy - radius, cx + radius, cy + radius], leaves, "tree")
        leaves = _darker(leaves, rng.uniform(0.9, 1.05))


def _wheels(canvas: _Canvas, label: str, centres: list[float], ground: float, radius: float) -> None:
    for x in centres:
        canvas.draw("ellipse", [x - radius, ground - 2 * radius, x + radius, ground], (25, 25, 28), label)
        canvas.draw("ellipse", [x - radius / 2, ground - 1.5 * radius, x + radius / 2, ground - radius / 2], (150, 150, 155),
                    label)


def _car(canvas: _Canvas, rng: np.random.Generator, x: float, ground: float, length: float) -> None:
    paint = _shade(rng, rng.uniform(0, 1), rng.choice([0.05, 0.8]), rng.uniform(0.35, 0.95))
    glass = _shade(rng, 0.55, 0.25, rng.uniform(0.25, 0.75))
    height, side = length * rng.uniform(0.36, 0.44), rng.choice([-1, 1])

    def at(u: float) -> float:  # along the car, whichever way it drives
        return x + side * u * length

    roof = ground - height
    belt = ground - height * 0.55
    canvas.draw("polygon", [at(-0.32), belt, at(-0.2), roof, at(0.12), roof, at(0.28), belt], paint, "car")
    canvas.draw("polygon", [at(-0.25), belt, at(-0.17), roof + height * 0.08, at(-0.03), roof + height * 0.08, at(-0.03), belt],
                glass, "car")
    canvas.draw("polygon", [at(0.0), belt, at(0.0), roof + height * 0.08, at(0.1), roof + height * 0.08, at(0.22), belt], glass,
                "car")
    left, right = sorted((at(-0.5), at(0.5)))
    canvas.draw("rounded_rectangle", [left, belt, right, ground - height * 0.12], paint, "car", radius=length * SIZE * 0.12)
    _wheels(canvas, "car", [at(-0.28), at(0.28)], ground, length * 0.095)


def _bus(canvas: _Canvas, rng: np.random.Generator, x: float, ground: float, length: float) -> None:
    paint, height = _shade(rng, rng.choice([0.0, 0.13, 0.35, 0.6]), 0.75, 0.75), length * rng.uniform(0.48, 0.58)
    glass = _shade(rng, 0.55, 0.25, rng.uniform(0.25, 0.8))
    left = x - length / 2
    canvas.draw("rounded_rectangle", [left, ground - height, left + length, ground - height * 0.1], paint, "bus",
                radius=length * SIZE * 0.08)
    for i in range(5):
        canvas.draw("rectangle", [left + length * (0.06 + 0.18 * i), ground - height * 0.85,
                                  left + length * (0.2 + 0.18 * i), ground - height * 0.5], glass, "bus")
    _wheels(canvas, "bus", [x - length * 0.3, x + length * 0.3], ground, length * 0.075)


def _person(canvas: _Canvas, rng: np.random.Generator, x: float, ground: float, height: float) -> None:
    skin, coat, trousers = _shade(rng, 0.07, 0.4, rng.uniform(0.4, 0.9)), _shade(rng, rng.uniform(0, 1), 0.6, 0.6, 0.2), \
        _shade(rng, 0.6, 0.3, rng.uniform(0.15, 0.5))
    width = height * 0.3
    hip, neck = ground - height * 0.45, ground - height * 0.8
    for side in (-1, 1):
        foot = x + side * width * rng.uniform(0.15, 0.5)
        canvas.draw("polygon", [x - width * 0.3, hip, x + width * 0.3, hip, foot + width * 0.2, ground, foot - width * 0.2,
                                ground], trousers, "person")
    canvas.draw("polygon", [x - width * 0.5, neck, x + width * 0.5, neck, x + width * 0.4, hip, x - width * 0.4, hip], coat,
                "person")
    radius = height * 0.11
    canvas.draw("ellipse", [x - radius, neck - 2 * radius, x + radius, neck], skin, "person")


def _vehicles(canvas: _Canvas, rng: np.random.Generator, road: float) -> None:
    """From far to near; what is near is larger, and covers what is behind. Each has a part of the road's width."""
    count = rng.integers(1, 4)
    for place, depth in zip(rng.permutation(count), np.sort(rng.uniform(0, 1, count))):
        ground = road + 0.1 + (0.94 - road - 0.1) * depth
        x, length = (place + rng.uniform(0.25, 0.75)) / count, 0.28 + 0.2 * depth
        if rng.uniform() < 0.3:
            _bus(canvas, rng, x, ground, length * 1.3)
        else:
            _car(canvas, rng, x, ground, length)


def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The scene of a seed: uint8 (SIZE, SIZE, 3), and uint8 (SIZE, SIZE) of indices into CLASSES."""
    rng = np.random.default_rng(seed)
    canvas = _Canvas()
    _sky(canvas, rng)
    horizon = rng.uniform(0.42, 0.58)
    road = horizon + rng.uniform(0.08, 0.14)
    left = rng.uniform(-0.2, 0.1)
    while left < 1:
        right = left + rng.uniform(0.14, 0.34)
        if rng.uniform() < 0.75:
            _building(canvas, rng, left, right, horizon + 0.01)
        left = right + rng.choice([0, 0.03])
    canvas.draw("rectangle", [0, horizon, 1, 1], _shade(rng, 0.1, 0.08, 0.65), "sidewalk")
    asphalt = _shade(rng, 0.6, 0.05, rng.uniform(0.25, 0.45))
    canvas.draw("rectangle", [0, road, 1, 1], asphalt, "road")
    for x in np.arange(rng.uniform(-0.2, 0), 1, 0.22):
        canvas.draw("rectangle", [x, 0.78, x + 0.11, 0.795], (225, 225, 215), "road")
    for _ in range(rng.integers(0, 4)):
        _tree(canvas, rng, rng.uniform(0, 1), rng.uniform(horizon + 0.01, road - 0.02))
    for _ in range(rng.integers(0, 3)):
        _person(canvas, rng, rng.uniform(0.05, 0.95), rng.uniform(horizon + 0.04, road), rng.uniform(0.26, 0.34))
    _vehicles(canvas, rng, road)
    if rng.uniform() < 0.4:
        _person(canvas, rng, rng.uniform(0.1, 0.9), rng.uniform(0.85, 0.98), rng.uniform(0.36, 0.48))
    picture = np.asarray(canvas.picture.resize((SIZE, SIZE), Image.Resampling.BOX)).astype(np.float32)
    picture = picture * rng.uniform(0.8, 1.1) + rng.normal(0, rng.uniform(1, 6), picture.shape)
    labels = np.asarray(canvas.labels)[_FINE // 2::_FINE, _FINE // 2::_FINE]
    return picture.clip(0, 255).astype(np.uint8), labels.copy()


def labels_path(picture: Path) -> Path:
    """Where the classes of a picture's pixels lie."""
    return picture.with_suffix(".labels.png")


def save(path: Path, seed: int) -> None:
    picture, labels = draw(seed)
    Image.fromarray(picture).save(path)
    Image.fromarray(labels).save(labels_path(path))


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws a street scene, and the classes of its pixels next to it.")
    parser.add_argument("path", type=Path, help="the PNG file to write")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    save(arguments.path, arguments.seed)
    print(f"{arguments.path} and {labels_path(arguments.path)} written")


if __name__ == "__main__":
    main()
