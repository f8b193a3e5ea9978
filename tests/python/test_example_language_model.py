"""examples/python/language_model: a small Llama writes text that can be read, with parts and weights replaced."""

import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "language_model"
sys.path.insert(0, str(FOLDER))

import generate  # noqa: E402
import letters  # noqa: E402
import smelt.torch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

# The most frequent words of the text that the model learned: half of all its words.
FREQUENT = set("""the and of to that in he shall unto for i his a lord they be is him not them it with all thou thy was god
which my me said but ye their have as israel from king son upon when were on this are by her you house had who so out up
came there man your children will if went also land then men his before against thee things people us she or an at into
because every hand day we one what let made""".split())
PASSAGE = "And it came to pass in those days, that he went out into a mountain to pray, and continued all night in prayer to God."


def nats_per_letter(model):
    tokens = letters.encode(PASSAGE)[None]
    with torch.no_grad():
        return model(tokens, labels=tokens).loss.item()


def test_most_words_are_words():
    torch.manual_seed(1)
    text, report = generate.write("And the king said unto ", 400, "int8", temperature=0.7)
    words = "".join(letter if letter.isalpha() else " " for letter in text.lower()).split()
    assert sum(word in FREQUENT for word in words) > 0.4 * len(words), text
    assert "replaced: 5 × gated MLP" in report and "int8 weights" in report


def test_the_text_is_that_of_the_model_as_it_is():
    stock = letters.load_model()
    prompt = letters.encode("In the beginning ")[None]
    expected = stock.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=60, do_sample=False, pad_token_id=0)
    assert generate.write("In the beginning ", 60, None)[0] == letters.decode(expected[0])


@pytest.mark.parametrize("weights, most", [(None, 1e-3), ("int8", 0.01), ("fp8", 0.03), ("int4", 0.15)])
def test_packed_weights_predict_nearly_as_well(weights, most):
    stock = nats_per_letter(letters.load_model())
    model = letters.load_model()
    smelt.torch.optimize(model, weights=weights)
    assert stock < 1.4 and abs(nats_per_letter(model) - stock) < most


def test_the_command():
    done = subprocess.run([sys.executable, str(FOLDER / "generate.py"), "--letters", "40", "--prompt", "Then "],
                          capture_output=True, text=True)
    assert done.returncode == 0 and "\n\nThen " in done.stdout, done.stderr
