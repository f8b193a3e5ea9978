"""Code of checked runs on GPUs: the first access that misses its array, or is misaligned, is described and does not happen. An emulator
runs the PTX. Run as `test_inside.py SMELT`."""
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import SHARED_WINDOW, Machine  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside.metal")
GROUPS, THREADS, COUNT, BETWEEN = 2, 8, 16, 64
DATA = [3 * i - 7 for i in range(COUNT)]
GUARD = bytes([0xAB]) * BETWEEN

# Per kernel: the array that an access misses, and the byte from its start on where the access begins; None: all accesses are valid.
# `aligned`: the access to `a` at that byte is misaligned.
MISSES = {"writes_past": ("o", 64), "writes_in_front": ("o", -4), "reads_past": ("a", 1 << 32), "throws_away": None,
          "vector_straddles": ("a", 52), "in_a_loop": ("a", 64), "stays_inside": None, "threadgroup_variable": ("s", 32),
          "threadgroup_argument": ("s", 32), "private_array": ("p", 16), "reads_misaligned": ("aligned", 6)}
EXTENTS = {"o": 64, "a": 64, "s": 32, "p": 16}


def ptx_of(function, *options, threads=THREADS):
    shown = subprocess.run([SMELT, "show", SOURCE, function, "--stage", "ptx", "--target", "sm_90a", "--threadgroup", str(threads), *options],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{function}: {shown.stderr}"
    return shown.stdout


def run(function, checked):
    """The launch's struct cuda_stop, the addresses of o and a, and the contents of o with the guard bytes on both sides."""
    machine = Machine()
    out = machine.allocate(GUARD + bytes(4 * COUNT) + GUARD) + BETWEEN
    data = machine.allocate(GUARD + struct.pack(f"<{COUNT}i", *DATA) + GUARD) + BETWEEN
    stop = machine.allocate(bytes(56))
    slots, extents = [out, data], [(out, 4 * COUNT), (data, 4 * COUNT)]
    if function == "threadgroup_argument":
        slots, extents = [*slots, 0], [*extents, (0, 4 * THREADS)]
    machine.run(ptx_of(function, *["--checked"] * checked), slots, (GROUPS, 1, 1), THREADS, stop=stop, extents=extents if checked else ())
    return struct.unpack("<2I6Q", machine.contents(stop)), {"o": out, "a": data}, machine.contents(out - BETWEEN)


def check(function, missed):
    (flag, found, _, address, start, extent, group, thread), arrays, around = run(function, True)
    assert around.startswith(GUARD) and around.endswith(GUARD), f"{function}: the bytes around the output have changed"
    if missed is None:
        assert not flag and not found, f"{function}: a valid access failed a test"
        assert around == run(function, False)[2], f"{function}: checked and plain code differ"
        return
    array, offset = missed
    assert flag and found == (2 if array == "aligned" else 1), f"{function}: found {found}"
    assert (group, thread) == (1, 5), f"{function}: group {group}, thread {thread}"
    if array == "aligned":
        assert (address - arrays["a"], start, extent) == (offset, 0, 4), f"{function}: at {address - arrays['a']}"
        return
    assert extent == EXTENTS[array], f"{function}: an array of {extent} bytes, expected {EXTENTS[array]}"
    assert address - start == offset & (1 << 64) - 1 or address - start == offset, f"{function}: at {address - start}, expected {offset}"
    if array in arrays:
        assert start == arrays[array], f"{function}: the array begins at {start:#x}, expected {arrays[array]:#x}"
    if array == "s":
        assert start >= SHARED_WINDOW, f"{function}: the array begins at {start:#x}, not in threadgroup memory"


def check_product():
    """If a lane ends before a product of matrices, its whole warp ends: the emulator runs mma for whole warps only."""
    machine = Machine()
    out, data, stop = machine.allocate(bytes(256)), machine.allocate(bytes(64)), machine.allocate(bytes(56))
    text = ptx_of("before_a_product", "--checked", threads=32)
    assert "mma.sync" in text, "before_a_product: expected mma"
    machine.run(text, [out, data], (1, 1, 1), 32, stop=stop, extents=[(out, 256), (data, 64)])
    flag, found, _, address, *_, thread = struct.unpack("<2I6Q", machine.contents(stop))
    assert (flag, found, address - data, thread) == (1, 1, 4000, 13), f"before_a_product: {flag, found, address - data, thread}"


for name, expected in MISSES.items():
    check(name, expected)
check_product()
print(f"{len(MISSES) + 1} kernels")
