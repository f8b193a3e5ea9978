"""smelt.array: made from Python's numbers and NumPy, read back, indexed, copied, pickled."""
import copy
import gc
import hashlib
import math
import operator
import pickle
import weakref

import numpy as np
import pytest

import smelt

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32",
          "complex64", "float64"]


def example(dtype, shape=(3, 4)):
    """A NumPy array with different values, negative ones where there are."""
    values = np.arange(math.prod(shape)).reshape(shape)
    if np.dtype(dtype).kind in "if":
        values = values - 5
    return (values * (1 + 2j) if dtype == "complex64" else values).astype(dtype)


# ---- From Python's numbers.

@pytest.mark.parametrize("data, dtype, shape", [
    (3, "int32", ()), (2.5, "float32", ()), (True, "bool", ()), (1j, "complex64", ()),
    ([1, 2, 3], "int32", (3,)), ([1, 2.5], "float32", (2,)), ([True, 2], "int32", (2,)), ([True, False], "bool", (2,)),
    ([[1, 2], (3, 4)], "int32", (2, 2)), ([], "float32", (0,)), ([[], []], "float32", (2, 0)), ([1, 1j], "complex64", (2,)),
    (((1,),), "int32", (1, 1)),
])
def test_numbers_in_lists(data, dtype, shape):
    a = smelt.array(data)
    assert a.dtype == dtype and a.shape == shape and a.ndim == len(shape) and a.device == "cpu"
    expected = np.array(data, dtype=dtype)
    assert a.size == expected.size and a.nbytes == expected.nbytes and a.itemsize == expected.itemsize
    np.testing.assert_array_equal(np.asarray(a), expected)
    assert a.tolist() == expected.tolist()


def test_a_dtype_can_be_asked_for():
    for dtype in DTYPES:
        np.testing.assert_array_equal(np.asarray(smelt.array([0, 1, 100], dtype=dtype)), np.array([0, 1, 100]).astype(dtype))
    assert smelt.array([1.7, -1.7], dtype=smelt.int32).tolist() == [1, -1]
    assert smelt.array([1, 2], smelt.bfloat16).tolist() == [1.0, 2.0]
    assert smelt.array(2**64 - 1, dtype=smelt.uint64).item() == 2**64 - 1
    assert smelt.array(-(2**63), dtype=smelt.int64).item() == -(2**63)


@pytest.mark.parametrize("value, dtype", [
    (2**31, None), (-(2**31) - 1, None), (2**100, None), (256, "uint8"), (-1, "uint8"), (-1, "uint64"), (2**64, "uint64"),
    (128, "int8"), (-129, "int8"), (2**63, "int64"), (65536, "uint16"), (-32769, "int16"), (2**32, "uint32"),
])
def test_integers_that_do_not_fit_are_refused(value, dtype):
    with pytest.raises(ValueError, match=f"{value} does not fit in {dtype or 'int32'}; give a wider dtype="):
        smelt.array([0, value], dtype=dtype)


@pytest.mark.parametrize("value, dtype", [
    (2**31 - 1, None), (-(2**31), None), (255, "uint8"), (-128, "int8"), (2**63 - 1, "int64"), (2**32 - 1, "uint32"),
])
def test_the_last_integers_that_fit_are_taken(value, dtype):
    assert smelt.array([0, value], dtype=dtype).tolist() == [0, value]


@pytest.mark.parametrize("data, error, message", [
    ([[1, 2], [3]], ValueError, "the lists at depth 1 differ in length"),
    ([[1], 2], ValueError, "depth 1 has both lists and numbers"),
    ([1, [2]], ValueError, "depth"),
    ("abc", TypeError, "expected an array .* or a number, got str"),
    (None, TypeError, "got NoneType"), ([None], TypeError, "an element: expected .* got NoneType"),
    (["1"], TypeError, "got str"), ({1: 2}, TypeError, "got dict"), (object(), TypeError, "got object"),
    ([10**400, 0.5], (ValueError, OverflowError), ""),
])
def test_what_is_no_array_is_refused(data, error, message):
    with pytest.raises(error, match=message):
        smelt.array(data)


def test_complex_numbers_do_not_lose_a_part():
    with pytest.raises(TypeError, match="complex numbers cannot become float32"):
        smelt.array([1j], dtype=smelt.float32)


def test_lists_are_nested_no_deeper_than_arrays_have_dimensions():
    data = 1
    for _ in range(16):
        data = [data]
    assert smelt.array(data).shape == (1,) * 16
    with pytest.raises(ValueError, match="nested more than 16 deep"):
        smelt.array([data])
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested more than 16 deep"):
        smelt.array(loop)


def test_lists_of_arrays_are_stacked():
    rows = [np.arange(3, dtype=np.float32), smelt.array([4.0, 5.0, 6.0])]
    a = smelt.array(rows)
    assert a.dtype == "float32" and a.tolist() == [[0, 1, 2], [4, 5, 6]]
    assert smelt.array([np.int8(3), 4]).dtype == "int8"
    assert smelt.array([np.int8(3), 4.5]).tolist() == [3.0, 4.5]
    with pytest.raises(ValueError, match="different dtypes; give dtype="):
        smelt.array([np.zeros(2, np.int8), np.zeros(2, np.int16)])
    assert smelt.array([np.zeros(2, np.int8), np.ones(2, np.int16)], dtype=smelt.float16).tolist() == [[0, 0], [1, 1]]
    with pytest.raises(ValueError, match="differ in length"):
        smelt.array([np.zeros(2), np.zeros(3)])


# ---- From NumPy, and back.

@pytest.mark.parametrize("dtype", DTYPES)
def test_numpys_arrays_are_copied(dtype):
    x = example(dtype)
    a = smelt.array(x, dtype=dtype)
    before = x.copy()
    x[...] = 0
    np.testing.assert_array_equal(np.asarray(a), before)
    assert np.asarray(a).dtype == dtype


def test_double_precision_becomes_single_unless_asked_for():
    x = np.linspace(0, 1, 5)
    assert smelt.array(x).dtype == "float32" and smelt.array(x, dtype=smelt.float64).dtype == "float64"
    assert smelt.array(np.arange(3)).dtype == "int64"
    np.testing.assert_array_equal(np.asarray(smelt.array(x)), x.astype(np.float32))
    double = smelt.array(x, dtype=smelt.float64)
    assert smelt.array(double).dtype == "float64"  # somebody asked for it


def test_numpy_sees_the_same_memory():
    a = smelt.array([[1, 2], [3, 4]])
    x = np.asarray(a)
    x[0, 0] = 7
    assert a.tolist() == [[7, 2], [3, 4]] and np.asarray(a[:, 1]).tolist() == [2, 4]
    assert np.array(a).tolist() == a.tolist()
    np.array(a)[0, 0] = 9  # a copy
    assert a[0, 0].item() == 7
    kept = np.asarray(smelt.array(np.arange(1000)))
    gc.collect()
    assert kept.sum() == 499500


def test_numpy_gets_the_dtype_it_asks_for():
    a = smelt.array([1.5, 2.5])
    assert np.asarray(a, dtype=np.float64).dtype == np.float64
    assert a.__array__(np.int32).tolist() == [1, 2]
    copied = a.__array__(copy=True)
    copied[0] = 0
    assert a.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("dtype", [d for d in DTYPES])
def test_the_buffer_is_the_elements(dtype):
    a = smelt.array(example(dtype), dtype=dtype)
    view = memoryview(a)
    assert view.shape == (3, 4) and view.itemsize == a.itemsize and not view.readonly and view.c_contiguous
    np.testing.assert_array_equal(np.asarray(view), example(dtype))
    assert bytes(view) == example(dtype).tobytes()
    strided = memoryview(a[::2, ::-1])
    assert strided.strides == a[::2, ::-1].strides
    np.testing.assert_array_equal(np.asarray(strided), example(dtype)[::2, ::-1])


def test_buffers_say_what_they_cannot():
    a = smelt.array([1, 2], dtype=smelt.bfloat16)
    with pytest.raises(BufferError, match="no format for bfloat16"):
        memoryview(a)
    assert np.asarray(a).tolist() == [1, 2]
    with pytest.raises(BufferError, match="not contiguous"):
        hashlib.sha256(smelt.array([1, 2, 3, 4])[::2])
    array = smelt.array([1, 2])
    view = memoryview(array)
    del array
    gc.collect()
    assert view.tolist() == [1, 2]


# ---- As numbers.

def test_one_element_is_a_number():
    a = smelt.array([2.75])
    assert a.item() == 2.75 and float(a) == 2.75 and int(a) == 2 and complex(a) == 2.75 and bool(a)
    assert not smelt.array(0) and f"{smelt.array(0.5):.3f}" == "0.500"
    assert operator.index(smelt.array(3)) == 3 and [10, 20, 30][smelt.array(1)] == 20
    with pytest.raises(TypeError, match="float32 is not an index"):
        operator.index(a)
    for many in (smelt.array([1, 2]), smelt.array([])):
        with pytest.raises(ValueError, match=f"it has {many.size} elements; only an array of one element is a number"):
            bool(many)
    with pytest.raises(TypeError, match="no length"):
        len(smelt.array(1))
    with pytest.raises(TypeError, match="no elements to go through"):
        list(smelt.array(1))


@pytest.mark.parametrize("dtype", DTYPES + ["bfloat16"])
def test_items_are_pythons_numbers(dtype):
    a = smelt.array([[1, 0]], dtype=dtype)
    kind = {"b": bool, "c": complex, "f": float}.get(dtype[0], int) if dtype != "bfloat16" else float
    assert type(a[0, 0].item()) is kind and a[0, 0].item() == 1 and a.tolist() == [[1, 0]]


def test_narrow_floats_read_exactly():
    values = [0.1, 65504.0, 6e-8, -0.0, math.inf]
    assert smelt.array(values, dtype=smelt.float16).tolist() == np.array(values, np.float16).tolist()
    assert smelt.array([1 + 2**-8], dtype=smelt.bfloat16).item() == 1.0  # to even
    assert math.isnan(smelt.array(math.nan, dtype=smelt.bfloat16).item())


# ---- Views.

@pytest.mark.parametrize("key", [
    0, -1, (1, 2), (slice(None), 1), slice(1, 3), slice(None, None, -1), (slice(None), slice(3, 0, -2)), (..., 0), (None, 1),
    (0, ..., None), (), slice(10, 20), (slice(2, 1), ...), np.int64(2), (slice(None, None, 2), None, 3), (..., slice(1, 2)),
])
def test_indices_give_views(key):
    x = np.arange(24).reshape(4, 6)
    a = smelt.array(x)
    np.testing.assert_array_equal(np.asarray(a[key]), x[key])
    assert a[key].shape == x[key].shape
    if a[key].size:
        view = np.asarray(a[key])
        view[...] = -1
        x[key] = -1
        np.testing.assert_array_equal(np.asarray(a), x)


@pytest.mark.parametrize("key, message", [
    (4, "index 4 is out of range for dimension 0 of size 4"), (-5, "index -5 is out of range"),
    ((0, 0, 0), "3 indices for an array of 2 dimensions"), ((..., ...), r"more than one \.\.\."),
    ((None,) * 15, "more than 16 dimensions"), (2**70, "")])
def test_indices_out_of_range_are_refused(key, message):
    with pytest.raises(IndexError, match=message):
        smelt.array(np.zeros((4, 6), np.float32))[key]


def test_going_through_an_array():
    a = smelt.array([[1, 2], [3, 4]])
    assert [row.tolist() for row in a] == [[1, 2], [3, 4]] and len(a) == 2
    assert [x.item() for x in smelt.array([5, 6])] == [5, 6]


def test_views_keep_the_memory():
    view = smelt.array(np.arange(100000))[500:501]
    gc.collect()
    assert view.item() == 500


# ---- Conversions and copies.

def test_astype():
    a = smelt.array([1.9, -1.9, 300.0])
    assert a.astype(smelt.int32).tolist() == [1, -1, 300] and a.astype("uint8").tolist() == [1, 0, 255]
    assert a.astype(np.float16).dtype == "float16" and a.astype(smelt.float32) is a
    with pytest.raises(TypeError, match="dtype: 'x' is not a supported dtype"):
        a.astype("x")


def test_copies_are_their_own():
    a = smelt.array([1, 2])
    for other in (copy.copy(a), copy.deepcopy(a), smelt.array(a), pickle.loads(pickle.dumps(a))):
        np.asarray(other)[0] = 9
        assert a.tolist() == [1, 2] and other.tolist() == [9, 2]


@pytest.mark.parametrize("dtype", DTYPES + ["bfloat16"])
def test_pickles(dtype):
    for a in (smelt.array([[1, 0, 1]], dtype=dtype), smelt.array([[1, 0, 1], [0, 0, 1]], dtype=dtype)[:, ::-2],
              smelt.array([], dtype=dtype), smelt.array(1, dtype=dtype)):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            b = pickle.loads(pickle.dumps(a, protocol))
            assert b.dtype == a.dtype and b.shape == a.shape and b.tolist() == a.tolist()


def test_damaged_pickles_are_refused():
    with pytest.raises(ValueError, match="do not match its shape"):
        smelt.array._from_bytes("int32", (3,), b"1234")
    with pytest.raises(ValueError, match="do not match its shape"):
        smelt.array._from_bytes("int32", (2**40, 2**40), b"1234")
    with pytest.raises(ValueError):
        smelt.array._from_bytes("int33", (1,), b"1234")


def test_asarray_says_what_takes_a_copy():
    a = smelt.asarray([1, 2])
    assert smelt.asarray(a) is a and smelt.asarray(a, dtype=smelt.int32, copy=False) is a
    assert smelt.asarray(a, dtype=smelt.float16).tolist() == [1, 2]
    for data, dtype in ((a, smelt.float16), ([1, 2], None), (2.5, None)):
        with pytest.raises(ValueError, match="smelt.asarray: .* needs a copy, but copy is False"):
            smelt.asarray(data, dtype=dtype, copy=False)


def test_devices():
    a = smelt.array([1])
    assert a.device == "cpu" and a.to("cpu") is a
    with pytest.raises(smelt.NoDeviceError) as info:
        a.to("nonsense")
    assert info.value.status == "SMELT_ERROR_NO_DEVICE"


# ---- As text.

def test_repr_says_elements_and_dtype():
    assert repr(smelt.array([1, 2])) == "array([1, 2], dtype=int32)"
    assert repr(smelt.array(2.5)) == "array(2.5, dtype=float32)"
    assert repr(smelt.array([[True], [False]])) == "array([[ True],\n       [False]], dtype=bool)"
    assert repr(smelt.array([], dtype=smelt.bfloat16)) == "array([], dtype=bfloat16)"
    long = repr(smelt.array(np.zeros(10000, np.float32)))
    assert "..." in long and len(long) < 200


# ---- As objects.

def test_weak_references_and_collection():
    a = smelt.array([1])
    gone = []
    reference = weakref.ref(a, gone.append)
    assert reference() is a and gc.is_tracked(a)
    del a
    assert reference() is None and len(gone) == 1
    assert type(smelt.array([1])) in gc.get_referents(smelt.array([1]))


def test_arrays_are_told_apart_by_what_they_are():
    a, b = smelt.array([1]), smelt.array([1])
    assert len({a, b, a}) == 2


def test_the_type_is_closed():
    with pytest.raises(TypeError):
        smelt.array.item = None
    with pytest.raises(AttributeError):
        smelt.array([1]).other = 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        smelt.array([1]).shape = (1, 1)
    with pytest.raises(TypeError):
        smelt.array()
