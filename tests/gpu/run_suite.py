#!/usr/bin/env python3
"""Runs the kernel test-suite on a GPU: `make check-gpu`, or from any copy of a build

    tests/gpu/run_suite.py [BUILD_FOLDER] [--only REGEX] [--without REGEX] [--jobs N] [--device cuda:1]
                           [--part small] [--sanitizer memcheck|racecheck] [--target sm_80] [--log FOLDER] [--seconds N] [--list]

What runs: the cases of tests/kernels (against their expectations, and bit by bit against device cpu), the families of
tests/ml (against float64 references and device cpu), tests/check (accesses out of bounds), tests/seeds, tests/prelude,
tests/library (against Python), tests/accuracy, the tests of tests/unit that are of a GPU or can be, and random kernels on
both CPU engines and the GPU.
Standard output has a line for each failure, its message in it, a line for each test that was skipped, and last
`passed N, failed N, skipped N`. Exit status: 0 none failed, 1 some did, 2 bad command line, 77 there is no GPU.
With --seconds, no test starts later than that: those left are named, counted as `not run N`, and the status is 1.

The build may come from another machine (tests/gpu/bundle.sh collects what is needed of it): nothing of its paths is
used. clang is found as smelt finds it, LLVM's library by LD_LIBRARY_PATH or where the system has it.
"""
import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NO_GPU = 77  # ctest's SKIP_RETURN_CODE, and what a test says that is skipped as a whole

# A few tests that see most of what there is, for `make check` on machines with a GPU.
SMALL = r"kernel_(exp|atomic_operations|attributes_wide|barrier_reverse|constants_function|lanes_rounding|ml_softmax_rows" \
        r"|return_before_barrier|simd_control_flow|simd_reductions|simdgroup_matrix|type_vectors)|ml_(scan|softmax)" \
        r"|fuzz_corpus|unit_.*"

# Groups of kernels in one program of tests/accuracy that are worth a process of their own: it is the longest test.
ACCURACY_PARTS = ("functions", "conversions", "geometric", "packing")

# What is not for a sanitizer: it would report what the test does on purpose, or see nothing of it.
NOT_SANITIZED = {
    "unit_cuda_machine": "it asks for more memory than there is, forks, and resets the device on purpose",
    "unit_engine": "kernels in it fault and do not end on purpose",
    "unit_kernel_log": "kernels in it fault and do not end on purpose",
}
# What takes most of the GPU's memory for itself, or measures, and so runs by itself, after the others.
ALONE = r"unit_device_work|unit_cuda_machine|unit_cuda_machine_trace"


class Test:
    """One command; `cmocka`: its output tells of several tests. `inner` runs smelt itself as a child."""

    def __init__(self, name, command, limit=300, cmocka=False, inner=False, environment=None):
        self.name, self.command, self.limit, self.cmocka, self.inner = name, [str(c) for c in command], limit, cmocka, inner
        self.environment = environment or {}


class Result:
    """What a test came to: lists of (name, message)."""

    def __init__(self):
        self.passed, self.failed, self.skipped, self.output, self.seconds = [], [], [], "", 0.0


# ---- Which tests there are.


def kernel_tests(smelt):
    runner = ROOT / "tests/kernels/run_case.py"
    for path in sorted((ROOT / "tests/kernels").iterdir()):
        if path.suffix in (".metal", ".body"):
            yield Test(f"kernel_{path.stem}", [sys.executable, "-B", runner, smelt, path], limit=300, inner=True)


def program_tests(build):
    for folder, limit in (("ml", 300), ("seeds", 180), ("prelude", 180)):
        for path in sorted((ROOT / "tests" / folder).glob("test_*.c")):
            name = folder + "_" + path.stem[len("test_"):]
            yield Test(name, [build / "tests" / name], limit=limit, cmocka=folder != "prelude")
    for path in sorted((ROOT / "tests/unit").glob("test_*.c")):
        name = "unit_" + path.stem[len("test_"):]
        # It takes its device from SMELT_TEST_DEVICE; graph.h includes device.h.
        if re.search(r'#include "(../device|graph)\.h"', path.read_text(encoding="utf-8")):
            yield Test(name, [build / "tests" / name], cmocka=True)


def library_tests(smelt):
    for path in sorted((ROOT / "tests/library").glob("test_*.py")):
        if path.stem != "test_coverage":  # it looks at texts only
            yield Test("library_" + path.stem[len("test_"):], [sys.executable, "-B", path, smelt], inner=True)


def check_tests(smelt, device):
    yield Test("check_planted", [sys.executable, "-B", ROOT / "tests/check/test_planted.py", smelt, device], inner=True)


def accuracy_tests(build, device):
    for part in ACCURACY_PARTS:
        yield Test(f"accuracy_{part}", [build / "tests/measure_accuracy", "--quick", "--device", device, "--only", part],
                   limit=600)


# What makes threads wait for each other or loop: without it, one thread of a GPU does the work of several.
TOGETHER = ("for,for_varying,while,do,break,continue,barrier,barrier_loop,tree,threadgroup_atomic,atomic,atomic_own,simd_reduce,"
            "simd_float,simd_scan,simd_shuffle,simd_matrix,simd_vote,quad,simd_divergent,simd_barrier,simd_float_scan,leave_barrier,"
            "helper,fast")


def fuzz_tests(build, device, folder, count):
    # What GPUs round otherwise than CPUs: tests/ml/rounding.c. One difference would spread through a whole kernel.
    fuzzer, devices = build / "fuzz/fuzz_kernels", ["--device", device if device == "cpu" else f"cpu,{device}",
                                                    "--without", "simd_float_scan,simd_matrix,fast"]
    corpus = sorted((ROOT / "tests/fuzz_kernels/corpus").glob("*.kernel"))
    yield Test("fuzz_corpus", [fuzzer, *devices, "--replay", *corpus])
    for seed in (1, 1001, 3001, 4001, 5001, 6001, 7001, 8001):
        yield Test(f"fuzz_{seed}", [fuzzer, *devices, "--seed", seed, "--count", count, "--seconds", 100, "--reduce", 0,
                                    "--output", folder / "kernels"], limit=400)
    for buffers in ("seen", "any"):
        yield Test(f"fuzz_coarse_{buffers}", ["env", "SMELT_GPU_COARSE=always", f"SMELT_GPU_BUFFERS={buffers}", fuzzer, "--device",
                                              device, "--oracle", "cpu", "--without", TOGETHER, "--seed", 9001, "--count", count,
                                              "--seconds", 100, "--reduce", 0, "--output", folder / "kernels"], limit=400)


def all_tests(build, smelt, device, folder, sanitizer):
    # The long ones first, so that none is left alone at the end.
    tests = [*accuracy_tests(build, device), *fuzz_tests(build, device, folder, 5 if sanitizer else 50),
             *program_tests(build), *library_tests(smelt), *check_tests(smelt, device), *kernel_tests(smelt)]
    return [t for t in tests if not (sanitizer and t.name.startswith("accuracy_"))]  # hours


# ---- Running one.


def read_cmocka(name, output, result):
    """Each test of the program by its own name; False if the output is none of cmocka's."""
    lines, seen = [], False
    for line in output.splitlines():
        mark = re.match(r"\[\s*(RUN|OK|FAILED|SKIPPED|ERROR)\s*\] (.*)", line)
        if not mark:
            lines.append(line)
            continue
        seen, (kind, rest) = True, mark.groups()
        if kind == "RUN":
            lines = []
        elif kind == "ERROR":
            lines.append(rest.removeprefix("--- "))
        elif kind == "OK":
            result.passed.append((f"{name}: {rest}", ""))
        elif kind == "SKIPPED" and "test(s)" not in rest and not any(n == f"{name}: {rest}" for n, _ in result.skipped):
            result.skipped.append((f"{name}: {rest}", summary(lines, 0)))
        elif kind == "FAILED" and "test(s)" not in rest and not any(n == f"{name}: {rest}" for n, _ in result.failed):
            result.failed.append((f"{name}: {rest}", summary(lines, 0)))
    return seen


def summary(lines, status):
    """What a test said, in one line: the first that says something, and how many more there are."""
    lines = [line.strip() for line in lines if line.strip()]
    if not lines:
        return f"exit status {status}" if status else "says nothing"
    return lines[0][:600] + (f" (and {len(lines) - 1} more lines)" if len(lines) > 1 else "")


def judge(test, status, output, result):
    lines = output.splitlines()
    if status == NO_GPU:
        result.skipped.append((test.name, summary(lines, 0)))
        return
    known = test.cmocka and read_cmocka(test.name, output, result)
    if status == 0:
        if not known:
            result.passed.append((test.name, ""))
        return
    telling = [line for line in lines if re.search("=========.*(Invalid|Error|hazard|Barrier error|Race reported)", line)]
    if status == SANITIZER_STATUS or (telling and not result.failed):
        result.failed.append((test.name, summary(telling or lines, status)))
    elif not result.failed:
        at = next((i for i, line in enumerate(lines) if line.startswith("FAILURE")), None)  # of random kernels
        ending = f"ended by signal {-status}: " if status < 0 else ""
        said = summary(lines, status) if at is None else " ".join(line.strip() for line in lines[at:at + 2])
        result.failed.append((test.name, ending + said))


def run(test, options):
    result = Result()
    program = test.command[0]
    if not shutil.which(program):
        result.skipped.append((test.name, f"{program} was not built or not brought here"))
        return result
    if options.sanitizer and test.name in NOT_SANITIZED:
        result.skipped.append((test.name, NOT_SANITIZED[test.name]))
        return result
    prefix = options.prefix if options.prefix and not test.inner else []
    begin = time.monotonic()
    child = subprocess.Popen([*prefix, *test.command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace", start_new_session=True, env={**options.environment, **test.environment})
    limit = options.limit or test.limit * options.patience
    try:
        result.output, _ = child.communicate(timeout=limit)
        judge(test, child.returncode, result.output, result)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        result.output, _ = child.communicate()
        if test.cmocka:
            read_cmocka(test.name, result.output, result)
        running = re.findall(r"\[ RUN +\] (.*)", result.output)
        at = f" in {running[-1]}" if running else ""
        result.failed.append((test.name, f"no end after {limit:.0f} seconds{at}"))
    result.seconds = time.monotonic() - begin
    return result


# ---- Sanitizers: NVIDIA's compute-sanitizer, from PATH.

SANITIZER_STATUS = 99
WRAPPER = """#!/bin/sh
# Runs smelt under the sanitizer where it is to run on a GPU; what the sanitizer found goes to standard error.
case " $* " in *" --device cuda"*) ;; *) exec "{smelt}" "$@";; esac
log=$(mktemp)
{prefix} --log-file "$log" "{smelt}" "$@"
status=$?
[ $status -eq 0 ] || cat "$log" >&2
rm -f "$log"
exit $status
"""


def sanitizer_prefix(tool):
    program = shutil.which("compute-sanitizer")
    if not program:
        sys.exit("--sanitizer needs compute-sanitizer in PATH")
    prefix = [program, "--tool", tool, "--error-exitcode", str(SANITIZER_STATUS), "--target-processes", "all",
              "--require-cuda-init", "no", "--print-limit", "3"]
    # What the library asks the driver and handles itself is no error.
    return prefix + (["--report-api-errors", "no"] if tool == "memcheck" else [])


def wrapped_smelt(smelt, prefix, folder):
    path = folder / "smelt"
    path.write_text(WRAPPER.format(smelt=smelt, prefix=" ".join(prefix)))
    path.chmod(0o755)
    return path


# ---- The machine.


def why_no_device(smelt, device, environment):
    """None if the device is there; else why not."""
    try:
        done = subprocess.run([smelt, "devices"], capture_output=True, text=True, timeout=120, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode != 0:
        return (done.stdout + done.stderr).strip() or f"smelt devices ended with {done.returncode}"
    wanted = "cuda:0" if device == "cuda" else device
    for line in done.stdout.splitlines():
        if line.split()[:1] in ([device], [wanted]) or (device == "cuda" and line.startswith("cuda")):
            unusable = re.search(r"\(not usable: (.*)\)", line)
            return unusable.group(1) if unusable else None
    return f"smelt devices lists none called '{device}'"


def find_seeds():
    folders = (ROOT.parent / "shared/seeds", ROOT / "shared/seeds")
    return next((str(f) for f in folders if f.is_dir()), "/nonexistent")


def test_environment(build, options, folder):
    environment = dict(os.environ)
    libraries = [str(build / "lib"), environment.get("LD_LIBRARY_PATH", "")]
    environment.update({
        "SMELT_TIERS": "0",  # the code that is tested is the best; tests of quick code set it themselves
        "LD_LIBRARY_PATH": ":".join(filter(None, libraries)),
        "SMELT_TEST_DEVICE": options.device,
        "SMELT_CASE_DEVICES": options.device,
        "SMELT_CASE_COMPARE": "cpu-scalar" if options.device == "cpu" else "cpu",
        "SMELT_TEST_SOURCES": str(ROOT),
        "SMELT_TEST_SEEDS": environment.get("SMELT_TEST_SEEDS", find_seeds()),
    })
    if options.target:
        environment["SMELT_CUDA_TARGET"] = options.target
    # Many processes at once: none needs all CPUs.
    environment.setdefault("SMELT_THREADS", str(max(1, (os.cpu_count() or 2) // options.jobs)))
    if "SMELT_CACHE_DIR" not in environment:
        environment["SMELT_CACHE_DIR"] = str(folder / "cache")
    os.makedirs(environment["SMELT_CACHE_DIR"], mode=0o700, exist_ok=True)
    return environment


def read_options():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1], add_help=True)
    parser.add_argument("build", nargs="?", default=str(ROOT / "build"))
    parser.add_argument("--device", default="cuda", help="cpu stands in for a GPU: to test the suite itself")
    parser.add_argument("--target", help="code for a lower target than the GPU's own (SMELT_CUDA_TARGET): sm_80")
    parser.add_argument("--only", default="", help="tests whose name the expression is found in")
    parser.add_argument("--without", help="not these")
    parser.add_argument("--part", choices=["small"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--limit", type=float, help="seconds for each test, in the place of its own")
    parser.add_argument("--sanitizer", choices=["memcheck", "racecheck", "synccheck", "initcheck"])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no test after this many seconds")
    parser.add_argument("--log", help="a folder for the whole output of each failing test")
    parser.add_argument("--list", action="store_true", help="print the tests' names and end")
    parser.add_argument("--times", action="store_true", help="print the ten longest tests")
    options = parser.parse_args()
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    return options


def suite(options, folder):
    build = pathlib.Path(options.build).resolve()
    smelt = build / "bin/smelt"
    if not smelt.exists():
        print(f"{smelt} does not exist: the first argument must be a build folder", file=sys.stderr)
        return 2
    options.environment = test_environment(build, options, folder)
    options.prefix, options.patience, used = [], 1, smelt
    if options.sanitizer:
        options.prefix, options.patience = sanitizer_prefix(options.sanitizer), 5
        used = wrapped_smelt(smelt, options.prefix, folder)
    tests = [t for t in all_tests(build, used, options.device, folder, options.sanitizer)
             if re.search(options.only, t.name) and not (options.without and re.search(options.without, t.name))
             and (not options.part or re.fullmatch(SMALL, t.name))]
    if options.list:
        print("\n".join(t.name for t in tests))
        return 0
    reason = why_no_device(smelt, options.device, options.environment)
    if reason:
        print(f"no GPU: {reason}")
        return NO_GPU
    return run_all(tests, options)


def run_all(tests, options):
    passed, failed, skipped, left, times, show = 0, 0, 0, [], [], sys.stderr.isatty()
    end = time.monotonic() + options.seconds

    def run_in_time(test):
        return run(test, options) if time.monotonic() < end else None

    together = [t for t in tests if not re.fullmatch(ALONE, t.name)]
    alone = [t for t in tests if re.fullmatch(ALONE, t.name)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(run_in_time, test): test for test in together}
        done_together = ((running[done], done.result()) for done in concurrent.futures.as_completed(running))
        done_alone = ((test, run_in_time(test)) for test in alone)
        for number, (test, result) in enumerate(itertools.chain(done_together, done_alone), 1):
            if result is None:
                left.append(test.name)
                continue
            times.append((result.seconds, test.name))
            passed, failed, skipped = (count + len(part) for count, part in
                                       ((passed, result.passed), (failed, result.failed), (skipped, result.skipped)))
            clear = "\r\033[K" if show else ""
            for name, message in result.failed:
                print(f"{clear}FAILED {name}: {message}", flush=True)
            for name, message in result.skipped:
                print(f"{clear}skipped {name}: {message}", flush=True)
            if result.failed and options.log:
                os.makedirs(options.log, exist_ok=True)
                pathlib.Path(options.log, test.name + ".txt").write_text(result.output)
            if show:
                print(f"{clear}{number} of {len(tests)}: {test.name}", end="", file=sys.stderr, flush=True)
    if show:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    if options.times:
        for seconds, name in sorted(times, reverse=True)[:10]:
            print(f"{seconds:8.1f} s {name}")
    for name in left:
        print(f"not run {name}")
    print(f"passed {passed}, failed {failed}, skipped {skipped}" + (f", not run {len(left)}" if left else ""))
    return 1 if failed or left else 0


def main():
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="smelt-suite-") as folder:
        return suite(options, pathlib.Path(folder))


sys.exit(main())
