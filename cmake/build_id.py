#!/usr/bin/env python3
"""Writes C source with one string that changes when any of the given files does.

Usage: build_id.py OUT.c VERSION FILE…. The string is part of cache keys: code that another compiler made must not be
taken for this one's."""
import hashlib
import sys

digest = hashlib.sha256()
for path in sorted(sys.argv[3:]):
    with open(path, "rb") as file:
        digest.update(hashlib.sha256(file.read()).digest())
text = f"{sys.argv[2]} {digest.hexdigest()[:32]}"
with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write(f'#include "frontend/build_id.h"\n\nconst char build_id[] = "{text}";\n')
