#!/usr/bin/env python3
"""Kernels past the budgets of the compiler (src/compiler/budget.h) run, in a form with less code, and compute the same
bits as the scalar engine. Sizes decide the form; the log and --why name them."""
import os

from support import FULL, TIERS, expect, expect_equal, read_floats, run_tests

HEADER = "#include <metal_stdlib>\n#include <metal_simdgroup>\nusing namespace metal;\n"
THREADS = 200  # the last gang is not full
BRANCHES = 600
# In registers of 128 bits, where a simdgroup's value takes eight, a quarter of the code of 512 bits is too large.
NARROW = {"SMELT_CPU": "sse2"}


def signature(name, given="in"):
    """Of a kernel with an input and an output, and the brace that begins its body."""
    return (f"kernel void {name}(device const float *{given} [[buffer(0)]], device float *out [[buffer(1)]],\n"
            "    uint i [[thread_position_in_grid]]) {\n")


def run(scratch, source, name, inputs, count, device="cpu", **changes):
    """The output's floats, and the log."""
    output = os.path.join(scratch.out, f"{name}-{device}.npy")
    done = scratch.run(["run", scratch.file(f"{name}.metal", HEADER + source), "-b", f"0={inputs}", "-b",
                        f"1:out:float32:{count}={output}", "--grid", str(THREADS), "--threadgroup", "64", "--device",
                        device, "--verbose"], **{"SMELT_TIERS": "0", **changes})
    expect_equal(done.returncode, 0, f"the exit status on {device} ({done.stderr})")
    return read_floats(output), done.stderr


def why(scratch, source, name, inputs, count, **changes):
    done = scratch.run(["show", scratch.file(f"{name}.metal", HEADER + source), "-b", f"0={inputs}", "-b",
                        f"1:out:float32:{count}", "--grid", str(THREADS), "--threadgroup", "64", "--why"], **changes)
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    return done.stdout


def expect_same(scratch, source, name, inputs, count, **changes):
    """Tests that both engines compute the same. Returns the log of the vector engine."""
    (found, log), (wanted, _) = (run(scratch, source, name, inputs, count, device, **changes) for device in ("cpu", "cpu-scalar"))
    expect_equal(len(found), count, "the number of results")
    expect(list(found) == list(wanted), f"{name}: the engines differ")
    return log


def test_a_loop_too_large_unrolled_stays_a_loop(scratch):
    source = (signature("sines") + "  float x = in[i];\n#pragma unroll\n"
              "  for (int k = 0; k < 4096; k++) x = sin(x + float(k));\n  out[i] = x;\n}\n")
    # In registers of 512 bits it is not too large.
    narrow = {"SMELT_CPU": os.environ.get("SMELT_CPU", "avx2")}
    log = expect_same(scratch, source, "sines", "rand:float32:200", THREADS, **narrow)
    expect("is large: a loop is not unrolled on request: instructions after unrolling: " in log and ", at most " in log, log)
    if FULL:
        text = why(scratch, source, "sines", "rand:float32:200", THREADS, **narrow)
        expect("a loop is not unrolled on request" in text, text)


def test_loops_are_measured_before_they_are_unrolled(scratch):
    """Products in limbs, as of 256-bit numbers: each unrolls to some 10,000 instructions."""
    product = ("#pragma unroll\n  for (int i = 0; i < 30; i++) {{\n#pragma unroll\n    for (int j = 0; j < 30; j++)\n"
               "      s = s * 31u + (s >> 7) * uint(i + {k}) + a[(i * j + {k}) % 7];\n  }}\n")
    source = (signature("limbs") + "  uint a[7], s = i;\n"
              "  for (int k = 0; k < 7; k++) a[k] = uint(in[(i + k) % 200] * 1000.0f);\n" +
              "".join(product.format(k=k) for k in range(12)) + "  out[i] = float(s & 0xffffu);\n}\n")
    log = expect_same(scratch, source, "limbs", "rand:float32:200", THREADS)
    expect(": it is too large for vector code: instructions after unrolling: " in log, log)


def test_loops_of_unknown_rounds_count_as_eight(scratch):
    """512 copies of a loop, each of which is unrolled to eight rounds and the rest."""
    source = (signature("nested") + "  uint n = uint(in[0] * 0.0f) + 3u;\n  float all = 0;\n"
              "#pragma unroll(8)\n  for (uint a = 0; a < 8; a++) {\n#pragma unroll(8)\n    for (uint b = 0; b < 8; b++) {\n"
              "#pragma unroll(8)\n      for (uint c = 0; c < 8; c++) {\n        float sum = 0;\n#pragma unroll\n"
              "        for (uint k = 0; k < n; k++)\n"
              "          if (k + i < 199u) sum += in[(i + k * 8u + a) % 200u] * in[(i * 3u + k + b * 8u + c) % 200u]\n            * in[(i * 5u + k * 3u + c) % 200u];\n"
              "        if (sum > in[(a * 64u + b * 8u + c) % 200u]) all += sum;\n      }\n    }\n  }\n  out[i] = all;\n}\n")
    log = expect_same(scratch, source, "nested", "rand:float32:200", THREADS)
    expect(": it is too large for vector code: instructions after unrolling: " in log, log)


def test_thousands_of_calls_stay_calls(scratch):
    calls = "".join(f"  x = sin(x + {k}.0f);\n" for k in range(4096))
    source = (signature("calls") + "  float x = in[i];\n" + calls + "  out[i] = x;\n}\n")
    loop = (signature("loop") + "  float x = in[i];\n"
            "  for (int k = 0; k < 4096; k++) x = sin(x + float(k));\n  out[i] = x;\n}\n")
    found, log = run(scratch, source, "calls", "rand:float32:200", THREADS)
    expect(list(found) == list(run(scratch, loop, "loop", "rand:float32:200", THREADS)[0]), "calls and a loop differ")
    expect("runs on the scalar engine: it is too large for vector code: instructions after inlining: " in log, log)


def test_calls_that_stay_take_threadgroup_memory(scratch):
    """A function and a method, to which all calls pass the same threadgroup variable."""
    steps = "".join(f"  x = x * {2 * k + 3}u + (x >> {k % 13 + 1}); x ^= t[(x + {k}u) & 31u];\n" for k in range(40))
    given = (f"static uint mixed(const threadgroup uint *t, uint x) {{\n{steps}  return x;\n}}\n"
             f"struct Box {{ uint t[32]; uint mixed(uint x) const threadgroup {{\n{steps}  return x;\n}} }};\n")
    shared = ("  threadgroup uint shared[32];\n  threadgroup Box box;\n  uint l = i % 64u, x = i + uint(in[i]);\n"
              "  if (l < 32) shared[l] = l * 77u, box.t[l] = l * 99u;\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n")
    call = "  x = box.mixed(mixed(shared, x + {0}u) ^ {0}u);\n"
    source = given + signature("tables") + shared + "".join(call.format(k) for k in range(1100)) + "  out[i] = float(x & 0xffffu);\n}\n"
    loop = (given + signature("rounds") + shared + "  for (uint k = 0; k < 1100; k++) {\n" + call.format("k * 1") +
            "  }\n  out[i] = float(x & 0xffffu);\n}\n")
    found, log = run(scratch, source, "tables", "zeros:float32:200", THREADS)
    expect(list(found) == list(run(scratch, loop, "rounds", "zeros:float32:200", THREADS)[0]), "calls and a loop differ")
    expect("runs on the scalar engine: it is too large for vector code: instructions after inlining: " in log, log)


def test_hundreds_of_branches_run(scratch):
    branches = "".join(f"  if (in[(x + {k}u) % 256u] > 0.5f) {{ slots[{k % 7}] += float({k}); x = x * 5u + 1u; }}\n"
                       for k in range(BRANCHES))
    source = (signature("branches") + "  uint x = i;\n"
              "  device float *slots = out + i * 8;\n  for (int k = 0; k < 8; k++) slots[k] = 0;\n" + branches +
              "  slots[7] = float(x & 0xffffu);\n}\n")
    found, _ = run(scratch, source, "branches", "rand:float32:256", THREADS * 8, **NARROW)
    model = scratch.run(["run", scratch.file("given.metal", HEADER + "kernel void given(device const float *in [[buffer(0)]], "
                         "device float *out [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = in[i]; }\n"),
                         "-b", "0=rand:float32:256", "-b", f"1:out:float32:256={scratch.out}/given.npy", "--grid", "256"])
    expect_equal(model.returncode, 0, f"the exit status ({model.stderr})")
    given = read_floats(f"{scratch.out}/given.npy")
    for i in range(THREADS):
        x, slots = i, [0.0] * 8
        for k in range(BRANCHES):
            if given[(x + k) % 2**32 % 256] > 0.5:
                slots[k % 7] += k
                x = (x * 5 + 1) % 2**32
        slots[7] = float(x & 0xffff)
        expect_equal(list(found[8 * i:8 * i + 8]), slots, f"the results of thread {i}")


def test_attention_of_a_large_head_runs(scratch):
    """A query of 256 numbers, all in the thread's registers when the loops are unrolled."""
    source = ("kernel void attend(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],\n"
              "                   uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {\n"
              "  constexpr int D = 256;\n  half q[D];\n  float sum[D];\n"
              "#pragma unroll\n  for (int d = 0; d < D; d++) q[d] = half(in[(i * 7 + d) % 1024]), sum[d] = 0;\n"
              "  float top = -INFINITY, total = 0;\n  for (int k = 0; k < 5; k++) {\n    float score = 0;\n"
              "#pragma unroll\n    for (int d = 0; d < D; d++) score = fma(float(q[d]), float(half(in[(k * D + d + lane) % 1024])), score);\n"
              "    score = simd_max(score);\n    float grown = max(top, score), keep = exp(top - grown), weight = exp(score - grown);\n"
              "#pragma unroll\n    for (int d = 0; d < D; d++) sum[d] = fma(weight, float(half(in[(k + d * 3) % 1024])), sum[d] * keep);\n"
              "    total = total * keep + weight;\n    top = grown;\n  }\n  float whole = 0;\n"
              "#pragma unroll\n  for (int d = 0; d < D; d++) whole += sum[d] / total * float(d % 5);\n  out[i] = whole;\n}\n")
    expect_same(scratch, source, "attend", "rand:float32:1024", THREADS, **NARROW)


def test_a_thread_too_large_is_optimised_once(scratch):
    """Without a request to unroll, the plain form would have the same code of a thread."""
    steps = "".join(f"  x = x * 31u + (x >> 7) + as_type<uint>(in[(x + {k}u) & 127u]);\n" for k in range(900))
    source = (signature("steps") + "  uint x = i;\n" + steps + "  out[i] = float(x & 0xffffu);\n}\n")
    if FULL:  # the scalar engine runs it on both devices
        expect_same(scratch, source, "large", "rand:float32:128", THREADS, **NARROW)
    done = scratch.run(["show", scratch.file("large.metal", HEADER + source), "-b", "0=rand:float32:128", "-b",
                        f"1:out:float32:{THREADS}", "--grid", str(THREADS), "--threadgroup", "64", "--time"], **NARROW)
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    stages = [line.split("  ")[0] for line in done.stdout.splitlines()]
    expect_equal(stages.count("optimise"), 1, f"how often it is optimised ({done.stdout})")
    expect_equal((stages.count("vectorise"), stages.count("lower")), (0, 1), f"the stages after it ({done.stdout})")


def test_vector_code_too_large_is_written_from_one_optimised_code(scratch):
    """Only the vector code shows that it is too large, in the best and in the plain form."""
    steps = "".join(f"  x = x * 31u + (x >> 7) + as_type<uint>(in[(x + {k}u) & 127u]);\n" for k in range(500))
    source = (signature("steps") + "  uint x = i;\n" + steps + "  out[i] = float(x & 0xffffu);\n}\n")
    if FULL:  # the scalar engine runs it on both devices
        expect_same(scratch, source, "vectors", "rand:float32:128", THREADS, **NARROW)
    file = scratch.file("vectors.metal", HEADER + source)
    words = ["show", file, "-b", "0=rand:float32:128", "-b", f"1:out:float32:{THREADS}", "--grid", str(THREADS), "--threadgroup", "64"]
    done = scratch.run([*words, "--time"], **NARROW)
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    stages = [line.split("  ")[0] for line in done.stdout.splitlines()]
    expect_equal([stages.count(stage) for stage in ("optimise", "vectorise", "lower")], [1, 2, 1], f"the stages ({done.stdout})")
    if not FULL:  # it is refused in the test of products of 64 bits for the same reason
        return
    text = scratch.run([*words, "--why"], **NARROW).stdout
    expect("the simd engine refuses this kernel: it is too large for vector code: instructions of vector code: " in text, text)


def test_a_long_block_is_cut(scratch):
    steps = "".join(f"  x = fma(x, in[i + {k % 256}u], {k % 9}.0f); out[i + {THREADS * (k % 4)}u] = x;\n" for k in range(900))
    source = (signature("steps") + "  float x = in[i];\n" + steps + "}\n")
    expect_same(scratch, source, "steps", "rand:float32:512", THREADS * 4, SMELT_TIERS=TIERS)  # the best code takes ten seconds
    file = scratch.file("steps.metal", HEADER + source)
    for device, cut in (("cpu", True), ("cpu-scalar", False)):
        done = scratch.run(["show", file, "-b", "0=rand:float32:512", "-b", f"1:out:float32:{THREADS * 4}", "--grid",
                            str(THREADS), "--threadgroup", "64", "--device", device, "--after", "cut"])
        expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
        expect_equal("label %absent" in done.stdout, cut, f"whether the code of {device} is cut")


def test_a_long_block_is_cut_for_gpus(scratch):
    steps = "".join(f"  x = x * 31u + (x >> 7) + as_type<uint>(in[(x + {k}u) & 127u]);\n" for k in range(900))
    source = (signature("chain") + "  uint x = i;\n" + steps + "  out[i] = float(x & 0xffffu);\n}\n")
    file = scratch.file("chain.metal", HEADER + source)
    done = scratch.run(["show", file, "--target", "sm_90a", "--after", "cut"])
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    lengths = [0]
    for line in done.stdout.splitlines():
        lengths[-1] += line.startswith("  ")
        if line and not line.startswith(" "):
            lengths.append(0)
    expect(sum(lengths) > 6000 and max(lengths) < 1500, f"instructions of the blocks: {lengths}")


def test_a_long_thread_is_optimised_by_fewer_passes(scratch):
    if not FULL:  # takes seconds
        return
    source = ("kernel void chain(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],\n"
              "                  uint i [[thread_position_in_grid]]) {{\n  uint x = i;\n{}  out[i] = float(x & 0xffffu);\n}}\n")
    step = "  if (x > {0}u) x = x * 31u + (x >> 7) + as_type<uint>(in[(x + {0}u) & 127u]);\n"
    times = []
    for steps in (1400, 2000):
        file = scratch.file(f"chain{steps}.metal", HEADER + source.format("".join(step.format(k) for k in range(steps))))
        done = scratch.run(["show", file, "chain", "--target", "sm_90a", "--time"])
        expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
        times += [float(line.split()[2]) / steps for line in done.stdout.splitlines() if line.startswith("optimise ")]
    expect(times[1] < 0.9 * times[0], f"processor milliseconds per step of a shorter and a longer thread: {times}")


def test_a_long_thread_without_loops_is_right(scratch):
    """More than 20,000 instructions; some results are stored, loaded again, and overwritten."""
    if not FULL:  # takes seconds
        return
    steps = 5000
    step = "  x = x * 31u + (x >> {0}) + {1}u;\n  if ({1}u % 8u == 3u) {{ out[i] = float(x & 0xffu); x ^= uint(out[i]); }}\n"
    source = (signature("straight") + "  uint x = i + uint(in[i] * 0.0f);\n" +
              "".join(step.format(k % 13 + 1, k) for k in range(steps)) + "  out[i] = float(x & 0xffffu);\n}\n")
    found, log = run(scratch, source, "straight", "rand:float32:200", THREADS)
    expect("fewer passes optimise it: instructions of a thread, not optimised: " in log, log)
    for i in (0, 1, 77, THREADS - 1):
        x = i
        for k in range(steps):
            x = (x * 31 + (x >> (k % 13 + 1)) + k) % 2**32
            x ^= x & 0xff if k % 8 == 3 else 0
        expect_equal(found[i], x & 0xffff, f"the result of thread {i}")


def test_long_rows_of_loops_are_cut(scratch):
    """LLVM looked at all branches of the row for each loop: one number of rounds lets all of them run."""
    for count, cut in ((20, False), (64, True)):
        loops = "".join(f"  for (int j = 0; j < n; j++) x = x * 0.5f + in[i + j * {k % 5}];\n" for k in range(count))
        source = signature("row") + "  float x = 0;\n  int n = int(in[0] + 3.0f);\n" + loops + "  out[i] = x;\n}\n"
        if cut:
            expect_same(scratch, source, "row", "rand:float32:300", THREADS)
        done = scratch.run(["show", scratch.file(f"row{count}.metal", HEADER + source), "row", "--device", "cpu-scalar", "--after", "cut"])
        expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
        expect_equal("label %absent" in done.stdout, cut, f"whether the code of {count} loops is cut")


def test_loops_of_longer_rows_stay_as_they_are(scratch):
    """LLVM's loop passes took a time that grew with the square of the number of loops."""
    source = (signature("rows") + "  uint x = i;\n  int n = int(in[0] * 0.0f) + 3;\n" +
              "".join(f"  for (int j = 0; j < n; j++) x = x * 31u + (x >> {k % 13 + 1}) + uint(j);\n" for k in range(510)) +
              "  out[i] = float(x & 0xffffu);\n}\n")
    found, log = run(scratch, source, "rows", "rand:float32:200", THREADS)
    expect("fewer passes optimise it: loops of unknown rounds: 510, at most 500" in log, log)
    for i in range(THREADS):
        x = i
        for k in range(510):
            for j in range(3):
                x = (x * 31 + (x >> (k % 13 + 1)) + j) % 2**32
        expect_equal(found[i], x & 0xffff, f"the result of thread {i}")


def test_the_longest_code_of_gpus_is_generated_without_optimisation(scratch):
    if not FULL:  # takes seconds
        return
    steps = "".join(f"  x = x * 31u + (x >> 7) + {k % 77}u;\n" for k in range(27000))
    source = signature("longest") + "  uint x = i;\n" + steps + "  out[i] = float(x & 0xffffu);\n}\n"
    done = scratch.run(["show", scratch.file("longest.metal", HEADER + source), "longest", "--target", "sm_90a", "--why"])
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    expect("its PTX is generated without optimisation: instructions: " in done.stdout, done.stdout[:1000])


def test_the_pieces_of_a_long_block_stay_apart(scratch):
    """Code that only later pieces need could move past the branches between them, into one block again."""
    steps = "".join(f"  x = x * 31u + (x >> 7) + as_type<uint>(in[(x + {k}u) & 127u]);\n" for k in range(900))
    source = (signature("chain") + "  uint x = i;\n" + steps + "  out[i] = float(x & 0xffffu);\n}\n")
    expect_same(scratch, source, "chain", "rand:float32:128", THREADS)
    done = scratch.run(["show", scratch.file("chain.metal", HEADER + source), "-b", "0=rand:float32:128", "-b",
                        f"1:out:float32:{THREADS}", "--grid", str(THREADS), "--threadgroup", "64", "--device", "cpu-scalar",
                        "--stage", "asm"], SMELT_BOUNDS="0")  # tests of accesses are branches, too
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    pieces, length = [], 0
    for line in done.stdout.splitlines():
        if line.lstrip().startswith("je\t"):
            pieces.append(length)
            length = 0
        length += line.startswith("\t") and not line.startswith("\t.")
    expect(len(pieces) >= 7 and min(pieces[1:]) > 300, f"instructions between the branches: {pieces}")


NUMBERS = """struct number { uint limbs[8]; };
number product(number a, number b) {
  number r;
  for (int i = 0; i < 8; i++) r.limbs[i] = 0;
  for (int i = 0; i < 8; i++) {
    ulong carry = 0;
    for (int j = 0; j < 8 - i; j++) {
      carry += ulong(a.limbs[i]) * b.limbs[j] + r.limbs[i + j];
      r.limbs[i + j] = uint(carry);
      carry >>= 32;
    }
  }
  return r;
}
number sum(number a, number b) {
  ulong carry = 0;
  for (int i = 0; i < 8; i++, carry >>= 32) carry += ulong(a.limbs[i]) + b.limbs[i], a.limbs[i] = uint(carry);
  return a;
}
number step(number x, number y) {
  number z = x;
  for (int k = 0; k < 2; k++) {
    z = sum(product(z, x), y); z = sum(product(z, y), x); z = product(sum(z, x), sum(z, y)); z = sum(product(x, z), z);
    x = sum(product(z, z), y); y = sum(product(x, z), z);
  }
  return sum(sum(x, y), z);
}
"""


def test_functions_of_a_large_kernel_are_optimised_once(scratch):
    """Products of 256 bits, of which there are 72 copies: the results are those of Python's integers."""
    steps = "".join("  x = step(x, y); y = step(y, x);\n" for k in range(3))
    source = (NUMBERS + signature("numbers") + "  number x, y;\n"
              "  for (uint k = 0; k < 8; k++) x.limbs[k] = uint(in[0] * 0.0f) + i * 77u + k, y.limbs[k] = i + k * k * 12345u;\n" +
              steps + "  for (int k = 0; k < 8; k++) out[i * 8 + k] = float((x.limbs[k] ^ y.limbs[k]) & 0xffffffu);\n}\n")
    found, log = run(scratch, source, "numbers", "rand:float32:8", THREADS * 8, **NARROW)
    whole = 2**256 - 1

    def step(x, y):
        z = x
        for _ in range(2):
            z = z * x + y & whole
            z = z * y + x & whole
            z = (z + x) * (z + y) & whole
            z = x * z + z & whole
            x = z * z + y & whole
            y = x * z + z & whole
        return x + y + z & whole
    for i in range(THREADS):
        x, y = (sum(limb % 2**32 << 32 * k for k, limb in enumerate(limbs))
                for limbs in ([i * 77 + k for k in range(8)], [i + k * k * 12345 for k in range(8)]))
        for _ in range(3):
            x = step(x, y)
            y = step(y, x)
        wanted = [(x >> 32 * k ^ y >> 32 * k) & 0xffffff for k in range(8)]
        expect_equal([int(value) for value in found[8 * i:8 * i + 8]], wanted, f"the limbs of thread {i}")
    expect(": it is too large for vector code: instructions of a thread" in log, log)


def test_products_of_64_bits_count_as_the_instructions_they_become(scratch):
    """AVX2 cannot multiply them as vectors: each is a dozen instructions, and its upper half one product per lane."""
    steps = "".join(f"  {{ ulong high = mulhi(s, s + {k}); s = s * carry + {k}; carry = high + (s < carry); }}\n" for k in range(200))
    source = (signature("limbs") + "  ulong s = i, carry = ulong(in[i]);\n" + steps +
              "  out[i] = float(s ^ carry);\n}\n")
    text = why(scratch, source, "limbs", "rand:float32:200", THREADS, SMELT_CPU="avx2")
    expect("the simd engine refuses this kernel: it is too large for vector code: instructions of vector code: " in text, text)


def test_code_refused_late_keeps_the_layout_of_structures(scratch):
    """The scalar engine then lowers a copy of the optimised code, with the copy's own data layout."""
    members = range(400)
    source = ("struct S { " + " ".join(f"float x{k};" for k in members) + " };\n"
              "kernel void members(device float *in [[buffer(0)]], device float *out [[buffer(1)]],\n"
              "                    constant int *n [[buffer(2)]], uint i [[thread_position_in_grid]]) {\n  S s[4] = {};\n" +
              "".join(f"  s[n[{k}] & 3].x{k} = in[i + {k}];\n" for k in members) + "  float sum = 0;\n" +
              "".join(f"  sum += s[{k % 4}].x{k};\n" for k in members) + "  out[i] = sum;\n}\n")
    done = scratch.run(["show", scratch.file("members.metal", HEADER + source), "members", "--stage", "asm"])
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")


def test_vector_code_far_too_large_is_not_cleaned(scratch):
    more = "".join(f" + a[m & {126 - k}]" for k in range(6))
    branches = "".join(f"  if (a[m & 255] > {k}.5f) {{ m += b[i + {k}]; x += a[m & 127]{more}; }} else {{ m ^= b[i * 3u + {k}u]; }}\n"
                       for k in range(100))
    source = (signature("gathers", "a") + "  float x = a[i];\n  int m = int(x);\n"
              "  device const int *b = (device const int *)a;\n" + branches + "  out[i] = x + float(m);\n}\n")
    text = why(scratch, source, "gathers", "rand:float32:1024", THREADS, SMELT_CPU="avx2")
    expect("instructions of vector code as it is written: " in text, text)


def test_cases_that_fall_through_are_refused_before_their_masks_become_registers(scratch):
    if not FULL:
        return
    cases = "".join(f"  case {k}: x += in[i + {k}u];\n" for k in range(800))
    source = (signature("cases") + "  float x = 0;\n  switch (uint(in[i])) {\n" + cases +
              "  }\n  out[i] = x;\n}\n")
    text = why(scratch, source, "cases", "rand:float32:1024", THREADS, SMELT_CPU="avx2")
    expect("values between branches of vector code times branches: " in text, text)


def test_loops_nested_deeply_are_optimised_once(scratch):
    """Each of the loop passes looked at the inner loops again for each loop around them, and copied some."""
    depth = 30
    source = (signature("nested") + "  float x = in[i];\n" +
              "".join(f"  for (int k{k} = 0; k{k} < int(in[{k}] + 1.0f); k{k}++) {{ x += in[i + k{k}];\n" for k in range(depth)) +
              "  x *= 0.5f;\n" + "}" * depth + "  out[i] = x;\n}\n")
    log = (expect_same if FULL else run)(scratch, source, "nested", "rand:float32:512", THREADS)
    reason = f"it is large: fewer passes optimise it: loops within one another: {depth}, at most 10"
    expect(reason[3:] in (log if FULL else log[1]), f"the log: {log}")
    text = why(scratch, source, "nested", "rand:float32:512", THREADS)
    expect(text.startswith(reason), text)
    done = scratch.run(["show", scratch.file("nested.metal", HEADER + source), "nested", "--time"])
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    sizes = [int(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("optimise ")]
    expect(max(sizes) < 40 * depth, f"IR instructions after it is optimised: {sizes}")


def test_values_beyond_the_registers_are_spilled_in_time(scratch):
    """A loop over more values of a thread than there are registers."""
    if not FULL:  # takes seconds
        return
    times = []
    for values in (250, 500):
        source = (signature("values") + "".join(f"  float y{k} = in[(i + {k}u) & 1023u];\n" for k in range(values)) +
                  "  float r = 0;\n  for (int n = 0; n < 2; n++) {\n" +
                  "".join(f"    r += y{k} * y{values - 1 - k};\n" for k in range(values)) + "  }\n  out[i] = r;\n}\n")
        done = scratch.run(["show", scratch.file(f"values{values}.metal", HEADER + source), "values", "--time"])
        expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
        times.append(max(float(line.split()[3]) for line in done.stdout.splitlines() if line.startswith("generate code ")))
    expect(times[1] < 5 * times[0], f"processor milliseconds of generating code for 250 and 500 values: {times}")


def test_long_chains_of_calls_are_inlined_once(scratch):
    """Each function returns a structure, through memory of its caller."""
    chain, times = "struct S { float4 a; uint b[4]; };\nS f0(S s, float x) { s.a = s.a * x; return s; }\n", []
    for k in range(1, 241):
        chain += f"S f{k}(S s, float x) {{ s = f{k - 1}(s, x + {k}.0f); s.b[{k % 4}] += {k}u; return s; }}\n"
    for calls in (60, 240):
        file = scratch.file(f"chain{calls}.metal", HEADER + chain + (
            signature("chain") + "  S s = {};\n  s.a = in[i];\n"
            f"  s = f{calls}(s, in[1]);\n  out[i] = s.a.x + float(s.b[3]);\n}}\n"))
        done = scratch.run(["show", file, "chain", "--time", "--device", "cpu-scalar"])
        expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
        times += [float(line.split()[2]) for line in done.stdout.splitlines() if line.startswith("optimise ")]
    expect(times[1] < 10 * times[0], f"processor milliseconds of optimising chains of 60 and 240 calls: {times}")


def test_hundreds_of_loops_run_round_by_round_on_gpus(scratch):
    source = ("kernel void loops(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],\n"
              "                  device const int *n [[buffer(2)]], uint i [[thread_position_in_grid]]) {{\n"
              "  float x = in[i];\n{}  out[i] = x;\n}}\n")
    loop = "  for (int j = 0; j < n[{0}]; j++) x += in[i + j * {0}];\n"
    for loops, grown in ((4, True), (150, False)):
        file = scratch.file(f"loops{loops}.metal", HEADER + source.format("".join(loop.format(k) for k in range(loops))))
        done = scratch.run(["show", file, "loops", "--target", "sm_90a", "--why"])
        expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
        expect_equal("8 rounds of a loop run at once" in done.stdout, grown, f"rounds at once ({done.stdout})")
        expect_equal("their code would have " in done.stdout, not grown, f"the reason ({done.stdout})")


def test_a_gpu_s_thread_too_large_unrolled_keeps_its_loops(scratch):
    product = ("#pragma unroll\n  for (int i = 0; i < {rounds}; i++) {{\n#pragma unroll\n    for (int j = 0; j < 30; j++)\n"
               "      s = s * 31u + (s >> 7) * uint(i + {k}) + as_type<uint>(in[(s + uint(i * j)) & 127u]);\n  }}\n")
    source = ("kernel void limbs(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],\n"
              "                  uint i [[thread_position_in_grid]]) {{\n  uint s = i;\n{}  out[i] = float(s & 0xffffu);\n}}\n")
    for copies, rounds, stages in ((1, 5, 1), (5, 30, 2)):
        copied = "".join(product.format(k=k, rounds=rounds) for k in range(copies))
        file = scratch.file(f"limbs{copies}.metal", HEADER + source.format(copied))
        done = scratch.run(["show", file, "limbs", "--target", "sm_90a", "--time"])
        expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
        found = [line.split("  ")[0] for line in done.stdout.splitlines()]
        expect_equal(found.count("optimise"), stages, f"how often it is optimised ({done.stdout})")


run_tests(globals())
