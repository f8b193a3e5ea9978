#!/usr/bin/env python3
"""libsmelt.so needs no LLVM, exports what its headers declare, and the compiler library exports one symbol. Nothing that was built looks
for libraries anywhere but in its neighbours' folders and the system's."""
import glob
import os
import re
import subprocess
import sys

from elf import dynamic, elf_files, exported, search_paths
from support import SMELT, SONAME, expect, expect_equal, run_tests

BUILD = os.path.dirname(os.path.dirname(SMELT))
SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIB = os.path.join(BUILD, "lib")


def needed_and_exported(name):
    path = os.path.join(LIB, name)
    return dynamic([path])[path]["NEEDED"], exported(path)


def test_libsmelt_needs_no_llvm(_):
    needed, _ = needed_and_exported("libsmelt.so")
    expect(needed, "no needed libraries were found: the test reads the file wrongly")
    expect_equal([name for name in needed if "LLVM" in name or "clang" in name or "stdc++" in name], [], "what it should not need")


def test_libsmelt_stays_when_it_is_closed(_):
    """Its threads go on: a program that closes it must not take their code away."""
    path = os.path.join(LIB, "libsmelt.so")
    code = ("import ctypes, _ctypes, sys\n"
            "library = ctypes.CDLL(sys.argv[1])\n"
            "_ctypes.dlclose(library._handle)\n"
            "print('libsmelt.so' in open('/proc/self/maps').read())\n")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=100, check=False)
    expect_equal((done.returncode, done.stdout), (0, "True\n"), f"what remains after dlclose: {done.stderr}")


def declared():
    """The functions that the public C headers declare."""
    names = set()
    for path in glob.glob(os.path.join(SOURCES, "include", "smelt", "*.h")):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
        names |= set(re.findall(r"^SMELT_API\b[^;(]*?\b(smelt_\w+)\(", text, flags=re.MULTILINE))
    return names


def test_libsmelt_exports_what_the_headers_declare(_):
    """src/libsmelt.map lists the names, and with each the version that brought it."""
    _, names = needed_and_exported("libsmelt.so")
    names = dict(name.split("@@") for name in names if not name.startswith("SMELT_"))
    expect("smelt_kernel_run" in names, f"smelt_kernel_run is not exported: {names}")
    expect_equal(sorted(declared() - set(names)), [], "what is declared and missing in src/libsmelt.map")
    expect_equal(sorted(set(names) - declared()), [], "what src/libsmelt.map has and no header declares")
    expect_equal({version for version in names.values() if not re.fullmatch(r"SMELT_\d+\.\d+", version)}, set(), "odd versions")


def test_libsmelt_has_a_name_with_its_interface_s_version(_):
    path = os.path.join(LIB, "libsmelt.so")
    expect_equal(dynamic([path])[path]["SONAME"], [SONAME], "the SONAME")
    expect(dynamic([SMELT])[SMELT]["NEEDED"].count(SONAME) == 1, f"the command does not need {SONAME}")


def test_compiler_library_exports_one_symbol(_):
    needed, names = needed_and_exported("libsmelt_compiler.so")
    expect(any("LLVM" in name for name in needed), f"it does not need LLVM: {needed}")
    # Some linkers export the ends of their sections.
    names = [name for name in names if name not in ("_end", "_edata", "__bss_start")]
    expect_equal(names, ["smelt_compiler"], "the exported names")


def test_libraries_are_looked_for_relative_to_the_file_only(_):
    """An empty entry of a RUNPATH, as a relative one, is the folder that the process happens to be in."""
    files = elf_files(BUILD, skip=("venv", "test-cache", "CMakeFiles"))
    for name in ("bin/smelt", "lib/libsmelt_compiler.so"):
        expect(os.path.join(BUILD, name) in files, f"{name} is not among the {len(files)} files found")
    places = search_paths(files)
    expect((SMELT, "$ORIGIN/../lib") in places, f"the command's RUNPATH was not found in {places}")
    wrong = [place for place in places if place[1] != "$ORIGIN" and not place[1].startswith("$ORIGIN/")]
    expect_equal(wrong, [], "files and where they look for libraries")


run_tests(globals())
