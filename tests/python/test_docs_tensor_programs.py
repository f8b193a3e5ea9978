"""The pages on products with tensor operations do what they say."""
import re
import shlex
import subprocess

import pytest
from snippets import ROOT, run_page

pytest.importorskip("numpy")
PAGES = ["tensors-matmul", "tensors-inline", "tensors-quantised", "tensors-own-format", "tensors-attention"]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    run_page(f"docs/{page}.md")


@pytest.mark.parametrize("page", PAGES)
def test_its_command_runs(page, build_folder):
    [command] = [block for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(), re.S)]
    words = shlex.split(command.replace("\\\n", " "))
    assert words[0] == "smelt"
    subprocess.run([f"{build_folder}/bin/smelt", *words[1:]], cwd=ROOT, check=True, capture_output=True)
