#!/usr/bin/env python3
"""Builds a compiler library for each mistake of ptx.toml, to be tried on a machine with a GPU, which need not build.

    tests/mutations/gpu_libraries.py FOLDER [--only WORD …]

FOLDER gets NAME.so, stripped, for each mutation and `list.tsv`: name, what it is, the tests that must notice it. There:

    tests/mutations/gpu_try.py BUILD_FOLDER FOLDER
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutate

LIBRARY = "lib/libsmelt_compiler.so"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="mutations whose name, pass or file contains it")
    parser.add_argument("--work", type=pathlib.Path, default=mutate.ROOT / "build-mutations", help="where sources and build go")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    mutations = mutate.read_mutations(options.only, "ptx.toml")
    if mutate.verify(mutations, mutate.ROOT):
        return 2
    tree = mutate.Tree(options.work, types.SimpleNamespace(jobs=options.jobs, all_targets=False))
    build = ["ninja", "-C", str(tree.build), f"-j{options.jobs}", LIBRARY]
    options.folder.mkdir(parents=True, exist_ok=True)
    failed, lines = 0, []
    for number, mutation in enumerate(mutations, 1):
        path = tree.sources / mutation["file"]
        original = path.read_text()
        try:
            path.write_text(original.replace(mutation["text"], mutation["replacement"]))
            status, output = tree.command(build)
        finally:
            path.write_text(original)
        if status != 0:
            failed += 1
            print(f"does not build: {mutation['name']}\n{output[-1500:]}")
            continue
        name = f"mutation_{number:02}"
        shutil.copy(tree.build / LIBRARY, options.folder / f"{name}.so")
        subprocess.run(["strip", "--strip-unneeded", str(options.folder / f"{name}.so")], check=True)
        lines.append(f"{name}\t{mutation['pass']}: {mutation['name']}\t{mutation['tests']}\n")
        print(f"{name}.so  {mutation['pass']}: {mutation['name']}", flush=True)
    (options.folder / "list.tsv").write_text("".join(lines))
    tree.command(build)  # of the unchanged sources, for the next time
    return 1 if failed else 0


sys.exit(main())
