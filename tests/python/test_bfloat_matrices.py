"""Products of simdgroup matrices of bfloat in every math mode, against float64, on fresh random data. In relaxed and fast, a
CPU with AVX512-BF16 or AMX adds the products of two columns at a time and flushes subnormals; in safe, the engines agree."""
import itertools
import os
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from smelt import library

HEAD = "#include <metal_stdlib>\n#include <metal_simdgroup_matrix>\nusing namespace metal;\n"

# Each simdgroup has ROWS x COLUMNS matrices of the result. m and n are multiples of them, k of 8.
DIRECT = HEAD + """
kernel void product(device const bfloat *a [[buffer(0)]], device const bfloat *b [[buffer(1)]], device SUM *c [[buffer(2)]],
                    constant uint3 &size [[buffer(3)]], uint2 at [[threadgroup_position_in_grid]]) {
    const ulong m = size.x, n = size.y, k = size.z;
    const ulong row = at.y * 8 * ROWS, column = at.x * 8 * COLUMNS;
    simdgroup_matrix<SUM, 8, 8> sums[ROWS][COLUMNS];
    for (uint i = 0; i < ROWS; i++)
        for (uint j = 0; j < COLUMNS; j++) sums[i][j] = make_filled_simdgroup_matrix<SUM, 8, 8>(SUM(0));
    for (ulong t = 0; t < k; t += 8) {
        simdgroup_bfloat8x8 left[ROWS], right[COLUMNS];
        for (uint i = 0; i < ROWS; i++)
            simdgroup_load(left[i], a, LEFT ? m : k, LEFT ? ulong2(row + 8 * i, t) : ulong2(t, row + 8 * i), LEFT);
        for (uint j = 0; j < COLUMNS; j++)
            simdgroup_load(right[j], b, RIGHT ? k : n, RIGHT ? ulong2(t, column + 8 * j) : ulong2(column + 8 * j, t), RIGHT);
        for (uint i = 0; i < ROWS; i++)
            for (uint j = 0; j < COLUMNS; j++) simdgroup_multiply_accumulate(sums[i][j], left[i], right[j], sums[i][j]);
    }
    for (uint i = 0; i < ROWS; i++)
        for (uint j = 0; j < COLUMNS; j++) simdgroup_store(sums[i][j], c, n, ulong2(column + 8 * j, row + 8 * i));
}
"""

# Two simdgroups side by side; both tiles in threadgroup memory, and 0 where k ends.
STAGED = HEAD + """
kernel void product(device const bfloat *a [[buffer(0)]], device const bfloat *b [[buffer(1)]], device SUM *c [[buffer(2)]],
                    constant uint3 &size [[buffer(3)]], uint2 at [[threadgroup_position_in_grid]],
                    uint me [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    constexpr uint DEPTH = 24, TALL = 8 * ROWS, WIDE = 16 * COLUMNS;
    constexpr uint LEFT_ROW = (LEFT ? TALL : DEPTH) + 8, RIGHT_ROW = (RIGHT ? DEPTH : WIDE) + 8;
    threadgroup bfloat left[(LEFT ? DEPTH : TALL) * LEFT_ROW], right[(RIGHT ? WIDE : DEPTH) * RIGHT_ROW];
    const uint m = size.x, n = size.y, k = size.z, row = at.y * TALL, column = at.x * WIDE;
    simdgroup_matrix<SUM, 8, 8> sums[ROWS][COLUMNS];
    for (uint i = 0; i < ROWS; i++)
        for (uint j = 0; j < COLUMNS; j++) sums[i][j] = make_filled_simdgroup_matrix<SUM, 8, 8>(SUM(0));
    for (uint base = 0; base < k; base += DEPTH) {
        for (uint e = me; e < TALL * DEPTH; e += 64) {
            const uint i = LEFT ? e % TALL : e / DEPTH, t = LEFT ? e / TALL : e % DEPTH;
            left[LEFT ? t * LEFT_ROW + i : i * LEFT_ROW + t] =
                base + t < k ? a[LEFT ? (base + t) * m + row + i : (row + i) * k + base + t] : bfloat(0);
        }
        for (uint e = me; e < DEPTH * WIDE; e += 64) {
            const uint t = RIGHT ? e % DEPTH : e / WIDE, j = RIGHT ? e / DEPTH : e % WIDE;
            right[RIGHT ? j * RIGHT_ROW + t : t * RIGHT_ROW + j] =
                base + t < k ? b[RIGHT ? (column + j) * k + base + t : (base + t) * n + column + j] : bfloat(0);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint first = simdgroup * 8 * COLUMNS;
        for (uint t = 0; t < DEPTH; t += 8) {
            simdgroup_bfloat8x8 l[ROWS], r[COLUMNS];
            for (uint i = 0; i < ROWS; i++)
                simdgroup_load(l[i], left, LEFT_ROW, LEFT ? ulong2(8 * i, t) : ulong2(t, 8 * i), LEFT);
            for (uint j = 0; j < COLUMNS; j++)
                simdgroup_load(r[j], right, RIGHT_ROW, RIGHT ? ulong2(t, first + 8 * j) : ulong2(first + 8 * j, t), RIGHT);
            for (uint i = 0; i < ROWS; i++)
                for (uint j = 0; j < COLUMNS; j++) simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint i = 0; i < ROWS; i++)
        for (uint j = 0; j < COLUMNS; j++)
            simdgroup_store(sums[i][j], c, n, ulong2(column + simdgroup * 8 * COLUMNS + 8 * j, row + 8 * i));
}
"""

SUMS = {"float": np.float32, "half": np.float16, "bfloat": ml_dtypes.bfloat16}
EPSILON = {"float": 2.0 ** -24, "half": 2.0 ** -11, "bfloat": 2.0 ** -8}


def random_bfloats(generator, *shape):
    return generator.normal(size=shape).astype(ml_dtypes.bfloat16)


class Product:
    """A random product, its result in float64, and the greatest error allowed for each element."""

    def __init__(self, k, rows, columns, staged, left, right, sum_type, steps=2):
        generator = np.random.default_rng()
        tall, wide = 8 * rows, 8 * columns * (2 if staged else 1)
        m, n = steps * tall, steps * wide
        a, b = random_bfloats(generator, m, k), random_bfloats(generator, k, n)
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        self.expected, terms = wide_a @ wide_b, np.abs(wide_a) @ np.abs(wide_b)
        # Sums are rounded once per term in float, and in a narrower type once per product of matrices.
        self.bound = terms * (2 * k * EPSILON["float"] + (k // 8 + 2) * EPSILON[sum_type]) + 1e-30
        self.arguments = [np.ascontiguousarray(a.T if left else a), np.ascontiguousarray(b.T if right else b), None,
                          np.array([m, n, k, 0], np.uint32)]
        self.shape, self.sum_type = (m, n), sum_type
        text = STAGED if staged else DIRECT
        for name, value in dict(ROWS=rows, COLUMNS=columns, LEFT=int(left), RIGHT=int(right), SUM=sum_type).items():
            text = f"#define {name} {value}\n" + text
        self.text = text
        self.launch = dict(groups=(n // wide, m // tall), group_size=64 if staged else 32)

    def run(self, mode, device="cpu"):
        c = np.full(self.shape, -1e30 if self.sum_type != "half" else -6e4, SUMS[self.sum_type])
        arguments = self.arguments[:2] + [c] + self.arguments[3:]
        library(self.text, compile_options={"math_mode": mode}).function("product")(*arguments, device=device, **self.launch)
        return c

    def check(self, mode):
        error = np.abs(self.run(mode).astype(np.float64) - self.expected)
        worst = np.max(error / self.bound)
        assert worst <= 1, f"{mode}: an error is {worst:.3g} times the greatest one allowed"


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("left, right", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("rows, columns", [(1, 1), (2, 4), (4, 4), (3, 5), (1, 3), (3, 3), (4, 2)])
def test_products_are_within_their_bound(staged, left, right, rows, columns):
    for k in (8, 40, 72):
        product = Product(k, rows, columns, staged, left, right, "float")
        for mode in ("safe", "relaxed", "fast"):
            product.check(mode)


@pytest.mark.parametrize("sum_type", ["half", "bfloat"])
@pytest.mark.parametrize("staged", [False, True])
def test_sums_of_other_types_are_within_their_bound(staged, sum_type):
    product = Product(56, 2, 3, staged, False, False, sum_type)
    for mode in ("safe", "relaxed", "fast"):
        product.check(mode)


def test_k_may_end_within_a_staged_tile():
    for k in (1, 7, 25, 61):
        for mode in ("safe", "relaxed"):
            Product(k, 2, 4, True, False, False, "float").check(mode)


@pytest.mark.parametrize("staged", [False, True])
def test_engines_agree_in_safe(staged):
    product = Product(40, 4, 4, staged, False, False, "float")
    assert np.array_equal(product.run("safe"), product.run("safe", "cpu-scalar"))


def test_infinities_and_nans_stay_in_every_mode():
    product = Product(16, 2, 2, False, False, False, "float", steps=1)
    a = product.arguments[0]
    a[0, 3], a[1, 2] = np.inf, np.nan
    for mode in ("safe", "relaxed", "fast"):
        c = product.run(mode)
        assert np.all(np.isnan(c[1])) and np.all(np.isinf(c[0])) and np.all(np.isfinite(c[2:])), mode


# A loop over staged tiles in a loop over results, in which each tile may be left out, end the loop, or need the sums.
TILES = HEAD + """
kernel void product(device const bfloat *a [[buffer(0)]], device const bfloat *b [[buffer(1)]], device float *c [[buffer(2)]],
                    constant uint3 &size [[buffer(3)]], device const int *kinds [[buffer(4)]],
                    uint me [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup bfloat left[32 * DEPTH], right[DEPTH * 64];
    const uint results = size.x, tiles = size.y, k = tiles * DEPTH;
    simdgroup_float8x8 sums[2][4];
    for (uint result = 0; result < results; result++) {
        for (uint i = 0; i < 2; i++)
            for (uint j = 0; j < 4; j++) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        for (uint tile = 0; tile < tiles; tile++) {
            const int kind = kinds[result * tiles + tile];
            if (kind == 3) break;
            if (kind == 2) continue;
            for (uint e = me; e < 32 * DEPTH; e += 128) left[e] = a[(result * 32 + e / DEPTH) * k + tile * DEPTH + e % DEPTH];
            for (uint e = me; e < DEPTH * 64; e += 128) right[e] = b[(tile * DEPTH + e / 64) * 64 + e % 64];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (uint t = 0; t < size.z; t += 8) {
                simdgroup_bfloat8x8 l[2], r[4];
                for (uint i = 0; i < 2; i++) simdgroup_load(l[i], left + (simdgroup / 2 * 16 + i * 8) * DEPTH + t, DEPTH);
                for (uint j = 0; j < 4; j++) simdgroup_load(r[j], right + t * 64 + simdgroup % 2 * 32 + j * 8, 64);
                for (uint i = 0; i < 2; i++)
                    for (uint j = 0; j < 4; j++) simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            SCALE
        }
        for (uint i = 0; i < 2; i++)
            for (uint j = 0; j < 4; j++)
                simdgroup_store(sums[i][j], c + (result * 32 + simdgroup / 2 * 16 + i * 8) * 64 + simdgroup % 2 * 32 + j * 8, 64);
    }
}
"""
SCALE = """if (kind == 1)
                for (uint i = 0; i < 2; i++)
                    for (uint j = 0; j < 4; j++) {
                        sums[i][j].thread_elements()[0] *= 0.5f;
                        sums[i][j].thread_elements()[1] *= 0.5f;
                    }"""


@pytest.mark.parametrize("depth", [8, 16, 24, 64])
@pytest.mark.parametrize("scale", ["", SCALE], ids=["added", "scaled"])
def test_loops_over_tiles_need_sums_at_any_time(depth, scale):
    generator = np.random.default_rng()
    for results, tiles in ((1, 1), (2, 5), (3, 12)):
        k = tiles * depth
        a, b = random_bfloats(generator, results * 32, k), random_bfloats(generator, k, 64)
        kinds = generator.choice([0, 1, 2, 3], size=(results, tiles), p=[0.6, 0.2, 0.15, 0.05]).astype(np.int32)
        expected, bound = np.zeros((results, 32, 64)), np.full((results, 32, 64), 1e-30)
        for result in range(results):
            rows = a[result * 32:result * 32 + 32].astype(np.float64)
            for tile, kind in enumerate(kinds[result]):
                if kind == 3:
                    break
                if kind == 2:
                    continue
                at = slice(tile * depth, tile * depth + depth)
                factor = 0.5 if scale and kind == 1 else 1
                expected[result] = factor * (expected[result] + rows[:, at] @ b[at].astype(np.float64))
                bound[result] = factor * (bound[result] + np.abs(rows[:, at]) @ np.abs(b[at].astype(np.float64)))
        text = TILES.replace("SCALE", scale).replace("DEPTH", str(depth))
        for mode in ("safe", "relaxed"):
            c = np.full((results * 32, 64), 1e30, np.float32)
            library(text, compile_options={"math_mode": mode}).function("product")(
                a, b, c, np.array([results, tiles, depth, 0], np.uint32), kinds, groups=(1,), group_size=128, device="cpu")
            error = np.abs(c.reshape(expected.shape) - expected) / (bound * 2 * k * EPSILON["float"] + 1e-30)
            assert np.max(error) <= 1, (mode, results, tiles, np.max(error), kinds.tolist())


BLOCKS = "smelt_runtime_gang_matrices"  # products of several rounds, by AMX


def flags():
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    return cpuinfo.read_text() if cpuinfo.exists() else ""


def assembly(smelt_command, tmp_path, text, mode, **environment):
    source = tmp_path / "product.metal"
    source.write_text(text)
    done = subprocess.run([smelt_command, "show", str(source), "--stage", "asm", "--math", mode, "--threadgroup", "64"],
                          capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif("avx512_bf16" not in flags(), reason="this CPU has no AVX512-BF16")
def test_the_instruction_is_used_where_it_may_be(build_folder, tmp_path):
    command = os.path.join(build_folder, "bin", "smelt")
    text = Product(16, 4, 4, True, False, False, "float").text
    for mode, environment, expected in (("relaxed", {}, True), ("fast", {}, True), ("safe", {}, False),
                                        ("relaxed", {"SMELT_CPU": "avx2"}, False), ("relaxed", {"SMELT_CPU": "avx512"}, False)):
        code = assembly(command, tmp_path, text, mode, **environment)
        assert ("vdpbf16ps" in code or BLOCKS in code) == expected, (mode, environment)


@pytest.mark.skipif("amx_bf16" not in flags(), reason="this CPU has no AMX")
def test_loops_are_left_to_the_matrix_unit(build_folder, tmp_path):
    command = os.path.join(build_folder, "bin", "smelt")
    for rows, columns, expected in ((4, 4, True), (2, 3, True), (1, 4, False), (3, 5, False)):
        text = Product(16, rows, columns, True, False, False, "float").text
        assert (BLOCKS in assembly(command, tmp_path, text, "relaxed")) == expected, (rows, columns)
        assert BLOCKS not in assembly(command, tmp_path, text, "safe")


@pytest.mark.parametrize("level", ["avx2", "sse2", "avx512"])
def test_levels_without_the_instruction_give_the_bits_of_safe(level):
    """Relaxed math changes nothing about these products there."""
    if level == "avx512" and "avx512f" not in flags():
        pytest.skip("this CPU has no AVX-512")
    script = ("import numpy as np; from test_bfloat_matrices import Product\n"
              "for staged in (False, True):\n"
              "    p = Product(40, 4, 4, staged, False, True, 'float')\n"
              "    assert np.array_equal(p.run('safe'), p.run('relaxed'))\n"
              "    p.check('relaxed')\n")
    folder = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "SMELT_CPU": level})
    assert done.returncode == 0, done.stderr
