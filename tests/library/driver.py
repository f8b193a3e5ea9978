"""Runs functions of Metal's library on every type and width, on both engines, against Python.

A check is a call, the type of its result and what it should give. run() makes one kernel of all checks of a set of inputs:
each thread loads a scalar, or the vector around its element, for each width, and writes the bits of its own component.
"""
import math
import os
import struct
import subprocess
import sys
import tempfile
import zlib

POINTS = 96  # a multiple of 2, 3 and 4
WIDTHS = (1, 2, 3, 4)
SIZES = {8: "B", 16: "H", 32: "I", 64: "Q"}


class Check:
    """text: a call on x, y, z (scalars or vectors), x0, y0, z0 (the first component), with T the component type and V that
    of x. result: the component type. reference(x, y, z) of one component: a value of the result's type; with `whole` it
    gets the lists of components instead, and the component's number as its last argument. With `raw` it takes and gives
    bit patterns."""

    def __init__(self, text, result, reference, widths=WIDTHS, whole=False, any_zero=False, scalar=False, raw=False):
        self.text, self.result, self.reference, self.widths = text, result, reference, widths
        self.whole, self.any_zero = whole, any_zero
        self.scalar, self.raw = scalar, raw  # scalar: the result is one, of vectors too


def write_npy(path, descr, bits, width):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(bits)},), }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin-1"))
        file.write(struct.pack(f"<{len(bits)}{SIZES[width]}", *bits))


def read_words(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - start) // 8}Q", data[start:])


HEAD = """#include <metal_stdlib>
using namespace metal;
template <class R> inline ulong bits_of(R r) {
  if constexpr (is_same_v<R, bool>) return r ? 1 : 0;
  else if constexpr (sizeof(R) == 1) return as_type<uchar>(r);
  else if constexpr (sizeof(R) == 2) return as_type<ushort>(r);
  else if constexpr (sizeof(R) == 4) return as_type<uint>(r);
  else return as_type<ulong>(r);
}
"""


def vector(kind, width):
    return kind if width == 1 else f"{kind}{width}"


def kernel_text(types, checks, extra):
    """Result number n of all (check, width) stands at out[n * POINTS …]."""
    names = "xyzw"[:len(types)]
    parameters = [f"device const {t.name} *{n}_values [[buffer({i})]]" for i, (n, t) in enumerate(zip(names, types))]
    lines = [HEAD, extra, f"typedef {types[0].name} T;", "kernel void checks(" + ", ".join(parameters) +
             f", device ulong *out [[buffer({len(types)})]], uint i [[thread_position_in_grid]]) {{"]
    number = 0
    for width in WIDTHS:
        lines.append(f"{{ typedef {vector(types[0].name, width)} V; uint lane = i % {width}, start = i - lane;")
        for n, t in zip(names, types):
            if width == 1:
                lines.append(f"{t.name} {n} = {n}_values[i];")
            else:
                lines.append(f"{t.name}{width} {n}; for (uint c = 0; c < {width}; c++) {n}[c] = {n}_values[start + c];")
            lines.append(f"{t.name} {n}0 = {n}_values[start]; (void){n}0;")
        for check in checks:
            if width not in check.widths:
                continue
            plain = width == 1 or check.scalar
            kind = check.result.name if plain else vector(check.result.name, width)
            lines.append(f"{{ auto r = {check.text}; static_assert(is_same_v<decltype(r), {kind}>, \"{check.text}\"); "
                         f"out[{number * POINTS}u + i] = bits_of(r{'' if plain else '[lane]'}); }}")
            number += 1
        lines.append("}")
    lines.append("}")
    return "\n".join(lines) + "\n", number


def expected(check, types, inputs, width, i):
    start = i - i % width
    value = (lambda t, b: b) if check.raw else (lambda t, b: t.value(b))
    groups = [[value(t, b) for b in bits[start:start + width]] for t, bits in zip(types, inputs)]
    if check.whole:
        return check.reference(*groups, i % width)
    return check.reference(*[group[i % width] for group in groups])


def same(check, bits, wanted):
    result = check.result
    if check.raw:
        return bits == wanted
    if result.kind != "f":
        return bits == result.pattern(wanted)
    if math.isnan(wanted):
        return math.isnan(result.value(bits))
    return bits == result.pattern(wanted) or (check.any_zero and wanted == 0 and result.value(bits) == 0)


def sampled(title, checks):
    """An eighth of the checks, each in other widths for each set of types. Code for all takes long to compile, and types and
    widths share most of what is tested."""
    def chosen(check, width):
        return zlib.crc32(f"{title} {check.text} {width}".encode()) % 8 == 0
    first = checks[:1], checks[0].widths[:1] if checks else []
    for check in checks:
        check.widths = [width for width in check.widths if chosen(check, width)]
    some = [check for check in checks if check.widths]
    if not some:
        some, some_widths = first
        for check in some:
            check.widths = some_widths
    return some


def devices_of(title):
    """Both engines; in a sample, the SIMD engine for two of three titles, the scalar engine for the third."""
    if "SMELT_CASE_DEVICES" in os.environ:
        return os.environ["SMELT_CASE_DEVICES"].split(",")
    if "SMELT_TEST_FULL" in os.environ:
        return ["cpu", "cpu-scalar"]
    return ["cpu" if zlib.crc32(title.encode()) % 3 else "cpu-scalar"]


def run(smelt, title, types, checks, inputs=None, extra=""):
    """Prints what is wrong; the number of failures. SMELT_TEST_FULL=1: runs all checks, else a sample."""
    inputs = inputs or [t.points(POINTS, n) for n, t in enumerate(types)]
    if smelt == "--print":  # for test_coverage.py
        print(kernel_text(types, checks, extra)[0])
        return 0
    checks = checks if "SMELT_TEST_FULL" in os.environ else sampled(title, checks)
    if not checks:
        return 0
    text, count = kernel_text(types, checks, extra)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "checks.metal")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        arguments = []
        for i, (t, bits) in enumerate(zip(types, inputs)):
            path = os.path.join(folder, f"{i}.npy")
            write_npy(path, t.descr, bits, t.bits)
            arguments += ["-b", f"{i}={path}{t.suffix}"]
        for device in devices_of(title):
            out = os.path.join(folder, f"{device}.npy")
            done = subprocess.run([smelt, "run", source, *arguments, "-b", f"{len(types)}:out:uint64:{count * POINTS}={out}",
                                   "--grid", str(POINTS), "--threadgroup", "64", "--device", device],
                                  capture_output=True, text=True, timeout=1500, check=False)
            if done.returncode:
                print(f"{title} on {device}: exit status {done.returncode}: {done.stderr.strip()[:3000]}")
                return 1
            found, number = read_words(out), 0
            for width in WIDTHS:
                for check in checks:
                    if width not in check.widths:
                        continue
                    for i in range(POINTS):
                        wanted, bits = expected(check, types, inputs, width, i), found[number * POINTS + i]
                        if not same(check, bits, wanted):
                            values = [t.value(b[i]) for t, b in zip(types, inputs)]
                            print(f"{title} on {device}: {check.text} of width {width}, component {i % width}, of {values}: "
                                  f"{check.result.value(bits)!r}, expected {wanted!r}")
                            failures += 1
                            break
                    number += 1
    return failures


def main(groups):
    """groups: functions from the path of smelt to a number of failures."""
    failures = sum(group(sys.argv[1]) for group in groups)
    if failures:
        print(f"{failures} checks failed")
    sys.exit(1 if failures else 0)
