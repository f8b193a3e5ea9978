#!/usr/bin/env python3
"""smelt-cc1, which compiles in processes of its own: the same code as with clang-19 and the compiler library, and an error whatever
becomes of it."""
import os
import resource
import subprocess

from support import (CC1, EXP_BODY, FULL, HAS_CC1, SMELT, expect, expect_equal, expect_exp, expect_failure, installed_with_script,
                     installed_without_cc1, run_tests)

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = ["return_before_barrier", *(["type_bfloat_loops"] if FULL else [])]
TARGETS = ["--target", "cpu", "--target", "sm_80"]


def build(scratch, source, name, **changes):
    package = os.path.join(scratch.out, name + ".smeltlib")
    done = scratch.run(["build", source, "-o", package, *TARGETS], **changes)
    expect(done.returncode == 0, f"smelt build of {source} ended with status {done.returncode}: {done.stderr}")
    with open(package, "rb") as file:
        return file.read()


def test_packages_do_not_depend_on_the_compiler(scratch):
    """Neither on who runs clang, nor on where LLVM runs."""
    plain = installed_without_cc1(scratch, folder="plain")
    for name in FILES:
        source = os.path.join(HERE, "..", "kernels", name + ".metal")
        own = build(scratch, source, name)
        expect(build(scratch, source, name, SMELT_CLANG="clang-19") == own, f"{name}: clang-19 gives another package")
        expect(build(scratch, source, name, smelt=plain) == own, f"{name}: the compiler library gives another package")


def test_messages_are_clang_s(scratch):
    for number, text in enumerate(("out[i] = inp[i] +;", "int x = undeclared;", "#error no", "out[0] = float4(1, 2);", "#include <none>")):
        own, _ = scratch.run_exp(f"k{number}", text)
        stock, _ = scratch.run_exp(f"k{number}", text, SMELT_CLANG="clang-19")
        expect(own.returncode == 1, f"{text} compiles")
        expect_equal((own.returncode, own.stderr), (stock.returncode, stock.stderr), f"status and message of {text}")


def expect_compile_failure(scratch, script, status, message, seconds=2):
    """In LLVM's half where clang's output is in the cache."""
    smelt = installed_with_script(scratch, f'if [ "$1" = -compile ]; then {script}; fi')
    done, output = scratch.run_exp(smelt=smelt)
    expect_exp(done, output)
    for name in os.listdir(scratch.cache):
        if name.endswith(".image"):
            os.unlink(os.path.join(scratch.cache, name))
    done, _ = scratch.run_exp(smelt=smelt, SMELT_CLANG_SECONDS=seconds)
    expect_failure(done, status, "smelt: kernel 'probe': " + message)


def test_killed(scratch):
    expect_compile_failure(scratch, "kill -KILL $$", 1, "LLVM cannot generate code for it: it crashed (signal 9)")


def test_endless(scratch):
    expect_compile_failure(scratch, "while :; do :; done", 1, "LLVM took longer than 1 seconds", seconds=1)


def test_silent(scratch):
    expect_compile_failure(scratch, "exit 0", 3, "smelt-cc1 broke down: exit status 0, \"\"")


def test_another_version_s(scratch):
    expect_compile_failure(scratch, "(printf x; cat) | real -compile; exit", 3,
                           'smelt-cc1 broke down: exit status 2, "error: there is no compile request of this version of smelt"')


def test_cut_off(scratch):
    expect_compile_failure(scratch, f"{CC1} -compile | head -c 2000; exit 0", 3, "smelt-cc1 broke down: exit status 0, \"\"")


def expect_whole_failure(scratch, script, status, message, seconds=2):
    """Where one process is clang and then LLVM: the error says which of them it was."""
    smelt = installed_with_script(scratch, f'if [ "$1" = -whole ]; then {script}; fi')
    done, _ = scratch.run_exp(smelt=smelt, SMELT_CLANG_SECONDS=seconds)
    expect_failure(done, status, "smelt: " + message)
    expect_equal([name for name in os.listdir(scratch.cache) if name.endswith(".image")], [], "the codes in the cache")


def test_killed_as_clang(scratch):
    expect_whole_failure(scratch, "kill -KILL $$", 1, "clang crashed on the source: signal 9 (Killed)")


def test_killed_as_llvm(scratch):
    expect_whole_failure(scratch, 'real_done() { real "$@"; }; (real_done "$@"); kill -KILL $$', 1,
                         "kernel 'probe': LLVM cannot generate code for it: it crashed (signal 9)")


def test_endless_as_clang(scratch):
    expect_whole_failure(scratch, "while :; do :; done", 1, "clang took more than 1 seconds on the source and was stopped",
                         seconds=1)


def test_silent_as_clang(scratch):
    expect_whole_failure(scratch, "exit 0", 3, "kernel 'probe': smelt-cc1 broke down: exit status 0, \"\"")


def test_result_cut_off(scratch):
    expect_whole_failure(scratch, '(real "$@") | head -c 4000; exit 0', 3, "kernel 'probe': smelt-cc1 broke down: exit status 0, \"\"")


def test_request_cut_off(scratch):
    expect_whole_failure(scratch, 'real "$@" 3< /dev/null', 3,
                         "kernel 'probe': smelt-cc1 broke down: exit status 2, \"error: there is no compile request of this version of smelt\"")


def test_one_start_for_a_kernel(scratch):
    """A new source: one process. Another shape of launch: LLVM alone."""
    smelt = installed_with_script(scratch, f'echo "$1" >> {scratch.path}/starts', prelude=False)
    body = scratch.file("probe.body", EXP_BODY)
    for threads, more in ((64, ["-cc1", "-whole"]), (64, []), (32, ["-compile"])):
        open(os.path.join(scratch.path, "starts"), "w", encoding="utf-8").close()
        done = scratch.run(["run", "--body", body, "-i", "inp=ones:float32:64", "-o", "out:float32:64", "-t", "T=float32", "--grid", "64",
                            "--threadgroup", str(threads)], smelt=smelt)
        expect_equal(done.returncode, 0, f"the status ({done.stderr})")
        with open(os.path.join(scratch.path, "starts"), encoding="utf-8") as file:
            expect_equal([w for w in file.read().split() if w != "-vector-bits"], more, f"the starts for {threads} threads")


def test_the_prelude_s_image_is_quick_to_read(scratch):
    """Its text is not compressed, and its functions have no lines: their code belongs to the user's line."""
    cache = os.path.join(scratch.path, "new")  # images of other versions may lie in the one that tests share
    done, output = scratch.run_exp(SMELT_CACHE_DIR=cache)
    expect_exp(done, output)
    files = {".pch": [], ".bitcode": []}
    for name in os.listdir(cache):
        with open(os.path.join(cache, name), "rb") as file:
            files.get(os.path.splitext(name)[1], []).append(file.read())
    for kind, found in files.items():
        expect(found, f"the cache has no {kind}: {os.listdir(cache)}")
    expect(all(b"\nnamespace metal {\n" in image for image in files[".pch"]), "the text of an image is compressed")
    expect(not any(b"smelt prelude: metal_math" in bitcode for bitcode in files[".bitcode"]), "the kernel has lines of the prelude")


def test_without_memory_it_is_an_error(scratch):
    """Whoever lacks it, down to a limit where libsmelt itself does not start."""
    done, output = scratch.run_exp()
    expect_exp(done, output)
    outcomes = set()
    for mebibytes in range(40, 320, 20):
        body = scratch.file(f"m{mebibytes}.body", EXP_BODY + f"// {mebibytes}\n")
        limit = mebibytes << 20
        done = subprocess.run([SMELT, *scratch.command(body, os.path.join(scratch.out, "m.npy"))], capture_output=True, text=True,
                              check=False, env=scratch.environment(), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        expect(0 <= done.returncode <= 3 or done.returncode == 127, f"with {mebibytes} MiB: status {done.returncode}: {done.stderr}")
        expect(done.returncode == 0 or done.stderr.strip(), f"with {mebibytes} MiB: status {done.returncode} and no message")
        expect("crashed" not in done.stderr, f"with {mebibytes} MiB: not a message about memory: {done.stderr}")
        outcomes.add(done.returncode)
    expect(0 in outcomes and len(outcomes) > 1, f"the limits make no difference: {outcomes}")


def test_usage(scratch):
    for arguments in ([], ["-compile", "more"], ["--help"]):
        done = subprocess.run([CC1, *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        expect(done.returncode == 2 and done.stderr.startswith("usage: smelt-cc1"), f"{arguments}: {done.returncode} {done.stderr}")
    done = subprocess.run([CC1, "-cc1", "-fsyntax-only", "-"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    expect(done.returncode == 1 and "expected one of these" in done.stderr, f"{done.returncode} {done.stderr}")


if HAS_CC1:
    run_tests(globals(), together=2)
else:
    print("skipped: this build has no smelt-cc1")
