"""Products of simdgroup matrices as PTX, run by an emulator: the shuffles and layouts between Metal's lanes and the tensor
cores', sums that stay in the cores' layout through loops, the plain form. Run as `test_matrix.py SMELT`.

Except in check_mixed, all numbers are small integers: every way of summing gives the same."""
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator import Machine, from_float, to_float  # noqa: E402

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "matrix_product.metal")
KINDS = {"half": "f16", "bfloat": "bf16", "float": "f32"}


def pack(values, kind):
    if kind == "bf16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return b"".join(from_float(float(value), kind).to_bytes(2 if kind == "f16" else 4, "little") for value in values)


def ptx_of(function, threads, extra=(), source=SOURCE):
    shown = subprocess.run([SMELT, "show", source, *filter(None, [function]), "--stage", "ptx", "--threadgroup", str(threads), *extra],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{function}: {shown.stderr}"
    return shown.stdout


def without_calls(text):
    """Quick code with the body of its function in place of each call, since the emulator lacks functions; and the number of calls."""
    head = re.search(r"\n\.func[^\n]*product_of_matrices\([^)]*\)\n\{(.*?)\n\}", text, re.S)
    assert head, "there is no function product_of_matrices"
    body = re.sub(r"\t\.reg .*\n|\tret;\n?", "", head.group(1))
    count = 0

    def place(call):
        nonlocal count
        count += 1
        given = re.findall(r"st\.param\.f32 \t\[param\d\+0\], (\S+);", call.group(0))
        taken = re.search(r"ld\.param\.v2\.f32 \t(\{.*?\}), \[retval0", call.group(0)).group(1)
        here = body.replace("%f", f"%call{count}f")
        here = re.sub(r"ld\.param\.f32 \t(\S+), \[product_of_matrices_param_(\d)\];",
                      lambda load: f"mov.f32 \t{load.group(1)}, {given[int(load.group(2))]};", here)
        return re.sub(r"st\.param\.v2\.f32 \t\[func_retval0\+0\], \{(\S+), (\S+)\};",
                      lambda store: "".join(f"mov.f32 \t{to}, {value};\n" for to, value in zip(taken[1:-1].split(", "), store.groups())), here)

    text = text[:head.start()] + text[head.end():]
    text = re.sub(r"\t\{ // callseq.*?\} // callseq \d+", place, text, flags=re.S)
    return re.sub(r"\n\.func[^;]*;", "", text), count


def makes_quick_code():
    """Only a separate compiler process does: the compiler library always generates the best code."""
    return os.path.exists(os.path.join(os.path.dirname(os.path.abspath(SMELT)), "../lib/smelt-cc1"))


def check_quick(function, threads, products):
    """Quick code has a call for each product of floats."""
    os.environ["SMELT_TIERS"] = "quick"
    try:
        done = check(function, threads, None, products=products)
    finally:
        del os.environ["SMELT_TIERS"]
    return done + "; quick code"


def check(function, threads, mma, extra=(), loads=0, products=0):
    """mma: how often a warp's text has the instruction with this name; None: the plain form. loads: how many ldmatrix.
    products: how many calls of the function that multiplies."""
    kind, bm, bn, bk = re.match(r"(half|bfloat|float)_(?:sums_|fenced_|rows_)?(\d+)x(\d+)x(\d+)$", function).groups()
    bm, bn, depth, turned = int(bm), int(bn), 2 * int(bk), function in ("half_32x32x32", "float_24x40x8")
    a = [[(i * 7 + k * 3) % 11 - 5 for k in range(depth)] for i in range(bm)]
    limit = 1 if "bfloat_sums" in function else 3  # sums that 8 bits hold
    b = [[(k * 5 + j * 2 + j // 8) % (2 * limit + 1) - limit for j in range(bn)] for k in range(depth)]
    text = ptx_of(function, threads, extra)
    found = re.findall(r"mma\.sync\.aligned\.(\S+)", text)
    assert found == ([mma[0]] * mma[1] if mma else []), f"{function}: expected {mma}, found {found}"
    found = text.count("ldmatrix.")
    assert found == loads, f"{function}: expected {loads} loads of matrices, found {found}"
    inlined, found = without_calls(text) if products else (text, 0)
    assert found == products, f"{function}: expected {products} calls, found {found}"
    machine = Machine()
    right = [b[k][j] for j in range(bn) for k in range(depth)] if turned else [x for row in b for x in row]
    slots = [machine.allocate(pack([x for row in a for x in row], KINDS[kind])), machine.allocate(pack(right, KINDS[kind])),
             machine.allocate(bytes(4 * bm * bn)), machine.allocate(struct.pack("<4i", bm, bn, depth, 0))]
    machine.run(inlined, slots, (1, 1, 1), threads)
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


def check_adjacent(function):
    """simdgroup_barrier(mem_none) between loads: the left operand of a product of twice the depth still comes from one instruction."""
    text = ptx_of(function, 128)
    loaded = re.findall(r"ldmatrix\S*x4\.shared\.b16 (\{.*?\})", text)
    taken = set(re.findall(r"mma\.sync\S*m16n8k16\S* \{.*?\}, (\{.*?\})", text))
    assert taken and taken <= set(loaded), f"{function}: left operands {taken} are loaded apart: {loaded}"
    return f"{function}: operands are loaded together"


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
    assert found == loads or (found and loads is None), f"{function}: expected {loads} loads of matrices, found {found}"
    assert ("mma.sync" in text) == (kind != "f32"), f"{function}: expected {'no ' * (kind == 'f32')}mma"
    machine = Machine()
    a, b = [[(i * 7 + k * 3) % 11 - 5 for k in range(16)] for i in range(16)], [[(k * 5 + j * 2) % 7 - 3 for j in range(16)] for k in range(16)]
    flat = lambda rows, turned: pack([rows[x][y] if turned else rows[y][x] for y in range(16) for x in range(16)], kind)
    slots = [machine.allocate(flat(a, a_turned)), machine.allocate(flat(b, b_turned)), machine.allocate(bytes(1024)), 128]
    machine.run(text, slots, (1, 1, 1), 32)
    got = struct.unpack("<256f", machine.contents(slots[2]))
    for i in range(256):
        wanted = sum(a[i // 16][k] * b[k][i % 16] for k in range(16))
        assert got[i] == wanted, f"{function}: {i}: expected {wanted}, got {got[i]}"
    return f"{function}: right"


def check_divided():
    """What a lane divides by differs by lane: sums are divided in Metal's layout. A division orders nothing."""
    text = ptx_of("divided", 32, ("--math", "fast"))
    found = text.count("mma.sync"), text.count("div.full")
    assert found == (1, 5), f"divided: expected one product of 16 rows and 5 divisions, found {found}"
    machine = Machine()
    a, b = [i * 7 % 11 - 5 for i in range(128)], [i * 3 % 7 - 3 for i in range(64)]
    by = [2.0 ** (lane % 5 - 2) for lane in range(32)] + [2.0 ** (lane % 3) for lane in range(32)]
    slots = [machine.allocate(data) for data in (pack(a, "f16"), pack(b, "f16"), bytes(512), pack(by, "f32"), bytes(128))]
    machine.run(text, slots, (1, 1, 1), 32)
    got = struct.unpack("<128f", machine.contents(slots[2]))
    for i in range(128):
        row, column = i // 8 % 8, i % 8
        lane = row // 4 * 16 + column // 4 * 8 + row % 4 * 2 + column // 2 % 2
        wanted = sum(a[i // 8 * 8 + k] * b[k * 8 + column] for k in range(8)) / by[lane]
        assert got[i] == wanted, f"divided: {i}: expected {wanted}, got {got[i]}"
    got = struct.unpack("<32f", machine.contents(slots[4]))
    for lane in range(32):
        wanted = by[lane] / by[lane + 32]
        assert got[lane] == wanted, f"divided: lane {lane}: expected {wanted}, got {got[lane]}"
    return "divided: right"


def check_rescaled():
    """The rows of a left matrix that is diagonal are multiplied by one number each, to the same bits as on the CPU."""
    text, inf = ptx_of("rescaled", 32), float("inf")
    plain = [[2.0 ** (r % 4 - 1) * (-1) ** r if r == c else 0.0 for c in range(8)] for r in range(8)]
    for name, beside, number, shuffles in (("diagonal", 0.0, 3.0, True), ("negative zero", -0.0, 3.0, True), ("full", 1.0, 3.0, False),
                                           ("infinite", 0.0, inf, False), ("tiny", 0.0, -1e-45, False)):
        left = [row[:] for row in plain]
        left[6][1] = beside
        right = [float((i * 7 + i // 64) % 13 - 6) for i in range(512)]
        right[64 * 5 + 8 * 4 + 3] = number  # row 4 of the sixth; its factor is 1/2: the product of the tiny one is -0
        machine = Machine()
        machine.counts = {}
        slots = [machine.allocate(data) for data in (pack(sum(left, []), "f32"), pack(right, "f32"), bytes(2048))]
        machine.run(text, slots, (1, 1, 1), 32)
        got = machine.contents(slots[2])
        for i in range(512):
            matrix, row, column = i // 64, i // 8 % 8, i % 8
            wanted = 0.0
            for k in range(8):
                wanted = to_float(from_float(left[row][k] * right[64 * matrix + 8 * k + column] + wanted, "f32"), "f32")
            found = struct.unpack("<f", got[4 * i:4 * i + 4])[0]
            same = struct.pack("<f", found) == struct.pack("<f", wanted) or (found != found and wanted != wanted)
            assert same, f"rescaled, {name}: {i}: expected {wanted}, got {found}"
        found = machine.counts["shfl"]
        assert (found < 8) == shuffles, f"rescaled, {name}: {found} shuffles"
    return "rescaled: right"


def check_looked_at(blocks):
    """Lanes are in the fragments' order: each still sees its own elements, its own number and the others' values."""
    text = ptx_of("looked_at", 64, ("--bytes", f"4=uint32:{blocks}"))
    shuffles = set(re.findall(r"shfl\.sync\.\w+", text))
    assert text.count("mma.sync") == 2 and "movmatrix" in text, "looked_at: expected two products, and matrices that the warp transposes"
    assert re.search(r"@!?%p\d+ bra\.uni", text), "looked_at: expected a branch that all lanes take alike"
    place = lambda lane: ((lane // 4 & 4) + lane // 2 % 4, (lane // 4 & 2) * 2 + lane % 2 * 2)
    a, b = [i * 7 % 5 - 2 for i in range(64)], [i * 5 % 7 % 5 - 2 for i in range(64 * blocks)]
    machine = Machine()
    slots = [machine.allocate(data) for data in (pack(a, "f16"), pack(b, "f16"), bytes(512), bytes(64 * 5 * 4))]
    slots += [0, blocks]  # bytes that travel with the launch follow the addresses
    machine.run(text, slots, (1, 1, 1), 64)
    got, lanes = struct.unpack("<128f", machine.contents(slots[2])), struct.unpack("<320i", machine.contents(slots[3]))
    for simdgroup in range(2):
        sums, seen = [[0] * 8 for _ in range(8)], [[-1000, 0, 1000, 0, 0] for _ in range(32)]
        for block in range(simdgroup, blocks, 2):
            rows = [b[64 * block + 8 * r:64 * block + 8 * r + 8] for r in range(8)]
            score = [[sum(a[8 * r + k] * rows[c][k] for k in range(8)) for c in range(8)] for r in range(8)]
            mine = [[score[place(lane)[0]][place(lane)[1] + e] for e in range(2)] for lane in range(32)]
            vote = sum((mine[lane][0] > 0) << lane for lane in range(32))
            total, least, factor = sum(mine[lane][0] * lane for lane in range(32)), min(pair[1] for pair in mine), [0] * 8
            for lane, own in enumerate(seen):
                highest = max(score[place(lane)[0]])
                factor[place(lane)[0]] = 2 if highest > own[0] else 1
                own[0], own[1], own[2] = max(own[0], highest), own[1] + total, min(own[2], least)
                own[3] += mine[lane + 3][0] if lane < 29 else 0
                own[4] += sum(pair[1] for pair in mine[:lane + 1]) + (vote >> lane & 3)
            tops = {place(lane)[0]: seen[lane][0] for lane in range(32)}
            weights = [[min(max(score[r][c] - tops[r] + 8, 0), 8) for c in range(8)] for r in range(8)]
            sums = [[sums[r][c] * factor[r] + sum(weights[r][k] * rows[k][c] + rows[r][k] * weights[k][c] for k in range(8))
                     for c in range(8)] for r in range(8)]
        for i in range(64):
            assert got[64 * simdgroup + i] == sums[i // 8][i % 8], f"looked_at: {simdgroup}, {i}: expected {sums[i // 8][i % 8]}, got {got[64 * simdgroup + i]}"
        for lane in range(32):
            found = list(lanes[5 * (32 * simdgroup + lane):][:5])
            assert found == seen[lane], f"looked_at: {simdgroup}, lane {lane}: expected {seen[lane]}, got {found}"
    return f"looked_at, {blocks} blocks: right; {', '.join(sorted(shuffles))}"


def check_mixed(left, right, together, products):
    """Floats of 24 bits and several magnitudes times narrow numbers: a product loses at most 2^-22 of itself. The floats' infinities and
    NaNs stay."""
    numbers = random.Random(left + right)
    kinds = KINDS[left], KINDS[right]

    def draw(kind):
        value = numbers.choice((-1, 1)) * numbers.uniform(1, 2) * 2.0 ** numbers.choice((0, 0, 3, -9, -60 if kind == "f32" else -3))
        return to_float(from_float(value, kind), kind)

    a = [[draw(kinds[0]) for _ in range(16)] for _ in range(16)]
    b = [[draw(kinds[1]) for _ in range(16)] for _ in range(16)]
    odd = a if left == "float" else b
    odd[3][2], odd[5][14] = math.inf, math.nan
    # Infinities of the narrow operand, times floats that TF32 holds, zero included.
    for i, value in enumerate((1.0, -2.0, 0.0, 2.0 ** -60)):
        if left == "float":
            b[7][1], a[8 + i][7] = math.inf, value
        else:
            a[1][7], b[7][8 + i] = -math.inf, value
    function = f"{left}_times_{right}" + ("_together" if together else "")
    text = ptx_of(function, 32)
    found = re.findall(r"mma\.sync\.aligned\.(\S+)", text)
    assert found == [FLAT.format("tf32")] * products, f"{function}: found {found}"
    machine = Machine()
    slots = [machine.allocate(pack([x for row in a for x in row], kinds[0])), machine.allocate(pack([x for row in b for x in row], kinds[1])),
             machine.allocate(bytes(4 * 16 * 16))]
    machine.run(text, slots, (1, 1, 1), 32)
    got = struct.unpack("<256f", machine.contents(slots[2]))
    for i in range(16):
        for j in range(16):
            terms, value = [a[i][k] * b[k][j] for k in range(16)], got[16 * i + j]
            wanted = math.fsum(terms) + 0.5 if all(map(math.isfinite, terms)) else sum(terms)
            bound = 2.0 ** -22 * (0.5 + sum(map(abs, terms))) if math.isfinite(wanted) else 0
            right_one = math.isnan(value) if math.isnan(wanted) else value == wanted if math.isinf(wanted) else abs(value - wanted) <= 2 * bound
            assert right_one, f"{function}: row {i}, column {j}: expected {wanted}, got {value}"
    return f"{function}: right"


def check_lanes(threads):
    """Where lanes are missing, or off, their elements are 0. On one side of a branch lanes 0, 3, 6 … are off."""
    text = ptx_of("lanes", threads, source=os.path.join(os.path.dirname(SOURCE), "..", "kernels", "simdgroup_matrix_lanes.metal"))
    machine = Machine()
    out = machine.allocate(bytes(16 * threads))
    machine.run(text, [out], (1, 1, 1), threads)
    got = struct.unpack(f"<{4 * threads}f", machine.contents(out))
    place = lambda lane: ((lane // 4 & 4) + lane // 2 % 4, (lane // 4 & 2) * 2 + lane % 2 * 2)
    for off in (False, True):
        a, b = [[0] * 8 for _ in range(8)], [[0] * 8 for _ in range(8)]
        there = [lane for lane in range(threads) if not off or lane % 3]
        for lane in there:
            row, column = place(lane)
            a[row][column:column + 2] = lane % 5 - 2, lane % 5 + 1
            b[row][column:column + 2] = lane % 7 - 3, lane % 7 - 4
        for lane in range(threads):
            row, column = place(lane)
            for e in range(2):
                wanted = sum(a[row][k] * (b[k][column + e] + (0 if off else a[k][column + e])) for k in range(8)) + (0 if off else 1)
                wanted = wanted if lane in there else -1
                found = got[4 * lane + 2 * off + e]
                assert found == wanted, f"lanes: {threads} threads, lane {lane}, element {e}: expected {wanted}, got {found}"
    return f"lanes, {threads} threads: right"


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


def check_case(name):
    """A kernel case whose buffers are floats, against what the CPU makes of it: the same bits."""
    path = os.path.join(os.path.dirname(SOURCE), "..", "kernels", name + ".metal")
    with open(path, encoding="utf-8") as file:
        run = re.search(r"// run: (.*)", file.read()).group(1)
    threads = int(re.search(r"--threadgroup (\d+)", run).group(1))
    machine, slots, wanted = Machine(), [], {}
    with tempfile.TemporaryDirectory() as folder:
        words = [f"{word}={folder}/{number}.npy" if (number := (re.match(r"(\d+):out", word) or [None, None])[1]) else word
                 for word in run.split()]
        made = subprocess.run([SMELT, "run", path, *words], capture_output=True, text=True, check=False)
        assert made.returncode == 0, f"{name}: {made.stderr}"
        for number, how, count in re.findall(r"-b (\d+)(=arange|:out):float32:(\d+)", run):
            data = struct.pack(f"<{count}f", *range(int(count))) if how == "=arange" else bytes(4 * int(count))
            slots.append(machine.allocate(data))
            if how == ":out":
                wanted[slots[-1]] = read_npy(f"{folder}/{number}.npy")
    text = ptx_of("", threads, source=path)
    machine.run(text, slots, (1, 1, 1), threads)
    for slot, data in wanted.items():
        for i in range(0, len(data), 4):
            found = struct.unpack("<f", machine.contents(slot)[i:i + 4])[0]
            expected = struct.unpack("<f", data[i:i + 4])[0]
            assert found == expected, f"{name}: buffer {slots.index(slot)}, {i // 4}: expected {expected}, got {found}"
    return f"{name}: right"


def main():
    print(check("half_8x8x8", 32, (FLAT.format("f16"), 1), loads=2))
    print(check("bfloat_64x64x16", 128, (DEEP.format("bf16"), 8), loads=4))
    print(check("half_32x32x32", 128, (DEEP.format("f16"), 4), loads=4))
    print(check("bfloat_32x16x8", 64, (FLAT.format("bf16"), 2), loads=2))
    print(check("half_sums_16x32x16", 64, (FLAT.format("f16"), 4), loads=2))
    print(check("bfloat_sums_32x32x16", 128, (FLAT.format("bf16"), 4), loads=2))
    print(check_own_elements())
    print(check_divided())
    print(check_rescaled())
    for blocks in (1, 5):
        print(check_looked_at(blocks))
    for left, right in (("float", "half"), ("half", "float"), ("float", "bfloat"), ("bfloat", "float")):
        print(check_mixed(left, right, False, 8 if left == "float" else 16))  # rows below: the other part of a float
        print(check_mixed(left, right, True, 8))
    for name in ("simdgroup_matrix", "simdgroup_matrix_memory", "simdgroup_matrix_storage"):
        print(check_case(name))
    for threads in (32, 20, 7):
        print(check_lanes(threads))
    for function, kind, loads in (("loaded_nn", "f16", 2), ("loaded_nt", "f16", 2), ("loaded_tn", "bf16", 2), ("loaded_tt", "f16", 2),
                                  ("device_nt", "bf16", 0), ("device_tn", "f16", 0), ("float_nt", "f32", 0), ("given_nt", "f16", None)):
        print(check_loaded(function, kind, loads))
    print(check_adjacent("half_fenced_64x64x16"))
    print(check("half_rows_32x64x32", 64, (DEEP.format("f16"), 16), loads=10))
    print(check("float_24x40x8", 32, None))
    if makes_quick_code():
        print(check_quick("float_24x40x8", 32, 15))
    print(check("float_24x40x8", 32, (FLAT.format("tf32"), 10), ("--math", "relaxed")))
    if "SMELT_TEST_FULL" in os.environ:  # the emulator takes seconds for each
        print(check("half_64x64x16", 128, (DEEP.format("f16"), 8), loads=4))
        print(check("half_fenced_64x64x16", 128, (DEEP.format("f16"), 8), loads=4))
        print(check("float_64x64x16", 128, None))
        print(check("float_64x64x16", 128, (FLAT.format("tf32"), 16), ("--math", "fast")))


main()
