"""Runs coarsened code as PTX in the emulator, and compares it with the CPU engine. For scripts run as `SCRIPT SMELT …`."""
import functools
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
FULL = "SMELT_TEST_FULL" in os.environ  # as in make check-long
PLAIN, ANY = "plain", "any"  # forms: threads do their own work; whatever it is
POISON = b"\xa5" * 64
RANDOM = random.Random(1)


def part(cases):
    """Every third case, since the emulator is slow; with make check-long, all cases."""
    return cases if FULL else cases[::3]


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


@functools.cache
def shown(buffers, *arguments):
    return smelt("show", *arguments, buffers=buffers)


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


def launch(text, form, grid, group, buffers, machine):
    """What the buffers contain afterwards. The same number twice: the same buffer."""
    machine.shared = bytearray(1 << 14)
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


def on_cpu(source, function, grid, group, buffers, folder):
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
    smelt("run", source, function, *arguments, "--grid", words(grid), "--threadgroup", words(group), "--device", "cpu")
    results = {}
    for i, path in files.items():
        with open(path, "rb") as file:
            results[i] = file.read()[-buffers[i].bytes:]
    return results


def check(function, grid, group, buffers, form=None, expected=None, loads=None, code="seen", source=SOURCE, machine=Machine):
    """`form`: what the code must be, None: coarsened. `expected`: contents by buffer, in place of the CPU's. `code`: "any": for buffers that may
    begin anywhere and overlap."""
    options = ("--target", "sm_90a", "--grid", words(grid), "--threadgroup", words(group))
    why = shown(code, source, function, "--why", *options)
    found = form_of(why)
    assert form == ANY or bool(found) == (form != PLAIN), f"{function}, grid {grid}, groups of {group}: {why}"
    text = shown(code, source, function, "--stage", "ptx", *options)
    if form not in (None, PLAIN, ANY):
        assert (found[2], max(found[0]), "xyz"[found[0].index(max(found[0]))]) == form, f"{function}, grid {grid}: {why}"
    if loads:
        assert re.search(loads, text), f"{function}: no {loads}:\n{text}"
    if expected is None:
        with tempfile.TemporaryDirectory() as folder:
            expected = on_cpu(source, function, grid, group, buffers, folder)
    results = launch(text, found, grid, group, buffers, machine())
    for i, wanted in expected.items():
        letter = LETTERS[buffers[i].dtype]
        size = struct.calcsize(letter)
        for k in range(0, len(wanted), size):
            assert wanted[k:k + size] == results[i][k:k + size], (
                f"{function}, grid {grid}, groups of {group} ({why.strip()}): buffer {i}, element {k // size}: expected "
                f"{struct.unpack('<' + letter, wanted[k:k + size])}, got {struct.unpack('<' + letter, results[i][k:k + size])}")
