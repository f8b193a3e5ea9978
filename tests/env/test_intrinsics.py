#!/usr/bin/env python3
"""The table of intrinsics (src/abi/intrinsics.h) and the prelude's declarations are the same list; no pass spells a name."""
import pathlib
import re

from support import expect, expect_equal, run_tests

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TABLE = (ROOT / "src/abi/intrinsics.h").read_text(encoding="utf-8")


def table():
    kernels = TABLE[TABLE.index("#define INTRINSICS_OF_KERNELS"):TABLE.index("#define INTRINSICS_OF_PASSES")]
    rows = re.findall(r"X\((\w+), (\w+), (\w+), (\w+), (\w+)\)", kernels)
    expect(all(upper.lower() == name.rstrip("_") for upper, name, *_ in rows), "each enumerator is the name in capitals")
    return {name: (purity == "PURE", convergence == "TOGETHER") for _, name, purity, convergence, _ in rows}


def test_the_prelude_declares_what_the_table_lists(_):
    text = (ROOT / "prelude/smelt_dialect.h").read_text(encoding="utf-8")
    declared = re.findall(r"^(__smelt_pure |__smelt_together |)(?:__smelt_\w+ )?(?:uint|ulong|float|bool|void|uchar|__smelt_float4|__smelt_int4)[ *]+__smelt_(\w+)\(",
                          text, re.M)
    families = tuple(name for name in table() if name.endswith("_"))
    prelude = {name: (mark == "__smelt_pure ", mark == "__smelt_together ") for mark, name in declared
               if not name.startswith(families)}
    listed = {name: traits for name, traits in table().items() if not name.endswith("_")}
    expect_equal(sorted(prelude.items()), sorted(listed.items()), "declarations of smelt_dialect.h")


def test_only_the_table_spells_names(_):
    spelled = [f"{path.relative_to(ROOT)}: {name}" for path in sorted((ROOT / "src/compiler").rglob("*.[ch]"))
               for name in re.findall(r'"(__smelt_\w*)', path.read_text(encoding="utf-8"))]
    expect_equal(spelled, [], "names of intrinsics in src/compiler")


run_tests(globals())
