#!/usr/bin/env python3
"""Threadgroups of one thread: neighbours are joined to gangs, and each thread still sees a group of its own."""
import array
import os

from support import expect_equal, run_tests

SEEN = """#include <metal_stdlib>
using namespace metal;
kernel void seen(device uint *out [[buffer(0)]], uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
                 uint3 at [[thread_position_in_grid]], uint3 in [[thread_position_in_threadgroup]],
                 uint index [[thread_index_in_threadgroup]], uint3 size [[threads_per_threadgroup]],
                 uint3 all [[threads_per_grid]], uint lane [[thread_index_in_simdgroup]]) {
    device uint *mine = out + 8 * ((at.z * all.y + at.y) * all.x + at.x);
    mine[0] = group.x;
    mine[1] = group.y;
    mine[2] = group.z;
    mine[3] = groups.x * 10000 + groups.y * 100 + groups.z;
    mine[4] = in.x + in.y + in.z + index + lane;
    mine[5] = size.x * 100 + size.y * 10 + size.z;
    mine[6] = all.x * 10000 + all.y * 100 + all.z;
    mine[7] = 1;
    for (uint i = 0; i < group.x % 5; i++) mine[7] = mine[7] * 3 + i;
}
"""
# Has threadgroup memory: its groups stay as they are.
APART = """#include <metal_stdlib>
using namespace metal;
kernel void apart(device uint *out [[buffer(0)]], uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]]) {
    threadgroup uint counter;
    counter = group;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[group] = counter * 10 + groups % 10;
}
"""


def run(scratch, text, function, count, grid, device):
    source, out = os.path.join(scratch.out, function + ".metal"), os.path.join(scratch.out, "out.npy")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    done = scratch.run(["run", source, function, "-b", f"0:out:uint32:{count}={out}", "--grid", grid, "--threadgroup", "1,1,1",
                        "--device", device])
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    with open(out, "rb") as file:
        data = file.read()
    numbers = array.array("I")
    numbers.frombytes(data[10 + int.from_bytes(data[8:10], "little"):])
    return numbers.tolist()


def seen_by(x, y, z, sizes):
    """What the thread of this position writes."""
    value = 1
    for i in range(x % 5):
        value = value * 3 + i
    packed = sizes[0] * 10000 + sizes[1] * 100 + sizes[2]
    return [x, y, z, packed, 0, 111, packed, value]


def test_each_thread_sees_a_group_of_its_own(scratch):
    for x, y, z in ((8, 1, 1), (33, 3, 2), (7, 5, 1), (300, 40, 1)):
        found = run(scratch, SEEN, "seen", 8 * x * y * z, f"{x},{y},{z}", "cpu")
        expected = [n for c in range(z) for b in range(y) for a in range(x) for n in seen_by(a, b, c, (x, y, z))]
        wrong = [i for i, (one, other) in enumerate(zip(found, expected)) if one != other]
        expect_equal((len(found), wrong[:8]), (len(expected), []), f"numbers of a grid of {x}, {y}, {z} that are wrong")


def test_threadgroup_memory_keeps_groups_apart(scratch):
    found = run(scratch, APART, "apart", 77, "77,1,1", "cpu")
    expect_equal(found, [10 * i + 7 for i in range(77)], "a variable of each group")


run_tests(globals())
