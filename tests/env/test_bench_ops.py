#!/usr/bin/env python3
"""A trial run of `smelt bench ops`: every operation gives right results and takes part next to its floor."""
import json

from support import TIERS, expect, expect_equal, run_tests

JOBS = {"softmax", "log-softmax", "layer-norm", "rms-norm", "rope", "transpose", "sum", "cumsum", "sort", "fft", "hadamard",
        "conv2d", "depthwise", "matmul", "grid-sample", "chunk-inverse", "gated-delta", "random-uniform", "random-normal",
        "quantize", "dequantize", "softmax-row", "sum-row", "layer-norm-row", "cumsum-row", "argmax-row",
        "sort-row"}


def test_every_operation_is_right(scratch):
    done = scratch.run(["bench", "ops", "--quick", "--json"], timeout=300, SMELT_TIERS=TIERS)
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    rows = [row for row in json.loads(done.stdout) if "note" not in row]
    for row in rows:
        expect(row["median_s"] > 0 and "error" not in row, f"no time in {row}")
    for variant in ("smelt", "floor"):
        found = {row["job"] for row in rows if row["variant"].startswith(variant)}
        expect_equal(found, JOBS, f"the jobs with {variant}")


run_tests(globals())
