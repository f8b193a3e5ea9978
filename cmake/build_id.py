#!/usr/bin/env python3
"""Writes C source with strings that change when the files they stand for do.

Usage: build_id.py OUT.c NAME VERSION FILE… [-- NAME VERSION FILE…]…. The strings are part of cache keys and of packages:
code that another compiler made must not be taken for this one's."""
import hashlib
import sys


def identify(version, paths):
    digest = hashlib.sha256()
    for path in sorted(paths):
        with open(path, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return f"{version} {digest.hexdigest()[:32]}"


groups = [[]]
for argument in sys.argv[2:]:
    if argument == "--":
        groups.append([])
    else:
        groups[-1].append(argument)
with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write('#include "abi/build_id.h"\n\n')
    for name, version, *paths in groups:
        out.write(f'const char {name}[] = "{identify(version, paths)}";\n')
