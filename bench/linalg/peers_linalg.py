"""The jobs of `smelt bench linalg` in PyTorch, float32 (bench/peers.py runs this). On the CPU, with
SMELT_THREADS=1, seconds are processor time, as smelt's are then."""
import os
import sys
import time

import torch

QUICK = sys.argv[1] == "quick"
THREADS = int(os.environ.get("SMELT_THREADS") or len(os.sched_getaffinity(0)))
torch.set_num_threads(THREADS)
DEVICE = sys.argv[3]
GPU = DEVICE == "cuda"
now = time.process_time if THREADS == 1 and not GPU else time.perf_counter
if GPU and not torch.cuda.is_available():
    raise RuntimeError("PyTorch is installed but cannot use a GPU")


def timed(job, count):
    start = now()
    for _ in range(count):
        job()
    if GPU:
        torch.cuda.synchronize()
    return (now() - start) / count


def rand(batch, rows, columns):
    if QUICK:
        batch, rows, columns = min(batch, 5), min(rows, 96), min(columns, 64)
    return torch.rand(batch, rows, columns, device=DEVICE) * 2 - 1


def definite(batch, n):
    m = rand(batch, n, n)
    n = m.shape[-2]
    return m @ m.mT / n + torch.eye(n, device=m.device) / 2


def on(x, function):
    return lambda: function(x)


def triangular(n):
    x = torch.tril(rand(1, n, n)[:, :n, :n])
    n = min(x.shape[-2:])
    x = x[:, :n, :n] / n + torch.eye(n, device=x.device)
    b = torch.rand_like(x)
    return lambda: torch.linalg.solve_triangular(x, b, upper=False)


def solve(n):
    x = definite(1, n)
    b = torch.rand_like(x)
    return lambda: torch.linalg.solve(x, b)


JOBS = {
    "cholesky": lambda: on(definite(1, 1024), torch.linalg.cholesky),
    "cholesky-2048": lambda: on(definite(1, 2048), torch.linalg.cholesky),
    "cholesky-4096": lambda: on(definite(1, 4096), torch.linalg.cholesky),
    "cholesky-batch": lambda: on(definite(1024, 64), torch.linalg.cholesky),
    "cholesky-unchecked": lambda: on(definite(1, 1024), torch.linalg.cholesky_ex),
    "cholesky-4096-unchecked": lambda: on(definite(1, 4096), torch.linalg.cholesky_ex),
    "cholesky-batch-unchecked": lambda: on(definite(1024, 64), torch.linalg.cholesky_ex),
    "qr": lambda: on(rand(1, 1024, 1024), torch.linalg.qr),
    "qr-4096": lambda: on(rand(1, 4096, 4096), torch.linalg.qr),
    "qr-tall": lambda: on(rand(1, 4096, 256), torch.linalg.qr),
    "qr-batch": lambda: on(rand(1024, 64, 64), torch.linalg.qr),
    "lu": lambda: on(rand(1, 1024, 1024), torch.linalg.lu_factor),
    "lu-4096": lambda: on(rand(1, 4096, 4096), torch.linalg.lu_factor),
    "lu-batch": lambda: on(rand(1024, 64, 64), torch.linalg.lu_factor),
    "solve": lambda: solve(1024),
    "triangular": lambda: triangular(1024),
}
