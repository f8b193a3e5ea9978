"""Coarsened code as PTX that an emulator runs, against the CPU engine: what every thread writes, at edges, behind guards, at
addresses that are aligned or not. Run as `test_coarse.py SMELT`."""
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "coarse.metal")
LETTERS = {"float32": "f", "float16": "e", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i", "int64": "q"}
PLAIN = "plain"
POISON = b"\xa5" * 64
RANDOM = random.Random(1)


class Input:
    def __init__(self, dtype, count, most=100):
        signed = dtype[0] != "u"
        self.dtype, self.values = dtype, [RANDOM.randint(-most if signed else 0, most) for _ in range(count)]
        self.data = struct.pack(f"<{count}{LETTERS[dtype]}", *self.values)

    def write(self, path):
        kind = ("f" if "float" in self.dtype else self.dtype[0]) + str(struct.calcsize(LETTERS[self.dtype]))
        header = "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" % ("|" + kind if kind[1] == "1" else "<" + kind, len(self.values))
        header += " " * (63 - (len(header) + 10) % 64) + "\n"
        with open(path, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + self.data)


class Output:
    def __init__(self, dtype, count):
        self.dtype, self.count = dtype, count
        self.bytes = count * struct.calcsize(LETTERS[dtype])


def smelt(*arguments, buffers="seen"):
    done = subprocess.run([SMELT, *map(str, arguments)], capture_output=True, text=True, check=False,
                          env=dict(os.environ, SMELT_GPU_COARSE="always", SMELT_GPU_BUFFERS=buffers))
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


def words(values):
    return ",".join(str(value) for value in values)


def three(values):
    return (tuple(values) + (1, 1))[:3]


def form_of(why):
    """Threads per thread of the hardware by dimension, and the hardware's block; None: they do their own work."""
    found = re.search(r"work of (\d+) threads, (neighbours|a block apart) in ([xyz]); blocks are (\d+) x (\d+) x (\d+)", why)
    if not found:
        return None
    coarse = [1, 1, 1]
    coarse["xyz".index(found[3])] = int(found[1])
    return coarse, [int(found[i]) for i in (4, 5, 6)], found[2]


def launch(text, form, grid, group, buffers):
    """What the buffers contain afterwards. The same number twice: the same buffer."""
    machine = Machine()
    machine.shared = bytearray(64)
    slots, made = [], {}
    for buffer in buffers:
        if id(buffer) not in made:
            data = bytes(buffer.bytes) if isinstance(buffer, Output) else struct.pack("<I", buffer) if isinstance(buffer, int) else buffer.data
            made[id(buffer)] = machine.allocate(data + POISON)
        slots.append(made[id(buffer)])
    grid, group = three(grid), three(group)
    groups = [-(-n // s) for n, s in zip(grid, group)]
    blocks, machine.block = groups, group[0] * group[1] * group[2]
    if form:
        blocks = [-(-n // (c * b)) for n, c, b in zip(grid, *form[:2])]
        machine.block = form[1][0] * form[1][1] * form[1][2]
    machine.parse(text)
    machine.parameters = bytearray(struct.pack("<10I2Q", *grid, *group, *groups, 0, 0, 0) + struct.pack(f"<{len(slots)}Q", *slots))
    for z in range(blocks[2]):
        for y in range(blocks[1]):
            for x in range(blocks[0]):
                machine.run_block((x, y, z))
    results = []
    for buffer, slot in zip(buffers, slots):
        contents = machine.contents(slot)
        assert contents[-len(POISON):] == POISON, "written past a buffer's end"
        results.append(contents[:-len(POISON)])
    return results


def on_cpu(function, grid, group, buffers, folder):
    arguments, files = [], {}
    for i, buffer in enumerate(buffers):
        path = os.path.join(folder, f"{i}.npy")
        if isinstance(buffer, int):
            arguments += ["--bytes", f"{i}=uint32:{buffer}"]
        elif isinstance(buffer, Output):
            arguments += ["-b", f"{i}:out:{buffer.dtype}:{buffer.count}={path}"]
            files[i] = path
        else:
            buffer.write(path)
            arguments += ["-b", f"{i}={path}"]
    smelt("run", SOURCE, function, *arguments, "--grid", words(grid), "--threadgroup", words(group), "--device", "cpu")
    results = {}
    for i, path in files.items():
        with open(path, "rb") as file:
            results[i] = file.read()[-buffers[i].bytes:]
    return results


def check(function, grid, group, buffers, form=None, expected=None, loads=None, code="seen"):
    """`form`: what the code must be. `expected`: contents by buffer, in place of the CPU's. `code`: "any": for buffers that may
    begin anywhere and overlap."""
    options = ("--target", "sm_90a", "--grid", words(grid), "--threadgroup", words(group))
    why = smelt("show", SOURCE, function, "--why", *options, buffers=code)
    found = form_of(why)
    assert bool(found) == (form != PLAIN), f"{function}, grid {grid}, groups of {group}: {why}"
    text = smelt("show", SOURCE, function, "--stage", "ptx", *options, buffers=code)
    if form and form != PLAIN:
        assert (found[2], max(found[0]), "xyz"[found[0].index(max(found[0]))]) == form, f"{function}, grid {grid}: {why}"
    if loads:
        assert re.search(loads, text), f"{function}: no {loads}:\n{text}"
    if expected is None:
        with tempfile.TemporaryDirectory() as folder:
            expected = on_cpu(function, grid, group, buffers, folder)
    results = launch(text, found, grid, group, buffers)
    for i, wanted in expected.items():
        letter = LETTERS[buffers[i].dtype]
        size = struct.calcsize(letter)
        for k in range(0, len(wanted), size):
            assert wanted[k:k + size] == results[i][k:k + size], (
                f"{function}, grid {grid}, groups of {group} ({why.strip()}): buffer {i}, element {k // size}: expected "
                f"{struct.unpack('<' + letter, wanted[k:k + size])}, got {struct.unpack('<' + letter, results[i][k:k + size])}")


FOUR_LOADS = r"(ld\.global(?:(?!st\.global)[\s\S])*){4}"
NEAR4, NEAR8, NEAR2 = ("neighbours", 4, "x"), ("neighbours", 8, "x"), ("neighbours", 2, "x")

# Lengths around those of blocks and of chunks; groups of any size.
for count, group in ((1, 1), (3, 32), (1024, 256), (1027, 64), (1030, 1024), (333, 100)):
    check("sum", (count,), (group,), [Input("float32", count), Input("float32", count), Output("float32", count)], NEAR4,
          loads=r"ld\.global\.v4\.f32")
for n, least in ((300, 0), (299, 0), (400, 5), (0, 0)):
    check("guarded", (300,), (64,), [Input("float16", 300), Output("float16", 300), n, least], NEAR8)
check("bytes", (517,), (128,), [Input("uint8", 517), Input("uint16", 517), Output("uint32", 517)], NEAR4)
check("narrow", (2051,), (256,), [Input("int8", 2051), Output("int8", 2051), 2045], NEAR8)
check("wide", (517,), (256,), [Input("int64", 517), Output("int64", 517)], NEAR2)
for count, group in ((515, 64), (512, 256), (700, 96), (333, 100)):
    check("places", (count,), (group,), [Input("uint32", 2048), Output("uint32", count)])
for grid, group in (((33, 5, 3), (8, 4, 2)), ((16, 8, 4), (16, 2, 2)), ((7, 3, 2), (32, 2, 1)), ((65, 7), (32, 8))):
    check("places3", grid, group, [Output("uint32", three(grid)[0] * three(grid)[1] * three(grid)[2])])
for w, h in ((64, 32), (33, 17), (40, 30)):
    check("transposed", (w, h), (32, 8), [Input("float32", w * h), Output("float32", w * h), w, h], ("neighbours", 4, "y"))
for w in (64, 72, 61):
    check("rows", (w + 3, 9), (32, 4), [Input("int16", (w + 3) * 9), Input("int16", w), Output("int16", w * 9), w])
check("broadcast", (517,), (256,), [Input("float32", 517), Input("float32", 20), Output("float32", 517), 20])
for start, end in ((4, 8), (1, 2), (0, 3)):
    check("shifted", (519,), (256,), [Input("float32", 540), Output("float32", 540), start, end], NEAR4)
check("strided", (300,), (128,), [Input("float32", 1000), Output("float32", 600)])
check("backwards", (517,), (256,), [Input("int32", 517), Output("int32", 517)])
check("gathered", (517,), (256,), [Input("uint32", 517), Input("float32", 101), Output("float32", 517)])
check("ways", (517,), (256,), [Input("int32", 517), Input("int32", 517), Output("int32", 517), Output("int32", 517)])
check("filled", (1029,), (256,), [Output("float16", 1029)], NEAR8)
check("pairs", (517,), (256,), [Input("float32", 1034), Output("float16", 1034)])

first, shared = Input("int32", 517), Output("int32", 517)
check("after", (517,), (256,), [first, shared, shared, Output("int32", 517)],
      expected={3: struct.pack("<517i", *((value + 1) * 2 for value in first.values))}, code="any")
check("after", (517,), (256,), [first, Output("int32", 517), Input("int32", 517), Output("int32", 517)], NEAR4)
first = Input("float32", 517)
check("in_place", (517,), (256,), [first], expected={0: struct.pack("<517f", *(value * 2 + 1 for value in first.values))})
# Rounds of loops: fewer than run together, as many, more; groups at the edge are full here, for loops step by their size.
for w in (1, 5, 191, 192, 256, 257, 700):
    check("scaled_rows", (128,), (64,), [Input("float32", 2 * w), Output("float32", 2 * w), w], PLAIN, loads=FOUR_LOADS)
for w in (60, 256, 333):
    check("running", (128,), (64,), [Input("int32", 2 * w), Input("int32", w), Output("int32", 2 * w), Output("int32", 128), w], PLAIN)
    check("gathered_rows", (128,), (64,), [Input("uint32", w, w - 1), Input("float32", w), Output("float32", 2 * w), w], PLAIN, loads=FOUR_LOADS)
    first = Input("int32", 2 * w)
    check("rows_in_place", (128,), (64,), [first, w], PLAIN, loads=FOUR_LOADS,
          expected={0: struct.pack(f"<{2 * w}i", *(value * 3 - 1 for value in first.values))})
    first = Input("int32", 2 * (w + 64))
    rows = [list(first.values[r * (w + 64):(r + 1) * (w + 64)]) for r in range(2)]
    for row in rows:
        for c in range(w):
            row[c + 64] = row[c] + 1
    check("chained", (128,), (64,), [first, w], PLAIN, expected={0: struct.pack(f"<{2 * (w + 64)}i", *rows[0], *rows[1])})
first, out = Input("float32", 600), Output("float32", 600)
check("scaled_rows", (128,), (64,), [first, out, 300], PLAIN, code="any")
print("coarsened code: right")
