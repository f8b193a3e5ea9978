#!/usr/bin/env python3
"""Writes the API reference: BUILD/docs/c from the public headers, by Doxygen, and BUILD/docs/python from the Python
package with its stub, by pdoc, for which this must run in an interpreter that has pdoc and finds smelt.

Usage: api_reference.py c|python BUILD
       api_reference.py filter HEADER      Doxygen's input filter: the header with its comments marked as documentation

Whatever either tool warns of is an error: exit status 1. Pages are written anew each time."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOXYFILE = """
PROJECT_NAME = smelt
PROJECT_BRIEF = "Metal compute kernels on CPUs and NVIDIA GPUs"
OUTPUT_DIRECTORY = "{out}"
HTML_OUTPUT = c
INPUT = "{root}/include/smelt"
FILE_PATTERNS = *.h *.hpp
EXTENSION_MAPPING = h=C
INPUT_FILTER = "'{python}' -B '{script}' filter"
STRIP_FROM_PATH = "{root}/include"
OPTIMIZE_OUTPUT_FOR_C = YES
EXTRACT_ALL = YES
JAVADOC_AUTOBRIEF = YES
MACRO_EXPANSION = YES
PREDEFINED = SMELT_API= "__attribute__(x)="
HAVE_DOT = NO
GENERATE_LATEX = NO
WARN_IF_UNDOCUMENTED = NO
WARN_AS_ERROR = FAIL_ON_WARNINGS
QUIET = YES
"""


def marked(comment, begins_line, begins_file):
    """A comment as Doxygen wants it: of what follows, or behind code of what stands before. Banners stay as they are."""
    if comment.startswith("/* ----"):
        return comment
    start = "/** \\file\n" if begins_file else "/** " if begins_line else "/**< "
    return start + re.sub(r"([\\@<>#])", r"\\\1", comment[2:-2].strip(" ")) + " */"


def filtered(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    out, end = "", 0
    for comment in re.finditer(r"/\*.*?\*/", text, flags=re.DOTALL):
        before = text[end:comment.start()]
        begins_line = not before.rpartition("\n")[2].strip()
        out += before + marked(comment[0], begins_line, comment.start() == 0)
        end = comment.end()
    return out + text[end:]


def write_c(out):
    text = DOXYFILE.format(out=out, root=ROOT, python=sys.executable, script=os.path.abspath(__file__))
    return subprocess.run(["doxygen", "-"], input=text, text=True, check=False).returncode


def write_python(out):
    modules = ["smelt", "smelt.doctor", "smelt.launch"]
    modules += [f"smelt.{name}" for name in ("mlx", "torch") if importlib.util.find_spec(name)]
    command = [sys.executable, "-W", "error", "-m", "pdoc", "--no-show-source", "-o", os.path.join(out, "python"), *modules]
    return subprocess.run(command, check=False).returncode


def main():
    what, where = sys.argv[1:]
    if what == "filter":
        sys.stdout.write(filtered(where))
        return
    out = os.path.join(os.path.abspath(where), "docs")
    shutil.rmtree(os.path.join(out, what), ignore_errors=True)
    os.makedirs(out, exist_ok=True)
    if {"c": write_c, "python": write_python}[what](out):
        sys.exit(1)
    print(f"{os.path.join(out, what, 'index.html')}")


main()
