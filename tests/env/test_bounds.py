#!/usr/bin/env python3
"""Code that tests accesses (docs/checking.md#every-run) compares little: what its text shows."""
from support import expect, expect_equal, run_tests

TILES = """#include <metal_stdlib>
using namespace metal;
typedef INTEGER integer;
kernel void tiles(device const float *a [[buffer(0)]], device float *o [[buffer(1)]], constant integer &size [[buffer(2)]],
                  uint2 at [[thread_position_in_grid]], uint2 me [[thread_position_in_threadgroup]]) {
  threadgroup float tile[8][32];
  float sum = 0;
  for (integer base = 0; base < size; base += 32) {
    tile[me.y][me.x] = a[integer(at.y) * size + base + integer(me.x)];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < 32; k++) sum += tile[me.y][k];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  o[at.y * 32 + at.x] = sum;
}
"""


def comparisons(scratch, integer):
    """How many there are; None: this is not a CPU with AVX2."""
    source = scratch.file("tiles.metal", TILES.replace("INTEGER", integer))
    done = scratch.run(["show", source, "--threadgroup", "32,8", "--stage", "asm"], SMELT_CPU="avx2")
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    if "warning" in done.stderr:
        return None
    return sum(line.startswith("\tsetae\t") for line in done.stdout.splitlines())


def test_a_question_before_a_loop_compares_rows(scratch):
    """A gang of two rows of 32 threads, in eight registers: the first and the last round of each row, and the store."""
    compared = comparisons(scratch, "int")
    expect(compared is None or 0 < compared <= 8, f"comparisons that are kept: {compared}")


def test_where_an_unsigned_index_may_wrap_it_compares_vectors(scratch):
    """2^32 - 1 and 0 may be in one row: the first and the last round of each register, the store, and the launch's answer."""
    compared = comparisons(scratch, "uint")
    expect(compared is None or 8 < compared <= 18, f"comparisons that are kept: {compared}")


run_tests(globals())
