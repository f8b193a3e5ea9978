#!/usr/bin/env python3
"""Tries the mutants of sample.py: which of them do the tests notice?

    tests/mutations/sample_try.py BUILD MUTANTS [--only 3 17] [--checks REGEX] [--jobs N] [--seconds S] [--results FILE]
                                  [--gpu] [--seeds N]

BUILD is a build, or what tests/gpu/bundle.sh made of one. First the unchanged build must pass each check (one that it does
not pass is left out, and named). Then each mutant goes through its checks until one fails, those near its file first:
unit tests, PTX in the emulator, cases of tests/kernels, tests/errors, tests/library, tests/ml, random kernels in code for
all widths. With --gpu what src/compiler decides for GPUs is tried on a GPU too. A check that takes far longer than with the
unchanged build is one that fails. FILE gets a line of JSON for each mutant. Exit status: 0 all were noticed, 1 some were not,
2 nothing could be said.
"""
import argparse
import heapq
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sample

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MOST_SECONDS = 100  # of a check with the unchanged build
GRACE = 15  # seconds behind the deadline for what has begun
MOST_MEMORY = 24 << 20  # KiB of address space, where there is no GPU in it
# Kernel cases that come first, by the folder of the mutant.
NEAR = {"simd": "lanes|simd|atomic|barrier", "ptx": "simd|lanes|atomic|attributes|barrier|threadgroup",
        "passes": "lanes|type|shift|integer|source_guards|constants|private|return|simd",
        "cpu": "attributes|barrier|simd|threadgroup|logging|return|atomic", "source": "source|constants|library|literals|type"}
WIDTHS = "exp simd_control_flow simd_divergent simd_reductions simd_shuffles type_integers type_vectors lanes_conversions " \
         "lanes_division_32 lanes_rounding ml_matmul_tiled ml_softmax_rows return_before_barrier"
ON_GPU = "simd_float_scan,simd_matrix,fast"  # what GPUs round otherwise


class Check:
    """A command; {root} in it is the folder of the build."""

    def __init__(self, name, command, **environment):
        self.name, self.command, self.environment = name, [str(word) for word in command], environment
        self.seconds = 0.0

    def run(self, root, cache, limit):
        """Exit status and output; None when it took too long."""
        command = [word.replace("{root}", str(root)) for word in self.command]
        if "cuda" not in " ".join([self.name, *command]):
            command = ["sh", "-c", f'ulimit -v {MOST_MEMORY}; exec "$@"', "sh", *command]
        libraries = ":".join(filter(None, [f"{root}/lib", os.environ.get("LD_LIBRARY_PATH")]))
        environment = {"SMELT_THREADS": "2", **os.environ, "LD_LIBRARY_PATH": libraries, "SMELT_CACHE_DIR": str(cache),
                       **self.environment}
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                 env=environment, start_new_session=True)
        try:
            output, _ = child.communicate(timeout=limit)
            return child.returncode, output
        except subprocess.TimeoutExpired:
            return None, f"takes longer than {limit:.0f} s"
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()


# ---- Which checks there are.


def python(script, *arguments):
    return [sys.executable, "-B", ROOT / "tests" / script, *arguments]


def kernel_checks(device=""):
    for path in sorted((ROOT / "tests/kernels").iterdir()):
        if path.suffix in (".metal", ".body"):
            environment = {"SMELT_CASE_DEVICES": device} if device else {}
            yield Check(f"kernel_{path.stem}{'_' + device if device else ''}",
                        python("kernels/run_case.py", "{root}/bin/smelt", path), **environment)


def width_checks():
    for width in ("avx2", "sse2"):
        for name in WIDTHS.split():
            path = next((ROOT / "tests/kernels").glob(name + ".*"))
            yield Check(f"kernel_{width}_{name}", python("kernels/run_case.py", "{root}/bin/smelt", path), SMELT_CPU=width)


def script_checks(folder, prefix, names="*"):
    for path in sorted((ROOT / "tests" / folder).glob(f"test_{names}.py")):
        if path.stem != "test_coverage":
            yield Check(f"{prefix}_{path.stem[5:]}", python(f"{folder}/{path.name}", "{root}/bin/smelt"))


def error_checks():
    for path in sorted((ROOT / "tests/errors").glob("*.case")):
        yield Check(f"error_{path.stem}", python("errors/run_case.py", "{root}/bin/smelt", path))


def program_checks(root, pattern, device=""):
    for path in sorted((root / "tests").glob(pattern)):
        if path.is_file() and os.access(path, os.X_OK) and ".so" not in path.name:
            environment = {"SMELT_TEST_DEVICE": device} if device else {}
            yield Check(path.name + ("_" + device if device else ""), ["{root}/tests/" + path.name], **environment)


def fuzz_checks(seeds, device="cpu"):
    fuzzer = ["{root}/fuzz/fuzz_kernels", "--device", device, "--reduce", 0, "--output", "{root}/fuzz/kernels"]
    fuzzer += ["--without", ON_GPU] if device != "cpu" else []
    after = "" if device == "cpu" else "_" + device
    corpus = sorted((ROOT / "tests/fuzz_kernels/corpus").glob("*.kernel"))
    yield Check("fuzz_corpus" + after, [*fuzzer, "--replay", *corpus])
    for seed in [*range(1, seeds // 2 + 1, 20), *range(1001, 1001 + seeds // 2, 20)]:
        yield Check(f"fuzz_{seed}{after}", [*fuzzer, "--seed", seed, "--count", 20])
    for width in ("avx2", "sse2") if device == "cpu" else ():
        yield Check(f"fuzz_{width}", [*fuzzer, "--seed", 2001, "--count", 6], SMELT_CPU=width)


def all_checks(root, options):
    checks = [*program_checks(root, "unit_*"), *script_checks("ptx", "ptx"), *kernel_checks(), *error_checks(),
              *script_checks("env", "env", "show_*"), *width_checks(), *script_checks("library", "library"),
              *fuzz_checks(options.seeds),
              *[check for kind in ("ml_*", "seeds_*", "prelude_*") for check in program_checks(root, kind)]]
    checks.append(Check("gpu_ptx", python("gpu/make_ptx.py", "{root}/bin/smelt", "--only", "^kernel_")))
    if options.gpu:
        checks += [*kernel_checks("cuda"), *fuzz_checks(options.seeds, "cuda"),
                   *program_checks(root, "ml_*", "cuda"), *program_checks(root, "unit_device_work", "cuda")]
    return [c for c in checks if re.search(options.checks, c.name) and
            not (options.without and re.search(options.without, c.name))]


def order_for(path, mutant, checks):
    """The checks that concern the file, in their order."""
    folder = pathlib.Path(sample.folder_of(path.split(":")[0])).name
    folder = {"compiler": "passes"}.get(folder, folder)
    near = re.compile(f"^kernel_({NEAR[folder]})")
    own = {p.name for p in (mutant / "tests").glob("unit_*")}

    def rank(check):
        name, on_gpu = check.name, "_cuda" in check.name and not check.name.startswith("unit_cuda")
        if name.startswith("unit_") and not on_gpu:
            return 0 if name in own else None
        if name.startswith(("ptx_", "gpu_ptx", "env_show_ptx")) or on_gpu:
            return {"ptx": 4, "passes": 9}.get(folder) if on_gpu else {"ptx": 5 if name == "gpu_ptx" else 1, "passes": 8}.get(folder)
        if folder == "ptx":
            return None
        if name.startswith("kernel_") and not name.startswith(("kernel_avx2", "kernel_sse2")):
            return 2 if near.search(name) else 4
        if name.startswith("error_"):
            return 1 if folder == "source" else 5
        return 3 if name.startswith("fuzz") else 7

    ranked = [(rank(check), i, check) for i, check in enumerate(checks)]
    return [check for _, _, check in sorted(r for r in ranked if r[0] is not None)]


# ---- Trying.


def link_folder(source, target):
    for path in source.rglob("*"):
        if path.is_file() and "CMakeFiles" not in path.parts:
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, copy)


def link_cache(source, target):
    """What the frontend made: the mutants differ behind it. Code would be the unchanged build's."""
    target.mkdir(mode=0o700)
    for path in source.glob("*bitcode*"):
        os.link(path, target / path.name)


class Trial:
    """A mutant in a copy of the build, and what became of it."""

    def __init__(self, row, options, build, checks):
        self.number, self.place, self.change, self.line = row
        self.folder, self.left = options.mutants / self.number, order_for(self.place, options.mutants / self.number, checks)
        self.build, self.home, self.done, self.result, self.why = build, None, 0, None, ""
        self.lock = threading.Lock()

    def start(self, work, cache):
        with self.lock:
            if self.home:
                return
            home = work / self.number
            link_folder(self.build, home / "build")
            link_cache(cache, home / "cache")
            for part in ("lib", "tests"):
                for path in (self.folder / part).glob("*"):
                    copy = home / "build" / part / path.name
                    copy.unlink(missing_ok=True)
                    shutil.copy2(path, copy)
            self.home = home

    def try_check(self, check, deadline):
        """A check that the deadline cuts short says nothing."""
        assert self.home is not None, "start() comes first"
        limit, left = max(30, 6 * check.seconds + 10), deadline + GRACE - time.monotonic()
        status, output = check.run(self.home / "build", self.home / "cache", min(limit, left))
        if status is None and left < limit:
            return
        self.done += 1
        if status != 0 and not self.result:
            lines = [line.strip() for line in output.splitlines() if line.strip()]
            shown = [line for line in lines if re.search(r"FAIL|differ|expected|is ", line)] or lines
            self.result, self.why = check.name, " | ".join(shown[:2])[:400] if status is not None else output
            print(f"{self.number} {self.place} {self.change}: {check.name}", flush=True)


def pool(jobs, work):
    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(checks, build, cache, jobs):
    """Runs each with the unchanged build; those that fail are returned."""
    long = [c for c in checks if c.name.startswith(("fuzz", "library", "gpu_ptx", "ptx"))]
    waiting, failed, lock = [c for c in checks if c not in long] + long, [], threading.Lock()

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                check = waiting.pop()
            begin = time.monotonic()
            status, output = check.run(build, cache, MOST_SECONDS)
            check.seconds = time.monotonic() - begin
            if status != 0:
                failed.append((check, output))

    pool(jobs, work)
    return failed


def try_all(trials, options, work, cache, deadline):
    """Check by check, a round for each place in the order: what is soon noticed costs little."""
    heap = [(place, t, id(check), check) for t, trial in enumerate(trials) for place, check in enumerate(trial.left)]
    lock = threading.Lock()
    heapq.heapify(heap)

    def work_off():
        while time.monotonic() < deadline:
            with lock:
                while heap and trials[heap[0][1]].result:
                    heapq.heappop(heap)
                if not heap:
                    return
                _, t, _, check = heapq.heappop(heap)
            trials[t].start(work, cache)
            trials[t].try_check(check, deadline)

    pool(options.jobs, work_off)


def report(trials, options):
    lines = []
    for trial in trials:
        state = "noticed" if trial.result else "NOT NOTICED" if trial.done >= len(trial.left) else "not finished"
        by = f" by {trial.result}: {trial.why}" if trial.result else f" in {trial.done} of {len(trial.left)} checks"
        print(f"{trial.number} {state:12} {trial.place} {trial.change}{by}", flush=True)
        lines.append(json.dumps({"number": trial.number, "place": trial.place, "change": trial.change, "line": trial.line,
                                 "state": state, "by": trial.result, "why": trial.why, "checks": trial.done,
                                 "of": len(trial.left)}, ensure_ascii=False) + "\n")
    if options.results:
        options.results.write_text("".join(lines), encoding="utf-8")
    return 0 if all(trial.result for trial in trials) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("mutants", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="NUMBER")
    parser.add_argument("--checks", default="", help="regular expression of the checks' names")
    parser.add_argument("--without", default="", help="regular expression of checks to leave out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no check after so long")
    parser.add_argument("--seeds", type=int, default=160, help="random kernels for each mutant")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--results", type=pathlib.Path)
    options = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.build.resolve().parent) as name:
        work = pathlib.Path(name)
        cache = work / "cache"
        cache.mkdir(mode=0o700)
        build = options.build.resolve()
        rows = [line.split("\t") for line in (options.mutants / "list.tsv").read_text(encoding="utf-8").splitlines()]
        rows = [row for row in rows if not options.only or int(row[0]) in map(int, options.only)]
        checks = all_checks(build, options)
        needed = {id(c) for row in rows for c in order_for(row[1], options.mutants / row[0], checks)}
        checks = [c for c in checks if id(c) in needed]
        failed = measure(checks, build, cache, options.jobs)
        for check, output in failed:
            print(f"left out, fails with the unchanged build: {check.name}: {' | '.join(output.strip().splitlines()[-3:])[:300]}")
        checks = [c for c in checks if c not in [f for f, _ in failed]]
        print(f"{len(checks)} checks pass with the unchanged build: {time.monotonic() - begin:.0f} s, "
              f"{sum(c.seconds for c in checks):.0f} s in all", flush=True)
        if not checks:
            return 2
        trials = [Trial(row, options, build, checks) for row in rows]
        try_all(trials, options, work, cache, begin + options.seconds)
        status = report(trials, options)
        print(f"{time.monotonic() - begin:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
