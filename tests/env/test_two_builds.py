#!/usr/bin/env python3
"""Two builds of smelt share a cache: each finds its own code there, and never the other's. The other build is this one with
another build id (cmake/build_id.py), which is part of the keys of all that it compiles. Both start the same clang, whose
path is part of the keys, too."""
import math
import os
import re
import shutil
import subprocess

from support import CC1, COMPILER, EXP_BODY, HAS_CC1, SMELT, SONAME, entries, expect, expect_equal, expect_exp, expect_failure, expect_values, run_tests, was_cached

BUILD_ID = re.compile(rb"[0-9.]+ llvm [0-9.]+ [0-9a-f]{32}\0")
KERNELS = 4
CLANG = os.path.realpath(CC1) if HAS_CC1 else "clang-19"


def copy_renamed(source, place):
    """The file, with another build id of the same length wherever there is one; returns the number of them."""
    with open(source, "rb") as file:
        data, count = BUILD_ID.subn(lambda found: found[0][:-2] + (b"0" if found[0][-2:-1] != b"0" else b"1") + b"\0", file.read())
    with open(place, "wb") as file:
        file.write(data)
    shutil.copymode(source, place)
    return count


def other_build(scratch):
    """A folder with the command and its libraries, and the path of the command."""
    place = os.path.join(scratch.path, "other")
    for name in ("bin", "lib"):
        os.makedirs(os.path.join(place, name))
    build = os.path.join(os.path.dirname(os.path.dirname(SMELT)), "lib")
    expect(copy_renamed(os.path.join(build, SONAME), os.path.join(place, "lib", SONAME)) > 0, f"{SONAME} has no build id")
    copy_renamed(os.path.join(build, COMPILER), os.path.join(place, "lib", COMPILER))
    return shutil.copy(SMELT, os.path.join(place, "bin"))


def run(scratch, smelt, **changes):
    path = os.path.join(scratch.path, "other", "lib") if "other" in smelt else os.environ.get("LD_LIBRARY_PATH")
    return scratch.run_exp(smelt=smelt, extra=("--verbose",), LD_LIBRARY_PATH=path, SMELT_CLANG=CLANG, **changes)


def test_each_has_its_own_code(scratch):
    builds = [SMELT, other_build(scratch)]
    for count, smelt in enumerate(builds, 1):
        done, output = run(scratch, smelt)
        expect_exp(done, output)
        expect(not was_cached(done), "the second build took code of the first")
        expect_equal(len(entries(scratch, "image")), count, "the number of images")
    before = {kind: entries(scratch, kind) for kind in ("image", "bitcode", "pch")}
    for smelt in builds * 2:
        done, output = run(scratch, smelt, SMELT_COMPILE=0)
        expect_exp(done, output)
        expect(was_cached(done), "a build lost its code to the other")
    expect_equal({kind: entries(scratch, kind) for kind in before}, before, "the entries of the cache")


def test_both_at_once(scratch):
    builds = [SMELT, other_build(scratch)]
    bodies = [scratch.file(f"{i}.body", EXP_BODY.replace("T(inp[i])", f"T(inp[i] + {i})")) for i in range(KERNELS)]
    running = []
    for i, body in enumerate(bodies):
        for b, smelt in enumerate(builds):
            output = os.path.join(scratch.out, f"{i}-{b}.npy")
            changes = {"SMELT_CLANG": CLANG, **({"LD_LIBRARY_PATH": os.path.join(scratch.path, "other", "lib")} if b else {})}
            running.append((i, output, subprocess.Popen([smelt, *scratch.command(body, output)], stdin=subprocess.DEVNULL, text=True,
                                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=scratch.environment(**changes))))
    for i, output, process in running:
        out, err = process.communicate(timeout=1500)
        expect_equal((process.returncode, err), (0, ""), f"status and messages ({out})")
        expect_values(output, [math.exp(j + i) for j in range(16)])
    expect_equal(len(entries(scratch, "image")), len(bodies) * len(builds), "the number of images")


def test_the_compiler_is_replaced(scratch):
    """A process that runs while an update replaces its files gets an error from the other version's compiler."""
    if not HAS_CC1:
        return
    place = os.path.dirname(os.path.dirname(other_build(scratch)))
    expect(copy_renamed(CC1, os.path.join(place, "lib", "smelt-cc1")) > 0, "smelt-cc1 has no build id")
    library = os.path.join(place, "lib", SONAME)
    other = scratch.run_exp(LD_LIBRARY_PATH=os.path.dirname(library))
    expect_exp(*other)
    shutil.copy(os.path.join(os.path.dirname(os.path.dirname(SMELT)), "lib", SONAME), library)
    done, _ = scratch.run_exp(LD_LIBRARY_PATH=os.path.dirname(library))
    expect_failure(done, 3, "smelt: kernel 'probe': smelt-cc1 broke down: exit status 2, \"error: there is no compile request of this version of smelt\"")


run_tests(globals())
