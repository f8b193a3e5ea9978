#!/usr/bin/env python3
"""Runs the test-suite of a build once more under other conditions: with code for a smaller CPU, on a busy machine, or
without the sampling that keeps `make check` short.

    tests/long/suite.py BUILD [--cpu avx2|sse2] [--busy PROCESSES] [--full] [--only REGEX] [--jobs N]

Prints the failures and ctest's closing lines. The exit status is ctest's.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile


def busy_processes(count):
    """Processes that only take processor time, at the priority of the tests."""
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]


def run(options, folder):
    """ctest keeps its logs in the folder it runs in: one of our own, since the build's may belong to a ctest that runs this."""
    (folder / "CTestTestfile.cmake").write_text(f'subdirs("{options.build.resolve()}")\n')
    command = ["ctest", "--output-on-failure", "-j", str(options.jobs), "-R", options.only]
    environment = {**os.environ, **({"SMELT_CPU": options.cpu} if options.cpu else {}),
                   **({"SMELT_TEST_FULL": "1"} if options.full else {})}
    others = busy_processes(options.busy)
    try:
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    finally:
        for process in others:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--cpu", choices=["avx2", "sse2"])
    parser.add_argument("--busy", type=int, default=0, metavar="PROCESSES")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="smelt-suite-") as folder:
        return run(options, pathlib.Path(folder))


sys.exit(main())
