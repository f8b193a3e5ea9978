"""smelt.Dtype: the objects, and everything else that names an element type."""
import copy
import importlib
import pickle

import numpy as np
import pytest

import smelt

NAMES = [
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "complex64", "float64",
]


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_know_their_name_and_size(name):
    dtype = getattr(smelt, name)
    assert repr(dtype) == f"smelt.{name}" and dtype.name == name
    bits = int("".join(c for c in name if c.isdigit()))
    assert dtype.size == dtype.itemsize == bits // 8
    assert smelt.Dtype(name) is smelt.Dtype(dtype) is dtype


def test_bool_is_called_so_without_hiding_pythons():
    assert smelt.bool_.name == "bool" and smelt.bool_.size == 1
    assert smelt.Dtype("bool") is smelt.Dtype(bool) is smelt.Dtype(np.bool_) is smelt.bool_
    assert not hasattr(smelt, "bool")


def test_pythons_types_name_what_their_numbers_become():
    assert smelt.Dtype(float) is smelt.float32 and smelt.Dtype(int) is smelt.int32
    assert smelt.Dtype(complex) is smelt.complex64


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bfloat16"])
def test_numpys_dtypes_and_scalar_types_are_taken(name):
    for given in (np.dtype(name), getattr(np, name), np.dtype(name).newbyteorder(">")):
        assert smelt.Dtype(given) is getattr(smelt, name)
    assert getattr(smelt, name) == np.dtype(name) and np.dtype(name) == getattr(smelt, name)
    assert np.zeros(2, getattr(smelt, name)).dtype == np.dtype(name)


@pytest.mark.parametrize("module, prefix", [("torch", ""), ("mlx.core", ""), ("jax.numpy", ""), ("ml_dtypes", "")])
@pytest.mark.parametrize("name", ["bfloat16", "float32", "int64", "uint8", "complex64", "bool_", "bool"])
def test_other_libraries_dtypes_are_taken(module, prefix, name):
    library = pytest.importorskip(module)
    if not hasattr(library, name):
        pytest.skip(f"{module} has no {name}")
    expected = "bool" if name == "bool_" else name
    for _ in range(2):  # the second time it is known
        assert smelt.Dtype(getattr(library, name)).name == expected


def test_equality_is_with_what_names_the_same_type():
    assert smelt.float32 == "float32" and "float32" == smelt.float32 and smelt.float32 == np.float32
    assert smelt.float32 != smelt.float16 and smelt.float32 != "float64" and smelt.float32 != np.int32
    for other in (None, 3, 1.5, "nonsense", [], {}, object(), smelt.array([1.0])):
        assert (smelt.float32 == other) is False and (smelt.float32 != other) is True
    with pytest.raises(TypeError):
        smelt.float32 < smelt.float64


def test_dtypes_are_keys():
    table = {smelt.float32: 1, smelt.bool_: 2}
    assert table["float32"] == 1 and table[smelt.Dtype(np.float32)] == 1 and smelt.int8 not in table
    assert len({smelt.Dtype(name) for name in NAMES}) == len(NAMES)


def test_dtypes_pickle_to_themselves():
    for name in NAMES + ["bool"]:
        dtype = smelt.Dtype(name)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(dtype, protocol)) is dtype
        assert copy.deepcopy(dtype) is dtype


@pytest.mark.parametrize("wrong", [
    "float31", "", None, 3, 2.5, np.complex128, np.dtype("S4"), np.dtype([("a", "f4")]), object, str, list,
    np.datetime64, np.zeros(2, np.float32), [], smelt.array([1.0]),
])
def test_what_names_none_is_refused_with_what_it_was(wrong):
    with pytest.raises(TypeError, match="is not a supported dtype; expected") as info:
        smelt.Dtype(wrong)
    assert repr(wrong) in str(info.value)


def test_dtypes_cannot_be_changed():
    with pytest.raises((AttributeError, TypeError)):
        smelt.float32.name = "x"
    with pytest.raises(TypeError):
        smelt.Dtype.size = 3


def test_bfloat16_is_ml_dtypes_to_numpy_where_that_is_installed():
    try:
        expected = importlib.import_module("ml_dtypes").bfloat16
    except ImportError:
        expected = np.uint16
    assert np.dtype(smelt.bfloat16) == np.dtype(expected)


@pytest.mark.parametrize("dtype, category, expected", [
    ("float16", "floating", True), ("bfloat16", "inexact", True), ("complex64", "complexfloating", True),
    ("complex64", "floating", False), ("int8", "signedinteger", True), ("int8", "integer", True),
    ("uint8", "signedinteger", False), ("uint8", "unsignedinteger", True), ("bool", "number", False),
    ("bool", "generic", True), ("int64", "inexact", False), ("float64", "number", True),
])
def test_categories(dtype, category, expected):
    assert smelt.issubdtype(smelt.Dtype(dtype), getattr(smelt, category)) is expected
    assert smelt.issubdtype(dtype, getattr(smelt, category)) is expected


def test_categories_contain_each_other_and_dtypes_themselves():
    assert smelt.issubdtype(smelt.floating, smelt.inexact) and not smelt.issubdtype(smelt.inexact, smelt.floating)
    assert smelt.issubdtype(smelt.float32, smelt.float32) and not smelt.issubdtype(smelt.float32, smelt.float64)
    assert smelt.issubdtype(smelt.number, smelt.number)
    with pytest.raises(TypeError, match="is not a supported dtype"):
        smelt.issubdtype("nonsense", smelt.floating)
