"""What the site makes of a document's text: its links, and Markdown that GitHub reads more generously."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

SITE = Path(__file__).resolve().parent.parent / "site"


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SITE))
    return importlib.import_module("places")


@pytest.fixture
def dialect(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SITE))
    return importlib.import_module("dialect")


@pytest.mark.parametrize(
    ("link", "there"),
    [
        ("measures.md", "measures.md"),
        ("measures.md#what", "measures.md#what"),
        ("../README.md", "overview.md"),
        ("../README.md#speed", "overview.md#speed"),
        ("controllers/README.md", "controllers/index.md"),
        ("controllers", "controllers/index.md"),
        ("papers/voap.md", "papers/voap.md"),
        ("../papers/voap/README.md", "reproductions/voap.md"),
        ("../crates/control/src/vegas.rs", "files/crates/control/src/vegas.rs.md"),
        ("../crates/control/src", "files/crates/control/src/index.md"),
        ("../examples/notebook.ipynb", "files/examples/notebook.ipynb"),
        ("https://example.org/x.md", "https://example.org/x.md"),
        ("#below", "#below"),
    ],
)
def test_links_lead_to_pages(places: ModuleType, link: str, there: str) -> None:
    met: list[str] = []
    text = places.mended(f"See [it]({link}) and [`code`]({link}).", "docs/links.md", "links.md", met.append)
    assert text == f"See [it]({there}) and [`code`]({there})."
    assert bool(met) == (not link.startswith(("https", "#")))


def test_links_count_from_the_page(places: ModuleType) -> None:
    text = places.mended(
        "[a](../measures.md) ![b](golden/vegas.svg)",
        "docs/controllers/vegas.md",
        "controllers/vegas.md",
        lambda _: None,
    )
    assert text == "[a](../measures.md) ![b](golden/vegas.svg)"
    text = places.mended("[a](docs/measures.md)", "README.md", "overview.md", lambda _: None)
    assert text == "[a](measures.md)"
    text = places.mended(
        "[a](../docs/measures.md)", "bench/README.md", "files/bench/index.md", lambda _: None
    )
    assert text == "[a](../../measures.md)"


def test_what_stands_in_code_is_no_link(places: ModuleType) -> None:
    text = "`[a](nowhere.md)`\n\n```text\n[b](nowhere.md)\n```\n"
    assert places.mended(text, "docs/links.md", "links.md", lambda _: None) == text


def test_a_link_to_nothing_says_where_it_stands(places: ModuleType) -> None:
    with pytest.raises(LookupError, match=r"docs/links\.md: links to nowhere\.md"):
        places.mended("[a](nowhere.md)", "docs/links.md", "links.md", lambda _: None)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        pytest.param("Words:\n- one\n- two", "Words:\n\n- one\n- two", id="a list after words"),
        pytest.param("Words:\n1. one\n2. two", "Words:\n\n1. one\n2. two", id="a numbered one"),
        pytest.param("in the year\n2015. More", "in the year\n2015. More", id="a number that is no list"),
        pytest.param("- a\n  - b\n    - c\n- d", "- a\n    - b\n        - c\n- d", id="lists in lists"),
        pytest.param("- a\n\n  more of a", "- a\n\n    more of a", id="a second paragraph"),
        pytest.param("- a\n\nafter\n- b", "- a\n\nafter\n\n- b", id="words between lists"),
        pytest.param("Words\n| a |\n|---|\n| b |", "Words\n\n| a |\n|---|\n| b |", id="a table after words"),
        pytest.param(
            "| a |\n|---|\n| `x\\|y` |", "| a |\n|---|\n| `x|y` |", id="a pipe in the code of a cell"
        ),
        pytest.param("```text\nWords:\n- one\n```", "```text\nWords:\n- one\n```", id="code"),
        pytest.param("- a\n  ```sh\n  x\n  ```", "- a\n    ```sh\n    x\n    ```", id="code in a list"),
    ],
)
def test_githubs_markdown_becomes_pythons(dialect: ModuleType, written: str, wanted: str) -> None:
    assert dialect.translated(written) == wanted
