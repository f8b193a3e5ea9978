"""The table of shipped operations in docs/operations.md: what is tried here stands there. `--write` writes it."""
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import smelt

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
DTYPES = ["float32", "float16", "bfloat16", "float64", "complex64", "int32", "int64", "bool"]
GATES = [(1, 4, 2, 3), (1, 4, 2, 3), (1, 4, 2, 2), (1, 4, 2), (1, 4, 2)]

def repacked(x):
    w, scales, biases = smelt.quantize(x, 32, 5)
    return smelt.dequantize(w, scales, biases, 32, 5)


def normal(x):
    return smelt.random.normal(x.shape, x.dtype, key=smelt.random.key(1))


# By name: the function, the shapes of its arrays, its kernel, its test, its functions in C, its job in `smelt bench ops`.
OPERATIONS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], str, str, str, str]] = {
    "softmax, log_softmax": (lambda a: smelt.log_softmax(smelt.softmax(a, -1), -1), [(2, 8)], "nn/softmax.metal",
        "nn", "softmax, log_softmax", "softmax"),
    "layer_norm, rms_norm": (lambda a: smelt.rms_norm(smelt.layer_norm(a, None, None), None), [(2, 8)], "nn/norm.metal",
        "nn", "layer_norm, rms_norm", "layer-norm"),
    "rope": (lambda a: smelt.rope(a, 4, traditional=True, base=9.0, scale=1.0, offset=1), [(1, 2, 3, 4)], "nn/rope.metal",
        "nn", "rope", "rope"),
    "conv1d … conv_general": (lambda a, w: smelt.conv1d(a, w), [(1, 5, 2), (3, 2, 2)], "nn/conv.metal",
        "nn", "convolve", "conv2d"),
    "cumsum, cumprod, cummax, cummin": (lambda a: smelt.cumsum(a, -1), [(2, 40)], "reduction/scan.metal",
        "sorting", "cumsum, cumprod, cummax, cummin", "cumsum"),
    "sort, partition, topk": (smelt.sort, [(2, 8)], "sorting/sort.metal",
        "sorting", "sort, topk", "sort"),
    "argsort, argpartition": (smelt.argsort, [(2, 8)], "sorting/sort.metal",
        "sorting", "argsort", "sort"),
    "contiguous": (lambda a: smelt.contiguous(smelt.transpose(a)), [(16, 17)], "elementwise/transpose.metal",
        "operations", "array_contiguous", "transpose"),
    "grid_sample": (smelt.grid_sample, [(1, 3, 3, 2), (1, 2, 2, 2)], "vision/sample.metal",
        "sequence", "sample_grid", "grid-sample"),
    "chunk_inverse": (smelt.chunk_inverse, [(1, 4, 2, 2)], "linalg/triangular_inverse.metal",
        "sequence", "chunk_inverse", "chunk-inverse"),
    "gated_delta": (lambda *a: smelt.gated_delta(*a)[0], GATES, "sequence/delta.metal",
        "sequence", "gated_delta", "gated-delta"),
    "fft, ifft, rfft, irfft": (smelt.fft, [(2, 8)], "signal/fft.metal",
        "signal", "fft, rfft, irfft", "fft"),
    "hadamard_transform": (smelt.hadamard_transform, [(2, 8)], "signal/hadamard.metal",
        "signal", "hadamard_transform", "hadamard"),
    "quantize, dequantize": (repacked, [(2, 64)], "tensor/quantize.metal", "quantize", "quantize, dequantize", "quantize"),
    "random.normal, uniform, …": (normal, [(2, 8)], "random/random.metal", "random",
        "random_bits, random_split, random_uniform, random_normal, random_gumbel, random_integers, random_truncated_normal, "
        "random_bernoulli, random_categorical, random_permutation", "random-normal"),
}


def arrays_of(shapes, dtype):
    rng = np.random.default_rng(1)
    return [smelt.array((rng.random(shape) < 0.5) if dtype == "bool" else rng.uniform(0, 1, shape), dtype=dtype) for shape in shapes]


def tried(f, shapes, dtype):
    try:
        f(*arrays_of(shapes, dtype))
        return True
    except Exception:  # whatever refuses the dtype
        return False


def differentiable(f, shapes, times):
    def summed(*x):
        return smelt.sum(smelt.square(f(*x)))
    g = smelt.grad(summed)
    if times == 2:
        g = smelt.grad(lambda *x: smelt.sum(smelt.square(smelt.grad(summed)(*x))))
    try:
        return bool(np.abs(np.asarray(g(*arrays_of(shapes, "float32")))).max() > 0)
    except Exception:  # whatever has no derivative
        return False


def table():
    lines = ["| operations | dtypes | gradients | kernel in `kernels/` |", "|---|---|---|---|"]
    for name, (f, shapes, kernel, *_) in OPERATIONS.items():
        dtypes = [dtype for dtype in DTYPES if tried(f, shapes, dtype)]
        depth = "no" if not differentiable(f, shapes, 1) else "of any order" if differentiable(f, shapes, 2) else "first order"
        lines.append(f"| {name} | {'all' if dtypes == DTYPES else ', '.join(dtypes)} | {depth} | {kernel} |")
    return lines


def written():
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    first = lines.index("| operations | dtypes | gradients | kernel in `kernels/` |")
    last = next(i for i in range(first, len(lines)) if not lines[i].startswith("|"))
    return lines, first, last


def test_the_page_has_the_table():
    lines, first, last = written()
    assert lines[first:last] == table(), f"write it: python {sys.argv[0]} --write"


def test_each_has_kernel_test_function_in_c_and_benchmark():
    root = PAGE.parents[1]
    headers = "".join(path.read_text(encoding="utf-8") for path in (root / "include" / "smelt").glob("*.h"))
    jobs = (root / "bench" / "ops" / "ops.c").read_text(encoding="utf-8")
    for name, (_, _, kernel, test, functions, job) in OPERATIONS.items():
        assert (root / "kernels" / kernel).exists(), name
        text = (root / "tests" / "python" / f"test_{test}.py").read_text(encoding="utf-8")
        assert re.search(rf"\b{re.split('[ ,.]', name)[0]}\b", text), f"{name}: test_{test}.py does not mention it"
        for function in functions.split(", "):
            assert re.search(rf"\bsmelt_{function}\(", headers), f"{name}: no header declares smelt_{function}"
        assert f'X("{job}",' in jobs, f"{name}: smelt bench ops has no job {job}"


if __name__ == "__main__" and "--write" in sys.argv:
    lines, first, last = written()
    PAGE.write_text("\n".join(lines[:first] + table() + lines[last:]), encoding="utf-8")
