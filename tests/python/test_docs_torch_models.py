"""docs/python-models.md does what it says."""
import sys
import types

import pytest
from snippets import run_page

pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_the_page_runs(monkeypatch):
    # torch.export looks up what functions refer to in the module of their name.
    page = types.ModuleType("__page__")
    monkeypatch.setitem(sys.modules, "__page__", page)
    run_page("docs/python-models.md", vars(page))
