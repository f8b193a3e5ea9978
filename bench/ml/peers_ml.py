"""The jobs of `smelt bench ml` in PyTorch, float32, on the CPU (bench/peers.py runs this)."""
import sys

import torch

QUICK = sys.argv[1] == "quick"
ROTATED = 2 if QUICK else 5  # weights of 64 MiB


def rotate(jobs):
    state = {"turn": 0}

    def run():
        state["turn"] = (state["turn"] + 1) % len(jobs)
        return jobs[state["turn"]]()
    return run


def matvec():
    rows, columns = (256, 1024) if QUICK else (4096, 4096)
    x = torch.rand(columns)
    return rotate([lambda w=torch.rand(rows, columns): torch.mv(w, x) for _ in range(ROTATED)])


def matmat():
    rows, columns, tokens = (128, 128, 64) if QUICK else (1024, 1024, 512)
    w, x = torch.rand(rows, columns), torch.rand(tokens, columns)
    return lambda: torch.nn.functional.linear(x, w)


def attention():
    heads, queries, keys = (2, 64, 128) if QUICK else (8, 256, 1024)
    q, k, v = torch.rand(1, heads, queries, 64), torch.rand(1, heads, keys, 64), torch.rand(1, heads, keys, 64)
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)


def rows(function):
    def prepare():
        x = torch.rand(*((128, 1024) if QUICK else (4096, 4096)))
        y = torch.empty_like(x)
        return lambda: function(x, y)
    return prepare


JOBS = {
    "matvec": matvec,
    "matmat": matmat,
    "attention": attention,
    "softmax-rows": rows(lambda x, y: torch.softmax(x, -1, out=y)),
    "rms-norm": rows(lambda x, y: torch.nn.functional.rms_norm(x, x.shape[-1:], None, 1e-5)),
}
