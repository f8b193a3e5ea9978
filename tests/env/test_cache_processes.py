#!/usr/bin/env python3
"""Many processes at one cache, and processes killed at any moment."""
import os
import random
import signal
import subprocess
import time

from support import COUNT, EXP_BODY, FULL, SMELT, entries, expect, expect_equal, expect_exp, expect_values, run_tests

PROCESSES = 16 if FULL else 8
KILLS = 24


def start(scratch, body, output):
    return subprocess.Popen([SMELT, *scratch.command(body, output)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=scratch.environment(), stdin=subprocess.DEVNULL)


def temporaries(folder):
    return [name for name in os.listdir(folder) if ".tmp." in name]


def test_many_processes_compile_one_kernel_at_once(scratch):
    body = scratch.file("exp.body", EXP_BODY)
    outputs = [os.path.join(scratch.out, f"{i}.npy") for i in range(PROCESSES)]
    running = [start(scratch, body, output) for output in outputs]
    for process, output in zip(running, outputs):
        out, err = process.communicate(timeout=1500)
        expect_equal((process.returncode, err), (0, ""), f"status and messages of a process ({out})")
        expect_values(output, [__import__("math").exp(i) for i in range(COUNT)])
    expect_equal(len(entries(scratch, "image")), 1, "the number of images")
    expect_equal(len(entries(scratch, "pch")), 1, "the number of preludes")
    expect_equal(temporaries(scratch.cache), [], "temporary files in the cache")


def test_killed_at_any_moment(scratch):
    """Each kernel is new, and killed somewhere between its start and a little after its end."""
    random.seed(3)
    bodies = [scratch.file(f"{i}.body", EXP_BODY.replace("T(inp[i])", f"T(inp[i] + {i})")) for i in range(KILLS)]
    scratch_before = set(os.listdir(scratch.path))
    folder_before = set(os.listdir("/tmp"))
    for i, body in enumerate(bodies):
        process = start(scratch, body, os.path.join(scratch.out, f"{i}.npy"))
        # The first ones make the prelude, the others mostly their own image.
        time.sleep(random.random() * (0.5 if i < 8 else 0.2))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    time.sleep(0.5)  # a compiler that lost its host ends by itself
    expect_equal(set(os.listdir(scratch.path)) - scratch_before, {"cache"}, "the files beside the kernels")
    ours = [name for name in set(os.listdir("/tmp")) - folder_before if "smelt" in name and not name.startswith("smelt-test-")]
    expect_equal(ours, [], "files of ours in /tmp")
    for name in os.listdir(scratch.out):
        expect_equal(os.path.getsize(os.path.join(scratch.out, name)), 128 + 4 * COUNT, f"the size of {name}")
    import math
    for i in (0, KILLS // 2, KILLS - 1):
        output = os.path.join(scratch.out, f"{i}.npy")
        done = scratch.run(scratch.command(bodies[i], output))
        expect_equal((done.returncode, done.stderr), (0, ""), "status and messages after the kills")
        expect_values(output, [math.exp(j + i) for j in range(COUNT)])


def test_killed_while_it_writes_an_output(scratch):
    """A large output over an old one: the old or the new, and nothing beside it."""
    body = scratch.file("fill.body", "uint i = thread_position_in_grid.x;\nout[i] = 2;\n")
    target = os.path.join(scratch.out, "big.npy")
    size = 1 << 22
    command = ["run", "--body", body, "-o", f"out:float32:{size}={target}", "--grid", "1", "--threadgroup", "1", "--init", "2"]
    start_time = time.monotonic()
    done = scratch.run(command)
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    start_time = time.monotonic()
    scratch.run(command)
    whole = time.monotonic() - start_time
    random.seed(4)
    for i in range(20):
        with open(target, "wb") as file:
            file.write(b"old")
        if i % 2:
            os.unlink(target)
            # If the round before left the second name, a process that is killed before it writes would leave it as well.
            if os.path.exists(target + ".tmp.new"):
                os.unlink(target + ".tmp.new")
        process = subprocess.Popen([SMELT, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=scratch.environment())
        time.sleep(random.random() * whole * 1.2)
        process.kill()
        process.wait()
        left = set(os.listdir(scratch.out))
        # The second name stands for microseconds while an old file is replaced; the next write takes it away.
        expect(left <= ({"big.npy"} if i % 2 else {"big.npy", "big.npy.tmp.new"}), f"left behind: {left}")
        if os.path.exists(target):
            expect(os.path.getsize(target) in (3, 128 + 4 * size), f"the output has {os.path.getsize(target)} bytes")


def test_what_a_killed_process_left_is_removed_after_a_day(scratch):
    """On file systems without nameless files: old temporary files go, young ones may belong to a process that runs."""
    done, output = scratch.run_exp()
    expect_exp(done, output)
    now = time.time()
    for name, age in (("old", 25 * 3600), ("young", 23 * 3600)):
        path = scratch.file(f"cache/{'0' * 32}.image.tmp.{name}", "half")
        os.utime(path, (now - age, now - age))
    os.utime(os.path.join(scratch.cache, ".tidied"), (now - 7200, now - 7200))
    done, output = scratch.run_exp()
    expect_exp(done, output)
    expect_equal(temporaries(scratch.cache), ["0" * 32 + ".image.tmp.young"], "the temporary files")


run_tests(globals(), prelude=False)
