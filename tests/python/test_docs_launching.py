"""docs/python-launching.md: every snippet runs and prints what the page says."""

import snippets


def test_every_snippet():
    snippets.run_page("docs/python-launching.md")
