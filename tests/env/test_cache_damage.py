#!/usr/bin/env python3
"""Damaged entries of every kind are rebuilt, and never give a wrong result."""
import os
import random

from support import EXP_BODY, FULL, entries, expect, expect_equal, expect_exp, run_tests, was_cached

# With a directive the text goes through the preprocessor, which has entries of its own.
BODY = "#define ARGUMENT T(inp[i])\nuint i = thread_position_in_grid.x;\nout[i] = metal::exp(ARGUMENT);\n"


def warm(scratch, body=BODY):
    done, output = scratch.run_exp(body=body, extra=("--verbose",))
    expect_exp(done, output, "the first run")
    done, output = scratch.run_exp(body=body, extra=("--verbose",))
    expect_exp(done, output, "the second run")
    expect(was_cached(done), "the second run did not come from the cache")


def flip(path, position):
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ (1 << random.randrange(8))]))


def whole_again(scratch, what):
    """Right now, and from the cache the next time."""
    done, output = scratch.run_exp(body=BODY, extra=("--verbose",))
    expect_exp(done, output, f"the run after {what}")
    expect_equal(done.stderr.count("warning"), 0, f"the number of warnings after {what}")
    done, output = scratch.run_exp(body=BODY, extra=("--verbose",))
    expect_exp(done, output, f"the second run after {what}")
    expect(was_cached(done), f"after {what} the entry was not rebuilt")


def test_image_and_preprocessed_text(scratch):
    random.seed(1)
    warm(scratch)
    for kind in ("image", "pre"):
        path, = entries(scratch, kind)
        size = os.path.getsize(path)
        # Every byte of the headers matters, too.
        for position in (0, 9, 17, 30, 33, 40, 60, 90, size // 2, size - 1):
            before = open(path, "rb").read()
            flip(path, min(position, size - 1))
            done, output = scratch.run_exp(body=BODY, extra=("--verbose",))
            expect_exp(done, output, f"the run after a flipped bit at {position} of .{kind}")
            expect(open(path, "rb").read()[:32] == before[:32], f"a flipped bit at {position} of .{kind} was not noticed")
        for length in (0, 1, 31, 32, 40, size // 2, size - 1):
            os.truncate(path, length)
            done, output = scratch.run_exp(body=BODY, extra=("--verbose",))
            expect_exp(done, output, f"the run after .{kind} was cut to {length} bytes")
        whole_again(scratch, f"damage to .{kind}")


def test_bitcode(scratch):
    random.seed(3)
    warm(scratch)
    path, = entries(scratch, "bitcode")
    size = os.path.getsize(path)
    damages = [(f"a flipped bit at {position}", lambda position=position: flip(path, position))
               for position in (0, 40, size // 2, size - 1)]
    damages += [(f"a cut to {length} bytes", lambda length=length: os.truncate(path, length)) for length in (0, 33, size - 1)]
    for what, damage in damages:
        damage()
        for image in entries(scratch, "image"):
            os.unlink(image)
        whole_again(scratch, what)
        expect_equal(os.path.getsize(path), size, f"the size of the bitcode after {what}")


def test_precompiled_prelude(scratch):
    random.seed(2)
    warm(scratch)
    path, = entries(scratch, "pch")
    size = os.path.getsize(path)
    damages = [(f"a flipped bit at {position}", lambda position=position: flip(path, position))
               for position in (0, 1000, size // 2, size - 40, size - 1)]
    damages += [(f"a cut to {length} bytes", lambda length=length: os.truncate(path, length))
                for length in (0, 10, size // 2, size - 1)]
    for what, damage in damages if FULL else damages[::2]:
        damage()
        for made in entries(scratch, "image") + entries(scratch, "bitcode"):
            os.unlink(made)
        whole_again(scratch, what)


def test_an_entry_under_another_name_is_not_used(scratch):
    warm(scratch)
    other = EXP_BODY.replace("metal::exp(T(inp[i]))", "T(inp[i])")
    done, _ = scratch.run_exp("other", body=other)
    expect_equal(done.returncode, 0, "the exit status of the other kernel")
    first, second = entries(scratch, "image")
    swapped = open(first, "rb").read()
    os.rename(second, first)
    with open(second, "wb") as file:
        file.write(swapped)
    whole_again(scratch, "entries were exchanged")


def test_removed_while_in_use(scratch):
    warm(scratch)
    for kind in ("pch", "image", "bitcode", "pre"):
        for path in entries(scratch, kind):
            os.unlink(path)
        whole_again(scratch, f"removing .{kind}")


run_tests(globals(), empty=["test_precompiled_prelude"])
