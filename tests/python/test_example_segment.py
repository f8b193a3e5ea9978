"""examples/python/segment.py: masks of fresh street scenes, with stock attention and with smelt's."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
sys.path.insert(0, str(EXAMPLES / "segmenter"))

import model  # noqa: E402
import scenes  # noqa: E402
import train  # noqa: E402

SCENES = 24


@pytest.fixture(scope="module")
def fresh():
    """Scenes that training never drew: pictures and labels."""
    first = int(np.random.default_rng().integers(20_000_000, 2**31))
    drawn = [scenes.draw(first + i) for i in range(SCENES)]
    return np.stack([picture for picture, _ in drawn]), torch.from_numpy(np.stack([labels for _, labels in drawn]))


def segmenter(attention):
    found = model.Segmenter(len(scenes.CLASSES), scenes.SIZE, attention)
    model.load_weights(found)
    return found.eval()


def words(count):
    return torch.arange(len(scenes.CLASSES)).expand(count, -1)


def test_masks_overlap_the_truth_with_either_attention(fresh):
    pixels, labels = fresh
    expected = labels[:, None] == torch.arange(len(scenes.CLASSES))[:, None, None]
    there = expected.any(3).any(2)
    with torch.no_grad():
        results = {name: segmenter(attention)(model.as_pictures(pixels), words(SCENES)) for name, attention in model.ATTENTIONS.items()}
    for name, logits in results.items():
        mean = model.overlap(logits > 0, expected)[there].mean()
        assert mean > 0.85, f"{name} attention: mean overlap {mean:.3f}"
    torch.testing.assert_close(results["smelt"], results["stock"], rtol=1e-3, atol=1e-3)


def test_a_word_alone_gives_the_mask_it_gives_among_others(fresh):
    pictures, found = model.as_pictures(fresh[0][:3]), segmenter(model.stock_attention)
    with torch.no_grad():
        together = found(pictures, words(3))
        for i in (0, 5):
            torch.testing.assert_close(found(pictures, torch.full((3, 1), i))[:, 0], together[:, i], rtol=1e-4, atol=1e-4)


def test_gradients_of_training_are_those_of_stock_attention(fresh):
    pixels, labels = fresh
    made = {}
    for name, attention in model.ATTENTIONS.items():
        found = segmenter(attention)
        logits = found(model.as_pictures(pixels[:4]), words(4))
        expected = (labels[:4, None] == torch.arange(len(scenes.CLASSES))[:, None, None]).float()
        torch.nn.functional.binary_cross_entropy_with_logits(logits, expected).backward()
        made[name] = torch.cat([value.grad.flatten() for value in found.parameters()])
    assert torch.linalg.norm(made["smelt"] - made["stock"]) < 1e-4 * torch.linalg.norm(made["stock"])


def test_training_lowers_the_loss(tmp_path):
    torch.manual_seed(0)
    new = model.Segmenter(len(scenes.CLASSES), scenes.SIZE, model.smelt_attention)
    pixels, labels = train.draw_scenes(0, 4)
    pictures, expected = model.as_pictures(pixels), train.masks_of(torch.from_numpy(labels))
    before = train.loss_of(new(pictures, words(4)), expected).item()
    train.train(new, "cpu", steps=6, until=6, batch=4, count=4, out=tmp_path / "weights.safetensors")
    assert train.loss_of(new(pictures, words(4)), expected).item() < before - 0.1


def test_the_demo_has_the_package_of_these_weights(fresh):
    """Its masks are the model's; `make demo` runs it."""
    from smelt.graph import InferenceSession
    pictures, word = model.as_pictures(fresh[0][:1]), torch.tensor([[5]])
    found = InferenceSession().load(EXAMPLES.parent / "demo" / "segmenter.smeltlib").execute(pictures, word)[0].to_numpy()
    with torch.no_grad():
        expected = segmenter(model.stock_attention)(pictures, word)
    torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-3, atol=1e-3)


def test_scenes_are_those_of_their_seed():
    first, again, other = scenes.draw(5), scenes.draw(5), scenes.draw(6)
    assert (first[0] == again[0]).all() and (first[1] == again[1]).all() and (first[0] != other[0]).any()
    assert first[0].shape == (scenes.SIZE, scenes.SIZE, 3) and first[1].max() < len(scenes.CLASSES)


def test_the_commands(tmp_path):
    def run(*arguments):
        return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=True).stdout

    scene = tmp_path / "scene.png"
    run(EXAMPLES / "segmenter" / "scenes.py", scene, "--seed", 20_000_007)
    said = run(EXAMPLES / "segment.py", "--image", scene, "--prompt", "car")
    assert float(said.split("intersection over union: ")[1]) > 0.85
    before, after = np.asarray(Image.open(scene)).astype(int), np.asarray(Image.open(tmp_path / "scene.car.png")).astype(int)
    cars = np.asarray(Image.open(tmp_path / "scene.labels.png")) == scenes.CLASSES.index("car")
    changed = (before != after).any(2)
    assert (changed == cars).mean() > 0.97 and (after[changed][:, 2] > after[changed][:, 0]).all()
