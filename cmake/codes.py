#!/usr/bin/env python3
"""Writes the folder of codes that are installed with libsmelt (src/frontend/installed.h):

    codes.py PROGRAM DRIVER OUT [--ptxas PROGRAM]

PROGRAM is smelt_codes, DRIVER the library of tests/cuda. The folder has PTX, which the driver assembles at the first call; where
the variable PTXAS or --ptxas names that program of NVIDIA's toolkit, it has machine code for compute capability 9.0. OUT is
replaced, since the names of its files are hashes that differ after each change of smelt."""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

DTYPES = ("float32", "float16", "bfloat16")
ARCHITECTURE = "sm_90a"


def collect(options, folder, dtype):
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, SMELT_CACHE_DIR=cache, SMELT_CUDA_DRIVER=options.driver, SMELT_TIERS="0",
                           FAKE_CUDA_MEMORY=str(1 << 32))
        for name in ("SMELT_CLANG", "SMELT_CPU", "SMELT_GPU_COARSE", "SMELT_GPU_BUFFERS"):
            environment.pop(name, None)
        return subprocess.run([options.program, folder, dtype], env=environment, check=False).returncode


def assemble(ptxas, path):
    """The machine code of a file of PTX, next to it."""
    done = subprocess.run([ptxas, f"-arch={ARCHITECTURE}", path, "-o", path[:-len("ptx")] + "cubin"], check=False)
    return done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("driver")
    parser.add_argument("out")
    parser.add_argument("--ptxas", default=os.environ.get("PTXAS"))
    options = parser.parse_args()
    if options.ptxas and not shutil.which(options.ptxas):
        sys.exit(f"codes.py: ptxas {options.ptxas}: there is no such program; expected that of NVIDIA's toolkit")
    folder = os.path.abspath(options.out) + ".new"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        failed = any(pool.map(lambda dtype: collect(options, folder, dtype), DTYPES))
        texts = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".ptx")]
        if options.ptxas and not failed:
            failed = any(pool.map(lambda path: assemble(options.ptxas, path), texts))
    if failed:
        sys.exit(1)
    for path in texts:
        os.remove(path)
    shutil.rmtree(options.out, ignore_errors=True)
    os.rename(folder, options.out)
    files = os.listdir(options.out)
    size = sum(os.path.getsize(os.path.join(options.out, name)) for name in files)
    print(f"{options.out}: {len(files)} files, {size / 1e6:.1f} MB, "
          + (f"machine code by {options.ptxas}" if options.ptxas else "PTX"))


if __name__ == "__main__":
    main()
