#!/usr/bin/env python3
"""`smelt show --time`: a row for each stage of a compile, with times and the size of the IR, whatever the cache has."""
import re

from support import EXP_BODY, HAS_CC1, expect, expect_equal, expect_failure, run_tests

HEAD = ["stage", "ms", "processor ms", "IR instructions"]
ENDS = ["processes and files", "total"]


def table_of(scratch, arguments, **changes):
    """{stage: its three columns}, and the last line."""
    done = scratch.run(["show", *arguments, "--time"], **changes)
    expect_equal((done.returncode, done.stderr), (0, ""), f"status and messages of smelt show {' '.join(arguments)}")
    head, *rows, last = (re.split(r"  +", line.strip()) for line in done.stdout.splitlines())
    expect_equal(head, HEAD, "the table's head")
    return {row[0]: row[1:] for row in rows}, last[0]


def check(rows, stages, sized):
    rows = {name: columns for name, columns in rows.items() if name != "precompile prelude"}
    expect_equal(list(rows), ["translate", *stages, *ENDS], "the stages")
    for name in stages:
        elapsed, processor, instructions = rows[name]
        expect(float(elapsed) > 0 and float(processor) > 0, f"{name} took {elapsed} ms, {processor} ms of a processor")
        expect_equal(instructions.isdigit() and int(instructions) > 0, name in sized, f"whether {name} has a size, {instructions}")
    total = float(rows["total"][0])
    expect(sum(float(rows[name][0]) for name in stages) <= total, f"the stages take longer than {total} ms together: {rows}")


def body(scratch):
    return ["--body", scratch.file("exp.body", EXP_BODY), "-i", "inp=arange:float32:16", "-o", "out:float32:16", "-t", "T=float32"]


CLANG = ["clang"] if HAS_CC1 else []
QUICK = re.compile(r"A first launch runs quick code, which takes ([0-9.]+) ms in total and ([0-9.]+) ms of a processor\.$")


def test_a_body(scratch):
    for device, lowering in (("cpu", "vectorise"), ("cpu-scalar", "lower")):
        stages = ["clang", "optimise", lowering, "generate code"]
        rows, last = table_of(scratch, [*body(scratch), "--device", device])
        check(rows, stages, CLANG + stages[1:])
        expect(last.startswith("The disk cache did not have this code;"), last)
        rows, last = table_of(scratch, [*body(scratch), "--device", device])
        check(rows, stages, CLANG + stages[1:])
        expect(last.startswith("The disk cache has this code;"), last)


def test_a_large_kernel(scratch):
    """It has quick code; in relaxed arithmetic, quick code would not give the same bits."""
    steps = "".join(f"  x = fma(x, in[i + {k}u], {k}.0f); if (x > 9.0f) x -= in[i];\n" for k in range(160))
    file = scratch.file("large.metal", "#include <metal_stdlib>\nusing namespace metal;\nkernel void large(device const float *in [[buffer(0)]], "
                        "device float *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {\n  float x = in[i];\n" + steps + "  out[i] = x;\n}\n")
    for math, quick in (("safe", HAS_CC1), ("relaxed", False)):
        done = scratch.run(["show", file, "-b", "0=arange:float32:512", "-b", "1:out:float32:256", "--math", math, "--time"])
        expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
        *_, line, last = done.stdout.splitlines()
        expect(last.startswith("The disk cache "), last)
        found = QUICK.match(line)
        expect_equal(found is not None, quick, f"whether there is quick code in math mode {math}, by '{line}'")
        if found:
            expect(0 < float(found[2]) and 0 < float(found[1]), line)


def test_a_file_for_a_gpu(scratch):
    """Its preprocessing is a part of the translation."""
    scratch.file("one.h", "#define ONE 1\n")
    file = scratch.file("k.metal", '#include "one.h"\nkernel void k(device int *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = ONE; }\n')
    rows, _ = table_of(scratch, [file, "k", "-b", "0:out:int32:4", "--target", "sm_80"])
    expect(list(rows)[0] == "translate" and float(rows["translate"][0]) > 0, f"{rows}")
    expect("make PTX" in rows and "vectorise" not in rows, f"the stages are {list(rows)}")


def test_with_another_clang(scratch):
    stages = ["clang", "optimise", "vectorise", "generate code"]
    rows, _ = table_of(scratch, body(scratch), SMELT_CLANG="clang-19")
    check(rows, stages, stages[1:])


def test_it_is_alone(scratch):
    for option in (["--why"], ["--stage", "asm"], ["--after", "sink"]):
        done = scratch.run(["show", *body(scratch), "--time", *option])
        expect_failure(done, 2, f"smelt: --time and {option[0]} are both given; expected one of them")


def test_what_does_not_compile_is_an_error(scratch):
    file = scratch.file("bad.body", "out[0] = undeclared;\n")
    done = scratch.run(["show", "--body", file, "-o", "out:float32:1", "--time"])
    expect(done.returncode == 1 and "undeclared" in done.stderr and not done.stdout, f"{done.returncode} {done.stdout} {done.stderr}")


run_tests(globals())
