"""Which MUST of an RFC Paceline carries out, and the tests of each: `tests/requirements/rfcNNNN.toml`.

Each file has an entry for each sentence with MUST, SHALL or REQUIRED in the numbered sections of its RFC, in the RFC's
order and in Paceline's words. `problems` checks a file against the sources, `page` prints all of them as
docs/requirements.md.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

ROOT = Path(__file__).resolve().parent.parent
WHERE = ROOT / "tests" / "requirements"

Words = Annotated[str, msgspec.Meta(min_length=1)]
Profile = Literal["linux", "ns2", "ns2-linux", "rack"]
Kind = Literal["tested", "untested", "missing", "others"]

REASONS: dict[str, Kind] = {
    "needs no test: ": "untested",
    "not carried out: ": "missing",
    "for the other end: ": "others",
    "for the IETF: ": "others",
}
"""How a reason for having no test begins, and what it says of the requirement."""


class Requirement(msgspec.Struct, forbid_unknown_fields=True):
    """A sentence of an RFC. It has one of `tests`, `untested` and `without`."""

    section: Annotated[str, msgspec.Meta(pattern=r"^\d+(\.\d+)*$")]
    says: Words
    """What it requires."""
    code: str = ""
    """The file that carries it out."""
    tests: list[Words] = msgspec.field(default_factory=list)
    """FILE::NAME of each test that fails if it is broken."""
    untested: str = ""
    """What a test would have to do."""
    without: str = ""
    """Why there is no test: one of `REASONS`, and more."""
    note: str = ""
    """A limit of what is said here."""
    profiles: dict[Profile, Words] = msgspec.field(default_factory=dict)
    """Where a profile, or `recovery = "rack"`, breaks it on purpose: what is done instead."""

    @property
    def kind(self) -> Kind:
        if self.tests:
            return "tested"
        return (
            "untested" if self.untested else next(REASONS[r] for r in REASONS if self.without.startswith(r))
        )


class Document(msgspec.Struct, forbid_unknown_fields=True):
    """An RFC and its requirements."""

    number: int
    title: Words
    count: int
    """The number of its requirements."""
    requirement: list[Requirement]
    counted: Literal["sentences", "steps"] = "sentences"
    """An RFC without these words has numbered steps instead."""
    text: str = ""
    """The text from which they were counted, if it is not rfcNNNN.txt."""
    note: str = ""

    @property
    def name(self) -> str:
        return self.text or f"rfc{self.number}.txt"


def documents() -> list[Document]:
    """All files, by number. Raises msgspec.ValidationError if one is invalid."""
    return [read(path.read_text()) for path in sorted(WHERE.glob("rfc*.toml"))]


def read(text: str) -> Document:
    """A file. Raises msgspec.ValidationError if it is invalid."""
    return msgspec.toml.decode(text, type=Document)


def problems(document: Document) -> Iterator[str]:
    """What is wrong with a document's entries."""
    where = f"rfc{document.number}"
    if len(document.requirement) != document.count:
        yield f"{where}: {len(document.requirement)} entries for {document.count} requirements"
    for number, one in enumerate(document.requirement, 1):
        for problem in _problems(one):
            yield f"{where}, entry {number} (section {one.section}): {problem}"


def _problems(one: Requirement) -> Iterator[str]:
    if sum(map(bool, (one.tests, one.untested, one.without))) != 1:
        yield "needs one of `tests`, `untested` and `without`"
    if one.without and not one.without.startswith(tuple(REASONS)):
        yield f"`without` must begin with one of {', '.join(map(repr, REASONS))}"
    carried_out = one.tests or one.untested or one.without.startswith("needs no test: ")
    if carried_out and not one.code:
        yield "`code` must name the file that carries it out"
    if one.code and not (ROOT / one.code).is_file():
        yield f"no file {one.code}"
    for test in one.tests:
        file, _, name = test.partition("::")
        if not (ROOT / file).is_file():
            yield f"no file {file}"
        elif name not in tests_of(file):
            yield f"no test {name} in {file}"


@functools.cache
def tests_of(file: str) -> frozenset[str]:
    """The names of the tests in a file."""
    text = (ROOT / file).read_text()
    if file.endswith(".py"):
        return frozenset(re.findall(r"^def (test_\w+)\(", text, flags=re.MULTILINE))
    return frozenset(re.findall(r"#\[test\]\s+(?:#\[[^\]]*\]\s+)*fn (\w+)\(", text))


# ---------------------------------------------------------------------------------------------- the RFC's text


def counted(document: Document, text: str) -> int:
    """The number of requirements in the RFC's own text."""
    if document.counted == "steps":
        return len(re.findall(r"^ {3}\d+\) ", _body(text), flags=re.MULTILINE))
    return len(list(required(text)))


def required(text: str) -> Iterator[str]:
    """The sentences with MUST, SHALL or REQUIRED, without those that explain these words."""
    for paragraph in _paragraphs(_body(text)):
        if "key words" in paragraph.lower():
            continue
        for sentence in re.split(r"(?<=[.;!?])\s+(?=[A-Z(*o\"])", paragraph):
            if re.search(r"\b(MUST|SHALL|REQUIRED)\b", sentence):
                yield sentence


def _body(text: str) -> str:
    """The numbered sections: no abstract, no table of contents, no appendices, no heads and feet of pages."""
    if "--- middle" in text:  # kramdown's Markdown
        return text.partition("--- middle")[2].partition("--- back")[0]
    lines = [
        line
        for line in text.replace("\f", "\n").split("\n")
        if not re.search(r"\[Page \d+\]$|^RFC \d+ .* \d{4}$", line)
    ]
    heads = [n for n, line in enumerate(lines) if re.match(r"1\.\s+Introduction$", line)]
    ends = [
        n for n, line in enumerate(lines) if re.match(r"(Appendix A\.|Acknowledg|Authors' Addresses)", line)
    ]
    begin = heads[-1]
    return "\n".join(lines[begin : min(n for n in [*ends, len(lines)] if n > begin)])


def _paragraphs(body: str) -> Iterable[str]:
    """Paragraphs on one line each; one that a page's end divides is whole."""
    whole: list[str] = []
    for part in re.split(r"\n\s*\n", body):
        goes_on = whole and not re.search(r"[.:;!?)]\s*$", whole[-1]) and re.match(r"\s*[a-z]", part)
        if goes_on and not re.match(r"\d", part):
            whole[-1] += "\n" + part
        else:
            whole.append(part)
    return [" ".join(part.split()) for part in whole]


# ---------------------------------------------------------------------------------------------------- the page


HEAD = """# Requirements of the RFCs

Which requirement of an RFC Paceline carries out, and which test fails if it is broken. The tables come from
`tests/requirements/`; [contributing](../CONTRIBUTING.md#add-a-requirement) says how to change them.

A requirement is a sentence with MUST, MUST NOT, SHALL or REQUIRED in the numbered sections of an RFC. It is given in
Paceline's words: read the RFC before you rely on it. Profile `rfc` is meant unless a profile is named.

| | means |
|---|---|
| tested | a test fails if the requirement is broken |
| no test | carried out, but no test would notice a fault; or none is needed, for the reason given |
| not carried out | Paceline does something else, or has no such part |
| for others | the requirement is on the IETF, a registry or the other end |

"""
ORDER: tuple[Kind, ...] = ("tested", "untested", "missing", "others")


def page(of: Iterable[Document]) -> str:
    """docs/requirements.md."""
    of = list(of)
    rows = [(f"[RFC {one.number}](#rfc-{one.number})", one.title, one) for one in of]
    text = HEAD + "| RFC | | requirements | tested | no test | not carried out | for others |\n"
    text += "|---|---|" + "---:|" * 5 + "\n"
    totals = dict.fromkeys(ORDER, 0)
    for link, title, document in rows:
        by_kind = {kind: sum(one.kind == kind for one in document.requirement) for kind in ORDER}
        totals = {kind: totals[kind] + by_kind[kind] for kind in ORDER}
        cells = " | ".join(str(by_kind[kind] or "") for kind in ORDER)
        text += f"| {link} | {title} | {document.count} | {cells} |\n"
    text += f"| | all | {sum(totals.values())} | {' | '.join(str(totals[kind]) for kind in ORDER)} |\n"
    return text + "".join(_section(document) for document in of)


def _section(document: Document) -> str:
    text = f"\n## RFC {document.number}\n{document.title}."
    if document.note:
        text += f" {document.note}"
    text += "\n\n| section | requirement | test, or why there is none |\n|---|---|---|\n"
    for one in document.requirement:
        text += f"| {one.section} | {one.says} | {_answer(one)} |\n"
    return text


def _answer(one: Requirement) -> str:
    if one.tests:
        links = (f"[`{name}`](../{file})" for file, _, name in (test.partition("::") for test in one.tests))
        said = ", ".join(links) + "."
    elif one.untested:
        said = f"**No test.** Carried out in {_file(one.code)}. A test would have to {one.untested}"
    else:
        reason, _, why = one.without.partition(": ")
        said = f"**{_capital(reason)}.** {_capital(why)}" + (f" ({_file(one.code)})" if one.code else "")
    others = (f"{_setting(profile)}: {does}" for profile, does in one.profiles.items())
    return " ".join(part for part in (said, one.note, *others) if part)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _file(code: str) -> str:
    return f"[{code.removeprefix('crates/')}](../{code})"


def _setting(profile: Profile) -> str:
    return '`recovery = "rack"`' if profile == "rack" else f"`{profile}`"
