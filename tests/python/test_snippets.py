"""tests/python/snippets.py: it runs a page's snippets, and notices what is not as the page says."""

import pytest
import snippets

PAGE = """# A page
```python
x = 20
print(x + 1)
```
which prints

```text
21
```

```sh
this is not Python
```
```python
print("one of", x * 2, "things")
raise ValueError("too many")
```
```text
one of ... things
ValueError: too many
```
"""


def run(page: str) -> dict:
    namespace: dict = {}
    for snippet in snippets.snippets(page):
        snippets.run_snippet(snippet, "page.md", namespace)
    return namespace


def test_snippets_share_a_namespace_and_print_what_the_page_says():
    assert run(PAGE)["x"] == 20


@pytest.mark.parametrize("change", [("21", "22"), ("one of ...", "two of ..."), ("ValueError: too", "TypeError: too"),
                                    ("x = 20", "x = y"), ("21", "21\n22"), ('print("one of"', 'print("one off"')])
def test_a_difference_is_an_error_that_names_the_line(change):
    with pytest.raises(AssertionError, match=r"page\.md:\d+: "):
        run(PAGE.replace(*change))


def test_an_exception_that_the_page_does_not_show_is_an_error():
    with pytest.raises(AssertionError, match="page.md:2: the snippet raised an exception:\nKeyError"):
        run("```python\n{}['a']\n```\n")


def test_warnings_are_printed():
    run("```python\nimport warnings\nwarnings.warn('hot')\n```\n```text\nUserWarning: hot\n```\n")


def test_output_behind_another_block_belongs_to_no_snippet():
    found = snippets.snippets("```python\n1\n```\n```sh\nls\n```\n```text\nfiles\n```\n")
    assert [s.expected for s in found] == [None]


def test_a_block_without_an_end_is_an_error():
    with pytest.raises(ValueError, match="line 2: the block has no end"):
        snippets.snippets("\n```python\nx = 1\n")


def test_an_exception_of_a_module_may_be_shown_by_its_bare_name():
    assert snippets.matches("smelt.launch.flags.KernelFlagError: no\n", "KernelFlagError: no")
    assert not snippets.matches("a.KernelFlagError: no\n", "KernelFlagErro: no")
