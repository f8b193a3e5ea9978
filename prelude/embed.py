#!/usr/bin/env python3
"""Flattens the prelude into C source: prelude_texts (Metal alone, Metal with MLX's helpers, and both with tensors),
prelude_macros (smelt_macros.h, smelt_host_macros.h) and prelude_headers (the files of smelt/, which sources include).

Usage: embed.py OUTPUT FOLDER…  — #include "name" is looked up in the folders, each file taken once.
Locations in the flattened text are named "/<smelt prelude: FILE>": a name in angle brackets is nobody's own file. clang
puts its working directory in front of names in a precompiled header, except in front of names that begin with a slash.
"""
import os
import re
import sys


def find(name, folders):
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    raise SystemExit(f"prelude: '{name}' is included but not there")


def flatten(name, folders, seen, out):
    if name in seen:
        return
    seen.add(name)
    out.append(f'#line 1 "/<smelt prelude: {name}>"')
    with open(find(name, folders), encoding="utf-8") as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            include = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if include:
                flatten(include.group(1), folders, seen, out)
                out.append(f'#line {number + 1} "/<smelt prelude: {name}>"')
            elif not re.match(r"\s*#\s*pragma\s+once", line):
                out.append(line)
            else:
                out.append("")


# Every byte that may not stand in a string literal as it is; a question mark could begin a trigraph.
ESCAPED = {byte: f"\\{byte:03o}" for byte in range(256) if not 32 <= byte < 127 or chr(byte) in '"\\?'}


def literal(text):
    """A C string, a line of the text in each line: compilers read it in a tenth of the time of an array of numbers."""
    lines = text.encode("utf-8").decode("latin-1").splitlines(keepends=True)
    return "\n" + "\n".join(f'"{line.translate(ESCAPED)}"' for line in lines)


TEXTS = {"metal": "smelt_prelude.h", "mlx": "smelt_prelude_mlx.h", "metal_tensors": "smelt_prelude_tensor.h",
         "mlx_tensors": "smelt_prelude_mlx_tensor.h"}
IN_CPP23 = ("metal", "mlx")  # the same text in another standard
LAST = "smelt_keywords.h"  # the end of each


def text(names, folders):
    lines, seen = [], set()
    for name in names:
        flatten(name, folders, seen, lines)
    return literal("\n".join(lines) + "\n")


HEADERS = ("layout", "tensor")


def header(name, folders):
    """The text of <smelt/NAME>; positions in it are the prelude's, too."""
    with open(find("smelt/" + name, folders), encoding="utf-8") as file:
        return literal(f'#line 1 "/<smelt prelude: smelt/{name}>"\n' + file.read())


def main():
    output, folders = sys.argv[1], sys.argv[2:]
    with open(output, "w", encoding="ascii") as out:
        out.write('#include "frontend/prelude.h"\n')
        for name, file in TEXTS.items():
            out.write(f"static const char {name}[] = {text((file, LAST), folders)};\n")
        entries = ", ".join([*(f"[PRELUDE_{name.upper()}] = {name}" for name in TEXTS),
                             *(f"[PRELUDE_{name.upper()}_OBJECTS] = {name}" for name in IN_CPP23)])
        out.write(f"const char *const prelude_texts[PRELUDE_COUNT] = {{{entries}}};\n")
        for name in HEADERS:
            out.write(f"static const char header_{name}[] = {header(name, folders)};\n")
        out.write(f"const char *const prelude_headers[PRELUDE_HEADERS + 2] = {{{', '.join('header_' + n for n in HEADERS)}, \"\"}};\n")
        names = ", ".join(f'"{name}"' for name in HEADERS)
        out.write(f"const char *const prelude_header_names[PRELUDE_HEADERS] = {{{names}}};\n")
        out.write(f"const char prelude_macros[] = {text(['smelt_macros.h', 'smelt_host_macros.h'], folders)};\n")


main()
