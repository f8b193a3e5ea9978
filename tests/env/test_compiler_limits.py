#!/usr/bin/env python3
"""A compiler that hangs, eats memory or crashes is an error: never the end of the host, never a wait without end."""
import os
import time

from support import expect_equal, expect_exp, expect_failure, run_tests

VERSION = 'if [ "$1" = --version ]; then echo "clang version 19.1.7"; exit; fi\n'
# Instantiates 2^26 templates: beyond any limit of time or memory.
SLOW_HEADER = """template <int N, long M> struct F { static constexpr int v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; };
template <long M> struct F<0, M> { static constexpr int v = 1; };
"""
SLOW_BODY = "out[0] = F<26, 1>::v;\n"


def fake(scratch, script):
    return scratch.file("fake-clang", "#!/bin/sh\n" + VERSION + script, 0o755)


def processes_with(word):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if word.encode() in file.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def test_hangs(scratch):
    mark = f"{86400 + os.getpid()}"
    done, _ = scratch.run_exp(SMELT_CLANG=fake(scratch, f"sleep {mark}\n"), SMELT_CLANG_SECONDS=1)
    expect_failure(done, 1, "smelt: clang took more than 1 seconds on the source and was stopped")
    end = time.monotonic() + 30
    while processes_with(mark) and time.monotonic() < end:  # they end late on a busy machine
        time.sleep(0.1)
    expect_equal(processes_with(mark), [], "the processes left behind")


def test_ignores_requests_to_end(scratch):
    done, _ = scratch.run_exp(SMELT_CLANG=fake(scratch, "trap '' TERM INT HUP XCPU\nwhile :; do :; done\n"),
                              SMELT_CLANG_SECONDS=1)
    expect_failure(done, 1, "smelt: clang took more than 1 seconds on the source and was stopped")


def test_hangs_when_asked_for_its_version(scratch):
    script = scratch.file("fake-clang", "#!/bin/sh\nexec sleep 1000\n", 0o755)
    done, _ = scratch.run_exp(SMELT_CLANG=script, SMELT_CLANG_SECONDS=1)
    expect_failure(done, 3, f"smelt: SMELT_CLANG is '{script}', which reports ''; expected clang version 19")


def test_crashes(scratch):
    overflow = "Segmentation fault); expressions or types nested many thousand levels deep overflow its stack"
    for name, number, text in (("SEGV", 11, overflow), ("KILL", 9, "Killed)"), ("ABRT", 6, "Aborted)")):
        done, _ = scratch.run_exp(SMELT_CLANG=fake(scratch, f"kill -{name} $$\n"))
        expect_failure(done, 1, f"smelt: clang crashed on the source: signal {number} ({text}")
    done, _ = scratch.run_exp(SMELT_CLANG=fake(scratch, "echo 'something is wrong' >&2\nexit 70\n"))
    expect_failure(done, 1, "smelt: clang failed on the source: exit status 70, \"something is wrong\"")


def test_says_yes_and_writes_nothing(scratch):
    done, _ = scratch.run_exp(SMELT_CLANG=fake(scratch, "exit 0\n"))
    expect_failure(done, 3, "smelt: kernel 'probe': clang's output is not bitcode that LLVM 19 can read: "
                   "it has no function __smelt_entry")


def test_writes_without_end(scratch):
    done, _ = scratch.run_exp(SMELT_CLANG=fake(scratch, "exec yes\n"))
    expect_failure(done, 1, "smelt: clang wrote more than 256 MiB of messages and was stopped")


def test_real_crash(scratch):
    done, _ = scratch.run_exp(body="#pragma clang __debug llvm_fatal_error\nout[0] = 1;\n")
    expect_failure(done, 1, "smelt: clang failed on the source: exit status 70, "
                            '"fatal error: error in backend: #pragma clang __debug llvm_fatal_error"')


def test_source_that_takes_too_long(scratch):
    header = scratch.file("slow.h", SLOW_HEADER)
    done, _ = scratch.run_exp(body="out[0] = 1;\n", extra=("--header", scratch.file("empty.h", "")))  # prelude at hand
    done, _ = scratch.run_exp(body=SLOW_BODY, extra=("--header", header), SMELT_CLANG_SECONDS=1)
    expect_failure(done, 1, "smelt: clang took more than 1 seconds on the source and was stopped")


def test_source_that_takes_too_much_memory(scratch):
    header = scratch.file("slow.h", SLOW_HEADER)
    done, output = scratch.run_exp()
    expect_exp(done, output)
    done, _ = scratch.run_exp(body=SLOW_BODY, extra=("--header", header), SMELT_CLANG_MEMORY=150)
    expect_failure(done, 1, "smelt: clang needed more than 150 MiB of memory for the source and was stopped")


# Little for clang to read, much for LLVM to unroll: 6.3 seconds of an EPYC with Zen 5.
# Each loop alone is not too large to be unrolled on request, nor is the kernel for vector code.
LARGE_BODY = "float x = inp[0];\n" + """
#pragma clang loop unroll(full)
for (int k = 0; k < 300; k++) {
  x = precise::sin(x) + precise::pow(x, float(k));
  if (x > 3) x -= inp[k % 4];
}
""" * 120 + "out[0] = x;\n"


def test_code_that_takes_too_long(scratch):
    done, output = scratch.run_exp()
    expect_exp(done, output)
    done, _ = scratch.run_exp(body=LARGE_BODY, SMELT_CLANG_SECONDS=2)
    expect_failure(done, 1, "smelt: kernel 'probe': LLVM took longer than 2 seconds")


def test_limits_can_only_be_lowered(scratch):
    for value in ("0", "-1", "61", "many", ""):
        done, output = scratch.run_exp(SMELT_CLANG_SECONDS=value, SMELT_CLANG_MEMORY=value if value != "61" else "4097")
        expect_exp(done, output)


run_tests(globals(), together=12)
