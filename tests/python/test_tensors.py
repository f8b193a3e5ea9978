"""smelt.Tensor: descriptors, slices, quantisation, arguments of kernels; safetensors files, also of the package."""
import struct
import subprocess

import ml_dtypes
import numpy as np
import pytest

import smelt

SOURCE = """
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;
using codes = tensor<device metal_fp8_e4m3_format, dextents<int, 2>, tensor_handle,
                     tensor_blockwise<tensor_plane_scales, device metal_fp8_ue8m0_format, 32, 1>>;
kernel void product(codes A [[buffer(0)]], codes B [[buffer(1)]], tensor<device float, dextents<int, 2>> C [[buffer(2)]],
                    uint2 group [[threadgroup_position_in_grid]]) {
  matmul2d<matmul2d_descriptor(32, 32, dynamic_extent, false, true), execution_simdgroups<4>> op;
  auto rows = A.slice(0, group.y * 32);
  auto columns = B.slice(0, group.x * 32);
  auto out = C.slice(group.x * 32, group.y * 32);
  op.run(rows, columns, out);
}
kernel void transposed(tensor<device const half, dextents<int, 2>> A [[buffer(0)]], tensor<device half, dextents<int, 2>> B [[buffer(1)]],
                       uint2 at [[thread_position_in_grid]]) {
  B[at.y, at.x] = A[at.x, at.y];
}
"""


@pytest.fixture(name="library", scope="module")
def fixture_library():
    return smelt.library(SOURCE)


@pytest.fixture(name="random")
def fixture_random():
    return np.random.default_rng()


def test_arguments_take_tensors_and_arrays(library, random):
    a = random.standard_normal((37, 96)).astype(np.float32)
    b = random.standard_normal((45, 96)).astype(np.float32)
    left, _ = smelt.Tensor.quantise(a, "fp8_e4m3")
    right, _ = smelt.Tensor.quantise(b, "fp8_e4m3")
    wide = np.full((37, 50), np.nan, np.float32)
    library.product(left, right, C=wide[:, :45], groups=(2, 2), group_size=128)
    x, y = (np.asarray(t.dequantise("float64")) for t in (left, right))
    bound = 100 * 2.0**-24 * np.abs(x) @ np.abs(y).T
    assert np.all(np.abs(wide[:, :45] - x @ y.T) <= bound)
    assert np.all(np.isnan(wide[:, 45:]))
    with pytest.raises(ValueError, match="is a tensor of fp8_e4m3; expected an array of its bytes"):
        library.product(a, right, wide, groups=1, group_size=128)
    with pytest.raises(ValueError, match="scales of ue8m0, which an array lacks"):
        library.product(np.zeros((32, 32), np.uint8), right, wide, groups=1, group_size=128)


def test_threads_are_a_tensors_elements(library, random):
    a = smelt.Tensor((7, 5), "float16")
    values = random.standard_normal((5, 7)).astype(np.float16)
    a.write(values)
    out = np.zeros((7, 5), np.float16)
    library.transposed(a, out, threads=(7, 5))
    assert np.array_equal(out, values.T)
    assert library.transposed.parameters[0]["rank"] == 2
    assert library.transposed.parameters[0]["element"] == "float16"


def test_a_tensor_tells_what_it_is():
    tensor = smelt.Tensor((64, 3), "uint4", scales=(smelt.float16, (32, 1)), usage=("compute", "render"))
    assert tensor.dimensions == (64, 3) and tensor.strides == (1, 256) and tensor.ndim == 2
    assert tensor.dtype == "uint4" and tensor.scales == ("float16", (32, 1)) and tensor.biases is None
    assert tensor.usage == ("compute", "render") and tensor.device == "cpu"
    assert repr(tensor) == "<smelt.Tensor (64, 3) of uint4, scales of float16 on cpu>"
    assert tensor.array("scales").shape == (3, 2) and tensor.array().shape == (3, 32)


@pytest.mark.parametrize("arguments, options, error, words", [
    (((33, 2), "fp8_e4m3"), {}, ValueError, "dimension 0 of a tensor of fp8_e4m3 is 33; expected a multiple of 32"),
    (((4, 2), "float16"), {"strides": (1, 3)}, ValueError, "stride 1 is 3 elements; expected at least 4"),
    (((4, 2), "float16"), {"strides": (1,)}, TypeError, "strides is (1,); expected 2 whole numbers"),
    ((4, "float16"), {}, TypeError, "dimensions is 4; expected 1 to 16 whole numbers"),
    (((4,), "fp8"), {}, ValueError, "element type 'fp8' is unknown"),
    (((4,), "float16"), {"usage": "draw"}, ValueError, "usage is 'draw'; expected 'compute', 'render'"),
    (((64,), "fp8_e4m3"), {"scales": "ue8m0"}, TypeError, "scales is 'ue8m0'; expected a pair"),
    (((64,), "fp8_e4m3"), {"scales": ("ue8m0", (48,))}, ValueError, "expected a multiple of its block of scales, 48"),
])
def test_wrong_descriptions_are_refused(arguments, options, error, words):
    with pytest.raises(error) as raised:
        smelt.Tensor(*arguments, **options)
    assert words in str(raised.value)


def test_slices(random):
    tensor = smelt.Tensor((64, 5), "uint4", scales=("ue8m0", (32, 1)))
    values = random.integers(0, 256, (2, 16), np.uint8)
    tensor.write(values, origin=(32, 3))
    assert np.array_equal(tensor.read(origin=(32, 3)), values)
    assert np.array_equal(tensor.read(origin=(0, 4), size=(64, 1))[0, 16:], values[1])
    tensor.write(np.array([[9]], np.uint8), "scales", origin=(1, 2), size=(1, 1))
    assert tensor.read("scales").tolist() == [[0, 0], [0, 0], [0, 9], [0, 0], [0, 0]]
    with pytest.raises(ValueError, match="the origin of dimension 0 is 1; for uint4, expected a multiple of 2"):
        tensor.read(origin=(1, 0))
    with pytest.raises(ValueError, match=r"the values have shape \(2, 16\); expected \(5, 32\)"):
        tensor.write(values)
    with pytest.raises(ValueError, match="dimension 1 begins at 4 and has 3 elements"):
        tensor.read(origin=(0, 4), size=(64, 3))
    with pytest.raises(ValueError, match="the tensor has no biases"):
        tensor.read("biases")


def test_a_tensor_shares_an_arrays_memory(random):
    values = random.standard_normal((6, 9)).astype(np.float32)
    tensor = smelt.Tensor.from_array(values[::2, 2:])
    assert tensor.dimensions == (7, 3) and tensor.strides == (1, 18)
    values[2, 3] = 5
    assert np.asarray(tensor.array())[1, 1] == 5
    with pytest.raises(ValueError, match="stride 0 is 2; expected 1"):
        smelt.Tensor.from_array(values[:, ::2])


def test_read_only_memory_is_copied(tmp_path):
    np.arange(12, dtype=np.float32).tofile(tmp_path / "a")
    mapped = np.memmap(tmp_path / "a", np.float32, "r", shape=(3, 4))
    fixed = np.arange(12, dtype=np.float32).reshape(3, 4)
    fixed.flags.writeable = False
    for values in (mapped, fixed, np.broadcast_to(fixed[0], (3, 4))):
        before = values.copy()
        tensor = smelt.Tensor.from_array(values)
        assert np.array_equal(tensor.read(), before)
        tensor.write(np.full((3, 4), 9, np.float32))
        assert np.array_equal(values, before) and np.all(np.asarray(tensor.read()) == 9)


@pytest.mark.parametrize("call, error, words", [
    (lambda t: t.read(origin=(-2**63, 0)), ValueError, "dimension 0 begins at -9223372036854775808"),
    (lambda t: t.read(size=(2**62, 2**62)), ValueError, "expected a part of the plane's 64"),
    (lambda t: t.read(size=(2**44, 1)), ValueError, "dimension 0 begins at 0 and has 17592186044416 elements"),
    (lambda t: t.read(origin=(0,)), TypeError, "Tensor: origin is (0,); expected 2 whole numbers"),
    (lambda t: t.read("planes"), ValueError, "plane is 'planes'; expected 'data', 'scales' or 'biases'"),
    (lambda t: t.write(np.zeros((5, 32), np.float32)), ValueError, "the values are of float32; expected uint8"),
    (lambda t: t.write(np.zeros((5, 64), np.uint8)), ValueError, "the values have shape (5, 64); expected (5, 32)"),
    (lambda t: t.write(None), TypeError, "Tensor.write: expected an array"),
    (lambda t: t.dequantise("int8"), ValueError, "dtype is int8; expected a float"),
    (lambda t: t.quantise(np.zeros(64), "uint4\0"), ValueError, "Tensor.quantise: dtype is 'uint4\\x00', which has a null character"),
    (lambda t: t.quantise(np.zeros(64), "uint4", -1), ValueError, "group is -1; expected at least 1, or 0"),
    (lambda t: t.quantise(np.zeros(64), "uint4", 2**70), ValueError, "expected a multiple of the group"),
    (lambda t: t.quantise(np.zeros(64), "uint4", 3.5), TypeError, "group is 3.5; expected a whole number"),
    (lambda t: t.quantise(np.zeros(64, int), "uint4"), ValueError, "the array is of int64; expected floats"),
    (lambda t: t.from_array(np.float32(3)), ValueError, "ndim is 0; expected 1 to 16"),
    (lambda t: t.from_array(np.zeros((3, 0), np.float32)), ValueError, "dimension 0 is 0; expected at least 1"),
    (lambda t: t.from_array(np.zeros((3, 4), np.float32)[::-1]), ValueError, "stride 1 is -4 elements"),
    (lambda t: t.from_array(np.zeros(3, complex)), TypeError, "dtype complex128 is not supported"),
    (lambda t: t.from_array(t), TypeError, "got Tensor"),
])
def test_wrong_calls_are_refused(call, error, words):
    tensor = smelt.Tensor((64, 5), "uint4", scales=("ue8m0", (32, 1)))
    with pytest.raises(error) as raised:
        call(tensor)
    assert words in str(raised.value)


def test_values_that_scales_cannot_hold_saturate():
    values = np.full((1, 64), 3e38, np.float32)
    values[0, ::2] = -3e38
    for name in ("uint4", "int4", "uint8", "int8"):
        for scales in ("float32", "float16", "bfloat16"):
            tensor, error = smelt.Tensor.quantise(values, name, scales=scales)
            found = np.asarray(tensor.dequantise("float64"))
            assert np.all(np.isfinite(found)) and np.all(found * values >= 0)
            assert error["largest"] == np.abs(found - values).max()
            assert error["saturated"] > 0 or error["largest"] < 0.2 * 3e38


FLOATS = {"fp8_e4m3": (ml_dtypes.float8_e4m3fn, 8), "fp8_e5m2": (ml_dtypes.float8_e5m2, 15)}


@pytest.mark.parametrize("name", FLOATS)
def test_microscaling_rounds_as_ml_dtypes(name, random):
    dtype, exponent = FLOATS[name]
    values = (random.standard_normal((9, 128)) * 10.0 ** random.integers(-5, 5, (9, 1))).astype(np.float32)
    tensor, error = smelt.Tensor.quantise(values, name)
    groups = values.reshape(9, 4, 32).astype(np.float64)
    scales = 2.0 ** (np.floor(np.log2(np.abs(groups).max(-1))) - exponent)
    assert np.array_equal(2.0 ** (np.asarray(tensor.read("scales")).astype(np.float64) - 127), scales)
    scaled = np.clip(groups / scales[..., None], -float(ml_dtypes.finfo(dtype).max), float(ml_dtypes.finfo(dtype).max))
    wanted = scaled.astype(np.float32).astype(dtype).astype(np.float64) * scales[..., None]
    found = np.asarray(tensor.dequantise("float64")).reshape(wanted.shape)
    assert np.array_equal(found, wanted)
    misses = np.abs(wanted - groups)
    assert error["largest"] == misses.max() and error["count"] == values.size
    assert np.isclose(error["signal_to_noise"], 10 * np.log10((groups**2).sum() / (misses**2).sum()))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("group", [32, 64, 128])
def test_groups_of_integers_are_mlxs(bits, group, random):
    mx = pytest.importorskip("mlx.core")
    values = random.standard_normal((5, 256)).astype(np.float32)
    tensor, _ = smelt.Tensor.quantise(values, f"uint{bits}", group)
    packed, scales, biases = mx.quantize(mx.array(values), group_size=group, bits=bits)
    assert np.allclose(tensor.read("scales"), np.array(scales), rtol=1e-6, atol=0)
    assert np.allclose(tensor.read("biases"), np.array(biases), rtol=1e-6, atol=0)
    codes = np.asarray(tensor.read()).view(np.uint8)
    assert np.mean(codes != np.array(packed).view(np.uint8).reshape(codes.shape)) < 0.01  # ties


def test_files_are_read_and_written(tmp_path, random):
    values = {"w": random.standard_normal((4, 6)).astype(np.float32), "half": np.arange(5, dtype=np.float16),
              "scalar": np.array(3, np.int64)}
    tensor, _ = smelt.Tensor.quantise(random.standard_normal((3, 64)).astype(np.float32), "fp8_e4m3")
    path = tmp_path / "a.safetensors"
    smelt.safetensors.save(path, {**values, "codes": tensor}, metadata={"format": "é"})
    file = smelt.safetensors.load(path)
    assert file.metadata == {"format": "é"}
    assert file.elements == {"scalar": "int64", "w": "float32", "half": "float16", "codes": "fp8_e4m3"}
    for name, wanted in values.items():
        assert np.array_equal(file.arrays[name], wanted) and file.shapes[name] == wanted.shape
    assert np.array_equal(file.arrays["codes"], tensor.read())
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is truncated"):
        smelt.safetensors.load(path)
    with pytest.raises(OSError, match="No such file"):
        smelt.safetensors.load(tmp_path / "b.safetensors")


@pytest.mark.parametrize("arguments, options, error, words", [
    ([np.zeros(3)], {}, TypeError, "safetensors.save: arrays is of type list; expected a dict"),
    ({3: np.zeros(3)}, {}, TypeError, "arrays has the name 3; expected a string"),
    ({"a": [1, 2]}, {}, TypeError, "got list; smelt.array() converts it"),
    ({"": np.zeros(3)}, {}, ValueError, "the name of entry 0 is ''; expected an array's name"),
    ({"a": np.zeros(3)}, {"metadata": {"k": 3}}, TypeError, "metadata 'k' is 3; expected a string"),
    ({"a": np.zeros(3)}, {"metadata": [("k", "v")]}, TypeError, "metadata is of type list; expected a dict"),
    ({"a": np.zeros(3)}, {"elements": {"b": "fp8_e4m3"}}, ValueError, "elements has 'b', which arrays lacks"),
    ({"a": np.zeros(3)}, {"elements": {"a": "fp8_e4m3"}}, ValueError, "expected bytes (uint8)"),
])
def test_what_no_file_can_hold_is_refused(arguments, options, error, words, tmp_path):
    with pytest.raises(error) as raised:
        smelt.safetensors.save(tmp_path / "a.safetensors", arguments, **options)
    assert words in str(raised.value)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="which has a null character"):
        smelt.safetensors.load("a\0b")


def test_a_file_s_array_and_scales_are_one_tensor(library, random, tmp_path, build_folder):
    path, out_path, source = tmp_path / "a.safetensors", tmp_path / "c.npy", tmp_path / "product.metal"
    weights, _ = smelt.Tensor.quantise(random.standard_normal((48, 64)).astype(np.float32), "fp8_e4m3")
    x, _ = smelt.Tensor.quantise(random.standard_normal((40, 64)).astype(np.float32), "fp8_e4m3")
    smelt.safetensors.save(path, {"layer.weight": weights, "layer.scales": weights.array("scales"),
                                  "x": x, "x_scale": x.array("scales"), "alone": x})
    read = smelt.safetensors.tensor(path, "layer.weight")
    assert read.dimensions == (64, 48) and read.scales == ("ue8m0", (32, 1))
    assert np.array_equal(read.dequantise(), weights.dequantise())
    expected = np.asarray(x.dequantise(), np.float64) @ np.asarray(weights.dequantise(), np.float64).T
    out = np.zeros((40, 48), np.float32)
    library.product(smelt.safetensors.tensor(str(path), "x"), read, out, groups=(2, 2), group_size=128)
    assert np.allclose(out, expected, rtol=0, atol=1e-4)
    source.write_text(SOURCE)
    bindings = [f"0=tensor:{path}:x", f"1=tensor:{path}:layer.weight", f"2:out:float32:40x48={out_path}"]
    subprocess.run([f"{build_folder}/bin/smelt", "run", source, "product", "--groups", "2,2", "--threadgroup", "128",
                    *(word for binding in bindings for word in ("-b", binding))], check=True)
    assert np.array_equal(np.load(out_path), out)
    with pytest.raises(ValueError, match="the file has no scales for it; expected an array called 'alone_scale_inv'"):
        smelt.safetensors.tensor(path, "alone")
    with pytest.raises(ValueError, match="has no array 'missing'"):
        smelt.safetensors.tensor(path, "missing")
    with pytest.raises(TypeError, match="name is of type int; expected a string"):
        smelt.safetensors.tensor(path, 3)


def test_files_are_those_of_the_package(tmp_path, random):
    package = pytest.importorskip("safetensors.numpy")
    values = {"b": random.standard_normal((3, 5)).astype(np.float32), "a": random.integers(0, 9, (7,), np.uint8)}
    package.save_file(values, tmp_path / "a.safetensors", metadata={"k": "v"})
    file = smelt.safetensors.load(tmp_path / "a.safetensors")
    assert file.metadata == {"k": "v"}
    assert all(np.array_equal(file.arrays[name], values[name]) for name in values)
    smelt.safetensors.save(tmp_path / "b.safetensors", values, metadata={"k": "v"})
    again = package.load_file(tmp_path / "b.safetensors")
    assert all(np.array_equal(again[name], values[name]) for name in values)


MEMBERS = """
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;
using codes = tensor<device metal_fp8_e4m3_format, dextents<int, 2>, tensor_handle,
                     tensor_blockwise<tensor_plane_scales, device metal_fp8_ue8m0_format, 32, 1>>;
struct Pair { tensor<device half, dextents<int, 2>> left, right; };
struct Arguments {
  uint n;
  Pair pair;
  tensor<device float, dextents<long, 2>> out;
  array<tensor<const device float, dextents<short, 1>>, 2> biases;
  tensor<device float, dextents<int, 3>> more[2];
  codes scaled;
};
kernel void product(constant Arguments &args [[buffer(0)]], uint2 group [[threadgroup_position_in_grid]]) {
  matmul2d<matmul2d_descriptor(16, 32, dynamic_extent), execution_simdgroups<4>> op;
  auto rows = args.pair.left.slice(0, group.y * 16);
  auto columns = args.pair.right.slice(group.x * 32, 0);
  auto out = args.out.slice(group.x * 32, group.y * 16);
  op.run(rows, columns, out);
}
kernel void squared(device const Arguments *args [[buffer(0)]], uint2 group [[threadgroup_position_in_grid]]) {
  matmul2d<matmul2d_descriptor(16, 16, dynamic_extent, false, true), execution_simdgroups<4>> op;
  auto rows = args->scaled.slice(0, group.y * 16);
  auto columns = args->scaled.slice(0, group.x * 16);
  auto out = args->out.slice(group.x * 16, group.y * 16);
  op.run(rows, columns, out);
}
kernel void added(device Arguments *args [[buffer(0)]], uint2 at [[thread_position_in_grid]]) {
  if (at.x >= (uint)args->out.get_extent(0) || at.y >= (uint)args->out.get_extent(1)) return;
  args->out[at.x, at.y] += args->biases[0][at.x] + args->biases[1][at.y] + args->n;
  args->more[1][at.x, at.y, 1] = args->more[0].get(at.x, at.y, 0) + 1;
}
"""


@pytest.mark.parametrize("device", ["cpu", "cpu-scalar"])
def test_tensors_are_members_of_structures(random, device):
    kernels = smelt.compile_shader(MEMBERS)
    left, right = random.random((37, 50)).astype(np.float16), random.random((50, 40)).astype(np.float16)
    out, rows, columns = (np.zeros(shape, np.float32) for shape in ((37, 40), (40,), (37,)))
    rows[:], columns[:] = random.random(40), random.random(37)
    more = [random.random((2, 37, 40)).astype(np.float32), np.zeros((2, 37, 40), np.float32)]
    scaled, _ = smelt.Tensor.quantise(random.standard_normal((37, 64)).astype(np.float32), "fp8_e4m3")
    tensors = [(smelt.Tensor.from_array(array), size) for array, size in
               [(left, 4), (right, 4), (out, 8), (rows, 2), (columns, 2), (more[0], 4), (more[1], 4)]] + [(scaled, 4)]
    arguments = struct.pack("I4x", 7) + b"".join(tensor.member(size) for tensor, size in tensors)
    kernels.product(arguments, groups=(2, 3), group_size=128, device=device)
    assert np.allclose(out, left.astype(np.float64) @ right.astype(np.float64), rtol=0, atol=1e-4)
    before = out.copy()
    kernels.added(np.frombuffer(arguments, np.uint8).copy(), threads=(48, 40), group_size=(16, 8), device=device)
    assert np.allclose(out, before + rows + columns[:, None] + 7, rtol=0, atol=1e-4)
    assert np.array_equal(more[1][1], more[0][0] + 1) and not more[1][0].any()
    kernels.squared(arguments, groups=(3, 3), group_size=128, device=device)
    values = np.asarray(scaled.dequantise(), np.float64)
    assert np.allclose(out[:, :37], values @ values.T, rtol=0, atol=1e-4)


def test_member_states_what_does_not_fit():
    tensor = smelt.Tensor.from_array(np.zeros((2, 200), np.float32))
    assert [len(tensor.member(size)) for size in (2, 4, 8)] == [64, 64, 72]
    with pytest.raises(ValueError, match="dimension 0 .0 is the innermost. is 200; an index of 1 bytes holds at most 127"):
        tensor.member(1)
    with pytest.raises(ValueError, match="index_bytes is 3, expected 1, 2, 4 or 8"):
        tensor.member(3)
