"""Narrow loads that become wide ones, and matrices that are loaded from device memory as the tensor cores take them: what
their PTX computes, where rows are aligned and where they are not. Run as `test_strides.py SMELT`.

All numbers are small: every way of summing gives the same."""
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine, from_float  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "strides.metal")


def show(function, stage, *options):
    shown = subprocess.run([SMELT, "show", SOURCE, function, *stage, "--threadgroup", "32", "--target", "sm_90a", *options],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{function}: {shown.stderr}"
    return shown.stdout


def halfs(values):
    return b"".join(from_float(float(value), "f16").to_bytes(2, "little") for value in values)


def run(text, buffers, stride):
    """The launch passes the stride along, behind the addresses. Returns the machine, and the buffers' addresses."""
    machine = Machine()
    machine.parse(text)
    machine.block, machine.shared, machine.counts = 32, bytearray(1 << 12), {}
    slots = [machine.allocate(data) for data in buffers]
    words = struct.pack("<10I2Q", 32, 1, 1, 32, 1, 1, 1, 1, 1, 0, 0, 0) + struct.pack(f"<{len(slots) + 1}Q", *slots, 0)
    words += bytes(-len(words) % 16)
    machine.parameters = bytearray(words + struct.pack("<4I", stride, 0, 0, 0))
    machine.run_block((0, 0, 0))
    return machine, slots


def check_rows(stride, wide):
    text = show("rows", ["--stage", "ptx"], "--bytes", f"4=uint32:{stride}")
    for load in ("ld.global.v4.f32", "ld.global.v4.b32", "ld.global.u16"):
        assert load in text, f"rows: no {load}:\n{text}"
    floats, narrow = [i % 13 - 6 for i in range(3 * stride + 8)], [i % 11 - 5 for i in range(3 * stride + 16)]
    scales, raw = [2, 1, 4, 1, 2, 8], [bytes((7 * b + 3 * k) % 256 for k in range(16)) for b in range(6)]
    blocks = b"".join(halfs([scale]) + data for scale, data in zip(scales, raw))
    machine, slots = run(text, [struct.pack(f"<{len(floats)}f", *floats), halfs(narrow), blocks, bytes(128)], stride)
    sums = [0] * 32
    for row in range(3):
        for lane in range(32):
            part, b = lane % 2, 2 * row + lane % 2
            signed = [value - 256 if value > 127 else value for value in raw[b][4:]]
            sums[lane] += sum(floats[row * stride + 4 * part + k] * (k + 1) for k in range(4))
            sums[lane] += sum(narrow[row * stride + 8 * part + k] * (k + 1) for k in range(8))
            sums[lane] += sum(signed[k + 2] * (k + 1) * scales[b] for k in range(8)) + sum(raw[b][:4])
        sums = [sums[lane ^ 3] for lane in range(32)]
    got = struct.unpack("<32f", machine.contents(slots[3]))
    assert list(got) == sums, f"rows, stride {stride}: expected {sums}, got {got}"
    assert (machine.counts["ld"] < 40) == wide, f"rows, stride {stride}: {machine.counts['ld']} loads"
    return f"rows, stride {stride}: right, {machine.counts['ld']} loads"


def check_product(stride, transposes):
    text = show("product", ["--stage", "ptx"], "--bytes", f"3=uint32:{stride}")
    a, b = [[(i * 7 + k * 3) % 11 - 5 for k in range(stride)] for i in range(16)], [[(k * 5 + j * 2) % 7 - 3 for j in range(stride)] for k in range(24)]
    flat = lambda rows: halfs([value for row in rows for value in row])
    machine, slots = run(text, [flat(a), flat(b), bytes(4 * 320)], stride)
    got = struct.unpack("<320f", machine.contents(slots[2]))
    for i in range(256):
        wanted = sum(a[i // 16][k] * b[k][i % 16] for k in range(24))
        assert got[i] == wanted, f"product, stride {stride}: {i}: expected {wanted}, got {got[i]}"
    for i in range(64):
        wanted = sum(a[i // 8][k] * a[i % 8][k] for k in range(24))
        assert got[256 + i] == wanted, f"product, stride {stride}: turned {i}: expected {wanted}, got {got[256 + i]}"
    found = machine.counts.get("movmatrix", 0)
    assert (found > 0) == transposes, f"product, stride {stride}: {found} matrices were transposed"
    return f"product, stride {stride}: right, {machine.counts['ld']} loads, {machine.counts['shfl']} shuffles"


def check_straight(function, depth, stride):
    """Where rows are aligned, four rounds run at once and load 16 bytes per lane; the remaining rounds run one by one."""
    turned, kind = function.endswith("turned"), "bf16" if "bfloat" in function else "f16"
    narrow = halfs if kind == "f16" else lambda values: b"".join(struct.pack("<f", value)[2:] for value in values)
    text = show(function, ["--stage", "ptx"], "--bytes", f"4=uint32:{stride}")
    wide = text.count("ld.global.v4.u32")
    assert wide == 6, f"{function}: expected 6 loads of 16 bytes, found {wide}"
    assert ".minnctapersm 1\n" in text, f"{function}: the assembler may save registers"
    numbers = random.Random(depth)
    draw = lambda rows, columns: [[numbers.randrange(-4, 5) for _ in range(columns)] for _ in range(rows)]
    a, b, c = draw(16, depth), draw(depth, 32), draw(16, 32)
    flat = lambda rows: narrow([value for row in rows for value in row + [77] * (stride - len(row))])
    stored = [list(column) for column in zip(*b)] if turned else b
    start = struct.pack("<512f", *[value for row in c for value in row])
    machine, slots = run(text, [flat(a), flat(stored), start, struct.pack("<I", depth)], stride)
    got = struct.unpack("<512f", machine.contents(slots[2]))
    for i in range(512):
        wanted = c[i // 32][i % 32] + sum(a[i // 32][k] * b[k][i % 32] for k in range(depth))
        assert got[i] == wanted, f"{function}, depth {depth}, stride {stride}: {i}: expected {wanted}, got {got[i]}"
    return f"{function}, depth {depth}, stride {stride}: right, {machine.counts['ld']} loads"


def check_steps(function, stride):
    """Four steps that the kernel writes out itself, with sums that are used between them, too."""
    text = show(function, ["--stage", "ptx"], "--bytes", f"3=uint32:{stride}")
    numbers = random.Random(stride)
    a, b, c = [[[numbers.randrange(-4, 5) for _ in range(columns)] for _ in range(rows)] for rows, columns in ((16, 32), (32, 32), (16, 32))]
    flat = lambda rows: halfs([value for row in rows for value in row + [77] * (stride - len(row))])
    place = lambda i, j: 64 * (4 * (i // 8) + j // 8) + 8 * (i % 8) + j % 8
    start = [0] * 512
    for i in range(512):
        start[place(i // 32, i % 32)] = c[i // 32][i % 32]
    machine, slots = run(text, [flat(a), flat(b), struct.pack("<512f", *start) + bytes(2048)], stride)
    got = struct.unpack("<1024f", machine.contents(slots[2]))
    product = lambda i, j, depth: sum(a[i][k] * b[j][k] for k in depth)
    for i in range(16):
        for j in range(32):
            first = lambda row: c[row][j] + product(row, j, range(16))
            wanted = first(i if function == "steps_kept" else (i + 8) % 16) + product(i, j, range(16, 32))
            found = got[place(i, j)]
            assert found == wanted, f"{function}, stride {stride}: {i}, {j}: expected {wanted}, got {found}"
            found = got[512 + place(i, j)]
            assert found == first(i) or function == "steps_swapped", f"{function}, stride {stride}: kept {i}, {j}: expected {first(i)}, got {found}"
    return f"{function}, stride {stride}: right"


def check_own():
    text = show("own", ["--stage", "ptx"])
    assert "movmatrix" not in text and "mma.sync" in text, "own: expected a product of what the lanes loaded themselves"
    machine = Machine()
    b = [i * 3 % 7 - 3 for i in range(64)]
    slots = [machine.allocate(bytes(128)), machine.allocate(halfs(b)), machine.allocate(bytes(256))]
    machine.run(text, slots, (1, 1, 1), 32)
    got = struct.unpack("<64f", machine.contents(slots[2]))
    for i in range(64):
        wanted = sum((b[i // 8 * 8 + k] + 1) * b[k * 8 + i % 8] for k in range(8))
        assert got[i] == wanted, f"own: {i}: expected {wanted}, got {got[i]}"
    return "own: right"


def main():
    for stride in (16, 24, 20, 17):
        print(check_rows(stride, stride % 8 == 0))
    for stride in (24, 32, 25, 28):
        print(check_product(stride, stride % 8 == 0))
    for function in ("straight_half", "straight_half_turned", "straight_bfloat"):
        for depth, stride in ((72, 72), (32, 40), (24, 32), (40, 42)):
            print(check_straight(function, depth, stride))
    for function in ("steps_kept", "steps_swapped"):
        for stride in (32, 42):
            print(check_steps(function, stride))
    print(check_own())
    why = show("product", ["--why"], "--bytes", "3=uint32:24")
    assert "a version of the code for arguments that are multiples of 8" in why, why


main()
