#!/usr/bin/env python3
"""Makes PTX of every kernel that the GPU suite runs, without a GPU: of the cases of tests/kernels, of all entries of tests/ml, of
the random kernels that once failed. Each must be well formed (tests/ptx/text.py), and where an assembler for PTX is in PATH
(ptxas), it must take each.

Usage: make_ptx.py SMELT [--only REGEX] [--jobs N] [--every N] [--keep FOLDER] [--target sm_90a]…
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "ptx"))

from text import problems_of  # noqa: E402


def of_cases(smelt, folder):
    sys.argv = ["run_case.py"]
    case_of = runpy.run_path(str(TESTS / "kernels/run_case.py"), run_name="cases")
    for path in sorted((TESTS / "kernels").iterdir()):
        if path.suffix not in (".metal", ".body"):
            continue
        chosen = case_of["choices"](str(path))[0]
        command, _ = case_of["Case"](str(path), chosen).command(str(smelt), "cpu", str(folder))
        at = command.index("--device")
        yield f"kernel_{path.stem}", [command[0], "show", *command[2:at], *command[at + 2:]]


def of_families(smelt):
    for path in sorted((TESTS / "ml").glob("*.metal")):
        done = subprocess.run([smelt, "build", path, "--list-entries"], capture_output=True, text=True, check=True)
        for entry in done.stdout.splitlines():
            yield f"ml_{path.stem}.{entry}", [smelt, "show", path, entry]


def show(command, target):
    """Function constants without which there is no code are 1; groups have four simdgroups if all of these must take part."""
    command = [*map(str, command), "--stage", "ptx", "--target", target]
    while True:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1500)
        if "by a part of the threadgroup" in done.stderr and "--threadgroup" not in command:
            command += ["--threadgroup", "128"]
            continue
        lacking = re.search(r"function constant (\d+) .*has no value", done.stderr)
        if not lacking or f"{lacking.group(1)}=1" in command:
            return done
        command += ["--constant", f"{lacking.group(1)}=1"]


def make(name, command, target, options, folder):
    """What is wrong with one; None if nothing."""
    done = show(command, target)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]
    problems = problems_of(done.stdout, target)
    if problems:
        return f"{len(problems)} problems in its text: {problems[0]}"
    path = folder / f"{name}.{target}.ptx"
    path.write_text(done.stdout)
    if not options.ptxas:
        return None
    done = subprocess.run([options.ptxas, f"-arch={target}", "-o", os.devnull, str(path)], capture_output=True, text=True,
                          check=False)
    return None if done.returncode == 0 else "ptxas: " + (done.stdout + done.stderr).strip()[:500]


def make_all(name, command, options, folder):
    """For one target after another: the first one's run of clang serves all."""
    return [f"{target}: {problem}" for target in options.target if (problem := make(name, command, target, options, folder))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("smelt", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1, help="of the kernels, one in so many (SMELT_TEST_FULL=1: all)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path, help="where the PTX is kept")
    parser.add_argument("--target", action="append", help="sm_90a unless given; may be repeated")
    options = parser.parse_args()
    options.target = options.target or ["sm_90a"]
    options.ptxas = shutil.which("ptxas")
    failed = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        smelt = options.smelt.resolve()
        kernels = [(n, c) for n, c in [*of_cases(smelt, folder), *of_families(smelt)] if re.search(options.only, n)]
        kernels = kernels[::1 if "SMELT_TEST_FULL" in os.environ else options.every]
        for (name, _), problems in zip(kernels, pool.map(lambda k: make_all(k[0], k[1], options, folder), kernels)):
            failed += bool(problems)
            for problem in problems:
                print(f"{name}, {problem}", flush=True)
    print(f"PTX of {len(kernels)} kernels for {' and '.join(options.target)}, {failed} failed"
          + ("" if options.ptxas else "; not assembled: there is no ptxas in PATH"))
    return 1 if failed else 0


sys.exit(main())
