"""The model of examples/python/language_model/generate.py: a Llama whose tokens are letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import smelt.safetensors

LETTERS = "\0 abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,;:!?'()-"
"""The vocabulary; the first stands for all that is not in it."""
CONTEXT = 256
WEIGHTS = Path(__file__).parent / "weights.safetensors"


def encode(text: str) -> torch.Tensor:
    return torch.tensor([max(LETTERS.find(letter), 0) for letter in text])


def decode(tokens: torch.Tensor) -> str:
    return "".join(LETTERS[token] for token in tokens.tolist())


def new_model() -> Any:
    config = transformers.LlamaConfig(
        hidden_size=128, intermediate_size=384, num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=len(LETTERS), max_position_embeddings=2048, bos_token_id=0, eos_token_id=0, pad_token_id=0)
    return transformers.LlamaForCausalLM(config)


def save_weights(model: torch.nn.Module, path: Path) -> None:
    """In float16, half the size."""
    smelt.safetensors.save(path, {name: value.half().cpu().numpy() for name, value in model.state_dict().items()})


def load_model(path: Path = WEIGHTS) -> Any:
    model, arrays = new_model(), smelt.safetensors.load(path).arrays
    model.load_state_dict({name: torch.from_numpy(np.asarray(value).astype(np.float32)) for name, value in arrays.items()})
    return model.eval()
