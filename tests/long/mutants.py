#!/usr/bin/env python3
"""Every access of random kernels, changed to miss its array by one element, at both ends: smelt check must name each.

Usage: mutants.py SMELT [KERNELS] [FIRST_SEED]. A kernel has accesses of device, threadgroup, private and constant
arrays, reads and writes, in expressions and loops, one per line. Each adds an element of a list of shifts to its index:
all 0 is right, and must give no finding; a mutant shifts one access so that its greatest index is the array's size, or
its least one is -1. SM001 must be found at that line, about that array and that element.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TYPES = {"int": "int32", "float": "float32", "short": "int16", "uchar": "uint8", "half": "float16", "long": "int64"}
GROUP = 32


class Access:
    def __init__(self, array, line, low, high):
        self.array, self.line, self.low, self.high = array, line, low, high


class Kernel:
    """Its text, the accesses, and the sizes of the arrays."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.threads = GROUP * self.random.randint(1, 3)
        self.types = {name: self.random.choice(list(TYPES)) for name in ("a", "s", "p", "k", "table")}
        self.accesses, self.body = [], []
        for _ in range(self.random.randint(7, 11)):
            self.add_read(self.random.choice(("a", "a", "s", "p", "p", "k", "table")))
        self.add_writes()
        self.sizes = {}
        for name in ("a", "s", "p", "k", "table", "o"):
            most = max((access.high for access in self.accesses if access.array == name), default=0)
            self.sizes[name] = most + 1 + self.random.choice((0, 0, 1, 7))
        self.sizes["s"] = max(self.sizes["s"], GROUP)

    def span(self, array):
        """An index expression, the loop around it ("" for none), and its least and greatest value."""
        r = self.random
        position, count = ("int(t)", GROUP) if array == "s" else ("int(i)", self.threads)
        factor, offset = r.randint(1, 3), r.randint(0, 4)
        form = r.randrange(5 if array in ("a", "k") else 4)
        if array in ("p", "table") and form in (0, 1):
            form = 2
        if form == 0:
            return f"{position} * {factor} + {offset}", "", offset, (count - 1) * factor + offset
        if form == 1:
            return f"{count - 1 + offset} - {position}", "", offset, count - 1 + offset
        if form == 2:
            modulus = r.randint(2, 9)
            return f"({position} + {offset}) % {modulus}", "", 0, modulus - 1
        rounds, start = r.randint(2, 6), r.randint(0, 2)
        loop = f"for (int j = {start}; j < {start + rounds}; j++) "
        if form == 3:
            return f"j * {factor} + {offset}", loop, start * factor + offset, (start + rounds - 1) * factor + offset
        return f"{position} + j * {factor}", loop, start * factor, count - 1 + (start + rounds - 1) * factor

    def add_line(self, text):
        self.body.append(text)
        return len(self.body) - 1

    def add_read(self, array):
        index, loop, low, high = self.span(array)
        number = len(self.accesses)
        line = self.add_line(f"  {loop}acc += int({array}[{index} + m[{number}]]);")
        self.accesses.append(Access(array, line, low, high))

    def add_writes(self):
        """At the end: each thread its own element."""
        self.add_line("  threadgroup_barrier(mem_flags::mem_threadgroup);")
        number = len(self.accesses)
        line = self.add_line(f"  s[int(t) + m[{number}]] = acc & 15;")
        self.accesses.append(Access("s", line, 0, GROUP - 1))
        modulus = self.random.randint(2, 9)
        line = self.add_line(f"  p[acc * 0 + int(i) % {modulus} + m[{number + 1}]] = acc & 7;")
        self.accesses.append(Access("p", line, 0, modulus - 1))
        line = self.add_line(f"  acc += int(p[(int(i) + 1) % {modulus} + m[{number + 2}]]);")
        self.accesses.append(Access("p", line, 0, modulus - 1))
        factor = self.random.randint(1, 2)
        line = self.add_line(f"  o[int(i) * {factor} + m[{number + 3}]] = acc;")
        self.accesses.append(Access("o", line, 0, (self.threads - 1) * factor))

    def text(self):
        head = ["#include <metal_stdlib>", "using namespace metal;",
                f"constant {self.types['table']} table[{self.sizes['table']}] = {{{', '.join(str(k % 7) for k in range(self.sizes['table']))}}};",
                "kernel void f(constant int *m [[buffer(0)]], "
                f"device const {self.types['a']} *a [[buffer(1)]], device int *o [[buffer(2)]], "
                f"constant {self.types['k']} *k [[buffer(3)]], uint i [[thread_position_in_grid]], "
                "uint t [[thread_position_in_threadgroup]]) {",
                f"  threadgroup {self.types['s']} s[{self.sizes['s']}];", f"  {self.types['p']} p[{self.sizes['p']}];",
                f"  for (int j = 0; j < {self.sizes['p']}; j++) p[j] = j;",
                f"  for (uint j = t; j < {self.sizes['s']}; j += {GROUP}) s[j] = j & 7;",
                "  threadgroup_barrier(mem_flags::mem_threadgroup);", "  int acc = 0;"]
        self.first_line = len(head) + 1
        return "\n".join([*head, *self.body, "}"]) + "\n"

    def command(self, path, shifts):
        arrays = [("1", TYPES[self.types["a"]], self.sizes["a"]), ("3", TYPES[self.types["k"]], self.sizes["k"])]
        inputs = [part for index, dtype, size in arrays for part in ("-b", f"{index}=ones:{dtype}:{size}")]
        return ["check", path, "f", "--bytes", "0=int32:" + ",".join(map(str, shifts)), *inputs,
                "-b", f"2:out:int32:{self.sizes['o']}", "--grid", str(self.threads), "--threadgroup", str(GROUP), "--json"]

    def mutants(self):
        yield None, [0] * len(self.accesses), 0
        for number, access in enumerate(self.accesses):
            for index, shift in ((self.sizes[access.array], self.sizes[access.array] - access.high), (-1, -1 - access.low)):
                yield access, [shift if k == number else 0 for k in range(len(self.accesses))], index


def problem(smelt, kernel, path, access, shifts, index):
    done = subprocess.run([smelt, *kernel.command(path, shifts)], capture_output=True, text=True, timeout=600, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return f"exit status {done.returncode}: {done.stderr.strip()}"
    if not access:
        return f"a right kernel has findings: {[f['message'] for f in found]}" if found else None
    line = kernel.first_line + access.line
    for f in found:
        if (f["code"], f["line"], f["argument"], f["index"]) == ("SM001", line, access.array, index):
            return None
    seen = [(f["code"], f["line"], f["argument"], f["index"]) for f in found]
    return f"{access.array}[{index}] at line {line} is not found, but {seen}"


def main():
    smelt = os.path.abspath(sys.argv[1])
    kernels = int(sys.argv[2]) if len(sys.argv) > 2 else 90
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    count = wrong = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        for seed in range(first, first + kernels):
            kernel = Kernel(seed)
            path = os.path.join(folder, f"k{seed}.metal")
            with open(path, "w", encoding="utf-8") as file:
                file.write(kernel.text())
            tries = list(kernel.mutants())
            for message in pool.map(lambda one: problem(smelt, kernel, path, *one), tries):
                if message:
                    print(f"seed {seed}: {message}")
                    wrong += 1
            count += len(tries) - 1
    print(f"{kernels} kernels, {count} mutants, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
