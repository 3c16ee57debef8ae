"""The report of which MUST of an RFC is carried out, and by which test: tests/requirements/, docs/requirements.md.

The repository does not have the RFCs' texts. If the folder PACELINE_RFC has them (rfc5681.txt, ...), their requirements
are counted too. After a change of the files, write the page:

    PACELINE_BLESS=1 .venv/bin/python -m pytest tests/test_requirements.py
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

import rfcs

PAGE = rfcs.ROOT / "docs" / "requirements.md"
DOCUMENTS = rfcs.documents()
SECTION = '[[requirement]]\nsection = "4.2"\nsays = "Acknowledge."\n'
CODE = 'code = "crates/flow/src/tcp/receiver.rs"\n'
WHOLE = 'number = 1\ntitle = "One"\ncount = 1\n' + SECTION + CODE
TEST = "crates/flow/tests/rfc.rs::rfc_5681_4_2_delayed_acknowledgements"
TEXT = """
Abstract

   It MUST NOT be counted here.

1.  Introduction ....................... 2

1.  Introduction

   The key words "MUST", "SHALL" and "REQUIRED" are those of BCP 14.

   A sender MUST wait. It
   SHOULD sleep.  Then it MUST send; and it MUST

Somebody                     Standards Track                    [Page 1]
\f
RFC 1                            One                        January 2000

   stop.

   1) First.

   2) The MUSTARD is REQUIRED.

Appendix A.  More

   It MUST NOT be counted here.
"""


def named(document: rfcs.Document) -> str:
    return f"rfc{document.number}"


def found(text: str) -> list[str]:
    return list(rfcs.problems(rfcs.read(text)))


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_each_requirement_has_a_test_that_exists_or_a_reason(document: rfcs.Document) -> None:
    assert not list(rfcs.problems(document))


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_the_rfc_has_as_many_requirements(document: rfcs.Document) -> None:
    folder = os.environ.get("PACELINE_RFC")
    if folder is None:
        pytest.skip("PACELINE_RFC names no folder with the RFCs' texts")
    path = Path(folder) / document.name
    if not path.is_file():
        pytest.skip(f"no {path}")
    assert rfcs.counted(document, path.read_text()) == document.count


def test_the_page_is_that_of_the_files() -> None:
    fresh = rfcs.page(DOCUMENTS)
    if os.environ.get("PACELINE_BLESS") == "1":
        PAGE.write_text(fresh)
    assert PAGE.read_text() == fresh, "after a change of tests/requirements: PACELINE_BLESS=1"


def test_the_checker_accepts_whole_entries() -> None:
    assert found(WHOLE + f'tests = ["{TEST}"]\n') == []
    assert found(WHOLE + 'untested = "wait."\n') == []
    assert found(WHOLE.replace(CODE, "") + 'without = "for the IETF: a remark."\n') == []
    assert found(WHOLE + 'tests = ["tests/test_requirements.py::test_the_page_is_that_of_the_files"]\n') == []
    # In a macro of proptest, and below another attribute.
    assert "all_ways_of_a_segment_are_one" in rfcs.tests_of("crates/flow/src/tcp/fast_paths.rs")
    assert "a_receiver_is_exact" in rfcs.tests_of("crates/flow/tests/properties.rs")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (WHOLE + f'tests = ["{TEST}s"]\n', "no test rfc_5681_4_2_delayed_acknowledgementss in"),
        (WHOLE + 'tests = ["crates/flow/tests/none.rs::one"]\n', "no file crates/flow/tests/none.rs"),
        # A function that helps the tests is none.
        (WHOLE + 'tests = ["crates/flow/tests/rfc_recovery.rs::unconnected"]\n', "no test unconnected"),
        (
            WHOLE.replace("receiver.rs", "none.rs") + f'tests = ["{TEST}"]\n',
            "no file crates/flow/src/tcp/none.rs",
        ),
        (WHOLE.replace(CODE, "") + f'tests = ["{TEST}"]\n', "`code` must name"),
        (WHOLE.replace(CODE, "") + 'without = "needs no test: it is so."\n', "`code` must name"),
        (WHOLE.replace("count = 1", "count = 2") + f'tests = ["{TEST}"]\n', "1 entries for 2 requirements"),
        (WHOLE, "needs one of"),
        (WHOLE + f'tests = ["{TEST}"]\nuntested = "wait."\n', "needs one of"),
        (WHOLE + 'without = "it is hard."\n', "`without` must begin with"),
    ],
)
def test_the_checker_finds_planted_faults(text: str, problem: str) -> None:
    (said,) = found(text)
    assert problem in said


@pytest.mark.parametrize(
    "spoilt", ["section = 4", 'section = "four"', 'says = ""', 'test = "x"', 'profiles.x = "y"']
)
def test_an_invalid_file_is_refused(spoilt: str) -> None:
    key = spoilt.partition(" ")[0]
    kept = [line for line in (WHOLE + f'tests = ["{TEST}"]\n').splitlines() if not line.startswith(f"{key} ")]
    with pytest.raises(msgspec.ValidationError):
        rfcs.read("\n".join([*kept, spoilt]))


def test_requirements_are_counted_in_numbered_sections_alone() -> None:
    one = rfcs.read(WHOLE)
    assert list(rfcs.required(TEXT)) == [
        "A sender MUST wait.",
        "Then it MUST send; and it MUST stop.",
        "2) The MUSTARD is REQUIRED.",
    ]
    assert rfcs.counted(one, TEXT) == 3
    assert rfcs.counted(msgspec.structs.replace(one, counted="steps"), TEXT) == 2
    missing = TEXT.replace("MUST wait", "waits")
    assert rfcs.counted(one, missing) == 2
