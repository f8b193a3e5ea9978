#!/usr/bin/env python3
"""What checking costs: the tests of tests/ml on the scalar engine, with and without SMELT_CHECK=1, one after the other.

Usage: check_cost.py BUILD [PROGRAM]…   Prints the ratio of the kernels' times (median over all kernels) and of the
programs' greatest memory. One thread of the host, as a checked run has.
"""
import os
import pathlib
import re
import statistics
import sys
import tempfile

LEFT_OUT = {"ml_tensor"}
TIMES = re.compile(r"^(?:\[ *\w+ *\] *)?(\S+) +\S+ +([\d.]+) us, \S+ +([\d.]+) us", re.M)


def run(path, **settings):
    """The scalar engine's microseconds by kernel, and the most memory of the program, in KiB."""
    with tempfile.TemporaryFile() as out:
        child = os.posix_spawn(path, [path], {**os.environ, "ML_TIMES": "1", "SMELT_THREADS": "1", **settings},
                               file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, out.fileno(), 2)])
        usage = os.wait4(child, 0)[2]
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    times = {}
    for number, (name, _, scalar) in enumerate(TIMES.findall(text)):
        times[f"{name} {number}"] = float(scalar)
    return times, usage.ru_maxrss


def main():
    build = pathlib.Path(sys.argv[1])
    names = sys.argv[2:] or sorted(path.name for path in (build / "tests").glob("ml_*")
                                   if os.access(path, os.X_OK) and path.name not in LEFT_OUT)
    times, memory = [], []
    for name in names:
        path = str(build / "tests" / name)
        plain, plain_memory = run(path)
        checked, checked_memory = run(path, SMELT_CHECK="1")
        ratios = [checked[kernel] / plain[kernel] for kernel in plain if kernel in checked and plain[kernel]]
        times += ratios
        memory.append(checked_memory / plain_memory)
        if ratios:
            print(f"{name:20} {len(ratios):3} kernels, time {statistics.median(ratios):6.1f} x (at most {max(ratios):.1f}), "
                  f"memory {memory[-1]:.1f} x", flush=True)
    if not times:
        sys.exit("no kernel was measured")
    print(f"all {len(times)} kernels: time {statistics.median(times):.1f} x in the median, memory {statistics.median(memory):.1f} x")


main()
