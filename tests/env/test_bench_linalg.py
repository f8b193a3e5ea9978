#!/usr/bin/env python3
"""A trial run of `smelt bench linalg`: every factorisation and solve is right and takes part; without LAPACK a row says so."""
import json
import os

from support import SMELT, TIERS, expect, expect_equal, run_tests

# The cache that the unit tests fill: the kernels are compiled once.
CACHE = os.path.join(os.path.dirname(os.path.dirname(SMELT)), "test-cache")

JOBS = {"cholesky", "cholesky-2048", "cholesky-batch", "qr", "qr-tall", "qr-batch", "lu", "lu-batch", "solve", "triangular"}
EXTENDED = {"cholesky-extended", "qr-extended", "dot-extended"}


def test_every_factorisation_is_right(scratch):
    done = scratch.run(["bench", "linalg", "--quick", "--json"], timeout=600, SMELT_CACHE_DIR=CACHE, SMELT_TIERS=TIERS)
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    rows = json.loads(done.stdout)
    timed = [row for row in rows if "note" not in row]
    for row in timed:
        expect(row["median_s"] >= 0 and "error" not in row, f"no time in {row}")
    for variant, jobs in (("smelt", JOBS), ("native", EXTENDED), ("extended", EXTENDED)):
        expect_equal({row["job"] for row in timed if row["variant"] == variant}, jobs, f"the jobs with {variant}")
    with_lapack = {row["job"] for row in rows if row["variant"] == "OpenBLAS's LAPACK"}
    expect_equal(with_lapack, JOBS, "the jobs with LAPACK, or a note that it is absent")
    accuracy = [row["note"] for row in rows if row["job"] == "accuracy"]
    expect_equal(len(accuracy), 14, "the rows of accuracy")
    expect(all("extended" in note for note in accuracy), f"expected both precisions: {accuracy}")


run_tests(globals())
