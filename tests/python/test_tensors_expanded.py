"""Products of matrices with scales on a GPU, of which the launch makes copies in bfloat: the same bits as without, and right."""
import json
import os

import numpy as np
import pytest

import smelt
from smelt import library as make_library

GPU = next((device for device in smelt.devices() if device.startswith("cuda")), None)
pytestmark = pytest.mark.skipif(GPU is None, reason="no GPU")

SOURCE = """
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;
template <class F, int b0 = 32, int b1 = 1>
using scaled = tensor<device F, dextents<int32_t, 2>, tensor_handle,
                      tensor_blockwise<tensor_plane_scales, device metal_fp8_ue8m0_format, b0, b1>>;
template <class T> using plain = tensor<device T, dextents<int32_t, 2>>;
struct place { int x, y, x2, y2; };

// Of slices of slices of the operands.
template <class L, class R, class D, int m, int n, bool tl, bool tr, ushort simdgroups>
kernel void product(L A [[buffer(0)]], R B [[buffer(1)]], plain<D> C [[buffer(2)]], constant place *from [[buffer(3)]],
                    uint2 group [[threadgroup_position_in_grid]]) {
  matmul2d<matmul2d_descriptor(m, n, static_cast<int>(dynamic_extent), tl, tr), execution_simdgroups<simdgroups>> op;
  auto a = A.slice(from[0].x, from[0].y).slice(from[0].x2, from[0].y2);
  auto b = B.slice(from[1].x, from[1].y).slice(from[1].x2, from[1].y2);
  int x = group.x * n, y = group.y * m;
  auto rows = tl ? a.slice(y, 0) : a.slice(0, y);
  auto columns = tr ? b.slice(0, x) : b.slice(x, 0);
  auto tile = C.slice(x, y);
  op.run(rows, columns, tile);
}
#define PRODUCT(name, L, R, D, m, n, tl, tr, simdgroups) \\
  template [[host_name(name)]] kernel void product<L, R, D, m, n, tl, tr, simdgroups>(L, R, plain<D>, constant place *, uint2);
using e4m3 = scaled<metal_fp8_e4m3_format>;
using tall = scaled<metal_fp8_e4m3_format, 64, 4>;
using flat = scaled<metal_fp8_e4m3_format, 32, 2>;
using e5m2 = scaled<metal_fp8_e5m2_format>;
using fp4 = scaled<metal_fp4_e2m1_format>;
PRODUCT("nt", e4m3, e4m3, float, 128, 256, false, true, 8)
PRODUCT("small", e4m3, e4m3, half, 64, 64, false, true, 4)
PRODUCT("nn", e4m3, e4m3, float, 128, 128, false, false, 8)
PRODUCT("tt", e4m3, e4m3, float, 64, 128, true, true, 4)
PRODUCT("blocks", tall, flat, float, 128, 128, false, true, 8)
PRODUCT("e5m2", e5m2, e5m2, float, 128, 256, false, true, 8)
PRODUCT("fp4", fp4, fp4, float, 128, 256, false, true, 8)
PRODUCT("int8", plain<bfloat>, scaled<char>, float, 128, 128, false, true, 8)
PRODUCT("uint8", scaled<uchar>, plain<bfloat>, float, 128, 128, false, true, 8)
PRODUCT("int4", plain<bfloat>, scaled<int4b_format>, float, 128, 128, false, true, 8)
PRODUCT("uint4", plain<bfloat>, scaled<uint4b_format>, bfloat, 64, 128, false, true, 4)

// Writes the right operand, which no launch may copy.
kernel void writing(e4m3 A [[buffer(0)]], e4m3 B [[buffer(1)]], plain<float> C [[buffer(2)]], uint2 group [[threadgroup_position_in_grid]],
                    uint lane [[thread_index_in_threadgroup]]) {
  if (lane < 32) B.data_handle()[group.x * 64 * 256 + lane] = 0x38;
  threadgroup_barrier(mem_flags::mem_device);
  matmul2d<matmul2d_descriptor(64, 64, static_cast<int>(dynamic_extent), false, true), execution_simdgroups<4>> op;
  auto rows = A.slice(0, group.y * 64);
  auto columns = B.slice(0, group.x * 64);
  auto tile = C.slice(group.x * 64, group.y * 64);
  op.run(rows, columns, tile);
}
"""
# Element types, tile, threads, transposes, blocks.
KERNELS = {
    "nt": ("fp8_e4m3", "fp8_e4m3", "float32", 128, 256, 256, False, True, (32, 1), (32, 1)),
    "small": ("fp8_e4m3", "fp8_e4m3", "float16", 64, 64, 128, False, True, (32, 1), (32, 1)),
    "nn": ("fp8_e4m3", "fp8_e4m3", "float32", 128, 128, 256, False, False, (32, 1), (32, 1)),
    "tt": ("fp8_e4m3", "fp8_e4m3", "float32", 64, 128, 128, True, True, (32, 1), (32, 1)),
    "blocks": ("fp8_e4m3", "fp8_e4m3", "float32", 128, 128, 256, False, True, (64, 4), (32, 2)),
    "e5m2": ("fp8_e5m2", "fp8_e5m2", "float32", 128, 256, 256, False, True, (32, 1), (32, 1)),
    "fp4": ("fp4_e2m1", "fp4_e2m1", "float32", 128, 256, 256, False, True, (32, 1), (32, 1)),
    "int8": ("bfloat16", "int8", "float32", 128, 128, 256, False, True, None, (32, 1)),
    "uint8": ("uint8", "bfloat16", "float32", 128, 128, 256, False, True, (32, 1), None),
    "int4": ("bfloat16", "int4", "float32", 128, 128, 256, False, True, None, (32, 1)),
    "uint4": ("bfloat16", "uint4", "bfloat16", 64, 128, 128, False, True, None, (32, 1)),
}
BITS = {"fp4_e2m1": 4, "int4": 4, "uint4": 4, "bfloat16": 16}


def upward(size, step):
    return -(-size // step) * step


def decode(codes, dtype):
    """Values of the codes of rows, by definition."""
    if BITS.get(dtype) == 4:
        codes = np.stack([codes & 15, codes >> 4], -1).reshape(codes.shape[0], -1)
    whole = codes.astype(np.float64)
    if dtype in ("uint8", "uint4"):
        return whole
    if dtype in ("int8", "int4"):
        half = 128 if dtype == "int8" else 8
        return np.where(whole >= half, whole - 2 * half, whole)
    exponent_bits, mantissa_bits, bias = {"fp8_e4m3": (4, 3, 7), "fp8_e5m2": (5, 2, 15), "fp4_e2m1": (2, 1, 1)}[dtype]
    mantissa = codes & ((1 << mantissa_bits) - 1)
    exponent = (codes >> mantissa_bits & ((1 << exponent_bits) - 1)).astype(int)
    value = np.where(exponent > 0, np.ldexp(1 + mantissa / 2.0**mantissa_bits, exponent - bias),
                     np.ldexp(mantissa / 2.0**mantissa_bits, 1 - bias))
    if dtype == "fp8_e4m3":
        value = np.where((codes & 127) == 127, np.nan, value)
    if dtype == "fp8_e5m2":
        value = np.where((codes & 127) == 124, np.inf, np.where((codes & 127) > 124, np.nan, value))
    return np.where(codes >> (exponent_bits + mantissa_bits) & 1, -value, value)


def operand(random, rows, columns, dtype, block, codes=None, scales=None):
    """A tensor on the GPU, and its values."""
    if dtype == "bfloat16":
        values = (random.standard_normal((rows, columns)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        exact = (values.astype(np.uint32) << 16).view(np.float32)
        return smelt.array(exact, dtype="bfloat16").to(GPU), exact.astype(np.float64)
    bits = BITS.get(dtype, 8)
    if codes is None:
        codes = random.integers(0, 256, (rows, columns * bits // 8), dtype=np.uint8)
        if dtype.startswith("fp8"): # without infinities and NaNs
            codes &= np.uint8(0xBF if dtype == "fp8_e4m3" else 0xB7)
    if scales is None:
        scales = random.integers(120, 134, (-(-rows // block[1]), -(-columns // block[0])), dtype=np.uint8)
    made = smelt.Tensor((columns, rows), dtype, scales=("ue8m0", block), device=GPU)
    made.write(codes.view(np.int8) if dtype == "int8" else codes)
    made.write(scales, "scales")
    with np.errstate(all="ignore"):
        factor = np.where(scales == 255, np.nan, np.ldexp(1.0, scales.astype(int) - 127))
        factor = factor.repeat(block[1], 0).repeat(block[0], 1)[:rows, :columns]
        return made, decode(codes, dtype) * factor


def run(library, kernel, tensors, shape, places, expand, monkeypatch, tmp_path):
    """The result as floats, and how many copies were made."""
    left, right, result, m, n, threads, *_ = KERNELS[kernel]
    monkeypatch.setenv("SMELT_GPU_EXPAND", expand)
    out = smelt.array(np.full(shape, np.nan, np.float32), dtype=result).to(GPU)
    places = [np.array(places, np.int32)] if places else []
    groups = (-(-shape[1] // n), -(-shape[0] // m))
    smelt._smelt.trace_start(str(tmp_path / "trace.json"))  # pylint: disable=protected-access
    try:
        library.function(kernel)(*tensors, out, *places, groups=groups, group_size=threads)
    finally:
        smelt._smelt.trace_stop()  # pylint: disable=protected-access
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    copies = sum("expand a matrix" in event["name"] for event in events)
    return np.asarray(out.astype("float32")), copies


@pytest.fixture(name="library", scope="module")
def fixture_library():
    return make_library(SOURCE)


@pytest.fixture(name="random")
def fixture_random():
    return np.random.default_rng()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sizes", [(256, 512, 256), (200, 300, 544), (64, 96, 1024)])
def test_copies_give_the_same_bits(library, random, kernel, sizes, monkeypatch, tmp_path):
    left, right, result, _, _, _, tl, tr, left_block, right_block = KERNELS[kernel]
    M, N, K = sizes
    if tl or not tr or "blocks" == kernel:
        M, N, K = (upward(size, 64) for size in (M, N, K))
    a, x = operand(random, *((K, M) if tl else (M, K)), left, left_block)
    b, y = operand(random, *((N, K) if tr else (K, N)), right, right_block)
    places = [[0] * 4] * 2
    plain, none = run(library, kernel, (a, b), (M, N), places, "never", monkeypatch, tmp_path)
    copied, made = run(library, kernel, (a, b), (M, N), places, "always", monkeypatch, tmp_path)
    assert none == 0 and made == (left_block is not None) + (right_block is not None)
    assert np.array_equal(plain.view(np.uint32), copied.view(np.uint32)), np.argwhere(plain != copied)[:4]
    x, y = x.T if tl else x, y.T if tr else y
    unit = {"float32": 2.0**-16, "float16": 2.0**-10, "bfloat16": 2.0**-7}[result]
    assert np.all(np.abs(copied - x @ y) <= unit * (np.abs(x) @ np.abs(y)) + 1e-30)


@pytest.mark.parametrize("left, right", [((32, 8, 32, 16), (64, 0, 0, 24)), ((64, 1, 0, 2), (32, 3, 32, 5)), ((16, 0, 0, 0), (16, 0, 0, 0)),
                                         ((8, 0, 0, 0), (8, 1, 0, 0)), ((0, 200, 0, 0), (0, 0, 0, 290))])
def test_slices_have_copies_too(library, random, left, right, monkeypatch, tmp_path):
    (a, x), (b, y) = (operand(random, rows, 640, "fp8_e4m3", (32, 1)) for rows in (256, 300))
    offsets = [(p[0] + p[2], p[1] + p[3]) for p in (left, right)]
    shape = (256 - offsets[0][1], 300 - offsets[1][1])
    results = [run(library, "nt", (a, b), shape, [left, right], expand, monkeypatch, tmp_path)[0] for expand in ("never", "always")]
    assert np.array_equal(*(r.view(np.uint32) for r in results))
    if all(at[0] % 32 == 0 for at in offsets):
        k = 640 - max(at[0] for at in offsets)
        x, y = x[offsets[0][1]:, offsets[0][0]:][:, :k], y[offsets[1][1]:, offsets[1][0]:][:, :k]
        assert np.all(np.abs(results[1] - x @ y.T) <= 2.0**-16 * (np.abs(x) @ np.abs(y.T)))


@pytest.mark.parametrize("dtype, kernel", [("fp8_e4m3", "nt"), ("fp8_e5m2", "e5m2"), ("fp4_e2m1", "fp4")])
@pytest.mark.parametrize("numbers", [True, False])
def test_every_code_with_every_scale(library, random, dtype, kernel, numbers, monkeypatch, tmp_path):
    """A row of the left operand has every code, and one scale; the right one is the identity, so results are the elements."""
    bits = BITS.get(dtype, 8)
    codes = np.zeros((256, 256 * bits // 8), np.uint8)
    one = {"fp8_e4m3": 0x38, "fp8_e5m2": 0x3C, "fp4_e2m1": 0x02}[dtype]
    for i in range(256):
        codes[i, i * bits // 8] |= one << (i * bits % 8)
    b, _ = operand(random, 256, 256, dtype, (32, 1), codes, np.full((256, 8), 127, np.uint8))
    every = np.arange(256 * bits // 8, dtype=np.uint8) * (1 if bits == 8 else 2)
    if bits == 4:
        every[:16] = np.arange(16) * 17
    elif numbers: # NaN and infinity times 0 are NaN
        every[~np.isfinite(decode(every[None], dtype)[0])] = 0
    scales = np.arange(256, dtype=np.uint8)[:, None].repeat(8, 1)
    a, x = operand(random, 256, 256, dtype, (32, 1), np.tile(every, (256, 1)), scales)
    plain, copied = (run(library, kernel, (a, b), (256, 256), [[0] * 4] * 2, expand, monkeypatch, tmp_path)[0]
                     for expand in ("never", "always"))
    assert np.array_equal(np.isnan(plain), np.isnan(copied))
    number = ~np.isnan(plain)
    assert np.array_equal(plain[number].view(np.uint32), copied[number].view(np.uint32))
    with np.errstate(all="ignore"):
        exact = x.astype(np.float32)
    rows = np.isfinite(exact).all(1)
    assert rows.sum() > 230 if numbers or bits == 4 else not rows.any()
    assert np.isnan(copied[~rows]).any(1).all()
    normal = rows[:, None] & ((np.abs(exact) >= 2.0**-126) | (exact == 0))
    assert np.array_equal(copied[normal], exact[normal])


def test_an_operand_that_is_written_has_no_copy(library, random, monkeypatch, tmp_path):
    (a, _), (b, _) = (operand(random, 128, 256, "fp8_e4m3", (32, 1)) for _ in range(2))
    KERNELS["writing"] = ("fp8_e4m3", "fp8_e4m3", "float32", 64, 64, 128)
    try:
        for expand in ("never", "always"):
            assert run(library, "writing", (a, b), (128, 128), [], expand, monkeypatch, tmp_path)[1] == 0
    finally:
        del KERNELS["writing"]


def test_small_products_and_shared_memory_have_none(library, random, monkeypatch, tmp_path):
    (a, _), (b, _) = (operand(random, 256, 256, "fp8_e4m3", (32, 1)) for _ in range(2))
    assert run(library, "nt", (a, b), (256, 256), [[0] * 4] * 2, "large", monkeypatch, tmp_path)[1] == 0
    assert run(library, "nt", (a, a), (256, 256), [[0] * 4] * 2, "always", monkeypatch, tmp_path)[1] == 2
    assert os.environ["SMELT_GPU_EXPAND"] == "always"
