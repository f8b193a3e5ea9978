"""smelt.mlx: mx.fast.metal_kernel on MLX arrays, where MLX has no Metal."""
import threading

import numpy as np
import pytest
import snippets

mx = pytest.importorskip("mlx.core", reason="MLX is not installed")
if mx.metal.is_available():
    pytest.skip("MLX has Metal here", allow_module_level=True)

import smelt.mlx  # noqa: E402

ORIGINAL = mx.fast.metal_kernel
I = "uint i = thread_position_in_grid.x;\n"
DTYPES = [mx.bool_, mx.uint8, mx.int8, mx.uint16, mx.int16, mx.uint32, mx.int32, mx.uint64, mx.int64, mx.float16,
          mx.bfloat16, mx.float32, mx.complex64]


@pytest.fixture(autouse=True)
def installed():
    with smelt.mlx.install():
        yield
    assert mx.fast.metal_kernel is ORIGINAL


def kernel_of(source, inputs=("a",), outputs=("out",), name="probe", **options):
    return mx.fast.metal_kernel(name=name, input_names=list(inputs), output_names=list(outputs), source=source,
                                **options)


def run(kernel, a, *, shape=None, dtype=None, **options):
    shape = a.shape if shape is None else shape
    out, = kernel(inputs=[a], output_shapes=[shape], output_dtypes=[dtype or a.dtype],
                  grid=(max(1, int(np.prod(shape))), 1, 1), threadgroup=(32, 1, 1), **options)
    return out


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and mx.array_equal(a, b, equal_nan=True).item()


# ---- Arrays.


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_goes_in_and_comes_out(dtype):
    a = (mx.arange(70) % 3).astype(dtype)
    out = run(kernel_of(I + "out[i] = a[69 - i];"), a)
    assert isinstance(out, mx.array)
    assert same(out, a[::-1])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_as_template_parameters(dtype):
    out = run(kernel_of(I + "out[i] = T(N) * T(a[i]);"), mx.array([0, 1, 1]), dtype=dtype,
              template=[("T", dtype), ("N", 1), ("B", True)])
    assert same(out, mx.array([0, 1, 1]).astype(dtype))


def views():
    a = mx.arange(24, dtype=mx.float32).reshape(4, 6)
    return {"whole": a, "transposed": a.T, "every other column": a[:, ::2], "rows backwards": a[::-1],
            "columns backwards": a[:, ::-1], "broadcast": mx.broadcast_to(a[1:2], (4, 6)), "a row": a[2:3],
            "a column": a[:, 3:4], "three dimensions": a.reshape(2, 2, 6).transpose(2, 0, 1),
            "a scalar broadcast": mx.broadcast_to(mx.array(3.0), (3, 4)), "pending": mx.exp(a.T) + 1}


@pytest.mark.parametrize("name", views())
@pytest.mark.parametrize("contiguous", [True, False])
def test_views(name, contiguous):
    a = views()[name]
    source = I + ("out[i] = a[i];" if contiguous else "out[i] = a[elem_to_loc(i, a_shape, a_strides, a_ndim)];")
    assert same(run(kernel_of(source, ensure_row_contiguous=contiguous), a), a)


def test_strides_are_those_of_the_view():
    a = mx.arange(24, dtype=mx.int32).reshape(4, 6)
    kernel = kernel_of(I + "out[i] = a_strides[i];", ensure_row_contiguous=False)
    for view, strides in ((a.T, [1, 6]), (a[::-1], [-6, 1]), (mx.broadcast_to(a[:1], (4, 6)), [0, 1])):
        assert run(kernel, view, shape=(2,), dtype=mx.int64).tolist() == strides


def test_bfloat16_views_keep_their_strides():
    a = mx.arange(24).astype(mx.bfloat16).reshape(4, 6).T
    kernel = kernel_of(I + "out[i] = a[i];", ensure_row_contiguous=False)
    assert same(run(kernel, a), mx.arange(24).astype(mx.bfloat16).reshape(6, 4))


def test_numbers_and_arrays_without_dimensions():
    kernel = kernel_of("out[0] = a + b + c;", inputs=("a", "b", "c"))
    out, = kernel(inputs=[mx.array(1.5), 2, True], output_shapes=[()], output_dtypes=[mx.float32], grid=(1, 1, 1),
                  threadgroup=(1, 1, 1))
    assert out.shape == () and out.item() == 4.5


def test_numpy_arrays_are_taken_as_MLX_takes_them():
    assert same(run(kernel_of(I + "out[i] = a[i];"), np.ones(3), dtype=mx.float32), mx.ones(3))


def test_empty_outputs_and_inputs():
    assert run(kernel_of(I + "if (i > 7) out[i] = a[i];"), mx.zeros((0, 3))).shape == (0, 3)


def test_several_outputs():
    kernel = kernel_of(I + "x[i] = a[i] + 1; y[i] = a[i] > 1;", outputs=("x", "y"))
    x, y = kernel(inputs=[mx.arange(4)], output_shapes=[(4,), (2, 2)], output_dtypes=[mx.int32, mx.bool_],
                  grid=(4, 1, 1), threadgroup=(4, 1, 1))
    assert x.tolist() == [1, 2, 3, 4] and y.tolist() == [[False, False], [True, True]]


def test_no_inputs():
    kernel = kernel_of(I + "out[i] = i;", inputs=())
    out, = kernel(inputs=[], output_shapes=[(3,)], output_dtypes=[mx.uint32], grid=(3, 1, 1), threadgroup=(3, 1, 1))
    assert out.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16, mx.int64, mx.bool_], ids=str)
def test_init_value(dtype):
    out = run(kernel_of(I + "if (i == 1) out[i] = 0;"), mx.zeros(3).astype(dtype), init_value=1)
    assert same(out, mx.array([1, 0, 1]).astype(dtype))


def test_checked_runs_find_what_an_output_lacks(monkeypatch):
    half = kernel_of(I + "if (i < 4) out[i] = a[i];")
    ones = mx.ones((8,), dtype=mx.bfloat16)
    run(half, ones)
    monkeypatch.setenv("SMELT_CHECK", "1")
    with pytest.raises(smelt.CheckError, match="4 of the 8 elements of output 'out' were never written"):
        run(half, ones)
    assert run(half, ones, init_value=2).tolist() == [1, 1, 1, 1, 2, 2, 2, 2]
    assert same(run(kernel_of(I + "out[i] = a[i];"), ones), ones)


def test_atomic_outputs():
    kernel = kernel_of("atomic_fetch_add_explicit(&out[0], a[thread_position_in_grid.x], memory_order_relaxed);",
                       atomic_outputs=True)
    out, = kernel(inputs=[mx.arange(100)], output_shapes=[(1,)], output_dtypes=[mx.int32], grid=(100, 1, 1),
                  threadgroup=(10, 1, 1), init_value=0)
    assert out.item() == 4950


def test_outputs_are_memory_of_their_own():
    a = mx.arange(4)
    kernel = kernel_of(I + "out[i] = a[i];")
    first, second = run(kernel, a), run(kernel, a + 1)
    first[0] = 9
    assert a.tolist() == [0, 1, 2, 3] and second.tolist() == [1, 2, 3, 4]


def test_a_result_goes_into_the_next_kernel_and_into_MLX():
    kernel = kernel_of(I + "out[i] = a[i] + 1;")
    assert (run(kernel, run(kernel, mx.arange(3)) * 2) - 1).tolist() == [2, 4, 6]


def test_two_kernels_of_one_name():
    one, two = kernel_of(I + "out[i] = 1;"), kernel_of(I + "out[i] = 2;")
    a = mx.arange(3)
    assert (run(one, a) + 10 * run(two, a) + 100 * run(one, a.astype(mx.float32)).astype(mx.int32)).tolist() == [121] * 3


@pytest.mark.parametrize("stream", [None, mx.cpu, mx.gpu, mx.Device(mx.gpu), mx.default_stream(mx.cpu)], ids=str)
def test_streams_are_accepted(stream):
    assert run(kernel_of(I + "out[i] = a[i];"), mx.arange(2), stream=stream).tolist() == [0, 1]


def test_verbose_prints_the_function(capfd):
    run(kernel_of(I + "out[i] = a[i]; // as ever"), mx.arange(2), verbose=True)
    printed = capfd.readouterr().out
    assert "custom_kernel_probe" in printed and "// as ever" in printed


def test_names_that_are_no_identifiers():
    assert run(kernel_of(I + "out[i] = a[i];", name="eps_1e-05"), mx.arange(2)).tolist() == [0, 1]


def test_many_threads():
    kernel = kernel_of(I + "out[i] = a[i] * 2;")
    wrong = []

    def work(n):
        for k in range(20):
            if run(kernel, mx.full((50,), n * 100 + k)).tolist() != [2 * (n * 100 + k)] * 50:
                wrong.append((n, k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- MLX's transformations.


def square(vjp):
    kernel = kernel_of(I + "out[i] = a[i] * a[i];")

    def forward(x):
        return run(kernel, x)

    if not vjp:
        return forward
    slope = kernel_of(I + "out[i] = 2 * a[i] * b[i];", inputs=("a", "b"))
    function = mx.custom_function(forward)

    @function.vjp
    def backward(x, cotangent, _):
        out, = slope(inputs=[x, cotangent], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(x.size, 1, 1),
                     threadgroup=(32, 1, 1))
        return out

    return function


def test_custom_function_with_vjp():
    f, x = square(vjp=True), mx.array([1.0, 2, 3])
    assert mx.grad(lambda x: (f(x * 2) * x).sum())(x).tolist() == [12, 48, 108]
    value, gradient = mx.value_and_grad(lambda x: f(x).sum())(x)
    assert value.item() == 14 and gradient.tolist() == [2, 4, 6]
    assert mx.grad(mx.checkpoint(lambda x: f(x).sum()))(x).tolist() == [2, 4, 6]


def test_a_gradient_through_a_kernel_without_one_is_an_error():
    f, x = square(vjp=False), mx.array([1.0, 2, 3])
    with pytest.raises(ValueError, match=r"kernel 'probe' has no gradient of its own; .* mx.custom_function"):
        mx.grad(lambda x: (f(x) + x).sum())(x)
    with pytest.raises(ValueError, match="kernel 'probe' has no gradient"):
        mx.grad(lambda x: f(x * 2).sum())(x)
    with pytest.raises(ValueError, match="kernel 'probe' has no forward derivative"):
        mx.jvp(f, [x], [x])


def test_a_kernel_beside_the_gradient_is_none():
    f, x = square(vjp=False), mx.array([1.0, 2, 3])
    assert mx.grad(lambda x: (f(mx.ones(3)) * x + mx.stop_gradient(f(x))).sum())(x).tolist() == [1, 1, 1]


def test_compile_is_off_while_installed():
    f = square(vjp=False)
    compiled = mx.compile(lambda x: f(x) + 1)
    assert compiled(mx.array([2.0])).item() == 5 and compiled(mx.array([3.0])).item() == 10


def test_compile_works_again_afterwards():
    def traces():
        calls = []
        compiled = mx.compile(lambda x: calls.append(1) or x + 1)
        compiled(mx.array(1)), compiled(mx.array(2))
        return len(calls)

    assert traces() == 2
    smelt.mlx.uninstall()
    assert traces() == 1
    smelt.mlx.install(disable_compile=False)
    assert traces() == 1


def test_inside_of_compile_and_vmap_it_says_what_to_do(tmp_path):
    smelt.mlx.install(disable_compile=False)
    f = square(vjp=False)
    with pytest.raises(RuntimeError, match=r"kernel 'probe': .* inside mx.compile or mx.vmap.*mx.disable_compile\(\)"):
        mx.compile(f)(mx.array([2.0]))
    with pytest.raises(RuntimeError, match="mx.vmap"):
        mx.vmap(f)(mx.ones((2, 3)))
    with pytest.raises(RuntimeError, match="kernel 'probe': .*mx.export_function.*exported cannot call a kernel"):
        mx.export_function(str(tmp_path / "f.mlxfn"), f, mx.array([2.0]))


# ---- Errors.

CALL = {"inputs": [mx.ones(3)], "output_shapes": [(3,)], "output_dtypes": [mx.float32], "grid": (1, 1, 1),
        "threadgroup": (1, 1, 1)}


@pytest.mark.parametrize("wrong", [
    {"inputs": []}, {"inputs": [mx.ones(3), 1]}, {"output_shapes": []}, {"output_dtypes": []},
    {"output_shapes": [(3,), (3,)]}, {"grid": (1, 1)}, {"grid": 1}, {"grid": (1, 1, 1.5)}, {"threadgroup": (1, 1)},
    {"template": [("T", 1.5)]}, {"template": [("T", "float")]}, {"inputs": [[1, 2]]}, {"inputs": ["a"]},
    {"stream": 3}, {"output_dtypes": ["float32"]}, {"output_dtypes": [np.float32]}, {"surplus": 1},
    {"template": [("T",)]}, {"template": {"T": 1}}, {"verbose": 1}, {"init_value": "0"}, {"init_value": [0.0]}, {"output_shapes": [3]}, {"output_shapes": [(1.5,)]}], ids=str)
def test_calls_that_MLX_refuses_are_refused_with_the_same_exception(wrong):
    names = {"name": "k", "input_names": ["a"], "output_names": ["o"], "source": "o[0] = a[0];"}
    with pytest.raises((TypeError, ValueError)) as theirs:
        ORIGINAL(**names)(**CALL | wrong)
    with pytest.raises(theirs.type):
        mx.fast.metal_kernel(**names)(**CALL | wrong)


@pytest.mark.parametrize("right", [
    {"grid": [1, 1, 1]}, {"grid": (np.int64(1), 1, 1)}, {"grid": np.array([1, 1, 1])}, {"grid": (mx.array(1), 1, 1)},
    {"threadgroup": [1, True, 1]}, {"output_shapes": ([3],)}, {"output_shapes": [np.array([3])]},
    {"output_dtypes": (mx.float32,)}, {"inputs": (mx.ones(3),)}, {"inputs": [np.ones(3)]}, {"init_value": 1},
    {"init_value": np.float32(1)}, {"init_value": mx.array(1.0)}, {"template": ()}, {"template": [["T", mx.float32]]},
    {"template": [("T", -1)]}, {"verbose": False}, {"stream": None}], ids=str)
def test_calls_that_MLX_accepts_are_accepted(right):
    names = {"name": "k", "input_names": ["a"], "output_names": ["o"], "source": "o[0] = a[0];"}
    with pytest.raises(RuntimeError, match="No Metal back-end"):
        ORIGINAL(**names)(**CALL | right)
    out, = mx.fast.metal_kernel(**names)(**CALL | right)
    assert out[0].item() == 1


@pytest.mark.parametrize("wrong", [
    {"output_names": []}, {"compile_options": {"math_mode": "wild"}}, {"compile_options": {"speed": 1}},
    {"name": 3}, {"source": None}, {"input_names": 3}], ids=str)
def test_kernels_that_MLX_refuses_are_refused_with_the_same_exception(wrong):
    names = {"name": "k", "input_names": ["a"], "output_names": ["o"], "source": "o[0] = a[0];"} | wrong
    with pytest.raises((TypeError, ValueError)) as theirs:
        ORIGINAL(**names)
    with pytest.raises(theirs.type):
        mx.fast.metal_kernel(**names)


def test_a_call_takes_keywords_only():
    with pytest.raises(TypeError):
        kernel_of("out[0] = 0;")([mx.ones(3)])


def test_compile_errors_name_the_line():
    with pytest.raises(smelt.CompileError, match="undeclared"):
        run(kernel_of("out[0] = undeclared;"), mx.ones(1))


def test_a_threadgroup_that_is_too_large():
    with pytest.raises(ValueError, match="1024"):
        kernel_of("out[0] = 0;")(**CALL | {"grid": (4096, 1, 1), "threadgroup": (2048, 1, 1)})


# ---- Installing.


def test_signature_is_MLXs():
    import inspect
    ours = inspect.signature(mx.fast.metal_kernel)
    assert list(ours.parameters) == ["name", "input_names", "output_names", "source", "header",
                                     "ensure_row_contiguous", "atomic_outputs", "compile_options"]
    for name in ours.parameters:
        assert f"{name}: " in ORIGINAL.__doc__.split("->")[0]
    call = inspect.signature(kernel_of("out[0] = 0;").__call__)
    assert [(p.name, p.default) for p in call.parameters.values() if p.kind == p.KEYWORD_ONLY][5:] == [
        ("template", None), ("init_value", None), ("verbose", False), ("stream", None)]


def test_installing_twice_is_installing_once():
    function = mx.fast.metal_kernel
    with smelt.mlx.install() as again:
        assert again.active and mx.fast.metal_kernel is function
    assert mx.fast.metal_kernel is function  # the inner block did not undo the outer one
    smelt.mlx.uninstall()
    assert mx.fast.metal_kernel is ORIGINAL and not smelt.mlx.installed()
    smelt.mlx.uninstall()


def test_other_options_hold_until_the_end_of_their_block():
    with smelt.mlx.install(pretend_metal=True):
        assert mx.metal.is_available()
    assert not mx.metal.is_available() and smelt.mlx.installed()


def test_kernels_made_while_installed_go_on_working():
    kernel = kernel_of(I + "out[i] = a[i];")
    smelt.mlx.uninstall()
    assert run(kernel, mx.arange(2)).tolist() == [0, 1]


def test_without_it_MLX_refuses():
    smelt.mlx.uninstall()
    with pytest.raises(RuntimeError, match="No Metal back-end"):
        run(kernel_of("out[0] = a[0];"), mx.ones(1))


def test_the_scalar_engine():
    with smelt.mlx.install(device="cpu-scalar"):
        assert run(kernel_of(I + "out[i] = simd_sum(a[i]);"), mx.arange(8)).tolist() == [28] * 8
    with pytest.raises(ValueError, match="device is 'npu'"):
        smelt.mlx.install(device="npu")


def test_where_there_is_Metal_it_says_so_and_does_nothing(monkeypatch):
    smelt.mlx.uninstall()
    monkeypatch.setattr(mx.metal, "is_available", lambda: True)
    with pytest.warns(UserWarning, match="MLX has Metal here"):
        installation = smelt.mlx.install()
    assert not installation.active and mx.fast.metal_kernel is ORIGINAL
    with smelt.mlx.install(force=True) as installation:
        assert installation.active and mx.fast.metal_kernel is not ORIGINAL


def test_pretended_metal_and_back():
    names = ["default_device", "set_default_device", "stream", "device_info", "new_stream", "default_stream"]
    before = [getattr(mx, name) for name in names]
    with smelt.mlx.install(pretend_metal=True):
        assert mx.metal.is_available() and mx.default_device() == mx.gpu
        assert mx.device_info()["max_recommended_working_set_size"] > 0
        assert mx.new_stream(mx.gpu) and mx.default_stream(mx.default_device())
        with mx.stream(mx.cpu):
            assert mx.default_device() == mx.cpu
        with mx.stream(mx.gpu):
            assert mx.default_device() == mx.gpu and (mx.ones(2) + 1).tolist() == [2, 2]
        with mx.stream(mx.new_stream(mx.gpu)):
            assert mx.default_device() == mx.gpu
        mx.set_default_device(mx.cpu)
        assert mx.default_device() == mx.cpu
        mx.set_default_device(mx.gpu)
        assert mx.default_device() == mx.gpu
        mx.synchronize(mx.gpu)
    assert [getattr(mx, name) for name in names] == before
    assert mx.default_device() == mx.cpu and not mx.metal.is_available()


def test_page():
    smelt.mlx.uninstall()
    snippets.run_page("docs/python-mlx.md")
    smelt.mlx.uninstall()
