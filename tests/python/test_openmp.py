"""Launches on CPUs run on the threads of GNU's OpenMP where the process has them, and on smelt's own elsewhere."""

import ctypes
import os
import subprocess
import sys

import pytest

try:
    ctypes.CDLL("libgomp.so.1")
except OSError:
    pytest.skip("libgomp.so.1 is not installed", allow_module_level=True)

PROGRAM = """
import ctypes, os, sys, threading
import numpy as np
import smelt

way = sys.argv[1]
if way != "not loaded":
    openmp = ctypes.CDLL("libgomp.so.1")
kernel = smelt.metal_kernel(
    name="steps", input_names=["x"], output_names=["y"],
    source="uint i = thread_position_in_grid.x; float v = x[i]; for (int k = 0; k < 3000; k++) v = sin(v) + x[i]; y[i] = v;")
x = np.linspace(0, 1, 4096, dtype=np.float32)

def launch(times):
    for _ in range(times):
        y, = kernel(inputs=[x], grid=(x.size, 1, 1), threadgroup=(64, 1, 1), output_shapes=[x.shape], output_dtypes=[np.float32])
    return y

def seconds():
    '''Of smelt's own threads.'''
    total = 0
    for task in os.listdir("/proc/self/task"):
        try:
            if open(f"/proc/self/task/{task}/comm").read().startswith("smelt pool"):
                total += int(open(f"/proc/self/task/{task}/schedstat").read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass  # a joined thread may end between the listing and the reading
    return total / 1e9

expected = launch(1)
before = seconds()
if way == "other thread":
    thread = threading.Thread(target=launch, args=(20,))
    thread.start()
    thread.join()
elif way == "forked":
    child = os.fork()
    if child == 0:
        right = bool((launch(20) == expected).all())
        print(seconds() > 1e-3 if right else "wrong", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    sys.exit()
else:
    assert bool((launch(20) == expected).all())
print(seconds() - before > 1e-3)
"""


@pytest.mark.parametrize("way, settings, own_threads", [
    ("loaded", {}, False), ("loaded", {"SMELT_OPENMP": "0"}, True), ("loaded", {"OMP_NUM_THREADS": "3"}, True),
    ("not loaded", {}, True), ("other thread", {}, True), ("forked", {}, True)])
def test_which_threads_run_launches(way, settings, own_threads):
    environment = {**os.environ, "SMELT_THREADS": "2", "OMP_NUM_THREADS": "2", **settings}
    done = subprocess.run([sys.executable, "-c", PROGRAM, way], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == [str(own_threads)], done.stdout + done.stderr
