#!/usr/bin/env python3
"""What is said when clang or the compiler library is not there, or is another version: exit status 3. Where smelt-cc1 is built, it
is both, so that most of this is about a copy without it."""
import os
import shutil

from support import (EXP_BODY, HAS_CC1, SMELT, entries, expect, expect_equal, expect_exp, expect_failure, installed_without_cc1, run_tests,
                     was_cached)

NO_CLANG = ("smelt: no clang: neither 'clang-19' nor 'clang' is in PATH; install the Debian package clang-19, or name a clang "
            "19 in SMELT_CLANG")


def say(version):
    return f"#!/bin/sh\necho '{version}'\n"


def expect_message(scratch, message, **changes):
    done, _ = scratch.run_exp(**changes)
    expect_failure(done, 3, message)


def test_no_clang_in_path(scratch):
    empty = os.path.join(scratch.path, "bin")
    os.mkdir(empty)
    command = installed_without_cc1(scratch, folder="plain")
    expect_message(scratch, NO_CLANG, smelt=command, PATH=empty)
    expect_message(scratch, NO_CLANG, smelt=command, PATH=None)
    if HAS_CC1:
        done, output = scratch.run_exp(PATH=empty)
        expect_exp(done, output)


def test_smelt_clang_is_no_program(scratch):
    plain = scratch.file("plain", "not a program")
    for name in ("/no/such/clang", "no-such-clang", plain, scratch.path):
        expect_message(scratch, f"smelt: SMELT_CLANG is '{name}', which is not an executable program", SMELT_CLANG=name)


def test_smelt_clang_is_another_version(scratch):
    old = scratch.file("old", say("Debian clang version 18.1.8"), 0o755)
    for _ in range(2):  # the second answer comes from the cache
        expect_message(scratch, f"smelt: SMELT_CLANG is '{old}', which reports 'Debian clang version 18.1.8'; expected clang "
                                "version 19", SMELT_CLANG=old)
    scratch.file("old", say("clang version 20.0.0git"), 0o755)
    expect_message(scratch, f"smelt: SMELT_CLANG is '{old}', which reports 'clang version 20.0.0git'; expected clang version 19",
                   SMELT_CLANG=old)
    silent = scratch.file("silent", "#!/bin/sh\nexit 1\n", 0o755)
    expect_message(scratch, f"smelt: SMELT_CLANG is '{silent}', which reports ''; expected clang version 19", SMELT_CLANG=silent)


def test_clang_in_path_is_another_version(scratch):
    found = scratch.file("bin/clang", say("clang version 14.0.6"), 0o755)
    expect_message(scratch, f"smelt: '{found}' reports 'clang version 14.0.6'; expected clang version 19: install the Debian "
                            "package clang-19", PATH=os.path.dirname(found) + ":/bin-of-nobody", smelt=installed_without_cc1(scratch, folder="plain"))


def test_clang_in_path_of_version_19(scratch):
    real = shutil.which("clang-19") or shutil.which("clang")
    folder = os.path.join(scratch.path, "bin")
    os.mkdir(folder)
    assert real, "no clang is in PATH"
    os.symlink(os.path.realpath(real), os.path.join(folder, "clang"))
    done, output = scratch.run_exp(PATH=folder, smelt=installed_without_cc1(scratch, folder="plain"))
    expect_exp(done, output)
    done, output = scratch.run_exp(SMELT_CLANG=os.path.join(folder, "clang"))
    expect_exp(done, output)


def test_what_is_in_the_cache_runs_without_clang(scratch):
    """In the text's own form and preprocessed; another launch's code is not there, nor is another text's."""
    empty = os.path.join(scratch.path, "bin")
    os.mkdir(empty)
    plain = installed_without_cc1(scratch, folder="plain")
    preprocessed = "#define HALF 2\n" + EXP_BODY.replace("T(inp[i])", "HALF * T(inp[i]) / 2")
    for name, body in (("plain", EXP_BODY), ("preprocessed", preprocessed)):
        done, output = scratch.run_exp(name, body, smelt=plain)
        expect_exp(done, output)
        for changes in ({"PATH": empty}, {"PATH": None}, {"SMELT_CLANG": "/no/such/clang"},
                        {"PATH": empty, "SMELT_COMPILE": "0"}):
            done, output = scratch.run_exp(name, body, smelt=plain, extra=("--verbose",), **changes)
            expect_exp(done, output, f"the {name} kernel with {changes}")
            expect(was_cached(done), f"the {name} kernel in the cache was not used with {changes}")
        done, _ = scratch.run_exp(name, body, smelt=plain, extra=("--timeout", "0"), PATH=empty)
        expect_failure(done, 3, NO_CLANG)
    expect_message(scratch, NO_CLANG, smelt=plain, name="other", body=EXP_BODY + "// not the same\nout[i] += 0;\n", PATH=empty)
    # The compiler that made what is there is the last; what another made is not found for it.
    script = scratch.file("clang-19", '#!/bin/sh\nexec clang-19 "$@"\n', 0o755)
    done, output = scratch.run_exp("third", EXP_BODY + "// the third\n", smelt=plain, SMELT_CLANG=script)
    expect_exp(done, output)
    done, output = scratch.run_exp("third", EXP_BODY + "// the third\n", smelt=plain, PATH=empty)
    expect_exp(done, output)
    expect_message(scratch, NO_CLANG, smelt=plain, name="plain", PATH=empty)
    # What says who was last may be damaged or gone.
    for path in entries(scratch, "clang"):
        with open(path, "r+b") as file:
            file.write(b"?")
    expect_message(scratch, NO_CLANG, smelt=plain, name="third", body=EXP_BODY + "// the third\n", PATH=empty)


NEEDS = "it needs LLVM 19: install the Debian package libllvm19"


def test_no_compiler_library(scratch):
    command = installed_without_cc1(scratch, None)
    done, _ = scratch.run_exp(smelt=command)
    place = f"{scratch.path}/bin/../lib/libsmelt_compiler.so"
    expect_failure(done, 3, f"smelt: the compiler library cannot be opened: {place}: cannot open shared object file: No such "
                            f"file or directory; {NEEDS}")
    # What is compiled already runs without it.
    done, output = scratch.run_exp(smelt=installed_without_cc1(scratch, folder="whole"))
    expect_exp(done, output)
    done, output = scratch.run_exp(smelt=command, extra=("--verbose",))
    expect_exp(done, output)
    expect(was_cached(done), "the kernel in the cache was not used")


def test_what_smelt_cc1_compiled_runs_without_it(scratch):
    """A clang in PATH alone makes no code: it is not asked for what is in the cache."""
    if not HAS_CC1:
        return
    command = installed_without_cc1(scratch, None)
    for name, body in (("plain", EXP_BODY), ("preprocessed", "#define ONE 1\n" + EXP_BODY)):
        done, output = scratch.run_exp(name, body)
        expect_exp(done, output)
        done, output = scratch.run_exp(name, body, smelt=command, extra=("--verbose",))
        expect_exp(done, output)
        expect(was_cached(done), f"the {name} kernel in the cache was not used")


def test_a_clang_that_does_not_answer_is_waited_for_once(scratch):
    silent = scratch.file("silent", f"#!/bin/sh\necho asked >> {scratch.path}/asked\nexec sleep 1000\n", 0o755)
    expect_message(scratch, f"smelt: SMELT_CLANG is '{silent}', which reports ''; expected clang version 19", SMELT_CLANG=silent,
                   SMELT_CLANG_SECONDS="1")
    with open(os.path.join(scratch.path, "asked"), encoding="utf-8") as file:
        expect_equal(file.read(), "asked\n", "how often it was asked")


def test_a_gpu_s_code_in_the_cache_needs_neither(scratch):
    """On a driver that is none: it takes all calls, and kernels do nothing."""
    driver = os.path.join(os.path.dirname(os.path.dirname(SMELT)), "tests", "libfakecuda.so")
    expect(os.path.exists(driver), f"{driver} is missing: build the tests")
    command = installed_without_cc1(scratch, None)
    empty = os.path.join(scratch.path, "empty")
    os.mkdir(empty)
    gpu = {"SMELT_CUDA_DRIVER": driver}
    without = {**gpu, "PATH": empty, "smelt": command}
    device = ("--device", "cuda", "--verbose")
    done, _ = scratch.run_exp(extra=device, **without)
    expect(done.returncode == 3 and NO_CLANG in done.stderr, f"without anything: {done.returncode} {done.stderr}")
    done, _ = scratch.run_exp(extra=device, **gpu)
    expect(done.returncode == 0 and not was_cached(done), f"the first run: {done.returncode} {done.stderr}")
    expect_equal((len(entries(scratch, "image")), len(entries(scratch, "cubin"))), (1, 1), "the codes kept")
    for changes in ({}, {"SMELT_COMPILE": "0"}, {"SMELT_CLANG": "/no/such/clang"}):
        done, _ = scratch.run_exp(extra=device, **without, **changes)
        expect(done.returncode == 0 and was_cached(done), f"with {changes}: {done.returncode} {done.stderr}")
    # Another GPU's code is not there, nor is another launch's.
    for extra, changes in ((device, {"FAKE_CUDA_CAPABILITY": "80"}), ((*device, "--timeout", "0"), {})):
        done, _ = scratch.run_exp(extra=extra, **without, **changes)
        expect(done.returncode == 3 and NO_CLANG in done.stderr, f"with {extra} {changes}: {done.returncode} {done.stderr}")


def test_damaged_compiler_library(scratch):
    command = installed_without_cc1(scratch, b"no library")
    done, _ = scratch.run_exp(smelt=command)
    expect_failure(done, 3, f"smelt: the compiler library cannot be opened: {scratch.path}/bin/../lib/libsmelt_compiler.so: "
                            f"file too short; {NEEDS}")


def test_no_llvm(scratch):
    """The library is there, what it needs is not: its name is overwritten by one nobody has."""
    build = os.path.dirname(os.path.dirname(SMELT))
    with open(os.path.join(build, "lib", "libsmelt_compiler.so"), "rb") as file:
        library = file.read()
    name = b"libLLVM.so.19.1" if b"libLLVM.so.19.1" in library else b"libLLVM-19.so.1"
    expect(name in library, "the compiler library does not name LLVM 19")
    command = installed_without_cc1(scratch, library.replace(name, b"libNONE.so.99.9"))
    done, _ = scratch.run_exp(smelt=command)
    expect_failure(done, 3, "smelt: the compiler library cannot be opened: libNONE.so.99.9: cannot open shared object file: "
                            f"No such file or directory; {NEEDS}")
    expect_equal(entries(scratch, "image"), [], "the entries written")


run_tests(globals())
