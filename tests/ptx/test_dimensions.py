"""Versions for small numbers of dimensions, and 64-bit arithmetic in 32 bits: what their PTX computes. Run as
`test_dimensions.py SMELT`."""
import os
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dimensions.metal")
RANDOM = random.Random(4)
THREADS = 40
LETTERS = {"uint64": "Q", "int64": "q", "uint32": "I", "int32": "i"}
LARGE = (1 << 32) + 3
SHAPES = ((7,), (5, 8), (3, 4, 5), (2, 3, 4, 3), (2, 2, 3, 2, 2), (1, 0, 4), (LARGE, 6), (3, LARGE, 2), ((1 << 63), 5), ())


def show(function, stage, arguments):
    options = []
    for i, argument in enumerate(arguments):
        if argument:
            options += ["--bytes", f"{i}={argument[0]}:{','.join(map(str, argument[1]))}"]
    shown = subprocess.run([SMELT, "show", SOURCE, function, *stage, "--threadgroup", str(THREADS), "--target", "sm_90a", *options],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{function}: {shown.stderr}"
    return shown.stdout


def run(function, arguments, inputs):
    """The last buffer, of as many numbers of 32 bits as there are threads. Arguments travel with the launch, behind the
    addresses."""
    machine = Machine()
    machine.parse(show(function, ["--stage", "ptx"], arguments))
    machine.block, machine.shared, machine.counts = THREADS, bytearray(1 << 12), {}
    slots = [machine.allocate(struct.pack(f"<{len(values)}i", *values)) for values in inputs] + [machine.allocate(bytes(4 * THREADS))]
    words = struct.pack("<10I2Q", THREADS, 1, 1, THREADS, 1, 1, 1, 1, 1, 0, 0, 0) + struct.pack(f"<{len(slots)}Q", *slots)
    words += bytes(8 * sum(argument is not None for argument in arguments))
    for argument in arguments:
        if argument:
            words += bytes(-len(words) % 16) + struct.pack(f"<{len(argument[1])}{LETTERS[argument[0]]}", *argument[1])
    machine.parameters = bytearray(words + bytes(16))
    machine.run_block((0, 0, 0))
    return struct.unpack(f"<{THREADS}i", machine.contents(slots[-1]))


def signed(number, bits=32):
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def place_of(index, shape, strides):
    place = 0
    for size, stride in zip(reversed(shape), reversed(strides)):
        place += (index % size if size else index) * stride
        index = index // size if size else 0
    return place


def numbers(count):
    return [RANDOM.randrange(-9, 10) for _ in range(count)]


def check_sums(shape, first):
    dimensions = len(shape)
    a, b = numbers(128), numbers(128)
    places = [range(1, dimensions + 1), [LARGE * k + 17 * k + 1 for k in range(dimensions)]]
    padded = lambda values: ("uint64", [*values, *[1] * (8 - dimensions)])
    arguments = [None] * 3 + [("uint64", [dimensions]), padded(shape), *map(padded, places), ("uint32", [first])]
    got = run("sums", arguments, [a, b])
    for i in range(THREADS):
        x, y = (place_of((first + i) % (1 << 32), shape, strides) % (1 << 32) for strides in places)
        wanted = signed(a[x % 128] + 1000 * b[y % 128] + signed(x ^ y))
        assert got[i] == wanted, f"sums, shape {shape} from {first}: {i}: expected {wanted}, got {got[i]}"


def check_signed(shape):
    strides = [1, -3, 9, -(1 << 40), 2][: len(shape)]
    padded = lambda values: [*values, *[1] * (8 - len(shape))]
    a = numbers(128)
    arguments = [None] * 2 + [("int32", [len(shape)]), ("int32", padded(shape)), ("int64", padded(strides))]
    got = run("signed_sums", arguments, [a])
    for i in range(THREADS):
        place = place_of(i, shape, strides)
        wanted = signed(a[place % 128] - place)
        assert got[i] == wanted, f"signed_sums, shape {shape}: {i}: expected {wanted}, got {got[i]}"


for shape in SHAPES:
    for first in (0, 1 << 20, (1 << 32) - 40):
        check_sums(shape, first)
    if max(shape, default=0) < LARGE:
        check_signed(shape)
some = ("uint64", [1] * 8)
arguments = [None] * 3 + [("uint64", [2]), some, some, some, ("uint32", [0])]
why = show("sums", ["--why"], arguments)
assert "versions of the code for 2 to 4 dimensions\n" in why, why
text = show("sums", ["--stage", "ptx"], arguments)
divisions = len(re.findall(r"\tdiv\.", text))
assert divisions == 2 + 2 + 3 + 4 and "div.u64" not in text, f"{divisions} divisions:\n{text}"
print("dimensions: right")
