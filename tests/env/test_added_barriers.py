#!/usr/bin/env python3
"""Barriers that hold back stores to threadgroup memory: kernels with such a race get them, others none."""
import os

from support import expect_equal, run_tests

HEAD = """#include <metal_stdlib>
using namespace metal;
kernel void k(device float *x [[buffer(0)]], constant uint &n [[buffer(1)]], uint t [[thread_position_in_threadgroup]],
              uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float m[256];
"""
PARTS = "  if (lane == 0) m[simdgroup] = simd_sum(x[t]);\n"
BARRIER = "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"


def barriers(scratch, body, threads, passed):
    path = os.path.join(scratch.path, "k.metal")
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD + body + "}\n")
    done = scratch.run(["show", path, "--after", passed, "--threadgroup", str(threads)])
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    return done.stdout.count("call void @__smelt_threadgroup_barrier")


def added(scratch, body, threads=256):
    return barriers(scratch, body, threads, "overwritten") - barriers(scratch, body, threads, "bfloat")


def test_races_get_barriers(scratch):
    again = "  float s = simd_sum(m[lane]);\n" + PARTS.replace("x[t]", "x[t] * s") + BARRIER + "  x[t] = m[lane];\n"
    first = "  float s = m[0];\n  m[t] = x[t] - s;\n" + BARRIER + "  x[t] = m[t ^ 1];\n"
    loop = "  float s = 0;\n  for (uint i = 0; i < n; i++) s += m[i];\n" + PARTS.replace("x[t]", "x[t] * s") + BARRIER + "  x[t] = m[lane];\n"
    end = "  float s = m[lane];\n  if (x[t] > 0) {\n    m[t] = s;\n    return;\n  }\n  x[t] = s;\n"
    for name, body in [("lanes", again), ("the first element", first), ("a loop", loop), ("an end", end)]:
        expect_equal(added(scratch, PARTS + BARRIER + body), 1, name)
        expect_equal(added(scratch, PARTS + BARRIER + body, 32), 0, f"{name}, one simdgroup")
    rounds = "  for (uint i = 0; i < n; i++) {\n" + PARTS + BARRIER + "    x[t] += m[lane];\n  }\n"
    expect_equal(added(scratch, rounds), 1, "the next round of a loop")


def test_others_get_none(scratch):
    own = "  m[t] = m[t] + x[t];\n" + BARRIER + "  x[t] = m[t ^ 1];\n"
    tree = "".join(f"  if (t < {s}) m[t] += m[t + {s}];\n{BARRIER}" for s in (128, 64, 32)) + "  x[t] = m[0];\n"
    one = "  if (simdgroup == 0) {\n    float s = simd_sum(m[lane]);\n    if (lane == 0) m[0] = s;\n  }\n" + BARRIER + "  x[t] = m[0];\n"
    apart = "  float s = m[lane];\n  if (lane == 0) m[32 + simdgroup] = simd_sum(s);\n" + BARRIER + "  x[t] = m[32 + lane];\n"
    areas = ("  float s = 0;\n  for (uint i = 0; i < n; i++) s += m[simdgroup * 8 + i];\n"
             "  m[simdgroup * 8 + lane % 8] = s;\n" + BARRIER + "  x[t] = m[t ^ 8];\n")
    some = "  if (x[t] > 0) {\n    float s = m[lane];\n    m[simdgroup] = s;\n  }\n"
    for name, body in [("own elements", own), ("a tree", tree), ("the first simdgroup", one), ("other elements", apart), ("areas of simdgroups", areas),
                       ("no place for all threads", some)]:
        expect_equal(added(scratch, PARTS + BARRIER + body), 0, name)


run_tests(globals())
