"""Documents keep to docs/style.md: short sentences, none of the words and constructions that it has others for.

`python tests/test_prose.py FILE...` prints what is found in these files.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from test_house import files

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 35
"""Words in a sentence."""

CONSTRUCTIONS = {
    r"\btold\b": "receives, reports, passes",
    r"\b(?:is|are|was|were|be|been) held (?:against|to)\b|\bheld against\b": "validated against, compared with",
    r"\banew\b": "again",
    r"\b(?:whoever|whomever|thereof|thereby|hereby|likewise)\b": "plainer words",
    r"\b(?:all|nothing) but\b": "nearly, only",
    r"\bfor want of\b": "because there is no",
    r"\bcame (?:out|to)\b|\bcomes (?:out|to)\b": "results in, is",
    r"\bso (?:many|much)\b(?! (?:that|as|for|faster|more|less))": "the number, the amount",
    r"\bdear(?:est|er)?\b": "expensive",
    r"\bwho runs (?:it|them|the)\b": "the user",
    r"\b(?:he|she|his|her|him)\b": "you, the user",
    r"^(?:What|Who|Whose)\b[^?]*[.:;]$": "a subject that is a noun",
}
"""Regular expressions over a sentence, and what to write."""

NOT_PROSE = {"docs/style.md"}
"""The page that lists the words; one that prints the program's help."""


def documents() -> list[Path]:
    """By a walk: an archive has no git to ask."""
    return sorted(path for path in files(".md") if path.relative_to(ROOT).as_posix() not in NOT_PROSE)


def paragraphs(text: str) -> list[tuple[int, str]]:
    """Paragraphs, list items, headings and cells of tables, each with the line on which it begins; no code, no HTML."""
    found: list[tuple[int, str]] = []
    lines: list[str] = []
    start, fenced = 0, False

    def end() -> None:
        if lines:
            found.append((start, " ".join(lines)))
        lines.clear()

    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if re.match(r"(```|~~~)", stripped):
            end()
            fenced = not fenced
            continue
        if fenced or (line.startswith(("    ", "<")) and not lines):
            continue
        if stripped.startswith("|"):
            end()
            found += [(number, cell.strip()) for cell in re.split(r"(?<!\\)\|", stripped)[1:-1]]
            continue
        bullet = re.match(r"(?:[-*+]|\d+\.|#+|>)\s+", stripped)
        if not stripped or bullet:
            end()
        if stripped:
            if not lines:
                start = number
            lines.append(stripped[bullet.end() :] if bullet else stripped)
        if stripped.startswith("#"):
            end()
    end()
    return found


def sentences(paragraph: str) -> list[str]:
    """Its sentences, with links as their words and code as one word."""
    text = re.sub(r"!?\[((?:[^][]|\[[^][]*\])*)\]\([^)]*\)", r"\1", paragraph)
    text = re.sub(r"`[^`]+`", "code", text)
    text = re.sub(r"<[^>]+>|\$[^$]+\$", "", text)
    text = re.sub(r"\b(e\.g|i\.e|cf|vs|et al|Fig|Sec|No|approx|incl|resp)\.", r"\1", text)
    return [
        part for part in re.split(r"(?<=[.!?:;])[\"')*_]*\s+(?=[\"'(*_]*[A-Z0-9a-z])", text) if part.strip()
    ]


def faults(text: str) -> list[str]:
    found = []
    for line, paragraph in paragraphs(text):
        for sentence in sentences(paragraph):
            words = re.findall(r"[A-Za-z0-9][\w.,%'/+-]*", sentence)
            if len(words) > LONGEST:
                found.append(f"{line}: {len(words)} words: {sentence[:100]} ...")
            for pattern, instead in CONSTRUCTIONS.items():
                if match := re.search(pattern, sentence):
                    found.append(f'{line}: "{match[0][:40]}": write {instead}: {sentence[:100]}')
    return found


@pytest.mark.parametrize("path", documents(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_documents_keep_to_the_style(path: Path) -> None:
    found = faults(path.read_text())
    assert not found, "\n".join([f"see docs/style.md; {path}:", *found])


def test_faults_are_found_and_good_sentences_are_not() -> None:
    long = "The sender " + "sends and waits and " * 10 + "stops."
    planted = {
        long: "words",
        "The machine is told when a packet arrives.": "told",
        "What a server holds for a client is released.": "noun",
        "- Runs are made anew after a change.": "anew",
        "| key | all but nothing was lost |": "nearly",
        "It is held against ns-2.": "validated",
    }
    for text, word in planted.items():
        assert any(word in fault for fault in faults(text)), text
    good = (
        "Spurious losses are detected and the window is restored. What does the queue do? See `told.rs`.\n\n"
        "```\ntold\n```\n\n| a | b |\n|---|---|\n| the sender reports it | [units](units.md#told) |\n"
    )
    assert faults(good) == []


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for fault in faults(Path(name).read_text()):
            print(f"{name}:{fault}")
