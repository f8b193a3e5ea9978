"""Loads under a condition whose values are used later under the same one become predicated loads. An emulator runs the PTX, without
memory where the condition forbids a load. Run as `test_ahead.py SMELT`."""
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ahead.metal")
THREADS = 32


def ptx_of(function, predicated):
    """`predicated`: how many predicated loads of device memory the code must have."""
    shown = subprocess.run([SMELT, "show", SOURCE, function, "--stage", "ptx", "--target", "sm_90a", "--threadgroup", str(THREADS)],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{function}: {shown.stderr}"
    found = re.findall(r"@(?:%p\d+|whole|single) ld\.global", shown.stdout)
    assert len(found) == predicated, f"{function}: expected {predicated} predicated loads, found {found}:\n{shown.stdout}"
    return shown.stdout


def run(text, out_floats, out, *data):
    machine = Machine()
    machine.shared = bytearray(2048)
    slots = [machine.allocate(item if isinstance(item, bytes) else struct.pack("<I", item)) for item in data]
    machine.run(text, slots, (1, 1, 1), THREADS)
    return struct.unpack(f"<{out_floats}f", machine.contents(slots[out]))


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def check_product(function, predicated, *places):
    text = ptx_of(function, predicated)
    for depth in (8, 40):
        a, b = [i * 5 % 7 - 3 for i in range(8 * depth)], [i * 3 % 11 - 5 for i in range(8 * depth)]
        wanted = tuple(sum(a[i * depth + k] * b[k * 8 + j] for k in range(depth)) for i in range(8) for j in range(8))
        for place in places or (0,):
            gap = [99] * place
            found = run(text, 64, 2, floats(gap + a), floats(gap + b), bytes(256), depth, *([place] if places else []))
            assert found == wanted, f"{function}, depth {depth}, place {place}: expected {wanted}, got {found}"


check_product("aligned", 2)
check_product("tested", 8, 0, 1, 2)  # those of the first tile depend on their alignment alone

text, n = ptx_of("kept", 0), 8
a = [i % 13 - 6 for i in range(32 * n)]
wanted = []
for t in range(THREADS):
    following, total = a[t], 0.0
    for k in range(n):
        following = a[32 * k + t] if k % 3 == 0 else following
        total = total * 0.5 + k + (following if k % 3 == 0 else 0) - following * 0.25
    wanted.append(total)
found = run(text, THREADS, 1, floats(a), bytes(128), n)
assert found == tuple(wanted), f"kept: expected {wanted}, got {found}"
print("loads ahead under a condition: right")
