#!/usr/bin/env python3
"""Which folder the cache is, what makes it unusable, and that a run succeeds without one after one warning."""
import os
import stat
import subprocess

from support import SMELT, expect, expect_equal, expect_exp, entries, installed_with_preludes, run_tests, was_cached

WITHOUT = "; compiling without a cache"


def expect_one_warning(scratch, reason, smelt=None, **changes):
    done, output = scratch.run_exp(smelt=smelt or installed_with_preludes(scratch), **changes)
    expect_exp(done, output)
    expect_equal(done.stderr, f"smelt: warning: {reason}{WITHOUT}\n", "standard error")


def test_made_with_mode_0700_and_its_parents(scratch):
    scratch.cache = os.path.join(scratch.path, "a", "b", "cache")
    done, output = scratch.run_exp()
    expect_exp(done, output)
    expect_equal(stat.S_IMODE(os.stat(scratch.cache).st_mode), 0o700, "the folder's mode")
    expect(entries(scratch, "pch") and entries(scratch, "image"), "the cache holds no entries")


def test_order_of_the_variables(scratch):
    for name, folder, changes in (
            ("own", "own", {"SMELT_CACHE_DIR": f"{scratch.path}/own", "XDG_CACHE_HOME": f"{scratch.path}/xdg"}),
            ("xdg", "xdg/smelt", {"SMELT_CACHE_DIR": None, "XDG_CACHE_HOME": f"{scratch.path}/xdg"}),
            ("home", "home/.cache/smelt", {"SMELT_CACHE_DIR": "", "XDG_CACHE_HOME": "relative", "HOME": f"{scratch.path}/home"})):
        done, output = scratch.run_exp(smelt=installed_with_preludes(scratch), **changes)
        expect_exp(done, output)
        scratch.cache = os.path.join(scratch.path, folder)
        expect(entries(scratch, "image"), f"{name}: no entry in {folder}")


def test_no_home(scratch):
    """Without precompiled preludes, too: each kernel is then compiled with the text of its prelude."""
    expect_one_warning(scratch, smelt=SMELT, reason="no cache folder: none of SMELT_CACHE_DIR, XDG_CACHE_HOME and HOME is set",
                       SMELT_CACHE_DIR=None, XDG_CACHE_HOME=None, HOME=None)


def test_a_file(scratch):
    scratch.file("cache", "")
    expect_one_warning(scratch, f"cache folder '{scratch.cache}' is not a folder")


def test_below_a_file(scratch):
    scratch.file("plain", "")
    scratch.cache = os.path.join(scratch.path, "plain", "cache")
    expect_one_warning(scratch, f"folder '{scratch.cache}' cannot be created: Not a directory")


def test_others_may_write(scratch):
    os.mkdir(scratch.cache)
    for mode in (0o770, 0o707, 0o777):
        os.chmod(scratch.cache, mode)
        expect_one_warning(scratch, f"cache folder '{scratch.cache}' has mode {mode:o}: others can write to it; expected 700")


def test_owned_by_someone_else(scratch):
    if os.geteuid() == 0:
        os.mkdir(scratch.cache, 0o700)
        os.chown(scratch.cache, 1, 1)
        expect_one_warning(scratch, f"cache folder '{scratch.cache}' belongs to user 1, expected 0")
    else:
        scratch.cache = "/usr"
        expect_one_warning(scratch, f"cache folder '/usr' belongs to user 0, expected {os.geteuid()}")
    return None


def test_not_writable(scratch):
    """To root everything is writable: then the command runs as another user."""
    os.mkdir(scratch.cache)
    user = None
    if os.geteuid() == 0:
        user = 65534
        for path in (scratch.cache, scratch.out):
            os.chown(path, user, user)
        os.chmod(scratch.path, 0o755)
        probe = subprocess.run([SMELT, "--version"], user=user, capture_output=True, check=False) if os.access(SMELT, os.X_OK) else None
        if probe is None or probe.returncode != 0:
            return "skipped: another user may not run the command here"
    os.chmod(scratch.cache, 0o500)
    output = os.path.join(scratch.out, "exp.npy")
    body = scratch.file("exp.body", "uint i = thread_position_in_grid.x;\nout[i] = metal::exp(T(inp[i]));\n")
    done = subprocess.run([SMELT, *scratch.command(body, output)], user=user, capture_output=True, text=True, check=False,
                          env=scratch.environment(), stdin=subprocess.DEVNULL)
    expect_exp(done, output)
    expect_equal(done.stderr, f"smelt: warning: cache folder '{scratch.cache}' is not writable{WITHOUT}\n", "standard error")
    return None


def test_without_a_cache_directives_and_headers_work(scratch):
    """Metal's own headers are found although there is no folder to keep stand-ins in."""
    scratch.file("mine.h", "#include <metal_stdlib>\n#include <simd/simd.h>\n#define SCALE 1\n")
    body = "#if SCALE == 1\nuint i = thread_position_in_grid.x;\n#endif\nout[i] = metal::exp(T(inp[i]));\n"
    scratch.file("cache", "")
    header = scratch.file("head.h", '#include "mine.h"\n')
    done, output = scratch.run_exp(body=body, extra=("--header", header, "-I", scratch.path))
    expect_exp(done, output)
    expect_equal(done.stderr.count("warning"), 1, "the number of warnings")


def test_least_recently_used_goes_first(scratch):
    """Above its limit the cache loses the entries longest out of use."""
    done, output = scratch.run_exp("first")
    expect_exp(done, output)
    first = entries(scratch, "image")
    done, output = scratch.run_exp("second", body="uint i = thread_position_in_grid.x; out[i] = metal::exp(T(inp[i])) * 1;")
    expect_exp(done, output)
    second = [path for path in entries(scratch, "image") if path not in first]
    expect_equal(len(second), 1, "the number of new entries")
    filler = os.path.join(scratch.cache, "0" * 32 + ".image")
    with open(filler, "wb") as file:
        file.truncate(50 << 20)
    os.utime(filler, (1, 1))
    os.utime(first[0], (2, 2))
    total = sum(os.stat(os.path.join(scratch.cache, name)).st_size for name in os.listdir(scratch.cache))
    os.unlink(os.path.join(scratch.cache, ".tidied"))
    # Three quarters of the limit is what fits when filler and first entry are gone.
    rest = total - os.stat(filler).st_size - os.stat(first[0]).st_size
    done, output = scratch.run_exp("second", body="uint i = thread_position_in_grid.x; out[i] = metal::exp(T(inp[i])) * 1;",
                                   extra=("--verbose",), SMELT_CACHE_BYTES=rest * 4 // 3 + 4)
    expect_exp(done, output)
    expect(was_cached(done), "the entry used last was removed")
    expect(not os.path.exists(filler) and not os.path.exists(first[0]), "the oldest entries are still there")


run_tests(globals(), prelude=False)
