#!/usr/bin/env python3
"""Code that tests accesses (docs/checking.md#every-run) compares little: what its text shows."""
from support import expect, expect_equal, run_tests

TILES = """#include <metal_stdlib>
using namespace metal;
kernel void tiles(device const float *a [[buffer(0)]], device float *o [[buffer(1)]], constant uint2 &size [[buffer(2)]],
                  uint2 at [[thread_position_in_grid]], uint2 me [[thread_position_in_threadgroup]]) {
  threadgroup float tile[8][32];
  float sum = 0;
  for (uint base = 0; base < size.x; base += 32) {
    tile[me.y][me.x] = a[at.y * size.y + base + me.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < 32; k++) sum += tile[me.y][k];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  o[at.y * 32 + at.x] = sum;
}
"""


def test_a_question_before_a_loop_compares_rows_not_vectors(scratch):
    """A gang of two rows of 32 threads, in eight registers: the first and the last round of each row, and the store."""
    done = scratch.run(["show", scratch.file("tiles.metal", TILES), "--threadgroup", "32,8", "--stage", "asm"], SMELT_CPU="avx2")
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    if "warning" in done.stderr:  # not a CPU with AVX2
        return
    compared = sum(line.startswith("\tsetae\t") for line in done.stdout.splitlines())
    expect(0 < compared <= 8, f"comparisons that are kept: {compared}")


run_tests(globals())
