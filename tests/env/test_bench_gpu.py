#!/usr/bin/env python3
"""`smelt bench gpu`: a trial run where there is a GPU, the reason why not where there is none; what its kernels become.
And what else PTX must be like to be fast."""
import json
import os
import re
import shutil
import subprocess

from support import FULL, SMELT, expect, expect_equal, run_tests

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "kernels")
JOBS = {"copy", "launch", "exp", "exp-64", "exp-256", "exp-1024", "swiglu-bf16", "swiglu-f16", "gelu-bf16", "gelu-f16", "residual-bf16",
        "residual-f16", "transpose-read", "broadcast", "scale-rows", "layer-norm", "softmax", "rms-norm", "grid-sample", "grid-sample-vjp", "inverse", "matmul",
        "matmul2d-4096", "matmul2d-8192", "matvec-q4_0", "matvec-q5_0", "matvec-q8_0", "matvec-mxfp4", "matvec-q4_K", "matvec-q6_K",
        "matmat-f16", "matmat-q4_0", "attention", "attention-8", "attention-8-128", "attention-32", "attention-32-128",
        "straight-product"}


def why_no_gpu(scratch):
    """The sentence of a run without a GPU; None where there is one."""
    lines = scratch.run(["devices"]).stdout.splitlines()
    usable = [line for line in lines if line.startswith("cuda:0") and "not usable" not in line]
    return None if usable else "no GPU here"


def test_without_a_gpu_it_says_so(scratch):
    done = scratch.run(["bench", "gpu", "--quick"], SMELT_CUDA_DRIVER="/no/such/driver")
    expect_equal((done.returncode, done.stdout), (3, ""), "status and output")
    expect("cuda" in done.stderr and "/no/such/driver" in done.stderr, f"not the reason: {done.stderr}")


def test_every_job_is_right(scratch):
    why = why_no_gpu(scratch)
    if why:
        return f"skipped: {why}"
    done = scratch.run(["bench", "gpu", "--quick", "--json"], timeout=1500)
    rows = json.loads(done.stdout) if done.stdout else []
    expect(done.returncode == 0 and not done.stderr, f"status {done.returncode}: {done.stderr}{done.stdout}")
    expect_equal({row["job"] for row in rows}, JOBS, "the jobs")
    for row in rows:
        expect("error" not in row and ("note" in row or row["median_s"] > 0), f"no time in {row}")
    return None


def test_kernels_that_do_nothing_are_wrong(scratch):
    """On a driver whose launches do nothing each kernel's row is a failure, and the jobs go on."""
    fake = os.path.join(os.path.dirname(SMELT), "..", "tests", "libfakecuda.so")
    if not os.path.exists(fake):
        return f"skipped: no {fake}"
    jobs = JOBS if FULL else set(sorted(JOBS)[::3])  # each compiles kernels
    done = scratch.run(["bench", "gpu", *([] if FULL else sorted(jobs)), "--quick", "--json"], SMELT_CUDA_DRIVER=fake, timeout=200)
    expect_equal(done.returncode, 1, f"the exit status ({done.stderr})")
    rows = json.loads(done.stdout)
    expect_equal({row["job"] for row in rows}, jobs, "the jobs")
    for row in rows:
        kernel = row["job"] != "launch" and row["variant"].startswith(("smelt", "seed")) and "note" not in row
        expect_equal(row.get("error", "").startswith("wrong result: "), kernel, f"whether this is a failure: {row}")
        if row["variant"] in ("cuMemcpyDtoD", "floor, by copy") or row["job"] == "launch":
            expect(row["median_s"] > 0, f"no time in {row}")
    found = {row["job"] for row in rows if row["variant"].startswith("smelt")}
    expect_equal(found, jobs, "the jobs with a row of smelt's")
    return None


def ptx_of(scratch, file, function, threads):
    done = scratch.run(["show", os.path.join(KERNELS, file), function, "--stage", "ptx", "--target", "sm_90a",
                        "--threadgroup", str(threads)])
    expect_equal((done.returncode, done.stderr), (0, ""), f"status and messages of {function}")
    return done.stdout


def test_accesses_are_16_bytes_wide(scratch):
    """What goes to and from device memory in the benchmark's kernels (of sampling, sizes too), and that nothing lies in local memory."""
    for file, function, threads, loads, stores in (
            ("gpu_copy.metal", "copy", 256, 2, 2), ("gpu_copy.metal", "exponential", 256, 2, 2),
            ("gpu_rows.metal", "softmax_rows", 256, 4, 4), ("gpu_rows.metal", "rms_norm_rows", 256, 8, 4),
            ("gpu_sample.metal", "sample_64", 256, 5, 1), ("gpu_sample.metal", "sample_vjp_64", 256, 6, 0),
            ("gpu_inverse.metal", "inverse_64", 64, 32, 0)):  # in each of two forms, with and without guards
        ptx = ptx_of(scratch, file, function, threads)
        found = tuple(len(re.findall(rf"\b{kind}\.global\.(?:nc\.)?v4\.\w32", ptx)) for kind in ("ld", "st"))
        expect_equal(found, (loads, stores), f"wide loads and stores of {function}")
        expect(".local" not in ptx, f"{function} keeps something in local memory")


def test_neighbouring_additions_are_one(scratch):
    ptx = ptx_of(scratch, "gpu_sample.metal", "sample_vjp_64", 256)
    expect_equal(ptx.count("add.v4.f32"), 4, "additions of vectors")
    expect("atom." not in ptx, "an addition whose old value nobody wants has it fetched")


def test_pairs_are_rounded_at_once(scratch):
    ptx = ptx_of(scratch, "gpu_rows.metal", "rms_norm_rows", 256)
    expect_equal((ptx.count("cvt.rn.bf16x2.f32"), ptx.count("cvt.rn.bf16.f32")), (16, 0), "conversions to bfloat")


def test_private_arrays_lie_in_registers(scratch):
    """Of the four arrays of the case, of 48, 20, 40 and 32 words, only the one with an index from memory does not."""
    ptx = ptx_of(scratch, os.path.join("..", "..", "tests", "kernels", "private_steps.metal"), "k", 64)
    expect_equal(re.findall(r"__local_depot0\[(\d+)\]", ptx), ["128"], "bytes in local memory")


FORMS = "\n".join(f"out[{i}] = {call};" for i, call in enumerate((
    "fast::exp(x)", "fast::exp2(x)", "fast::log(x)", "fast::log2(x)", "fast::log10(x)", "fast::sin(x)", "fast::cos(x)",
    "fast::rsqrt(x)", "x / inp[1]")))


def forms_ptx(scratch, body, math):
    file = scratch.file("forms.body", "float x = inp[0];\n" + body)
    done = scratch.run(["show", file, "--body", "-i", "inp=rand:float32:16", "-o", "out:float32:16", "--grid", "1",
                        "--stage", "ptx", "--target", "sm_90a", "--math", math])
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    return done.stdout


def test_fast_forms_are_approximations(scratch):
    ptx = forms_ptx(scratch, FORMS, "fast")
    for instruction, count in (("ex2.approx.ftz.f32", 2), ("lg2.approx.ftz.f32", 1), ("sin.approx.ftz.f32", 1),
                               ("cos.approx.ftz.f32", 1), ("rsqrt.approx.f32", 1), ("div.full.f32", 1)):
        expect_equal(ptx.count(instruction), count, f"occurrences of {instruction}")


def test_precise_forms_are_not(scratch):
    for math, body in (("safe", FORMS.replace("fast::", "precise::")), ("fast", FORMS.replace("fast::", "precise::"))):
        ptx = forms_ptx(scratch, body, math)
        # That of rsqrt is where its exact steps begin.
        expect(".approx" not in ptx.replace("rsqrt.approx.ftz", ""), f"an approximation in a precise form, math mode {math}")


def test_ptx_can_be_assembled(scratch):
    if not shutil.which("ptxas"):
        return "skipped: no ptxas here"
    for file, function, threads in (("gpu_rows.metal", "softmax_rows", 256), ("gpu_sample.metal", "sample_vjp_64", 256)):
        path = scratch.file(function + ".ptx", ptx_of(scratch, file, function, threads))
        done = subprocess.run(["ptxas", "-arch=sm_90a", path, "-o", path + ".cubin"], capture_output=True, text=True, check=False)
        expect_equal((done.returncode, done.stderr), (0, ""), f"what ptxas says of {function}")
    return None


run_tests(globals())
