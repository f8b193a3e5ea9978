#!/usr/bin/env python3
"""Runs `smelt check` on every kernel of this folder's .metal files, and compares what it finds with the marks there.

Usage: test_planted.py SMELT [DEVICE]. A kernel is run with the arguments of the line `// run:` before it. Its findings are
marked at the ends of the lines where they happen: `// SM001 a[64]` is the code, and (optional) the argument or variable
with the index of the element. A function above a kernel belongs to it. `// finding: SM006 out[28]` is a finding without
a line. A .body file is one kernel.

On a GPU, a checked run ends at the first access that is out of bounds or misaligned, of any thread, and finds nothing
else: this access must be one of the marks SM001 and SM012.
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

FOLDER = os.path.dirname(os.path.abspath(__file__))


FINDING = r"^// finding: (SM\d+) (\w+)(?:\[(-?\d+)\])?$"


def unplaced(found):
    """The mark of a line that FINDING matches: it has the line 0."""
    return 0, found.group(1), found.group(2), int(found.group(3)) if found.group(3) else None


def cases(path):
    """The name of each kernel, its arguments, and the marks: (line, code, argument, index)."""
    arguments, marks = None, []
    with open(path, encoding="utf-8") as file:
        lines = list(enumerate(file, 1))
    name = None
    for number, line in lines:
        run = re.match(r"// run: (.*)", line)
        if run:
            arguments, name = shlex.split(run.group(1)), None
        kernel = re.match(r"kernel void (\w+)", line)
        if kernel:
            name = kernel.group(1)
        mark = re.search(r"// ((?:SM\d+ ?)+)(\w+)?(?:\[(-?\d+)\])?$", line.rstrip())
        whole = re.match(FINDING, line)
        if whole:
            marks += [unplaced(whole)]
        elif mark:
            index = int(mark.group(3)) if mark.group(3) else None
            marks += [(number, code, mark.group(2), index) for code in mark.group(1).split()]
        if name and line.startswith("}"):
            yield name, arguments, marks
            name, marks = None, []


def body_case(path):
    """The same of a .body file, whose marks have the line 0."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    marks = [unplaced(whole) for whole in re.finditer(FINDING, text, re.M)]
    return os.path.basename(path), shlex.split(re.search(r"^// run: (.*)", text, re.M).group(1)), marks


def findings(smelt, path, name, arguments, device="cpu"):
    source = ["--body", path] if path.endswith(".body") else [path, name]
    command = [smelt, "check", *source, *arguments, "--json", "--device", device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return None, f"exit status {done.returncode}: {done.stderr.strip()}"
    if done.returncode != (1 if any(f["kind"] not in ("advice", "coverage") for f in found) else 0):
        return None, f"exit status {done.returncode} with {len(found)} findings"
    return found, None


def problem(smelt, path, name, arguments, marks):
    found, message = findings(smelt, path, name, arguments)
    if message:
        return message
    if not any(code == "SM026" for _, code, _, _ in marks):
        found = [f for f in found if f["code"] != "SM026"]  # the compiler warns about the whole file
    expected = sorted((line, code) for line, code, _, _ in marks)
    seen = sorted((f["line"], f["code"]) for f in found)
    if sorted(set(seen)) != sorted(set(expected)):
        return f"finds {seen}, expected {expected}: " + "; ".join(f["message"] for f in found)
    for line, code, argument, index in marks:
        told = [f for f in found if (f["line"], f["code"]) == (line, code)]
        if argument and not any(f["argument"] == argument for f in told):
            return f"line {line} is about {[f['argument'] for f in told]}, expected {argument}"
        if index is not None and not any(f["index"] == index for f in told):
            return f"line {line} is about the elements {[f['index'] for f in told]}, expected {index}"
    return None


STOPPED = "the value is used by another function before it is thrown away: GPUs, and runs without checks, stop at it"
# What GPUs do not find, and why.
NOT_ON_GPUS = {
    "private_array_by_a_constant": "the optimiser knows that the access is out of bounds, and removes it",
    "in_a_function": "the optimiser knows that the access is out of bounds, and removes it",
    "that_reads_too_far": "assertions are evaluated on CPUs only",
    "read_and_thrown_away": STOPPED,
    "a_matrix_out_of_bounds": STOPPED,
    "a_greatest_that_no_lane_needs": STOPPED,
}


def is_for_gpus(case):
    _, name, arguments, marks = case
    return name not in NOT_ON_GPUS and "--also" not in arguments and not any(code in ("SM007", "SM015") for _, code, _, _ in marks)


def problem_on_gpu(smelt, path, name, arguments, marks, device):
    found, message = findings(smelt, path, name, arguments, device)
    if message:
        return message
    found = [f for f in found if f["code"] != "SM026"]
    expected = [(line, code, argument) for line, code, argument, _ in marks if code in ("SM001", "SM012")]
    if not expected and not found:
        return None
    private = {"private array"}  # the optimiser drops the names of variables
    told = [f for f in found for line, code, argument in expected
            if (f["line"], f["code"]) == (line, code) and f["argument"] in {argument or f["argument"]} | private]
    if len(found) != 1 or not told:
        return f"expected one of {expected}, finds {len(found)}: " + "; ".join(f["message"] for f in found)
    return None


def outputs_are_written(smelt):
    """A run without findings gives its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "o.npy")
        found, message = findings(smelt, os.path.join(FOLDER, "races.metal"), "the_same_value",
                                  ["-b", f"0:out:int32:4={file}", "--grid", "128", "--threadgroup", "64"])
        if message or found:
            return f"an output's file: {message or found}"
        with open(file, "rb") as written:
            return None if written.read().endswith(b"\7\0\0\0" * 4) else "an output's file has other values"


def main():
    smelt, device, wrong = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "cpu", 0
    work = [(os.path.join(FOLDER, file), *case) for file in sorted(os.listdir(FOLDER)) if file.endswith(".metal")
            for case in cases(os.path.join(FOLDER, file))]
    work += [(os.path.join(FOLDER, file), *body_case(os.path.join(FOLDER, file))) for file in sorted(os.listdir(FOLDER))
             if file.endswith(".body")]
    on_gpu = not device.startswith("cpu")
    if on_gpu:
        work = [case for case in work if is_for_gpus(case)]
    with ThreadPoolExecutor(2) as pool:
        run = lambda case: problem_on_gpu(smelt, *case, device=device) if on_gpu else problem(smelt, *case)
        for (path, name, *_), message in zip(work, pool.map(run, work)):
            if message:
                print(f"{os.path.basename(path)} {name}: {message}")
                wrong += 1
    message = None if on_gpu else outputs_are_written(smelt)
    if message:
        print(message)
        wrong += 1
    print(f"{len(work)} kernels, {sum(len(case[3]) for case in work)} marks, {wrong} wrong")
    return 1 if wrong or not work else 0


if __name__ == "__main__":
    sys.exit(main())
