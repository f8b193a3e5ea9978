#!/usr/bin/env python3
"""A trial run of `smelt bench cpu`: every job's variants, the hand-written ones among them, give right results, and the
rows are of the promised form."""
import json
import math

from support import TIERS, expect, expect_equal, run_tests

JOBS = {"exp", "softmax-tree", "softmax-simd", "matmul-tiled", "matmul-register", "matmul-simdgroup", "inverse", "grid-sample",
        "divergent", "gelu-chain"}
BY_HAND = {"exp": 1, "softmax-tree": 1, "softmax-simd": 1, "matmul-tiled": 1, "matmul-register": 2, "inverse": 2,
           "grid-sample": 1, "gelu-chain": 1}


def has_avx512():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        flags = next((line for line in file if line.startswith("flags")), "").split()
    return {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"} <= set(flags)


def expect_row(row):
    expect({"job", "variant", "median_s", "iqr_s", "anchor", "ratio"} <= set(row), f"a key is missing in {row}")
    expect("error" not in row, f"a variant failed: {row}")
    if "note" not in row:
        expect(row["median_s"] > 0 and row["iqr_s"] >= 0, f"no time in {row}")
    if row["anchor"] is not None:
        expect(row["ratio"] > 0, f"no ratio in {row}")


def test_every_job_is_right(scratch):
    done = scratch.run(["bench", "cpu", "--quick", "--json"], SMELT_TIERS=TIERS)
    rows = json.loads(done.stdout) if done.stdout else []
    expect(done.returncode == 0 and not done.stderr, f"status {done.returncode}: {done.stderr}{done.stdout}")
    for row in rows:
        expect_row(row)
    for device in ("smelt cpu", "smelt cpu-scalar"):
        found = {row["job"] for row in rows if row["variant"] == device}
        expect_equal(found, JOBS, f"the jobs of {device}")
    timed = {job: sum(row["job"] == job and row["variant"].startswith("hand-written") and "note" not in row for row in rows)
             for job in BY_HAND}
    if not has_avx512():
        expect_equal(timed, dict.fromkeys(BY_HAND, 0), "hand-written code without AVX-512")
        return "passed, but this CPU has no AVX-512: the hand-written code was not run"
    expect_equal(timed, BY_HAND, "hand-written code that took part")
    return None


def test_jobs_are_chosen_and_compared(scratch):
    done = scratch.run(["bench", "cpu", "divergent", "launch", "--quick", "--json"])
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    rows = json.loads(done.stdout)
    expect_equal({row["job"] for row in rows}, {"divergent", "launch"}, "the jobs")
    times = {row["variant"]: row for row in rows if row["job"] == "divergent"}
    ratio = times["smelt cpu"]["median_s"] / times["smelt cpu-scalar"]["median_s"]
    expect_equal(times["smelt cpu"]["anchor"], "smelt cpu-scalar", "the anchor")
    expect(math.isclose(times["smelt cpu"]["ratio"], ratio, rel_tol=1e-6), f"the ratio is not {ratio}: {times}")


def test_a_table_has_one_row_a_variant(scratch):
    done = scratch.run(["bench", "cpu", "launch", "--quick"])
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    rows = done.stdout.splitlines()
    expect(rows[0].startswith("job ") and len(rows) == 3, f"expected a head and two rows, not {done.stdout}")


def test_a_job_that_fails_is_a_row(scratch):
    done = scratch.run(["bench", "cpu", "divergent", "launch", "--quick", "--json"], SMELT_CLANG="/no/such/clang")
    expect_equal(done.returncode, 3, "status")
    rows = json.loads(done.stdout)
    expect_equal({row["job"] for row in rows}, {"divergent", "launch"}, "the jobs that have rows")
    expect(all("/no/such/clang" in row["error"] and row["median_s"] is None for row in rows), f"expected errors: {rows}")


def test_names_are_checked(scratch):
    for arguments, message in (
            (["cpu", "exponential"], "benchmark 'exponential' is unknown; see smelt bench --help"),
            (["exp"], "benchmark 'exp' is unknown; see smelt bench --help"),
            (["compile", "exp"], "benchmark 'exp' is unknown; see smelt bench --help"),
            (["cpu", "exp", "cpu"], "benchmark 'cpu' is named twice"),
            (["gpu", "matmul", "cpu", "cpu"], "benchmark 'cpu' is named twice"),
            (["gpu", "matmul", "gpu"], "benchmark 'gpu' is named twice"),
            (["gpu", "copy", "matmul", "matmul", "--against", "/no/such/build"],
             "--against is '/no/such/build': '/no/such/build' cannot be run: No such file or directory")):
        done = scratch.run(["bench", *arguments])
        expect_equal((done.returncode, done.stderr.strip(), done.stdout), (2, "smelt: " + message, ""),
                     " ".join(arguments))


def test_the_cost_of_compiling_is_measured(scratch):
    done = scratch.run(["bench", "compile", "--quick", "--json"])
    rows = json.loads(done.stdout) if done.stdout else []
    expect(done.returncode == 0 and not done.stderr, f"status {done.returncode}: {done.stderr}{done.stdout}")
    for row in rows:
        expect_row(row)
    found = [(row["job"], row["variant"]) for row in rows]
    expect_equal(found, [("cold compile", "exp kernel, warm prelude"), ("disk hit", "exp kernel"),
                         ("look-up and launch", "exp kernel, 64 threads"), ("cold command", "smelt run, exp kernel, warm prelude"), ("one entry of 200", "reading the file"),
                         ("one entry of 200", "compiling the entry"), ("one entry of 200", "clang, processor time"),
                         ("one entry of 200", "all but code generation"), ("a new library", "one load"),
                         ("a new library", "50 loads, 200 threads"), ("a new library", "200 loads, 200 threads"),
                         ("200 new kernels", "16 threads"), ("200 new kernels", "processor time / CPUs")], "the rows")


run_tests(globals())
