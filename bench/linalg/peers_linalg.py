"""The jobs of `smelt bench linalg` in PyTorch, float32, on the CPU (bench/peers.py runs this). With SMELT_THREADS=1 seconds are
processor time, as smelt's are then."""
import os
import sys
import time

import torch

QUICK = sys.argv[1] == "quick"
THREADS = int(os.environ.get("SMELT_THREADS") or len(os.sched_getaffinity(0)))
torch.set_num_threads(THREADS)
now = time.process_time if THREADS == 1 else time.perf_counter


def timed(job, count):
    start = now()
    for _ in range(count):
        job()
    return (now() - start) / count


def rand(batch, rows, columns):
    if QUICK:
        batch, rows, columns = min(batch, 5), min(rows, 96), min(columns, 64)
    return torch.rand(batch, rows, columns) * 2 - 1


def definite(batch, n):
    m = rand(batch, n, n)
    n = m.shape[-2]
    return m @ m.mT / n + torch.eye(n) / 2


def on(x, function):
    return lambda: function(x)


def triangular(n):
    x = torch.tril(rand(1, n, n)[:, :n, :n])
    n = min(x.shape[-2:])
    x = x[:, :n, :n] / n + torch.eye(n)
    b = torch.rand_like(x)
    return lambda: torch.linalg.solve_triangular(x, b, upper=False)


def solve(n):
    x = definite(1, n)
    b = torch.rand_like(x)
    return lambda: torch.linalg.solve(x, b)


JOBS = {
    "cholesky": lambda: on(definite(1, 1024), torch.linalg.cholesky),
    "cholesky-2048": lambda: on(definite(1, 2048), torch.linalg.cholesky),
    "cholesky-batch": lambda: on(definite(1024, 64), torch.linalg.cholesky),
    "qr": lambda: on(rand(1, 1024, 1024), torch.linalg.qr),
    "qr-tall": lambda: on(rand(1, 4096, 256), torch.linalg.qr),
    "qr-batch": lambda: on(rand(1024, 64, 64), torch.linalg.qr),
    "lu": lambda: on(rand(1, 1024, 1024), torch.linalg.lu_factor),
    "lu-batch": lambda: on(rand(1024, 64, 64), torch.linalg.lu_factor),
    "solve": lambda: solve(1024),
    "triangular": lambda: triangular(1024),
}
