"""Whole .metal files from Python: functions, arguments of every kind, function constants, packages."""
import struct

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt import library as load

TEXT = """
#include <metal_stdlib>
using namespace metal;
struct Scale { float factor; int offset; };
constant int repeat [[function_constant(0)]];
constant float3 weights [[function_constant(1)]];

kernel void axpy(device float *y, const device float *x, constant float &a, uint i [[thread_position_in_grid]]) {
  y[i] += a * x[i];
}
kernel void scaled(device float *out [[buffer(0)]], constant Scale &scale [[buffer(3)]], const device int *in [[buffer(5)]],
                   uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * scale.factor + scale.offset;
}
template <typename T> kernel void add(device T *out, constant T &a, constant vec<T, 3> *b, uint i [[thread_position_in_grid]]) {
  out[i] = a + b[i].z;
}
template [[host_name("add_half")]] kernel void add<half>(device half *, constant half &, constant half3 *, uint);
template [[host_name("add_uchar")]] kernel void add<uchar>(device uchar *, constant uchar &, constant uchar3 *, uint);
template [[host_name("add_long")]] kernel void add<long>(device long *, constant long &, constant long3 *, uint);
template [[host_name("add_bfloat")]] kernel void add<bfloat>(device bfloat *, constant bfloat &, constant bfloat3 *, uint);

kernel void reversed(device float *a, threadgroup float *tile [[threadgroup(0)]], uint i [[thread_position_in_threadgroup]],
                     uint g [[threadgroup_position_in_grid]], uint n [[threads_per_threadgroup]]) {
  tile[i] = a[g * n + i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  a[g * n + i] = tile[n - 1 - i];
}
kernel void constants(device float *out) { out[0] = repeat; out[1] = weights.x + weights.y * 10 + weights.z * 100; }
kernel void position(device uint *out, uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]]) {
  out[(p.z * n.y + p.y) * n.x + p.x] = p.x + 100 * p.y + 10000 * p.z;
}
kernel void endless(device float *out, constant float &go) { while (go > 0) out[0] += go; }
"""


@pytest.fixture(scope="module")
def lib():
    return smelt.library(TEXT)


def floats(count):
    return np.random.default_rng().standard_normal(count).astype(np.float32)


def test_functions_are_attributes(lib):
    assert lib.functions == ("axpy", "scaled", "add_half", "add_uchar", "add_long", "add_bfloat", "reversed",
                             "constants", "position", "endless")
    assert lib.axpy is lib.axpy and lib.axpy.name == "axpy" and "axpy" in dir(lib) and "axpy" in repr(lib)
    with pytest.raises(AttributeError, match="no kernel function 'nothing'; expected one of: axpy, scaled"):
        lib.nothing
    with pytest.raises(ValueError, match="no kernel function 'nothing'"):
        lib.function("nothing")


def test_kernels_of_one_name_in_two_namespaces_are_two():
    def kernel(name, value):
        return f"kernel void {name}(device int *out, uint i [[thread_position_in_grid]]) {{ out[i] = {value}; }}"

    lib = smelt.library(f"namespace a {{ {kernel('fill', 1)} }} namespace b {{ {kernel('fill', 2)} {kernel('only', 3)} }}")
    out = np.zeros(1, np.int32)
    for function, expected in ((lib.function("a::fill"), 1), (getattr(lib, "b::fill"), 2), (lib.only, 3)):
        function(out, threads=1, group_size=1)
        assert out[0] == expected
    with pytest.raises(AttributeError, match="no kernel function 'fill'; expected one of: a::fill, b::fill, b::only"):
        lib.fill


def test_arguments_by_position_are_buffers_in_place(lib):
    x, y = floats(1003), floats(1003)
    expected = (y + 2.5 * x.astype(np.float64)).astype(np.float32)
    assert lib.axpy(y, x, 2.5) is None
    np.testing.assert_array_equal(y, expected)
    lib.axpy(y, x, -2.5, threads=1000, group_size=(64,))
    assert y[1000] == expected[1000] and y[999] != expected[999]
    assert lib.axpy.last_run["groups"] == (16, 1, 1) and lib.axpy.last_run["device"] == "cpu"


def test_arguments_by_name(lib):
    x, y = floats(77), np.zeros(77, np.float32)
    function = smelt.library(TEXT).axpy  # whose parameters nobody has asked for
    function(a=3, x=x, y=y)
    np.testing.assert_array_equal(y, 3 * x)
    function(y, a=0, x=x)
    np.testing.assert_array_equal(y, 3 * x)


def test_a_constant_that_the_launch_changes_leads_to_no_access_outside(monkeypatch):
    monkeypatch.setenv("SMELT_TIERS", "0")
    widens = smelt.library("""
        kernel void widens(device int *width [[buffer(0)]], constant int &n [[buffer(1)]], device int *out [[buffer(2)]],
                           uint2 at [[thread_position_in_grid]]) {
            out[at.y * n + at.x] = 7;
            if (at.x == 0 && at.y == 0) *width = 64;
        }""").widens
    width, memory = np.array([16], np.int32), np.zeros(1024, np.int32)
    with pytest.raises(smelt.FaultError, match="but 'out' has 128 elements"):
        widens(width, width, memory[:128], threads=(16, 8, 1), group_size=(16, 8, 1))
    assert not memory[128:].any()


def test_none_leaves_a_buffer_out(lib):
    out, inp = np.zeros(5, np.float32), np.arange(5, dtype=np.int32)
    lib.scaled(out, None, None, struct.pack("fi", 2.5, 7), None, inp)
    np.testing.assert_array_equal(out, inp * 2.5 + 7)
    out[:] = 0
    lib.scaled(out, scale=struct.pack("fi", 2.5, 7), **{"in": inp})
    np.testing.assert_array_equal(out, inp * 2.5 + 7)


@pytest.mark.parametrize("name, dtype, a", [("half", np.float16, 1.1), ("uchar", np.uint8, 200), ("long", np.int64, -2**62),
                                            ("bfloat", ml_dtypes.bfloat16, 3.3)])
def test_numbers_become_the_parameter_s_type(lib, name, dtype, a):
    out = np.zeros(2, dtype)
    getattr(lib, "add_" + name)(out, a, [[1, 2, 3], [4, 5, 6]], threads=2)
    expected = np.array([dtype(a) + dtype(3), dtype(a) + dtype(6)])
    np.testing.assert_array_equal(out.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("a, error, message", [
    (2.5, TypeError, r"argument 1 \('a'\) is 2.5; uint8 takes an integer"),
    (256, ValueError, "is 256, which does not fit in uint8"),
    (-1, ValueError, "is -1, which does not fit in uint8"),
    (2**70, ValueError, "does not fit in uint8"),
    ([1, 2], ValueError, "has 2 numbers; expected 1"),
    ([], ValueError, "has 0 numbers; expected 1"),
])
def test_numbers_that_are_none_of_the_type(lib, a, error, message):
    with pytest.raises(error, match=message):
        lib.add_uchar(np.zeros(1, np.uint8), a, [[1, 2, 3]], threads=1)


def test_vectors_need_all_components(lib):
    with pytest.raises(ValueError, match="has 4 numbers; expected a multiple of 3"):
        lib.add_half(np.zeros(2, np.float16), 1, [1, 2, 3, 4], threads=2)


def test_structures_are_bytes(lib):
    with pytest.raises(TypeError, match="is a structure of 8 bytes; expected bytes"):
        lib.scaled(np.zeros(1, np.float32), None, None, [1, 2], None, np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="has 4 bytes, expected at least 8"):
        lib.scaled(np.zeros(1, np.float32), None, None, b"1234", None, np.zeros(1, np.int32))


def test_numpy_numbers_are_numbers(lib):
    for a in (np.float64(1.5), np.int8(3), np.array(2.25), np.float16(0.5)):
        y, x = np.zeros(9, np.float32), floats(9)
        lib.axpy(y, x, a)
        np.testing.assert_array_equal(y, np.float32(a) * x)


def test_numpy_numbers_are_arrays_of_one_element():
    """Each has memory of its own, which stays as long as the launch."""
    text = """
    kernel void two(device float *out, constant uint *a, const device float *b, constant uint *c) {
      out[0] = a[0]; out[1] = b[0]; out[2] = c[0];
    }"""
    out = np.zeros(3, np.float32)
    smelt.compile_shader("using namespace metal;" + text).two(out, np.uint32(7), np.float32(0.5), np.uint32(9), threads=1)
    assert out.tolist() == [7, 0.5, 9]


def test_arguments_that_are_missing_or_too_many(lib):
    x = floats(4)
    with pytest.raises(TypeError, match=r"arguments are missing: x \(buffer 1\), a \(buffer 2\)"):
        lib.axpy(x)
    with pytest.raises(TypeError, match=r"has no buffer 3; expected one of: y \(buffer 0\), x \(buffer 1\), a \(buffer 2\)"):
        lib.axpy(x, x.copy(), 1, 2)
    with pytest.raises(TypeError, match="has no argument 'z'; expected one of: y"):
        lib.axpy(x, x.copy(), 1, z=3)
    with pytest.raises(TypeError, match="argument 'y' is also given by position"):
        lib.axpy(x, x.copy(), 1, y=x)


def test_bytes_are_passed_on_purpose(lib):
    """char * is bytes of anything; a view as uint8, or as the parameter's type, says so for others; else it is an error."""
    raw = smelt.library("""
        kernel void sum(device float *out [[buffer(0)]], device const char *bytes [[buffer(1)]],
                        device const float2 *pairs [[buffer(2)]], uint i [[thread_position_in_grid]]) {
            out[i] = bytes[i] + pairs[i].x - pairs[i].y;
        }""")
    out, words = np.zeros(4, np.float32), np.array([1 << 24, 2], np.int32)
    reals, pairs = np.arange(8, dtype=np.float32), np.arange(4, dtype=np.float32) * (1 + 2j)
    with pytest.raises(ValueError, match=r"buffer 2 \('pairs'\) is int32; the function takes vectors of 2 float32 \(or uint8, which"):
        raw.sum(out, words, words)
    with pytest.raises(ValueError, match=r"\('pairs'\) is float16; the function takes vectors of 2 float32"):
        raw.sum(out, words.view(np.uint8), reals.astype(np.float16))
    for bytes_ in (words, words.view(np.uint8), words.view(np.int8), smelt.array(words).view("int8"), smelt.array(words).view("uint8")):
        for real in (reals, pairs.astype(np.complex64), smelt.array(pairs), reals.reshape(4, 2), reals.view(np.uint8)):
            raw.sum(out, bytes_, real)
            first = -1 if real.dtype == np.float32 or real.dtype == np.uint8 else 0
            expected = np.array([0, 0, 0, 1]) + (-1 if first else -np.arange(4))
            np.testing.assert_array_equal(out, expected)
    target = smelt.zeros((2,), smelt.complex64)
    lib.axpy(target.view("float32"), smelt.array([1.0, 2.0, 3.0, 4.0]), 1)
    assert target.tolist() == [1 + 2j, 3 + 4j]


def test_threadgroup_memory_may_be_set_for_functions_without(lib):
    y, x = np.zeros(4, np.float32), floats(4)
    for memory in (64, [64, 32], {0: 64, 30: 16}):
        lib.axpy(y, x, 1, threadgroup_memory=memory)
    np.testing.assert_array_equal(y, sum([x] * 3, np.zeros(4, np.float32)))
    for memory in ({31: 4}, {-1: 4}, {"none": 4}):
        with pytest.raises(TypeError, match="threadgroup_memory: expected an index or name of the function"):
            lib.axpy(y, x, 1, threadgroup_memory=memory)


def test_function_constants_of_64_bits_keep_their_values():
    lib = smelt.library("""
        enum class Mode : ulong { none };
        constant Mode mode [[function_constant(0)]];
        constant long count [[function_constant(1)]];
        kernel void f(device ulong *out [[buffer(0)]]) { out[0] = ulong(mode); out[1] = ulong(count); }
        """)
    out = np.zeros(2, np.uint64)
    for mode, count in ((2**64 - 1, -2**63), (2**63, 2**63 - 1), (np.uint64(2**64 - 2), -1)):
        lib.function("f", constants={"mode": mode, 1: count})(out, threads=1, group_size=1)
        assert out.tolist() == [mode, count % 2**64]
    for mode, count, error, message in (
            (2**64, 1, ValueError, "function constant 'mode' is 18446744073709551616, which does not fit in int64 or uint64"),
            (1, -2**63 - 1, ValueError, "function constant 1 is -9223372036854775809, which does not fit in int64 or uint64"),
            (1, 2**63, ValueError, r"function constant 1 \('count'\) is 9223372036854775808 \(uint64\), which its type, int64, cannot hold"),
            (1, (2**63, 1), ValueError, "function constant 1 is 9223372036854775808, which does not fit in int64$"),
            (np.array([1.5]), 1, TypeError, r"function constant 'mode' is array\(\[1.5\]\); expected a number, a bool or 2 to 4 of them")):
        with pytest.raises(error, match=message):
            lib.function("f", constants={"mode": mode, 1: count})(out, threads=1, group_size=1)


def test_compiled_at_once_on_request():
    text = """
        constant int n [[function_constant(0)]];
        kernel void good(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = 1; }
        kernel void counted(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = n; }
        kernel void image(texture2d<float> t [[texture(0)]], device float *x [[buffer(0)]]) { x[0] = 1; }
        """
    assert smelt.library(text).functions == ("good", "counted", "image")
    assert smelt.library(text, compile=["good"]).good.parameters[0]["name"] == "x"
    assert smelt.library(text, compile="good").functions[0] == "good"
    with pytest.raises(smelt.UnsupportedError, match="texture"):
        smelt.library(text, compile=True)
    with pytest.raises(ValueError, match="function constant 0 .'n'. has no value"):
        smelt.library(text, compile=["counted"])
    with pytest.raises(ValueError, match="no kernel function 'nothing'"):
        smelt.library(text, compile=["nothing"])
    plain = text.replace("image", "other").replace("texture2d<float> t [[texture(0)]], ", "")
    assert smelt.library(plain, compile=True).functions == ("good", "counted", "other")
    broken = plain.replace("= 1;", "= nothing;").replace("x[i] = n;", "x[i] = nothing + n;")
    assert smelt.library(broken).functions
    with pytest.raises(smelt.CompileError, match="library.metal:3:.*'nothing'") as caught:
        smelt.library(broken, compile=True)
    assert any("more functions do not compile" in note for note in caught.value.__notes__)


def test_arrays_must_fit(lib):
    x = floats(8)
    with pytest.raises(ValueError, match=r"'x'\) is int32; the function takes float32"):
        lib.axpy(x, np.zeros(8, np.int32), 1)
    with pytest.raises(ValueError, match="row-contiguous"):
        lib.axpy(x[:4], x[::2], 1)
    with pytest.raises(ValueError):
        lib.axpy(x[::2], x[:4].copy(), 1)
    with pytest.raises(TypeError, match="expected an array"):
        lib.axpy(2.0, x, 1, threads=1)
    out = np.zeros(2, np.float32)
    lib.scaled(out, None, None, struct.pack("fi", 1, 0), None, np.array([1, 2**32 - 1], np.uint32))
    assert out.tolist() == [1, -1]
    lib.axpy(out.view(np.uint8), x[:2].copy(), 0, threads=2)


def test_read_only_arrays_are_not_written(lib):
    y, x = floats(3), floats(3)
    y.flags.writeable = x.flags.writeable = False
    with pytest.raises(ValueError):
        lib.axpy(y, x, 1)
    lib.axpy(np.zeros(3, np.float32), x, 1)


@pytest.mark.parametrize("memory", [{0: 64}, {"tile": 64}, [64], 64])
def test_threadgroup_memory(lib, memory):
    a = floats(48)
    expected = a.reshape(3, 16)[:, ::-1].reshape(-1)
    lib.reversed(a, groups=3, group_size=16, threadgroup_memory=memory)
    np.testing.assert_array_equal(a, expected)


def test_threadgroup_memory_that_is_missing_or_unknown(lib):
    with pytest.raises(ValueError, match="threadgroup memory 0 .'tile'. is missing"):
        lib.reversed(floats(16), group_size=16)
    with pytest.raises(TypeError, match="threadgroup_memory: expected an index or name"):
        lib.reversed(floats(16), group_size=16, threadgroup_memory={"tiles": 64})


def test_sizes_in_three_dimensions(lib):
    out = np.zeros((3, 5, 7), np.uint32)
    expected = (np.arange(7) + 100 * np.arange(5)[:, None] + 10000 * np.arange(3)[:, None, None]).astype(np.uint32)
    for sizes in ({"threads": (7, 5, 3)}, {"threads": (7, 5, 3), "group_size": (4, 2, 2)}):
        out[:] = 0
        lib.position(out, **sizes)
        np.testing.assert_array_equal(out, expected)
    out = np.zeros((4, 8), np.uint32)
    lib.position(out, groups=(2, 4), group_size=(4, 1))
    np.testing.assert_array_equal(out, (np.arange(8) + 100 * np.arange(4)[:, None]))


def test_sizes_that_are_wrong(lib):
    x = floats(4)
    with pytest.raises(ValueError, match="threads is .*: its x is 0, expected at least 1"):
        lib.axpy(x, x, 1, threads=0)
    with pytest.raises(TypeError, match="threads and groups are both given; expected one of them"):
        lib.axpy(x, x, 1, threads=4, groups=1, group_size=4)
    with pytest.raises(TypeError, match="group_size must be given with groups"):
        lib.axpy(x, x, 1, groups=1)
    with pytest.raises(ValueError, match="1024"):
        lib.axpy(x, x, 1, threads=4, group_size=2000)


def test_function_constants(lib):
    out = np.zeros(2, np.float32)
    for constants in ({0: 7, 1: [1, 2.5, 3]}, {"repeat": 7, "weights": (1, 2.5, 3)}):
        lib.function("constants", constants=constants)(out, threads=1)
        assert out.tolist() == [7, 326]
    lib.function("constants", {"repeat": -3, "weights": [3, 2, 1]})(out, threads=1)
    assert out.tolist() == [-3, 123]
    with pytest.raises(ValueError, match="no function constant 'repeats'"):
        lib.function("constants", {"repeats": 7})
    with pytest.raises(TypeError, match="expected a number"):
        lib.function("constants", {"repeat": "7"})
    with pytest.raises(ValueError, match="5 components"):
        lib.function("constants", {1: [1, 2, 3, 4, 5]})


def test_smelt_arrays(lib):
    y, x = smelt.array([1.0, 2.0, 3.0]), smelt.array([1.0, 1.0, 2.0])
    lib.axpy(y, x, 10)
    assert y.tolist() == [11, 12, 23]


def test_time_outs_and_devices(lib):
    with pytest.raises(TimeoutError, match="'endless' ran longer"):
        lib.endless(np.zeros(1, np.float32), 1, threads=1, timeout=0.05)
    y = floats(4)
    lib.axpy(y, y.copy(), 0, device="cpu-scalar")
    assert lib.axpy.last_run["device"] == "cpu-scalar"
    with pytest.raises(smelt.NoDeviceError, match="tpu"):
        lib.axpy(y, y.copy(), 0, device="tpu")


def test_files_and_packages(tmp_path, lib):
    path = tmp_path / "kernels.metal"
    path.write_text(TEXT)
    package = tmp_path / "kernels.smeltlib"
    reports = smelt.library(path).build(package, entries=["axpy", "add_half"], threadgroups=[64, (8, 8)])
    assert [report["entry"] for report in reports] == ["axpy", "add_half"]
    assert all(report["status"] == "SMELT_OK" for report in reports)
    for loaded in (smelt.library(package), smelt.library(package.read_bytes()), smelt.library(str(path))):
        y, x = floats(100), floats(100)
        expected = (y + 2.0 * x.astype(np.float64)).astype(np.float32)
        loaded.axpy(y, x, 2)
        np.testing.assert_array_equal(y, expected)
        parameters = loaded.axpy.parameters
        assert [(p["name"], p["index"], p["writable"], p["dtype"]) for p in parameters] == [
            ("y", 0, True, smelt.float32), ("x", 1, False, smelt.float32), ("a", 2, False, smelt.float32)]
    assert "axpy" in smelt.library(package).describe()
    with pytest.raises(OSError, match="nowhere.metal"):
        smelt.library("nowhere.metal")
    package.write_bytes(package.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged|truncated"):
        smelt.library(package)
    with pytest.raises(ValueError, match="smx"):
        lib.build(package, targets=["smx"])


def test_compile_errors_have_their_place():
    broken = smelt.library("kernel void f(device float *a) {\n  a[0] = b;\n}\n")
    with pytest.raises(smelt.CompileError, match=r"library\.metal:2:10"):
        broken.f(floats(1))


def test_compile_shader_is_a_library_of_a_text():
    lib = smelt.compile_shader("kernel void full(device float *out, constant float &value, uint i "
                               "[[thread_position_in_grid]]) { out[i] = value; }")
    out = np.zeros((4, 33), np.float32)
    lib.full(out, 3.14, arg_casts={1: "float"})
    np.testing.assert_array_equal(out, np.float32(3.14))


def test_options_of_a_text():
    text = ("#include \"part.h\"\nkernel void f(device float *out) {\n#ifdef __FAST_MATH__\nout[0] = part(1);\n#endif\n"
            "out[1] = __METAL_VERSION__; }")
    with pytest.raises(ValueError, match="math_mode"):
        smelt.library(text, compile_options={"math_mode": "quick"})
    with pytest.raises(ValueError, match="metal_version"):
        smelt.library(text, metal_version="new")


def test_options_reach_the_compiler(tmp_path):
    (tmp_path / "part.h").write_text("inline float part(float x) { return x + 4; }\n")
    text = ("#include \"part.h\"\nkernel void f(device float *out) {\n#ifdef __FAST_MATH__\nout[0] = part(1);\n#endif\n"
            "out[1] = __METAL_VERSION__; }")
    out = np.zeros(2, np.float32)
    smelt.library(text, compile_options={"math_mode": "fast"}, metal_version="4.0", include_paths=[tmp_path]).f(
        out, threads=1)
    assert out.tolist() == [5, 400]


def test_macros():
    """As preprocessorMacros in Metal: numbers, text and flags."""
    text = "kernel void f(device TYPE *out, uint i [[thread_position_in_grid]]) { out[i] = FACTOR * i + (ON ? 10 : 20) + OFF; }"
    out = np.zeros(3, np.int32)
    load(text, macros={"TYPE": "int", "FACTOR": 4, "ON": True, "OFF": False}).f(out)
    assert out.tolist() == [10, 14, 18]
    with pytest.raises(ValueError, match="macro '4=x' is invalid; expected NAME or NAME=TEXT"):
        load(text, macros={"4": "x"})
    with pytest.raises(ValueError, match="macro name 'A=B' is invalid; expected an identifier"):
        load(text, macros={"A=B": 1})
    with pytest.raises(TypeError, match="macro 'A' is None; expected a number, a bool or a string"):
        load(text, macros={"A": None})
    with pytest.raises(TypeError, match="macros is of type list; expected a dict"):
        load(text, macros=["A=1"])
    with pytest.raises(TypeError, match="include_paths is 'folder' .str.; expected a list of folders"):
        load(text, include_paths="folder")


def test_timeouts_are_numbers(lib):
    with pytest.raises(TypeError, match="kernel 'axpy': timeout: expected a number of seconds, got '1'"):
        lib.axpy(np.ones(2, np.float32), np.ones(2, np.float32), 2.0, threads=2, timeout="1")


def test_structures_are_records():
    """NumPy's structured arrays: read, written in place, one record, the default number of threads, and a size that differs."""
    records = load("""
        struct particle { float3 at; float mass; uint id; };
        kernel void move(device particle *all, constant particle &by, uint i [[thread_position_in_grid]]) {
            all[i].at += by.at * all[i].mass;
            all[i].id += by.id;
        }""")
    layout = np.dtype({"names": ["at", "mass", "id"], "formats": ["3f4", "f4", "u4"], "offsets": [0, 16, 20], "itemsize": 32})
    particles, by = np.zeros((2, 2), layout), np.zeros(1, layout)
    particles["mass"] = [[1, 2], [3, 4]]
    by["at"], by["id"] = [1, 10, 100], 7
    records.move(particles, by)
    records.move(particles, by[0])
    assert particles["at"].tolist() == [[[2 * m, 20 * m, 200 * m] for m in row] for row in ((1, 2), (3, 4))]
    assert (particles["id"] == 14).all()
    with pytest.raises(ValueError, match=r"'all'\) has structures of 20 bytes, expected 32"):
        records.move(np.zeros(4, np.dtype([("at", "3f4"), ("mass", "f4"), ("id", "u4")])), by)
    with pytest.raises(TypeError, match=r"'all'\) has fields of Python objects; expected numbers"):
        records.move(np.zeros(2, {"names": ["name"], "formats": ["O"], "itemsize": 32}), by)
    with pytest.raises(ValueError, match="has fields of the other byte order"):
        records.move(particles.astype(layout.newbyteorder()), by)
    one = particles[0, 0].copy()
    whole = np.array(one, layout)  # an array without dimensions has memory that can be written
    records.move(whole, by, threads=1)
    assert whole.shape == () and whole["at"].tolist() == [one["at"][k] + one["mass"] * by["at"][0, k] for k in range(3)]
    whole.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        records.move(whole, by, threads=1)
    with pytest.raises(TypeError, match="is one record, but the kernel writes it"):
        records.move(particles[0, 0], by, threads=1)
    with pytest.raises(ValueError, match="not row-contiguous"):
        records.move(particles[:, 0], by)
    with pytest.raises(TypeError, match=r"is a structure of 32 bytes; expected bytes, as from struct.pack\(\), or a NumPy structured array"):
        records.move(particles, [1, 2, 3])


def test_show(lib):
    assert "define" in lib.axpy.show("ir")
    assert "thread_position_in_grid" in lib.axpy.show("source")
    with pytest.raises(ValueError, match="stage is 'spirv'"):
        lib.axpy.show("spirv")


def test_arrays_may_overlap(monkeypatch):
    """The arrays are views of the same memory, in which each thread loads what it stored in the round before. Only the best code
    relies on arrays that do not overlap."""
    monkeypatch.setenv("SMELT_TIERS", "0")
    doubled = smelt.library("""
        #include <metal_stdlib>
        using namespace metal;
        kernel void doubled(device float *out, device const float *x, constant uint &n, uint i [[thread_position_in_grid]]) {
            for (uint k = 0; k < n; k++) out[i * 16 + k] = x[i * 16 + k] * 2;
        }""").doubled
    for _ in range(2):  # in the second round, all code is compiled
        apart, rows = np.zeros((64, 16), np.float32), np.ones((64, 16), np.float32)
        doubled(apart, rows, 13, threads=64, group_size=32)
        np.testing.assert_array_equal(apart, np.tile(np.repeat([2, 0], [13, 3]), (64, 1)))
        doubled(rows.reshape(-1)[1:], rows.reshape(-1)[:-1], 13, threads=64, group_size=32)
        np.testing.assert_array_equal(rows, np.tile(np.append(2.0 ** np.arange(14), [1, 1]), (64, 1)))


ROWS = """
#include <metal_stdlib>
using namespace metal;
kernel void rows(device float *out, const device float *x, constant float &by, uint3 at [[thread_position_in_threadgroup]],
                 uint3 size [[threads_per_threadgroup]]) {
    uint i = at.y * size.x + at.x;
    out[i] = at.y > 0 ? x[i] * by : -1;
}
"""


@pytest.mark.parametrize("device", ["cpu", "cpu-scalar"])
def test_an_argument_that_only_the_code_of_another_shape_needs(device):
    rows = load(ROWS).rows
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    # Groups of one row do not read x, whatever is passed.
    rows(out, x, 2.0, threads=4, group_size=4, device=device)
    assert out[:4].tolist() == [-1] * 4
    rows(out, x, 2.0, threads=(4, 2), group_size=(4, 2), device=device)
    assert out.tolist() == [-1] * 4 + [8, 10, 12, 14]
    # What cannot be passed counts as missing where the code needs it.
    rows(out, x.astype(np.float64), 2.0, threads=4, group_size=4, device=device)
    with pytest.raises(ValueError, match=r"buffer 1 \('x'\) is missing"):
        rows(out, x.astype(np.float64), 2.0, threads=(4, 2), group_size=(4, 2), device=device)


def test_a_name_whose_index_is_too_large_is_refused():
    kernels = smelt.compile_shader("kernel void f(device float *o [[buffer(99)]]) { o[0] = 1; }")
    with pytest.raises(ValueError, match="argument 'o' has buffer index 99, expected 0 to 30"):
        kernels.f(o=np.zeros(1, np.float32), threads=1)


def test_names_of_other_calls_are_explained():
    with pytest.raises(TypeError, match="has no argument 'grid'; .*; the sizes of a launch are threads="):
        load(ROWS).rows(np.zeros(4, np.float32), np.zeros(4, np.float32), 2.0, grid=4, threadgroup=4)


def test_what_is_neither_path_nor_text():
    with pytest.raises(TypeError, match=r"library: path_or_source is 3 \(int\); expected a path, the text of kernels, or the bytes"):
        smelt.library(3)
