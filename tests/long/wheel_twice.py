#!/usr/bin/env python3
"""`make wheel` gives the same bytes wherever, whenever and by whoever it is called: it is built in two clones of the last commit,
with different paths, users' masks, time zones, languages and compiler flags in the environment.

Needs a network, for the tools that build wheels. Exit status: 0 the wheels are the same, 1 they are not, or there is none."""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

SOURCES = pathlib.Path(__file__).resolve().parents[2]
SURROUNDINGS = [("first", 0o022, {"TZ": "UTC", "LANG": "C.UTF-8"}),
                ("another/second", 0o077, {"TZ": "Asia/Tokyo", "LANG": "C", "CFLAGS": "-g", "CCACHE_DISABLE": "1"})]


def build(folder, mask, variables):
    """The wheel from a clone in `folder`."""
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", f"file://{SOURCES}", folder], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"} | variables
    subprocess.run(["make", "-C", folder, "wheel"], check=True, env=environment, umask=mask)
    wheel, = (folder / "build-wheel").glob("*.whl")
    return wheel


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def main():
    with tempfile.TemporaryDirectory(prefix="smelt-wheel-") as scratch:
        first, second = (build(pathlib.Path(scratch) / name, mask, variables) for name, mask, variables in SURROUNDINGS)
        if first.name == second.name and first.read_bytes() == second.read_bytes():
            print(f"{first.name}: the same {first.stat().st_size} bytes twice")
            return 0
        one, other = contents(first), contents(second)
        print(f"{first.name} and {second.name} differ in", sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))
        return 1


if __name__ == "__main__":
    sys.exit(main())
