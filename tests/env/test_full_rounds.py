#!/usr/bin/env python3
"""Loops whose full rounds have no masks: lanes that do not enter the loop, or leave it early, do nothing in it."""
import array
import os

from support import expect_equal, run_tests

THREADS, MOST = 64, 200
TEXT = """#include <metal_stdlib>
using namespace metal;
kernel void rounds(device uint *out [[buffer(0)]], constant uint &n [[buffer(1)]], constant uint &few [[buffer(2)]],
                   uint t [[thread_position_in_grid]]) {
    uint sum = 0, inner = 0;
    if (t % 7 < few) {
        for (uint i = t; i < n; i += 64) {
            sum += i;
            for (uint k = 0; k < few; k++) inner += i * k + 1;
            out[128 + i] = t + 1;
        }
    }
    out[2 * t] = sum;
    out[2 * t + 1] = inner;
}
"""


def expected(n, few):
    out = [0] * (2 * THREADS + MOST)
    for t in range(THREADS):
        for i in range(t, n, THREADS) if t % 7 < few else ():
            out[2 * t] += i
            out[2 * t + 1] += sum(i * k + 1 for k in range(few))
            out[128 + i] = t + 1
    return out


def test_lanes_outside_do_nothing(scratch):
    source, result = os.path.join(scratch.out, "rounds.metal"), os.path.join(scratch.out, "out.npy")
    with open(source, "w", encoding="utf-8") as file:
        file.write(TEXT)
    for cpu in ("native", "avx2", "sse2"):
        changes = {} if cpu == "native" else {"SMELT_CPU": cpu}
        for n, few in ((0, 7), (10, 7), (64, 7), (MOST, 7), (MOST, 3), (130, 1), (MOST, 0)):
            done = scratch.run(["run", source, "rounds", "-b", f"0:out:uint32:{2 * THREADS + MOST}={result}", "--bytes", f"1=uint32:{n}",
                                "--bytes", f"2=uint32:{few}", "--grid", str(THREADS), "--threadgroup", str(THREADS)], **changes)
            expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
            with open(result, "rb") as file:
                data = file.read()
            found = array.array("I")
            found.frombytes(data[10 + int.from_bytes(data[8:10], "little"):])
            wrong = [i for i, (one, other) in enumerate(zip(found, expected(n, few))) if one != other]
            expect_equal(wrong[:8], [], f"elements that are wrong with {cpu}, {n} numbers and {few} of 7 threads")


run_tests(globals())
