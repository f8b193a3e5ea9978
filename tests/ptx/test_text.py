#!/usr/bin/env python3
"""text.py finds mistakes that are planted in PTX, each by its line, and none in the PTX of a kernel with most kinds of
declarations.

Usage: test_text.py SMELT
"""
import os
import subprocess
import sys
import tempfile

from text import problems_of

KERNEL = """#include <metal_stdlib>
using namespace metal;
constant float first[] = {1, 2, 3}, second[] = {4, 5, 6, 7};
constant constant float *const rows[] = {first, second};
__attribute__((noinline)) float deep(float x, int n) { return n < 1 ? x : deep(x * 1.5f, n - 1) + n; }
kernel void k(device float *out [[buffer(0)]], device const int *in [[buffer(1)]], uint i [[thread_position_in_grid]],
              uint t [[thread_index_in_threadgroup]]) {
  threadgroup float shared[64];
  float own[20];
  for (int k = 0; k < 20; k++) own[(k * in[i]) % 20] = k;
  shared[t] = rows[in[i] & 1][i % 3] + own[in[i] % 20] + in[i] / (long)in[0];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = simd_sum(shared[63 - t]) + deep(in[i], in[i]);
}
"""
# What is replaced, by what, and what is found then.
PLANTED = [
    ("mov.u32 \t%r", "mov.u32 \t%q", "register %q"),
    ("\t.reg .b64 ", "\t.reg .b32 ", "takes 64 bits"),
    ("add.s64 ", "add.s32 ", "takes 32 bits"),
    (".reg .pred \t%p<", ".reg .b32 \t%p<", "no declared predicate"),
    ("bra \t$", "bra \t$none", "label $none"),
    ("@%p", "@%q", "condition %q"),
    ("{_ZL5first", "{_ZL5fist", "'_ZL5fist' is not declared"),
    (".u64 _ZL4rows", ".u32 _ZL4rows", "holds an address in u32"),
    (".extern .shared", "//", "'__smelt_shared' is not declared"),
    ("mov.u32 \t", "griddepcontrol.wait; mov.u32 \t", "not an instruction of sm_80"),
    ("\t.reg .b32 ", "\t.register .b32 ", "directive .register is unknown"),
    (".target sm_80", ".target sm_86", "not for sm_80"),
]


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.metal")
        with open(path, "w", encoding="utf-8") as file:
            file.write(KERNEL)
        done = subprocess.run([sys.argv[1], "show", path, "k", "--stage", "ptx", "--target", "sm_80", "--threadgroup", "64"],
                              capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert problems_of(done.stdout, "sm_80") == [], problems_of(done.stdout, "sm_80")[:3]
    for right, wrong, message in PLANTED:
        assert right in done.stdout, f"the kernel's PTX has no {right!r}"
        found = problems_of(done.stdout.replace(right, wrong, 1), "sm_80")
        assert any(message in one for one in found), f"{right!r} replaced by {wrong!r}: {found[:3]}"
    print(f"{len(PLANTED)} mistakes found")


main()
