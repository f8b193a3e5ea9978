#!/usr/bin/env python3
"""Tries the libraries of gpu_libraries.py on a machine with a GPU: which of their mistakes does the suite notice?

    tests/mutations/gpu_try.py BUILD_FOLDER LIBRARIES [--only WORD …] [--jobs N] [--device NAME]

BUILD_FOLDER is a build or what tests/gpu/bundle.sh made of one; it is copied for each library. First the tests that
mutations name must pass on it as it is. Then each library is tried with its tests; if none fails, with a larger part of
the suite. A line each: caught, by what, or NOT CAUGHT. Exit status: 0 all were caught, 1 some were not, 2 nothing could be
said, 77 there is no GPU.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SUITE = pathlib.Path(__file__).resolve().parent.parent / "gpu/run_suite.py"
WIDER = "^(kernel_(simd|lanes|atomic|attributes|barrier|return|ml)|fuzz_(1|corpus)$)"


def run_suite(build, only, options, cache, jobs):
    """Exit status and output of the tests that fit."""
    command = [sys.executable, "-B", str(SUITE), str(build), "--device", options.device, "--only", only, "--jobs", str(jobs),
               "--limit", str(options.limit)]
    environment = {**os.environ, "SMELT_CACHE_DIR": str(cache)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout + done.stderr


def named(tests):
    return "^(" + "|".join(re.escape(name) for name in tests.split()) + ")$"


def copy_build(build, folder):
    for part in ("bin/smelt", "lib", "tests", "fuzz/fuzz_kernels"):
        for path in ([build / part] if (build / part).is_file() else (build / part).glob("*")):
            if path.is_file() and (os.access(path, os.X_OK) or ".so" in path.name):
                target = folder / path.relative_to(build)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)


def first_failure(output):
    lines = [line for line in output.splitlines() if line.startswith("FAILED")]
    return lines[0][:300] if lines else output.strip()[-300:]


def try_library(build, library, tests, options):
    """How the library fares and by what."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        copy_build(build, folder / "build")
        shutil.copy2(library, folder / "build/lib/libsmelt_compiler.so")
        (folder / "build/lib/smelt-cc1").unlink(missing_ok=True)  # which would compile in its place
        for only in (named(tests), WIDER):
            # A cache of its own: its code is this library's.
            status, output = run_suite(folder / "build", only, options, folder / "cache", 2)
            if status == 1:
                return "caught", first_failure(output)
            if status != 0:
                return "cannot be tried", output.strip()[-300:]
    return "NOT CAUGHT", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("libraries", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="libraries tried at once")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=float, default=90, help="seconds for each test")
    options = parser.parse_args()
    rows = [line.split("\t") for line in (options.libraries / "list.tsv").read_text().splitlines()]
    rows = [row for row in rows if not options.only or any(word in row[1] for word in options.only)]
    with tempfile.TemporaryDirectory() as cache:
        status, output = run_suite(options.build, named(" ".join(row[2] for row in rows)), options, cache, options.jobs * 2)
    if status != 0:
        print(f"the unchanged build does not pass:\n{output.strip()}")
        return 77 if status == 77 else 2
    counts = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = [(row, pool.submit(try_library, options.build, options.libraries / f"{row[0]}.so", row[2], options))
                   for row in rows]
        for (_, what, _), future in running:
            result, by = future.result()
            counts[result] = counts.get(result, 0) + 1
            print(f"{result:15} {what}" + (f"\n{'':15} {by}" if by else ""), flush=True)
    print(", ".join(f"{count} {result}" for result, count in counts.items()))
    return 0 if set(counts) <= {"caught"} else 1


sys.exit(main())
