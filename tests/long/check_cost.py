#!/usr/bin/env python3
"""What checking costs, compared with the scalar engine without tests.

Usage: check_cost.py BUILD [--jobs N] [PROGRAM]…   Processor time: of the launches in the programs of tests/ml, each of
which launches every kernel both ways; N programs at a time (default 1). Memory: the greatest of `smelt check` and
`smelt run`, for kernels that copy 64 MiB.
"""
import os
import pathlib
import re
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

COST = re.compile(r"checked +[\d.]+ us, cpu-scalar +[\d.]+ us, cost ([\d.]+)$", re.M)
COPIES = """
kernel void by_element(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  o[i] = a[i];
}
kernel void through_threadgroup_memory(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                       uint i [[thread_position_in_grid]],
                                       uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[256];
  s[t] = a[i];
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  o[i] = s[255 - t];
}
"""
ELEMENTS = 8 << 20


def run(command, **settings):
    """What it prints, and the most memory that it takes, in KiB."""
    with tempfile.TemporaryFile() as out:
        child = os.posix_spawn(command[0], command, {**os.environ, "SMELT_THREADS": "1", **settings},
                               file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, out.fileno(), 2)])
        usage = os.wait4(child, 0)[2]
        out.seek(0)
        return out.read().decode("utf-8", "replace"), usage.ru_maxrss


def memory(smelt):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "copies.metal")
        with open(path, "w", encoding="utf-8") as file:
            file.write(COPIES)
        for name in ("by_element", "through_threadgroup_memory"):
            launch = [path, name, "-b", f"0=ones:float32:{ELEMENTS}", "-b", f"1:out:float32:{ELEMENTS}",
                      "--grid", str(ELEMENTS), "--threadgroup", "256"]
            plain = run([smelt, "run", *launch, "--device", "cpu-scalar"])[1]
            checked = run([smelt, "check", *launch])[1]
            print(f"{name:28} memory {checked / plain:.1f} x", flush=True)


def main():
    build, names, jobs = pathlib.Path(sys.argv[1]), sys.argv[2:], 1
    if names[:1] == ["--jobs"]:
        jobs, names = int(names[1]), names[2:]
    memory(str(build / "bin/smelt"))
    names = names or sorted(path.name for path in (build / "tests").glob("ml_*") if os.access(path, os.X_OK))
    costs = []
    with ThreadPoolExecutor(jobs) as pool:
        for name, (text, _) in zip(names, pool.map(lambda name: run([str(build / "tests" / name)], ML_TIMES="check"), names)):
            own = [float(cost) for cost in COST.findall(text)]
            costs += own
            if own:
                print(f"{name:20} {len(own):4} launches, time {statistics.median(own):6.1f} x (at most {max(own):.1f})", flush=True)
    if not costs:
        sys.exit("no launch was measured")
    print(f"all {len(costs)} launches: time {statistics.median(costs):.1f} x in the median")


main()
