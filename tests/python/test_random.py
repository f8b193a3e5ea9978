"""smelt.random: the bits against Philox written out in Python, distributions by their moments and by how often values fall
into parts of their range. Keys are fixed: a test of a distribution must not fail by chance."""
import math

import numpy as np
import pytest
import smelt
from smelt import random
from smelt.graph import Graph, InferenceSession, TensorType

MASK = 0xFFFFFFFF


def philox(counter, key):
    """Four words (Salmon et al., 2011)."""
    x, (k0, k1) = list(counter), key
    for _ in range(10):
        low, high = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [high >> 32 ^ x[1] ^ k0, high & MASK, low >> 32 ^ x[3] ^ k1, low & MASK]
        k0, k1 = k0 + 0x9E3779B9 & MASK, k1 + 0xBB67AE85 & MASK
    return x


def words(key, count, draw=0):
    k = [int(word) for word in np.asarray(key)]
    return np.array([w for i in range((count + 3) // 4) for w in philox((i, 0, draw, 0), k)][:count], np.uint64)


def key_of(*pair):
    return smelt.array(list(pair), dtype="uint32")


def test_the_reference_gives_the_published_answers():
    # kat_vectors of the Random123 library, philox4x32 10.
    assert philox((0, 0, 0, 0), (0, 0)) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox([MASK] * 4, (MASK, MASK)) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)) == \
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def test_bits(engine):
    for key in (key_of(0, 0), key_of(MASK, 5), random.key(3)):
        for count in (1, 4, 7, 130):
            wide = words(key, count) | words(key, count, 1) << np.uint64(32)
            for width in (1, 2, 4, 8):
                made = np.asarray(random.bits((count,), width, key))
                np.testing.assert_array_equal(made, wide.astype(f"uint{8 * width}"))
    assert np.asarray(random.bits((2, 3, 5), 4, random.key(1))).reshape(-1).tolist() == words(random.key(1), 30).tolist()
    flags = np.asarray(smelt.operations.elementwise.apply("random_bits", (random.key(1),), shape=(9,), dtype="bool"))
    np.testing.assert_array_equal(flags, words(random.key(1), 9) & np.uint64(1))


def test_keys(engine):
    key = random.key(7)
    made = np.asarray(random.split(key, 5))
    k = [int(word) for word in np.asarray(key)]
    np.testing.assert_array_equal(made, [philox((i, 0, 0, 1), k)[:2] for i in range(5)])
    one, two = random.split(key)
    assert not set(np.asarray(random.bits((1000,), 4, one)).tolist()) & set(np.asarray(random.bits((1000,), 4, two)).tolist())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_numbers_are_those_of_the_plain_reference(engine, dtype):
    key = random.key(11)
    low, high = (int(word) for word in np.asarray(key))
    for kind, made in (("uniform", random.uniform(shape=(3, 67), dtype=dtype, key=key)),
                       ("normal", random.normal((3, 67), dtype=dtype, key=key))):
        wanted = smelt._smelt.random_array(kind, dtype, (3, 67), low | high << 32)
        assert made.dtype == wanted.dtype and made.shape == (3, 67)
        made, wanted = (np.asarray(a.astype("float32")) for a in (made, wanted))
        rounding = {"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
        if kind == "uniform":
            np.testing.assert_array_equal(made, wanted)
        else:
            np.testing.assert_allclose(made, wanted, rtol=rounding, atol=2e-6)


def test_float64_and_complex64():
    key = random.key(2)
    assert np.asarray(random.uniform(1, 3, (50,), "float64", key)).dtype == np.float64
    made = np.asarray(random.uniform(1, 3, (2000,), "float64", key))
    assert made.min() >= 1 and made.max() < 3 and abs(made.mean() - 2) < 0.06
    pairs = np.asarray(random.normal((4000,), "complex64", key=key))
    assert abs(pairs.real.std() - 1) < 0.05 and abs(pairs.imag.std() - 1) < 0.05 and abs((pairs.real * pairs.imag).mean()) < 0.06


def spread(values, quantile, parts=20):
    """Chi-squared of how many values lie between quantiles, less what is expected of it, in its standard deviations."""
    edges = np.array([quantile(i / parts) for i in range(1, parts)])
    counts = np.bincount(np.searchsorted(edges, np.asarray(values, np.float64)), minlength=parts)
    expected = len(values) / parts
    return (((counts - expected) ** 2 / expected).sum() - (parts - 1)) / math.sqrt(2 * (parts - 1))


def normal_quantile(p):
    low, high = -9.0, 9.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle / math.sqrt(2)) < 2 * p - 1 else (low, middle)
    return low


def test_distributions(engine):
    count = 40000 if engine == "cpu" else 4000
    keys = random.split(random.key(5), 8)
    assert abs(spread(np.asarray(random.uniform(-3, 5, (count,), key=keys[0])), lambda p: 8 * p - 3)) < 4
    assert abs(spread(np.asarray(random.normal((count,), key=keys[1])), normal_quantile)) < 4
    scaled = np.asarray(random.normal((count,), loc=3.0, scale=smelt.full((1,), 2.0), key=keys[1]))
    assert abs(scaled.mean() - 3) < 0.1 and abs(scaled.std() - 2) < 0.1
    assert abs(spread(np.asarray(random.gumbel((count,), key=keys[2])), lambda p: -math.log(-math.log(p)))) < 4
    share = math.erf(1 / math.sqrt(2))

    def truncated(p):  # from -1 to 1
        return normal_quantile(0.5 + (p - 0.5) * share)
    cut = np.asarray(random.truncated_normal(-1.0, 1.0, (count,), key=keys[3]))
    assert cut.min() >= -1 and cut.max() <= 1 and abs(spread(cut, truncated)) < 4
    whole = np.asarray(random.randint(-5, 15, (count,), key=keys[4]))
    assert whole.min() == -5 and whole.max() == 14
    assert abs(spread(whole, lambda p: 20 * p - 5.5)) < 4
    p = np.asarray(random.bernoulli(smelt.array([0.1, 0.5, 1.0, 0.0]), (count, 4), key=keys[5])).mean(0)
    assert abs(p[0] - 0.1) < 0.02 and abs(p[1] - 0.5) < 0.04 and p[2] == 1 and p[3] == 0
    logits = np.log([1.0, 2.0, 3.0, 4.0]).astype(np.float32)
    drawn = np.asarray(random.categorical(smelt.array(logits), num_samples=count, key=keys[6]))
    assert drawn.dtype == np.int32 and drawn.shape == (count,)
    assert abs(np.bincount(drawn, minlength=4) / count - [0.1, 0.2, 0.3, 0.4]).max() < 0.04


def test_ends_of_ranges():
    for dtype in ("float32", "float16", "bfloat16"):
        for low, high in ((1, 2), (-1, 0), (0.1, 0.2), (1000, 1001), (-2, -1)):
            values = np.asarray(random.uniform(low, high, (20000,), dtype, random.key(1)).astype("float32"))
            assert low <= values.min() and values.max() < high, (dtype, low, high)
        below = np.asarray(random.uniform(smelt.array([1.0]), smelt.array([2.0]), (20000,), dtype, random.key(1)).astype("float32"))
        assert 1 <= below.min() and below.max() < 2
    for dtype, low, high in (("int8", -128, 128), ("uint8", 0, 256), ("int64", -(1 << 63), (1 << 63) - 1), ("uint32", 7, 1 << 32),
                             ("int64", 1 << 40, (1 << 40) + 3)):
        values = np.asarray(random.randint(low, high, (3000,), dtype, random.key(4)))
        assert values.dtype == dtype and low <= values.min() and values.max() < high and len(set(values.tolist())) >= min(3, high - low)
    far = np.asarray(random.gumbel((1 << 18,), key=random.key(9)))
    assert np.isfinite(far).all()


def test_shapes_of_categorical():
    logits = smelt.array(np.random.default_rng(1).standard_normal((3, 4, 5)).astype(np.float32))
    assert random.categorical(logits).shape == (3, 4)
    assert random.categorical(logits, axis=0).shape == (4, 5)
    assert random.categorical(logits, axis=1, num_samples=7).shape == (3, 5, 7)
    assert random.categorical(logits[0], shape=(6, 4)).shape == (6, 4)
    sure = smelt.array(np.where(np.eye(5)[None], 0.0, -np.inf).astype(np.float32))
    np.testing.assert_array_equal(np.asarray(random.categorical(sure, num_samples=3)), np.arange(5)[None, :, None].repeat(3, 2))
    np.testing.assert_array_equal(np.asarray(random.categorical(sure, axis=1)), np.arange(5)[None])


def test_permutations(engine):
    for count in (0, 1, 10, 5000):
        made = np.asarray(random.permutation(count, key=random.key(count)))
        assert made.dtype == np.int32 and sorted(made.tolist()) == list(range(count))
    seen = {tuple(np.asarray(random.permutation(3, key=k)).tolist()) for k in random.split(random.key(1), 60)}
    assert len(seen) == 6
    x = smelt.array(np.arange(12).reshape(3, 4))
    moved = np.asarray(random.permutation(x, axis=1, key=random.key(1)))
    assert sorted(moved[0].tolist()) == [0, 1, 2, 3] and np.array_equal(moved[1] - moved[0], [4] * 4)


def test_keys_are_inputs_of_graphs():
    def f(key, x):
        one, two = random.split(key)
        noise = random.normal(x.shape, key=one) * 0.1
        kept = random.bernoulli(0.5, x.shape, key=two)
        return smelt.where(kept, x + noise, 0.0), random.categorical(x, key=two), random.permutation(9, key=key)

    x = np.random.default_rng(2).standard_normal((6, 5)).astype(np.float32)
    model = InferenceSession().load(Graph.of(f, TensorType("uint32", (2,)), TensorType.of(x)))
    for seed in (1, 2):
        for made, wanted in zip(model.execute(random.key(seed), x), f(random.key(seed), smelt.array(x))):
            np.testing.assert_array_equal(made.to_numpy(), np.asarray(wanted))


def test_gradients_pass_by_keys():
    key = random.key(3)
    gradient = smelt.grad(lambda x: smelt.sum(smelt.where(random.bernoulli(0.5, x.shape, key=key), x, 0.0)))(smelt.ones((40,)))
    np.testing.assert_array_equal(np.asarray(gradient), np.asarray(random.bernoulli(0.5, (40,), key=key)).astype(np.float32))


def test_refusals():
    key = random.key(1)
    for call, words_of_it in [
        (lambda: random.uniform(2, 2, (3,), key=key), "random_uniform: low is 2 and high is 2; expected low < high"),
        (lambda: random.randint(0, 300, (3,), "uint8", key), r"random_integers: low is 0 and high is 300; expected numbers of uint8"),
        (lambda: random.normal((3,), key=smelt.array([1, 2])), "random_normal: the key has shape 2 and dtype int32; expected 2 of uint32"),
        (lambda: random.bits((3,), 3), "bits: width is 3; expected 1, 2, 4 or 8 bytes"),
        (lambda: random.normal((3,), "int32", key=key), "random_normal: dtype is int32; expected a float dtype"),
        (lambda: random.bernoulli(smelt.ones((3,)), (4,), key=key), "random_bernoulli: shapes .* cannot be broadcast"),
        (lambda: random.split(key, 0), "random_split: 0 keys; expected 1"),
        (lambda: random.categorical(smelt.ones((3,)), shape=(2,), num_samples=2), "categorical: shape is .* expected one of them"),
    ]:
        with pytest.raises((ValueError, smelt.UnsupportedError), match=words_of_it):
            call()
