"""What the tests of the environment share: the command, a scratch folder, a kernel with a known result.

Each test_*.py here is run as `test_….py SMELT` and defines functions test_…; a failure says what was expected."""
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import traceback

SMELT = os.path.abspath(sys.argv[1])

EXP_BODY = "uint i = thread_position_in_grid.x;\nout[i] = metal::exp(T(inp[i]));\n"
COUNT = 16


# `make check-long` runs everything once without the sampling that keeps `make check` short.
FULL = "SMELT_TEST_FULL" in os.environ
# SMELT_TIERS for tests that compile many kernels: quick code takes half the time to generate.
TIERS = "0" if FULL else "quick"


def link_or_copy(path, other):
    try:
        os.link(path, other)
    except FileNotFoundError:
        raise
    except OSError:  # two file systems, or one that lacks links
        shutil.copy2(path, other)


class Scratch:
    """A folder of the test's own with a cache folder and an output folder in it. With `prelude` the cache has the
    precompiled preludes that other tests left in the build's, so that this one need not wait for its own."""

    def __init__(self, prelude=False):
        self.path = tempfile.mkdtemp(prefix="smelt-test-")
        self.cache = os.path.join(self.path, "cache")
        self.out = os.path.join(self.path, "out")
        os.mkdir(self.out)
        if prelude:
            self.take_preludes(os.path.join(os.path.dirname(os.path.dirname(SMELT)), "test-cache"))

    def take_preludes(self, folder):
        """Links the preludes if it can: copies of hundreds of megabytes would take longer than most tests."""
        os.mkdir(self.cache, 0o700)
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            if name.endswith(".pch"):
                try:
                    link_or_copy(os.path.join(folder, name), os.path.join(self.cache, name))
                except FileNotFoundError:
                    pass  # another process has just removed it

    def file(self, name, text, mode=0o644):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)
        return path

    def environment(self, **changes):
        """The test's own environment with the scratch cache, and the CPU to compile for if the whole suite runs for one;
        a change to None takes the variable away."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("SMELT_") or name == "SMELT_CPU"}
        variables["SMELT_CACHE_DIR"] = self.cache
        for name, value in changes.items():
            if value is None:
                variables.pop(name, None)
            else:
                variables[name] = str(value)
        return variables

    def command(self, body, output, extra=()):
        return ["run", "--body", body, "-i", f"inp=arange:float32:{COUNT}", "-o", f"out:float32:{COUNT}={output}", "-t",
                "T=float32", "--grid", str(COUNT), "--threadgroup", str(COUNT), "--name", "probe", *extra]

    def run(self, arguments, smelt=SMELT, timeout=1500, folder=None, **changes):
        return subprocess.run([smelt, *arguments], capture_output=True, text=True, timeout=timeout, check=False,
                              cwd=folder, env=self.environment(**changes), stdin=subprocess.DEVNULL)

    def run_exp(self, name="exp", body=EXP_BODY, smelt=SMELT, extra=(), **changes):
        """Runs the kernel; its result is checked by expect_exp."""
        output = os.path.join(self.out, name + ".npy")
        if os.path.exists(output):
            os.unlink(output)
        return self.run(self.command(self.file(name + ".body", body), output, extra), smelt=smelt, **changes), output

    def remove(self):
        for folder, _, _ in os.walk(self.path):
            os.chmod(folder, 0o700)
        shutil.rmtree(self.path)


# The name that programs ask for.
SONAME = "libsmelt.so.1"


def copy_libsmelt(folder):
    """The build's libsmelt into a folder, under the name that programs ask for."""
    return shutil.copy(os.path.join(os.path.dirname(os.path.dirname(SMELT)), "lib", SONAME), folder)


CC1 = os.path.join(os.path.dirname(SMELT), "..", "lib", "smelt-cc1")  # as libsmelt names it
HAS_CC1 = os.path.exists(CC1)
COMPILER = "smelt-cc1" if HAS_CC1 else "libsmelt_compiler.so"


def installed_without_compilers(place):
    """The command with libsmelt in a folder, and nothing that compiles."""
    for name in ("bin", "lib"):
        os.makedirs(os.path.join(place, name))
    copy_libsmelt(os.path.join(place, "lib"))
    return shutil.copy(SMELT, os.path.join(place, "bin"))


def installed_with_script(scratch, script, prelude=True):
    """The command in the scratch folder, with a script that runs before the real smelt-cc1. There `real` is smelt-cc1, and
    `once` succeeds for one process only. With `prelude` the build's precompiled preludes are installed, too."""
    command = installed_without_compilers(scratch.path)
    functions = f'real() {{ exec {CC1} "$@"; }}\nonce() {{ mkdir "{scratch.path}/once" 2>&-; }}'
    scratch.file("lib/smelt-cc1", f'#!/bin/sh\n{functions}\n{script}\nreal "$@"\n', 0o755)
    if prelude:
        install_preludes(scratch.path)
    return command


def install_preludes(place):
    """Links the build's precompiled preludes next to the folder's smelt-cc1, so that none is precompiled into the cache."""
    images = os.path.join(os.path.dirname(os.path.dirname(SMELT)), "prelude", "images")
    for name in os.listdir(images) if os.path.isdir(images) else []:
        os.symlink(os.path.join(images, name), os.path.join(place, "lib", name))


def installed_with_preludes(scratch):
    """The command in a folder of the scratch folder with smelt-cc1 and the precompiled preludes, as they are installed; the
    build's own where there is no smelt-cc1."""
    place = os.path.join(scratch.path, "installed")
    if not HAS_CC1:
        return SMELT
    if not os.path.exists(place):
        installed_without_compilers(place)
        os.symlink(CC1, os.path.join(place, "lib", "smelt-cc1"))
        install_preludes(place)
    return os.path.join(place, "bin", "smelt")


def installed_without_cc1(scratch, library=b"", folder="."):
    """The command, libsmelt and the compiler library in a folder of the scratch folder, as a build without smelt-cc1 has
    them. `library`: other bytes for the compiler library; None: there is none."""
    build, place = os.path.dirname(os.path.dirname(SMELT)), os.path.normpath(os.path.join(scratch.path, folder))
    command = installed_without_compilers(place)
    if library == b"":
        os.symlink(os.path.join(build, "lib", "libsmelt_compiler.so"), os.path.join(place, "lib", "libsmelt_compiler.so"))
    elif library is not None:
        scratch.file(os.path.join(folder, "lib", "libsmelt_compiler.so"), library)
    return command


def read_floats(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - start) // 4}f", data[start:])


def expect(truth, message):
    if not truth:
        raise AssertionError(message)


def expect_equal(found, wanted, what):
    expect(found == wanted, f"{what} is\n{found!r}\nexpected\n{wanted!r}")


def expect_values(output, wanted, what="the kernel"):
    found = read_floats(output)
    good = len(found) == len(wanted) and all(math.isclose(f, w, rel_tol=2e-6) for f, w in zip(found, wanted))
    expect(good, f"{what} gave {found}, expected {wanted}")


def expect_exp(done, output, what="the kernel"):
    expect(done.returncode == 0, f"{what} ended with status {done.returncode}: {done.stderr}")
    expect_values(output, [math.exp(i) for i in range(COUNT)], what)


def expect_failure(done, status, message):
    expect_equal((done.returncode, done.stderr.strip()), (status, message.strip()), "status and message")


def was_cached(done):
    return "loaded from the cache" in done.stdout + done.stderr


def entries(scratch, kind):
    if not os.path.isdir(scratch.cache):
        return []
    return sorted(os.path.join(scratch.cache, name) for name in os.listdir(scratch.cache) if name.endswith("." + kind))


def run_test(name, function, prelude):
    """True if it passed."""
    scratch, before = Scratch(prelude), os.times()
    try:
        verdict = function(scratch)
        took = sum(os.times()[:4]) - sum(before[:4])
        print(f"{name}: {verdict or 'passed'} ({took:.1f} s of a processor)", flush=True)
        return True
    except Exception as error:  # each test is its own
        print(f"{name}: FAILED: {error}", flush=True)
        if not isinstance(error, AssertionError):
            traceback.print_exc()
        return False
    finally:
        scratch.remove()


def run_in_process(name, function, prelude):
    """Starts the test in a process of its own, whose identifier it returns."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        passed = False
        try:
            passed = run_test(name, function, prelude)
        finally:
            os._exit(0 if passed else 1)
    return process


def run_tests(functions, prelude=True, together=1, empty=()):
    """Runs the functions test_…, each with a Scratch; prelude=False: with an empty cache, which they
    look at; `empty`: the names of single tests of that kind. `together`: so many at a time, for those that mostly wait."""
    failed, running = 0, set()
    tests = [(name, function) for name, function in sorted(functions.items()) if name.startswith("test_") and callable(function)]
    while tests or running:
        if tests and together == 1:
            name, function = tests.pop(0)
            failed += not run_test(name, function, prelude and name not in empty)
        elif tests and len(running) < together:
            name, function = tests.pop(0)
            running.add(run_in_process(name, function, prelude and name not in empty))
        else:
            process, status = os.wait()
            if process in running:
                running.remove(process)
                failed += status != 0
    sys.exit(1 if failed else 0)
