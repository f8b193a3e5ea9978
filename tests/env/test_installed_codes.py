#!/usr/bin/env python3
"""Codes that are installed with libsmelt (src/frontend/installed.h): a first product on a GPU needs no compiler, and code that is
not for it, or damaged, is never used."""
import os
import shutil
import subprocess

from support import CC1, HAS_CC1, SMELT, expect, expect_equal, install_preludes, run_tests

BUILD = os.path.normpath(os.path.join(os.path.dirname(SMELT), ".."))
PROGRAM = os.path.join(BUILD, "codes", "smelt_codes")
FAKE = os.path.join(BUILD, "tests", "libfakecuda.so")
SIZES = ["64", "48", "80"]  # the plain kernel: one code


def run(scratch, program, folder, sizes=(), **changes):
    environment = dict(os.environ, SMELT_CUDA_DRIVER=FAKE, SMELT_CACHE_DIR=scratch.cache, SMELT_TIERS="0", **changes)
    return subprocess.run([program, folder, "float32", *(sizes or SIZES)], env=environment, capture_output=True, text=True, check=False)


def install(scratch, compilers=False):
    """A program with libsmelt in a folder of the scratch folder, with the code of one product: the program, and the codes."""
    codes = os.path.join(scratch.path, "lib", "smelt-codes")
    os.makedirs(codes)
    os.makedirs(os.path.join(scratch.path, "bin"))
    done = run(scratch, PROGRAM, codes)
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages of collecting")
    shutil.rmtree(scratch.cache)
    if compilers and HAS_CC1:
        os.symlink(CC1, os.path.join(scratch.path, "lib", "smelt-cc1"))
        install_preludes(scratch.path)
    return shutil.copy(PROGRAM, os.path.join(scratch.path, "bin")), codes


def files(codes, kind):
    return [os.path.join(codes, name) for name in os.listdir(codes) if name.endswith("." + kind)]


def expect_no_compiler(done):
    expect(done.returncode == 1 and "a product:" in done.stderr, f"the product needed no compiler: {done.returncode}, {done.stderr}")


def test_no_compiler_is_needed(scratch):
    program, codes = install(scratch)
    expect_equal(len(files(codes, "image")), 1, "the number of codes")
    done = run(scratch, program, "-", PATH="")
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages without compilers")
    expect_equal(os.listdir(scratch.cache) and [n for n in os.listdir(scratch.cache) if n.endswith((".image", ".bitcode", ".pch"))], [],
                 "what was compiled into the cache")


def test_other_code_is_not_used(scratch):
    """Its name is a hash: there is none for another type of launch, nor for another source."""
    program, codes = install(scratch)
    expect_no_compiler(run(scratch, program, "-", ["512", "512", "512"], PATH=""))
    image, = files(codes, "image")
    os.rename(image, image.replace(os.path.basename(image)[:4], "0000"))
    expect_no_compiler(run(scratch, program, "-", PATH=""))


def test_damaged_code_is_not_used(scratch):
    program, codes = install(scratch)
    image, = files(codes, "image")
    with open(image, "r+b") as file:
        file.truncate(1000)
    expect_no_compiler(run(scratch, program, "-", PATH=""))


def test_machine_code_that_the_driver_refuses(scratch):
    """Then the driver assembles the PTX."""
    program, codes = install(scratch)
    text, = files(codes, "ptx")
    with open(text[:-3] + "cubin", "w", encoding="utf-8") as file:
        file.write("FAKE LINK ERROR")
    done = run(scratch, program, "-", PATH="")
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages with refused machine code")


def test_another_compiler_turns_installed_codes_off(scratch):
    program, _ = install(scratch)
    expect_no_compiler(run(scratch, program, "-", PATH="", SMELT_CLANG="/nowhere/clang"))


if __name__ == "__main__":
    run_tests(globals(), prelude=False)
