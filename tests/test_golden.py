"""Every scheme of the registry has a page, and a golden run that gives the same numbers for ever.

After a change of behaviour that is meant:

    PACELINE_BLESS=1 .venv/bin/python -m pytest tests/test_golden.py tests/test_platforms.py
"""

from __future__ import annotations

import os
import re

import pytest

import paceline
from golden import GOLDEN, PAGES, Golden, as_text, draw, fingerprint

BLESS = os.environ.get("PACELINE_BLESS") == "1"
SCHEMES = {scheme["name"]: scheme for scheme in paceline.controllers()}


def written(name: str) -> str:
    """The name under which a scheme is written: of a variant that of all of them."""
    return str(SCHEMES[name].get("variant_of", {}).get("name", name))


def page_of(name: str) -> str:
    """The text of the page that the table of controllers names for a scheme."""
    table = (PAGES / "README.md").read_text()
    rows = [line for line in table.split("\n") if re.match(rf"\|[^|]*`{name}`[^|]*\|", line)]
    assert len(rows) == 1, f"docs/controllers/README.md has {len(rows)} rows for {name}"
    found = re.search(r"\((\S+\.md)\)", rows[0])
    assert found, f"the row of {name} in docs/controllers/README.md names no page"
    return (PAGES / found[1]).read_text()


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_has_a_page(name: str) -> None:
    page = page_of(written(name))
    title = page.split("\n", 1)[0]
    assert title.startswith("# "), f"the page of {name} has no title"
    assert f"`{written(name)}`" in title, f"the page of {name} does not name it in its title"
    for parameter in SCHEMES[name]["params"]:
        assert re.search(rf"^\| `{parameter['name']}` \|", page, flags=re.MULTILINE), (
            f"the page of {name} does not have its parameter {parameter['name']} in a table"
        )
    assert re.search(r"\bSources?\b|RFC \d+", page), f"the page of {name} names no source"
    assert f"](golden/{name}.svg)" in page, f"the page of {name} does not show its golden run"


@pytest.mark.parametrize("name", SCHEMES)
def test_the_golden_run_is_what_it_was(name: str) -> None:
    golden = Golden(name)
    text = as_text(golden.run())
    if BLESS:
        golden.numbers.write_text(text)
        if not golden.picture.exists() or fingerprint(text) not in golden.picture.read_text():
            golden.picture.write_text(draw(text))
    assert golden.numbers.exists(), f"{name} has no golden run: PACELINE_BLESS=1 makes it"
    kept = golden.numbers.read_text()
    if text != kept:
        pairs = zip(kept.split("\n"), text.split("\n"), strict=False)
        n, (was, now) = next((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1])
        pytest.fail(f"{name}.csv, line {n} was {was} and is {now}; if that is meant, bless it", pytrace=False)
    assert f"numbers: {fingerprint(kept)} " in golden.picture.read_text(), f"{name}.svg is of other numbers"


def test_no_golden_run_without_a_scheme() -> None:
    kept = {path.stem for path in GOLDEN.iterdir()} - {"README", "default"}
    assert kept == set(SCHEMES)


def test_the_figure_is_drawn_from_the_numbers() -> None:
    text = Golden("cubic").numbers.read_text()
    assert draw(text) == draw(text)
    other = text.replace(",0,", ",7,", 1)
    assert draw(other) != draw(text)
