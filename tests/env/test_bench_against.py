#!/usr/bin/env python3
"""`smelt bench … --against BUILD`: rounds of two builds alternate; each job's variants have both medians and their ratio."""
import csv
import json
import math
import os
import stat

from support import SMELT, expect, expect_equal, run_tests

BUILD = os.path.dirname(os.path.dirname(SMELT))
QUICK = ["bench", "cpu", "launch", "--quick"]
VARIANTS = ["one group of 32", "64 groups of 32, awake"]


def script(scratch, text):
    """A build's folder whose bin/smelt is a shell script."""
    path = os.path.join(scratch.path, "other", "bin", "smelt")
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, stat.S_IRWXU)
    return os.path.join(scratch.path, "other")


def test_both_builds_have_figures(scratch):
    for other in (SMELT, BUILD):
        done = scratch.run([*QUICK, "--json", "--against", other])
        expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
        rows = json.loads(done.stdout)
        expect_equal([(row["job"], row["variant"]) for row in rows], [("launch", name) for name in VARIANTS], "the rows")
        for row in rows:
            ratio = row["median_s"] / row["other_median_s"]
            expect(math.isclose(row["ratio"], ratio, rel_tol=1e-6), f"the ratio is not {ratio}: {row}")


def test_rounds_alternate(scratch):
    """The other build's times are its own, and each build begins every other round."""
    order = os.path.join(scratch.path, "order")
    other = script(scratch, f'''[ "$1" = --version ] && exec echo "smelt 0.0.1"
echo "$@" >> {order}
printf '[\\n {{"job": "launch", "variant": "one \\\\"group", "median_s": %s, "iqr_s": 0}}\\n]\\n' "$(wc -l < {order})"
''')
    done = scratch.run(["bench", "cpu", "launch", "--repeat", "3", "--json", "--against", other])
    rows = json.loads(done.stdout)
    expect_equal({row["variant"]: row["other_median_s"] for row in rows},
                 {'one "group': 2, VARIANTS[0]: None, VARIANTS[1]: None}, "the other build's medians")
    with open(order, encoding="utf-8") as file:
        expect_equal(file.read().splitlines(), ["bench cpu launch --json --repeat 3"] * 3, "what the other build was told")


def test_tables_and_csv(scratch):
    done = scratch.run([*QUICK, "--against", BUILD])
    rows = done.stdout.splitlines()
    expect(rows[0].split()[-5:] == ["this", "build", "other", "build", "ratio"] and len(rows) == 3, f"not {done.stdout}")
    rows = list(csv.DictReader(scratch.run([*QUICK, "--csv", "--against", BUILD]).stdout.splitlines()))
    expect_equal([row["variant"] for row in rows], VARIANTS, "the variants in CSV")
    expect(all(float(row["other_median_s"]) > 0 for row in rows), f"no times in {rows}")
    rows = list(csv.DictReader(scratch.run([*QUICK, "--csv"]).stdout.splitlines()))
    expect_equal([(row["variant"], row["anchor"]) for row in rows], list(zip(VARIANTS, ("5 us", "25 us"))), "CSV of one build")


def test_a_failure_is_told(scratch):
    other = script(scratch, '[ "$1" = --version ] && exec echo "smelt 0.0.1"\necho "smelt: no such job" >&2; exit 2\n')
    done = scratch.run([*QUICK, "--json", "--against", other])
    expect_equal((done.returncode, done.stderr), (2, "smelt: no such job\n"), "status and messages")
    expect(all(row["median_s"] > 0 and row["other_median_s"] is None for row in json.loads(done.stdout)), done.stdout)


def test_a_build_that_cannot_be_used(scratch):
    empty = os.path.join(scratch.path, "empty")
    os.mkdir(empty)
    for other, message in (("/no/such/build", "'/no/such/build' cannot be run: No such file or directory"),
                           (empty, f"'{empty}/bin/smelt' cannot be run: No such file or directory"),
                           ("/bin/true", "'/bin/true --version' does not answer like smelt")):
        done = scratch.run([*QUICK, "--against", other])
        expect_equal((done.returncode, done.stdout, done.stderr), (2, "", f"smelt: --against is '{other}': {message}\n"), other)
    done = scratch.run([*QUICK, "--json", "--csv"])
    expect_equal((done.returncode, done.stderr), (2, "smelt: --json and --csv are both given; expected one of them\n"), "both")


run_tests(globals())
