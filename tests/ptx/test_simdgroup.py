"""Simdgroup operations and barriers as PTX: which lanes come to one together. Run as `test_simdgroup.py SMELT`.

Cases of tests/kernels run on threads that are scheduled at random (warps.py); texts are looked at for what must not be there."""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cases import run_case, show  # noqa: E402

# ---- Texts.

def text_of(body, arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.body")
        with open(path, "w", encoding="utf-8") as file:
            file.write("uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;\n" + body)
        return show(path, ["-i", "x=zeros:float32:256", "-o", "out:float32:256", "--grid", "256", *arguments])


def counts(text):
    """Shuffles, votes, reductions, and how many of them name other lanes than all 32."""
    found = [len(re.findall(rf"\b{name}\.sync", text)) for name in ("shfl", "vote", "redux")]
    whole = set(re.findall(r"mov\.b32 \t(%r\d+), -1;", text)) | {"-1"}
    masks = re.findall(r"\b(?:shfl|vote|redux)\.sync[^;]*, (\S+);", text)
    return (*found, sum(mask not in whole for mask in masks))


def expect_counts(what, body, arguments, wanted):
    found = counts(text_of(body, arguments))
    assert found == wanted, f"{what}: shuffles, votes, reductions, partial masks are {found}, expected {wanted}"


def check_texts():
    group = ["--threadgroup", "64"]
    expect_counts("a sum of floats in whole simdgroups", "out[i] = simd_sum(x[i]);", group, (5, 0, 0, 0))
    expect_counts("a greatest float", "out[i] = simd_max(x[i]);", group, (0, 2, 1, 0))
    expect_counts("a simdgroup that may be partial", "out[i] = simd_sum(x[i]);", ["--threadgroup", "40"], (5, 1, 0, 0))
    expect_counts("a loop and a branch that all lanes take alike", """float sum = 0;
        for (uint k = 0; k < threads_per_grid.x; k++) sum += float(simd_sum(int(x[i + k])));
        if (t / 32 == 0) sum += float(simd_sum(int(x[i])));
        if (t < 32) sum += float(simd_sum(int(x[i + 1])));
        out[i] = sum;""", group, (0, 0, 3, 0))
    expect_counts("a branch that lanes take differently: a vote, and who goes there", """float sum = 0;
        if (x[i] > 0) sum = float(simd_sum(int(i)));
        out[i] = sum + float(simd_sum(int(i * 2)));""", group, (0, 1, 2, 1))
    expect_counts("lanes that have returned are not asked for", """if (x[i] > 0) { out[i + 1] = 1; return; }
        out[i] = float(simd_sum(int(i)));""", group, (0, 0, 1, 0))
    returning = text_of("""threadgroup float tile[64];
        for (int k = 0; k < 3; k++) {
          if (x[i + k] > 0) { out[i] = float(k); return; }
          tile[t] = x[i] + float(k);
          threadgroup_barrier(mem_flags::mem_threadgroup);
          out[i] += tile[t ^ 1];
          threadgroup_barrier(mem_flags::mem_threadgroup);
        }""", group)
    assert "barrier.sync" not in returning and returning.count("bar.sync") == 6, "barriers that all lanes left come to"
    # Three returns, which may share one, and the end of the kernel.
    ends = len(re.findall(r"\b(?:exit|ret);", returning))
    assert ends >= 2, f"threads that return between barriers: {ends} ends of their own, expected 2"


run_case("simd_divergent")
run_case("simd_signs")
run_case("simd_control_flow")
run_case("simd_votes")
run_case("simd_leaving")
run_case("simd_ways_out")
run_case("simd_ways_rounds", only="40")
run_case("simd_ways_again", only="40")
run_case("barrier_bitonic", only="64")
run_case("return_stores")
run_case("barrier_returns", unused=("x",), only="70")
run_case("barrier_return_sums", only="96")
run_case("barrier_return_rounds")
run_case("barrier_ways_rounds", only="40")
run_case("barrier_ways_memory", only="40")
run_case("barrier_ways_shared", only="40")
run_case("barrier_ways_rounds_apart", only="40")
run_case("barrier_ways_meet", only="40")
run_case("barrier_ways_levels", only="40")
run_case("barrier_ways_either", only="40")
run_case("barrier_ways_nested", only="40")
run_case("barrier_ways_past", only="40")
run_case("barrier_ways_left", only="40")
run_case("barrier_tail")
check_texts()
