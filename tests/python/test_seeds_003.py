"""Document 003 of the seeds: its runnable Python, word for word but for the import, with its asserts.

It gives exp and the forward grid_sample whole. The strided kernel comes without a call, so the call is ours. Its
reference elides three of the four masks ("similar for …"), so the comparison is with our own, and the reference's
kept part runs where all corners lie inside. The VJP elides its body ("compute gradients"): the complete one is
examples/python/grid_sample.py, tested in test_example_grid_sample.py; what is checked here is that the host part, as
printed, runs with a complete kernel."""

import grid_sample_reference as reference
import numpy as np
import pytest
import seeds
import smelt

@pytest.fixture(scope="module")
def regions():
    return seeds.python_regions(seeds.document("003"))


def run(code: str, **names):
    """Runs a region; later ones use the import of the first one."""
    exec(compile(seeds.with_smelt(code), "seed 003", "exec"), names := {"mx": smelt, **names})
    return names


def assert_close(actual, expected, tolerance):
    assert actual.shape == expected.shape
    error = np.abs(np.asarray(actual).astype(np.float64) - expected)
    assert (error <= tolerance * (1 + np.abs(expected))).all(), f"off by {error.max()}"


def test_exp(regions):
    code = seeds.find_block(regions, "def exp_elementwise(")
    assert "assert mx.allclose(b, mx.exp(a))" in code
    for _ in range(20):
        names = run(code)
        assert names["b"].dtype == smelt.float16 and names["b"].shape == (4, 16)


def test_templates_of_every_kind(regions):
    template = run(seeds.find_block(regions, "template=[", "USE_BIAS"))["template"]
    kernel = smelt.metal_kernel(name="templates", input_names=[], output_names=["out"],
                                source="out[thread_position_in_grid.x] = USE_BIAS ? T(N) + T(0.5) : T(0);")
    out = kernel(inputs=[], template=template, grid=(3, 1, 1), threadgroup=(3, 1, 1), output_shapes=[(3,)],
                 output_dtypes=[smelt.float32])[0]
    assert np.asarray(out).tolist() == [256.5] * 3


@pytest.mark.parametrize("view", [lambda a: a, lambda a: a[::2], lambda a: a[1:, ::3], lambda a: a.T])
def test_strided_exp(regions, view):
    kernel = run(seeds.find_block(regions, 'name="myexp_strided"'))["kernel"]
    a = view(np.random.default_rng().standard_normal((4, 16)).astype(np.float16))
    out = kernel(inputs=[a], template=[("T", smelt.float16)], grid=(a.size, 1, 1), threadgroup=(256, 1, 1),
                 output_shapes=[a.shape], output_dtypes=[smelt.float16])[0]
    expected = np.exp(a.astype(np.float64))
    assert np.abs(np.asarray(out) / expected - 1).max() < 1.01 * 2**-11


def images(shape, points, reach):
    rng = np.random.default_rng()
    return (rng.standard_normal(shape).astype(np.float32),
            rng.uniform(-reach, reach, (shape[0], *points, 2)).astype(np.float32))


@pytest.mark.parametrize("shape, points", [((1, 4, 6, 4), (3, 5)), ((2, 5, 7, 33), (3, 4)), ((3, 1, 1, 2), (2, 3))])
def test_grid_sample_forward(regions, shape, points):
    grid_sample = run(seeds.find_block(regions, "def grid_sample(", "name=\"grid_sample\""))["grid_sample"]
    x, grid = images(shape, points, 1.3)
    assert_close(grid_sample(smelt.array(x), smelt.array(grid)), reference.forward(x, grid), 1e-5)


def test_grid_sample_reference_inside_the_image(regions):
    """As printed, with one mask of four: right where no corner lies outside."""
    grid_sample_ref = run(seeds.find_block(regions, "def grid_sample_ref("))["grid_sample_ref"]
    x, grid = images((2, 5, 7, 3), (3, 4), 0.6)
    assert_close(grid_sample_ref(smelt.array(x), smelt.array(grid)), reference.forward(x, grid), 1e-5)


MASKS = """
    mask_ne = (iy_ne >= 0) & (iy_ne <= H_in - 1) & (ix_ne >= 0) & (ix_ne <= W_in - 1)
    mask_sw = (iy_sw >= 0) & (iy_sw <= H_in - 1) & (ix_sw >= 0) & (ix_sw <= W_in - 1)
    mask_se = (iy_se >= 0) & (iy_se <= H_in - 1) & (ix_se >= 0) & (ix_se <= W_in - 1)
    I_ne *= mask_ne[..., None]
    I_sw *= mask_sw[..., None]
    I_se *= mask_se[..., None]
"""


def test_grid_sample_reference_completed(regions):
    """With the other masks, written out. Rows and columns outside are brought inside first, which the masks make good:
    MLX leaves what an index outside reads undefined."""
    code = seeds.find_block(regions, "def grid_sample_ref(")
    code = code.replace("    # ... similar for others\n", MASKS).replace("    # Gather values from corners\n", "")
    assert code.count("I_se *=") == 1
    names = run(code)
    x, grid = images((2, 5, 7, 3), (3, 4), 0.9)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    # Points of the padded image, which has a border of zeros: every corner exists.
    scaled = grid * np.array([7 / 9, 5 / 7], np.float32)
    assert_close(names["grid_sample_ref"](smelt.array(padded), smelt.array(scaled)), reference.forward(x, grid), 1e-4)


COMPLETE_VJP = """
    int gH = grid_shape[1], gW = grid_shape[2];
    int w_stride = C, h_stride = W * C, b_stride = H * W * C;
    uint grid_idx = elem / C_padded * 2;
    float ix = ((grid[grid_idx] + 1) * W - 1) / 2, iy = ((grid[grid_idx + 1] + 1) * H - 1) / 2;
    int ix_nw = floor(ix), iy_nw = floor(iy);
    int channel_idx = elem % C_padded;
    int base_idx = elem / C_padded / gH / gW * b_stride + channel_idx;
    float nw = (ix_nw + 1 - ix) * (iy_nw + 1 - iy);
    float cot = channel_idx < C ? cotangent[elem / C_padded * C + channel_idx] : 0.0f;
    float gix = 0, giy = 0, gix_mult = W / 2.0f, giy_mult = H / 2.0f;
    for (int k = 0; k < 4 && channel_idx < C; k++) {
        int column = ix_nw + k % 2, row = iy_nw + k / 2;
        if (column < 0 || column >= W || row < 0 || row >= H) continue;
        float across = k % 2 ? ix - ix_nw : ix_nw + 1 - ix, down = k / 2 ? iy - iy_nw : iy_nw + 1 - iy;
        int offset = base_idx + row * h_stride + column * w_stride;
        gix += (k % 2 ? down : -down) * x[offset] * cot;
        giy += (k / 2 ? across : -across) * x[offset] * cot;
        if (k) atomic_fetch_add_explicit(&x_grad[offset], across * down * cot, memory_order_relaxed);
    }
"""


@pytest.mark.parametrize("shape, points", [((1, 4, 6, 4), (3, 5)), ((2, 5, 7, 33), (3, 4)), ((2, 3, 3, 64), (2, 3))])
def test_grid_sample_vjp_completed(regions, shape, points):
    """Its kept parts (the corner nw, the sums over simdgroups, the host's code) with what it elides."""
    names = run(seeds.find_block(regions, "def grid_sample(", "name=\"grid_sample\""))
    code = seeds.find_block(regions, "def grid_sample_vjp(")
    assert "    // ... compute gradients ...\n" in code
    run(code.replace("    // ... compute gradients ...\n", COMPLETE_VJP), grid_sample=names["grid_sample"])
    x, grid = images(shape, points, 1.2)
    cotangent = np.random.default_rng().standard_normal((shape[0], *points, shape[3])).astype(np.float32)
    _, gradients = smelt.vjp(names["grid_sample"], [smelt.array(x), smelt.array(grid)], [smelt.array(cotangent)])
    for actual, wanted in zip(gradients, reference.backward(x, grid, cotangent), strict=True):
        assert_close(actual, wanted, 2e-4)
