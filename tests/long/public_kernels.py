#!/usr/bin/env python3
"""Compiles every kernel function of the .metal files in a folder cold, and prints what each took as a Markdown table.

    tests/long/public_kernels.py SMELT FOLDER [--cpu avx512|avx2|sse2 | --target sm_90a] [-I DIR]… [--constant NAME=VALUE]…
        [--threadgroup [REGEX=]X[,Y[,Z]]]… [--only REGEX] [--every N] [--rows N] [--no-assembly] [--bar SECONDS]

The columns are seconds of processor time until the first and the best code of one shape (`smelt show --time`), from the
source, with a precompiled prelude, forms that turned out too large included; instructions of the optimised and of the
vector IR; lines of assembly. The first code is quick code where there is some. The slowest rows come first, those over the
bar in bold. With --target, the code is PTX for that GPU, not assembled. What does not compile follows, by its message.
Function constants without a value are 1. The exit status is 1 if a kernel is over the bar.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIMIT = 300  # seconds for one command: it has limits of its own
MOST_CONSTANTS = 64
MISSING = re.compile(r"function constant \d+ \('([^']+)'\) has no value")
QUICK = re.compile(r"quick code, which takes .* and ([0-9.]+) ms of a processor")


class Trial:
    def __init__(self, options, cache):
        self.options = options
        self.environment = {**os.environ, "SMELT_CACHE_DIR": cache, **({"SMELT_CPU": options.cpu} if options.cpu else {})}
        self.given = dict(constant.split("=", 1) for constant in options.constant)

    def run(self, *arguments):
        try:
            done = subprocess.run([self.options.smelt, *arguments], capture_output=True, text=True, errors="replace", timeout=LIMIT,
                                  env=self.environment, check=False)
        except subprocess.TimeoutExpired:
            return None, f"smelt took over {LIMIT} s"
        return (done.stdout if done.returncode == 0 else None), (done.stderr.strip() or f"status {done.returncode}")

    def includes(self, file):
        folders = [*self.options.include, file.parent, *(p for p in file.parents if self.options.folder in p.parents), self.options.folder]
        return [argument for folder in folders for argument in ("-I", str(folder))]

    def threadgroup(self, name):
        size = None
        for given in self.options.threadgroup:
            pattern, equals, value = given.rpartition("=")
            if not equals or re.search(pattern, name):
                size = value
        return ["--threadgroup", size] if size else []

    def show(self, file, name, constants, *what):
        """Gives constants until none is missing."""
        for _ in range(MOST_CONSTANTS):
            values = [argument for key, value in constants.items() for argument in ("--constant", f"{key}={value}")]
            target = ("--target", self.options.target) if self.options.target else ()
            output, message = self.run("show", str(file), name, *what, *target, *self.includes(file), *self.threadgroup(name), *values)
            missing = MISSING.search(message) if output is None else None
            if not missing or missing[1] in constants:
                break
            constants[missing[1]] = self.given.get(missing[1]) or self.default(file, missing[1])
        return output, message

    @staticmethod
    def default(file, name):
        declared = re.search(rf"constant\s+(?:constexpr\s+)?(\w+)\s+{re.escape(name)}\b", file.read_text(errors="replace"))
        return "true" if declared and declared[1] == "bool" else "1"


def measure(trial, file, name):
    """A row, or the message."""
    constants = {}
    output, message = trial.show(file, name, constants, "--time")
    if output is None:
        return None, message
    stages = [re.split(r"  +", line.strip()) for line in output.splitlines()[1:]]
    times = [float(stage[2]) / 1000 for stage in stages if len(stage) == 4 and stage[2] != "-" and stage[0] not in ("precompile prelude", "total")]
    sizes = {stage[0]: stage[3] for stage in stages if len(stage) == 4}
    quick = QUICK.search(output)
    best = sum(times)
    assembly, _ = (None, None) if trial.options.no_assembly else trial.show(file, name, constants, "--stage", "ptx" if trial.options.target else "asm")
    return {"name": name, "file": file.name, "best": best, "first": float(quick[1]) / 1000 if quick else best,
            "optimised": sizes.get("optimise", "-"), "vector": "scalar code" if "lower" in sizes else sizes.get("vectorise", "-"),
            "assembly": str(assembly.count("\n")) if assembly else "-"}, None


def short(message):
    """The first error, without what differs from kernel to kernel."""
    line = next((line for line in message.splitlines() if "error" in line), message.splitlines()[0])
    line = re.sub(r"^.*?error: ", "", re.sub(r"^smelt: ", "", line))
    return re.sub(r"kernel '[^']*'", "kernel", line)[:160]


def entries(trial):
    for file in sorted(trial.options.folder.rglob("*.metal")):
        output, message = trial.run("build", str(file), "--list-entries", *trial.includes(file))
        if output is None:
            yield file, None, message
        for name in (output or "").split("\n"):
            if name and re.search(trial.options.only, name):
                yield file, name, None


def print_table(rows, options):
    rows.sort(key=lambda row: -row["best"])
    print("| entry | file | first, s | best, s | IR | vector IR | lines of assembly |\n|---|---|---|---|---|---|---|")
    for row in rows[:options.rows]:
        mark = "**" if row["best"] > options.bar else ""
        print(f"| `{row['name']}` | {row['file']} | {row['first']:.2f} | {mark}{row['best']:.2f}{mark} | {row['optimised']} | {row['vector']} | {row['assembly']} |")


def print_failures(failures):
    for message, names in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"- {len(names)}: {message} (`{names[0]}`)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("smelt")
    parser.add_argument("folder", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--cpu", choices=["avx512", "avx2", "sse2"])
    parser.add_argument("--target", metavar="NAME")
    parser.add_argument("-I", dest="include", action="append", default=[], metavar="DIR")
    parser.add_argument("--constant", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--threadgroup", action="append", default=[], metavar="[REGEX=]X[,Y[,Z]]")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth entry")
    parser.add_argument("--rows", type=int, default=20, metavar="N")
    parser.add_argument("--no-assembly", action="store_true")
    parser.add_argument("--bar", type=float, default=5, metavar="SECONDS")
    options = parser.parse_args()
    rows, failures = [], collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="smelt-public-") as cache:
        trial = Trial(options, cache)
        for number, (file, name, message) in enumerate(entries(trial)):
            if number % options.every:
                continue
            row, message = measure(trial, file, name) if name else (None, message)
            if row:
                rows.append(row)
            else:
                failures[short(message)].append(name or file.name)
            print(f"{name or file.name}: {row['best'] if row else message.splitlines()[0]}", file=sys.stderr, flush=True)
    over = sum(row["best"] > options.bar for row in rows)
    failed = sum(len(names) for names in failures.values())
    print(f"{len(rows) + failed} entries: {len(rows)} compiled, {over} of them over {options.bar:g} s; {failed} did not compile.\n")
    print_table(rows, options)
    print_failures(failures)
    return 1 if over else 0


sys.exit(main())
