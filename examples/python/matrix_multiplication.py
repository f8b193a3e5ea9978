"""One product of matrices in eight versions, from naive to best, on every device: equal results, and what each step gains.

    python examples/python/matrix_multiplication.py [M N K]

docs/matmul.md says what each version does; `smelt bench matmul` compares them with OpenBLAS and cuBLAS."""

from __future__ import annotations

import sys

import numpy as np

import smelt
from smelt.bench import do_bench

ALGORITHMS = ["naive", "coalescing", "tiled", "tiled_register", "block_tiled", "block_tiled_vectorized", "tensor_core", "best"]


def devices() -> list[str]:
    """The CPU, and the first GPU where there is one."""
    gpus = [device for device in smelt.devices() if device.startswith("cuda")]
    return ["cpu", *gpus[:1]]


def matrix_multiplication(a: smelt.array, b: smelt.array, algorithm: str) -> smelt.array:
    return smelt.matmul(a, b, algorithm=algorithm)


def check(a: np.ndarray, b: np.ndarray, algorithm: str, device: str) -> float:
    """The largest error, relative to the largest element."""
    expected = a.astype(np.float64) @ b.astype(np.float64)
    product = matrix_multiplication(smelt.array(a).to(device), smelt.array(b).to(device), algorithm)
    return float(np.abs(np.asarray(product.to("cpu")) - expected).max() / np.abs(expected).max())


def main(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng()
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    for device in devices():
        x, y = smelt.array(a).to(device), smelt.array(b).to(device)
        for algorithm in ALGORITHMS:
            error = check(a, b, algorithm, device)
            # On a GPU tensor_core multiplies numbers of 11 significant bits.
            assert error < (1e-3 if algorithm == "tensor_core" and device != "cpu" else 1e-5), (device, algorithm, error)
            time = do_bench(lambda x=x, y=y, name=algorithm: matrix_multiplication(x, y, name), device=device,
                            return_mode="median")
            print(f"{device}/{algorithm:24} {time:10.3f} ms {2e-6 * m * n * k / time:10.2f} GFLOP/s   error {error:.1e}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]) if len(sys.argv) == 4 else (512, 512, 512))
