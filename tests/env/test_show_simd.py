#!/usr/bin/env python3
"""What the SIMD engine tells a kernel's author: shapes of values (--stage simd), and which lines are not plain vector
code, and why (--why)."""
import pathlib
import re

from support import expect, expect_equal, run_tests

TESTS = pathlib.Path(__file__).resolve().parent.parent

FLOATS = "-i x=ones:float32:4096 -o out:float32:4096 --grid 4096 --threadgroup 64"
FIRST = "uint i = thread_position_in_grid.x;\n"


def show(scratch, body, arguments, *options, **environment):
    done = scratch.run(["show", "--body", scratch.file("k.body", FIRST + body), *arguments.split(), *options], **environment)
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    return done.stdout


def expect_in(text, *pieces):
    for piece in pieces:
        expect(piece in text, f"'{piece}' is missing in\n{text}")


def expect_not_in(text, *pieces):
    for piece in pieces:
        expect(piece not in text, f"'{piece}' stands in\n{text}")


def test_a_plain_kernel_has_nothing_to_tell(scratch):
    text = show(scratch, "out[i] = x[i] * 2;\n", FLOATS, "--why")
    expect_in(text, "all accesses are plain vectors, all control flow is uniform")


def test_each_value_has_its_shape(scratch):
    text = show(scratch, "out[i] = x[i] * 2;\n", FLOATS, "--stage", "simd")
    expect_in(text, "; affine, stride 1\n", "; affine, stride 4\n", "; uniform\n", "; varying\n",
              "; ---- code of a gang\n", "load <")


def test_a_gather_names_its_line_and_its_cause(scratch):
    text = show(scratch, "int j = index[i];\nout[i] = x[j];\n", "-i index=zeros:int32:4096 " + FLOATS, "--why")
    expect_in(text, "k.body:3:", "gather", "a value loaded from memory (line 2)")
    expect_not_in(text, "scatter", "masked")


def test_a_gather_takes_32_bit_indexes(scratch):
    for cpu in "sse2", "avx2", "avx512":
        for index in "int", "uint":
            body = f"{index} j = index[i];\nout[i] = (x + n)[j];\n"
            arguments = f"-i index=zeros:{index}32:4096 -i n=3 {FLOATS}"
            # The code compares the lanes to find out whether they are neighbours or all the same.
            text = show(scratch, body, arguments, "--after", "simd-gang", SMELT_CPU=cpu)
            expect_equal(set(re.findall(r"icmp ne <\d+ x (\w+)>", text)), {"i32"}, f"what {cpu} compares for {index}")
            assembly = show(scratch, body, arguments, "--stage", "asm", SMELT_CPU=cpu)
            if "zmm" in assembly:
                expect_in(assembly, "vgatherdps")
                expect_not_in(assembly, "vgatherqps")


def test_a_scatter_names_its_line_and_its_cause(scratch):
    text = show(scratch, "int j = index[i];\nout[j] = x[i];\n", "-i index=zeros:int32:4096 " + FLOATS, "--why")
    expect_in(text, "k.body:3:", "scatter", "a value loaded from memory (line 2)")
    expect_not_in(text, "gather", "masked")


def test_a_masked_loop_is_named(scratch):
    text = show(scratch, "float a = x[i];\nwhile (a < 10) a = a * 3 + 1;\nout[i] = a;\n", FLOATS, "--why")
    expect_in(text, "k.body:3:", "masked loop: lanes leave it in different iterations")


def test_threads_of_a_row_share_a_quotient_by_its_length_without_speculation(scratch):
    for group in "--grid 4096 --threadgroup 64", "--grid 256,16 --threadgroup 64,4":
        text = show(scratch, "out[i] = x[i / 256];\n", "-i x=ones:float32:4096 -o out:float32:4096 " + group, "--why")
        expect_in(text, "all accesses are plain vectors, all control flow is uniform")


def test_gangs_away_from_edges_load_neighbours(scratch):
    clamps = "float sum = 0;\nfor (int d = -2; d <= 2; d++) sum += x[clamp(int(i) + d, 0, 4095)];\nout[i] = sum;\n"
    text = show(scratch, clamps, FLOATS, "--why")
    expect_in(text, "k.body:3:", "edge: gangs whose positions are all within the bound")
    padded = "float sum = 0;\nif (i >= 1) sum += x[i - 1];\nif (i + 1 < uint(n)) sum += x[i + 1];\nout[i] = sum;\n"
    text = show(scratch, padded, "-i n=4096 " + FLOATS, "--why")
    expect_in(text, "k.body:3:", "k.body:4:", "guard: gangs whose lanes all pass it, or all fail")


def test_trees_of_large_groups_have_few_gangs_and_no_masks_made_at_run_time(scratch):
    tree = """threadgroup float part[1024];
uint t = thread_index_in_threadgroup;
part[t] = x[i];
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint s = 512; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
if (t == 0) out[i / 1024] = part[0];
"""
    arguments = "-i x=ones:float32:4096 -o out:float32:4 --grid 4096 --threadgroup 1024"
    for cpu in "sse2", "avx2", "avx512":
        expect_in(show(scratch, tree, arguments, "--why", SMELT_CPU=cpu), "a gang is 256 threads")
        expect_not_in(show(scratch, tree, arguments, "--after", "simd-gang", SMELT_CPU=cpu), "masked.")


def test_gangs_inside_the_guard_of_a_short_kernel_need_no_masks(scratch):
    grey = "if (i >= uint(n)) return;\nout[i] = x[3 * i] + x[3 * i + 1];\n"
    arguments = "-i n=4000 -i x=zeros:uint8:12288 -o out:uint8:4096 --grid 4096 --threadgroup 256"
    for cpu in "sse2", "avx2", "avx512":
        text = show(scratch, grey, arguments, "--why", SMELT_CPU=cpu)
        expect_in(text, "k.body:2:", "guard: gangs whose lanes all pass it, or all fail")


def test_speculation_is_named(scratch):
    text = show(scratch, "out[i] = x[i / n];\n", "-i n=64 " + FLOATS, "--why")
    expect_in(text, "k.body:2:", "speculation:")


def test_samples_of_a_point_behind_a_guard_are_speculated_on(scratch):
    """Threads that divide behind a guard to find their point: what they load there is neighbours if they share it."""
    corner = "if (a + {0} >= 0 && a + {0} < n && b + {1} >= 0 && b + {1} < n) sum += {2} * x[((b + {1}) * n + a + {0}) * uint(c) + i % uint(c)];\n"
    sample = ("if (i >= uint(n * n * c)) return;\nuint point = i / uint(c) % uint(n) + i / uint(n * c) * n;\n"
              "float p = (at[2 * point] + 1) * n / 2, q = (at[2 * point + 1] + 1) * n / 2;\n"
              "int a = int(floor(p)), b = int(floor(q));\nfloat sum = 0, u = p - a, v = q - b;\n" +
              corner.format(0, 0, "(1 - u) * (1 - v)") + corner.format(1, 0, "u * (1 - v)") +
              corner.format(0, 1, "(1 - u) * v") + corner.format(1, 1, "u * v") + "out[i] = sum;\n")
    arguments = "-i n=8 -i c=64 -i at=zeros:float32:128 " + FLOATS
    for cpu in "sse2", "avx2", "avx512":
        text = show(scratch, sample, arguments, "--why", SMELT_CPU=cpu)
        expect_in(text, "k.body:3:", "speculation: gangs whose lanes share this quotient")


def test_loops_for_few_threads_of_a_large_group_are_written_for_these(scratch):
    rows = ("for (int k = 0; k < n; k++) {\nthreadgroup_barrier(mem_flags::mem_device);\n"
            "for (int r = k + 1 + thread_position_in_threadgroup.x; r < n; r += threads_per_threadgroup.x)\n"
            "for (int c = 0; c < n; c++) out[r * n + c] += x[k * n + c];\n}\n")
    arguments = "-i n=64 -i x=ones:float32:4096 -o out:float32:4096 --grid 256 --threadgroup 256"
    for cpu in "sse2", "avx2", "avx512":
        text = show(scratch, rows, arguments, "--why", SMELT_CPU=cpu)
        expect_in(text, "k.body:5:", "loop: where lanes of only the first")


def test_signed_indexes_do_not_wrap(scratch):
    """What is next to each other is one address and distances from it, although other signed sums wrap."""
    text = show(scratch, "int k = int(i) + n;\nout[i] = x[k] + x[k + 1] + x[k - 2];\n", "-i n=7 " + FLOATS, "--stage", "ir")
    expect_equal(text.count("sext i32"), 1, "how many indexes are widened")
    text = show(scratch, "int k = int(i) + n;\nout[i] = k + 1 > k;\n", "-i n=7 " + FLOATS, "--stage", "ir")
    expect_in(text, "icmp")


def test_indexes_of_two_paths_are_one(scratch):
    done = scratch.run(["show", TESTS / "ml/rope.metal", "rope_yarn_f32", "--why"])
    expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
    expect_not_in(done.stdout, "rope.metal:93:", "rope.metal:98:")


def test_a_stride_is_named(scratch):
    text = show(scratch, "out[i] = x[i * 3];\n", FLOATS, "--why", SMELT_CPU="avx2")
    expect_in(text, "k.body:2:", "a pattern of constant offsets")


def test_lanes_that_fall_into_rows_are_loads(scratch):
    body = "uint lane = thread_index_in_simdgroup;\nout[i] = x[lane / 8 * n + 3 * (lane % 8)];\n"
    text = show(scratch, body, "-i n=100 " + FLOATS, "--why")
    if "16 lanes" in text:  # narrower vectors are gathered
        expect_in(text, "k.body:3:", "load: a vector for each of a few rows")
        expect_not_in(text, "gather")


def test_vectors_that_do_not_straddle_rows_need_no_gather(scratch):
    for number in "int", "uint":
        for quotient, remainder in ("i / 24", "i % 24"), ("i >> 5", "i & 31"):
            loop = f"for ({number} i = thread_index_in_threadgroup; i < n; i += 64) "
            body = f"threadgroup float tile[64][40];\n{loop}tile[{quotient}][{remainder}] = x[({quotient}) * n + ({remainder})];\n" \
                   f"threadgroup_barrier(mem_flags::mem_threadgroup);\nout[thread_index_in_threadgroup] = tile[thread_index_in_threadgroup][3];\n"
            text = scratch.run(["show", "--body", scratch.file("k.body", body.replace("< n", "< 1152")), *FLOATS.split(), "-i", "n=64",
                                "--why"], SMELT_CPU="avx2").stdout
            expect_not_in(text, "k.body:2:", "scatter")


def test_a_pattern_of_bytes_is_tested_once_for_lanes_that_are_off(scratch):
    body = "if (x[i] > 0) { out[3 * i] = in[3 * i + 1]; out[3 * i + 1] = in[6 * i]; }\n"
    arguments = "-i in=zeros:uint8:24576 -i x=ones:float32:4096 -o out:uint8:12288 --grid 4096 --threadgroup 64"
    text = show(scratch, body, arguments, "--after", "simd-gang", SMELT_CPU="avx2")
    expect_in(text, "smelt_runtime_load_lanes_1", "smelt_runtime_store_lanes_1")
    expect_not_in(text, "smelt_runtime_load_row_1", "smelt_runtime_store_row_1")


def test_rows_of_a_group_are_stored_by_vectors(scratch):
    body = "uint2 at = thread_position_in_grid.xy;\nout[at.y * w + at.x] = x[at.y * w + at.x];\n"
    arguments = "-i w=64 -i x=ones:float32:4096 -o out:float32:4096 --grid 64,64 --threadgroup 8,8"
    text = show(scratch, body, arguments, "--why", SMELT_CPU="avx512")
    expect_in(text, "store: a vector for each of a few rows")
    expect_not_in(text, "gather", "scatter")


def test_elements_at_quotient_and_remainder_are_neighbours(scratch):
    for number in "int", "uint":
        for remainder in "i % 18", "i - i / 18 * 18":
            body = f"threadgroup float tile[18][18];\nfor ({number} i = thread_index_in_threadgroup; i < 324; i += 64) tile[i / 18][{remainder}] = x[i];\n" \
                   f"threadgroup_barrier(mem_flags::mem_threadgroup);\nout[thread_index_in_threadgroup] = tile[thread_index_in_threadgroup % 16][3];\n"
            for cpu in "avx2", "avx512":
                expect_not_in(show(scratch, body, FLOATS, "--why", SMELT_CPU=cpu), "scatter")


def test_rows_of_unknown_length_keep_their_strides(scratch):
    body = ("threadgroup float tile[256];\nuint row = thread_position_in_grid.y * n, t = thread_index_in_threadgroup;\n"
            "tile[t] = x[row];\nthreadgroup_barrier(mem_flags::mem_threadgroup);\nout[row + i] = tile[t] + x[2 * (row + i)];\n")
    arguments = "-i n=100 -i x=ones:float32:4096 -o out:float32:4096 --grid 64,16 --threadgroup 16,16"
    text = show(scratch, body, arguments, "--why", SMELT_CPU="avx2")
    expect_in(text, "k.body:6:", "load: a pattern of constant offsets")
    expect_not_in(text, "gather")


def test_shuffles_are_permutations(scratch):
    text = show(scratch, "out[i] = simd_shuffle_xor(x[i], ushort(n));\n", "-i n=100 " + FLOATS, "--stage", "simd",
                SMELT_CPU="avx2")
    expect_in(text, "llvm.x86.avx2.permd")


def test_the_halves_of_a_matrix_product_are_made_together(scratch):
    body = "simdgroup_float8x8 a, b;\nsimdgroup_load(a, x);\nsimdgroup_multiply(b, a, a);\nsimdgroup_store(b, out);\n"
    text = show(scratch, body, "-i x=ones:float32:64 -o out:float32:64 --grid 32 --threadgroup 32", "--stage", "simd")
    in_rows = text.count("call <8 x float> @llvm.fma.v8f32(")
    if in_rows:  # 256 bits: 8 rows, each the sum of 8 products of a number and a row
        expect_equal(in_rows, 64, "the number of multiply-adds")
    else:  # in lanes' order, each product ends the compiler's schedule once
        expect_equal(text.count("call void @llvm.codeview.annotation("), 1, "the number of products")


def test_gangs_may_have_more_sums_than_registers_if_loops_are_in_parts(scratch):
    body = ("threadgroup float a[32][32], b[32][32];\nuint2 t = thread_position_in_threadgroup.xy;\nfloat sum = 0;\n"
            "for (int base = 0; base < n; base += 32) {\n  a[t.y][t.x] = x[i + base];\n  b[t.y][t.x] = x[i + 2 * base];\n"
            "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  for (int k = 0; k < 32; k++) sum += a[t.y][k] * b[k][t.x];\n"
            "  threadgroup_barrier(mem_flags::mem_threadgroup);\n}\nout[i] = sum;\n")
    arguments = "-i n=64 -i x=ones:float32:4096 -o out:float32:4096 --grid 64,32 --threadgroup 32,32"
    text = show(scratch, body, arguments, "--stage", "simd", SMELT_CPU="avx2")
    expect_in(text, "; a gang is 256 threads")


def test_threads_that_take_different_paths_are_not_side_by_side(scratch):
    arguments = "-b 0=ones:int32:64x19 -b 1=ones:int32:19x32 -b 2:out:float32:64x32 --grid 8,8 --threadgroup 8,8 --why"
    for case, side_by_side in ("lanes_register_tile", True), ("lanes_register_tile_branch", False):
        for cpu in "avx2", "avx512":
            done = scratch.run(["show", str(TESTS / f"kernels/{case}.metal"), *arguments.split()], SMELT_CPU=cpu)
            expect_equal(done.returncode, 0, f"the exit status ({done.stderr})")
            expect_equal("threads side by side" in done.stdout, side_by_side, f"whether {case} has threads side by side with {cpu}")


def test_loops_with_uneven_rounds_have_small_gangs(scratch):
    loop = "threadgroup float t[1024];\nuint l = thread_index_in_threadgroup;\nt[l] = 0;\nthreadgroup_barrier(mem_flags::mem_threadgroup);\n" \
           "for (uint j = {first}; j < 1024; j += {step}) t[j] = x[j];\nthreadgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = t[l];\n"
    arguments = "-i n=4 -i x=ones:float32:4096 -o out:float32:4096 --grid 4096 --threadgroup 256"
    for first, step, lanes in ("l", "n", 256), ("l", "256", 256), ("l", "l + 1", 32), ("uint(x[l])", "256", 32):
        text = show(scratch, loop.format(first=first, step=step), arguments, "--stage", "simd", SMELT_CPU="avx2")
        expect_in(text, f"; a gang is {lanes} threads")


def test_the_answer_of_a_barrier_is_the_same_in_all_lanes(scratch):
    body = "threadgroup float t[64];\nif (i >= uint(n)) return;\nuint l = thread_index_in_threadgroup;\nt[l] = x[i];\n" \
           "threadgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = t[63 - l];\n"
    text = show(scratch, body, "-i n=4096 " + FLOATS, "--stage", "simd")
    expect(re.search(r"@smelt_runtime_gang_arrive.*\n.*icmp ne i32.*\n +br i1", text), f"no branch after the barrier in\n{text}")


def test_positions_are_compared_in_32_bits(scratch):
    body = "float sum = 0;\nfor (uint k = 0; k < uint(n); k++) sum += x[k] * (k == i ? 2 : 1);\nout[i] = sum;\n"
    text = show(scratch, body, "-i n=4096 " + FLOATS, "--stage", "simd")
    expect_not_in(text, "x i64>")


def test_atomic_operations_join_lanes_with_one_address(scratch):
    body = "atomic_fetch_add_explicit(&out[i / 3], x[i], memory_order_relaxed);\n"
    expect_in(show(scratch, body, FLOATS + " --atomic-outputs", "--stage", "simd"), "atomic_join")
    body = "x[i] > 0.5f ? atomic_exchange_explicit(&out[i / 3], 1.0f, memory_order_relaxed) : 0;\n"
    expect_not_in(show(scratch, body, FLOATS + " --atomic-outputs", "--stage", "simd"), "atomic_join")


def test_rows_that_a_gang_loads_whole_are_not_prefetched(scratch):
    body = ("threadgroup float sums[256];\nuint t = thread_position_in_threadgroup.x;\nfloat sum = 0;\n"
            "for (uint j = START; j < 4096; j += STEP) sum += x[j];\nsums[t] = sum;\n"
            "threadgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = sums[255 - t] + sum;\n")
    rows = FLOATS.replace("--threadgroup 64", "--threadgroup 256")
    group = body.replace("START", "t").replace("STEP", "256")
    expect_in(show(scratch, group, rows, "--stage", "simd"), "llvm.prefetch")
    halves = body.replace("START", "t / 32 * 512 + t % 32 / 2 * 32 + t % 2 * 8").replace("STEP", "512")
    expect_not_in(show(scratch, halves, rows, "--stage", "simd"), "@llvm.prefetch.p0")


def test_a_refusal_says_what_cannot_be_done(scratch):
    header = scratch.file("h.h", "struct big { float v[3000]; };\n")
    body = ("big t;\nfor (int k = 0; k < 3000; k++) t.v[k] = x[k];\nbig u = t;\nu.v[i] = 1;\n"
            "out[i] = u.v[(i + 1) % 3000] + t.v[i];\n")
    text = show(scratch, body, FLOATS, "--header", header, "--why")
    expect_in(text, "the simd engine refuses this kernel", "copies or fills")


def test_a_refusal_names_the_function_that_calls_itself(scratch):
    header = scratch.file("r.h", "struct row { half a, b, c; };\n"
                                 "static row climb(row v, uint n) { row w = n ? climb(v, n - 1) : v; w.a += w.b; return w; }\n"
                                 "static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }\n")
    text = show(scratch, "row v = {1, 2, 3};\nout[i] = climb(v, i).a;\n", FLOATS, "--header", header, "--why")
    expect_in(text, "the simd engine refuses this kernel: ", "k.body:3: it calls function 'climb', which calls itself")
    text = show(scratch, "out[i] = fibonacci(i);\n", FLOATS, "--header", header, "--why")
    expect_in(text, "k.body:2: it calls function 'fibonacci', which calls itself")
    text = show(scratch, "out[i] = fibonacci(7) + i;\n", FLOATS, "--header", header, "--why")
    expect_not_in(text, "refuses")


run_tests(globals())
