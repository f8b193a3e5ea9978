#!/usr/bin/env python3
"""The command line with a GPU, over a driver that is not one: its kernels do nothing, so outputs keep what they began
with. What they compute is tested elsewhere."""
import os

from support import SMELT, EXP_BODY, entries, expect, expect_equal, expect_failure, run_tests, was_cached

FAKE = os.path.join(os.path.dirname(SMELT), "..", "tests", "libfakecuda.so")
FILE = """#include <metal_stdlib>
kernel void add(device float *out [[buffer(0)]], const device float *x [[buffer(1)]], constant float &a [[buffer(2)]],
                uint i [[thread_position_in_grid]]) { out[i] += a * x[i]; }
"""
BODY = ["-i", "inp=arange:float32:16", "-o", "out:float32:16", "-t", "T=float32", "--grid", "16"]


def run_body(scratch, *options, **changes):
    body = scratch.file("exp.body", EXP_BODY)
    return scratch.run(["run", "--body", body, *BODY, *options], SMELT_CUDA_DRIVER=FAKE, **changes)


def test_gpus_are_listed(scratch):
    done = scratch.run(["devices"], SMELT_CUDA_DRIVER=FAKE, FAKE_CUDA_DEVICES=2)
    expect_equal([line.split()[0] for line in done.stdout.splitlines()], ["cpu", "cpu-scalar", "cuda:0", "cuda:1"],
                 "the devices")
    expect("compute capability 9.0" in done.stdout, f"the capability in {done.stdout}")
    done = scratch.run(["devices"], SMELT_CUDA_DRIVER=FAKE, FAKE_CUDA_DEVICES=0)
    expect_equal(done.stdout.splitlines()[2],
                 "cuda         (not usable: the driver cannot be initialised: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is "
                 "detected))", "the line of a GPU that is not there")


def test_bodies_run(scratch):
    for device, name in (("cuda", "cuda:0"), ("cuda:1", "cuda:1")):
        done = run_body(scratch, "--device", device, "--init", "2.5", "--verbose", FAKE_CUDA_DEVICES=2)
        expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
        expect("min 2.5, max 2.5" in done.stdout, f"the output's first values in {done.stdout}")
        expect(f"ran on {name}: 16 x 1 x 1 threads" in done.stderr, f"the device in {done.stderr}")


def test_outputs_are_written(scratch):
    output = os.path.join(scratch.out, "out.npy")
    body = scratch.file("exp.body", EXP_BODY)
    arguments = [f"out:float32:16={output}" if word == "out:float32:16" else word for word in BODY]
    done = scratch.run(["run", "--body", body, *arguments, "--device", "cuda", "--init", "1"], SMELT_CUDA_DRIVER=FAKE)
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    expect_equal(os.path.getsize(output), 128 + 64, "the bytes of the file")


def test_files_run_and_are_measured(scratch):
    file = scratch.file("add.metal", FILE)
    done = scratch.run(["run", file, "add", "-b", "0:out:float32:8", "-b", "1=ones:float32:8", "--bytes", "2=float32:3",
                        "--grid", "8", "--device", "cuda", "--repeat", "3", "--timeout", "5"], SMELT_CUDA_DRIVER=FAKE)
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    expect("buffer 0 float32 8: min 0, max 0" in done.stdout, f"the output in {done.stdout}")
    # The driver's clock counts what it does as milliseconds.
    expect("median of 3 runs: 2.0000 ms" in done.stdout, f"the time of the device's own clock in {done.stdout}")


def test_code_comes_from_the_cache(scratch):
    expect_equal(run_body(scratch, "--device", "cuda").returncode, 0, "the exit status of the first run")
    done = run_body(scratch, "--device", "cuda", "--verbose")
    expect(was_cached(done), f"that nothing was compiled, in {done.stderr}")
    expect_equal(len(entries(scratch, "cubin")), 1, "the number of codes that were assembled")


def test_gpus_that_are_not_there(scratch):
    expect_failure(run_body(scratch, "--device", "cuda:3"), 3,
                   "smelt: device 'cuda:3' does not exist on this machine; expected one of: cpu, cpu-scalar, cuda:0")
    expect_failure(run_body(scratch, "--device", "cuda", FAKE_CUDA_DEVICES=0), 3,
                   "smelt: device 'cuda' cannot be used on this machine: the driver cannot be initialised: "
                   "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)")
    expect_failure(run_body(scratch, "--device", "cuda", "--threadgroup", "2000"), 1,
                   "smelt: kernel 'exp': threadgroup 2000 x 1 x 1 has 2000 threads; device 'cuda:0' allows at most 1024")


run_tests(globals())
