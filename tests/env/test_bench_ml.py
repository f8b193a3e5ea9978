#!/usr/bin/env python3
"""A trial run of `smelt bench ml`: every way to write every kernel gives right results, with each instruction set."""
import json
import os

from support import FULL, TIERS, expect, expect_equal, run_tests

WAYS = {"matvec-q4_0": 3, "matvec-q5_0": 3, "matvec-q8_0": 3, "matvec-mxfp4": 3, "matvec-q4_K": 3, "matvec-q6_K": 3,
        "matmat-f16": 2, "matmat-q4_0": 1, "attention": 4, "softmax-rows": 5, "rms-norm": 4}


def run_quick(scratch, jobs, **changes):
    done = scratch.run(["bench", "ml", *jobs, "--quick", "--json"], timeout=300, SMELT_TIERS=TIERS, **changes)
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    return json.loads(done.stdout)


def expect_ways(rows, ways):
    timed = [row for row in rows if "note" not in row]
    for row in timed:
        expect(row["median_s"] > 0 and "error" not in row, f"no time in {row}")
    found = {job: sum(row["job"] == job and not row["variant"].startswith(("floor", "PyTorch")) for row in timed) for job in ways}
    expect_equal(found, ways, "the ways that took part")
    floors = {row["job"] for row in timed if row["variant"].startswith("floor")}
    expect_equal(floors, set(ways), "the jobs with a floor")


# The jobs that run in code for narrower registers; make check runs them only there.
NARROW = {"avx2": ("matvec-mxfp4", "matmat-f16", *(("matvec-q4_K", "attention") if FULL else ())),
          "sse2": ("matvec-q8_0", "matvec-q6_K")}


def test_every_way_is_right(scratch):
    full = FULL or "SMELT_CPU" in os.environ  # the suite for one CPU of make check-long
    jobs = {job: ways for job, ways in WAYS.items() if full or job not in NARROW["avx2"] + NARROW["sse2"]}
    expect_ways(run_quick(scratch, [] if full else list(jobs)), jobs)


def test_every_way_is_right_with_256_bits(scratch):
    jobs = {job: ways for job, ways in WAYS.items() if job in NARROW["avx2"]}
    expect_ways(run_quick(scratch, list(jobs), SMELT_CPU="avx2"), jobs)


def test_narrow_memory_is_right_with_128_bits(scratch):
    jobs = {job: ways for job, ways in WAYS.items() if job in NARROW["sse2"]}
    expect_ways(run_quick(scratch, list(jobs), SMELT_CPU="sse2"), jobs)


run_tests(globals())
