#!/usr/bin/env python3
"""Compilers that are killed or stopped at any moment, many processes at one cache, a full disk, a read-only home: each ends in a
result or an error message."""
import os
import random
import signal
import subprocess
import time

from support import (COUNT, EXP_BODY, FULL, HAS_CC1, SMELT, expect, expect_equal, expect_exp, expect_values, installed_with_script,
                     installed_without_cc1, run_tests)

KILLS = 60 if FULL else 10
KILLED = ("smelt: clang crashed on the source: signal 9 (Killed)",
          "smelt: kernel 'probe': LLVM cannot generate code for it: it crashed (signal 9)")
EXP = [__import__("math").exp(i) for i in range(COUNT)]


def start(scratch, body, output, smelt=SMELT, **changes):
    return subprocess.Popen([smelt, *scratch.command(body, output)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=scratch.environment(**changes), stdin=subprocess.DEVNULL)


def finish(process):
    _, messages = process.communicate(timeout=1500)
    return process.returncode, messages.strip()


def child_of(process):
    """The compiler that it runs at the moment, or None."""
    for thread in os.listdir(f"/proc/{process.pid}/task") if os.path.exists(f"/proc/{process.pid}/task") else []:
        try:
            with open(f"/proc/{process.pid}/task/{thread}/children", encoding="utf-8") as file:
                for child in file.read().split():
                    return int(child)
        except OSError:
            pass
    return None


def test_killed_at_any_moment(scratch):
    """Clang's half, LLVM's, and between them."""
    random.seed(5)
    done, output = scratch.run_exp()
    expect_exp(done, output)
    seen = set()
    for i in range(KILLS):
        body = scratch.file(f"{i}.body", EXP_BODY + f"// {i}\n")
        output = os.path.join(scratch.out, f"{i}.npy")
        process = start(scratch, body, output)
        while process.poll() is None and not (child := child_of(process)):
            time.sleep(0.001)
        time.sleep(random.random() * 0.06)
        try:
            os.kill(child or process.pid + 100000000, signal.SIGKILL)
        except (OSError, OverflowError):
            pass  # it had ended
        status, messages = finish(process)
        seen.add(messages)
        expect(status == 0 and not messages or status == 1 and messages in KILLED, f"status {status} and message {messages}")
        done = scratch.run(scratch.command(body, output))
        expect_exp(done, output, "the kernel afterwards")
    expect(seen & set(KILLED), f"no compiler was killed: {seen}")


def start_some(scratch, smelt, count=5):
    body = scratch.file("exp.body", EXP_BODY)
    outputs = [os.path.join(scratch.out, f"{i}.npy") for i in range(count)]
    return [start(scratch, body, output, smelt) for output in outputs], outputs


TRIES = 3


def test_one_process_compiles_and_the_others_wait(scratch):
    """On a machine so busy that a process waits too long, another may compile as well: that is not so each time."""
    smelt = installed_with_script(scratch, f'echo "$1" >> {scratch.path}/starts', prelude=False)
    starts = None
    for number in range(TRIES):
        scratch.cache = os.path.join(scratch.path, f"cache{number}")
        processes, outputs = start_some(scratch, smelt)
        for process, output in zip(processes, outputs):
            expect_equal(finish(process), (0, ""), "status and messages")
            expect_values(output, EXP)
        with open(os.path.join(scratch.path, "starts"), encoding="utf-8") as file:
            starts = sorted(word for word in file.read().split() if word != "-vector-bits")
        os.remove(os.path.join(scratch.path, "starts"))
        if starts == ["-cc1", "-whole"]:
            return
    expect_equal(starts, ["-cc1", "-whole"], "the compilers that were started: one for the prelude, one for the kernel")


def test_killed_while_others_wait(scratch):
    smelt = installed_with_script(scratch, 'if [ "$1" = -whole ] && once; then sleep 1; kill -KILL $$; fi')
    processes, _ = start_some(scratch, smelt)
    ends = sorted(finish(process) for process in processes)
    expect_equal(ends, [(0, "")] * 4 + [(1, KILLED[0])], "the ends of the processes")


def test_the_host_killed_while_others_wait(scratch):
    smelt = installed_with_script(scratch, 'if [ "$1" = -whole ] && once; then kill -KILL $PPID; exit 1; fi')
    processes, _ = start_some(scratch, smelt)
    ends = sorted(finish(process) for process in processes)
    expect_equal(ends, [(-9, "")] + [(0, "")] * 4, "the ends of the processes")


def test_stopped_while_others_wait(scratch):
    """They wait for a while, and then compile themselves."""
    smelt = installed_with_script(scratch, 'if [ "$1" = -whole ] && once; then kill -STOP $PPID; sleep 1000; fi')
    processes, _ = start_some(scratch, smelt, 3)
    while not any(stopped(process) for process in processes):
        time.sleep(0.05)
    first = next(process for process in processes if stopped(process))
    try:
        ends = [finish(process) for process in processes if process is not first]
    finally:
        child = child_of(first)
        first.kill()
        first.communicate()
        if child:
            os.kill(child, signal.SIGKILL)
    expect_equal(ends, [(0, "")] * 2, "the ends of the others")


def stopped(process):
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


def test_two_versions_at_one_cache(scratch):
    other = installed_without_cc1(scratch, folder="other")
    body = scratch.file("exp.body", EXP_BODY)
    outputs = [os.path.join(scratch.out, f"{i}.npy") for i in range(6)]
    processes = [start(scratch, body, output, (SMELT, other)[i % 2]) for i, output in enumerate(outputs)]
    for process, output in zip(processes, outputs):
        expect_equal(finish(process), (0, ""), "status and messages")
        expect_values(output, EXP)


def in_mounts(scratch, commands, **changes):
    """Runs the kernel where `commands` have mounted file systems; None if that is not allowed here."""
    body, output = scratch.file("exp.body", EXP_BODY), os.path.join(scratch.out, "mounted.npy")
    probe = subprocess.run(["unshare", "-rm", "sh", "-c", commands], capture_output=True, check=False)
    if probe.returncode:
        print("skipped: file systems cannot be mounted here:", probe.stderr.decode().strip())
        return None
    done = subprocess.run(["unshare", "-rm", "sh", "-c", commands + ' && exec "$@"', "sh", SMELT, *scratch.command(body, output)],
                          capture_output=True, text=True, check=False, env=scratch.environment(**changes), stdin=subprocess.DEVNULL)
    expect_exp(done, output)
    return done.stderr


def test_full_disk(scratch):
    os.makedirs(scratch.cache, mode=0o700, exist_ok=True)
    messages = in_mounts(scratch, f"mount -t tmpfs -o size=16k,mode=700 none {scratch.cache}")
    if messages is not None:
        expect("No space left on device; it is not kept in the cache" in messages, f"the messages are {messages}")
        expect_equal(messages.count("\n"), 1, "the number of warnings")


def test_read_only_home(scratch):
    home = os.path.join(scratch.path, "home")
    os.mkdir(home)
    messages = in_mounts(scratch, f"mount -t tmpfs none {home} && mount -o remount,ro {home}", HOME=home, SMELT_CACHE_DIR=None,
                         XDG_CACHE_HOME=None)
    if messages is not None:
        expect("compiling without a cache" in messages, f"the messages are {messages}")
        expect_equal(messages.count("\n"), 1, "the number of warnings")


if HAS_CC1:
    run_tests(globals(), together=8)
else:
    print("skipped: this build has no smelt-cc1")
