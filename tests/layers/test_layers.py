#!/usr/bin/env python3
"""Folders depend only on those above them: includes and symbols against the table of layers in docs/architecture.md.

Usage: test_layers.py SOURCE_FOLDER BUILD_FOLDER

A row of the table names a folder, and those whose files it may include and whose symbols its objects may refer to. All
of these stand in rows above. A file belongs to the longest folder of the table that it lies in.

Within a folder: files depend on each other one way, except for the cycles that tables.py lists with a reason; external
names begin with a word of their folder, which tables.py lists, too; and engines are told apart by src/abi/engine.h's
table, not by name.
"""
import pathlib
import re
import subprocess
import sys

from tables import CYCLES, DIVIDED, PREFIXES

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


def symbols_of(folder, source):
    """Of the objects of a library whose sources are there: {symbol: the file that defines it}, and (file, symbol it lacks)."""
    defined, lacked = {}, []
    objects = [str(file) for file in sorted(folder.rglob("*.o")) if (source / file.relative_to(folder).with_suffix("")).is_file()]
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


def check_symbols(libraries, layers):
    wrong, seen = [], 0
    for defined, lacked in libraries.values():
        for path, symbol in lacked:
            other = defined.get(symbol)
            user, used = folder_of(path, layers), other and folder_of(other, layers)
            if not user or not used or user == used:
                continue
            seen += 1
            if used not in layers[user]:
                wrong.append(f"{path} refers to {symbol} of {other}: {user} may not use {used}")
    return wrong, seen


def components(edges):
    """The files that can be reached from each other, as sets of two and more."""
    reached = {}
    for start in edges:
        reached[start], left = set(), [start]
        while left:
            more = edges.get(left.pop(), set()) - reached[start]
            reached[start] |= more
            left += more
    return {frozenset(other for other in reached[file] if file in reached.get(other, ())) for file in edges if file in reached[file]}


def home_of(path):
    """The folder that a file is checked with; of a divided folder, all parts are checked together."""
    return next((folder for folder in DIVIDED if pathlib.Path(folder) in path.parents), path.parent)


def edges_within_folders(source, libraries):
    """By symbols between objects, and by includes between headers: {file: the files of its folder that it needs}."""
    by_symbol, by_include = {}, {}
    for defined, lacked in libraries.values():
        for path, symbol in lacked:
            other = defined.get(symbol)
            if other and other != path and home_of(other) == home_of(path):
                by_symbol.setdefault(path, set()).add(other)
    for file in (header for top in ("src", "cli", "bench", "python") for header in (source / top).rglob("*.h")):
        path = file.relative_to(source)
        for name in INCLUDE.findall(file.read_text(encoding="utf-8")):
            other = resolve(source, file, name)
            if other and home_of(other) == home_of(path):
                by_include.setdefault(path, set()).add(other)
    return by_symbol, by_include


def check_cycles(source, libraries):
    wrong, met = [], set()
    allowed = [{pathlib.Path(folder) / f"{stem}.c" for stem in stems.split()} for folder, stems, _ in CYCLES]
    for edges in edges_within_folders(source, libraries):
        for cycle in components(edges):
            rows = [row for row, files in enumerate(allowed) if cycle <= files]
            met.update(rows)
            if not rows:
                wrong.append("these need each other: " + " ".join(sorted(map(str, cycle))))
    # A build without the Python module has none of its objects.
    wrong += [f"tables.py: there is no cycle in {CYCLES[row][0]} any more: {CYCLES[row][1]}" for row in range(len(allowed))
              if row not in met and (CYCLES[row][0] != "python/extension" or libraries["smelt_python"][0])]
    return wrong, len(met)


def check_names(libraries):
    wrong, seen = [], 0
    for library, (defined, _) in libraries.items():
        owners = {}
        for folder, beginnings in PREFIXES[library].items():
            for beginning in beginnings.split():
                if beginning in owners:
                    wrong.append(f"tables.py: names of {library} that begin with {beginning} are {owners[beginning]}'s and {folder}'s")
                owners[beginning] = folder
        for symbol, path in sorted(defined.items()):
            words = symbol.split("_")
            fitting = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
            owner = next((owners[beginning] for beginning in fitting if beginning in owners), None)
            folder = max((f for f in PREFIXES[library] if str(path).startswith(f + "/")), key=len, default=None)
            seen += 1
            if words[0] not in ("smelt", "pass") and owner != folder:
                wrong.append(f"{path}: the external name {symbol} does not begin as those of {folder} do (tables.py)")
    return wrong, seen


def check_engines(source):
    wrong = []
    for file in sorted((source / "src").rglob("*.[ch]")):
        path = file.relative_to(source)
        if path.name in ("engine.c", "engines.c"):
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
            if re.search(r"[=!]= ENGINE_(SCALAR|SIMD|PTX)|ENGINE_(SCALAR|SIMD|PTX) [=!]=|case ENGINE_", line):
                wrong.append(f"{path}:{number}: tests for an engine; ask its traits (src/abi/engine.h, src/compiler/engine.h)")
    return wrong


def main():
    source, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    layers, wrong = read_layers(source / "docs" / "architecture.md")
    libraries = {library: symbols_of(build / "CMakeFiles" / f"{library}.dir", source) for library in PREFIXES}
    others = {library: symbols_of(build / "CMakeFiles" / f"{library}.dir", source) for library in ("smelt_command", "smelt_bench")}
    defined, lacked = symbols_of(build / "python" / "CMakeFiles" / "smelt_python.dir", source / "python")
    others["smelt_python"] = ({symbol: "python" / path for symbol, path in defined.items()},
                              [("python" / path, symbol) for path, symbol in lacked])
    includes, include_count = check_includes(source, layers)
    symbols, symbol_count = check_symbols(libraries, layers)
    cycles, cycle_count = check_cycles(source, {**libraries, **others})
    names, name_count = check_names(libraries)
    wrong += includes + symbols + cycles + names + check_engines(source)
    print("\n".join(wrong), end="\n" if wrong else "")
    print(f"{len(layers)} layers, {include_count} includes and {symbol_count} symbols between folders, {cycle_count} cycles within, "
          f"{name_count} names, {len(wrong)} wrong")
    if min(len(layers), include_count, symbol_count, name_count) < 10:
        print("so few: the table of layers or the build was not read")
        return 1
    return 1 if wrong else 0


sys.exit(main())
