#!/usr/bin/env python3
"""smelt build: the lines it prints, its exit status, and packages that run without clang and without the compiler."""
import os
import re
import shutil
import subprocess
import tempfile

from support import FULL, SMELT, entries, expect, expect_equal, expect_failure, installed_without_compilers, read_floats, run_tests

os.environ.pop("SMELT_CPU", None)  # these tests name CPUs themselves

FILE = """#include <metal_stdlib>
using namespace metal;
kernel void add(device const float *a [[buffer(0)]], constant float &b [[buffer(1)]],
                device float *c [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    c[i] = a[i] + b;
}
constant bool flip [[function_constant(3)]];
constant float scale [[function_constant(7)]];
constant float scale_or_2 = is_function_constant_defined(scale) ? scale : 2.0f;
kernel void turn(device const float *a [[buffer(0)]], device float *c [[buffer(2)]],
                 uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) {
    c[flip ? n - 1 - i : i] = scale_or_2 * a[i];
}
kernel void part_sums(device const float *a [[buffer(0)]], device float *c [[buffer(2)]],
                      uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                      uint n [[threads_per_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
    threadgroup float part[1024];
    part[t] = a[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) {
        float sum = 0;
        for (uint k = 0; k < n; k++) sum += part[k];
        c[group] = sum;
    }
}
template <typename T> kernel void count(device T *c [[buffer(2)]], uint i [[thread_position_in_grid]]) { c[i] = T(i); }
template [[host_name("count_f")]] kernel void count<float>(device float *, uint);
template [[host_name("count_h")]] kernel void count<half>(device half *, uint);
"""
# LLVM prints such strings in the order of their addresses.
STRINGS = """constant char *const names[] = {"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"};
kernel void spell(device char *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = names[i % 10][i % 3]; }
"""
NAMES = ["add", "turn", "part_sums", "count_f", "count_h"]
# What is wrong here is wrong in instantiations only: an error that clang finds in the text itself is every entry's.
BAD = """template <typename T> kernel void set(device float *x [[buffer(0)]]) { x[0] = T::value; }
struct one { static constexpr constant float value = 1; };
struct nothing {};
struct three { static constexpr constant float value = 3; };
template [[host_name("first")]] kernel void set<one>(device float *);
template [[host_name("wrong")]] kernel void set<nothing>(device float *);
template [[host_name("last")]] kernel void set<three>(device float *);
kernel void also_wrong(device float *x [[buffer(0)]], metal::texture2d<float> t [[texture(0)]]) {}
"""
WITHOUT = {"SMELT_CLANG": "/no/such/clang", "SMELT_COMPILE": "0"}
LINE = re.compile(r"^(\w+) +([\w,-]+) +[\d.]+ ms  (.*)$")


# Builds share what is compiled; what runs has the scratch folder's own cache.
SHARED = tempfile.TemporaryDirectory(prefix="smelt-test-build-")


def build(scratch, text=FILE, extra=(), name="lib", **changes):
    changes.setdefault("SMELT_CACHE_DIR", SHARED.name)
    package = os.path.join(scratch.path, name + ".smeltlib")
    return scratch.run(["build", scratch.file("file.metal", text), "-o", package, *extra], **changes), package


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def built(scratch, *arguments, **changes):
    done, package = build(scratch, *arguments, **changes)
    expect_equal((done.returncode, done.stderr), (0, ""), "exit status and messages of the build")
    return package


def lines(done):
    found = [LINE.match(line) for line in done.stdout.splitlines()]
    expect(all(found), f"lines are\n{done.stdout}")
    return [line.groups() for line in found]


def run(scratch, package, function, length, extra=(), smelt=SMELT, **changes):
    output = os.path.join(scratch.out, "c.npy")
    if os.path.exists(output):
        os.unlink(output)
    buffers = [] if function.startswith("count") else ["-b", "0=arange:float32:1000"]
    buffers += ["--bytes", "1=float32:0.5"] if function == "add" else []
    return scratch.run(["run", package, function, *buffers, "-b", f"2:out:float32:{length}={output}", "--verbose", *extra],
                       smelt=smelt, **changes), output


def expect_run(done, output, wanted, what):
    expect_equal(done.returncode, 0, f"exit status of {what}: {done.stderr}")
    expect_equal(list(read_floats(output)), list(wanted), f"the output of {what}")


SIZES = [("--grid", "1000", "--threadgroup", "256"), ("--grid", "1000", "--threadgroup", "1000"),
         ("--grid", "1000", "--threadgroup", "96"), ("--grid", "1000", "--threadgroup", "7"),
         ("--grid", "1000", "--threadgroup", "128", "--timeout", "0"), ("--grid", "1000", "--threadgroup", "1")]


def expect_all_run(scratch, package, **changes):
    for size in SIZES:
        group = int(size[3])
        done, output = run(scratch, package, "add", 1000, size, **changes)
        expect_run(done, output, [i + 0.5 for i in range(1000)], f"add {size}")
        expect("compiled" not in done.stderr, f"add {size} was compiled: {done.stderr}")
        groups = [range(first, min(first + group, 1000)) for first in range(0, 1000, group)]
        done, output = run(scratch, package, "part_sums", len(groups), size, **changes)
        expect_run(done, output, [float(sum(part)) for part in groups], f"part_sums {size}")
        done, output = run(scratch, package, "count_f", 1000, size, **changes)
        expect_run(done, output, map(float, range(1000)), f"count_f {size}")


def test_list_entries(scratch):
    source = scratch.file("file.metal", FILE)
    for changes in ({}, WITHOUT):
        done = scratch.run(["build", source, "--list-entries"], **changes)
        expect_equal((done.returncode, done.stdout.split(), done.stderr), (0, NAMES, ""), "the list")
    expect_equal(entries(scratch, "bitcode") + entries(scratch, "image"), [], "what was compiled")
    preprocessed = scratch.file("p.metal", "#include <metal_stdlib>\n#if 1\n" + FILE + "#endif\n")
    done = scratch.run(["build", preprocessed, "--list-entries"])
    expect_equal((done.returncode, done.stdout.split()), (0, NAMES), "the list of a file with directives")
    expect_equal(entries(scratch, "bitcode") + entries(scratch, "image"), [], "what was compiled")


def test_lines_and_constants(scratch):
    done, package = build(scratch)
    expect_equal((done.returncode, done.stderr), (0, ""), "exit status and messages")
    expect_equal([(name, end) for name, _, end in lines(done)],
                 [(name, "ok (constant 3 ('flip') given at load)" if name == "turn" else "ok") for name in NAMES], "the lines")
    done, output = run(scratch, package, "turn", 4, ["--grid", "4"])
    expect_failure(done, 1, "smelt: kernel 'turn': function constant 3 ('flip') has no value, and the kernel uses it")
    for constants, wanted in ((["3=true"], [6, 4, 2, 0]), (["3=false"], [0, 2, 4, 6]), (["3=true", "7=0.5"], [1.5, 1, 0.5, 0])):
        words = [word for constant in constants for word in ("--constant", constant)]
        done, output = run(scratch, package, "turn", 4, ["--grid", "4", *words], SMELT_CLANG="/no/such/clang")
        expect_run(done, output, wanted, f"turn with {constants}")
    done, output = run(scratch, package, "turn", 4, ["--grid", "4", "--constant", "3=true"], **WITHOUT,
                       SMELT_CACHE_DIR=scratch.path + "/other")
    expect_failure(done, 3, "smelt: kernel 'turn': the package has no code for it, since function constants get their values "
                            "only now: SMELT_COMPILE is 0: nothing is compiled")


def test_constants_of_the_build(scratch):
    package = built(scratch, FILE, ("--constant", "3=true", "--entry", "turn"))
    changes = {**WITHOUT, "SMELT_CACHE_DIR": scratch.path + "/other"}
    for words in ([], ["--constant", "3=true"], ["--constant", "3=uint8:1"], ["--constant", "99=1"]):
        done, output = run(scratch, package, "turn", 4, ["--grid", "4", *words], **changes)
        expect_run(done, output, [6, 4, 2, 0], f"turn with {words}")
    for words in (["--constant", "3=false"], ["--constant", "7=2.0"]):
        done, output = run(scratch, package, "turn", 4, ["--grid", "4", *words], **changes)
        expect_failure(done, 3, "smelt: kernel 'turn': the package's code was compiled with other values of function constants: "
                                "SMELT_COMPILE is 0: nothing is compiled")
        done, output = run(scratch, package, "turn", 4, ["--grid", "4", *words], SMELT_CLANG="/no/such/clang")
        expect_run(done, output, [0, 2, 4, 6] if "3=false" in words else [6, 4, 2, 0], f"turn with {words}, compiled")
    done, _ = build(scratch, FILE, ("--constant", "99=1"))
    expect("warning: function constant 99 has a value, but no built entry uses it" in done.stderr, done.stderr)


def test_constants_by_name_and_vectors(scratch):
    text = """constant uint3 size [[function_constant(0)]];
kernel void v(device float *c [[buffer(2)]], uint i [[thread_position_in_grid]]) { c[i] = size.x + 10 * size.y + 100 * size.z; }
"""
    package = built(scratch, text, ("--constant", "size=uint32:1,2,3"))
    for words, wanted in (([], 321), (["--constant", "0=uint32:1,2,3"], 321), (["--constant", "size=uint32:3,2,1"], 123)):
        changes = WITHOUT if wanted == 321 else {"SMELT_CLANG": "/no/such/clang"}
        output = os.path.join(scratch.out, "v.npy")
        done = scratch.run(["run", package, "-b", f"2:out:float32:2={output}", "--grid", "2", *words], **changes)
        expect_run(done, output, [wanted, wanted], f"v with {words}")
    done = scratch.run(["show", package, "--stage", "contents"], **WITHOUT)
    expect("  function constant 0 'size', uint32: 1, 2, 3\n" in done.stdout, done.stdout)


def test_skipped_threadgroups_are_named(scratch):
    """Sizes that a kernel cannot run with are named in its line."""
    text = """#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
kernel void free(device int *o [[buffer(0)]], uint i [[thread_position_in_grid]]) { o[i] = i; }
[[required_threads_per_threadgroup(8, 4)]] kernel void fixed(device int *o [[buffer(0)]], uint2 i [[thread_position_in_grid]]) {
  o[i.y * 8 + i.x] = 1;
}
kernel void whole(tensor<device half, dextents<int, 2>> a [[buffer(0)]], tensor<device float, dextents<int, 2>> c [[buffer(1)]]) {
  mpp::tensor_ops::matmul2d<mpp::tensor_ops::matmul2d_descriptor(128, 128), execution_simdgroups<4>> product;
  product.run(a, a, c);
}
"""
    done, _ = build(scratch, text, ("--target", "sm_90a", "--threadgroup", "64", "--threadgroup", "8,4", "--threadgroup", "128"))
    fixed = "; ".join(f"threadgroup {size} skipped: the kernel requires 8,4,1" for size in ("64,1,1", "128,1,1"))
    whole = "; ".join(f"threadgroup {size} skipped: it does not compile for this size" for size in ("64,1,1", "8,4,1"))
    expect_equal([(name, end) for name, _, end in lines(done)],
                 [("free", "ok"), ("fixed", f"ok ({fixed})"), ("whole", f"ok ({whole})")], "the lines")


def test_runs_without_clang_and_compiler(scratch):
    package = built(scratch)
    expect_all_run(scratch, package, **WITHOUT)
    # And where there is no compiler library to be found, nor a source, nor a cache.
    os.unlink(os.path.join(scratch.path, "file.metal"))
    shutil.rmtree(scratch.cache, ignore_errors=True)
    command = installed_without_compilers(os.path.join(scratch.path, "installed"))
    expect_all_run(scratch, package, smelt=command, SMELT_CLANG="/no/such/clang")
    done, _ = run(scratch, package, "add", 1000, (*SIZES[0], "--device", "cpu-scalar"), smelt=command)
    expect(done.returncode == 3 and "kernel 'add': the package has no code of the scalar engine: the compiler library cannot"
           in done.stderr, f"the scalar engine: {done.returncode} {done.stderr}")


def test_general_code_is_said_to_be_general(scratch):
    package = built(scratch)
    size = ("--grid", "960", "--threadgroup", "64")
    done, _ = run(scratch, package, "part_sums", 15, size, **WITHOUT)
    expect("kernel 'part_sums' runs the package's code for cpu, generated for threadgroups with rows of whole simdgroups; code for "
           "threadgroups of 64 x 1 x 1 would be faster" in done.stderr, done.stderr)
    done, _ = run(scratch, package, "part_sums", 4, SIZES[0], **WITHOUT)
    # With a compiler there is code for the size, made once.
    done, _ = run(scratch, package, "part_sums", 15, size, SMELT_CLANG="/no/such/clang")
    expect("compiled" in done.stderr and "runs the package's code" not in done.stderr, done.stderr)
    done, _ = run(scratch, package, "part_sums", 15, size, SMELT_CLANG="/no/such/clang")
    expect("loaded without compiling" in done.stderr and "runs the package's code" not in done.stderr, done.stderr)
    package = built(scratch, FILE, ("--threadgroup", "64"))
    done, _ = run(scratch, package, "part_sums", 15, size, **WITHOUT, SMELT_CACHE_DIR=scratch.path + "/other")
    expect("loaded without compiling" in done.stderr and "runs the package's code" not in done.stderr, done.stderr)


def test_targets(scratch):
    package = built(scratch, FILE, ("--entry", "add", "--entry", "part_sums", "--entry", "count_f", "--target",
                                    "x86-64,x86-64-v3"))
    for cpu, name in (("sse2", "x86-64"), ("avx2", "x86-64-v3")):
        done, output = run(scratch, package, "part_sums", 15, ("--grid", "960", "--threadgroup", "64"), SMELT_CPU=cpu, **WITHOUT)
        if "which this machine cannot run" in done.stderr:
            return f"passed as far as {cpu}, which this machine cannot run"
        expect(f"runs the package's code for {name}, generated" in done.stderr, f"on {cpu}: {done.stderr}")
        expect_all_run(scratch, package, SMELT_CPU=cpu, **WITHOUT)
    done, _ = run(scratch, built(scratch, FILE, ("--target", "x86-64-v3")), "add", 1000, SIZES[0], SMELT_CPU="sse2", **WITHOUT)
    expect_equal(done.returncode, 3, "exit status on a lesser machine")
    expect("the package's code does not run here: 'x86-64-v3' needs sse3, which this machine lacks: SMELT_COMPILE is 0"
           in done.stderr, done.stderr)
    package = built(scratch)
    done, _ = run(scratch, package, "add", 1000, SIZES[0], SMELT_CPU="sse2", **WITHOUT)
    expect(done.returncode == 3 and "the package's code does not run here: 'cpu' needs" in done.stderr, done.stderr)
    done, output = run(scratch, package, "add", 1000, SIZES[0], SMELT_CPU="sse2")
    expect_run(done, output, [i + 0.5 for i in range(1000)], "add, compiled for the lesser machine")


GPUS = ("sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a")


def test_targets_that_are_gpus(scratch):
    """Built, described and shown where no GPU is; what stands in the package is what would be made for the launch."""
    package = built(scratch, FILE, ("--target", ",".join(GPUS), "--entry", "add", "--entry", "part_sums", "--threadgroup",
                                    "16,16"))
    done = scratch.run(["show", package, "--stage", "contents"], **WITHOUT)
    expect_equal((done.returncode, done.stderr), (0, ""), "exit status and messages")
    # Beside general code: with arguments by reference as bytes, for 256 and for what was asked; all twice.
    kinds = ["buffers of any size, buffers at any address, any threadgroups of up to 1024 threads",
             "buffers of any size, buffers at any address, more threadgroups than the hardware's, any threadgroups of up to 1024 "
             "threads",
             "buffers of any size, any threadgroups of up to 256 threads", "any threadgroups of up to 256 threads",
             "any threadgroups in a line of up to 1024 threads", "threadgroups of 256 x 1 x 1", "threadgroups of 16 x 16 x 1"]
    # Threads of `add` may do the work of several where there are many.
    line = "any threadgroups in a line of up to 1024 threads"
    more = list(kinds)
    more.insert(kinds.index(line) + 1, "large grids of one dimension, " + line)
    for entry, bytes_of, kinds_of in (("add", "1 argument as bytes, ", more), ("part_sums", "", kinds)):
        text = done.stdout.split(f"entry {entry}:")[1].split("\nentry")[0]
        for target in GPUS:
            found = re.findall(rf"^  code for {target}, \d+ bytes: (.*)$", text, re.M)
            wanted = [re.sub("(?=(any )?threadgroups)", bytes_of, kind, count=1) if number > 2 else kind
                      for number, kind in enumerate(kinds_of)]
            expect_equal([line for line in found if "time-outs" not in line], wanted, f"codes of {entry} for {target}")
            expect_equal([line.replace("time-outs, ", "") for line in found if "time-outs" in line], wanted,
                         f"codes of {entry} for {target} with time-outs")
    with open(package, "rb") as file:
        content = file.read()
    for target in GPUS:
        expect_equal(content.count(f"\n.target {target}\n".encode()), 2 * (len(kinds) + len(more)), f"the codes for {target}")
    shown = scratch.run(["show", package, "part_sums", "--stage", "ptx", "--target", "sm_86", "--threadgroup", "16,16", "--grid",
                         "33,17"], SMELT_CLANG="/no/such/clang")
    expect(shown.returncode == 0 and shown.stdout.encode() + b"\0" in content, f"another code is shown: {shown.stderr}")
    done, _ = run(scratch, package, "add", 1000, SIZES[0], **WITHOUT)
    expect_failure(done, 3, "smelt: kernel 'add': the package's code does not run here: there is none for CPUs: SMELT_COMPILE is "
                            "0: nothing is compiled")
    done, output = run(scratch, package, "add", 1000, SIZES[0], SMELT_CLANG="/no/such/clang")
    expect_run(done, output, [i + 0.5 for i in range(1000)], "add, compiled of a GPU's package")
    both = built(scratch, FILE, ("--target", "sm_80,cpu,sm_90a"), "both")
    expect_all_run(scratch, both, **WITHOUT)


def test_packages_on_a_gpu(scratch):
    """On a driver that is none: it takes all calls, and kernels do nothing."""
    driver = os.path.join(os.path.dirname(os.path.dirname(SMELT)), "tests", "libfakecuda.so")
    expect(os.path.exists(driver), f"{driver} is missing: build the tests")
    package = built(scratch, FILE, ("--target", "cpu,sm_80,sm_90a"))
    gpu = {**WITHOUT, "SMELT_CUDA_DRIVER": driver}
    for function in ("add", "part_sums", "count_f"):
        for size in SIZES:
            done, _ = run(scratch, package, function, 1000, (*size, "--device", "cuda"), **gpu)
            expect(done.returncode == 0 and "loaded without compiling" in done.stderr, f"{function} {size}: {done.stderr}")
    done, _ = run(scratch, package, "add", 1000, (*SIZES[0], "--device", "cuda"), FAKE_CUDA_CAPABILITY="89", **gpu)
    expect("kernel 'add' runs the package's code for sm_80, which leaves newer features of this GPU unused" in done.stderr,
           f"on a GPU of 8.9: {done.stderr}")
    done, _ = run(scratch, built(scratch, FILE, ("--target", "sm_90a"), "one"), "add", 1000, (*SIZES[0], "--device", "cuda"),
                  FAKE_CUDA_CAPABILITY="100", **gpu)
    expect(done.returncode == 3 and "kernel 'add': the package has no code that runs on a GPU of sm_90; it has code for sm_90a: "
           "SMELT_COMPILE is 0: nothing is compiled" in done.stderr, f"on a newer GPU: {done.returncode} {done.stderr}")


def test_the_same_build_gives_the_same_bytes(scratch):
    """Whatever the cache holds, how many entries are compiled at once, and where smelt runs."""
    one, other = (os.path.join(scratch.path, name) for name in ("one", "other"))
    targets = ("--target", "cpu,sm_80", *(() if FULL else ("--entry", "turn", "--entry", "part_sums")))
    first = built(scratch, FILE, targets, "first", SMELT_CACHE_DIR=one)
    shutil.copytree(one, other, ignore=shutil.ignore_patterns("*.bitcode", "*.image"))
    others = {"one entry after another, the prelude precompiled":
              built(scratch, FILE, ("--jobs", "1", *targets), "second", SMELT_CACHE_DIR=other),
              "in another folder, with an empty cache":
              built(scratch, FILE, targets, "third", folder=scratch.out, SMELT_CACHE_DIR=os.path.join(scratch.path, "third"))}
    for how, path in others.items():
        expect(contents(path) == contents(first), f"a build {how} gives other bytes")
    strings = [built(scratch, STRINGS, targets[:2], f"strings {folder}", SMELT_CACHE_DIR=os.path.join(scratch.path, folder))
               for folder in ("one", "other", "third")]
    expect(len(set(map(contents, strings))) == 1, "three builds of a table of strings give different bytes")
    done, uncached = build(scratch, FILE, ("--entry", "turn", *targets[:2]), "fourth", SMELT_CACHE_DIR="/proc/no cache")
    expect_equal(done.returncode, 0, "exit status without a cache")
    cached = built(scratch, FILE, ("--entry", "turn", *targets[:2]), "fifth", SMELT_CACHE_DIR=one)
    expect(contents(uncached) == contents(cached), "a build without a cache gives other bytes")


def test_failures(scratch):
    done, package = build(scratch, BAD)
    wrong = f"{scratch.path}/file.metal:1:82: error: no member named 'value' in 'nothing'"
    expect_equal([(name, end) for name, _, end in lines(done)], [("first", "ok"), ("wrong", wrong)], "the lines")
    expect_failure(done, 1, "smelt: 1 entry does not compile; no package is written")
    expect(not os.path.exists(package), "a package was written")
    done, package = build(scratch, BAD, ("--keep-going", "--jobs", "4"))
    expect_equal([name for name, _, end in lines(done) if end == "ok"], ["first", "last"], "the good entries")
    expect_equal([name for name, _, end in lines(done)], ["first", "wrong", "last", "also_wrong"], "the entries' order")
    expect_failure(done, 1, "smelt: 2 entries do not compile; the others are in the package")
    done = scratch.run(["run", package, "last", "-b", "0:out:float32:1", "--grid", "1"], **WITHOUT)
    expect_equal((done.returncode, done.stdout), (0, "buffer 0 float32 1: min 3, max 3, mean 3: [3]\n"), "a good entry")
    done = scratch.run(["run", package, "wrong", "-b", "0:out:float32:1", "--grid", "1"])
    expect_failure(done, 1, f"smelt: {package} has no kernel function 'wrong'; expected one of: first, last")
    done, package = build(scratch, BAD, ("--keep-going", "--entry", "wrong"), "none")
    expect_equal(done.returncode, 1, "exit status where nothing is good")
    expect(not os.path.exists(package), "a package of nothing was written")


def test_environment(scratch):
    done, package = build(scratch, FILE, (), SMELT_CLANG="/no/such/clang")
    expect_failure(done, 3, "smelt: entry 'add' does not compile: SMELT_CLANG is '/no/such/clang', which is not an "
                            "executable program")
    done, _ = build(scratch, FILE, ("--keep-going",), SMELT_CLANG="/no/such/clang")
    expect_equal((len(lines(done)), done.returncode), (1, 3), "lines and exit status where no entry can be compiled")
    for path, reason in ((scratch.path + "/no/a.smeltlib", "No such file or directory"), (scratch.path, "Is a directory")):
        done = scratch.run(["build", scratch.file("a.metal", FILE), "-o", path], **WITHOUT)
        expect_failure(done, 3, f"smelt: file '{path}' cannot be written: {reason}")


def test_every_instruction_set_clang_would_use_here_is_recorded(scratch):
    """So that code for this machine is not run on one that lacks a set. Those left out are for systems, used only by code
    that asks for them by name, or avoided (sse4a)."""
    never_unasked = set(
        "64bit amx-bf16 amx-complex amx-fp16 amx-int8 amx-tile cldemote clflushopt clwb clzero cmov crc32 cx8 enqcmd fsgsbase fxsr "
        "hreset invpcid kl lwp mmx movdir64b mwaitx pconfig pku prefetchi prfchw ptwrite raoint rdpid rdpru rdrnd rdseed rtm "
        "serialize sgx shstk sse sse2 tsxldtrk uintr usermsr waitpkg wbnoinvd widekl xsave xsavec xsaveopt xsaves "
        "evex512 sse4a".split())
    done = subprocess.run(["clang-19", "-march=native", "-###", "-c", "-x", "c", "/dev/null"], capture_output=True, text=True,
                          check=True)
    used = set(re.findall(r'"-target-feature" "\+([\w.-]+)"', done.stderr)) - never_unasked
    expect("sse3" in used, "clang names no instruction sets")
    package = built(scratch, FILE, ("--entry", "count_f"))
    with open(package, "rb") as file:
        recorded = re.search(rb"sse3 [\w .-]+", file.read()).group().decode().split()
    expect_equal(sorted(used - set(recorded)), [], "instruction sets that are not recorded")


def test_show(scratch):
    package = built(scratch)
    for stage, word in (("ir", "__smelt_entry"), ("simd", "varying"), ("asm", "__smelt_entry:")):
        done = scratch.run(["show", package, "add", "--stage", stage], SMELT_CLANG="/no/such/clang")
        expect(done.returncode == 0 and word in done.stdout, f"stage {stage}: {done.stdout[:200]}{done.stderr}")
    done = scratch.run(["show", package, "add"])
    expect_failure(done, 1, "smelt: kernel 'add': a package holds no source text; expected stage ir, simd, asm, ptx or why")


def test_contents(scratch):
    package = built(scratch, FILE, ("--constant", "7=0.25", "--entry", "turn", "--entry", "add", "--target", "x86-64-v3"))
    done = scratch.run(["show", package, "--stage", "contents"], **WITHOUT)
    expect_equal((done.returncode, done.stderr), (0, ""), "exit status and messages")
    wanted = [r"package of \S*file.metal: smelt [\d.]+, LLVM 19[\d.]+, Metal 3.2, math safe", "target x86-64-v3: needs .*avx2.*",
              r"entry add: \d+ bytes of bitcode, 5 codes", "  buffer 0 'a'", "  buffer 1 'b'", "  buffer 2 'c'",
              "  thread_position_in_grid 'i'", *[r"  code for x86-64-v3, \d+ bytes: .*threadgroups.*"] * 5,
              r"entry turn: \d+ bytes of bitcode, 0 codes", "  buffer 0 'a'", "  buffer 2 'c'", "  thread_position_in_grid 'i'",
              "  threads_per_grid 'n'", "  function constant 3 'flip', bool: must be given",
              "  function constant 7 'scale', float32: 0.25"]
    for wanted_line, line in zip(wanted, done.stdout.splitlines()):
        expect(re.fullmatch(wanted_line, line), f"the line is {line!r}, expected {wanted_line!r}")
    expect_equal(len(done.stdout.splitlines()), len(wanted), "the number of lines")
    done = scratch.run(["show", package, "turn", "--stage", "contents"], **WITHOUT)
    expect(done.returncode == 0 and "entry turn" in done.stdout and "entry add" not in done.stdout, done.stdout)
    done = scratch.run(["show", os.path.join(scratch.path, "file.metal"), "--stage", "contents"])
    expect_failure(done, 2, f"smelt: '{scratch.path}/file.metal' is not a package, which --stage contents requires")


def test_faults_name_the_line_of_the_source(scratch):
    text = "kernel void f(device float *a [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n    a[i * 4000000000ul] = 1;\n}\n"
    package = built(scratch, text)
    done = scratch.run(["run", package, "-b", "0:out:float32:4", "--grid", "4"], **WITHOUT)
    expect(done.returncode == 1 and "/file.metal:2, but 'a' has 4 elements" in done.stderr, done.stderr)


def test_damage(scratch):
    package = built(scratch, FILE, ("--entry", "count_f"))
    with open(package, "rb") as file:
        whole = file.read()
    damages = {"is truncated": whole[:-1], "its checksum": whole[:300] + b"?" + whole[301:], "is damaged": whole + b"x",
               "has format 99; this smelt": whole[:8] + b"c" + whole[9:], "less than its header": whole[:20],
               "is not a smelt package": b"S" + whole[1:]}
    for words, content in damages.items():
        path = scratch.file("damaged.smeltlib", content)
        done = scratch.run(["run", path, "-b", "2:out:float32:4", "--grid", "4"])
        expect(done.returncode == 2 and words in done.stderr and path in done.stderr, f"{words}: {done.returncode} {done.stderr}")


run_tests(globals())
