"""Stores to threadgroup memory whose lanes share banks, as PTX that an emulator runs: some lanes do their stores in another order, so that
the memory needs fewer passes. Its contents are the same. Run as `test_banks.py SMELT`."""
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "banks.metal")


class Counting(Machine):
    """Counts the passes of stores: lanes of a warp that store to different words of one bank take turns."""

    def __init__(self):
        super().__init__()
        self.stores = {}

    def access(self, thread, name, operands):
        if name[0] == "st" and "shared" in name:
            values = operands[1].count("%")
            words = values * int(name[-1][1:]) // 32 or 1
            self.stores.setdefault((thread.pc, thread.index // 32, thread.index % 32 * words // 32, self.round(thread)), set()).update(
                self.address_of(thread, operands[0]) // 4 + word for word in range(words))
        super().access(thread, name, operands)

    def round(self, thread):
        thread.visits = getattr(thread, "visits", {})
        thread.visits[thread.pc] = thread.visits.get(thread.pc, 0) + 1
        return thread.visits[thread.pc]

    def passes(self):
        return sum(max(sum(word % 32 == bank for word in words) for bank in range(32)) for words in self.stores.values())


def check(function, threads, inputs, expected, passes, by=None, kind="I"):
    shown = subprocess.run([SMELT, "show", SOURCE, function, "--stage", "ptx", "--target", "sm_90a", "--threadgroup", str(threads)],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{function}: {shown.stderr}"
    machine = Counting()
    slots = [machine.allocate(struct.pack(f"<{len(inputs)}{kind}", *inputs)), machine.allocate(bytes(struct.calcsize(kind) * len(expected)))]
    if by is not None:
        slots.append(machine.allocate(struct.pack("<I", by)))
    machine.run(shown.stdout, slots, (1, 1, 1), threads)
    got = struct.unpack(f"<{len(expected)}{kind}", machine.contents(slots[1]))
    for i, (wanted, value) in enumerate(zip(expected, got)):
        assert wanted == value, f"{function}: element {i}: expected {wanted:#x}, got {value:#x}"
    assert machine.passes() == passes, f"{function}: expected {passes} passes, counted {machine.passes()}:\n{shown.stdout}"


halfs = [(i * 37 + 5) % 0x7c00 for i in range(2048)]
tile = [0] * 2048
for me in range(128):
    row, piece = me // 2, me % 2
    for i in range(16):
        tile[64 * (row // 8 + 8 * (piece * 2 + i // 8)) + 8 * (i % 8) + row % 8] = halfs[me * 16 + i]
check("staged", 128, halfs, tile, 32, kind="H")  # 8 stores of 4 warps, each in one pass; 128 in the order of the source

a = [(i * 2654435761) % 2**32 for i in range(2048)]
tile = [0] * 512
for me in range(64):
    for i in range(8):
        tile[me % 8 + me // 8 * 64 + 8 * i] = a[me * 8 + i]
check("words", 64, a[:512], tile, 16)  # 64 in the order of the source

longs = [i * 0x9E3779B97F4A7C15 % 2**64 for i in range(256)]
expected = []
for step in range(3):
    tile = [0] * 256
    for me in range(64):
        for i in range(4):
            tile[me % 8 + me // 8 * 32 + 8 * i] = (longs[me * 4 + i] + step) % 2**64
    expected += tile
check("longs", 64, longs, expected, 3 * 2 * 4 * 2, kind="Q")  # 96 in the order of the source

for by in (0, 1, 4):
    expected = []
    for me in range(64):
        column = [0] * 8
        for i in range(4):
            column[i], column[i + by] = a[me * 8 + 2 * i], a[me * 8 + 2 * i + 1]
        expected += column
    check("again", 64, a[:512], expected, 2 * 8 * 32, by=by)

check("between", 64, [7] * 64, [7, 8] * 64, 2 * 2 * 32, by=0)

expected = []
for me in range(63, -1, -1):
    expected += a[me * 4:me * 4 + 4]
check("neighbours", 64, a[:256], expected, 2 * 4)
check("linked", 32, a[:320], a[:320], 20)
check("beside", 32, a[:128], a[:128], 64)

tile = [0] * 1024
for me in range(128):
    for i in range(8):
        tile[64 * (me // 4 // 8 + 4 * (me % 4)) + 8 * (me // 4 % 8) + i] = halfs[me * 8 + i]
check("rows", 128, halfs[:1024], tile, 4 * 4, kind="H")  # 4 words of 4 warps; 64 as the stores of 16 bytes of the source

for by in (1, 2):
    expected = a[:256]
    expected[by::4] = range(64)
    check("vectors", 64, a[:256], expected, 2 * (4 + 4), by=by)  # and four lanes that share a bank

floats = [i / 4 - 20 for i in range(256)]
check("straight", 64, floats, [x + 1 for x in reversed(floats)], 8, kind="f")
print("orders of stores: right")
