#!/usr/bin/env python3
"""`smelt tune`: kernels and operations are tuned, what is chosen is stored, wrong settings are skipped, Ctrl-C stores nothing."""
import json
import os
import signal
import subprocess
import time

from support import SMELT, expect, expect_equal, run_tests

BODY = """uint i = thread_position_in_grid.x;
float sum = 0;
for (int j = 0; j < STEPS; j++) sum += inp[i];
out[i] = STEPS == 3 ? 7 : sum / STEPS;
"""
FILE = """#include <metal_stdlib>
using namespace metal;
constant int TILE [[function_constant(0)]];
kernel void fill(device float *x [[buffer(0)]], uint group [[threadgroup_position_in_grid]]) {
    for (int i = 0; i < TILE; i++) x[group * TILE + i] = TILE == 8 ? 2 : 1;
}
"""
ONES = "out:float32:4096"


def write(scratch, name, text):
    path = os.path.join(scratch.path, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def ones_file(scratch):
    path = os.path.join(scratch.path, "ones.npy")
    body = write(scratch, "one.body", "out[thread_position_in_grid.x] = 1;\n")
    done = scratch.run(["run", "--body", body, "-o", f"out:float32:4096={path}", "--grid", "4096"])
    expect_equal(done.returncode, 0, done.stderr)
    return path


def tune(scratch, *arguments, **settings):
    return scratch.run(["tune", *arguments], **settings)


def body_arguments(scratch):
    body = write(scratch, "steps.body", BODY)
    return ["--body", body, "-i", "inp=ones:float32:4096", "-o", ONES, "--grid", "4096", "--space", "STEPS=262144,2,3", "--space",
            "threads=64,2048", "--expect", f"out={ones_file(scratch)}"]


def test_a_body_and_its_template_parameters(scratch):
    arguments = body_arguments(scratch)
    done = tune(scratch, *arguments)
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    lines = done.stdout.splitlines()
    expect_equal(lines[0].split(), ["candidate", "ms"], "the head")
    notes = {line.split()[0]: line for line in lines[1:-1]}
    expect("wrong result" in notes["STEPS=3,threads=64"], f"3 steps are wrong: {lines}")
    expect("skipped" in notes["STEPS=2,threads=2048"] and "2048" in notes["STEPS=2,threads=2048"], f"too many threads: {lines}")
    expect(lines[-1].startswith("steps: -t STEPS=2 --threadgroup 64 ("), f"the choice: {lines[-1]}")
    done = tune(scratch, *arguments)
    expect_equal(done.stdout, "steps: -t STEPS=2 --threadgroup 64 (stored before; --again searches)\n", "the second time")
    done = tune(scratch, *arguments, "--json")
    expect_equal(json.loads(done.stdout), {"name": "steps", "choice": "-t STEPS=2 --threadgroup 64", "median_s": None, "stored": True},
                 "the choice in JSON")


def test_a_function_whose_groups_depend_on_its_constants(scratch):
    path = write(scratch, "fill.metal", FILE)
    done = tune(scratch, path, "--space", "TILE=8,1,512", "--divide", "TILE", "--groups", "4096", "--threadgroup", "1", "-b",
                "0:out:float32:4096", "--expect", f"0={ones_file(scratch)}")
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    lines = done.stdout.splitlines()
    expect("wrong result" in lines[1], f"tiles of 8 are wrong: {lines}")
    choices = ("--constant TILE=512 --groups 8,1,1 (", "--constant TILE=1 --groups 4096,1,1 (")
    expect(any(choice in lines[-1] for choice in choices), f"the choice: {lines[-1]}")


def test_an_operation_uses_what_was_found(scratch):
    done = tune(scratch, "matmul", "--sizes", "100x70x30", "--budget", "5")
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    expect(done.stdout.splitlines()[-1].startswith("matmul float32 100x70x30: "), done.stdout)
    listed = tune(scratch, "--list").stdout
    expect(listed.startswith("matmul: float32 128x128x32: "), f"stored by the class of the sizes: {listed}")
    done = tune(scratch, "matmul", "--sizes", "128x65x32")
    expect("stored before" in done.stdout, f"sizes of the same class: {done.stdout}")
    done = tune(scratch, "attention", "--sizes", "2x64x64x16", "--dtype", "bfloat16", "--budget", "1")
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages of attention")


def test_clearing_the_cache_keeps_results(scratch):
    arguments = body_arguments(scratch)
    tune(scratch, *arguments)
    expect_equal(scratch.run(["cache", "--clear"]).returncode, 0, "status of cache --clear")
    expect("stored before" in tune(scratch, *arguments).stdout, "the result after cache --clear")
    expect_equal(tune(scratch, "--forget").returncode, 0, "status of --forget")
    expect_equal(tune(scratch, "--list").stdout, "", "the list after --forget")


def test_control_c_keeps_the_sizes_before(scratch):
    command = [SMELT, "tune", "matmul", "--sizes", "16x16x16,1500x1500x1500", "--budget", "60"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=scratch.environment())
    for line in process.stdout:
        if line.startswith("matmul float32 16x16x16: "):
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    expect("interrupted" in errors, f"the message: {errors}")
    listed = tune(scratch, "--list").stdout.splitlines()
    expect_equal([line.split(": ")[1] for line in listed], ["float32 16x16x16"], "the stored results")


def test_control_c_stores_nothing(scratch):
    body = write(scratch, "slow.body", BODY)
    values = ",".join(str(3000 + i) for i in range(60))
    command = [SMELT, "tune", "--body", body, "-i", "inp=ones:float32:65536", "-o", "out:float32:65536", "--grid", "65536", "--space",
               f"STEPS={values}", "--budget", "60"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=scratch.environment())
    expect("candidate" in process.stdout.readline(), "the table begins")
    process.stdout.readline()
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    expect(process.returncode > 0 and "interrupted" in errors, f"status {process.returncode}: {errors}")
    expect(time.monotonic() - begin < 10, "it ends soon")
    expect_equal(tune(scratch, "--list").stdout, "", "the stored results")


def test_bad_command_lines(scratch):
    body = write(scratch, "a.body", "out[thread_position_in_grid.x] = A;\n")
    run = ["--body", body, "-o", "out:float32:4", "--grid", "4"]
    for arguments, message in (
            (run, "--space is missing, as in --space TILE=8,16,32"),
            ([*run, "--space", "A"], "--space is 'A', expected NAME=V,V…, like TILE=8,16,32"),
            ([*run, "--space", "A=1,x"], "--space is 'A=1,x', expected whole numbers after '='"),
            ([*run, "--space", "A=1", "--expect", "x=a.npy"], "--expect names 'x', which is not an output"),
            ([*run, "--space", "A=1", "--divide", "B"], "--divide names 'B', which has no --space"),
            ([*run, "--space", "A=1", "--divide", "A"], "--divide needs --groups, as in --groups 1024"),
            (["matmul", "--sizes", "3x"], "--sizes is '3x', expected sizes like 1024,1000x300x517"),
            (["matmul", "--sizes", "3x4"], "--sizes has an entry of 2 numbers, expected 1 or 3: rows, columns, depth"),
            (["matmul", "--dtype", "int8"], "--dtype is 'int8', expected float32, float16 or bfloat16"),
            ([], "no SOURCE is given; see smelt tune --help")):
        done = tune(scratch, *arguments)
        expect_equal((done.returncode, done.stderr), (2, f"smelt: {message}\n"), f"smelt tune {arguments}")


run_tests(globals())
