#!/usr/bin/env python3
"""The library and the command run with glibc 2.34: wheels name the oldest glibc that they run on (docs/installing.md).

Usage: glibc.py FILE…

Functions such as hypot have newer versions in newer systems, and a program that calls them needs that system. glibc 2.38 and
later replace so many functions that a build there cannot pass: exit status 77, skipped."""
import os
import re
import subprocess
import sys

OLDEST = (2, 34)
NEWEST_TO_BUILD_ON = (2, 37)


def main():
    here = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))
    if here > NEWEST_TO_BUILD_ON:
        print(f"skipped: built with glibc {here[0]}.{here[1]}, whose own functions are newer than 2.34")
        return 77
    wrong, seen = 0, 0
    for file in sys.argv[1:]:
        listing = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True).stdout
        for major, minor, name in re.findall(r"\(?GLIBC_(\d+)\.(\d+)[.\d]*\)? +(?:0x\w+ )?(\w+)$", listing, re.MULTILINE):
            seen += 1
            if (int(major), int(minor)) > OLDEST:
                print(f"{file} needs {name} of glibc {major}.{minor}; wheels are to run with 2.34")
                wrong += 1
    print(f"{seen} functions of glibc in {len(sys.argv) - 1} files, {wrong} newer than 2.34")
    return 1 if wrong or seen < 10 * (len(sys.argv) - 1) else 0


sys.exit(main())
