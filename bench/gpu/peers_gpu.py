"""The jobs of `smelt bench gpu` in PyTorch (bench/peers.py runs this)."""
import sys

import torch

if not torch.cuda.is_available():
    raise RuntimeError("PyTorch is installed but cannot use a GPU")

QUICK = sys.argv[1] == "quick"
GPU = "cuda"
torch.backends.cuda.matmul.allow_tf32 = False


def elementwise(function):
    def prepare():
        x = torch.rand(2 ** (16 if QUICK else 28), device=GPU) * 8 - 4
        y = torch.empty_like(x)
        return lambda: function(x, y)
    return prepare


def rows(function):
    def prepare():
        x = torch.randn((64 if QUICK else 16384), 8192, device=GPU, dtype=torch.bfloat16)
        w = torch.rand(8192, device=GPU, dtype=torch.bfloat16)
        return lambda: function(x, w)
    return prepare


def sample_data(last):
    side, points = (64, 16) if QUICK else (1024, 256)
    x = torch.rand(8, side, side, 64, device=GPU) * 2 - 1
    x = x.permute(0, 3, 1, 2)  # channels last in memory
    if not last:
        x = x.contiguous()
    grid = torch.rand(8, points, points, 2, device=GPU) * 2 - 1
    return x, grid


def sample(last):
    def prepare():
        x, grid = sample_data(last)
        return lambda: torch.nn.functional.grid_sample(
            x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return prepare


def sample_vjp(last):
    def prepare():
        x, grid = sample_data(last)
        y = torch.nn.functional.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        g = torch.rand_like(y)
        return lambda: torch.ops.aten.grid_sampler_2d_backward(g, x, grid, 0, 0, False, [True, True])
    return prepare


def inverse():
    a = torch.rand((64 if QUICK else 16384), 64, 64, device=GPU) * 0.2 - 0.1
    identity = torch.eye(64, device=GPU).expand_as(a).contiguous()
    return lambda: torch.linalg.solve_triangular(a, identity, upper=False, unitriangular=True)


def matmul(dtype):
    def prepare():
        n = 256 if QUICK else 4096
        a, b = (torch.randn(n, n, device=GPU, dtype=dtype) for _ in range(2))
        c = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=c)
    return prepare


def matmat():
    rows, tokens = (256, 32) if QUICK else (4096, 512)
    w = torch.rand(rows, 4096, device=GPU, dtype=torch.float16)
    x = torch.rand(tokens, 4096, device=GPU, dtype=torch.float16)
    return lambda: torch.mm(x, w.T)


def attention(depth):
    def job():
        shape = (1, 2, 64, depth) if QUICK else (1, 16, 4096, depth)
        q, k, v = (torch.randn(shape, device=GPU, dtype=torch.float16) for _ in range(3))
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return job


JOBS = {
    "copy": elementwise(lambda x, y: y.copy_(x)),
    "exp": elementwise(lambda x, y: torch.exp(x, out=y)),
    "softmax": rows(lambda x, w: torch.softmax(x, -1)),
    "rms-norm": rows(lambda x, w: torch.nn.functional.rms_norm(x, (8192,), w, 1e-5)),
    "grid-sample": sample(True),
    "grid-sample-nchw": sample(False),
    "grid-sample-vjp": sample_vjp(True),
    "grid-sample-vjp-nchw": sample_vjp(False),
    "inverse": inverse,
    "matmat": matmat,
    "attention": attention(64),
    "attention-128": attention(128),
    "matmul-f32": matmul(torch.float32),
    "matmul-f16": matmul(torch.float16),
    "matmul-bf16": matmul(torch.bfloat16),
}


def on_gpu(_name):
    return True
