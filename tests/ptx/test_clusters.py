"""Kernels that run in clusters of threadgroups: the PTX declares the clusters' size, and registers suffice for the tensor
cores' sums. Run as `test_clusters.py SMELT`."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SMELT = os.path.abspath(sys.argv[1])
PRODUCT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "kernels", "matmul", "best_warpgroups.metal")
ARGUMENTS = ["-b", "0=rand:bfloat16:512x512", "-b", "1=rand:bfloat16:512x512", "-b", "2:out:bfloat16:512x512", "--bytes",
             "3=int32:512,512,512,512", "--bytes", "4=int32:512,512", "--bytes", "5=int64:0,0,1,0"]
RANKS = """#include <metal_stdlib>
kernel void ranks(device uint *out [[buffer(0)]], uint group [[threadgroup_position_in_grid]]) {
    if (__smelt_gpu_target() != 901) return;
    __smelt_ptx_clusters(SIZE);
    out[group] = __smelt_ptx_cluster_rank();
}
"""


def ptx_of(source, *arguments):
    shown = subprocess.run([SMELT, "show", source, *arguments, "--groups", "8", "--stage", "ptx", "--target", "sm_90a"],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{source}: {shown.stderr}"
    return shown.stdout


def assemble(folder, text):
    """The messages of ptxas; None: it is not installed."""
    if not shutil.which("ptxas"):
        return None
    path = os.path.join(folder, "kernel.ptx")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    made = subprocess.run(["ptxas", "-arch=sm_90a", "-v", path, "-o", path + ".cubin"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stderr


def check_directive(folder, size, expected):
    path = os.path.join(folder, "ranks.metal")
    with open(path, "w", encoding="utf-8") as file:
        file.write(RANKS.replace("SIZE", str(size)))
    text = ptx_of(path, "-b", "0:out:uint32:8", "--threadgroup", "1")
    found = re.findall(r"^\.reqnctapercluster (.*)$", text, re.M)
    assert found == expected, f"clusters of {size}: expected {expected}, found {found}"
    assert "%cluster_ctarank" in text, f"clusters of {size}: the rank is missing"
    assemble(folder, text)


def check_product(folder):
    text = ptx_of(PRODUCT, "best_warpgroups_bfloat", *ARGUMENTS, "--threadgroup", "384")
    assert ".reqnctapercluster 2, 1, 1" in text, "the product does not run in clusters"
    assert text.count(".multicast::cluster") == 2, "expected two copies to both threadgroups, half of the columns of B"
    said = assemble(folder, text)
    if said is not None:  # C75…: wgmma instructions run one after another
        assert "0 bytes stack frame, 0 bytes spill stores" in said and "C75" not in said, said


with tempfile.TemporaryDirectory() as temporary:
    check_directive(temporary, 1, [])
    check_directive(temporary, 2, ["2, 1, 1"])
    check_product(temporary)
