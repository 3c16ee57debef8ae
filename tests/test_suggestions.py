"""Suggestions for words that users mistype, and what they are chosen from."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from paceline.messages.argument_names import meant, near
from paceline.results.columns import measures_by_table

PACKAGE = Path(__file__).parents[1] / "python" / "paceline"


@pytest.mark.parametrize(
    ("word", "longer", "found"),
    [
        ("cubik", False, ["cubic"]),
        ("cubi", True, ["cubic", "cubic-quic"]),
        ("CUBIC", True, []),
        ("", True, []),
        ("zzz", False, []),
    ],
)
def test_similar_words(word: str, longer: bool, found: list[str]) -> None:
    assert near(word, ["cubic", "vegas", "cubic-quic", "cubic"], longer=longer) == found


def test_a_suggestion_has_as_many_words_as_asked() -> None:
    assert meant("rate", ["rates", "rated", "late"], 2) == " (did you mean rates or rated?)"
    assert meant("rate", []) == ""


def test_one_function_looks_for_similar_words() -> None:
    users = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import) and any(name.name == "difflib" for name in node.names)
    ]
    assert users == ["messages/argument_names.py"]


def test_measures_are_read_once_and_stay_as_they_are() -> None:
    known = measures_by_table()
    assert measures_by_table() is known
    assert "goodput_bps" in known["flows"]
    with pytest.raises(TypeError):
        known["flows"] = ()  # type: ignore[index]
