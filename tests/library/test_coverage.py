#!/usr/bin/env python3
"""Every header of coverage.txt can be included; every name exists in Metal's library as Smelt has it, and is used by a test: outside comments, in a case
of tests/kernels, a kernel of tests/ml, a table of tests/prelude or tests/accuracy, or a kernel that a test here makes.

Usage: test_coverage.py SMELT
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
PATTERNS = ("kernels/*.metal", "kernels/*.body", "kernels/*.h", "ml/*.metal", "prelude/*.[ch]", "accuracy/*.[ch]")
BUILT_IN = "bool char short int long float".split()


def table():
    kind, names = None, []
    with open(os.path.join(HERE, "coverage.txt"), encoding="utf-8") as file:
        for line in file:
            section = re.match(r"\[(\w+)\]", line)
            if section:
                kind = section.group(1)
            elif line.strip() and not line.startswith("#"):
                names += [(kind, name) for name in line.split()]
    return names


def words_of_tests():
    words = set()
    for pattern in PATTERNS:
        for path in glob.glob(os.path.join(TESTS, pattern)):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            text = re.sub(r"//.*?$|/\*.*?\*/", "", text, flags=re.M | re.S)
            words.update(re.findall(r"\w+", text))
    for path in glob.glob(os.path.join(HERE, "test_*.py")):  # what they generate
        if not os.path.samefile(path, __file__):
            text = subprocess.run([sys.executable, "-B", path, "--print"], capture_output=True, text=True, check=True).stdout
            words.update(re.findall(r"\w+", text))
    return words


def missing(smelt, names):
    """What the compiler does not know."""
    lines = ["#include <metal_stdlib>"]
    for kind, name in names:
        if kind == "macros":
            lines.append(f"#ifndef {name}\n#error no macro {name}\n#endif")
        elif kind == "names" and name not in BUILT_IN:
            lines.append(f"namespace test_{name} {{ using metal::{name}; }}")
        elif kind == "headers":
            lines.insert(0, f"#include <{name}>")
        elif kind == "global":
            lines.append(f"namespace test_{name} {{ using ::{name}; }}")
    lines.append("kernel void nothing(device int *out [[buffer(0)]]) { out[0] = 1; }\n")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "names.metal")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        done = subprocess.run([smelt, "show", path, "--stage", "ir"], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def main():
    names = table()
    words = words_of_tests()
    unused = [name for kind, name in names if kind != "headers" and name not in words]
    if unused:
        print(f"no test uses: {' '.join(unused)}")
    unknown = missing(sys.argv[1], names)
    print(unknown, end="")
    sys.exit(1 if unused or unknown else 0)


main()
