"""Random products by simdgroup matrices whose tiles lie in threadgroup memory, as PTX that an emulator runs: loops that fill tiles, loads
ahead of products, rows with and without padding. Run as `test_tiles_random.py SMELT [FIRST COUNT]`: seeds. Numbers are small integers: every
way of summing gives the same."""
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine, from_float  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
HEAD = """#include <metal_stdlib>
using namespace metal;
kernel void product(device const half *a [[buffer(0)]], device const half *b [[buffer(1)]], device float *c [[buffer(2)]],
                    uint me [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
"""


class Kernel:
    """One threadgroup multiplies `rows` x `depth` by `depth` x `columns`."""

    def __init__(self, seed):
        self.random = r = random.Random(seed)
        self.down, self.across = r.choice((1, 2)), r.choice((1, 2))  # simdgroups
        self.high, self.wide = r.choice((1, 2, 4)), r.choice((1, 2, 4))  # matrices of each
        self.rows, self.columns = 8 * self.high * self.down, 8 * self.wide * self.across
        self.step = r.choice((8, 16, 32, 64))
        self.depth, self.threads = self.step * r.randint(1, 4), 32 * self.down * self.across
        self.turned, self.late = r.random() < 0.5, r.random() < 0.5
        self.text = self.write()

    def fill(self, tile, source, lines, length, pitch, stride, first):
        """Copies `lines` of `length` from device memory."""
        size = self.random.choice((1, 2, 4, 8))
        kind = {1: "half", 2: "half2", 4: "half4", 8: "uint4"}[size]
        own = f"i / {length // size} * {{}} + i % {length // size} * {size}"
        return (f"for (uint i = me; i < {lines * length // size}; i += {self.threads}) *(threadgroup {kind} *)({tile} + "
                f"{own.format(pitch)}) = *(device const {kind} *)({source} + {first} + {own.format(stride)});\n")

    def write(self):
        r, step, barrier = self.random, self.step, "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        left, right = step + r.choice((0, 0, 8)), (step if self.turned else self.columns) + r.choice((0, 0, 8))
        lines = self.columns if self.turned else step
        pairs = f"for (uint i = 0; i < {self.high}; i++) for (uint j = 0; j < {self.wide}; j++)"
        top, begin = f"(simdgroup / {self.across} * {self.high} + i) * 8", f"(simdgroup % {self.across} * {self.wide} + j) * 8"
        place = f"{begin} * {right} + k, {right}, ulong2(0), true" if self.turned else f"k * {right} + {begin}, {right}"
        length, stride, first = (step, self.depth, "base") if self.turned else (self.columns, self.columns, f"base * {self.columns}")
        return (f"{HEAD}threadgroup uint4 l[{self.rows * left // 8}], r[{lines * right // 8}];\n"
                f"threadgroup half *left = (threadgroup half *)l, *right = (threadgroup half *)r;\n"
                f"simdgroup_float8x8 sums[{self.high}][{self.wide}];\n{pairs} sums[i][j] = simdgroup_float8x8(0);\n"
                f"for (uint base = 0; base < {self.depth}; base += {step}) {{\n{barrier if self.late else ''}"
                f"{self.fill('left', 'a', self.rows, step, left, self.depth, 'base')}{self.fill('right', 'b', lines, length, right, stride, first)}"
                f"{barrier}for (uint k = 0; k < {step}; k += 8) {{\nsimdgroup_half8x8 m[{self.high}], n[{self.wide}];\n"
                f"for (uint i = 0; i < {self.high}; i++) simdgroup_load(m[i], left + {top} * {left} + k, {left});\n"
                f"{r.choice(('', 'simdgroup_barrier(mem_flags::mem_none);'))}\n"
                f"for (uint j = 0; j < {self.wide}; j++) simdgroup_load(n[j], right + {place});\n"
                f"{pairs} simdgroup_multiply_accumulate(sums[i][j], m[i], n[j], sums[i][j]);\n}}\n{'' if self.late else barrier}}}\n"
                f"{pairs} simdgroup_store(sums[i][j], c + {top} * {self.columns} + {begin}, {self.columns});\n}}\n")


def pack(numbers):
    return b"".join(from_float(float(x), "f16").to_bytes(2, "little") for x in numbers)


def check(seed, folder):
    kernel = Kernel(seed)
    path = os.path.join(folder, "product.metal")
    with open(path, "w", encoding="utf-8") as file:
        file.write(kernel.text)
    shown = subprocess.run([SMELT, "show", path, "--stage", "ptx", "--target", "sm_90a", "--threadgroup", str(kernel.threads)],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"seed {seed}: {shown.stderr}\n{kernel.text}"
    a = [[kernel.random.randint(-3, 3) for _ in range(kernel.depth)] for _ in range(kernel.rows)]
    b = [[kernel.random.randint(-3, 3) for _ in range(kernel.columns)] for _ in range(kernel.depth)]
    right = zip(*b) if kernel.turned else b
    machine = Machine()
    slots = [machine.allocate(pack(x for row in matrix for x in row)) for matrix in (a, right)]
    slots.append(machine.allocate(b"\xff" * (4 * kernel.rows * kernel.columns)))
    machine.run(shown.stdout, slots, (1, 1, 1), kernel.threads)
    got = struct.unpack(f"<{kernel.rows * kernel.columns}f", machine.contents(slots[2]))
    wanted = tuple(sum(x * y for x, y in zip(row, column)) for row in a for column in zip(*b))
    assert got == wanted, f"seed {seed}: wrong\n{kernel.text}"


def main():
    first, count = map(int, sys.argv[2:4]) if len(sys.argv) > 3 else (0, 12)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            check(seed, folder)
    print(f"{count} kernels: right")


main()
