#!/usr/bin/env python3
"""Plants mistakes in smelt's sources, one at a time, and tells which of them the tests notice.

    tests/mutations/mutate.py                        every mutation of mutations.toml
    tests/mutations/mutate.py --only simdgroup       those whose name, pass or file contains the word
    tests/mutations/mutate.py --verify               only looks whether each still fits its file, those of ptx.toml too

A developer's tool, of which only --verify is a part of `make check` (test_fit.py): where code moves, its mutations move too
(git log -S finds where it went). Each mutation is built (incrementally, in a copy of the sources in a folder of
its own) and tested. First the tests run that the mutation names (its `tests`: cases of tests/kernels, unit tests): seconds.
If none of them fails, the random kernels run (docs/fuzzing.md), which notice what the two CPU engines do differently, and
then the tests of --tests: a minute or two. With --quick it is the named ones only. Before the first mutation the unchanged
sources must pass. Exit status: 0 all were caught, 1 some were not, 2 nothing could be said.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def read_mutations(words, list_name="mutations.toml"):
    with open(HERE / list_name, "rb") as file:
        mutations = tomllib.load(file)["mutation"]
    for mutation in mutations:
        for key in ("name", "pass", "file", "text", "replacement"):
            if not isinstance(mutation.get(key), str):
                sys.exit(f"{list_name}: {mutation.get('name', 'a mutation')} has no {key}")
        mutation["list"] = list_name
    fitting = lambda m: any(word in m["name"] or word in m["pass"] or word in m["file"] for word in words)
    return [m for m in mutations if not words or fitting(m)]


SCRIPTS = ("ptx", "env")  # folders of tests


def script_of(name, root):
    """tests/ptx/test_NAME.py of ptx_NAME; None if the test is another one."""
    kind, _, rest = name.partition("_")
    return root / "tests" / kind / f"test_{rest}.py" if kind in SCRIPTS else None


def has_test(name, root):
    """Whether a test that mutations.toml names exists: a case of tests/kernels, a script of SCRIPTS, a unit test."""
    if name.startswith("unit_"):
        folder = root / "tests/unit"
        return any(name == "unit_" + path.stem.removeprefix("test_") for path in folder.glob("test_*.c"))
    script = script_of(name, root)
    return script.exists() if script else any((root / "tests/kernels").glob(name + ".[mb]*"))


def misfit(mutation, root):
    """Why the mutation changes nothing, or more than one place; None if it fits."""
    path, text = root / mutation["file"], mutation["text"]
    if not path.is_file():
        return f"there is no file {mutation['file']}"
    count = path.read_text().count(text)
    if count != 1:
        return f"its text occurs {count} times in {mutation['file']}, and must occur once"
    if text == mutation["replacement"]:
        return "its replacement is its text"
    missing = [name for name in mutation.get("tests", "").split() if not has_test(name, root)] if mutation["list"] == "mutations.toml" else []
    return f"there is no test {', '.join(missing)}" if missing else None


def verify(mutations, root):
    """Prints each mutation that does not fit and why; the number of them."""
    misfits = [(mutation, misfit(mutation, root)) for mutation in mutations]
    for mutation, why in misfits:
        if why:
            print(f"{mutation['list']}: {mutation['name']}: {why}")
    return sum(why is not None for _, why in misfits)


def copy_sources(target):
    """Brings `target` up to date; unchanged files keep their times, so that builds stay incremental."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\0")
    wanted = {name for name in names if name and (ROOT / name).is_file()}
    for path in sorted(target.rglob("*")):
        if path.is_file() and str(path.relative_to(target)) not in wanted:
            path.unlink()
    for name in sorted(wanted):
        source, copy = ROOT / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copyfile(source, copy)
            shutil.copymode(source, copy)


class Tree:
    """A copy of the sources with a build of it."""

    def __init__(self, folder, options):
        self.sources, self.build, self.options = folder / "sources", folder / "build", options
        self.environment = dict(os.environ, SMELT_CACHE_DIR=str(folder / "cache"), SMELT_TIERS="0")  # as for `make check`
        (folder / "cache").mkdir(parents=True, exist_ok=True, mode=0o700)
        copy_sources(self.sources)
        if not (self.build / "build.ninja").exists():
            # A mistake may leave something unused: no warnings.
            self.command(["cmake", "--preset", "release", "-B", str(self.build), "-DCMAKE_C_FLAGS=-w", "-DSMELT_CC1=OFF"], cwd=self.sources)

    def command(self, command, timeout=None, **arguments):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                 env=self.environment, start_new_session=True, **arguments)
        try:
            output, _ = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return 1, "does not end"
        return child.returncode, output

    def make(self, more=()):
        """The errors of the build; None if it succeeds."""
        targets = ["fuzz_kernels", "smelt_command", *more] if not self.options.all_targets else []
        status, output = self.command(["ninja", "-C", str(self.build), f"-j{self.options.jobs}", *targets])
        return None if status == 0 else "\n".join(line for line in output.splitlines() if " error: " in line) or output[-2000:]

    def named_complaint(self, names):
        """What tests/kernels/NAME.*, a script of SCRIPTS, or the program unit_NAME say against the tree as it is; None if nothing."""
        for name in names:
            case = next((self.sources / "tests/kernels").glob(name + ".[mb]*"), None)
            runner = [sys.executable, str(self.sources / "tests/kernels/run_case.py"), str(self.build / "bin/smelt")]
            command = [*runner, str(case)] if case else [str(self.build / "tests" / name)]
            script = script_of(name, self.sources)
            if script:
                command = [sys.executable, "-B", str(script), str(self.build / "bin/smelt")]
            status, output = self.command(command, timeout=100 if script else 40)
            if status != 0:
                return f"{name}: {output.splitlines()[0] if output else status}"
        return None

    def complaint(self):
        """What the random kernels and the tests of --tests say; None if nothing."""
        arguments = ["--seed", str(self.options.seed), "--count", str(self.options.count), "--reduce", "0", "--output",
                     str(self.build / "fuzz" / "mutants"), "--without", self.options.without]
        fuzzer = str(self.build / "fuzz" / "fuzz_kernels")
        status, output = self.command([fuzzer, *arguments])
        if status != 0:
            found = re.search(r"FAILURE: (.*)\n\s*(.*)", output)
            return "random kernels: " + (" ".join(found.groups()) if found else output[-300:])
        corpus = sorted(str(path) for path in (self.sources / "tests/fuzz_kernels/corpus").glob("*.kernel"))
        status, output = self.command([fuzzer, "--replay", *corpus]) if corpus else (0, "")
        if status != 0:
            return "corpus: " + next((line for line in output.splitlines() if ": agrees" not in line), "")
        if not self.options.tests:
            return None
        status, output = self.command(["ctest", "--test-dir", str(self.build), "-R", self.options.tests, "-j",
                                       str(self.options.jobs), "--stop-on-failure"])
        failed = re.search(r"The following tests FAILED:\s*\n\s*(.*)", output)
        return None if status == 0 else "ctest: " + (failed.group(1) if failed else output[-300:])


def judge(tree, mutation):
    """How one mutation fares: "caught", "NOT CAUGHT" or "does not build", and by what."""
    path = tree.sources / mutation["file"]
    original = path.read_text()
    try:
        path.write_text(original.replace(mutation["text"], mutation["replacement"]))
        names = mutation.get("tests", "").split()
        errors = tree.make([name for name in names if name.startswith("unit_")])
        if errors is not None:
            return "does not build", errors.splitlines()[0] if errors else ""
        complaint = tree.named_complaint(names)
        if not complaint and not tree.options.quick:
            complaint = tree.complaint()
        return ("caught", complaint) if complaint else ("NOT CAUGHT", "")
    finally:
        path.write_text(original)
        shutil.rmtree(tree.build.parent / "cache")  # each build has its own entries
        (tree.build.parent / "cache").mkdir(mode=0o700)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="mutations whose name, pass or file contains it")
    parser.add_argument("--verify", action="store_true", help="only look whether each mutation fits its file")
    parser.add_argument("--list", action="store_true", help="list the mutations")
    parser.add_argument("--quick", action="store_true", help="only the tests that the mutations name")
    parser.add_argument("--folder", default=str(ROOT / "build-mutations"), help="where sources and build go")
    parser.add_argument("--seed", type=int, default=1, help="of the first random kernel")
    parser.add_argument("--count", type=int, default=150, help="random kernels for each mutation")
    parser.add_argument("--without", default="load_folded", help="features the random kernels do without")
    parser.add_argument("--tests", default="^kernel_", help="regular expression of ctest tests to run after them; '' for none")
    parser.add_argument("--all-targets", action="store_true", help="build everything, for --tests that need more")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()

    mutations = read_mutations(options.only)
    selected = mutations + (read_mutations(options.only, "ptx.toml") if options.verify else [])
    if not selected:
        parser.error(f"--only is {' '.join(options.only)}, expected words of a mutation's name, pass or file; see --list")
    if options.list:
        for mutation in mutations:
            print(f"{mutation['pass']}: {mutation['name']} ({mutation['file']})")
        return 0
    if verify(selected, ROOT):
        return 2
    if options.verify:
        print(f"{len(selected)} mutations fit")
        return 0
    tree = Tree(pathlib.Path(options.folder), options)
    named = sorted({name for mutation in mutations for name in mutation.get("tests", "").split()})
    errors = tree.make([name for name in named if name.startswith("unit_")]) or tree.named_complaint(named)
    if not errors and not options.quick:
        errors = tree.complaint()
    if errors:
        print(f"The unchanged sources do not build or pass:\n{errors}")
        return 2
    results = {}
    for mutation in mutations:
        begin = time.monotonic()
        result, by = judge(tree, mutation)
        results.setdefault(result, []).append(mutation)
        print(f"{result:14} {mutation['pass']}: {mutation['name']} ({time.monotonic() - begin:.0f} s)", flush=True)
        if by:
            print(f"{'':14} {by}", flush=True)
    print(", ".join(f"{len(those)} {result}" for result, those in results.items()))
    return 0 if set(results) <= {"caught"} else 1


if __name__ == "__main__":
    sys.exit(main())
