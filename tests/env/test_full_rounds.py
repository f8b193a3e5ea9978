#!/usr/bin/env python3
"""Loops whose full rounds have no masks: lanes that do not enter the loop, or leave it early, do nothing in it."""
import array
import math
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


# A loop of one block: its last rounds are written once for all vectors of lanes. What it carries and leaves behind.
TURNS = """#include <metal_stdlib>
using namespace metal;
kernel void turns(device float *out [[buffer(0)]], device const float *x [[buffer(1)]], device const float *y [[buffer(2)]],
                  constant uint &n [[buffer(3)]], constant uint &few [[buffer(4)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float part[THREADS];
    float sum = t, top = -INFINITY;
    uint last = 7, rounds = 0;
    if (t % 7 < few) {
        for (uint i = t; i < n; i += THREADS) {
            float v = x[i];
            out[3 * THREADS + i] = v * sum;
            sum += v;
            top = max(top, y[i]);
            last = i;
            rounds++;
        }
        sum += 1;
    }
    part[t] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[t] = part[THREADS - 1 - t] + rounds;
    out[THREADS + t] = top;
    out[2 * THREADS + t] = last;
}
"""


def expected_turns(threads, n, few, elements):
    out = [0.0] * (3 * threads + MOST_ELEMENTS)
    sums, counts = [], []
    for t in range(threads):
        total, top, last, rounds = float(t), -math.inf, 7, 0
        if t % 7 < few:
            for i in range(t, n, threads):
                out[3 * threads + i] = elements[i] * total
                total += elements[i]
                top, last, rounds = max(top, elements[i]), i, rounds + 1
            total += 1
        sums.append(total)
        counts.append(rounds)
        out[threads + t], out[2 * threads + t] = top, last
    for t in range(threads):
        out[t] = sums[threads - 1 - t] + counts[t]
    return out


MOST_ELEMENTS = 1100


def test_the_last_rounds_of_vectors_in_turn(scratch):
    result, numbers = os.path.join(scratch.out, "turns.npy"), os.path.join(scratch.out, "x.npy")
    elements = [float(i * 37 % 101 - 40) for i in range(MOST_ELEMENTS)]  # sums are exact
    with open(numbers, "wb") as file:
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({MOST_ELEMENTS},), }}".ljust(117).encode() + b"\n"
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + array.array("f", elements).tobytes())
    for threads in (64, 96, 256):
        source = os.path.join(scratch.out, f"turns_{threads}.metal")
        with open(source, "w", encoding="utf-8") as file:
            file.write(TURNS.replace("THREADS", str(threads)))
        for cpu in ("native", "avx2", "sse2"):
            changes = {} if cpu == "native" else {"SMELT_CPU": cpu}
            for n, few in ((0, 7), (10, 7), (threads, 7), (1000, 7), (1000, 3), (1100, 7), (threads + 1, 1), (1000, 0)):
                done = scratch.run(["run", source, "turns", "-b", f"0:out:float32:{3 * threads + MOST_ELEMENTS}={result}", "-b",
                                    f"1={numbers}", "-b", f"2={numbers}", "--bytes", f"3=uint32:{n}", "--bytes", f"4=uint32:{few}",
                                    "--grid", str(threads), "--threadgroup", str(threads)], **changes)
                expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
                with open(result, "rb") as file:
                    data = file.read()
                found = array.array("f")
                found.frombytes(data[10 + int.from_bytes(data[8:10], "little"):])
                right = expected_turns(threads, n, few, elements)
                wrong = [i for i, (one, other) in enumerate(zip(found, right)) if one != other]
                expect_equal(wrong[:8], [], f"elements that are wrong with {cpu}, {threads} threads, {n} numbers and {few} of 7")
        done = scratch.run(["show", source, "turns", "--stage", "simd", "--threadgroup", str(threads)], SMELT_CPU="avx2")
        expect_equal("\nturn" in done.stdout, True, f"a loop over the vectors of {threads} threads")


run_tests(globals())
