"""Cases of tests/kernels as PTX, on threads that are scheduled at random (warps.py)."""
import os
import random
import runpy
import struct
import subprocess
import sys

from warps import Warps

SMELT = os.path.abspath(sys.argv[1])
KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kernels")
CASES = runpy.run_path(os.path.join(KERNELS, "run_case.py"), run_name="cases")


def show(path, arguments):
    form = ["--body"] if path.endswith(".body") else []
    done = subprocess.run([SMELT, "show", *form, path, *arguments, "--stage", "ptx"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{path}: {done.stderr}"
    return done.stdout


def values_of(word):
    """Of an input: NAME=arange:int32:N, or NAME=NUMBER."""
    name, _, value = word.partition("=")
    kind, _, rest = value.partition(":")
    return name, list(range(int(rest.partition(":")[2]))) if kind == "arange" else [int(value)]


def run_case(name, unused=(), only=None):
    """`unused`: inputs the code does not look at, which have no slot."""
    path, count = os.path.join(KERNELS, name + ".body"), 0
    for chosen in CASES["choices"](path, whole=True):
        if only and only not in chosen.values():
            continue
        case, slots, results = CASES["Case"](path, chosen), [], {}
        machine = Warps(random.Random(count))
        option = lambda wanted: int(case.arguments[case.arguments.index(wanted) + 1]) if wanted in case.arguments else 0
        for previous, word in zip(case.arguments, case.arguments[1:]):
            if previous == "-i":
                argument, values = values_of(word)
                if argument not in unused:
                    slots.append(machine.allocate(struct.pack(f"<{len(values) + 16}i", *values, *[0] * 16)))
            elif previous == "-o":
                output, kind, size = word.split(":")
                letter = {"int32": "i", "uint64": "Q", "uint32": "I"}[kind]
                start = struct.pack("<" + letter.lower(), option("--init")) * int(size)
                slots.append(machine.allocate(start))
                results[output] = slots[-1], f"<{size}{letter}"
        machine.launch(show(path, case.arguments), slots, option("--grid"), option("--threadgroup"))
        for output, (wanted, _) in case.expectations.items():
            slot, form = results[output]
            found = struct.unpack(form, machine.contents(slot)[:struct.calcsize(form)])
            wrong = [i for i, value in enumerate(wanted) if found[i] != value]
            assert not wrong, f"{name} {chosen}: {output}[{wrong[0]}] is {found[wrong[0]]}, expected {wanted[wrong[0]]}"
        count += 1
    assert count, f"{name}: no such case"
