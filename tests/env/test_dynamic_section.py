#!/usr/bin/env python3
"""libsmelt.so needs no LLVM, exports smelt_* only, and the compiler library exports one symbol."""
import os
import struct

from support import SMELT, expect, expect_equal, run_tests

LIB = os.path.join(os.path.dirname(os.path.dirname(SMELT)), "lib")


def sections(data):
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    return [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]


def string(data, table, at):
    start = table[4] + at
    return data[start:data.index(b"\0", start)].decode()


def needed_and_exported(name):
    with open(os.path.join(LIB, name), "rb") as file:
        data = file.read()
    table, needed, exported = sections(data), [], []
    for section in table:
        strings = table[section[6]] if section[6] < len(table) else None
        if section[1] == 6:  # dynamic
            for at in range(section[4], section[4] + section[5], 16):
                tag, value = struct.unpack_from("<QQ", data, at)
                if tag == 1:
                    needed.append(string(data, strings, value))
        if section[1] == 11:  # dynamic symbols
            for at in range(section[4] + 24, section[4] + section[5], 24):
                name_at, info, other, index = struct.unpack_from("<IBBH", data, at)
                if index and info >> 4 in (1, 2) and other & 3 == 0:
                    exported.append(string(data, strings, name_at))
    return needed, exported


def test_libsmelt_needs_no_llvm(_):
    needed, _ = needed_and_exported("libsmelt.so")
    expect(needed, "no needed libraries were found: the test reads the file wrongly")
    expect_equal([name for name in needed if "LLVM" in name or "clang" in name or "stdc++" in name], [], "what it should not need")


def test_libsmelt_exports_its_own_names_only(_):
    _, exported = needed_and_exported("libsmelt.so")
    expect("smelt_kernel_run" in exported, f"smelt_kernel_run is not exported: {exported}")
    expect_equal([name for name in exported if not name.startswith("smelt_")], [], "foreign names")
    private = [name for name in exported if name.startswith("smelt_runtime") or name.startswith("smelt_fiber")]
    expect_equal(private, [], "private names")


def test_compiler_library_exports_one_symbol(_):
    needed, exported = needed_and_exported("libsmelt_compiler.so")
    expect(any("LLVM" in name for name in needed), f"it does not need LLVM: {needed}")
    # Some linkers export the ends of their sections.
    exported = [name for name in exported if name not in ("_end", "_edata", "__bss_start")]
    expect_equal(exported, ["smelt_compiler"], "the exported names")


run_tests(globals())
