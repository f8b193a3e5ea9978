#!/usr/bin/env python3
"""PTX is shown for every target on machines without a GPU: what it says of itself, and that it differs where launches do.
Where there is an assembler for it, it takes each."""
import os
import re
import shutil
import subprocess

from support import expect, expect_equal, expect_failure, run_tests

# Targets with the version of PTX that drivers of their time read.
TARGETS = {"sm_80": "7.4", "sm_86": "7.4", "sm_87": "7.4", "sm_89": "8.0", "sm_90": "8.5", "sm_90a": "8.5"}
NAMES = "sm_80, sm_86, sm_87, sm_89, sm_90 or sm_90a"

EXP = "uint i = thread_position_in_grid.x;\nout[i] = metal::exp(x[i]);\n"
LOOP = "uint i = thread_position_in_grid.x;\nfloat a = x[i];\nwhile (a < 10) a = a * a + x[i];\nout[i] = a;\n"
PLACE = ("uint3 p = thread_position_in_threadgroup, n = threads_per_threadgroup, at = thread_position_in_grid;\n"
         "out[at.x + 100 * at.y] = float(p.x + 8 * p.y + 64 * n.x + 512 * n.y);\n")
FLOATS = ["-i", "x=ones:float32:4096", "-o", "out:float32:4096"]
PLACES = ["-o", "out:float32:4096"]
FILE = """#include <metal_stdlib>
using namespace metal;
kernel void mixed(device const bfloat *a [[buffer(0)]], device bfloat *b [[buffer(1)]], device half *h [[buffer(2)]],
                  constant uint &n [[buffer(3)]], threadgroup float *t [[threadgroup(0)]],
                  device atomic_uint *c [[buffer(4)]], uint i [[thread_position_in_grid]],
                  uint l [[thread_index_in_threadgroup]]) {
    bfloat s = 0;
    for (uint k = 0; k < n; k++) s = s + a[i + k] * a[k];
    b[i] = max(s, a[i]);
    t[l] = float(s);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    h[i] = half(t[n - l]) * h[i + 1];
    atomic_fetch_add_explicit(c, 1u, memory_order_relaxed);
}
"""


def show(scratch, body, arguments, *options, stage="ptx"):
    done = scratch.run(["show", "--body", scratch.file("k.body", body), *arguments, "--stage", stage, *options])
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    return done.stdout


def lines_that_begin(text, *starts):
    return [line for line in text.splitlines() if line.startswith(starts)]


def code(text):
    """Without what differs from target to target alone."""
    return [line for line in text.splitlines() if not line.startswith((".target", ".version", "//"))]


def test_every_target_says_what_it_is(scratch):
    kernels = {"exp": (EXP, FLOATS), "loop": (LOOP, FLOATS), "place": (PLACE, PLACES)}
    texts = {}
    for target, version in TARGETS.items():
        for name, (body, arguments) in kernels.items():
            texts[name, target] = text = show(scratch, body, arguments, "--target", target)
            expect_equal(lines_that_begin(text, ".version", ".target", ".address_size"),
                         [f".version {version}", f".target {target}", ".address_size 64"], f"head of {name} for {target}")
            expect(".visible .entry __smelt_entry(" in text, f"{name} for {target} has no entry:\n{text}")
        done = scratch.run(["show", scratch.file("mixed.metal", FILE), "--stage", "ptx", "--target", target])
        expect_equal(done.returncode, 0, f"the exit status of the file's kernel for {target} ({done.stderr})")
        for word in (r"\.extern \.shared", r"\sbar(rier)?\.sync\s", r"\satom\.global\.add\.u32\s|\sred\.global\.add\.u32\s"):
            expect(re.search(word, done.stdout), f"'{word}' is missing for {target} in\n{done.stdout}")
        texts["mixed", target] = done.stdout
    for target in TARGETS:
        all_code = {tuple(code(texts[name, target])) for name in (*kernels, "mixed")}
        expect_equal(len(all_code), 4, f"different codes for {target}")
    assembler = shutil.which("ptxas")
    if not assembler:
        return "passed; no ptxas is in PATH to read the code with"
    for (name, target), text in texts.items():
        path = scratch.file(f"{name}.{target}.ptx", text)
        done = subprocess.run([assembler, "-arch", target, "-o", os.path.join(scratch.out, "cubin"), path], check=False,
                              capture_output=True, text=True)
        expect_equal((done.returncode, done.stderr), (0, ""), f"what the assembler says of {name} for {target}")
    return None


def test_without_a_target_it_is_the_present_gpu_s_or_sm_90a(scratch):
    texts = [show(scratch, EXP, FLOATS), show(scratch, EXP, FLOATS, "--device", "cuda"),
             show(scratch, EXP, FLOATS, "--device", "cuda:0", stage="asm")]
    for text in texts:
        expect(lines_that_begin(text, ".target")[0].split()[1] in TARGETS, f"the target is none:\n{text}")
        expect_equal(text, texts[0], "the code on another way to it")
    # A driver that is none: this is what a machine without a GPU has.
    done = scratch.run(["show", "--body", scratch.file("k.body", EXP), *FLOATS, "--stage", "ptx", "--device", "cuda:5"],
                       SMELT_CUDA_DRIVER="/no/such/driver")
    expect_equal((done.returncode, lines_that_begin(done.stdout, ".target")), (0, [".target sm_90a"]), "status and target")
    done = scratch.run(["show", "--body", scratch.file("k.body", EXP), *FLOATS, "--stage", "ptx", "--device", "cuda:5",
                        "--target", "sm_86"], SMELT_CUDA_DRIVER="/no/such/driver")
    expect_equal((done.returncode, lines_that_begin(done.stdout, ".target")), (0, [".target sm_86"]), "status and target")


def test_asm_of_a_target_is_its_ptx(scratch):
    expect_equal(show(scratch, EXP, FLOATS, "--target", "sm_80", stage="asm"), show(scratch, EXP, FLOATS, "--target", "sm_80"),
                 "stage asm of a GPU")
    expect("define" in show(scratch, EXP, FLOATS, "--target", "sm_80", stage="ir"), "stage ir of a GPU has no IR")
    text = show(scratch, EXP, FLOATS, stage="asm")
    expect(".target" not in text and "__smelt_entry:" in text, f"stage asm of a CPU is\n{text}")


def test_code_differs_where_launches_do(scratch):
    def threads(*options):
        return lines_that_begin(show(scratch, PLACE, PLACES, *options), ".maxntid")

    for group, most in (("32", 32), ("64", 64), ("16,16", 256), ("7", 32), ("1000", 1024), ("33,5", 256)):
        expect_equal(threads("--threadgroup", group, "--grid", "4096,50"), [f".maxntid {most}, 1, 1"], f"threads of groups {group}")
    # Positions: shifts where the size is known, a division where it is not, and where edges are short of threads.
    known = show(scratch, PLACE, PLACES, "--threadgroup", "8,8", "--grid", "64,64")
    expect("rem.u32" not in known and "div.u32" not in known, f"a known size is divided by:\n{known}")
    for options in (("--threadgroup", "7,5", "--grid", "70,50"), ("--threadgroup", "8,8", "--grid", "60,64")):
        text = show(scratch, PLACE, PLACES, *options)
        expect("rem.u32" in text, f"no division for {options}:\n{text}")
    whole = show(scratch, EXP, FLOATS, "--threadgroup", "256", "--grid", "4096")
    cut = show(scratch, EXP, FLOATS, "--threadgroup", "256", "--grid", "4000")
    expect("exit" not in whole, f"threads leave a whole grid:\n{whole}")
    expect("exit" in cut, f"no thread leaves a grid that is cut off:\n{cut}")
    # More groups in y than a grid of the hardware has: they are numbered in rows.
    folded = show(scratch, PLACE, PLACES, "--threadgroup", "32", "--grid", "32,100000")
    expect("%ctaid.y" in folded and "%nctaid.x" in folded, f"the grid is not folded:\n{folded}")
    plain = show(scratch, PLACE, PLACES, "--threadgroup", "32", "--grid", "32,1000")
    expect("%ctaid.y" in plain and "%nctaid.x" not in plain, f"the grid is folded:\n{plain}")


def test_code_looks_at_the_stop_flag_with_a_time_out_only(scratch):
    def looks(body, *options):
        return len(re.findall(r"ld\.volatile\.global\.u32", show(scratch, body, FLOATS, *options)))

    expect_equal((looks(EXP), looks(LOOP)), (0, 0), "looks at the flag without a time-out")
    once, more = looks(EXP, "--timeout", "5"), looks(LOOP, "--timeout", "5")
    expect(more > once, f"there are {more} looks in code with a loop, {once} in code without")


def test_small_inputs_are_read_from_the_parameters(scratch):
    body = "out[thread_position_in_grid.x] = n + few[1];\n"
    text = show(scratch, body, ["-i", "n=7.0", "-i", "few=ones:float32:4", "-o", "out:float32:64", "--grid", "64"])
    expect("ld.param.f32" in text and "ld.global" not in text, f"n and few are not read from the parameters in\n{text}")


def test_why_threads_do_their_own_work(scratch):
    def why(body, grid, **environment):
        done = scratch.run(["show", "--body", scratch.file("k.body", body), *FLOATS, "--why", "--target", "sm_80", "--grid", grid],
                           **environment)
        expect_equal((done.returncode, done.stderr), (0, ""), "exit status and messages")
        return done.stdout

    several = "a thread of the hardware does the work of 4 threads, neighbours in x; blocks are 256 x 1 x 1\n"
    expect(why(EXP, "262144").startswith(several), why(EXP, "262144"))
    expect(why(EXP, "300", SMELT_GPU_COARSE="always").startswith(several), why(EXP, "300", SMELT_GPU_COARSE="always"))
    own = "each thread does its own work: "
    expect_equal(why(EXP, "262143"), own + "the grid is small\n", "a small grid")
    expect_equal(why(EXP, "262144", SMELT_GPU_COARSE="never"), own + "the grid is small\n", "never")
    expect_equal(why(LOOP, "262144"), own + "threads run loops\n", "a loop")
    expect_equal(why("threadgroup_barrier(mem_flags::mem_device);\n" + EXP, "262144"),
                 own + "threads wait for each other at a barrier\n", "a barrier")


def test_what_cannot_be_shown(scratch):
    kernel = ["show", "--body", scratch.file("k.body", EXP), *FLOATS]
    for name in ("sm_70", "sm_80a", "SM_80", "90", "x86-64", ""):
        expect_failure(scratch.run([*kernel, "--stage", "ptx", "--target", name]), 1,
                       f"smelt: kernel 'k': target '{name}' is not a GPU target; expected {NAMES}")
    expect_failure(scratch.run([*kernel, "--stage", "simd", "--target", "sm_80"]), 1,
                   "smelt: kernel 'k': stages simd and why need the SIMD engine; target 'sm_80' uses another")
    done = scratch.run([*kernel, "--stage", "simd", "--device", "cuda"], SMELT_CUDA_DRIVER="/no/such/driver")
    expect_failure(done, 1, "smelt: kernel 'k': stages simd and why need the SIMD engine; device 'cuda' uses another")
    for name in ("cuda1", "cuda:", "cuda:x", "cud", "gpu"):
        done = scratch.run([*kernel, "--stage", "ptx", "--device", name])
        expect(done.returncode == 3 and done.stderr.startswith(f"smelt: device '{name}' "), f"{name}: {done.stderr}")
    done = scratch.run(["run", "--body", kernel[2], *FLOATS, "--grid", "8", "--target", "sm_80"])
    expect_failure(done, 2, "smelt: option '--target' is unknown; see smelt run --help")


def test_tables_of_pointers(scratch):
    """LLVM would replace such a table by distances, and lose the address space of what is loaded from it."""
    kernel = scratch.file("k.metal", """#include <metal_stdlib>
constant float a[] = {1, 2, 3};
constant float b[] = {4, 5, 6, 7};
constant constant float *const rows[] = {a, b};
kernel void k(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) { o[i] = rows[i & 1][i % 3]; }
""")
    done = scratch.run(["show", kernel, "k", "--stage", "ptx", "--target", "sm_90a", "--threadgroup", "32"])
    expect_equal((done.returncode, done.stderr), (0, ""), "the exit status and standard error")


run_tests(globals())
