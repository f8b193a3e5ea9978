#!/usr/bin/env python3
"""Random C programs of csmith as Metal kernels: each thread runs the program with its own initial values, and the checksum over all
global variables must be that of the same text compiled by clang -O0 -fwrapv for this machine.

Usage: csmith.py SMELT [--count 100] [--seed 1] [--device cpu,cpu-scalar] [--jobs N] [--kind safe,plain,raw] [--keep FOLDER]
       csmith.py --make FOLDER [--count …] [--seed …] [--kind …] [--jobs N]     only writes programs and what they must give
       csmith.py SMELT --run FOLDER [--device …] [--jobs N]                     runs a folder, which may come from another machine

A program becomes a structure: global variables are its members, functions its member functions, so that pointers among them stay
what they were. The same seed gives the same program. Kinds:

    safe    csmith's usual programs, whose arithmetic is done by functions that avoid what C leaves undefined
    plain   the same programs with these functions made of the plain operators: sums overflow, divisors are 0, shifts too far
    raw     csmith --no-safe-math (--no-safe-math is short for --kind raw)

Programs that csmith gives up on, that are not C++ (a goto past a declaration), or that the reference does not end in time are left
out, and counted. SMELT_CPU applies. A program that differs is kept, and the command that shows it printed. Needs csmith and clang-19
to make programs, only smelt to run them. Exit status: 0 all agree, 1 some differ, 2 bad command line, 77 csmith is missing."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import struct
import sys
import tempfile
import time

THREADS = 48  # a whole simdgroup, and half of one
# Characters of a program worth running, and of one whose vector code LLVM allocates registers for in a few seconds.
SMALLEST, LARGEST = 4000, 30000
REFERENCE_SECONDS, KERNEL_SECONDS = 3, 60
WHOLE_SECONDS = 900  # of a whole run, compiling included, on a machine with other work
SKIPPED = 77
CSMITH = ["csmith", "--lang-cpp", "--cpp11", "--concise", "--quiet", "--no-argc", "--no-volatiles", "--no-packed-struct",
          "--no-dangling-global-pointers", "--no-hash-value-printf", "--max-array-len-per-dim", "4", "--max-block-size", "4"]
# By seed, so that not all programs are alike: how large, and without what.
SIZES = [("--max-funcs", "3", "--max-block-depth", "3"), ("--max-funcs", "4", "--max-block-depth", "2"),
         ("--max-funcs", "5", "--max-block-depth", "4", "--max-expr-complexity", "6"),
         ("--max-funcs", "8", "--max-block-depth", "3", "--max-expr-complexity", "5")]
VARIANTS = [(), ("--no-unions",), ("--no-pointers",), ("--no-jumps",), ("--no-bitfields",), ("--no-structs", "--no-unions")]

# ---- The arithmetic of safe and plain programs. @ is the type, # its unsigned twin, LEAST and MOST its range, BITS what shifts count.
SIGNED = {
    "unary_minus": "a == LEAST ? a : -a",
    "add": "(b > 0 && a > MOST - b) || (b < 0 && a < LEAST - b) ? a : a + b",
    "sub": "(b < 0 && a > MOST + b) || (b > 0 && a < LEAST + b) ? a : a - b",
    "mul": "b != 0 && (((b == -1) & (a == LEAST)) || @(#(a) * #(b)) / b != a) ? a : @(#(a) * #(b))",
    "div": "b == 0 || (a == LEAST && b == -1) ? a : a / b",
    "mod": "b == 0 || (a == LEAST && b == -1) ? a : a % b",
    "lshift": "a < 0 || int(b) < 0 || int(b) >= BITS || a > (MOST >> int(b)) ? a : a << int(b)",
    "rshift": "a < 0 || int(b) < 0 || int(b) >= BITS ? a : a >> int(b)",
}
UNSIGNED = dict(SIGNED, unary_minus="-a", add="a + b", sub="a - b", mul="1u * a * b", div="b == 0 ? a : a / b",
                mod="b == 0 ? a : a % b", lshift="int(b) < 0 || int(b) >= BITS || a > (MOST >> int(b)) ? a : a << int(b)",
                rshift="int(b) < 0 || int(b) >= BITS ? a : a >> int(b)")
OPERATORS = {"unary_minus": "-a", "add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b", "mod": "a % b",
             "lshift": "a << b", "rshift": "a >> b"}
# What smelt says of them (docs/semantics.md), for a host that says nothing.
DEFINED = dict(OPERATORS, div="b == 0 ? 0 : NEGATIVE b == @(-1) ? 0 - a : a / b", mod="b == 0 ? a : NEGATIVE b == @(-1) ? 0 : a % b",
               lshift="a << (b & (BITS - 1))", rshift="a >> (b & (BITS - 1))")


def arithmetic(name, plain, on_host):
    """The text of a function such as safe_lshift_func_uint8_t_u_s."""
    operation, type_name, left = re.fullmatch(r"safe_(\w+?)_func_(u?int\d+_t)_(s|u)(?:_[su])?", name).groups()
    right = name[-1]
    width, signed = int(re.search(r"\d+", type_name).group()), left == "s"
    twin = "u" + type_name if signed else type_name
    if operation == "mul" and width < 32:
        twin = "uint32_t"
    text = ((DEFINED if on_host else OPERATORS) if plain else SIGNED if signed else UNSIGNED)[operation]
    least = "0" if not signed else f"{type_name}({twin if width >= 32 else 'int'}(1) << {width - 1})" if width >= 32 else str(-(1 << (width - 1)))
    most = f"{type_name}({hex((1 << (width - signed)) - 1)}{'ul' if width == 64 else 'u'})"
    names = {"LEAST": least, "MOST": most, "BITS": str(max(width, 32)), "NEGATIVE": "" if signed else "false &&", "@": type_name, "#": twin}
    text = re.sub("|".join(names), lambda found: names[found.group()], text)
    if operation == "unary_minus":
        return f"inline {type_name} {name}({type_name} a) {{ return {type_name}({text}); }}\n"
    second = ("int" if right == "s" else "uint32_t") if "shift" in operation else type_name
    return f"inline {type_name} {name}({type_name} a, {second} b) {{ return {type_name}({text}); }}\n"


# ---- From a program to a kernel.
class Unusable(Exception):
    """csmith's output has another form than this script expects."""


def nudged(line):
    """Some local variables begin with another number in each thread, too: without these few branches would differ."""
    local = re.fullmatch(r"( +)(u?int\d+_t) l_(\d+) = ([^{}&;]*);", line)
    if not local or int(local.group(3)) % 3 == 0 or not re.fullmatch(r"[-()0-9A-Fa-fxUL]+", local.group(4)):
        return line
    space, kind, number, value = local.groups()
    shift, mask = int(number) % 5, (1, 3, 7, 0xff01)[int(number) // 5 % 4]
    return f"{space}{kind} l_{number} = {kind}({value} ^ ((own >> {shift}) & {mask}u));"


def nudged_parameters(body):
    """… and some parameters."""
    def change(found):
        names = [name for kind, name in re.findall(r"[(,] ?(u?int\d+_t)  (p_\d+)", found.group()) if int(name[2:]) % 3]
        return found.group() + "".join(f"    {name} ^= (own >> {int(name[2:]) % 5}) & {1 + 2 * (int(name[2:]) % 2)}u;\n" for name in names)
    return re.sub(r"^\S.*\bfunc_\d+\(.*\)\n\{ *\n", change, body, flags=re.M)


def members(text):
    """The text between types and main as members; the names of integers that threads may begin with."""
    lines, free = [], []
    for line in text.split("\n"):
        if line == "static long __undefined;" or re.fullmatch(r"static [^={}]*\);", line):
            continue  # members need no declarations ahead
        scalar = re.fullmatch(r"static u?int\d+_t (g_\d+) = [^{}&]*;", line)
        if scalar:
            free.append(scalar.group(1))
        lines.append(nudged(re.sub(r"^static ", "", line)))
    return nudged_parameters("\n".join(lines)), free


def checksum(text):
    kept = [line for line in text.split("\n") if "print_hash_value" not in line or "transparent_crc(" in line]
    kept = [line for line in kept if not re.search(r"platform_main|crc32_gentab|return 0;|int main|func_1\(\);", line)]
    body = "\n".join(kept)
    return re.sub(r'transparent_crc\((.*), "[^"]*", print_hash_value\);', r"h = mixed(h, uint64_t(\1));", body)


def convert(source, plain):
    """csmith's C++ as (kernel, program for the host)."""
    source = re.sub(r"(\d[0-9A-Fa-fx]*)(U?)LL\b", r"\1\2L", source).replace("(void*)0", "nullptr")
    at, main = source.find("static long __undefined;"), source.find("int main (void)")
    if at < 0 or main < 0:
        raise Unusable("no program")
    middle = source[at:main]
    first = re.search(r"^static (?!long __undefined)", middle, re.M)
    if not first:
        raise Unusable("no program")
    types = middle[:first.start()].replace("static long __undefined;", "")
    body, free = members(middle[first.start():])
    result = re.search(r"^(.*?)func_1\(void\)", body, re.M)
    if not result:
        raise Unusable("no func_1")
    returns = result.group(1).strip()
    call = "h = mixed(h, uint64_t(func_1()));" if re.fullmatch(r"(const )?u?int\d+_t", returns) else "func_1();"
    seeds = "".join(f"    {name} ^= (t * {0x9E3779B1 + 2 * n}u >> {n * 7 % 23}) & {0xFFFF >> (n % 4) * 4}u;\n"
                    for n, name in enumerate(free) if n % 4)
    if len(body) < SMALLEST:
        raise Unusable("hardly a program")
    if len(body) > LARGEST:
        raise Unusable("takes long to compile")
    whole = (f"{types}\nstruct program {{\nuint32_t own = 0;\n{body}\n  uint64_t run(uint32_t t) {{\n    own = t;\n    uint64_t h = 0xcbf29ce484222325ul;\n{seeds}"
             f"    {call}\n{checksum(source[main:]).strip()}\n    return h;\n  }}\n}};\n")
    used = sorted(set(re.findall(r"\bsafe_\w+_func_\w+", whole)))
    mixed = "inline uint64_t mixed(uint64_t h, uint64_t v) { return ((h ^ v) * 0x100000001b3ul) ^ (h >> 29); }\n"
    quiet = '#pragma clang diagnostic ignored "-Wc++11-narrowing"\n'
    on_host = "".join(arithmetic(name, plain, True) for name in used)
    on_device = "".join(arithmetic(name, plain, False) for name in used)
    host = ("#include <stdint.h>\n#include <stdio.h>\n" + quiet + mixed + on_host + whole + "uint64_t one(uint32_t t) { program p = program(); return p.run(t); }\n"
            f"int main() {{ for (uint32_t t = 0; t < {THREADS}; t++) printf(\"%016lx\\n\", one(t)); }}\n")
    kernel = ("#include <metal_stdlib>\nusing namespace metal;\n" + quiet + mixed + on_device + whole +
              "kernel void csmith(device ulong *out [[buffer(0)]], uint t [[thread_position_in_grid]]) {\n  program p = program();\n  out[t] = p.run(t);\n}\n")
    return kernel, host


# ---- Making programs.
def options_of(seed, kind):
    return [*CSMITH, *SIZES[seed % len(SIZES)], *VARIANTS[seed // len(SIZES) % len(VARIANTS)],
            *(["--no-safe-math"] if kind == "raw" else []), "--seed", str(seed)]


def quietly(command, seconds, **more):
    """The standard output of what ends well in time; else None."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, **more)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


def make(seed, kind, folder):
    """(reason it was left out or None, what each thread must give)"""
    name = f"{kind}_{seed}"
    with tempfile.TemporaryDirectory() as scratch:  # csmith writes a file where it stands
        source = quietly(options_of(seed, kind), 20, cwd=scratch)
    if not source:
        return "csmith gave up", None
    try:
        kernel, host = convert(source, kind == "plain")
    except Unusable as reason:
        return str(reason), None
    program, text = folder / f"{name}.out", folder / f"{name}.cpp"
    text.write_text(host)
    compiler = [os.environ.get("SMELT_CLANG", "clang-19"), "-x", "c++", "-std=c++17", "-O0", "-fwrapv", "-fno-strict-aliasing", "-w",
                "-Werror=shift-count-overflow", "-Werror=shift-count-negative", "-Werror=division-by-zero", str(text), "-o", str(program)]
    try:
        if quietly(compiler, 60) is None:
            return "the reference does not compile", None
        lines = quietly([str(program)], REFERENCE_SECONDS)
        if lines is None:
            return "the reference does not end", None
    finally:
        program.unlink(missing_ok=True)
        text.unlink(missing_ok=True)
    (folder / f"{name}.metal").write_text(kernel)
    return None, lines.split()


def make_all(folder, count, first, kinds, jobs):
    folder.mkdir(parents=True, exist_ok=True)
    expected, left_out = {}, {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        seed = first
        while len(expected) < count:
            wanted = [(seed + n // len(kinds), kinds[n % len(kinds)]) for n in range(max(count - len(expected), len(kinds)))]
            seed = wanted[-1][0] + 1
            for (number, kind), (reason, lines) in zip(wanted, pool.map(lambda w: make(w[0], w[1], folder), wanted)):
                if reason:
                    left_out[reason] = left_out.get(reason, 0) + 1
                else:
                    expected[f"{kind}_{number}"] = lines
    (folder / "expected.json").write_text(json.dumps(expected))
    made = len(expected)
    notes = "".join(f"; {number} left out: {reason}" for reason, number in sorted(left_out.items()))
    print(f"{made} programs in {folder}, seeds {first} to {seed - 1}{notes}", flush=True)
    return expected


# ---- Running them.
def read_words(path):
    data = path.read_bytes()
    return [f"{word:016x}" for word in struct.unpack(f"<{THREADS}Q", data[-8 * THREADS:])]


def run(smelt, folder, name, device, expected):
    """None, or what is wrong."""
    with tempfile.TemporaryDirectory() as scratch:
        output = pathlib.Path(scratch) / "out.npy"
        command = [smelt, "run", str(folder / f"{name}.metal"), "csmith", "--grid", str(THREADS), "--threadgroup", str(THREADS),
                   "--device", device, "--timeout", str(KERNEL_SECONDS)]
        try:
            done = subprocess.run([*command, "-b", f"0:out:uint64:{THREADS}={output}"], capture_output=True, text=True,
                                  timeout=WHOLE_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return "smelt did not end", command
        if done.returncode != 0:
            return f"exit status {done.returncode}: {done.stderr.strip()[:300]}", command
        got = read_words(output)
    wrong = [t for t in range(THREADS) if got[t] != expected[t]]
    if wrong:
        return f"{len(wrong)} of {THREADS} threads differ: thread {wrong[0]} gives {got[wrong[0]]}, expected {expected[wrong[0]]}", command
    return None, command


def run_all(smelt, folder, devices, jobs, keep):
    expected = json.loads((folder / "expected.json").read_text())
    failures, start = 0, time.monotonic()
    work = [(name, device) for name in expected for device in devices]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda w: run(smelt, folder, w[0], w[1], expected[w[0]]), work)
        for (name, device), (wrong, command) in zip(work, results):
            if not wrong:
                continue
            failures += 1
            if keep and keep != folder:
                keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / f"{name}.metal", keep)
                command[2] = str(keep / f"{name}.metal")
            print(f"{name} on {device}: {wrong}\n    {' '.join(command)} -b 0:out:uint64:{THREADS}", flush=True)
    seconds = time.monotonic() - start
    level = os.environ.get("SMELT_CPU")
    print(f"{len(expected)} programs on {', '.join(devices)}{f' (SMELT_CPU={level})' if level else ''}: {failures} failed; {seconds:.0f} s", flush=True)
    return failures


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("smelt", nargs="?")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu,cpu-scalar")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--kind", default="safe,plain,raw")
    parser.add_argument("--no-safe-math", action="store_const", dest="kind", const="raw")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("csmith-failures"))
    parser.add_argument("--make", type=pathlib.Path)
    parser.add_argument("--run", type=pathlib.Path)
    given = parser.parse_args()
    unknown = set(given.kind.split(",")) - {"safe", "plain", "raw"}
    if unknown:
        parser.error(f"--kind: '{unknown.pop()}' is not a kind of program; expected safe, plain or raw")
    if not given.make and not given.smelt:
        parser.error("expected the smelt command, or --make FOLDER")
    return given


def main():
    given = arguments()
    if not given.run and not shutil.which("csmith"):
        print("skipped: csmith is not installed (Debian package csmith)")
        return SKIPPED
    kinds, devices = given.kind.split(","), given.device.split(",")
    if given.run:
        return 1 if run_all(given.smelt, given.run, devices, given.jobs, given.run) else 0
    if given.make:
        make_all(given.make, given.count, given.seed, kinds, given.jobs)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        make_all(folder, given.count, given.seed, kinds, given.jobs)
        return 1 if run_all(given.smelt, folder, devices, given.jobs, given.keep) else 0


if __name__ == "__main__":
    sys.exit(main())
