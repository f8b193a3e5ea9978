#!/usr/bin/env python3
"""Folders depend only on those above them: includes and symbols against the table of layers in docs/architecture.md.

Usage: test_layers.py SOURCE_FOLDER BUILD_FOLDER

A row of the table names a folder, and those whose files it may include and whose symbols its objects may refer to. All
of these stand in rows above. A file belongs to the longest folder of the table that it lies in.
"""
import pathlib
import re
import subprocess
import sys

ROW = re.compile(r"^\| ((?:`[\w/.]+`[ ,]*)+) \| ((?:`[\w/.]+`[ ,]*)*|nothing) \|$")
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)


def names_of(cell):
    return [name.rstrip("/") for name in re.findall(r"`([^`]+)`", cell)]


def read_layers(page):
    """{folder: the folders it may use}, top row first; and what is wrong with the table itself."""
    layers, wrong = {}, []
    section = page.read_text(encoding="utf-8").split("\n## Layers\n", 1)[1].split("\n## ", 1)[0]
    for line in section.split("\n"):
        row = ROW.match(line)
        for folder in names_of(row.group(1)) if row else ():
            uses = names_of(row.group(2))
            wrong += [f"docs/architecture.md: {folder} uses {name}, which stands in no row above" for name in uses
                      if name not in layers]
            layers[folder] = set(uses)
    return layers, wrong


def folder_of(path, layers):
    """Of a path from the source folder; None: no row is about it."""
    fitting = [folder for folder in layers if str(path).startswith(folder + "/")]
    return max(fitting, key=len, default=None)


def resolve(source, file, name):
    for base in (file.parent, source / "src", source / "include", source):
        found = (base / name).resolve()
        if found.is_file() and source in found.parents:
            return found.relative_to(source)
    return None  # generated, or a system's


def check_includes(source, layers):
    wrong, seen = [], 0
    for top in sorted({folder.split("/")[0] for folder in layers}):
        for file in sorted((source / top).rglob("*.[ch]")):
            user = folder_of(file.relative_to(source), layers)
            if user is None:
                wrong.append(f"{file.relative_to(source)}: docs/architecture.md has no layer for it")
                continue
            for name in INCLUDE.findall(file.read_text(encoding="utf-8")):
                path = resolve(source, file, name)
                used = path and folder_of(path, layers)
                seen += 1
                if used and used != user and used not in layers[user]:
                    wrong.append(f"{file.relative_to(source)} includes {path}: {user} may not use {used}")
    return wrong, seen


def symbols_of(folder, source, layers):
    """Of the objects of a library whose sources are there: {symbol: where it is defined}, and (file, symbol it lacks)."""
    defined, lacked = {}, []
    objects = [str(file) for file in sorted(folder.rglob("*.o"))
               if folder_of(file.relative_to(folder), layers) and (source / file.relative_to(folder).with_suffix("")).is_file()]
    if not objects:
        return defined, lacked
    listing = subprocess.run(["nm", "-A", "-P", *objects], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        file, symbol, kind = re.match(r"(.*?\.o): (\S+) (\w)", line).groups()
        path = pathlib.Path(file).relative_to(folder).with_suffix("")
        if kind in "TDBRVWC":
            defined[symbol] = path
        elif kind == "U":
            lacked.append((path, symbol))
    return defined, lacked


def check_symbols(build, source, layers):
    wrong, seen = [], 0
    for library in ("smelt_objects", "smelt_compiler"):
        defined, lacked = symbols_of(build / "CMakeFiles" / f"{library}.dir", source, layers)
        for path, symbol in lacked:
            other = defined.get(symbol)
            if other is None or folder_of(other, layers) == folder_of(path, layers):
                continue
            seen += 1
            user, used = folder_of(path, layers), folder_of(other, layers)
            if used not in layers[user]:
                wrong.append(f"{path} refers to {symbol} of {other}: {user} may not use {used}")
    return wrong, seen


def main():
    source, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    layers, wrong = read_layers(source / "docs" / "architecture.md")
    includes, include_count = check_includes(source, layers)
    symbols, symbol_count = check_symbols(build, source, layers)
    wrong += includes + symbols
    print("\n".join(wrong), end="\n" if wrong else "")
    print(f"{len(layers)} layers, {include_count} includes and {symbol_count} symbols between folders, {len(wrong)} wrong")
    if min(len(layers), include_count, symbol_count) < 10:
        print("so few: the table of layers or the build was not read")
        return 1
    return 1 if wrong else 0


sys.exit(main())
