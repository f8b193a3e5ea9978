#!/usr/bin/env python3
"""Runs public kernels that use Metal's tensor operations, and compares their results with references in float64.

    tests/long/public_tensors.py [FOLDER] [--device NAME]… [--only REGEX] [--seed N] [--rounds N]

FOLDER (or the environment variable SMELT_PUBLIC_KERNELS) holds sources as they are published, each project in its own
folder; what is not there is left out:

    mlx, ggml, mlx-native, example_matmul_metal4

Each line is a kernel function, its sizes and, for each device, the largest error relative to the largest value of
the reference. Sizes are drawn anew for each seed; outputs are filled with NaN before each run, and so is what lies
behind them, which no kernel may change. The exit status is 0 if all errors are within their bounds, and 77 if nothing ran.
"""
import argparse
import os
import pathlib
import re
import sys

import numpy as np
import smelt

FLOATS = {"float16": (np.float16, 4e-3), "bfloat16": (smelt.bfloat16, 3e-2), "float32": (np.float32, 2e-5)}
BEHIND = 64  # elements behind an output


class Case:
    """One run: arguments by number of the buffer, where a result is expected, and what."""

    def __init__(self, name, arguments, result, expected, bound, groups, group_size, constants=None, before=np.nan, memory=None):
        self.name, self.arguments, self.result, self.expected = name, arguments, result, expected
        self.bound, self.groups, self.group_size = bound, groups, group_size
        self.constants, self.before, self.memory = constants or {}, before, memory

    def error(self, library, device):
        out = np.full(self.expected.size + BEHIND, np.nan).astype(self.arguments[self.result])
        out[:self.expected.size] = self.before
        arguments = [self.arguments.get(number) for number in range(max(self.arguments) + 1)]
        arguments[self.result] = out
        function = library.function(self.name, self.constants)
        options = {"threadgroup_memory": {0: self.memory}} if self.memory else {}
        function(*arguments, groups=self.groups, group_size=self.group_size, device=device, **options)
        if not np.isnan(out[self.expected.size:].astype(np.float64)).all():
            return np.inf
        got = out[:self.expected.size].astype(np.float64).reshape(self.expected.shape)
        difference = np.abs(got - self.expected)
        return np.inf if np.isnan(difference).any() else difference.max() / np.abs(self.expected).max()


def structure(*fields):
    """A structure's bytes: each field with its own alignment."""
    alignment = max(np.dtype(kind).itemsize for kind, _ in fields)
    text = b""
    for kind, value in fields:
        array = np.asarray(value, kind)
        text += bytes(-len(text) % array.itemsize) + array.tobytes()
    return text + bytes(-len(text) % alignment)


def random_of(rng, kind, *shape):
    return rng.standard_normal(shape).astype(kind)


def exact(array):
    return array.astype(np.float64)


def up(a, b):
    return -(-a // b)


# ---- MLX.

def blocks(name):
    return {key: int(value) for key, value in re.findall(r"_(bm|bn|bk|wm|wn|bq|bd)_?(\d+)", name)}


def gemm_fields(m, n, k, lda, ldb, ldd, b, batches):
    return structure(*[("i4", v) for v in (m, n, k, lda, ldb, ldd, up(n, b["bn"]), up(m, b["bm"]))],
                     *[("i8", v) for v in batches], *[("i4", v) for v in (0, k // b["bk"], 0)])


def gemm_operands(rng, name, kind, m, n, k):
    """Both operands, stored as the name says, and what they are."""
    first, second = re.search(r"_([nt])([nt])_", name).groups()
    a, b = random_of(rng, kind, m, k), random_of(rng, kind, k, n)
    return (np.ascontiguousarray(a.T if first == "t" else a), np.ascontiguousarray(b.T if second == "t" else b),
            m if first == "t" else k, k if second == "t" else n, exact(a), exact(b))


def alignment(m, n, k, b):
    return {"align_M": m % b["bm"] == 0, "align_N": n % b["bn"] == 0, "align_K": k % b["bk"] == 0}


def mlx_fused(rng, name):
    b, (kind, bound) = blocks(name), FLOATS[re.search(r"_[nt][nt]_(\w+?)_", name)[1]]
    m, n, k = int(rng.integers(1, 150)), int(rng.integers(1, 150)), int(rng.integers(1, 400))
    if rng.random() < 0.3:
        m, n, k = up(m, b["bm"]) * b["bm"], up(n, b["bn"]) * b["bn"], up(k, b["bk"]) * b["bk"]
    stored_a, stored_b, lda, ldb, a, b_exact = gemm_operands(rng, name, kind, m, n, k)
    adds = bool(rng.random() < 0.5)
    c = random_of(rng, kind, m, n)
    alpha, beta = 0.5, 1.5
    expected = a @ b_exact
    if adds:
        expected = alpha * expected + beta * exact(c)
    arguments = {0: stored_a, 1: stored_b, 3: kind, 4: gemm_fields(m, n, k, lda, ldb, n, b, (m * k, k * n, m * n))}
    if adds:
        arguments.update({2: c, 5: structure(("i4", n), ("i4", 1), ("i8", m * n), ("f4", alpha), ("f4", beta))})
    constants = {"has_batch": False, "use_out_source": adds, "do_axpby": True, **alignment(m, n, k, b)}
    return Case(name, arguments, 3, expected, bound, (up(n, b["bn"]), up(m, b["bm"]), 1), (32, b["wn"], b["wm"]), constants)


def mlx_gather(rng, name):
    b, (kind, bound) = blocks(name), FLOATS[re.search(r"_[nt][nt]_(\w+?)_", name)[1]]
    m, n, k, experts = int(rng.integers(1, 100)), int(rng.integers(1, 200)), int(rng.integers(1, 300)), 5
    transposed = "_nt_" in name
    a, weights = random_of(rng, kind, m, k), random_of(rng, kind, experts, k, n)
    stored = np.ascontiguousarray(weights.transpose(0, 2, 1)) if transposed else weights
    indices = np.sort(rng.integers(0, experts, m)).astype(np.uint32)
    expected = np.einsum("mk,mkn->mn", exact(a), exact(weights)[indices])
    fields = gemm_fields(m, n, k, k, k if transposed else n, n, b, (0, k * n, 0))
    return Case(name, {0: a, 1: stored, 2: indices, 3: kind, 4: fields}, 3, expected, bound,
                (up(n, b["bn"]), up(m, b["bm"]), 1), (32, b["wn"], b["wm"]), alignment(m, n, k, b))


def mlx_splitk(rng, name):
    b, (kind, bound) = blocks(name), FLOATS[re.search(r"_[nt][nt]_(\w+?)_", name)[1]]
    m, n, k, parts = int(rng.integers(1, 150)), int(rng.integers(1, 150)), int(rng.integers(600, 1300)), 2
    size = up(up(k, parts), b["bk"]) * b["bk"]
    stored_a, stored_b, lda, ldb, a, b_exact = gemm_operands(rng, name, kind, m, n, k)
    expected = np.stack([a[:, at * size:(at + 1) * size] @ b_exact[at * size:(at + 1) * size] for at in range(parts)])
    fields = structure(*[("i4", v) for v in (m, n, k, lda, ldb, n, up(n, b["bn"]), up(m, b["bm"]), parts, m * n, size, 0, size // b["bk"])])
    constants = {key: value for key, value in alignment(m, n, k, b).items() if key != "align_K"}
    return Case(name, {0: stored_a, 1: stored_b, 2: np.float32, 3: fields}, 2, expected, max(bound / 100, 2e-5),
                (up(n, b["bn"]) * up(m, b["bm"]) * parts, 1, 1), (32, b["wn"], b["wm"]), constants)


def mlx_segmented(rng, name):
    b, (kind, bound) = blocks(name), FLOATS[re.search(r"_[nt][nt]_(\w+?)_", name)[1]]
    m, n, k = int(rng.integers(1, 100)), int(rng.integers(1, 100)), int(rng.integers(10, 400))
    bounds = np.sort(rng.integers(0, k + 1, 6)).reshape(3, 2).astype(np.uint32)
    stored_a, stored_b, lda, ldb, a, b_exact = gemm_operands(rng, name, kind, m, n, k)
    expected = np.stack([a[:, first:last] @ b_exact[first:last] for first, last in bounds])
    fields = gemm_fields(m, n, k, lda, ldb, n, b, (0, 0, m * n))
    grid = (up(n, b["bn"]), up(m, b["bm"]), 3) if b["bk"] > 64 else (3, up(n, b["bn"]), up(m, b["bm"]))
    constants = {key: value for key, value in alignment(m, n, k, b).items() if key != "align_K"}
    return Case(name, {0: stored_a, 1: stored_b, 2: bounds, 3: kind, 4: fields}, 3, expected, bound, grid,
                (32, b["wn"], b["wm"]), {"segments_contiguous": True, **constants})


def attention(q, k, v, scale, mask, causal, offset, sinks):
    """q: heads, rows, elements."""
    group = q.shape[0] // k.shape[0]
    scores = np.einsum("hqd,hkd->hqk", q, np.repeat(k, group, 0)) * scale
    if causal:
        scores = np.where(np.arange(k.shape[1])[None, :] <= np.arange(q.shape[1])[:, None] + offset, scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = scores.max(-1, keepdims=True)
    if sinks is not None:
        top = np.maximum(top, sinks[:, None, None])
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True) + (np.exp(sinks[:, None, None] - top) if sinks is not None else 0)
    return np.einsum("hqk,hkd->hqd", weights / total, np.repeat(v, group, 0))


def mlx_attention(rng, name):
    b = blocks(name)
    kind, bound = FLOATS[re.search(r"_(float16|bfloat16|float32)_", name)[1]]
    heads, group, rows, keys, d = 4, 2, int(rng.integers(1, 150)), int(rng.integers(150, 300)), b["bd"]
    q, k, v = random_of(rng, kind, heads, rows, d), random_of(rng, kind, heads // group, keys, d), random_of(rng, kind, heads // group, keys, d)
    masked, causal, sunk = bool(rng.random() < 0.5), bool(rng.random() < 0.4), bool(rng.random() < 0.3)
    mask = rng.random((heads, rows, keys)) < 0.8 if name.endswith("bool_") else random_of(rng, kind, heads, rows, keys)
    sinks = random_of(rng, kind, heads)
    scale = d ** -0.5
    expected = attention(exact(q), exact(k), exact(v), scale, (mask if mask.dtype == bool else exact(mask)) if masked else None, causal,
                         keys - rows, exact(sinks) if sunk else None)
    strides = lambda length, count: (count * length * d, length * d, d)
    fields = structure(*[("i4", x) for x in (1, heads, d, rows, keys, group)], ("f4", scale),
                       *[("i4", x) for x in (up(rows, b["bq"]), up(keys, b["bk"]), rows // b["bq"], keys // b["bk"], rows % b["bq"],
                                             keys % b["bk"], keys - rows)],
                       ("i8", strides(rows, heads)), ("i8", strides(keys, heads // group)), ("i8", strides(keys, heads // group)),
                       ("i8", strides(rows, heads)))
    arguments = {0: q, 1: k, 2: v, 3: kind, 4: fields}
    if masked:
        arguments.update({5: structure(("i8", (heads * rows * keys, rows * keys, keys))), 6: mask})
    if sunk:
        arguments[7] = sinks
    constants = {"align_Q": rows % b["bq"] == 0, "align_K": keys % b["bk"] == 0, "has_mask": masked, "do_causal": causal, "has_sinks": sunk}
    return Case(name, arguments, 3, expected, bound, (up(rows, b["bq"]), heads, 1), (32, b["wm"], b["wn"]), constants)


def packed(codes, bits):
    """Codes of the last dimension one behind the other, from the lowest bit on, as words of 32 bits."""
    spread = (codes[..., None].astype(np.uint32) >> np.arange(bits, dtype=np.uint32)) & 1
    return np.packbits(spread.reshape(*codes.shape[:-1], -1).astype(np.uint8), axis=-1, bitorder="little").view(np.uint32)


FP4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6])
FP4 = np.concatenate([FP4, -FP4])


def e4m3(codes):
    exponent, fraction = (codes >> 3) & 15, codes & 7
    magnitude = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent.astype(int) - 7))
    return np.where(codes >> 7, -magnitude, magnitude)


def mlx_weights(rng, name, shape):
    """Quantised weights: the arrays a kernel takes, and their values."""
    bits, group = int(re.search(r"_b_(\d)", name)[1]), int(re.search(r"_gs_(\d+)", name)[1])
    kind = FLOATS[{"float": "float32", "float16_t": "float16", "bfloat16_t": "bfloat16"}[re.search(r"_(float|float16_t|bfloat16_t)_gs", name)[1]]][0]
    codes = rng.integers(0, 2**bits, shape).astype(np.uint32)
    grouped = (*shape[:-1], shape[-1] // group)
    if name.startswith("affine"):
        scales, biases = (rng.random(grouped) / 2**bits + 0.01).astype(kind), random_of(rng, kind, *grouped)
        values = codes * np.repeat(exact(scales), group, -1) + np.repeat(exact(biases), group, -1)
        return [packed(codes, bits), scales, biases], values, kind
    if name.startswith("nvfp4"):
        scales = rng.integers(0x28, 0x50, grouped).astype(np.uint8)
        factors = e4m3(scales)
    else:
        scales = rng.integers(120, 130, grouped).astype(np.uint8)
        factors = 2.0 ** (scales.astype(int) - 127)
    if bits == 8:
        codes = np.where(codes & 0x7F == 0x7F, 0, codes)
    values = (FP4[codes] if bits == 4 else e4m3(codes)) * np.repeat(factors, group, -1)
    return [packed(codes, bits), scales], values, kind


def mlx_quantised(rng, name):
    b = blocks(name)
    transposed = "qmm_t" in name or "_nax_nt" in name
    m, n, k = int(rng.integers(1, 140)), int(rng.integers(1, 5)) * 64, int(rng.integers(1, 5)) * 64
    if "gs_128" in name:
        n, k = up(n, 128) * 128, up(k, 128) * 128
    if "alN_false" in name:
        n += 32
    batch, experts = 2 if "batch_1" in name else 1, 3
    gathers = "gather" in name
    count = experts if gathers else batch
    arrays, values, kind = mlx_weights(rng, name, (count, n, k) if transposed else (count, k, n))
    bound = max(limit for other, limit in FLOATS.values() if other == kind)
    bound = max(bound, 4e-3) if kind != np.float32 or name.startswith("affine") else 2e-2
    if transposed:
        values = values.transpose(0, 2, 1)
    constants = alignment(m, n, k, b)
    grid, size = (up(n, b["bn"]), up(m, b["bm"]), batch), (32, b["wn"], b["wm"])
    number = lambda value: np.int32(value)
    if "rhs" in name:
        x = random_of(rng, kind, m, k)
        indices = np.sort(rng.integers(0, experts, m)).astype(np.uint32)
        expected = np.einsum("mk,mkn->mn", exact(x), values[indices])
        listed = [x, *arrays, indices, kind, number(m), number(n), number(k)]
        return Case(name, dict(enumerate(listed)), len(arrays) + 2, expected, bound, (grid[0], grid[1], 1), size, constants)
    if gathers:
        count = 4
        x = random_of(rng, kind, 2, m, k)
        left, right = rng.integers(0, 2, count).astype(np.uint32), rng.integers(0, experts, count).astype(np.uint32)
        expected = exact(x)[left] @ values[right]
        listed = [*arrays, x, left, right, kind, number(k), number(n), number(m)]
    else:
        x = random_of(rng, kind, batch, m, k)
        expected = exact(x) @ values
        listed = [*arrays, x, kind, number(k), number(n), number(m)]
    result = next(i for i, value in enumerate(listed) if value is kind)
    last = [array[0].size for array in arrays]
    listed += [number(1), np.array([len(x)], np.int32), np.array([m * k], np.int64), number(1), np.array([len(arrays[0])], np.int32)]
    listed += [np.array([size_], np.int64) for size_ in last]
    if gathers:
        listed += [number(1), np.array([count], np.int32), np.array([1], np.int64), np.array([1], np.int64)]
        grid = (*grid[:2], count)
    return Case(name, dict(enumerate(listed)), result, expected, bound, grid, size, constants)


# ---- ggml.

def ggml_blocks(rng, rows, k):
    """q4_0: a half scale and 32 codes of 4 bits, whose low ones come first."""
    scales = (rng.random((rows, k // 32)) * 0.1 + 0.01).astype(np.float16)
    codes = rng.integers(0, 16, (rows, k // 32, 32)).astype(np.uint8)
    text = np.concatenate([scales.view(np.uint8).reshape(rows, k // 32, 2), codes[..., :16] | codes[..., 16:] << 4], -1)
    return np.ascontiguousarray(text), ((codes - 8.0) * exact(scales)[..., None]).reshape(rows, k)


def ggml_weights(rng, name, rows, k):
    kind = re.search(r"mm_(?:id_)?(\w+?)_f\d\d$", name)[1]
    if kind == "q4_0":
        return *ggml_blocks(rng, rows, k), k // 32 * 18
    if kind == "q8_0":
        scales = (rng.random((rows, k // 32)) * 0.01 + 0.001).astype(np.float16)
        codes = rng.integers(-128, 128, (rows, k // 32, 32)).astype(np.int8)
        text = np.concatenate([scales.view(np.uint8).reshape(rows, k // 32, 2), codes.view(np.uint8)], -1)
        return np.ascontiguousarray(text), (codes * exact(scales)[..., None]).reshape(rows, k), k // 32 * 34
    array = random_of(rng, {"f32": np.float32, "f16": np.float16, "bf16": smelt.bfloat16}[kind], rows, k)
    return array.view(np.uint8), exact(array), array.itemsize * k


def ggml_mul_mm(rng, name):
    m, n = int(rng.integers(1, 200)), int(rng.integers(1, 200))
    k = int(rng.integers(1, 12)) * 32 if "_q" in name else int(rng.integers(1, 300))
    weights, values, row = ggml_weights(rng, name, m, k)
    kind = np.float16 if name.endswith("f16") else np.float32
    x = random_of(rng, kind, 2, n, k)
    expected = exact(x) @ values.T
    size = np.dtype(kind).itemsize
    fields = structure(("i4", k), ("i4", 1), ("u8", (row, row * m, row * m)), ("i4", 2),
                       ("u8", (size, size * k, size * k * n, size * k * n * 2)), ("i4", (m, n)), ("i2", (2, 1)))
    constants = {"FC_mul_mm_bc_inp": True, "FC_mul_mm_bc_out": True, "FC_mul_mm_ne12": 2, "FC_mul_mm_ne13": 1, "FC_mul_mm_r2": 2, "FC_mul_mm_r3": 1}
    return Case(name, {0: fields, 1: weights, 2: x.view(np.uint8), 3: np.float32}, 3, expected, 2e-2, (up(n, 128), up(m, 64), 2), (128, 1, 1),
                constants, memory=64 * 1024 // 4)


# ---- mlx-native.

def native_dense(rng, name):
    kind, bound = FLOATS["bfloat16" if "bf16" in name else "float16"]
    m, n, k = int(rng.integers(1, 150)), int(rng.integers(1, 150)), int(rng.integers(1, 8)) * 32
    weights, x = random_of(rng, kind, n, k), random_of(rng, np.float32, m, k)
    expected = exact(x) @ exact(weights).T
    fields = structure(*[("i4", v) for v in (k, 1)], *[("u8", v) for v in (2 * k, 2 * k * n, 2 * k * n)], ("i4", 1),
                       *[("u8", v) for v in (4, 4 * k, 4 * k * m, 4 * k * m)], *[("i4", v) for v in (n, m)], ("i2", (1, 1)))
    return Case(name, {0: fields, 1: weights.view(np.uint8), 2: x.view(np.uint8), 3: np.float32}, 3, expected, bound,
                (up(m, 32), up(n, 64), 1), (128, 1, 1), memory=8192)


# ---- example_matmul_metal4.

def example(rng, name):
    """Its C has 128 columns and 64 rows, of which the product fills a half."""
    a, b = random_of(rng, np.float16, 128, 256), random_of(rng, np.float16, 256, 64)
    expected = np.zeros((64, 128))
    expected[:, :64] = (exact(a) @ exact(b))[:64]
    return Case(name, {0: a, 1: b, 2: np.float16}, 2, expected, 4e-3, (2, 1, 1), (128, 1, 1), before=0)


MLX = "mlx/backend/metal/kernels"
FILES = [
    # project, file, functions, a case, text before the file, how many of the functions of each kind
    ("mlx", f"{MLX}/steel/gemm/kernels/steel_gemm_fused_nax.metal", "", mlx_fused),
    ("mlx", f"{MLX}/steel/gemm/kernels/steel_gemm_gather_nax.metal", "", mlx_gather),
    ("mlx", f"{MLX}/steel/gemm/kernels/steel_gemm_splitk_nax.metal", "", mlx_splitk),
    ("mlx", f"{MLX}/steel/gemm/kernels/steel_gemm_segmented_nax.metal", "", mlx_segmented),
    ("mlx", f"{MLX}/steel/attn/kernels/steel_attention_nax.metal", "", mlx_attention),
    ("mlx", f"{MLX}/quantized_nax.metal", "", mlx_quantised),
    ("mlx", f"{MLX}/fp_quantized_nax.metal", "", mlx_quantised),
    ("ggml", "src/ggml-metal/ggml-metal.metal", r"^kernel_mul_mm_(f32|f16|bf16|q4_0|q8_0)_f(32|16)$", ggml_mul_mm),
    ("mlx-native", "src/shaders/dense_mm_bf16_tensor.metal", "", native_dense),
    ("mlx-native", "src/shaders/dense_mm_f16_tensor.metal", "", native_dense),
    ("example_matmul_metal4", "Sources/matmul/shader.metal", "", example),
]


def load(root, file):
    text = f"#define GGML_METAL_HAS_TENSOR 1\n#define GGML_METAL_HAS_BF16 1\n#include \"{file}\"\n"
    folders = [file.parent, root, root / "src", root / "src/ggml-metal"]
    return smelt.library(text, include_paths=[str(folder) for folder in folders if folder.is_dir()])


def kinds(names):
    """Names that differ in sizes or types alone are of one kind."""
    groups = {}
    for name in names:
        key = re.sub(r"(bfloat|float)(16|32)?(_t)?|bool_?|_(gs_|b_|bm_?|bn_?|bk_?|bq|bd)\d+|_w[mn]_?\d", "", name)
        groups.setdefault(key, []).append(name)
    return groups.values()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?",
                        default=pathlib.Path(os.environ.get("SMELT_PUBLIC_KERNELS", "public")))
    parser.add_argument("--device", action="append")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1, help="how many functions of each kind")
    options = parser.parse_args()
    if not options.folder.is_dir():
        print(f"'{options.folder}' is not a folder: nothing to run")
        return 77
    rng, ran, failed = np.random.default_rng(options.seed), 0, 0
    for project, path, pattern, case in FILES:
        root = options.folder / project
        file = (root / path).resolve()
        if not file.is_file():
            print(f"{project}/{path}: not there")
            continue
        library = load(root.resolve(), file)
        names = [name for name in library.functions if re.search(pattern, name)]
        for group in kinds(names):
            for name in rng.choice(group, min(options.rounds, len(group)), replace=False):
                if not re.search(options.only, f"{project} {name}"):
                    continue
                made = case(rng, str(name))
                texts, good = [], True
                for device in options.device or ["cpu", "cpu-scalar"]:
                    try:
                        error = made.error(library, device)
                        texts.append(f"{device} {error:.1e}")
                        good &= bool(error <= made.bound)
                    except (smelt.Error, ValueError, TypeError) as problem:
                        texts.append(f"{device}: {str(problem)[:2000]}")
                        good = False
                ran, failed = ran + 1, failed + (not good)
                print(f"{'ok' if good else 'FAILED'} {name} {made.expected.shape}: {', '.join(texts)}", flush=True)
    print(f"{ran} functions, {failed} of them failed")
    return 1 if failed else 77 if ran == 0 else 0


sys.exit(main())
