#!/usr/bin/env python3
"""What a terminal shows of a compile that takes long: one line after a second, which is erased before the command goes on."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from support import SMELT, expect, expect_equal, run_tests

ERASE = "\r\x1b[K"


def slow_clang(scratch):
    """A clang that takes longer than the second after which progress is shown."""
    return scratch.file("slow-clang", '#!/bin/sh\ncase "$*" in *--version*) ;; *) sleep 2.5 ;; esac\nexec clang-19 "$@"\n', 0o755)


def on_terminal(scratch, arguments, columns=80, **changes):
    """Status, standard output and what a terminal on standard error received of a command."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {"TERM": "xterm", "SMELT_CLANG": slow_clang(scratch), **changes}
    with subprocess.Popen([SMELT, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, text=True,
                          env=scratch.environment(**environment)) as process:
        os.close(theirs)
        output, shown = process.stdout.read(), b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the terminal's other side is closed
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    return process.returncode, output, shown.decode()


def run_probe(scratch, name="probe", **changes):
    body = scratch.file("probe.body", "out[0] = 7;\n")
    return on_terminal(scratch, ["run", "--body", body, "--name", name, "-o", "out:float32:1", "--grid", "1", "--threadgroup", "1"],
                       **changes)


def test_a_long_compile_is_shown_and_erased(scratch):
    status, output, shown = run_probe(scratch)
    expect_equal((status, output.strip()[-3:]), (0, "[7]"), "status and result")
    lines = shown.split(ERASE)
    expect_equal((lines[0], lines[-1]), ("", ""), "what stands before the first line and after the last")
    # The prelude, which may have to be compiled first, is no kernel's.
    wrong = [line for line in lines[1:-1] if line and not re.fullmatch(r"compiling(: precompile prelude| 'probe': [a-z ]+), \d+ s", line)]
    expect_equal(wrong, [], "lines of another form")
    expect(any(re.fullmatch(r"compiling 'probe': clang, [1-9]\d* s", line) for line in lines), f"no line names clang: {lines}")
    expect("\n" not in shown, f"more than one line: {shown!r}")


def test_a_line_fits_the_terminal(scratch):
    _, _, shown = run_probe(scratch, name="a" * 60, columns=30)
    longest = max(len(line) for line in shown.split(ERASE))
    expect_equal(longest, 29, "the columns used of 30")


def test_nothing_is_shown_where_it_is_not_wanted(scratch):
    for changes in ({"SMELT_PROGRESS": "0"}, {"TERM": "dumb"}, {"TERM": None}):
        status, _, shown = run_probe(scratch, SMELT_CACHE_DIR=os.path.join(scratch.path, str(len(str(changes)))), **changes)
        expect_equal((status, shown), (0, ""), f"status and what the terminal shows with {changes}")


def test_another_word_than_0_or_1_is_warned_about_once(scratch):
    status, _, shown = run_probe(scratch, SMELT_PROGRESS="off")
    expect_equal(status, 0, "status")
    expect_equal(shown.count("smelt: warning: SMELT_PROGRESS is 'off', expected 1 or 0; using 1"), 1, f"warnings in {shown!r}")
    expect("compiling 'probe': clang" in shown, f"the progress is not shown: {shown!r}")


def test_nothing_is_shown_where_there_is_no_terminal(scratch):
    done, _ = scratch.run_exp(SMELT_CLANG=slow_clang(scratch), TERM="xterm")
    expect_equal((done.returncode, done.stderr), (0, ""), "status and standard error")


run_tests(globals(), together=6)
