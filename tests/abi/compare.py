#!/usr/bin/env python3
"""Compares the public C headers with the stored description of libsmelt's ABI, tests/abi/libsmelt.abi.

    compare.py BUILD_FOLDER C_COMPILER [--write] [--headers FOLDER]

libabigail reads debug information. The build's library has none, so the headers' functions are compiled once more with
empty bodies: types, names, symbol versions and SONAME are those of libsmelt.so. Another test sees to it that
libsmelt.so exports exactly these functions. --write (`make abi`) replaces the stored description.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.dirname(os.path.dirname(HERE))
STORED = os.path.join(HERE, "libsmelt.abi")
SKIPPED = 77
# Of abidiff's exit status: the tool or its arguments failed.
FAILED = 1 | 2
ADVICE = """
The ABI differs from tests/abi/libsmelt.abi. Functions may be added; a new field takes the place of reserved words at the
end of its structure, so that no size and no other offset changes. If this is what happened, run `make abi` and commit the
new description. Any other change breaks programs linked with libsmelt: it needs a new SONAME (CMakeLists.txt)."""


def run(*command, folder=None):
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def soname(library):
    return re.search(r"\(SONAME\)\s.*\[(.*)\]", run("readelf", "--dynamic", "--wide", library))[1]


def with_bodies(header):
    """The header's text, its functions defined."""
    with open(header, encoding="utf-8") as file:
        text = file.read()
    return re.sub(r"^(SMELT_API\b[^;{]*\));", r"\1 { __builtin_trap(); }", text, flags=re.MULTILINE)


def build_interface(folder, headers, build, compiler):
    """A library of the headers' functions, with debug information; its path."""
    os.mkdir(os.path.join(folder, "smelt"))
    names = [os.path.basename(path) for path in sorted(glob.glob(os.path.join(headers, "smelt", "*.h")))]
    for name in names:
        with open(os.path.join(folder, "smelt", name), "w", encoding="utf-8") as file:
            file.write(with_bodies(os.path.join(headers, "smelt", name)))
    library = os.path.join(folder, "libsmelt.so")
    with open(os.path.join(folder, "interface.c"), "w", encoding="utf-8") as file:
        file.writelines(f'#include "smelt/{name}"\n' for name in names)
    run(compiler, "-std=gnu17", "-g", "-O0", "-w", "-shared", "-fPIC", "-fvisibility=hidden", "-I.", "interface.c", "-o", library,
        f"-fdebug-prefix-map={folder}=.", f"-Wl,-soname,{soname(os.path.join(build, 'lib', 'libsmelt.so'))}",
        f"-Wl,--version-script={os.path.join(SOURCES, 'src', 'libsmelt.map')}", folder=folder)
    return library


def write(library):
    # Neither paths nor line numbers: the description is the same wherever it is written.
    run("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file", STORED, library)
    print(f"wrote {os.path.relpath(STORED)}")


def compare(library):
    """The process's exit status."""
    done = subprocess.run(["abidiff", "--no-default-suppression", STORED, library], capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, end="")
    if done.returncode:
        print("abidiff failed" if done.returncode & FAILED else ADVICE)
    return 1 if done.returncode else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("compiler")
    parser.add_argument("--write", action="store_true", help="store the description instead of comparing")
    parser.add_argument("--headers", default=os.path.join(SOURCES, "include"), help="the folder of smelt/*.h")
    options = parser.parse_args()
    if not shutil.which("abidiff") or not shutil.which("abidw"):
        print("abidiff is not installed (Debian package abigail-tools): the ABI is not compared")
        return 1 if options.write else SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        library = build_interface(folder, options.headers, options.build, options.compiler)
        return write(library) if options.write else compare(library)


if __name__ == "__main__":
    sys.exit(main())
