#!/usr/bin/env python3
"""An entry has codes of its own for sizes of launch, for time-outs and for CPUs; clang runs once for all of them."""
import os

from support import EXP_BODY, entries, expect, expect_equal, expect_exp, run_tests, was_cached

os.environ.pop("SMELT_CPU", None)  # these tests name CPUs themselves


def counting_clang(scratch):
    """A clang-19 that counts how often it compiles."""
    return scratch.file("clang-19", '#!/bin/sh\n[ "$1" = --version ] || echo >> "$0.count"\nexec clang-19 "$@"\n', 0o755)


def compiles(script):
    return os.path.getsize(script + ".count") if os.path.exists(script + ".count") else 0


def run(scratch, extra=(), **changes):
    done, output = scratch.run_exp(extra=("--verbose", *extra), **changes)
    expect_exp(done, output)
    return done


def test_clang_runs_once_for_all_codes(scratch):
    clang = counting_clang(scratch)
    run(scratch, SMELT_CLANG=clang)
    first = compiles(clang)
    expect(first > 0, "the compiler was not used")
    changes = [(("--timeout", "0"), {}), (("--device", "cpu-scalar"), {}), ((), {"SMELT_CPU": "sse2"}),
               ((), {"SMELT_CPU": "avx2"}), (("--timeout", "0"), {"SMELT_CPU": "sse2"})]
    for number, (extra, variables) in enumerate(changes):
        done = run(scratch, extra, SMELT_CLANG=clang, **variables)
        if "warning" in done.stderr:
            return f"passed as far as {variables}, which this machine cannot run"
        expect(not was_cached(done), f"{extra} {variables} shared another's code")
        expect_equal(compiles(clang), first, f"the number of compiles after {extra} {variables}")
        expect_equal(len(entries(scratch, "image")), number + 2, f"the number of codes after {extra} {variables}")
        expect_equal(len(entries(scratch, "bitcode")), 1, f"the number of bitcodes after {extra} {variables}")
        expect(was_cached(run(scratch, extra, SMELT_CLANG=clang, **variables)), f"{extra} {variables} was not kept")


def test_an_unknown_cpu_is_warned_about_once(scratch):
    for value in ("avx", "AVX512", "x86-64", "native"):
        done = run(scratch, SMELT_CPU=value)
        expect_equal(done.stderr.count("warning"), 1, "the number of warnings")
        expect(f"smelt: warning: SMELT_CPU is '{value}', expected avx512, avx2 or sse2; using this machine's own CPU\n"
               in done.stderr, f"the warning is {done.stderr}")
    expect_equal(len(entries(scratch, "image")), 1, "the number of codes: it is the same CPU")
    expect_equal(run(scratch, SMELT_CPU="").stderr.count("warning"), 0, "the number of warnings of an empty value")


def test_settings_of_other_words_are_warned_about_once(scratch):
    source = scratch.file("twice.body", "uint i = thread_position_in_grid.x; out[i] = 2 * inp[i];\n")
    many_groups = ["--body", source, "-i", "inp=rand:float32:100000", "-o", "out:float32:100000", "--grid", "100000", "--threadgroup", "64"]
    for variable, words in (("SMELT_TIERS", "1, 0 or quick"), ("SMELT_COMPILE", "1 or 0"), ("SMELT_PIN", "1 or 0")):
        for number, value in enumerate(("no", "00", "1 ")):
            done = scratch.run(["run", *many_groups, "--name", f"{variable}_{number}"], SMELT_THREADS=3, **{variable: value})
            expect_equal((done.returncode, done.stderr), (0, f"smelt: warning: {variable} is '{value}', expected {words}; using 1\n"),
                         "status and messages")
        for value in ("", "1"):
            done = scratch.run(["run", *many_groups], SMELT_THREADS=3, **{variable: value})
            expect_equal((done.returncode, done.stderr), (0, ""), f"status and messages with {variable}={value}")


def test_code_for_a_cpu_uses_what_it_has_and_no_more(scratch):
    source = scratch.file("exp.body", EXP_BODY)
    registers = {"sse2": ("xmm", "ymm"), "avx2": ("ymm", "zmm"), "avx512": ("zmm", "tmm")}
    for cpu, (widest, wider) in registers.items():
        done = scratch.run(["show", "--body", source, "-i", "inp=rand:float32:64", "-o", "out:float32:64", "-t", "T=float32",
                            "--stage", "asm"], SMELT_CPU=cpu)
        expect_equal(done.returncode, 0, f"the exit status for {cpu}: {done.stderr}")
        if "warning" in done.stderr:
            continue
        expect(widest in done.stdout, f"code for {cpu} has no {widest}")
        expect(wider not in done.stdout, f"code for {cpu} has {wider}")


run_tests(globals())
