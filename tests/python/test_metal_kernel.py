"""smelt.metal_kernel beyond what MLX promises: fresh data against NumPy, kinds of results, bound kernels, messages."""
import pickle
import time

import ml_dtypes
import numpy as np
import pytest
from probe_kernels import F32, I, arguments_of, kernel_of

import smelt
from smelt import _smelt

def floats(*shape):
    return np.random.default_rng().standard_normal(shape).astype(np.float32)


DOUBLE = kernel_of(I + "out[i] = 2 * a[i];", name="double")

# ---- Fresh data.


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (33,), (1000, 3), (2, 3, 5, 7), (1, 1, 1, 1, 1, 9)])
@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 2e-6), (np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)])
def test_a_gelu(shape, dtype, tolerance):
    x = (floats(*shape) * 2).astype(dtype)
    kernel = kernel_of(I + "float v = x[i]; out[i] = T(0.5f * v * (1 + metal::precise::tanh(0.7978845608f * (v + 0.044715f * v * v * v))));",
                       inputs=("x",), name="gelu")
    out, = kernel(inputs=[x], output_shapes=[shape], output_dtypes=[dtype], grid=(x.size, 1, 1),
                  threadgroup=(128, 1, 1), template=[("T", dtype)])
    v = x.astype(np.float64)
    expected = 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64])
def test_integers_wrap_as_numpy_s(dtype):
    generator = np.random.default_rng()
    limits = np.iinfo(dtype)
    a, b = (generator.integers(limits.min, limits.max, 77, dtype, endpoint=True) for _ in range(2))
    kernel = kernel_of(I + "out[i] = a[i] * b[i] + T(3);", inputs=("a", "b"))
    out, = kernel(inputs=[a, b], output_shapes=[(77,)], output_dtypes=[dtype], grid=(77, 1, 1), threadgroup=(32, 1, 1),
                  template=[("T", dtype)])
    np.testing.assert_array_equal(out, a * b + dtype(3))


@pytest.mark.parametrize("columns", [1, 31, 32, 33, 257])
def test_softmax_rows(columns):
    x = floats(13, columns) * 4
    body = """
        uint row = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup, n = x_shape[1];
        float m = -INFINITY, s = 0;
        for (uint j = lane; j < n; j += 32) m = max(m, x[row * n + j]);
        m = simd_max(m);
        for (uint j = lane; j < n; j += 32) s += metal::precise::exp(x[row * n + j] - m);
        s = simd_sum(s);
        for (uint j = lane; j < n; j += 32) out[row * n + j] = metal::precise::exp(x[row * n + j] - m) / s;
    """
    out, = kernel_of(body, inputs=("x",))(inputs=[x], output_shapes=[x.shape], output_dtypes=[F32], grid=(13 * 32, 1, 1),
                                          threadgroup=(32, 1, 1))
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


LAYOUTS = {
    "reversed": lambda a: a[::-1, :, ::-1],
    "transposed": lambda a: a.T,
    "broadcast": lambda a: np.broadcast_to(a[:, :1], a.shape),
    "sliced": lambda a: a[1:, ::2, 3:7],
    "new axes": lambda a: a[:, None, ::-2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("contiguous", [True, False])
def test_layouts(layout, contiguous):
    a = LAYOUTS[layout](floats(5, 6, 8))
    body = I + "out[i] = a[elem_to_loc(i, a_shape, a_strides, a_ndim)];"
    out, = kernel_of(body)(**arguments_of(a), ensure_row_contiguous=contiguous)
    np.testing.assert_array_equal(out, a)


REVERSED = """
    int i = thread_position_in_grid.x;
    float sum = 0;
    for (int k = 0; k < STEPS; k++) sum += a[-(i * STEPS + k) - past];
    out[i] = sum;
"""


@pytest.mark.parametrize("steps", [1, 8])
def test_tests_of_accesses_know_where_a_reversed_view_begins(steps):
    a = floats(64 * steps)[::-1]
    kernel = kernel_of(REVERSED.replace("STEPS", str(steps)), inputs=("a", "past"))
    launch = {"output_shapes": [(64,)], "output_dtypes": [F32], "grid": (64, 1, 1), "threadgroup": (32, 1, 1),
              "ensure_row_contiguous": False}
    out, = kernel(inputs=[a, 0], **launch)
    expected = np.zeros(64, np.float32)
    for k in range(steps):
        expected += a.reshape(64, steps)[:, k]
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(smelt.FaultError, match=rf"reads a\[-{64 * steps}\]"):
        kernel(inputs=[a, 1], **launch)
    # The first read before the array: thread 0's in its second step, or for threads in step thread 1's in its first one.
    with pytest.raises(smelt.FaultError, match=rf"reads a\[-(1|{steps})\]"):
        kernel(inputs=[a[::-1], 0], **launch)


def test_empty_inputs_and_outputs():
    out, = kernel_of("out[0] = a_shape[0];")(inputs=[np.zeros((0, 3), np.float32)], output_shapes=[(1,)],
                                             output_dtypes=[F32], grid=(1, 1, 1), threadgroup=(1, 1, 1))
    assert out[0] == 0
    out, = kernel_of("")(inputs=[1.0], output_shapes=[(0, 4)], output_dtypes=[F32], grid=(1, 1, 1), threadgroup=(1, 1, 1),
                         output_kind="numpy")
    assert out.shape == (0, 4)


# ---- Kinds of results.


def test_numpy_in_numpy_out():
    out, = DOUBLE(**arguments_of(floats(5, 5)))
    assert type(out) is np.ndarray and out.flags.writeable and out.flags.c_contiguous


def test_smelt_arrays_in_smelt_arrays_out():
    a = smelt.array([1.0, 2.5])
    out, = DOUBLE(inputs=[a], output_shapes=[a.shape], output_dtypes=[a.dtype], grid=(a.size, 1, 1), threadgroup=(2, 1, 1))
    assert type(out) is smelt.array and out.tolist() == [2, 5]


def test_without_arrays_results_are_smelt_arrays():
    out, = kernel_of("out[0] = a;")(inputs=[3], output_shapes=[()], output_dtypes=[smelt.int32], grid=(1, 1, 1),
                                    threadgroup=(1, 1, 1))
    assert type(out) is smelt.array and out.item() == 3 and out.shape == ()
    out, = kernel_of("out[0] = 4;", inputs=())(output_shapes=[(1,)], output_dtypes=[F32], grid=(1,), threadgroup=(1,))
    assert type(out) is smelt.array and out.item() == 4


def test_of_several_kinds_the_first_that_is_not_numpy_s_decides():
    kernel = kernel_of(I + "out[i] = a[i] + b[i];", inputs=("a", "b"))
    a, b = floats(10), smelt.array(floats(10))
    for inputs in ([a, b], [b, a]):
        out, = kernel(inputs=inputs, output_shapes=[(10,)], output_dtypes=[F32], grid=(10, 1, 1), threadgroup=(5, 1, 1))
        assert type(out) is smelt.array
        np.testing.assert_array_equal(np.asarray(out), a + np.asarray(b))


def test_the_kind_may_be_asked_for():
    a = floats(6)
    out, = DOUBLE(**arguments_of(a), output_kind="smelt")
    assert type(out) is smelt.array
    out, = DOUBLE(**arguments_of(smelt.array(a), output_kind="numpy"))
    assert type(out) is np.ndarray
    with pytest.raises(ValueError, match="output_kind is 'list'; expected \"smelt\", \"numpy\""):
        DOUBLE(**arguments_of(a), output_kind="list")


def test_torch_in_torch_out():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    a = torch.randn(5, 7).to(torch.bfloat16)
    out, = DOUBLE(inputs=[a.t()], output_shapes=[a.t().shape], output_dtypes=[torch.bfloat16], grid=(a.numel(), 1, 1),
                  threadgroup=(32, 1, 1))
    assert isinstance(out, torch.Tensor) and out.dtype == torch.bfloat16
    assert torch.equal(out, 2 * a.t())


# ---- Arrays to write into.


def test_out_is_written_and_returned():
    a, into = floats(3, 4), np.full((3, 4), 7, np.float32)
    out, = DOUBLE(inputs=[a], grid=(11,), threadgroup=(4,), out=[into])
    assert out is into
    np.testing.assert_array_equal(into.ravel()[:11], 2 * a.ravel()[:11])
    assert into[2, 3] == 7


@pytest.mark.parametrize("into, error, message", [
    (np.zeros(3, np.float32), ValueError, "shape 3, expected 4"),
    (np.zeros(4, np.int32), ValueError, "int32, expected float32"),
    (np.zeros(8, np.float32)[::2], ValueError, "not row-contiguous"),
    (3.0, TypeError, "expected an array"),
])
def test_out_must_fit(into, error, message):
    with pytest.raises(error, match=message):
        DOUBLE(**arguments_of(floats(4)), out=[into])
    with pytest.raises(error, match=message):
        DOUBLE.bind(**arguments_of(floats(4)), out=[into])


def test_out_must_be_writable():
    into = np.zeros(4, np.float32)
    into.flags.writeable = False
    with pytest.raises(ValueError):
        DOUBLE(**arguments_of(floats(4)), out=[into])


# ---- Bound kernels.


def test_bound_kernels_see_the_arrays_of_now():
    a = floats(100)
    bound = DOUBLE.bind(**arguments_of(a))
    for _ in range(3):
        out, = bound()
        np.testing.assert_array_equal(out, 2 * a)
        a += 1
    first, second = bound()[0], bound()[0]
    assert first is not second and not np.shares_memory(first, second)
    assert bound.kernel is DOUBLE and "double" in repr(bound)
    assert DOUBLE.last_run.groups == (2, 1, 1)


def test_bound_kernels_that_write_into_arrays():
    a, into = floats(10), np.zeros(10, np.float32)
    bound = DOUBLE.bind(inputs=[a], out=[into], grid=(10, 1, 1), threadgroup=(5, 1, 1))
    out = bound()
    assert type(out) is list and out[0] is into
    np.testing.assert_array_equal(into, 2 * a)
    other = np.zeros(10, np.float32)
    assert bound(out=[other])[0] is other
    np.testing.assert_array_equal(other, 2 * a)


def test_bound_kernels_with_other_inputs():
    a, b = floats(10), floats(20)[::2]
    bound = DOUBLE.bind(**arguments_of(a))
    np.testing.assert_array_equal(bound(b)[0], 2 * b)
    np.testing.assert_array_equal(bound()[0], 2 * a)
    with pytest.raises(ValueError, match="input 'a' is float32 of shape 11; the launch was prepared for float32 of shape 10"):
        bound(floats(11))
    with pytest.raises(TypeError, match="takes no inputs or all 1; 2 were given"):
        bound(a, b)
    with pytest.raises(TypeError, match="has no argument 'grid'"):
        bound(grid=(1, 1, 1))


def test_bound_kernels_fill_their_outputs_each_time():
    kernel = kernel_of("atomic_fetch_add_explicit(&out[0], 1, memory_order_relaxed);", atomic_outputs=True)
    into = np.zeros(1, np.int32)
    bound = kernel.bind(inputs=[1.0], out=[into], grid=(50,), threadgroup=(50,), init_value=10)
    for _ in range(3):
        assert bound()[0][0] == 60


def test_binding_checks_and_compiles():
    with pytest.raises(smelt.CompileError):
        kernel_of("out[0] = b;").bind(**arguments_of(floats(3)))
    with pytest.raises(TypeError, match="threadgroup is missing"):
        DOUBLE.bind(inputs=[floats(3)], grid=(3,), output_shapes=[(3,)], output_dtypes=[F32])


# ---- Sizes and templates.


@pytest.mark.parametrize("grid", [(12,), (12, 1), [12, 1, 1], (np.int64(12), 1, 1), (np.prod((3, 4)), 1, 1),
                                  np.array([12, 1, 1]), (np.array(12), 1, 1), (12, np.prod(()), 1)])
def test_sizes_may_be_numpy_s(grid):
    a = floats(12)
    out, = DOUBLE(**arguments_of(a) | {"grid": grid})
    np.testing.assert_array_equal(out, 2 * a)


@pytest.mark.parametrize("change, error, message", [
    ({"grid": (0, 1, 1)}, ValueError, r"kernel 'double': grid is \(0, 1, 1\): its x is 0, expected at least 1"),
    ({"grid": (4, 0, 1)}, ValueError, "its y is 0"),
    ({"grid": (4, 1, -3)}, ValueError, "its z is -3"),
    ({"grid": (4.0, 1, 1)}, TypeError, r"its x is 4.0 \(float\); expected an integer"),
    ({"grid": 4}, TypeError, r"kernel 'double': grid is 4 \(int\); expected up to three numbers"),
    ({"grid": ()}, ValueError, "has 0 sizes; expected 1 to 3"),
    ({"grid": (1, 1, 1, 1)}, ValueError, "has 4 sizes; expected 1 to 3"),
    ({"threadgroup": (1, -1, 1)}, ValueError, "threadgroup is .* its y is -1"),
    ({"threadgroup": None}, TypeError, "the argument threadgroup is missing"),
    ({"inputs": floats(4)}, TypeError, r"(?s)inputs is .*ndarray.*; expected a list of arrays"),
    ({"inputs": [[1, 2]]}, TypeError, "kernel 'double': input 'a'.*list"),
    ({"inputs": ["text"]}, TypeError, "kernel 'double': input 'a'.*str"),
    ({"inputs": [np.zeros(4)]}, ValueError, "input 'a' is float64.*float32"),
    ({"output_shapes": [4]}, TypeError, r"output_shapes\[0\] is 4 \(int\); expected a shape"),
    ({"output_shapes": (4,)}, TypeError, r"output_shapes\[0\] is 4 \(int\); expected a shape"),
    ({"output_shapes": [(4, -1)]}, ValueError, "size -1 of dimension 1 is negative"),
    ({"output_shapes": [(2.5,)]}, TypeError, "expected a shape of integers"),
    ({"output_shapes": [(1,) * 17]}, ValueError, "17 dimensions; at most 16"),
    ({"output_dtypes": [np.float64]}, ValueError, "output 'out' is float64"),
    ({"output_dtypes": ["float31"]}, TypeError, "output_dtypes.0."),
    ({"output_dtypes": F32}, TypeError, "output_dtypes is .* expected a list of dtypes"),
    ({"template": [("T", 2.5)]}, TypeError, r"template 'T' is 2.5 \(float\); expected a dtype, an int or a bool"),
    ({"template": [("T", "float31")]}, TypeError, "template 'T' is 'float31'"),
    ({"template": ["T"]}, TypeError, r"template\[0\] is 'T' \(str\); expected a pair"),
    ({"template": [("T", 2**31)]}, ValueError, "template 'T' is 2147483648, which does not fit in an int"),
    ({"template": [("T", -2**70)]}, ValueError, f"template 'T' is -{2**70}, which does not fit in an int"),
    ({"grid": (1, 2**70, 1)}, ValueError, f"its y is {2**70}, expected at most 4294967295"),
    ({"threadgroup": (-2**70, 1, 1)}, ValueError, f"its x is -{2**70}, expected at least 1"),
    ({"template": [("T x", 3)]}, ValueError, "template name 'T x' is not an identifier"),
    ({"init_value": "0"}, TypeError, "init_value is '0'"),
    ({"timeout": -1}, ValueError, "timeout is -1"),
    ({"timeout": "x"}, TypeError, "timeout is 'x'"),
    ({"inputs": [2**40]}, ValueError, f"kernel 'double': input 'a': {2**40} does not fit in int32.*numpy.int64"),
    ({"verbose": "no"}, TypeError, "verbose is 'no' .str.; expected True or False"),
    ({"ensure_row_contiguous": "no"}, TypeError, "ensure_row_contiguous is 'no' .str.; expected True or False"),
    ({"ensure_row_contiguous": 2**70}, TypeError, "expected True or False"),
    ({"profile": "pear"}, ValueError, "profile 'pear' is unknown"),
    ({"device": "cuda:99"}, smelt.NoDeviceError, "cuda:99"),
    ({"device": "cpu", "stream": 5}, ValueError, "only GPUs have streams"),
    ({"treadgroup": (1, 1, 1)}, TypeError, "has no argument 'treadgroup'; expected one of: inputs, output_shapes"),
])
def test_wrong_arguments_are_named(change, error, message):
    with pytest.raises(error, match=message):
        DOUBLE(**arguments_of(floats(4)) | change)


@pytest.mark.parametrize("value, expected", [(np.int32(-5), -5), (np.uint8(200), 200), (np.bool_(True), 1), (True, 1),
                                             (np.array(3), 3), (0, 0)])
def test_template_values_may_be_numpy_s(value, expected):
    out, = kernel_of("out[0] = N;")(inputs=[1.0], output_shapes=[(1,)], output_dtypes=[smelt.int32], grid=(1,),
                                    threadgroup=(1,), template=[("N", value)])
    assert out.item() == expected


def test_templates_may_be_a_dict():
    out, = kernel_of("out[0] = T(N) / 2;")(inputs=[1.0], output_shapes=[(1,)], output_dtypes=[F32], grid=(1,),
                                           threadgroup=(1,), template={"T": np.dtype("float32"), "N": 5})
    assert out.item() == 2.5


def test_switches_may_be_numpy_s():
    for true, false in ((True, False), (np.True_, np.False_), (1, 0)):
        kernel = smelt.metal_kernel(name="k", input_names=["a"], output_names=["out"], source="out[0] = a[1];",
                                    ensure_row_contiguous=false, atomic_outputs=[false])
        arguments = {"output_shapes": [(1,)], "output_dtypes": [F32], "grid": (1,), "threadgroup": (1,), "verbose": false}
        rows = np.arange(6, dtype=np.float32)[::2]
        assert kernel(inputs=[rows], **arguments)[0].item() == 1
        assert kernel(inputs=[rows], ensure_row_contiguous=true, **arguments)[0].item() == 2


@pytest.mark.parametrize("arguments, error, message", [
    ({"name": "my kernel"}, ValueError, "name 'my kernel' is not an identifier"),
    ({"input_names": "ab"}, TypeError, "input_names is 'ab' .str.; expected a list of strings"),
    ({"input_names": ["a", 3]}, TypeError, r"input_names\[1\] is 3; expected a string"),
    ({"input_names": ["a", "a"]}, ValueError, "the name 'a' is used twice"),
    ({"source": 5}, TypeError, "source is 5 .int.; expected a string"),
    ({"source": "a\0b"}, ValueError, "null character at 1"),
    ({"source": "a\udc80b"}, ValueError, "source has a lone surrogate"),
    ({"header": ["x"]}, TypeError, "header is"),
    ({"compile_options": "fast"}, TypeError, "compile_options is 'fast'"),
    ({"ensure_row_contiguous": "no"}, TypeError, "kernel 'k': ensure_row_contiguous is 'no' .str.; expected True or False"),
    ({"atomic_outputs": 2}, TypeError, "atomic_outputs is 2 .int.; expected True or False"),
    ({"atomic_outputs": ["yes"]}, TypeError, r"atomic_outputs\[0\] is 'yes' .str.; expected True or False"),
    ({"metal_version": "three"}, ValueError, "metal_version is 'three'"),
    ({"metal_version": 4.2}, ValueError, "metal_version is 4.2; expected one of 1.0, 1.1"),
])
def test_wrong_descriptions(arguments, error, message):
    good = {"name": "k", "input_names": ["a"], "output_names": ["out"], "source": "out[0] = 1;"}
    with pytest.raises(error, match=message):
        smelt.metal_kernel(**good | arguments)


# ---- The object.


def test_attributes():
    kernel = kernel_of("out[0] = a;", header="// nothing", metal_version="4.0", compile_options={"math_mode": "fast"})
    assert (kernel.name, kernel.source, kernel.header) == ("probe", "out[0] = a;", "// nothing")
    assert (kernel.input_names, kernel.output_names) == (("a",), ("out",))
    assert kernel.ensure_row_contiguous and not kernel.atomic_outputs and kernel.math_mode == "fast"
    assert kernel.last_run is None
    with pytest.raises(AttributeError):
        kernel.source = "other"


def test_last_run():
    kernel = kernel_of(I + "threadgroup float t[8]; t[i % 8] = 1; out[i] = t[i % 8];")
    kernel(inputs=[1.0], output_shapes=[(70,)], output_dtypes=[F32], grid=(70, 1, 1), threadgroup=(32, 1, 1))
    last = kernel.last_run
    assert (last.device, last.grid, last.threadgroup, last.groups) == ("cpu", (70, 1, 1), (32, 1, 1), (3, 1, 1))
    assert last.seconds > 0 and last.threadgroup_bytes == 32
    kernel(inputs=[1.0], output_shapes=[(70,)], output_dtypes=[F32], grid=(70, 1, 1), threadgroup=(32, 1, 1),
           device="cpu-scalar")
    assert kernel.last_run.device == "cpu-scalar"


def test_representations():
    kernel = kernel_of("out[0] = a < 1 ? 2 : 3;", name="shown", header="#define X 1 & 2")
    assert repr(kernel) == "<smelt.Kernel 'shown' (a) -> (out)>"
    assert "not run" in kernel._repr_html_() and "not run" in kernel._repr_markdown_()
    kernel(inputs=[1.0], output_shapes=[(3,)], output_dtypes=[F32], grid=(300, 2, 1), threadgroup=(32, 1, 1))
    page, text = kernel._repr_html_(), kernel._repr_markdown_()
    assert "out[0] = a &lt; 1 ? 2 : 3;" in page and "1 &amp; 2" in page and "10 × 2 × 1" in page and "µs" in page
    assert "out[0] = a < 1 ? 2 : 3;" in text and "300 × 2 × 1" in text


def test_pickling():
    kernel = kernel_of("out[0] = a; b[0] = F(1);", outputs=("out", "b"), atomic_outputs=[False, False], metal_version="3.1",
                       ensure_row_contiguous=False, header="#define F(x) x", compile_options={"math_mode": "relaxed"})
    again = pickle.loads(pickle.dumps(kernel))
    assert again is not kernel and again._description() == kernel._description()
    assert again._description()["metal_version"] == "3.1"


@pytest.mark.parametrize("stage, text", [("source", "custom_kernel_double"), ("rewritten", "custom_kernel_double"),
                                         ("ir", "define"), ("simd", "define"), ("asm", "ret"), ("ptx", ".entry")])
def test_show(stage, text):
    a = floats(40)
    assert text in DOUBLE.show(stage, inputs=[a], output_shapes=[a.shape], output_dtypes=[F32])


def test_show_refuses_other_stages():
    with pytest.raises(ValueError, match="stage is 'spirv'; expected \"source\""):
        DOUBLE.show("spirv", inputs=[floats(1)], output_shapes=[(1,)], output_dtypes=[F32])


def test_kernels_of_one_description_share_what_was_compiled():
    def call():
        kernel = kernel_of(I + "out[i] = a[i] * 3; // shared", name="shared")
        kernel(**arguments_of(floats(9)))
        return kernel.last_run

    call()
    assert call().compile_seconds == 0


def test_quick_code_first(monkeypatch):
    """A large kernel's first launches may run quick code, with the same results; wait() is for the best."""
    monkeypatch.delenv("SMELT_TIERS", raising=False)
    steps = "".join(f"x = x * y + {n}.5f; y = x - a[(i + {n}) % 256] * 0.5f;\n" for n in range(120))
    kernel = smelt.metal_kernel(name="steps", input_names=["a"], output_names=["out"],
                                source=f"uint i = thread_position_in_grid.x; float x = a[i], y = {time.time()}f;\n"
                                       f"{steps}out[i] = x;")
    a = np.linspace(0, 1, 256, dtype=np.float32)

    def call():
        return kernel(inputs=[a], output_shapes=[(256,)], output_dtypes=[np.float32], grid=(256, 1, 1),
                      threadgroup=(64, 1, 1))[0].view(np.uint32)

    first = call()
    in_process = not _smelt.find_llvm()[0].endswith("smelt-cc1")
    assert kernel.last_run.quick or in_process
    kernel.wait()
    assert np.array_equal(call(), first)
    assert not kernel.last_run.quick
