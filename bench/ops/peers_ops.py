"""The jobs of `smelt bench ops` in PyTorch, float32 (bench/peers.py runs this)."""
import sys
import time

import torch
import torch.nn.functional as F

QUICK = sys.argv[1] == "quick"
GPU = sys.argv[3] == "cuda"
if GPU and not torch.cuda.is_available():
    raise RuntimeError("PyTorch is installed but cannot use a GPU")
torch.set_default_device(sys.argv[3])
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def timed(job, count):
    start = time.perf_counter()
    for _ in range(count):
        job()
    if GPU:
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / count


def rand(full, quick):
    return torch.rand(*(quick if QUICK else full)) * 2 - 1


def square():
    return rand((4096, 4096), (64, 256))


def rope():
    x = rand((4, 8, 1024, 128), (2, 2, 16, 32))
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    c, s = torch.cos(angle).repeat(1, 2), torch.sin(angle).repeat(1, 2)
    return lambda: x * c + torch.cat((-x[..., half:], x[..., :half]), -1) * s


def norm(function):
    def prepare():
        x = square()
        w = torch.rand(x.shape[-1])
        return lambda: function(x, w)
    return prepare


def of_square(function):
    def prepare():
        x = square()
        return lambda: function(x)
    return prepare


def conv():
    x, w = rand((8, 56, 56, 64), (2, 8, 8, 8)).permute(0, 3, 1, 2), rand((64, 3, 3, 64), (8, 3, 3, 8)).permute(0, 3, 1, 2)
    return lambda: F.conv2d(x, w, padding=1)


def depthwise():
    x, w = rand((8, 56, 56, 64), (2, 8, 8, 8)).permute(0, 3, 1, 2), rand((64, 3, 3, 1), (8, 3, 3, 1)).permute(0, 3, 1, 2)
    return lambda: F.conv2d(x, w, padding=1, groups=x.shape[1])


def sample():
    x = rand((8, 128, 128, 64), (2, 8, 8, 8)).permute(0, 3, 1, 2)
    grid = rand((8, 64, 64, 2), (2, 4, 4, 2))
    return lambda: F.grid_sample(x, grid, align_corners=False)


def product():
    a, b = rand((1024, 1024), (64, 64)), rand((1024, 1024), (64, 64))
    return lambda: a @ b


def rows(full, quick, function):
    def prepare():
        x = rand(full, quick)
        return lambda: function(x)
    return prepare


JOBS = {
    "softmax": of_square(lambda x: torch.softmax(x, -1)),
    "log-softmax": of_square(lambda x: torch.log_softmax(x, -1)),
    "layer-norm": norm(lambda x, w: F.layer_norm(x, w.shape, w, w)),
    "rms-norm": norm(lambda x, w: F.rms_norm(x, w.shape, w, 1e-5)),
    "rope": rope,
    "transpose": of_square(lambda x: x.t().contiguous()),
    "sum": of_square(lambda x: x.sum(-1)),
    "cumsum": of_square(lambda x: torch.cumsum(x, -1)),
    "sort": rows((256, 16384), (4, 256), lambda x: torch.sort(x, -1)),
    "fft": rows((1024, 1024), (8, 64), lambda x: torch.fft.fft(x)),
    "conv2d": conv,
    "depthwise": depthwise,
    "matmul": product,
    "grid-sample": sample,
    "softmax-row": rows((1, 1 << 24), (1, 1 << 14), lambda x: torch.softmax(x, -1)),
    "sum-row": rows((1, 1 << 24), (1, 1 << 14), lambda x: x.sum(-1)),
    "layer-norm-row": rows((1, 1 << 24), (1, 1 << 14), lambda x: F.layer_norm(x, x.shape[1:])),
    "cumsum-row": rows((1, 1 << 24), (1, 1 << 14), lambda x: torch.cumsum(x, -1)),
    "argmax-row": rows((1, 1 << 24), (1, 1 << 14), lambda x: torch.argmax(x, -1)),
    "sort-row": rows((1, 1 << 22), (1, 1 << 14), lambda x: torch.sort(x, -1)),
}
