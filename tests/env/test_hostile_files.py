#!/usr/bin/env python3
"""Files that are no files, text that a terminal would act upon, and limits on the process: each ends in one sentence, and at once."""
import os
import resource
import shutil
import socket
import subprocess

from support import CC1, HAS_CC1, SMELT, expect, expect_equal, expect_failure, run_tests

KERNEL = "kernel void k(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = i; }\n"
OUTPUT = ["-b", "0:out:int32:4", "--grid", "4"]


def pipe(scratch, name):
    path = os.path.join(scratch.path, name)
    os.mkfifo(path)
    return path


def run(scratch, source, *extra):
    return scratch.run(["run", source, *OUTPUT, *extra], timeout=60)


def test_pipes_as_input(scratch):
    named = pipe(scratch, "pipe.metal")
    array = pipe(scratch, "pipe.npy")
    kernel, body = scratch.file("k.metal", KERNEL), scratch.file("k.body", "out[0] = 1;\n")
    expect_failure(run(scratch, named), 2,
                   f"smelt: file '{named}' is a named pipe, expected a regular file; '-' reads standard input")
    expect_failure(run(scratch, kernel, "-b", f"1={array}"), 2,
                   f"smelt: buffer 1: file '{array}' is a named pipe, expected a regular file")
    done = scratch.run(["run", "--body", body, "--header", named, "-o", "out:int32:1", "--grid", "1"], timeout=60)
    expect_failure(done, 2, f"smelt: file '{named}' is a named pipe, expected a regular file; '-' reads standard input")
    including = scratch.file("i.metal", '#include "pipe.metal"\n' + KERNEL)
    expect_failure(run(scratch, including), 1, f"smelt: {including}:1: error: 'pipe.metal' is a named pipe, expected a regular file")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(os.path.join(scratch.path, "s.h"))
    including = scratch.file("s.metal", '#include "s.h"\n' + KERNEL)
    expect_failure(run(scratch, including), 1, f"smelt: {including}:1: error: 's.h' is a socket, expected a regular file")


def test_pipes_that_only_the_compiler_sees(scratch):
    """Named by a macro, or in a directive that is written unusually."""
    try:
        with open("/proc/self/syscall", encoding="ascii"):
            pass
    except OSError:
        return "skipped: this system does not show the system calls of processes"
    named = pipe(scratch, "pipe.h")
    message = f"smelt: file '{named}' is a named pipe, expected a regular file; the source includes it"
    for number, start in enumerate(('#define NAME "pipe.h"\n#include NAME\n', '#include \\\n"pipe.h"\n', '#if __has_include("pipe.h")\n#endif\n')):
        expect_failure(run(scratch, scratch.file(f"m{number}.metal", start + KERNEL)), 1, message)
    clang = scratch.file("clang", '#!/bin/sh\nclang-19 "$@"\n', mode=0o755)
    source = scratch.file("script.metal", '#define NAME "pipe.h"\n#include NAME\n' + KERNEL)
    expect_failure(scratch.run(["run", source, *OUTPUT], timeout=60, SMELT_CLANG=clang), 1, message)


def test_pipes_that_are_open_or_outputs(scratch):
    kernel, array, image = scratch.file("k.metal", KERNEL), pipe(scratch, "a.npy"), pipe(scratch, "a.png")
    package, traced = pipe(scratch, "k.smeltlib"), pipe(scratch, "trace")
    done = subprocess.run([SMELT, "run", "/dev/stdin", *OUTPUT], input=KERNEL, capture_output=True, text=True, timeout=60, check=False,
                          env=scratch.environment())
    expect_equal(done.returncode, 0, "the exit status, the source being a pipe that is open")
    started = [(path, subprocess.Popen([SMELT, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                       env=scratch.environment()))
               for path, arguments in ((array, ["run", kernel, "-b", f"0:out:int32:4={array}", "--grid", "4"]),
                                       (image, ["run", kernel, "-b", f"0:out:uint8:2x2={image}", "--grid", "1"]),
                                       (package, ["build", kernel, "-o", package]),
                                       (traced, ["run", kernel, *OUTPUT, "--trace", traced]))]
    for path, process in started:
        messages = process.communicate(timeout=60)[1]
        expect_equal((process.returncode, messages), (3, f"smelt: file '{path}' cannot be written: it is a named pipe that no program "
                                                         "reads\n"), "status and messages")


def test_devices_without_end(scratch):
    kernel, array = scratch.file("k.metal", KERNEL), os.path.join(scratch.path, "zero.npy")
    os.symlink("/dev/zero", array)
    expect_failure(run(scratch, kernel, "-b", f"1={array}"), 2, f"smelt: buffer 1: file '{array}' is a device that does not end")


def test_pipes_in_the_cache(scratch):
    kernel = scratch.file("k.metal", KERNEL)
    expect_equal(run(scratch, kernel).returncode, 0, "the exit status")
    names = [name for name in os.listdir(scratch.cache) if "." in name]
    expect(len(names) > 2, f"entries in the cache, there are {names}")
    for name in names:
        os.unlink(os.path.join(scratch.cache, name))
        os.mkfifo(os.path.join(scratch.cache, name))
    done = run(scratch, kernel)
    expect_equal((done.returncode, done.stderr), (0, ""), "exit status and messages with pipes in place of entries")


def test_messages_are_safe_to_print(scratch):
    source = scratch.file("k.metal", b'#line 3 "a\x1b[31mred\x07\xc2\x9b\xff"\nint x = 1;\n' + KERNEL.encode())
    expect_failure(run(scratch, source), 1, "smelt: a\\x1b[31mred\\x07\\xc2\\x9b\\xff:3: error: program-scope variable 'x' must "
                                            "be in the constant address space")
    expect_failure(scratch.run(["run", "no\x1bfile", *OUTPUT]), 2,
                   "smelt: file 'no\\x1bfile' cannot be opened: No such file or directory")


def limited(scratch, what, soft, hard, *arguments, user=None):
    def limit():
        resource.setrlimit(what, (soft, hard))
        if user is not None:
            os.setuid(user)
    return subprocess.run([SMELT, *arguments], capture_output=True, text=True, timeout=120, check=False, preexec_fn=limit,
                          env=scratch.environment())


def expect_too_little_memory(scratch):
    """How much the compiler needs differs from system to system: the first limit that is too low for it."""
    for mebibytes in range(292, 20, -16):
        memory, source = mebibytes << 20, scratch.file(f"k{mebibytes}.metal", KERNEL.replace("kernel void k", f"kernel void k{mebibytes}"))
        done = limited(scratch, resource.RLIMIT_AS, memory, memory, "run", source, *OUTPUT)
        if done.returncode:
            break
    said = f"needed more than {mebibytes} MiB of memory, the limit of this process (ulimit -v), for"
    expect(done.returncode == 1 and said in done.stderr, f"with {mebibytes} MiB: status {done.returncode}, {done.stderr}")


def test_limits(scratch):
    kernel, output = scratch.file("k.metal", KERNEL), os.path.join(scratch.out, "k.npy")
    expect_too_little_memory(scratch)
    expect_equal(run(scratch, kernel).returncode, 0, "the exit status without a limit, which leaves a prelude")
    expect_too_little_memory(scratch)
    stack = 64 * 1024
    done = limited(scratch, resource.RLIMIT_STACK, stack, resource.getrlimit(resource.RLIMIT_STACK)[1], "run", kernel, *OUTPUT)
    expect_equal((done.returncode, done.stderr), (0, ""), "exit status and messages with a stack of 64 KiB")
    done = limited(scratch, resource.RLIMIT_FSIZE, 0, 0, "run", kernel, "-b", f"0:out:int32:4={output}", "--grid", "4")
    expect_failure(done, 3, f"smelt: file '{output}' cannot be written: File too large")


def test_no_more_processes(scratch):
    """The limit does not hold for root, who becomes nobody."""
    user = 65534 if os.getuid() == 0 else None
    kernel = scratch.file("k.metal", KERNEL)
    os.chmod(scratch.path, 0o777)

    def run_with(processes):
        return limited(scratch, resource.RLIMIT_NPROC, processes, processes, "run", kernel, *OUTPUT, user=user)
    try:
        done = run_with(0)
    except PermissionError:
        return "skipped: another user cannot run this build"
    clang = CC1 if HAS_CC1 else shutil.which("clang-19") or shutil.which("clang")
    expect_failure(done, 3, f"smelt: program '{clang}' cannot be started: its user has reached the limit on processes and threads (ulimit -u)")
    expect_equal(run_with(resource.getrlimit(resource.RLIMIT_NPROC)[0]).returncode, 0, "the exit status without the limit")
    expect_failure(run_with(0), 3, "smelt: the thread that watches time-outs could not be started: this process has reached a limit on "
                                   "processes and threads, or on memory (ulimit -u, ulimit -v)")
    return None


def test_null_device_with_contents(scratch):
    """In a container /dev/null may be a regular file into which something was written. Metal's headers must not be it."""
    null = scratch.file("null", "written by mistake {{{\n")
    kernel = scratch.file("k.metal", "#include <metal_stdlib>\n#include <simd/simd.h>\n#if 1\n" + KERNEL + "#endif\n")
    mount = ["unshare", "-r", "-m", "sh", "-c", 'mount --bind "$1" /dev/null && shift && exec "$@"', "sh", null]
    try:
        if subprocess.run([*mount, "true"], capture_output=True, check=False, timeout=60).returncode:
            return "skipped: no mount namespaces here"
    except FileNotFoundError:
        return "skipped: unshare is missing"
    done = subprocess.run([*mount, SMELT, "run", kernel, *OUTPUT], capture_output=True, text=True, check=False, timeout=600,
                          env=scratch.environment(), stdin=subprocess.DEVNULL)
    expect_equal((done.returncode, done.stderr), (0, ""), "the exit status and standard error")
    return None


run_tests(globals(), prelude=False, together=8)
