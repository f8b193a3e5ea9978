"""Products of simdgroups that share their right matrix (src/compiler/ptx/matrix/alike.c), as PTX of compute capability 9.0 in an
emulator: copies ahead, the order of elements in threadgroup memory, swizzled rows, warpgroup products. Run as
`test_alike.py SMELT`. All numbers are small integers, so sums are the same in every order."""
import os
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine, from_float, parts, place, to_float  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ml", "tensor_alike.metal")
KINDS = {"half": "f16", "bfloat": "bf16"}


class Hopper(Machine):
    """One warpgroup. Copies complete at once, so waits only test that the copies have begun."""

    def parse(self, text):
        self.barriers, self.waiting = {}, []
        # The loop of a wait becomes one instruction: all waits have the same labels.
        text = re.sub(r"\{ \.reg \.pred p, q;[^}]*?try_wait\S* p, (\[[^]]*\]), ([%\w]+);.*?done:\n\}", r"mbarwait.b64 \1, \2;", text, flags=re.S)
        super().parse(text)

    def at(self, thread, operand):
        base, offset = place(operand)
        return self.read(thread, base) + offset

    def arrive(self, address):
        barrier = self.barriers[address]
        barrier[1] -= 1
        if barrier[1] == 0:
            barrier[1], barrier[2] = barrier[0], barrier[2] + 1

    def step(self, thread, name, operands):
        if name[:2] == ("mbarrier", "init"):
            count = self.read(thread, operands[1])
            self.barriers[self.at(thread, operands[0])] = [count, count, 0]
        elif name[:2] == ("mbarrier", "arrive"):
            self.arrive(self.at(thread, operands[1]))
        elif name[:3] == ("cp", "async", "mbarrier"):
            self.arrive(self.at(thread, operands[0]))
        elif name[0] == "mbarwait":
            if self.barriers[self.at(thread, operands[0])][2] & 1 == self.read(thread, operands[1]):
                thread.pc, thread.state = thread.pc - 1, "waits"
        elif name[:2] == ("cp", "async") and name[2] == "ca":
            to, source, held = self.at(thread, operands[0]), self.at(thread, operands[1]), self.read(thread, operands[3])
            data = b""
            if held:
                memory, at = self.find(source, held, "global")
                assert source % 4 == 0, f"{source:#x} is not aligned"
                data = bytes(memory[at:at + held])
            self.shared[to:to + 4] = data + bytes(4 - held)
        elif name[0] in ("cp", "wgmma") and name[1] != "mma_async":
            pass
        elif name[0] == "wgmma":
            self.waiting.append(thread)
            if len(self.waiting) == self.block:
                self.multiply_group(self.waiting, name, operands)
                self.waiting = []
        else:
            super().step(thread, name, operands)

    def element(self, descriptor, line, term, by_lines, kind):
        """An element of a matrix in swizzled rows of 128 bytes: one row per line, or one per term of 64 lines."""
        start, distance = (descriptor & 0x3FFF) << 4, (descriptor >> 16 & 0x3FFF) << 4
        assert descriptor >> 62 == 1 and descriptor >> 32 & 0x3FFF == 64
        address = start + line * 128 + term * 2 if by_lines else start + line // 64 * distance + term * 128 + line % 64 * 2
        address ^= address >> 3 & 0x70
        return to_float(int.from_bytes(self.shared[address:address + 2], "little"), kind)

    def multiply_group(self, threads, name, operands):
        assert len(threads) == 128
        columns, kind = int(re.match(r"m64n(\d+)k16", name[4]).group(1)), name[6]
        by_lines = int(operands[6]) == 0
        add = self.read(threads[0], operands[3]) & 1
        descriptors = {self.read(thread, operands[2]) for thread in threads}
        assert len(descriptors) == 1, "the descriptors differ"
        right = [[self.element(min(descriptors), n, k, by_lines, kind) for k in range(16)] for n in range(columns)]
        for first in range(0, 128, 32):
            left = {}
            for thread in threads[first:first + 32]:
                group, member = divmod(thread.index % 32, 4)
                for i, register in enumerate(parts(operands[1])):
                    for e in range(2):
                        left[group + 8 * (i & 1), member * 2 + e + 8 * (i >> 1)] = to_float(self.read(thread, register) >> 16 * e & 0xFFFF, kind)
            for thread in threads[first:first + 32]:
                group, member = divmod(thread.index % 32, 4)
                for i, register in enumerate(parts(operands[0])):
                    row, column = group + 8 * (i >> 1 & 1), i // 4 * 8 + member * 2 + (i & 1)
                    total = to_float(self.read(thread, register), "f32") if add else 0.0
                    self.write(thread, register, float(total + sum(left[row, k] * right[column][k] for k in range(16))), "f32")


def pack(values, kind):
    return b"".join(from_float(float(value), kind).to_bytes(2, "little") for value in values)


def show(function):
    shown = subprocess.run([SMELT, "show", SOURCE, function, "--stage", "ptx", "--target", "sm_90a", "--threadgroup", "128"],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{function}: {shown.stderr}"
    return shown.stdout


def check(function, kind, m, n, transposed, shape, more, ahead):
    rows, columns, terms = shape
    text = show(function)
    assert "wgmma.mma" in text and "mma.sync" not in text, f"{function}: expected products of warpgroups alone"
    assert ("cp.async.ca" in text) == ahead, f"{function}: expected {'' if ahead else 'no '}copies ahead"
    width, height = (terms, columns) if transposed else (columns, terms)
    stride, numbers = width + more, random.Random(7)
    left = [numbers.randint(-4, 4) for _ in range(rows * terms)]
    right = [numbers.randint(-4, 4) for _ in range(height * stride)]
    machine = Hopper()
    slots = [machine.allocate(pack(left, KINDS[kind])), machine.allocate(pack(right, KINDS[kind])),
             machine.allocate(b"\xff" * 4 * rows * columns), machine.allocate(struct.pack("<4i", rows, columns, terms, stride))]
    machine.run(text, slots, (-(-rows // (4 * m)), -(-columns // n) if n else 1, 1), 128)
    got = struct.unpack(f"<{rows * columns}f", machine.contents(slots[2]))
    for r in range(rows):
        for c in range(columns):
            line = [right[c * stride + t] if transposed else right[t * stride + c] for t in range(terms)]
            expected = sum(x * (y if n else 2 * y + 1) for x, y in zip(left[r * terms:], line))
            assert got[r * columns + c] == expected, f"{function} {shape} stride {stride}: [{r}, {c}] is {got[r * columns + c]}, expected {expected}"


# Entry, type, m, n (0: all columns, in a kernel that writes to memory before), transposed, rows × columns × terms, and how many
# elements rows of the right matrix are longer: where rows are an odd number of elements apart, pairs are not aligned.
CASES = [("alike_rows", "half", 16, 64, False, (70, 70, 70), 0), ("alike_held", "bfloat", 16, 48, False, (64, 50, 90), 1),
         ("alike_columns", "bfloat", 32, 32, True, (40, 40, 170), 6), ("alike_columns_held", "half", 16, 80, True, (60, 90, 100), 0),
         ("alike_backward", "half", 32, 16, False, (40, 20, 100), 6), ("alike_changes", "half", 16, 0, False, (50, 40, 70), 1),
         ("alike_moved", "half", 16, 64, False, (40, 60, 64), 0)]
# Simdgroups that differ multiply on their own: waiting for each other, they would deadlock.
for function in ("alike_leaves", "alike_apart", "alike_ragged", "alike_waits"):
    assert "wgmma" not in show(function), f"{function}: simdgroups multiply together"
for case in CASES:
    check(*case, ahead=case[3] != 0)
print(f"{len(CASES)} products are right")
