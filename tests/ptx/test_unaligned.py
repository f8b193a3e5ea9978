"""Vectors less aligned than their types, as PTX that an emulator runs: it takes no access that is not aligned to its size.
Run as `test_unaligned.py SMELT`."""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unaligned_vectors.metal")
THREADS, REGION, WHOLE = 32, 2304, 14
# Of each region: bytes of an element, elements, elements from one thread's to the next one's.
REGIONS = [(1, 2, 5), (1, 3, 5), (1, 4, 5), (2, 3, 5), (2, 4, 5), (4, 3, 5), (4, 4, 5), (8, 2, 5), (2, 2, 5), (2, 4, 5),
           (2, 4, 5), (4, 2, 5), (4, 3, 5), (4, 4, 5), (4, 8, 9), (4, 16, 17), (2, 4, 5)]


def ptx_of(function, *options):
    shown = subprocess.run([SMELT, "show", SOURCE, function, "--stage", "ptx", "--threadgroup", str(THREADS), *options],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{function}: {shown.stderr}"
    return shown.stdout


def expected(data, place):
    out = bytearray(len(data))
    for region, (size, count, step) in enumerate(REGIONS):
        for thread in range(THREADS):
            at = region * REGION + size * (place + step * thread)
            elements = [data[at + size * k:at + size * (k + 1)] for k in range(count)]
            out[at:at + size * count] = b"".join(elements if region >= WHOLE else elements[::-1])
    return bytes(out)


def check_moves(text, place):
    data = bytes(i * 7 % 251 for i in range(REGION * len(REGIONS)))
    machine = Machine()
    slots = [machine.allocate(data), machine.allocate(bytes(len(data))), machine.allocate(struct.pack("<I", place))]
    machine.run(text, slots, (1, 1, 1), THREADS)
    got, wanted = machine.contents(slots[1]), expected(data, place)
    for i, (a, b) in enumerate(zip(got, wanted)):
        # The fourth element of a vector of three is nobody's.
        size, count, step = REGIONS[i // REGION]
        number = i % REGION // size - place
        if number >= 0 and number % step < count or count != 3:
            assert a == b, f"place {place}: region {i // REGION}, byte {i % REGION}: expected {b}, got {a}"


def check_assembled(text):
    assembler = shutil.which("ptxas")
    if not assembler:
        print("not assembled: there is no ptxas")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        made = subprocess.run([assembler, "-arch=sm_90a", path, "-o", os.path.join(folder, "kernel.cubin")], capture_output=True,
                              text=True, check=False)
    assert made.returncode == 0, made.stderr


def check_known():
    text = ptx_of("known")
    assert text.count("ld.global.v4.f32") == 2, f"float4 arrays are not loaded by one instruction each:\n{text}"
    assert not re.search(r"@!?%p\d+ (ld|st)", text), f"what is known to be aligned is asked for:\n{text}"


moves = ptx_of("moves")
assert re.search(r"@%p\d+ ld\.global\.v4", moves), "no load asks whether it may be wide"
for place in (0, 3):
    check_moves(moves, place)
check_assembled(moves)
check_known()
print("vectors at every place: right")
