"""smelt.launch: suggested sizes of threadgroups and launches."""

import math
import random

import pytest
import smelt
from smelt.launch import suggest_launch, suggest_threadgroup


@pytest.mark.parametrize("shape, expected", [
    (1, (32, 1, 1)), (8, (32, 1, 1)), ((8, 8), (8, 4, 1)), ((1, 1), (32, 1, 1)), ((3, 5), (8, 4, 1)),  # tiny
    (32, (32, 1, 1)), ((9, 9), (16, 4, 1)), ((20, 20), (32, 8, 1)), ((32, 32), (32, 8, 1)),  # small
    (33, (64, 1, 1)), (700, (704, 1, 1)), (10**9, (1024, 1, 1)), ((4096, 4096), (32, 32, 1)),  # larger
    ((1, 1000), (1000 + 24, 1, 1)), ((100, 5), (8, 64, 1)), ((5, 100), (64, 8, 1)), ((64, 64, 64), (32, 32, 1)),
    ((1000, 2, 2), (2, 2, 256)),
])
def test_sizes_follow_the_rules(shape, expected):
    assert suggest_threadgroup(shape) == expected


def random_shapes():
    rng = random.Random(6)
    for _ in range(400):
        yield tuple(max(1, int(2 ** rng.uniform(0, 13))) for _ in range(rng.randint(1, 3)))


def test_every_suggestion_is_a_valid_launch():
    for shape in random_shapes():
        grid, group = suggest_launch(shape)
        threads = math.prod(group)
        assert threads % 32 == 0 and 32 <= threads <= 1024, shape
        # A launch is refused for a group without threads, and for one of more than 1024; the groups cover the grid.
        assert all(side >= 1 for side in group)
        assert math.prod(grid) == math.prod(shape)
        assert list(grid) == (list(shape)[::-1] + [1, 1])[:3]
        # No more than a group's worth of rounding above one thread an element, but for the smallest group.
        assert threads <= max(32, -(-math.prod(shape) // 32) * 32), shape
        if max(shape) <= 8:
            assert threads == 32, shape
        elif max(shape) <= 32:
            assert threads <= 256, shape


def test_large_shapes_get_many_threads():
    for shape in random_shapes():
        if math.prod(shape) >= 1024 and max(shape) > 32:
            assert math.prod(suggest_threadgroup(shape)) >= 512, shape


def test_a_cooperative_launch_is_one_group():
    assert suggest_launch((5, 5), cooperative=True) == ((32, 1, 1), (32, 1, 1))
    assert suggest_launch((9, 9), cooperative=True) == ((96, 1, 1), (96, 1, 1))
    assert suggest_launch((32, 32), cooperative=True) == ((256, 1, 1), (256, 1, 1))
    assert suggest_launch((500, 700), cooperative=True) == ((1024, 1, 1), (1024, 1, 1))


@pytest.mark.parametrize("shape, error, message", [
    ((), ValueError, "shape: expected one to three dimensions, got 0"),
    ((1, 2, 3, 4), ValueError, "shape: expected one to three dimensions, got 4"),
    ((3, 0), ValueError, r"shape: every dimension must be at least 1, got \(3, 0\)"),
    (-1, ValueError, r"shape: every dimension must be at least 1, got \(-1,\)"),
    (2.5, TypeError, "shape: expected an integer or one to three integers, got 2.5"),
    ("ab", TypeError, "shape: expected an integer or one to three integers, got 'ab'"),
])
def test_wrong_shapes_are_named(shape, error, message):
    for function in (suggest_threadgroup, suggest_launch):
        with pytest.raises(error, match=message):
            function(shape)


def test_the_device_must_be_there():
    for device in smelt.devices():
        assert suggest_threadgroup((64, 64), device) == (32, 32, 1)
    for call in (lambda: suggest_threadgroup(5, "tpu"), lambda: suggest_launch(5, "tpu", cooperative=True)):
        with pytest.raises(ValueError, match="device: expected one of cpu, cpu-scalar.*, got 'tpu'"):
            call()


def test_kernels_run_with_what_is_suggested():
    import numpy as np

    kernel = smelt.metal_kernel(name="places", input_names=[], output_names=["out"], source="""
        uint3 at = thread_position_in_grid, size = threads_per_grid;
        out[(at.z * size.y + at.y) * size.x + at.x] = (at.z * size.y + at.y) * size.x + at.x;""")
    for shape in [(1,), (7,), (1500,), (3, 5), (40, 33), (2, 3, 4), (65, 2, 9)]:
        grid, threadgroup = suggest_launch(shape)
        out = np.asarray(kernel(inputs=[], grid=grid, threadgroup=threadgroup, output_shapes=[shape],
                                output_dtypes=[smelt.int32], init_value=-1)[0])
        assert (out == np.arange(math.prod(shape)).reshape(shape)).all()
