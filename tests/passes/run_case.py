#!/usr/bin/env python3
"""Runs passes of the compiler alone on the program of a case, and looks for what they should leave of it.

Usage: run_case.py RUN_PASS LIBRARY CASE      one case
       run_case.py RUN_PASS LIBRARY --all     that every pass has a case

A case is a file NAME.ll of LLVM text, with comments:

    ; run: simd sink,sink-optimised              an engine (scalar, simd, ptx, check), and the passes, each of which runs alone …
    ; run: ptx ptx-inline+ptx-retarget aligned=1 … or, with +, after those before it; then fields of the shape (run_pass.c)
    ; run: all sink                              the first three; for ptx after ptx-target, whose machine LLVM's passes ask
    ; expect: store i32 %x, ptr {…}              is part of a line of the result, behind the lines of the expectations before;
                                                 {…} stands for anything, {NAME:…} for a word that is the same further on
    ; absent: sdiv                               is in no line of it; {NAME:…} is the word that an expectation found
    ; fails: main.metal:3: …                     instead: the pass fails with this message, word for word

Expectations hold for all runs above them, as far as the next `run` behind an expectation.
"""
import os
import pathlib
import re
import subprocess
import sys

ENGINES = ["scalar", "simd", "ptx", "check"]
LINE = re.compile(r"^; (run|expect|absent|fails): (.*)$")


class Part:
    """Runs that are expected to leave the same."""

    def __init__(self):
        self.runs, self.expected, self.absent, self.fails = [], [], [], None


def read_case(path):
    parts = [Part()]
    for line in path.read_text(encoding="utf-8").split("\n"):
        found = LINE.match(line)
        if not found:
            continue
        word, rest = found.groups()
        part = parts[-1]
        if word == "run":
            if part.expected or part.absent or part.fails:
                parts.append(Part())
            engine, passes, *shape = rest.split()
            for one in ENGINES[:3] if engine == "all" else [engine]:
                first = "ptx-target+" if engine == "all" and one == "ptx" else ""
                parts[-1].runs += [(one, first + names, shape) for names in passes.split(",")]
        elif word == "fails":
            part.fails = rest
        else:
            (part.expected if word == "expect" else part.absent).append(rest.strip())
    return parts


def pattern_of(text, names):
    """A regular expression; `names` keeps the words that {NAME:…} found."""
    pattern, seen = "", set()
    for piece in re.split(r"(\{(?:\w+:)?…\})", text):
        name = piece[1:-2].rstrip(":")
        if not re.fullmatch(r"\{(?:\w+:)?…\}", piece):
            pattern += re.escape(piece)
        elif not name:
            pattern += ".*"
        elif name in names:
            pattern += re.escape(names[name])
        else:
            pattern += f"(?P={name})" if name in seen else rf"(?P<{name}>[\w.%@]+)"
            seen.add(name)
    return re.compile(pattern)


def code_lines(text):
    """Without comments, declarations of the module's name and runs of spaces."""
    lines = [re.sub(r"\s+", " ", re.sub(r"\s;.*$", "", line)).strip() for line in text.split("\n")]
    return [line for line in lines if line and not line.startswith((";", "source_filename"))]


def problems(part, output):
    lines, at, names = code_lines(output), 0, {}
    for text in part.expected:
        pattern = pattern_of(text, names)
        for number in range(at, len(lines)):
            found = pattern.search(lines[number])
            if found:
                at = number + 1
                names.update(found.groupdict())
                break
        else:
            yield f"expected, and not found behind line {at}: {text}"
    for text in part.absent:
        yield from (f"not expected: {line}" for line in lines if pattern_of(text, names).search(line))


def execute(tools, path, engine, names, shape):
    command = [*tools[:1], tools[1], engine, names.replace("+", ","), str(path), *shape]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def check_case(tools, path):
    failed = False
    for part in read_case(path):
        for run in part.runs:
            done = execute(tools, path, *run)
            if part.fails:
                wrong = [] if done.returncode == 1 and done.stderr.strip() == part.fails else [
                    f"expected to fail with: {part.fails}\nexit status {done.returncode}, message: {done.stderr}"]
            elif done.returncode != 0:
                wrong = [f"exit status {done.returncode}: {done.stderr}"]
            else:
                wrong = list(problems(part, done.stdout))
            if wrong:
                print(f"{path.name}, {run[1]} of {run[0]}:", *wrong, done.stdout, sep="\n")
                failed = True
        failed |= not part.runs or not (part.expected or part.absent or part.fails)
    return failed


def check_all(tools, folder):
    """Every pass that an engine lists is the last of some run on that engine."""
    runs = {run[1] for path in folder.glob("*.ll") for part in read_case(path) for run in part.runs}
    last, named, listed = {names.split("+")[-1] for names in runs}, {name for names in runs for name in names.split("+")}, set()
    for engine in ENGINES:
        message = execute(tools, os.devnull, engine, "?", []).stderr
        passes = message.partition("; expected ")[2].strip().split(", ")
        listed.update(passes)
        print(f"{engine}: {len(passes)} passes")
    missing = [f"{name}: no case in {folder} runs it" for name in sorted(listed - last)]
    missing += [f"{name}: a case runs it, and no engine lists it" for name in sorted(named - listed)]
    print(*missing, sep="\n")
    return bool(missing) or len(listed) < 30


def main():
    tools, what = sys.argv[1:3], sys.argv[3]
    folder = pathlib.Path(__file__).parent
    return 1 if (check_all(tools, folder) if what == "--all" else check_case(tools, pathlib.Path(what))) else 0


sys.exit(main())
