"""Products of simdgroup matrices as PTX, run by an emulator: the shuffles and layouts between Metal's lanes and the tensor
cores', sums that stay in the cores' layout through loops, the plain form. Run as `test_matrix.py SMELT`.

All numbers are small integers: every way of summing gives the same."""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine, from_float  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "matrix_product.metal")
KINDS = {"half": "f16", "bfloat": "bf16", "float": "f32"}


def pack(values, kind):
    if kind == "bf16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return b"".join(from_float(float(value), kind).to_bytes(2 if kind == "f16" else 4, "little") for value in values)


def ptx_of(function, threads, extra=()):
    shown = subprocess.run([SMELT, "show", SOURCE, function, "--stage", "ptx", "--threadgroup", str(threads), *extra],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{function}: {shown.stderr}"
    return shown.stdout


def check(function, threads, mma, extra=(), loads=0):
    """mma: how often a warp's text has the instruction with this name; None: the plain form. loads: how many ldmatrix."""
    kind, bm, bn, bk = re.match(r"(half|bfloat|float)_(?:sums_)?(\d+)x(\d+)x(\d+)$", function).groups()
    bm, bn, depth, turned = int(bm), int(bn), 2 * int(bk), function in ("half_32x32x32", "float_24x40x8")
    a = [[(i * 7 + k * 3) % 11 - 5 for k in range(depth)] for i in range(bm)]
    limit = 1 if "bfloat_sums" in function else 3  # sums that 8 bits hold
    b = [[(k * 5 + j * 2 + j // 8) % (2 * limit + 1) - limit for j in range(bn)] for k in range(depth)]
    text = ptx_of(function, threads, extra)
    found = re.findall(r"mma\.sync\.aligned\.(\S+)", text)
    assert found == ([mma[0]] * mma[1] if mma else []), f"{function}: expected {mma}, found {found}"
    found = text.count("ldmatrix.")
    assert found == loads, f"{function}: expected {loads} loads of matrices, found {found}"
    machine = Machine()
    right = [b[k][j] for j in range(bn) for k in range(depth)] if turned else [x for row in b for x in row]
    slots = [machine.allocate(pack([x for row in a for x in row], KINDS[kind])), machine.allocate(pack(right, KINDS[kind])),
             machine.allocate(bytes(4 * bm * bn)), machine.allocate(struct.pack("<4i", bm, bn, depth, 0))]
    machine.run(text, slots, (1, 1, 1), threads)
    got = struct.unpack(f"<{bm * bn}f", machine.contents(slots[2]))
    for i in range(bm):
        for j in range(bn):
            wanted = sum(a[i][k] * b[k][j] for k in range(depth))
            assert got[i * bn + j] == wanted, f"{function}: row {i}, column {j}: expected {wanted}, got {got[i * bn + j]}"
    assembler = shutil.which("ptxas")
    if not assembler:
        return f"{function}: right; not assembled: there is no ptxas"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        made = subprocess.run([assembler, "-arch=sm_90a", "-v", path, "-o", os.path.join(folder, "kernel.cubin")],
                              capture_output=True, text=True, check=False)
    assert made.returncode == 0, f"{function}: {made.stderr}"
    if "64x64" in function:
        assert "0 bytes stack frame, 0 bytes spill stores" in made.stderr, f"{function}: {made.stderr}"
    return f"{function}: right; {re.search('Used (.*?) registers', made.stderr).group(1)} registers"


DEEP, FLAT = "m16n8k16.row.col.f32.{0}.{0}.f32", "m16n8k8.row.col.f32.{0}.{0}.f32"


def check_own_elements():
    """What lanes stored themselves is not loaded across lanes."""
    text = ptx_of("own_elements", 32)
    assert "ldmatrix" not in text and "mma.sync" in text, "own_elements: expected mma, and no ldmatrix"
    machine = Machine()
    a, b = [i * 7 % 11 - 5 for i in range(64)], [i * 3 % 7 - 3 for i in range(64)]
    slots = [machine.allocate(pack(a, "f16")), machine.allocate(pack(b, "f16")), machine.allocate(bytes(256))]
    machine.run(text, slots, (1, 1, 1), 32)
    got = struct.unpack("<64f", machine.contents(slots[2]))
    for i in range(64):
        wanted = sum(a[i // 8 * 8 + k] * b[k * 8 + i % 8] for k in range(8))
        assert got[i] == wanted, f"own_elements: {i}: expected {wanted}, got {got[i]}"
    return "own_elements: right"


def check_loaded(function, kind, loads):
    """By simdgroup_load; the last two letters: are the matrices turned."""
    a_turned, b_turned = (letter == "t" for letter in function[-2:])
    text = ptx_of(function, 32)
    found = text.count("ldmatrix.")
    assert found == loads, f"{function}: expected {loads} loads of matrices, found {found}"
    assert ("mma.sync" in text) == (kind != "f32"), f"{function}: expected {'no ' * (kind == 'f32')}mma"
    machine = Machine()
    a, b = [[(i * 7 + k * 3) % 11 - 5 for k in range(16)] for i in range(16)], [[(k * 5 + j * 2) % 7 - 3 for j in range(16)] for k in range(16)]
    flat = lambda rows, turned: pack([rows[x][y] if turned else rows[y][x] for y in range(16) for x in range(16)], kind)
    slots = [machine.allocate(flat(a, a_turned)), machine.allocate(flat(b, b_turned)), machine.allocate(bytes(1024))]
    machine.run(text, slots, (1, 1, 1), 32)
    got = struct.unpack("<256f", machine.contents(slots[2]))
    for i in range(256):
        wanted = sum(a[i // 16][k] * b[k][i % 16] for k in range(16))
        assert got[i] == wanted, f"{function}: {i}: expected {wanted}, got {got[i]}"
    return f"{function}: right"


def main():
    print(check("half_8x8x8", 32, (FLAT.format("f16"), 1), loads=2))
    print(check("half_64x64x16", 128, (DEEP.format("f16"), 8), loads=4))
    print(check("bfloat_64x64x16", 128, (DEEP.format("bf16"), 8), loads=4))
    print(check("half_32x32x32", 128, (DEEP.format("f16"), 4), loads=4))
    print(check("bfloat_32x16x8", 64, (FLAT.format("bf16"), 2), loads=2))
    print(check("half_sums_16x32x16", 64, (FLAT.format("f16"), 4), loads=2))
    print(check("bfloat_sums_32x32x16", 128, (FLAT.format("bf16"), 4), loads=2))
    print(check_own_elements())
    for function, kind, loads in (("loaded_nn", "f16", 2), ("loaded_nt", "f16", 2), ("loaded_tn", "bf16", 2), ("loaded_tt", "f16", 2),
                                  ("device_nt", "bf16", 0), ("device_tn", "f16", 0), ("float_nt", "f32", 0)):
        print(check_loaded(function, kind, loads))
    print(check("float_24x40x8", 32, None))
    print(check("float_64x64x16", 128, None))
    print(check("float_24x40x8", 32, (FLAT.format("tf32"), 10), ("--math", "relaxed")))
    print(check("float_64x64x16", 128, (FLAT.format("tf32"), 16), ("--math", "fast")))


main()
