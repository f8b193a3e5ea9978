"""Halfs that pairs of lanes store into the same words of threadgroup memory, as PTX that an emulator runs: the lanes exchange them and store
words; what the memory contains is the same. Run as `test_pairs.py SMELT`."""
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pairs.metal")


def check(function, group, inputs, expected, shuffles, by=None, given=None):
    """`inputs` and `expected`: words of 16 bits. `shuffles`: exchanges of a thread; `given`: where its threadgroup memory begins."""
    shown = subprocess.run([SMELT, "show", SOURCE, function, "--stage", "ptx", "--target", "sm_90a", "--threadgroup", ",".join(map(str, group))],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{function}: {shown.stderr}"
    found = len(re.findall(r"shfl\.sync", shown.stdout))
    assert found == shuffles, f"{function}: expected {shuffles} exchanges, found {found}:\n{shown.stdout}"
    machine, threads = Machine(), group[0] * (group + (1,))[1]
    slots = [machine.allocate(struct.pack(f"<{len(inputs)}H", *inputs)), machine.allocate(bytes(2 * len(expected)))]
    if by is not None:
        slots.append(machine.allocate(struct.pack("<I", by)))
    if given is not None:
        slots.append(given)
    machine.run(shown.stdout, slots, (1, 1, 1), threads)
    got = struct.unpack(f"<{len(expected)}H", machine.contents(slots[1]))
    for i, (wanted, value) in enumerate(zip(expected, got)):
        assert wanted is None or wanted == value, f"{function}: element {i}: expected {wanted:#x}, got {value:#x}"


def halfs(count):
    """Different bits, none of them NaN's."""
    return [(i * 37 + 5) % 0x7c00 for i in range(count)]


a = halfs(2048)
tile = [None] * 2048
for me in range(128):
    row, piece = me // 2, me % 2
    for i in range(16):
        tile[64 * (row // 8 + 8 * (piece * 2 + i // 8)) + 8 * (i % 8) + row % 8] = a[me * 16 + i]
check("staged", (128,), a, tile, 8)
check("given", (128,), a, tile, 8, given=48)

tile = [None] * 2048
for me in range(64):
    for j in range(8):
        tile[(me // 16 * 8 + j) * 16 + me % 16] = a[me * 8 + j] * 3 & 0xffff
check("columns", (16, 4), a[:512], tile[:512], 0)  # its lanes are neighbours: nothing is gained

for by in (0, 1, 4):
    expected = []
    for me in range(64):
        column = [None] * 8
        for i in range(4):
            column[i], column[i + by] = a[me * 8 + 2 * i], a[me * 8 + 2 * i + 1]
        expected += column
    check("again", (64,), a[:512], expected, 0, by)

two, three = 0x4000, 0x4200
check("between", (64,), [two] * 64, [two, three] * 64, 0, by=0)

tile = [0] * 2048
for me in range(128):
    for i in range(8) if me % 3 else ():
        tile[64 * (me // 16) + 8 * i + me // 2 % 8 + 1024 * (me % 2)] = a[me * 8 + i]
check("some", (128,), a, tile, 0)
print("pairs of lanes: right")
