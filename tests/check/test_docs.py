#!/usr/bin/env python3
"""Runs the commands in the pages on checking, and compares the reports there with what the program prints.

Usage: test_docs.py SMELT [--write]. In docs/checking-examples.md, which has an example of each finding, a block of Metal
is the file that the command after it checks. The commands of docs/checking.md check files of this folder. A line `…` in a
report stands for any lines. --write replaces the reports of the examples by what the program prints.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

FOLDER = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(FOLDER, "..", "..", "docs")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
COMMAND = "$ smelt check "


def report(smelt, command, folder):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SMELT_CHECK")}
    done = subprocess.run([smelt, "check", *shlex.split(command)], cwd=folder, env=environment, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return done.stdout


def blocks_with_reports(text):
    """The match of each block that begins with a command, with the last block of Metal before it, or None."""
    source = None
    for block in BLOCK.finditer(text):
        if block.group(1) == "cpp":
            source = block.group(2)
        elif block.group(2).startswith(COMMAND):
            yield block, source


def run(smelt, block, source):
    command, shown = block.group(2)[len(COMMAND):].split("\n", 1)
    file = shlex.split(command)[0]
    if os.path.exists(os.path.join(FOLDER, file)):
        return command, shown, report(smelt, command, FOLDER)
    if not source:
        return command, shown, None
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
            out.write(source)
        return command, shown, report(smelt, command, folder)


def is_shown(shown, printed):
    parts = [re.escape(part) for part in shown.split("…\n")]
    return re.fullmatch("(?:.*\n)*?".join(parts), printed) is not None


def codes_without_example():
    """The codes in docs/checking.md that no report in docs/checking-examples.md shows."""
    with open(os.path.join(DOCS, "checking.md"), encoding="utf-8") as all_codes, \
         open(os.path.join(DOCS, "checking-examples.md"), encoding="utf-8") as examples:
        shown = "".join(block.group(2) for block in BLOCK.finditer(examples.read()))
        return sorted(code for code in set(re.findall(r"SM\d+", all_codes.read())) if f"({code})" not in shown)


def main():
    smelt, write = os.path.abspath(sys.argv[1]), sys.argv[2:] == ["--write"]
    count = wrong = 0
    with ThreadPoolExecutor(2) as pool:
        for page in ("checking.md", "checking-examples.md"):
            path = os.path.join(DOCS, page)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            work = list(blocks_with_reports(text))
            results = list(pool.map(lambda item: run(smelt, *item), work))
            for (block, _), (command, shown, printed) in reversed(list(zip(work, results))):
                if printed is None:
                    continue  # a kernel that is not in this folder
                count += 1
                if is_shown(shown, printed):
                    continue
                wrong += 1
                print(f"{page}: smelt check {command}\nprints\n{printed}")
                text = text[:block.start(2)] + COMMAND + command + "\n" + printed + text[block.end(2):]
            if write and page == "checking-examples.md":
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
    missing = codes_without_example()
    if missing:
        print(f"docs/checking-examples.md does not show {', '.join(missing)}")
    print(f"{count} reports, {wrong} wrong")
    return 1 if (wrong and not write) or missing or not count else 0


if __name__ == "__main__":
    sys.exit(main())
