"""The jobs of `smelt bench attention` in PyTorch (bench/peers.py runs this): NAME of a job, or NAME:BACKEND on a GPU."""
import functools
import itertools
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

QUICK = sys.argv[1] == "quick"
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
SIZES = {"cpu": (1, 8, 128 if QUICK else 1024, torch.float32), "gpu": (1, 2, 256, torch.bfloat16) if QUICK
         else (4, 16, 4096, torch.bfloat16)}


def prepare(device, depth, causal, derive, backend):
    batches, heads, rows, dtype = SIZES[device]
    place = "cuda" if device == "gpu" else "cpu"
    q, k, v, g = (torch.randn(batches, heads, rows, depth, device=place, dtype=dtype) for _ in range(4))

    def attend():
        if backend is None:
            return scaled_dot_product_attention(q, k, v, is_causal=causal)
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(q, k, v, is_causal=causal)
    if not derive:
        job = attend
    else:
        for x in (q, k, v):
            x.requires_grad_()
        with torch.enable_grad():
            out = attend()

        def job():
            return torch.autograd.grad(out, (q, k, v), g, retain_graph=True)
    return job


JOBS = {}
for device in SIZES:
    for depth, causal, derive in itertools.product((64, 128), (False, True), (False, True)):
        name = f"{device}-{depth}" + "-causal" * causal + "-vjp" * derive
        JOBS[name] = functools.partial(prepare, device, depth, causal, derive, None)
        for backend, number in BACKENDS.items():
            JOBS[f"{name}:{backend}"] = functools.partial(prepare, device, depth, causal, derive, number)


def on_gpu(name):
    return name.startswith("gpu")
