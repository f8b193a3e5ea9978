#!/usr/bin/env python3
"""Runs one tool over the tracked sources. Exit status 77, with a sentence, where the tool is not installed.

    lint.py TOOL BUILD_FOLDER        TOOL: clang_format, ruff
"""
import os
import shutil
import subprocess
import sys

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77


def tracked(*patterns):
    files = subprocess.run(["git", "ls-files", "--", *patterns], cwd=SOURCES, capture_output=True, text=True, check=False).stdout.split()
    return [file for file in files if os.path.exists(os.path.join(SOURCES, file))]


def skip(sentence):
    print(sentence)
    sys.exit(SKIPPED)


def program(build, *names):
    found = shutil.which(names[0], path=os.path.join(build, "venv", "bin")) or next(filter(None, map(shutil.which, names)), None)
    return found or skip(f"{names[0]} is not installed: its checks are not run")


def run(command, files):
    if not files:
        skip("git lists no files here: nothing is checked")
    return subprocess.run([*command, *files], cwd=SOURCES, check=False).returncode


# The one version whose output .clang-format was written for: others break lines elsewhere.
def clang_format(build):
    sources = [file for file in tracked("*.c", "*.h", "*.cpp", "*.hpp") if not file.startswith("prelude/")]
    return run([program(build, "clang-format-19"), "--dry-run", "--Werror"], sources)


def ruff(build):
    return run([program(build, "ruff"), "check", "--no-cache", "--output-format", "concise"], tracked("*.py"))


if __name__ == "__main__":
    sys.exit(1 if globals()[sys.argv[1]](os.path.abspath(sys.argv[2])) else 0)
