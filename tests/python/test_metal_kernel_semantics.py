"""What kernels written for MLX's metal_kernel rely on, one test a behaviour."""
import re

import ml_dtypes
import numpy as np
import pytest

import smelt

F32 = smelt.float32


def kernel_of(source, inputs=("a",), outputs=("out",), name="probe", **options):
    return smelt.metal_kernel(name=name, input_names=list(inputs), output_names=list(outputs), source=source, **options)


def run(kernel, inputs, shapes, dtypes=None, grid=None, threadgroup=(32, 1, 1), **options):
    dtypes = dtypes or [F32] * len(shapes)
    grid = grid or (int(np.prod(shapes[0])), 1, 1)
    return kernel(inputs=inputs, output_shapes=shapes, output_dtypes=dtypes, grid=grid, threadgroup=threadgroup,
                  **options)


def numbers(*shape, dtype=np.float32, seed=None):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


I = "uint i = thread_position_in_grid.x;\n"


# ---- Construction.


def test_fast_metal_kernel_is_metal_kernel():
    assert smelt.fast.metal_kernel is smelt.metal_kernel


def test_all_arguments_may_be_positional():
    kernel = smelt.metal_kernel("positional", ["a"], ["out"], "out[0] = f(a);", "float f(float x) { return x + 1; }",
                                True, False, {"math_mode": "safe"})
    assert run(kernel, [2.0], [(1,)])[0][0].item() == 3


@pytest.mark.parametrize("mode", ["safe", "relaxed", "fast"])
def test_math_modes(mode):
    body = """
        #ifdef __FAST_MATH__
            out[0] = 1;
        #else
            out[0] = 0;
        #endif
    """
    kernel = kernel_of(body, compile_options={"math_mode": mode})
    assert run(kernel, [numbers(3)], [(1,)])[0][0] == (1 if mode == "fast" else 0)


def test_safe_is_the_default_and_keeps_special_values():
    a = np.array([-np.inf, np.inf, np.nan, 0], np.float32)
    out, = run(kernel_of(I + "out[i] = metal::exp(a[i]);"), [a], [(4,)])
    np.testing.assert_array_equal(out, np.array([0, np.inf, np.nan, 1], np.float32))


@pytest.mark.parametrize("options", [{"math_mode": "quick"}, {"math": "safe"}, {"math_mode": "safe", "opt": 3}])
def test_other_compile_options_are_value_errors(options):
    with pytest.raises(ValueError, match="math_mode|math|opt"):
        kernel_of("out[0] = 1;", compile_options=options)


def test_no_outputs_is_a_value_error():
    with pytest.raises(ValueError, match="'probe' has no outputs"):
        kernel_of("", outputs=())


# ---- The call.


def test_arguments_are_keywords():
    kernel = kernel_of("out[0] = 1;")
    with pytest.raises(TypeError, match="by keyword"):
        kernel([numbers(1)], output_shapes=[(1,)], output_dtypes=[F32], grid=(1, 1, 1), threadgroup=(1, 1, 1))


def test_the_result_is_a_list():
    out = run(kernel_of("out[0] = a[0]; b[0] = 2;", outputs=("out", "b")), [numbers(9)], [(1,), (1,)])
    assert type(out) is list and len(out) == 2


@pytest.mark.parametrize("change, message", [
    ({"inputs": []}, "inputs has length 0, expected 2.*a, b"),
    ({"output_shapes": [(1,), (1,)]}, "output_shapes has length 2, expected 1.*out"),
    ({"output_dtypes": []}, "output_dtypes has length 0, expected 1.*out"),
])
def test_lengths_must_match_the_names(change, message):
    arguments = {"inputs": [1.0, 2.0], "output_shapes": [(1,)], "output_dtypes": [F32]} | change
    with pytest.raises(ValueError, match=message):
        kernel_of("out[0] = a + b;", inputs=("a", "b"))(**arguments, grid=(1, 1, 1), threadgroup=(1, 1, 1))


@pytest.mark.parametrize("value, metal", [(2.5, "float"), (-3, "int32_t"), (True, "bool")])
def test_a_python_number_is_an_array_without_dimensions(value, metal):
    kernel = kernel_of("out[0] = float(a);")
    source = kernel.show(inputs=[value], output_shapes=[(1,)], output_dtypes=[F32])
    assert re.search(rf"const constant {metal}& a \[\[buffer\(0\)\]\]", source), source
    assert run(kernel, [value], [(1,)])[0].item() == float(value)


def test_templates_are_rendered_and_instantiated():
    body = I + "out[i] = B ? T(a[i]) * N : T(0);"
    arguments = {"template": [("T", F32), ("N", 3), ("B", True)]}
    kernel = kernel_of(body, name="templated")
    a = numbers(17)
    out, = run(kernel, [a], [(17,)], **arguments)
    np.testing.assert_array_equal(out, a * 3)
    source = kernel.show(inputs=[a], output_shapes=[(17,)], output_dtypes=[F32], **arguments)
    assert "template <typename T, int N, bool B>" in source
    assert re.search(r'template \[\[host_name\("custom_kernel_templated\w+"\)\]\]', source), source


def test_without_templates_it_is_a_plain_function():
    source = kernel_of("out[0] = 1;", name="plain").show(inputs=[1.0], output_shapes=[(1,)], output_dtypes=[F32])
    assert "template" not in source
    assert "[[kernel]] void custom_kernel_plain(" in source


def test_negative_template_integers():
    out, = run(kernel_of("out[0] = N;"), [1.0], [(1,)], [smelt.int32], template=[("N", -7)])
    assert out.item() == -7


def test_a_template_name_twice_is_an_error():
    with pytest.raises(ValueError, match="template 'T' is given twice"):
        run(kernel_of("out[0] = 1;"), [1.0], [(1,)], template=[("T", F32), ("T", 3)])


def test_grid_counts_threads():
    out, = run(kernel_of("out[thread_position_in_grid.x] = 1;"), [1.0], [(100,)], grid=(37, 1, 1),
               init_value=0)
    np.testing.assert_array_equal(np.asarray(out), [1] * 37 + [0] * 63)


def test_threadgroup_is_clamped_to_the_grid():
    body = "out[0] = threads_per_threadgroup.x; out[1] = threads_per_threadgroup.y;"
    out, = run(kernel_of(body), [1.0], [(2,)], grid=(5, 3, 1), threadgroup=(64, 8, 1))
    assert np.asarray(out).tolist() == [5, 3]


def test_edge_groups_are_smaller():
    body = I + "out[i] = threads_per_threadgroup.x; full[i] = dispatch_threads_per_threadgroup.x;"
    out, full = run(kernel_of(body, outputs=("out", "full")), [1.0], [(70,), (70,)], grid=(70, 1, 1))
    assert np.asarray(out).tolist() == [32] * 64 + [6] * 6
    assert np.asarray(full).tolist() == [32] * 70


def test_a_group_of_more_than_1024_threads_is_refused_before_it_is_clamped():
    with pytest.raises(ValueError, match="2048.*1024"):
        run(kernel_of("out[0] = 1;"), [1.0], [(1,)], grid=(4, 1, 1), threadgroup=(2048, 1, 1))


def test_sizes_have_64_bits_and_are_checked():
    kernel = kernel_of("out[0] = 1;")
    with pytest.raises(ValueError, match="4294967296"):
        run(kernel, [1.0], [(1,)], grid=(2**32, 1, 1))
    with pytest.raises(ValueError, match="grid"):
        run(kernel, [1.0], [(1,)], grid=(2**80, 1, 1))
    with pytest.raises((ValueError, MemoryError)):
        run(kernel, [1.0], [(2**40, 2**40)])
    with pytest.raises(MemoryError):
        run(kernel, [1.0], [(2**45,)], grid=(1, 1, 1))


def test_init_value_fills_every_output():
    out, b = run(kernel_of("if (thread_position_in_grid.x == 1) out[1] = 5;", outputs=("out", "b")), [1.0], [(4,), (3,)],
                 [F32, smelt.int32], init_value=2)
    assert np.asarray(out).tolist() == [2, 5, 2, 2] and np.asarray(b).tolist() == [2, 2, 2]


def test_init_value_of_each_output():
    out, b = run(kernel_of("", outputs=("out", "b")), [1.0], [(2,), (2,)], init_value=[1.5, float("-inf")])
    assert np.asarray(out).tolist() == [1.5, 1.5] and np.asarray(b).tolist() == [-np.inf, -np.inf]
    with pytest.raises(ValueError, match="init_value has length 1, expected 2"):
        run(kernel_of("", outputs=("out", "b")), [1.0], [(2,), (2,)], init_value=[1.5])


def test_outputs_are_not_initialised_otherwise():
    """What is not written may hold anything: only shape and dtype are promised."""
    out, = run(kernel_of("out[0] = 1;"), [numbers(2)], [(3, 5)], [smelt.float16])
    assert out.shape == (3, 5) and out.dtype == np.float16 and out[0, 0] == 1


def test_verbose_prints_the_generated_source(capsys):
    run(kernel_of("out[0] = 41 + 1; // the body", name="wordy"), [1.0], [(1,)], grid=(70, 1, 1), verbose=True)
    printed = capsys.readouterr().out
    assert "out[0] = 41 + 1; // the body" in printed and "custom_kernel_wordy" in printed
    assert "70" in printed and "3" in printed  # threads and groups
    run(kernel_of("out[0] = 1;"), [1.0], [(1,)])
    assert capsys.readouterr().out == ""


def test_kernels_of_one_name_never_share_code():
    a = numbers(33)
    made = [kernel_of(I + f"out[i] = T(a[i]) * {n} + M;", name="twin") for n in range(1, 4)]
    for _ in range(2):
        for n, kernel in enumerate(made, 1):
            for m in (1, 2):
                out, = run(kernel, [a], [a.shape], template=[("T", F32), ("M", m)])
                np.testing.assert_allclose(out, a * n + m, rtol=1e-6, atol=1e-6)
            out, = run(kernel, [a], [a.shape], template=[("T", smelt.int32), ("M", 1)])
            np.testing.assert_array_equal(out, np.trunc(a) * n + 1)
    fast = kernel_of("\n#ifdef __FAST_MATH__\nout[0] = 1;\n#else\nout[0] = 0;\n#endif\n", name="twin",
                     compile_options={"math_mode": "fast"})
    safe = kernel_of("\n#ifdef __FAST_MATH__\nout[0] = 1;\n#else\nout[0] = 0;\n#endif\n", name="twin")
    assert [run(k, [1.0], [(1,)])[0].item() for k in (fast, safe, fast)] == [1, 0, 1]


# ---- The signature.


def signature(kernel, inputs, outputs=1, dtype=F32, **options):
    return kernel.show(inputs=inputs, output_shapes=[(4,)] * outputs, output_dtypes=[dtype] * outputs, **options)


def test_address_spaces_follow_the_inputs_sizes():
    kernel = kernel_of("out[0] = a + b[0] + c[0];", inputs=("a", "b", "c"))
    text = signature(kernel, [np.float32(1), numbers(7), numbers(8)])
    assert "const constant float& a [[buffer(0)]]" in text
    assert "const constant float* b [[buffer(1)]]" in text
    assert "const device float* c [[buffer(2)]]" in text
    assert "device float* out [[buffer(3)]]" in text


def test_shape_strides_and_ndim_follow_an_input_that_mentions_them():
    kernel = kernel_of("out[0] = a_shape[0]; out[1] = a_strides[0]; out[2] = a_ndim; out[3] = b[0];", inputs=("a", "b"))
    a = numbers(6, 4)
    text = signature(kernel, [a, numbers(9)])
    places = [text.index(part) for part in ("const device float* a ", "const constant int* a_shape",
                                            "const constant int64_t* a_strides", "const constant int& a_ndim",
                                            "const device float* b ")]
    assert places == sorted(places)
    assert "b_shape" not in text
    assert run(kernel, [a, numbers(9)], [(4,)], grid=(1, 1, 1))[0][:3].tolist() == [6, 4, 2]


def test_a_number_has_no_shape():
    assert "a_shape" not in signature(kernel_of("out[0] = a;"), [1.0])


def test_a_header_that_mentions_a_shape_gets_it():
    kernel = kernel_of("out[0] = FIRST;", header="#define FIRST a_shape[0]")
    assert run(kernel, [numbers(5, 2)], [(1,)])[0][0] == 5


def test_atomic_outputs():
    body = "atomic_fetch_add_explicit(&out[0], a[thread_position_in_grid.x], memory_order_relaxed);"
    kernel = kernel_of(body, atomic_outputs=True)
    a = np.arange(1000, dtype=np.float32)
    assert "device atomic<float>* out" in signature(kernel, [a])
    assert run(kernel, [a], [(1,)], grid=(1000, 1, 1), init_value=0)[0][0] == a.sum()


def test_atomic_outputs_one_by_one():
    body = "atomic_fetch_add_explicit(&out[0], 1, memory_order_relaxed); b[thread_position_in_grid.x] = 2;"
    kernel = kernel_of(body, outputs=("out", "b"), atomic_outputs=[True, False])
    out, b = run(kernel, [1.0], [(1,), (50,)], [smelt.int32, F32], grid=(50, 1, 1), init_value=0)
    assert out.item() == 50 and np.asarray(b).tolist() == [2] * 50
    with pytest.raises(ValueError, match="atomic_outputs has length 1, expected 2"):
        kernel_of(body, outputs=("out", "b"), atomic_outputs=[True])


UINT3 = ["thread_position_in_grid", "thread_position_in_threadgroup", "threadgroup_position_in_grid", "threads_per_grid",
         "threads_per_threadgroup", "threadgroups_per_grid", "grid_size", "grid_origin",
         "dispatch_threads_per_threadgroup"]
UINT = ["thread_index_in_threadgroup", "thread_index_in_simdgroup", "simdgroup_index_in_threadgroup",
        "simdgroups_per_threadgroup", "threads_per_simdgroup", "thread_execution_width", "thread_index_in_quadgroup",
        "quadgroup_index_in_threadgroup", "quadgroups_per_threadgroup", "dispatch_simdgroups_per_threadgroup",
        "dispatch_quadgroups_per_threadgroup"]


@pytest.mark.parametrize("name", UINT3 + UINT)
def test_attributes_are_parameters_where_they_are_mentioned(name):
    use = f"{name}.x" if name in UINT3 else name
    kernel = kernel_of(f"out[thread_position_in_grid.x] = {use};")
    text = signature(kernel, [1.0])
    assert re.search(rf"{'uint3' if name in UINT3 else 'uint'} {name} \[\[{name}\]\]", text), text
    others = [other for other in UINT3 + UINT if other not in (name, "thread_position_in_grid")]
    assert not any(f"[[{other}]]" in text for other in others)
    i = np.arange(70)
    full = np.where(i < 64, 64, 6)
    expected = {
        "thread_position_in_grid": i, "thread_position_in_threadgroup": i % 64, "threadgroup_position_in_grid": i // 64,
        "threads_per_grid": 70, "threads_per_threadgroup": full, "threadgroups_per_grid": 2, "grid_size": 70,
        "grid_origin": 0, "dispatch_threads_per_threadgroup": 64, "thread_index_in_threadgroup": i % 64,
        "thread_index_in_simdgroup": i % 32, "simdgroup_index_in_threadgroup": i % 64 // 32,
        "simdgroups_per_threadgroup": (full + 31) // 32, "threads_per_simdgroup": 32, "thread_execution_width": 32,
        "thread_index_in_quadgroup": i % 4, "quadgroup_index_in_threadgroup": i % 64 // 4,
        "quadgroups_per_threadgroup": (full + 3) // 4, "dispatch_simdgroups_per_threadgroup": 2,
        "dispatch_quadgroups_per_threadgroup": 16,
    }[name]
    out, = run(kernel, [1.0], [(70,)], [smelt.uint32], grid=(70, 1, 1), threadgroup=(64, 1, 1))
    np.testing.assert_array_equal(np.asarray(out), np.broadcast_to(expected, 70))


DTYPES = [("bool", "bool"), ("uint8", "uint8_t"), ("uint16", "uint16_t"), ("uint32", "uint32_t"), ("uint64", "uint64_t"),
          ("int8", "int8_t"), ("int16", "int16_t"), ("int32", "int32_t"), ("int64", "int64_t"), ("float16", "float16_t"),
          ("bfloat16", "bfloat16_t"), ("float32", "float"), ("complex64", "complex64_t")]


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


@pytest.mark.parametrize("name, metal", DTYPES)
def test_dtypes_in_source(name, metal):
    generator = np.random.default_rng()
    a = (generator.standard_normal(41) * 50).astype(np.complex64 if name == "complex64" else np.float32)
    a = (a > 0 if name == "bool" else a if numpy_dtype(name).kind in "fcV" else np.abs(a)).astype(numpy_dtype(name))
    kernel = kernel_of(I + "T x = a[i]; out[i] = x;")
    out, = run(kernel, [a], [a.shape], [a.dtype], template=[("T", a.dtype)])
    assert out.dtype == a.dtype
    np.testing.assert_array_equal(out.view(np.uint8), a.view(np.uint8))
    text = signature(kernel, [a], dtype=getattr(smelt, "bool_" if name == "bool" else name),
                     template=[("T", a.dtype)])
    assert f"const device {metal}* a" in text and f"device {metal}* out" in text


# ---- Contiguity.


def test_inputs_are_made_row_contiguous():
    a = numbers(6, 10)[::-2, 3:8].T
    out, = run(kernel_of(I + "out[i] = a[i]; strides[i] = a_strides[i % 2];", outputs=("out", "strides")), [a],
               [a.shape, a.shape], [F32, smelt.int64], grid=(a.size, 1, 1))[:1]
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize("given", ["construction", "call"])
def test_strides_are_passed_as_they_are(given):
    a = np.broadcast_to(numbers(4, 6)[::-1, ::3][:, None], (4, 5, 2))
    body = I + "out[i] = a[elem_to_loc(i, a_shape, a_strides, a_ndim)]; strides[i] = a_strides[i % 3];"
    options = {"ensure_row_contiguous": False}
    kernel = kernel_of(body, outputs=("out", "strides"), **(options if given == "construction" else {}))
    out, strides = run(kernel, [a], [a.shape, (40,)], [F32, smelt.int64], **(options if given == "call" else {}))
    np.testing.assert_array_equal(out, a)
    assert strides[:3].tolist() == [-6, 0, 3]
    assert out.flags.c_contiguous


# ---- What a body may use.


@pytest.mark.parametrize("body", [
    "out[0] = ceildiv(7, 2);",
    "out[0] = Limits<float>::finite_max > 1 ? 4 : 0;",
    "out[0] = Limits<half>::max > half(1) ? 4 : 0;",
    "out[0] = WorkPerThread<float>::n >= 1 ? 4 : 0;",
    "ConditionalType<true, float, int>::type x = 4.0f; out[0] = x;",
    "out[0] = 4 + log1p(0.0f);",
    "complex64_t z = complex64_t(1, 2) * complex64_t(1, -2); out[0] = z.real - 1;",
    "out[0] = bfloat16_to_uint16(bfloat16_t(1.0f)) == 0x3f80 ? 4 : 0;",
    "out[0] = float(uint16_to_bfloat16(0x4080));",
    "out[0] = simd_shuffle(int64_t(4), ushort(0));",
    "out[0] = simd_shuffle_down(true, ushort(0)) ? 4 : 0;",
    "out[0] = metal::precise::exp(0.0f) + metal::fast::exp(0.0f) + 2;",
    "bfloat16_t x = bfloat16_t(4.0f); out[0] = float(metal::max(x, bfloat16_t(2.0f)));",
    "float x = -INFINITY; bfloat16_t b = true ? bfloat16_t(4.0f) : bfloat16_t(x); out[0] = b;",
    "bfloat16_t b = a > 0 ? bfloat16_t(a) : -INFINITY; out[0] = b;",
    "MLX_MTL_PRAGMA_UNROLL for (int k = 0; k < 4; k++) out[0] = k + 1;",
    "threadgroup float tile[4]; tile[0] = 4; threadgroup_barrier(mem_flags::mem_threadgroup); out[0] = tile[0];",
    "out[0] = simd_sum(4.0f);",
    "simdgroup_float8x8 m = simdgroup_float8x8(2); out[0] = 4;",
    "int s[2] = {2, 2}; int64_t t[2] = {10, 1}; out[0] = elem_to_loc(3, s, t, 2) - 7;".replace("int s", "const int s"),
])
def test_helpers_need_no_include(body):
    assert run(kernel_of(body), [4.0], [(1,)], grid=(1, 1, 1))[0].item() == 4


def test_the_header_may_hold_function_templates_and_includes():
    kernel = kernel_of("out[0] = twice(a);", header="#include <metal_stdlib>\nusing namespace metal;\n"
                       "template <typename T> METAL_FUNC T twice(T x) { return x + x; }")
    assert run(kernel, [2.0], [(1,)])[0].item() == 4


def test_include_paths(tmp_path):
    (tmp_path / "part.h").write_text("float part(float x) { return 3 * x; }\n")
    kernel = kernel_of("out[0] = part(a);", header='#include "part.h"', include_paths=[tmp_path])
    assert run(kernel, [2.0], [(1,)])[0].item() == 6


def test_kernels_that_are_instantiated_by_hand_in_the_header():
    kernel = kernel_of("out[0] = a;", header="template <typename T> [[kernel]] void other(device T* x) { x[0] = 1; }\n"
                       "instantiate_kernel(\"other_float\", other, float)")
    assert run(kernel, [2.0], [(1,)])[0].item() == 2


# ---- Errors.


def test_compile_errors_point_into_the_body():
    kernel = kernel_of("float x = 1;\nout[0] = x +* y;\n", name="broken")
    with pytest.raises(smelt.CompileError, match=r"broken\.body:2:\d+") as caught:
        run(kernel, [1.0], [(1,)])
    assert "out[0] = x +* y;" in str(caught.value) and "^" in str(caught.value)
    assert isinstance(caught.value, RuntimeError)


def test_compile_errors_point_into_the_header():
    with pytest.raises(smelt.CompileError, match=r"broken\.header:3:\d+"):
        run(kernel_of("out[0] = 1;", name="broken", header="\n\nfloat f() { return z; }"), [1.0], [(1,)])


def test_the_profile_refuses_what_an_apple_gpu_would():
    body = "threadgroup float t[12000]; t[thread_position_in_grid.x] = 1; " \
           "threadgroup_barrier(mem_flags::mem_threadgroup); out[0] = t[0];"
    assert run(kernel_of(body), [1.0], [(1,)])[0].item() == 1
    with pytest.raises(ValueError, match="48000.*32768"):
        run(kernel_of(body), [1.0], [(1,)], profile="apple")


def test_a_kernel_that_never_ends_ends_with_its_time_out():
    kernel = kernel_of("while (a > 0) out[0] += 1;", name="endless")
    with pytest.raises(TimeoutError, match="'endless' ran longer"):
        run(kernel, [1.0], [(1,)], timeout=0.05)
    assert run(kernel_of("out[0] = 1;"), [1.0], [(1,)])[0].item() == 1


def test_threads_that_wait_at_different_barriers():
    body = "if (thread_position_in_grid.x < 16) threadgroup_barrier(mem_flags::mem_none); out[0] = 1;"
    with pytest.raises(smelt.BarrierError):
        run(kernel_of(body), [1.0], [(1,)], grid=(32, 1, 1))


# ---- Public patterns.


def test_simd_sum_reduces_a_simdgroup_and_not_the_threadgroup():
    a = numbers(64)
    out, = run(kernel_of(I + "out[i] = simd_sum(a[i]);"), [a], [(64,)], threadgroup=(64, 1, 1))
    np.testing.assert_allclose(out, np.repeat(a.reshape(2, 32).astype(np.float64).sum(1), 32), rtol=1e-5, atol=1e-5)


def test_a_reduction_with_33_threads():
    a = numbers(33)
    body = """
        threadgroup float parts[2];
        uint i = thread_position_in_grid.x;
        float sum = simd_sum(a[i]);
        if (thread_index_in_simdgroup == 0) parts[simdgroup_index_in_threadgroup] = sum;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (i == 0) out[0] = parts[0] + parts[1];
    """
    out, = run(kernel_of(body), [a], [(1,)], grid=(33, 1, 1), threadgroup=(33, 1, 1))
    np.testing.assert_allclose(out[0], a.astype(np.float64).sum(), rtol=1e-5, atol=1e-5)


def test_an_early_return_ahead_of_a_barrier():
    body = """
        uint i = thread_position_in_grid.x;
        threadgroup float tile[64];
        if (i >= 40) return;
        tile[i] = a[i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[i] = tile[39 - i];
    """
    a = numbers(40)
    out, = run(kernel_of(body), [a], [(40,)], grid=(64, 1, 1), threadgroup=(64, 1, 1))
    np.testing.assert_array_equal(out, a[::-1])
