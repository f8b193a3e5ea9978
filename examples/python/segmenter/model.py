"""A small promptable segmenter: a picture and words in, for each word the mask of what it names out.

An image encoder (convolutions, then transformer blocks over patches of 8 × 8 pixels) and a pixel decoder do not depend on
the prompt. In the mask decoder each word attends to the picture's tokens and becomes the vector that is multiplied with
the features of every pixel. Every attention is the function that the model is given: stock PyTorch's or smelt's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import smelt.safetensors

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(queries, keys, values), each (batch, heads, rows, depth) → (batch, heads, rows of queries, depth)."""

WIDTH, HEADS, HIDDEN = 96, 4, 192  # of the tokens
HALF, QUARTER, FEATURES = 24, 48, 16  # channels at half and a quarter of the resolution, and at all of it
WEIGHTS = Path(__file__).parent / "weights.safetensors"


def stock_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return functional.scaled_dot_product_attention(q, k, v)


def smelt_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    import smelt.torch
    return smelt.torch.scaled_dot_product_attention(q, k, v)


ATTENTIONS: dict[str, Attention] = {"stock": stock_attention, "smelt": smelt_attention}


class Attend(nn.Module):
    """Multi-head attention of `rows` to `seen`."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, rows: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        q, k, v = (layer(x).unflatten(2, (HEADS, -1)).transpose(1, 2)
                   for layer, x in ((self.query, rows), (self.key, seen), (self.value, seen)))
        return self.out(self.attention(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A transformer block, whose rows attend to themselves, or to what `seen` is."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.norm, self.attend = nn.LayerNorm(WIDTH), Attend(attention)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH))

    def forward(self, rows: torch.Tensor, seen: torch.Tensor | None = None) -> torch.Tensor:
        normal = self.norm(rows)
        rows = rows + self.attend(normal, normal if seen is None else seen)
        return rows + self.mlp(rows)


class Convolution(nn.Sequential):
    """3 × 3, normalised over the batch."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Enlarge(nn.Sequential):
    """Twice the resolution, by one matrix per pixel."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(nn.Conv2d(inputs, 4 * outputs, 1), nn.PixelShuffle(2))


class Segmenter(nn.Module):
    """words: the size of the vocabulary; side: of the pictures, a multiple of 8; attention: see `Attention`."""

    def __init__(self, words: int, side: int, attention: Attention) -> None:
        super().__init__()
        self.encode_half = nn.Sequential(nn.PixelUnshuffle(2), Convolution(12, HALF), Convolution(HALF, HALF))
        self.encode_quarter = nn.Sequential(Convolution(HALF, QUARTER, 2), Convolution(QUARTER, QUARTER))
        self.patches = nn.Conv2d(QUARTER, WIDTH, 3, 2, 1)
        self.positions = nn.Parameter(torch.randn(1, (side // 8)**2, WIDTH) * 0.02)
        self.blocks = nn.ModuleList([Block(attention) for _ in range(3)])
        self.norm = nn.LayerNorm(WIDTH)
        self.to_quarter, self.at_quarter = Enlarge(WIDTH, QUARTER), Convolution(QUARTER, QUARTER)
        self.to_half, self.at_half = Enlarge(QUARTER, HALF), Convolution(HALF, HALF)
        self.to_full = Enlarge(HALF, FEATURES)
        self.words = nn.Embedding(words, WIDTH)
        self.decoder = nn.ModuleList([Block(attention) for _ in range(2)])
        self.masks = nn.Linear(WIDTH, FEATURES + 1)

    def encode(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, 3, side, side) of 0 to 1 → tokens (B, (side / 8)², WIDTH) and features (B, FEATURES, side, side), which do
        not depend on the prompt."""
        half = self.encode_half(pictures * 2 - 1)
        quarter = self.encode_quarter(half)
        patches = self.patches(quarter)
        tokens = patches.flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            tokens = block(tokens)
        tokens = self.norm(tokens)
        features = self.at_quarter(self.to_quarter(tokens.transpose(1, 2).unflatten(2, patches.shape[2:])) + quarter)
        return tokens, self.to_full(self.at_half(self.to_half(features) + half))

    def decode(self, tokens: torch.Tensor, features: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Logits (B, N, side, side) of the masks of words (B, N), indices into the vocabulary."""
        prompt = self.words(words)
        for block in self.decoder:
            prompt = block(prompt, tokens)
        vectors = self.masks(prompt)
        found = vectors[:, :, :FEATURES] @ features.flatten(2) + vectors[:, :, FEATURES:]
        return found.unflatten(2, features.shape[2:])

    def forward(self, pictures: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        return self.decode(*self.encode(pictures), words)


def as_pictures(pixels: np.ndarray, device: str = "cpu") -> torch.Tensor:
    """uint8 (B, side, side, 3) → what Segmenter takes."""
    return torch.from_numpy(pixels).to(device).permute(0, 3, 1, 2).float() / 255


def overlap(masks: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """The intersection over union of bool (…, side, side); 1 where both are empty."""
    union = (masks | expected).sum((-1, -2))
    return torch.where(union > 0, (masks & expected).sum((-1, -2)) / union.clamp(min=1), 1.0)


def save_weights(model: Segmenter, path: Path) -> None:
    """In float16, half the size."""
    smelt.safetensors.save(path, {name: value.half().cpu().numpy() for name, value in model.state_dict().items()
                                  if not name.endswith("num_batches_tracked")})


def load_weights(model: Segmenter, path: Path = WEIGHTS) -> None:
    arrays = smelt.safetensors.load(path).arrays
    model.load_state_dict({name: torch.from_numpy(np.asarray(value).astype(np.float32)) for name, value in arrays.items()},
                          strict=False)
