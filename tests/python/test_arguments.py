"""Wrong numbers and axes of operations: the message names the operation, the argument and its value; nothing is computed
with an axis that the array lacks."""
import numpy as np
import pytest
import smelt

a = smelt.array(np.arange(16, dtype=np.float32).reshape(4, 4))

WRONG = [
    (lambda: smelt.sum(a, axis="x"), TypeError, "sum: axis is 'x'; expected a whole number or several"),
    (lambda: smelt.sum(a, axis=(0, None)), TypeError, r"sum: axis is \(0, None\); expected a whole number or several"),
    (lambda: smelt.sum(a, axis=1.5), TypeError, "sum: axis is 1.5; expected a whole number or several"),
    (lambda: smelt.sum(a, axis=2**70), ValueError, "sum: axis 9223372036854775807 is out of range"),
    (lambda: smelt.zeros((2, "y")), TypeError, r"zeros: shape is \(2, 'y'\); expected a whole number or several"),
    (lambda: smelt.rms_norm(a, None, "x"), TypeError, "rms_norm: 'x' is not a number"),
    (lambda: smelt.split(a, 2, "x"), TypeError, "split: axis is 'x'; expected a whole number"),
    (lambda: smelt.split(a, 2, 5), ValueError, "split: axis 5 is out of range for 2 dimensions"),
    (lambda: smelt.split(a, 1.5), TypeError, "split: indices_or_sections is 1.5; expected a whole number"),
    (lambda: smelt.swapaxes(a, 0, 7), ValueError, "swapaxes: axis 7 is out of range for 2 dimensions"),
    (lambda: smelt.moveaxis(a, 9, 0), ValueError, "moveaxis: source 9 is out of range for 2 dimensions"),
    (lambda: smelt.moveaxis(a, 0, 9), ValueError, "moveaxis: destination 9 is out of range for 2 dimensions"),
    (lambda: smelt.repeat(a, 2, 9), ValueError, "repeat: axis 9 is out of range for 2 dimensions"),
    (lambda: smelt.repeat(a, -1), ValueError, "repeat: repeats is -1; expected 0 or more"),
    (lambda: smelt.tile(a, (2, -1)), ValueError, r"tile: reps is \(2, -1\); expected 0 or more"),
    (lambda: smelt.tile(a, "x"), TypeError, "tile: reps is 'x'; expected a whole number"),
    (lambda: smelt.pad(a, "x"), TypeError, "pad: pad_width is 'x'; expected a whole number"),
    (lambda: smelt.pad(a, (1, 2, 3)), ValueError, "pad: pad_width has 3 numbers for a dimension"),
    (lambda: smelt.unflatten(a, 5, (2, 2)), ValueError, "unflatten: axis 5 is out of range for 2 dimensions"),
    (lambda: smelt.unflatten(a, 0, (0, -1)), ValueError, "reshape: an array of shape 4x4"),
    (lambda: smelt.diagonal(a, 0, 0, 2), ValueError, "diagonal: axis2 2 is out of range for 2 dimensions"),
    (lambda: smelt.diagonal(a, 0, 1, -1), ValueError, "diagonal: axis1 and axis2 are both 1; expected two axes"),
    (lambda: smelt.diag(a, "x"), TypeError, "diag: k is 'x'; expected a whole number"),
    (lambda: smelt.topk(a, "x"), TypeError, "topk: k is 'x'; expected a whole number"),
    (lambda: smelt.topk(a, 2, 7), ValueError, "topk: axis 7 is out of range for 2 dimensions"),
    (lambda: smelt.partition(a, "x"), TypeError, "partition: kth is 'x'; expected a whole number"),
    (lambda: smelt.arange("x"), TypeError, "arange: stop is 'x'; expected a number"),
    (lambda: smelt.arange(0, 10, 0), ValueError, "arange: step is 0; expected another number"),
    (lambda: smelt.linspace(0, 1, "x"), TypeError, "linspace: num is 'x'; expected a whole number"),
    (lambda: smelt.round(a, "x"), TypeError, "round: decimals is 'x'; expected a whole number"),
    (lambda: smelt.fft(a, n="x"), TypeError, "fft: n is 'x'; expected a whole number"),
    (lambda: smelt.tensordot(a, a, axes="x"), TypeError, "tensordot: axes is 'x'; expected a whole number"),
    (lambda: smelt.tensordot(a, a, axes=9), ValueError, "tensordot: axes is 9; expected 0 to 2"),
    (lambda: smelt.tensordot(a, a, axes=([0, 1], [])), ValueError, "tensordot: axes has 2 axes of a and 0 of b"),
    (lambda: smelt.random.key("x"), TypeError, "key: seed is 'x'; expected a whole number"),
    (lambda: smelt.Tensor((64, 32), "fp8_e4m3", scales=("ue8m0", (0, 1))), ValueError,
     r"Tensor: scales is \('ue8m0', \(0, 1\)\): size 0 of its block is less than 1"),
]


@pytest.mark.parametrize(("call", "error", "message"), WRONG)
def test_the_message_names_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_numbers_of_other_kinds_are_taken():
    numbers = np.asarray(a)
    for result, expected in [
        (smelt.reshape(a, np.array([2, 8])), numbers.reshape(2, 8)),
        (smelt.reshape(a, (np.int64(2), 8)), numbers.reshape(2, 8)),
        (smelt.sum(a, axis=np.int32(1)), numbers.sum(1)),
        (smelt.sum(a, axis=np.array(1)), numbers.sum(1)),
        (smelt.tile(a, np.array([2, 1])), np.tile(numbers, (2, 1))),
        (smelt.tile(a, 0), np.tile(numbers, 0)),
        (smelt.tile(a, (0, 2)), np.tile(numbers, (0, 2))),
        (smelt.pad(a, 1), np.pad(numbers, 1)),
        (smelt.pad(a, (1, 2)), np.pad(numbers, (1, 2))),
        (smelt.pad(a, ((1, 2), (3, 0))), np.pad(numbers, ((1, 2), (3, 0)))),
        (smelt.pad(a, np.array([[1, 2], [3, 0]])), np.pad(numbers, ((1, 2), (3, 0)))),
        (smelt.pad(a, [(1,), (2,)]), np.pad(numbers, ((1, 1), (2, 2)))),
        (smelt.repeat(a, np.int64(2), -1), numbers.repeat(2, -1)),
        (smelt.moveaxis(a, -1, 0), np.moveaxis(numbers, -1, 0)),
        (smelt.swapaxes(a, -1, np.int8(0)), np.swapaxes(numbers, -1, 0)),
        (smelt.diagonal(a, -1), np.diagonal(numbers, -1)),
        (smelt.tensordot(a, a, axes=np.int64(1)), np.tensordot(numbers, numbers, 1)),
        (smelt.tensordot(a, a, axes=(0, 1)), np.tensordot(numbers, numbers, (0, 1))),
    ]:
        assert result.shape == expected.shape
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)
    for part, expected in zip(smelt.split(a, np.array([1, 3])), np.split(numbers, [1, 3])):
        np.testing.assert_array_equal(np.asarray(part), expected)
    for part, expected in zip(smelt.split(a, np.int64(2), np.int64(-1)), np.split(numbers, 2, -1)):
        np.testing.assert_array_equal(np.asarray(part), expected)


@pytest.mark.parametrize("k", [2**70, 2**63 - 1, 2**33, 4, -4, -2**33, 1 - 2**63, -2**63, -2**70])
def test_diagonals_outside_of_the_matrix(k):
    numbers, far = np.asarray(a), max(-9, min(9, k))
    assert not np.asarray(smelt.eye(4, k=k, dtype="uint8")).any()
    np.testing.assert_array_equal(np.asarray(smelt.tri(4, k=k)), np.tri(4, k=far))
    np.testing.assert_array_equal(np.asarray(smelt.tril(a, k)), np.tril(numbers, far))
    np.testing.assert_array_equal(np.asarray(smelt.triu(a, k)), np.triu(numbers, far))
    assert smelt.diagonal(a, k).shape == (0,)
