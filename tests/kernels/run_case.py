#!/usr/bin/env python3
"""Runs one self-contained kernel case and compares what comes out.

Usage: run_case.py SMELT CASE. The case is a .metal or .body file with lines in comments:

    // run: -i x=arange:float32:4 -o out:float32:4 --grid 4      arguments of `smelt run` (may be repeated)
    // expect out: 0 1 4 9                                        values of an output, row-major
    // expect buffer 1: 1 2 3                                     … or of a buffer, for whole files
    // expect out: f(i) for i in 16: i * i                        … or a Python expression over i = 0, 1, 2 …
    // expect-prefix out: 1 2                                     only the first values
    // let lane = lambda i: i % 32                                a name for the expressions of later lines
    // for group: 64 96 8,8                                       runs the case for each: {group} in `run` is the word,
                                                                  group in expressions the number, tuple of numbers or word
    // tolerance: 1e-6                                            relative, and absolute below 1 (default: exact)
    // rounded-apart: why                                         a GPU's results need not have the bits of a CPU's
    // cpu-only: why                                              the case is none for GPUs: exit status 77 there
    // finding: SM002: why                                        what a checked run finds (device `check`), and nothing else matters there
    // scalar-engine: why                                         the SIMD engine refuses it: on `cpu` it runs as on cpu-scalar
    // scalar-engine-sse2: why                                    the same with SMELT_CPU=sse2

A .body file is run with --body. The case runs on every engine (devices_of), or on those SMELT_CASE_DEVICES names (cpu,cpu-scalar);
results are compared with the expectation; on `cpu` it must be the SIMD engine that runs it. SMELT_CASE_COMPARE names a device whose results they must equal, too, bit by bit
(any NaN is like any other) unless the case says that they are rounded apart. With SMELT_CASE_PACKAGE set a .metal case is built into a package first, and
what runs is the package, on device cpu, where nothing can be compiled.
"""
import itertools
import math
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import zlib

DEVICES = "cpu,cpu-scalar"
CHECKED = "check"  # the CPU with every access of memory checked
SKIPPED = 77
FORMATS = {"b1": "?", "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i1": "b", "i2": "h", "i4": "i", "i8": "q",
           "f2": "e", "f4": "f", "f8": "d"}


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + length].decode("latin-1")
    kind = re.search(r"'descr': '[<>|=]?(\w+)'", header).group(1)
    body = data[10 + length:]
    if kind == "V2":
        return [struct.unpack("<f", b"\0\0" + body[i:i + 2])[0] for i in range(0, len(body), 2)]
    if kind == "c8":
        parts = struct.unpack(f"<{len(body) // 4}f", body)
        return [complex(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
    width = int(kind[1:])
    return list(struct.unpack(f"<{len(body) // width}{FORMATS[kind]}", body))


def engines_of(path):
    """The engines that the slices of a trace name."""
    with open(path, encoding="utf-8") as file:
        return set(re.findall(r'"engine":"(\w+)"', file.read()))


def parse_value(word):
    if word in ("true", "false"):
        return word == "true"
    try:
        return int(word, 0)
    except ValueError:
        return complex(word) if word.endswith("j") else float(word)


def parse_choice(word):
    """A number, a tuple of numbers, or the word itself where it is neither."""
    try:
        return tuple(parse_value(part) for part in word.split(",")) if "," in word else parse_value(word)
    except ValueError:
        return word


def expected_values(text, names):
    rule = re.match(r"f\(i\) for i in (\d+):\s*(.*)", text)
    if rule:
        code, values = compile(rule.group(2), "expectation", "eval"), []
        for names["i"] in range(int(rule.group(1))):
            values.append(eval(code, names))
        return values
    return [parse_value(word) for word in text.replace(",", " ").split()]


def close(found, wanted, tolerance):
    if isinstance(wanted, complex) or isinstance(found, complex):
        return abs(found - wanted) <= tolerance * max(1, abs(wanted))
    if isinstance(wanted, float) and math.isnan(wanted):
        return math.isnan(found)
    if found == wanted:
        return True
    return tolerance > 0 and math.isfinite(found) and abs(found - wanted) <= tolerance * max(1.0, abs(wanted))


def same_bits(a, b):
    if isinstance(a, complex):
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    if isinstance(a, float):
        return math.isnan(b) if math.isnan(a) else a == b and math.copysign(1, a) == math.copysign(1, b)
    return a == b


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            comment = re.match(r"\s*//\s*(run|let|for|expect-prefix|expect|tolerance|rounded-apart|cpu-only|scalar-engine-sse2|scalar-engine|finding)\b\s*(.*)", line)
            if comment:
                yield comment.groups()


def choices(path, whole=False):
    """One dictionary from names to words for each combination of the `for` lines. Each compiles code for two engines.
    Without `whole` and SMELT_TEST_FULL (make check-long), only every second of more than three, and every fourth of more
    than ten."""
    names, lists = [], []
    for word, rest in read_lines(path):
        name, colon, values = rest.partition(":")
        if word == "for" and colon:
            names.append(name.strip())
            lists.append(values.split())
    combinations = [dict(zip(names, words)) for words in itertools.product(*lists)]
    if whole or len(combinations) <= 3 or "SMELT_TEST_FULL" in os.environ:
        return combinations
    count = math.ceil(len(combinations) / (4 if len(combinations) > 10 else 2))
    return sorted(combinations, key=lambda words: zlib.crc32(repr(words).encode()))[:count]


# What a package holds code for: this machine, or the CPU whose code alone is taken of packages.
PACKAGED = {"avx512": "x86-64-v4", "avx2": "x86-64-v3", "sse2": "x86-64"}.get(os.environ.get("SMELT_CPU", ""), "cpu")


class Case:
    def __init__(self, path, chosen):
        self.path, self.chosen = path, chosen
        self.arguments, self.expectations, self.tolerance, self.rounded_apart, self.cpu_only = [], {}, 0.0, "", ""
        self.engine, self.finding = "simd", ""
        names = {"math": math, **{name: getattr(math, name) for name in dir(math)}}
        names.update({name: parse_choice(word) for name, word in chosen.items()})
        for word, rest in read_lines(path):
            if word == "run":
                for name, value in chosen.items():
                    rest = rest.replace("{" + name + "}", value)
                self.arguments += shlex.split(rest.lstrip(":"))
            elif word == "tolerance":
                self.tolerance = float(rest.lstrip(": "))
            elif word == "rounded-apart":
                self.rounded_apart = rest.lstrip(": ")
            elif word == "cpu-only":
                self.cpu_only = rest.lstrip(": ")
            elif word == "scalar-engine" or (word == "scalar-engine-sse2" and os.environ.get("SMELT_CPU") == "sse2"):
                self.engine = "scalar"
            elif word == "finding":
                self.finding = rest.lstrip(": ").split(":")[0]
            elif word == "let":
                name, _, value = rest.partition("=")
                names[name.strip()] = eval(value, names)
            elif word not in ("for", "scalar-engine-sse2"):
                name, _, values = rest.partition(":")
                self.expectations[name.strip()] = (expected_values(values.strip(), names), word == "expect-prefix")
        if not self.arguments or not self.expectations:
            raise SystemExit(f"{path}: needs `// run:` and `// expect NAME:` lines")

    def command(self, smelt, device, folder):
        """Outputs go to files named after them."""
        arguments, files = [], {}
        for previous, argument in zip([""] + self.arguments, self.arguments):
            name = None
            if previous == "-o":
                name = argument.split(":")[0]
            elif previous == "-b" and ":out:" in argument:
                name = "buffer " + argument.split(":")[0]
            if name:
                files[name] = os.path.join(folder, name.replace(" ", "-") + ".npy")
                argument += "=" + files[name]
            arguments.append(argument)
        form = ["--body"] if self.path.endswith(".body") else []
        return [smelt, "run", *form, self.path, *arguments, "--device", device], files

    def package(self, smelt, command, folder):
        """Builds, and returns the command that runs the package, and its environment."""
        path, source = os.path.join(folder, "case.smeltlib"), command.index(self.path)
        build, run = [smelt, "build", self.path, "-o", path, "--target", PACKAGED], command[:source] + [path]
        if not command[source + 1].startswith("-"):
            build += ["--entry", command[source + 1]]
        at = source + 1
        while at < len(command):
            if command[at] in ("-I", "--math", "--constant", "--metal-version"):
                build += command[at:at + 2]
                at += 2
            else:
                run.append(command[at])
                at += 1
        done = subprocess.run(build, capture_output=True, text=True, timeout=1500, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(build)}: exit status {done.returncode}: {done.stdout}{done.stderr}")
        nothing = {"SMELT_COMPILE": "0", "SMELT_CLANG": "/nonexistent", "SMELT_CACHE_DIR": os.path.join(folder, "cache")}
        return run, {**os.environ, **nothing}

    def run(self, smelt, device):
        """What the outputs hold, by name; or a sentence why it does not run."""
        with tempfile.TemporaryDirectory() as folder:
            command, files = self.command(smelt, device, folder)
            environment, trace = None, os.path.join(folder, "trace.json")
            if device == CHECKED:
                command[-1], environment = "cpu", {**os.environ, "SMELT_CHECK": "1"}
            if "SMELT_CASE_PACKAGE" in os.environ:
                command, environment = self.package(smelt, command, folder)
            if device == "cpu":
                command += ["--trace", trace]
            done = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=False, env=environment)
            if device == CHECKED and self.finding and self.finding in done.stderr:
                return None, None
            if done.returncode != 0:
                return {}, f"exit status {done.returncode}: {done.stderr.strip()}"
            if device == CHECKED and self.finding:
                return {}, f"{self.finding} was not found"
            if device == "cpu" and engines_of(trace) != {self.engine}:
                return {}, f"it runs on the engine {' and '.join(sorted(engines_of(trace)))}, expected {self.engine}"
            return {name: read_npy(path) for name, path in files.items()}, None

    def check(self, results):
        problems = []
        for name, (wanted, prefix) in self.expectations.items():
            if name not in results:
                problems.append(f"no output is called '{name}'")
                continue
            found = results[name]
            if len(found) != len(wanted) and not (prefix and len(found) >= len(wanted)):
                problems.append(f"{name}: {len(found)} values, expected {len(wanted)}")
                continue
            wrong = [i for i, value in enumerate(wanted) if not close(found[i], value, self.tolerance)]
            for i in wrong[:4]:
                problems.append(f"{name}[{i}] is {found[i]!r}, expected {wanted[i]!r}")
            if len(wrong) > 4:
                problems.append(f"{name}: {len(wrong)} of {len(wanted)} values differ")
        return problems

    def compare(self, results, others, device):
        """Bit by bit, outputs without an expectation too."""
        problems = []
        for name, found in results.items():
            other = others[name]
            wrong = [i for i, value in enumerate(other) if not same_bits(found[i], value)]
            if wrong:
                i = wrong[0]
                problems.append(f"{name}[{i}] is {found[i]!r}, {other[i]!r} on {device}; {len(wrong)} of {len(other)} values "
                                "differ")
        return problems

    def problems(self, smelt, devices, oracle):
        """Pairs of a device and what is wrong there."""
        results = {}
        for device in devices:
            found, message = self.run(smelt, device)
            if found is None:
                continue
            if message:
                yield device, message
                continue
            results[device] = found
            for problem in self.check(found):
                yield device, problem
        if not oracle or self.rounded_apart or not results:
            return
        if oracle not in results:
            results[oracle], message = self.run(smelt, oracle)
            if message:
                yield oracle, message
                return
        for device in devices:
            if device != oracle and device in results:
                for problem in self.compare(results[device], results[oracle], oracle):
                    yield device, problem


def devices_of(path):
    """Without SMELT_TEST_FULL, about two thirds of the cases run on `cpu` only, except those about barriers, returns, simdgroups
    and threadgroups."""
    name = os.path.basename(path)
    both = name.startswith(("barrier", "return", "simd", "threadgroup")) or zlib.crc32(name.encode()) % 3 == 0
    return DEVICES if both or "SMELT_TEST_FULL" in os.environ else DEVICES.split(",", maxsplit=1)[0]


def main():
    smelt, path = sys.argv[1:3]
    devices, oracle = os.environ.get("SMELT_CASE_DEVICES", devices_of(path)).split(","), os.environ.get("SMELT_CASE_COMPARE")
    failed = False
    for chosen in choices(path):
        case = Case(path, chosen)
        if case.cpu_only and all(device.startswith("cuda") for device in devices):
            print(f"{os.path.basename(path)}: for CPUs only: {case.cpu_only}")
            return SKIPPED
        with_what = "".join(f", {name} {word}" for name, word in chosen.items())
        for device, problem in case.problems(smelt, devices, oracle):
            print(f"{os.path.basename(path)} on {device}{with_what}: {problem}")
            failed = True
        if failed:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
