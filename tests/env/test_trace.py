#!/usr/bin/env python3
"""smelt run --trace: the file is what Chrome's trace-event format says, and says what the run did."""
import json
import math
import os
import shutil
import subprocess

from support import SMELT, EXP_BODY, expect, expect_equal, expect_failure, run_tests

FAKE = os.path.join(os.path.dirname(SMELT), "..", "tests", "libfakecuda.so")
FILE = """#include <metal_stdlib>
kernel void add(device float *out [[buffer(0)]], const device float *x [[buffer(1)]], constant float &a [[buffer(2)]],
                uint2 i [[thread_position_in_grid]]) { uint at = i.y * 30 + i.x; out[at] += a * x[at]; }
"""
LOOP = "uint i = thread_position_in_grid.x; while (inp[i] >= 0) out[i] += 1;"
# A number no process has: tracks of GPUs.
FIRST_GPU = 10_000_000


def run_traced(scratch, arguments, status=0, **changes):
    """Runs with a trace; the file's metadata and events, checked for what holds of every trace."""
    path = os.path.join(scratch.out, "trace.json")
    if os.path.exists(path):
        os.unlink(path)
    done = scratch.run([*arguments, "--trace", path], **changes)
    expect_equal(done.returncode, status, f"the exit status ({done.stderr})")
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    check(trace)
    return trace


def check(trace):
    duration = trace["otherData"]["duration_ns"] / 1000
    tracks = {}
    named = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    processes = {e["pid"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "process_name"}
    for event in trace["traceEvents"]:
        expect(event["ph"] in ("X", "M"), f"an event of kind {event['ph']}")
        if event["ph"] == "M":
            continue
        expect(event["dur"] >= 0 and event["ts"] >= 0, f"times before the beginning or the own start: {event}")
        expect(event["ts"] + event["dur"] <= duration, f"an end behind that of the trace, {duration}: {event}")
        expect((event["pid"], event["tid"]) in named, f"a track without a name: {event}")
        expect(event["pid"] in processes, f"a process without a name: {event}")
        start = round(event["ts"] * 1000)
        tracks.setdefault((event["pid"], event["tid"]), []).append((start, start + round(event["dur"] * 1000), event))
    for slices in tracks.values():
        inside = []
        for start, end, event in sorted(slices, key=lambda s: (s[0], -s[1])):
            while inside and inside[-1] <= start:
                inside.pop()
            expect(not inside or end <= inside[-1], f"a slice that is neither beside nor within the one before: {event}")
            inside.append(end)
    expect_equal(trace["otherData"]["events"], sum(e["ph"] == "X" for e in trace["traceEvents"]), "the number of events")
    expect_equal(trace["otherData"]["dropped_events"], 0, "the number of events that were dropped")


def slices(trace, category, name=None):
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == category and name in (None, e["name"])]


def names(trace, category):
    return [e["name"] for e in slices(trace, category)]


def within(inner, outer):
    return (inner["pid"], inner["tid"]) == (outer["pid"], outer["tid"]) and \
        outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.001


def body(scratch, *extra, count=100_000, text=EXP_BODY):
    return ["run", "--body", scratch.file("probe.body", text), "-i", f"inp=arange:float32:{count}", "-o",
            f"out:float32:{count}", "-t", "T=float32", "--grid", str(count), "--threadgroup", "128", *extra]


def test_launches_of_bodies(scratch):
    trace = run_traced(scratch, body(scratch, "--repeat", "3"), SMELT_THREADS=2)
    launches = slices(trace, "launch")
    expect_equal([e["name"] for e in launches], ["probe"] * 3, "the launches")
    for launch in launches:
        args = launch["args"]
        expect_equal([args["grid"], args["threadgroup"], args["groups"]], [[100_000, 1, 1], [128, 1, 1], [782, 1, 1]],
                     "the size of a launch")
        expect_equal([args["threads"], args["device"], args["engine"], args["timeout_s"]], [100_000, "cpu", "simd", 60],
                     "how it ran")
        expect_equal(args["buffers"], [{"index": 0, "name": "inp", "bytes": 400_000, "access": "read"},
                                       {"index": 1, "name": "out", "bytes": 400_000, "access": "write"}], "its buffers")
        expect_equal([args["bytes_read"], args["bytes_written"]], [400_000, 400_000], "their bytes")
        expect("status" not in args, f"a status of a launch that went well: {args}")
        workers = [e for e in slices(trace, "worker", "probe") if launch["ts"] <= e["ts"] <= launch["ts"] + launch["dur"]]
        expect_equal(sum(e["args"]["groups"] for e in workers), 782, "the groups that workers ran")
        expect(len({e["tid"] for e in workers}) == len(workers) <= 2, f"a slice for each worker: {workers}")


def test_compiles_cold_and_warm(scratch):
    shutil.rmtree(scratch.cache)
    cold = run_traced(scratch, body(scratch, count=256))
    compiled = slices(cold, "compile", "compile probe")
    expect_equal([(e["args"]["cache"], e["args"]["device"], e["args"]["engine"]) for e in compiled], [("miss", "cpu", "simd")],
                 "the compile")
    stages = ["precompile prelude", "clang", "optimise", "vectorise", "generate code"]
    expect_equal([e["name"] for e in slices(cold, "compile") if within(e, compiled[0]) and e is not compiled[0]], stages,
                 "its stages")
    expect_equal(names(cold, "compile")[0], "translate probe", "what comes first")
    expect(compiled[0]["ts"] + compiled[0]["dur"] <= slices(cold, "launch")[0]["ts"], "a launch before its code is there")
    warm = run_traced(scratch, body(scratch, count=256))
    expect_equal([(e["name"], e["args"].get("cache")) for e in slices(warm, "compile")],
                 [("translate probe", None), ("compile probe", "hit")], "compiles with a warm cache")
    expect(slices(warm, "compile", "compile probe")[0]["dur"] < compiled[0]["dur"], "a hit that takes longer than a miss")
    included = run_traced(scratch, body(scratch, count=256, text="#include \"none.h\"\n" + EXP_BODY), status=1)
    failed = slices(included, "compile", "translate probe")[0]
    expect_equal(failed["args"]["status"], "SMELT_ERROR_COMPILE", "the status of what does not compile")
    expect("none.h" in failed["args"]["error"], f"why, in {failed}")
    expect(any(within(e, failed) for e in slices(included, "compile", "preprocess")), "no slice for the preprocessor")


def test_launches_of_files(scratch):
    file = scratch.file("add ü x.metal", FILE)
    trace = run_traced(scratch, ["run", file, "add", "-b", "0:out:float32:30x20", "-b", "1=ones:float32:30x20", "--bytes",
                                 "2=float32:3", "--grid", "30,20", "--threadgroup", "8,4", "--device", "cpu-scalar"])
    args = slices(trace, "launch", "add")[0]["args"]
    expect_equal([args["grid"], args["threadgroup"], args["groups"]], [[30, 20, 1], [8, 4, 1], [4, 5, 1]], "the size")
    expect_equal(args["buffers"], [{"index": 0, "name": "out", "bytes": 2400, "access": "write"},
                                   {"index": 1, "name": "x", "bytes": 2400, "access": "read"},
                                   {"index": 2, "name": "a", "bytes": 4, "access": "read"}], "the buffers")
    expect_equal([args["bytes_read"], args["bytes_written"]], [2404, 2400], "their bytes")
    expect_equal([args["device"], args["engine"]], ["cpu-scalar", "scalar"], "the engine")
    expect_equal(names(trace, "compile").count(f"translate {file}"), 1, "the translation of a file with an odd name")
    expect("lower" in names(trace, "compile"), "no stage for the scalar engine")


def test_launches_that_fail(scratch):
    trace = run_traced(scratch, body(scratch, "--timeout", "0.2", text=LOOP, count=64), status=1)
    launch = slices(trace, "launch")[0]
    expect_equal([launch["args"]["status"], launch["args"]["timeout_s"]], ["SMELT_ERROR_TIMEOUT", 0.2], "how it ended")
    expect("ran longer than the time-out of 0.2 seconds" in launch["args"]["error"], f"the message in {launch}")
    expect(launch["dur"] >= 0.2e6, f"a launch that ended before its time-out: {launch}")


def test_files_that_cannot_be_written(scratch):
    path = os.path.join(scratch.path, "nowhere", "trace.json")
    expect_failure(scratch.run([*body(scratch), "--trace", path]), 3,
                   f"smelt: file '{path}' cannot be written: No such file or directory")


def test_a_killed_run_leaves_nothing(scratch):
    path = os.path.join(scratch.out, "trace.json")
    arguments = body(scratch, "--timeout", "0", "--trace", path, text=LOOP, count=64)
    with subprocess.Popen([SMELT, *arguments], env=scratch.environment()) as process:
        try:
            process.wait(timeout=1.5)
            raise AssertionError("an endless kernel ended")
        except subprocess.TimeoutExpired:
            process.kill()
    expect_equal(os.listdir(scratch.out), [], "what is left")


def test_events_have_a_limit(scratch):
    path = os.path.join(scratch.out, "trace.json")
    done = scratch.run([*body(scratch, "--repeat", "50"), "--trace", path], SMELT_TRACE_EVENTS=20)
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    kept, dropped = (trace["otherData"][name] for name in ("events", "dropped_events"))
    expect_equal(sum(e["ph"] == "X" for e in trace["traceEvents"]), kept, "the number of events")
    expect(kept == 20 and dropped >= 50 + 50 - 20, f"kept {kept} and dropped {dropped} of at least 100")
    expect(f"{dropped} events were dropped; at most 20 are kept" in done.stderr, f"the warning in {done.stderr}")


def gpu(trace, ordinal):
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == FIRST_GPU * (1 + ordinal)]


def test_gpus_have_tracks(scratch):
    trace = run_traced(scratch, body(scratch, "--init", "2", "--device", "cuda:1", "--repeat", "2", count=1000),
                       SMELT_CUDA_DRIVER=FAKE, FAKE_CUDA_DEVICES=2, FAKE_CUDA_CLOCK=1)
    process = [e for e in trace["traceEvents"] if e["ph"] == "M" and e["pid"] == 2 * FIRST_GPU]
    expect_equal([e["args"].get("name") for e in process if e["name"] != "process_labels"], ["cuda:1", "default stream"],
                 "the names of the GPU and its stream")
    expect_equal(gpu(trace, 0), [], "the slices of a GPU that is not used")
    kernels = slices(trace, "kernel", "probe")
    enqueued = slices(trace, "enqueue", "enqueue probe")
    expect_equal(len(kernels), 2, "the number of launches on the GPU")
    expect_equal([e["args"]["grid"] + e["args"]["threadgroup"] for e in kernels], [[1000, 1, 1, 128, 1, 1]] * 2, "their size")
    expect_equal([e["bind_id"] for e in kernels], [e["bind_id"] for e in enqueued], "the arrows to them")
    expect(all(e["flow_in"] for e in kernels) and all(e["flow_out"] for e in enqueued), "an arrow without a direction")
    expect_equal([e["args"]["engine"] for e in enqueued], ["ptx"] * 2, "the engine")
    expect_equal([e["args"]["bytes_written"] for e in enqueued], [4000] * 2, "the bytes written")
    copies = [(e["name"], e["args"]["bytes"]) for e in gpu(trace, 1) if e["cat"] == "copy"]
    expect_equal(copies, [("copy from host", 4000), ("fill", 4000)] * 2 + [("copy to host", 4000)], "the copies on the stream")
    for e in kernels:
        cause = [c for c in enqueued if c["bind_id"] == e["bind_id"]][0]
        # The driver that is not one works when it is called; clocks are compared to some microseconds.
        expect(cause["ts"] - 100 <= e["ts"] <= cause["ts"] + cause["dur"] + 100, f"a kernel far from its launch: {e}, {cause}")
    expect({"make PTX", "load module", "assemble"} <= set(names(trace, "compile")), f"stages in {names(trace, 'compile')}")
    expect("copy from cuda:1" in names(trace, "copy"), f"the host's copies in {names(trace, 'copy')}")
    expect(math.isclose(sum(e["args"]["bytes"] for e in slices(trace, "copy", "copy to cuda:1")), 8000), "bytes to the GPU")


run_tests(globals())
