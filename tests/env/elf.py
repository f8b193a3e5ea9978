"""What ELF files say of themselves, as readelf (binutils) prints it."""
import os
import re
import subprocess


def is_elf(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def elf_files(folder, skip=()):
    """Programs and libraries below a folder, object files and code of GPUs left out; `skip`: names of folders not to enter."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - set(skip))
        found += [os.path.join(place, name) for name in sorted(names) if not name.endswith((".o", ".a", ".cubin"))]
    return [path for path in found if is_elf(path)]


def readelf(option, paths):
    """readelf's lines for each file."""
    done = subprocess.run(["readelf", option, "-W", *paths], capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"})
    parts = re.split(r"^File: (.*)$", done.stdout, flags=re.MULTILINE) if len(paths) > 1 else ["", paths[0], done.stdout]
    return dict(zip(parts[1::2], parts[2::2]))


def dynamic(paths):
    """Of each file: the entries of its dynamic section that name something, {"NEEDED": ["libc.so.6"], …}."""
    sections = {}
    for path, text in readelf("-d", paths).items():
        entries = sections.setdefault(path, {})
        for kind, value in re.findall(r"\((\w+)\) .*\[(.*)\]$", text, flags=re.MULTILINE):
            entries.setdefault(kind, []).append(value)
    return sections


def search_paths(paths):
    """(file, folder) for each place where a file looks for its libraries."""
    return [(path, folder) for path, entries in dynamic(paths).items()
            for kind in ("RPATH", "RUNPATH") for value in entries.get(kind, []) for folder in value.split(":")]


def exported(path):
    """The functions and variables a library exports, with their versions: "name@@VERSION", or "name"."""
    names = re.findall(r"^ *\d+: \w+ +\d+ (?:FUNC|OBJECT|NOTYPE) +(?:GLOBAL|WEAK) +(?:DEFAULT|PROTECTED) +(?!UND)\w+ (\S+)",
                       readelf("--dyn-syms", [path])[path], flags=re.MULTILINE)
    return sorted(names)
