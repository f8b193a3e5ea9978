"""examples/python/matrix_multiplication.py: every version on every device gives the same product."""

import numpy as np
import pytest


@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (33, 70, 17)])
def test_versions_agree(example, m, n, k):
    rng = np.random.default_rng()
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    for device in example.devices():
        for algorithm in example.ALGORITHMS:
            narrow = algorithm == "tensor_core" and device != "cpu"
            assert example.check(a, b, algorithm, device) < (1e-3 if narrow else 1e-5), (device, algorithm)


def test_it_prints_a_line_for_each(example, capsys):
    example.main(16, 16, 16)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [f"{device}/{name}" for device in example.devices()
                                                   for name in example.ALGORITHMS]
