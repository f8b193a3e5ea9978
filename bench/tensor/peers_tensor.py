"""The jobs of `smelt bench tensor-ops` in PyTorch, on a GPU (bench/peers.py runs this)."""
import functools
import sys

import torch

if not torch.cuda.is_available():
    raise RuntimeError("PyTorch is installed but cannot use a GPU")
SIDE = 512 if sys.argv[1] == "quick" else 8192


def product(fast):
    a, b = (torch.rand(SIDE, SIDE, device="cuda").sub_(0.5).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)


JOBS = {"fp8": functools.partial(product, False), "fp8-fast": functools.partial(product, True)}


def on_gpu(_name):
    return True
