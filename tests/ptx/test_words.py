"""Neighbouring narrow loads that are not aligned, as PTX that an emulator runs: they load the words around them, of which each has a byte
that the kernel loads. Run as `test_words.py SMELT`."""
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.metal")
THREADS = 32
DATA = bytes((i * 37 + i // 7) % 251 for i in range(THREADS * 40))


def ptx_of(function, loads):
    """`loads`: of device memory, which the code has."""
    shown = subprocess.run([SMELT, "show", SOURCE, function, "--stage", "ptx", "--target", "sm_90a", "--threadgroup", str(THREADS)],
                           capture_output=True, text=True, check=False, env=dict(os.environ, SMELT_GPU_COARSE="never"))
    assert shown.returncode == 0, f"{function}: {shown.stderr}"
    found = re.findall(r"ld\.global\.(\w+)", shown.stdout)
    assert len(found) == loads, f"{function}: expected {loads} loads, found {found}"
    return shown.stdout


def run(text, data, out_bytes, *numbers):
    """Nothing but the data can be read: it ends with the last byte that is loaded, or with its word."""
    machine = Machine()
    slots = [machine.allocate(data + bytes(-len(data) % 4)), machine.allocate(bytes(out_bytes)), *(machine.allocate(struct.pack("<I", n)) for n in numbers)]
    machine.run(text, slots, (1, 1, 1), THREADS)
    return machine.contents(slots[1]), machine.contents(slots[0])


def folded(values):
    s = 0
    for value in values:
        s = (s * 31 + value) & 0xffffffff
    return s


def check(function, text, step, data, words):
    expected = []
    for i in range(THREADS):
        values = words(data[i * step:])
        expected += [folded(values[0]), values[1] & 0xffffffff]
    got = struct.unpack(f"<{len(expected)}I", run(text, data, 4 * len(expected), step)[0])
    for i, (wanted, found) in enumerate(zip(expected, got)):
        assert wanted == found, f"{function}, step {step}: element {i}: expected {wanted:#x}, got {found:#x}"


def xor(values):
    t = 0
    for k, value in enumerate(values):
        t ^= value << k
    return t


def bytes_of(row):
    return row[:9], xor(row[:9])


def halfs_of(row):
    halfs = struct.unpack("<9H", row[:18])
    return halfs, xor(halfs[:5])


def mixed_of(row):
    return [struct.unpack("<H", row[:2])[0], *row[2:8]], sum(value * (k + 1) for k, value in enumerate(row[2:8]))


text = ptx_of("bytes", 4)
for step in (9, 17, 18, 12):
    check("bytes", text, step, DATA[:step * (THREADS - 1) + 9], bytes_of)
text = ptx_of("halfs", 8)
for step in (18, 34, 20):
    check("halfs", text, step, DATA[:step * (THREADS - 1) + 18], halfs_of)
text = ptx_of("mixed", 4)
for step in (8, 18, 34):
    check("mixed", text, step, DATA[:step * (THREADS - 1) + 8], mixed_of)

data = b"".join(struct.pack("<e", i % 5 + 1) + DATA[i * 16:i * 16 + 16] for i in range(THREADS))
results = struct.unpack(f"<{THREADS}f", run(ptx_of("unpacked", 5), data, 4 * THREADS)[0])
for i, found in enumerate(results):
    wanted = sum((v & 15) - 2 * (v >> 4) for v in data[i * 18 + 2:i * 18 + 18]) * (i % 5 + 1)
    assert wanted == found, f"unpacked: {i}: expected {wanted}, got {found}"

step, memory, wanted = 13, bytearray(DATA[:13 * (THREADS - 1) + 12]), []
for i in range(THREADS):
    memory[i * step + 4] = folded(memory[i * step:i * step + 3]) & 255
    wanted.append(folded(memory[i * step:i * step + 12]))
got, after = run(ptx_of("stored", 8), DATA[:len(memory)], 4 * THREADS, step)
assert struct.unpack(f"<{THREADS}I", got) == tuple(wanted), f"stored: expected {wanted}, got {struct.unpack(f'<{THREADS}I', got)}"
assert after[:len(memory)] == bytes(memory), "stored: other bytes were changed"

found = struct.unpack(f"<{THREADS}I", run(ptx_of("vectors", 1), DATA[:THREADS * 8], 4 * THREADS)[0])
wanted = tuple(folded(struct.unpack("<4H", DATA[i * 8:i * 8 + 8])) for i in range(THREADS))
assert found == wanted, f"vectors: expected {wanted}, got {found}"
# The four rows' addresses are computed from one, which is hidden from LLVM.
text = ptx_of("rows", 21)
hidden = re.findall(r"mov\.b64 (%rd\d+), %rd\d+;", text)
sums = {name: len(re.findall(rf"add\.s64\s+%rd\d+, {name}, %rd\d+;", text)) for name in hidden}
assert 4 in sums.values(), f"rows: expected an address to which four are added, found {sums}"
for blocks in (16, 21, 33):
    data = bytes((i * 37 + i // 7) % 251 for i in range(4 * blocks * 19))
    wanted = []
    for i in range(THREADS):
        for r in range(4):
            starts = [(r * blocks + b) * 19 for b in range(i // 2, blocks, 16)]
            wanted.append(sum(folded([data[s], *data[s + 1 + i % 2 * 9:][:9]]) for s in starts) & 0xffffffff)
    found = struct.unpack(f"<{4 * THREADS}I", run(text, data, 16 * THREADS, blocks)[0])
    assert found == tuple(wanted), f"rows of {blocks} blocks: expected {wanted}, got {found}"
print("words around narrow loads: right")
