#!/usr/bin/env python3
"""The ABI's test is tested: it passes for the headers as they are, and fails for each change that breaks programs, or that the stored
description lacks. Usage: test_compare.py BUILD_FOLDER C_COMPILER"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from compare import HERE, SKIPPED, SOURCES

# What is changed: a regular expression in smelt.h, what it becomes, and what the report names.
CHANGES = {
    "a field in the middle": (r"    double timeout; ", r"    int early; double timeout; ", "early"),
    "a field's type": (r"bool cache_hit;", r"int64_t cache_hit;", "cache_hit"),
    "a structure that grows": (r"    uint64_t reserved\[7\];\n\} smelt_kernel_desc", r"    uint64_t reserved[8];\n} smelt_kernel_desc",
                               "smelt_kernel_desc"),
    "a field from the reserved words": (r"    uint64_t reserved\[8\];\n\} smelt_launch_desc",
                                        r"    uint64_t later; uint64_t reserved[7];\n} smelt_launch_desc", "later"),
    "a parameter": (r"smelt_event_wait\(smelt_event \*", r"smelt_event_wait(int how, smelt_event *", "smelt_event_wait"),
    "a value of an enumeration": (r"SMELT_STAGE_ASM, ", r"SMELT_STAGE_NEW, SMELT_STAGE_ASM, ", "SMELT_STAGE_ASM"),
}


def compare(headers):
    return subprocess.run([sys.executable, "-B", os.path.join(HERE, "compare.py"), *sys.argv[1:3], "--headers", headers],
                          capture_output=True, text=True, check=False)


def changed_headers(folder, pattern, replacement):
    headers = os.path.join(folder, "include")
    shutil.copytree(os.path.join(SOURCES, "include"), headers)
    path = os.path.join(headers, "smelt", "smelt.h")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    changed, count = re.subn(pattern, replacement, text, count=1)
    assert count == 1, f"smelt.h lacks {pattern!r}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(changed)
    return headers


def main():
    done = compare(os.path.join(SOURCES, "include"))
    print(done.stdout + done.stderr, end="")
    if done.returncode:
        return done.returncode
    for name, (pattern, replacement, word) in CHANGES.items():
        with tempfile.TemporaryDirectory() as folder:
            done = compare(changed_headers(folder, pattern, replacement))
        if done.returncode in (0, SKIPPED) or word not in done.stdout or "make abi" not in done.stdout:
            print(f"{name}: not reported: exit status {done.returncode}\n{done.stdout}{done.stderr}")
            return 1
        print(f"{name}: reported")
    return 0


if __name__ == "__main__":
    sys.exit(main())
