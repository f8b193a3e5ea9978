#!/usr/bin/env python3
"""Runs the cases of tests/kernels and the tests of tests/ml with every access of memory checked: right results, and no
finding but those that a case names.

Usage: checked.py BUILD
"""
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

TESTS = pathlib.Path(__file__).resolve().parent.parent
# A launch of these takes a GPU's size of work.
LEFT_OUT = {"ml_tensor"}


def run(command, **settings):
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000, check=False, env={**os.environ, **settings})
    return done.returncode, done.stdout + done.stderr


def main():
    build = pathlib.Path(sys.argv[1])
    smelt, case = str(build / "bin/smelt"), str(TESTS / "kernels/run_case.py")
    cases = sorted(path for path in (TESTS / "kernels").iterdir() if path.suffix in (".metal", ".body"))
    programs = sorted(path for path in (build / "tests").glob("ml_*") if os.access(path, os.X_OK) and path.name not in LEFT_OUT)
    with ThreadPoolExecutor(2) as pool:
        work = {path.name: pool.submit(run, [sys.executable, case, smelt, str(path)], SMELT_CASE_DEVICES="check") for path in cases}
        work |= {path.name: pool.submit(run, [str(path)], SMELT_CHECK="1") for path in programs}
    wrong = {name: done.result()[1] for name, done in work.items() if done.result()[0] != 0}
    for name, output in wrong.items():
        print(f"{name}:\n{output}")
    print(f"{len(cases)} cases and {len(programs)} programs, {len(wrong)} wrong")
    return 1 if wrong or not cases or not programs else 0


sys.exit(main())
