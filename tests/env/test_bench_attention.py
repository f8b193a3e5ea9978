#!/usr/bin/env python3
"""A trial run of `smelt bench attention`: the jobs on the CPU give right results and times; those on a GPU say why not."""
import json

from support import TIERS, expect, expect_equal, run_tests


def test_jobs_on_the_cpu(scratch):
    done = scratch.run(["bench", "attention", "cpu-64-causal", "cpu-64-vjp", "--quick", "--json"], timeout=300, SMELT_TIERS=TIERS)
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    rows = [row for row in json.loads(done.stdout) if "note" not in row and row["variant"].startswith("smelt")]
    expect_equal({row["job"]: row["variant"] for row in rows},
                 {"cpu-64-causal": "smelt_attention", "cpu-64-vjp": "smelt_attention_vjp"}, "the jobs and their variants")
    for row in rows:
        expect(row["median_s"] > 0 and "error" not in row, f"no time in {row}")


def test_jobs_on_a_gpu_have_a_time_or_a_reason(scratch):
    done = scratch.run(["bench", "attention", "gpu-64", "--quick", "--json"], timeout=300, SMELT_TIERS=TIERS)
    rows = [row for row in json.loads(done.stdout) if row["variant"] == "smelt_attention"]
    expect(done.returncode == 0 and rows, f"status {done.returncode}: {done.stdout} {done.stderr}")
    expect(all(row.get("note") or row["median_s"] > 0 for row in rows), f"neither a time nor a reason: {rows}")


run_tests(globals())
