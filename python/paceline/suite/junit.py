"""A suite's verdicts as JUnit XML, which Jenkins, GitLab, GitHub Actions and others read.

Each scheme or queue has a `testsuite`, and each check a `testcase` in it. A failed check has a `failure`. An undecided
one has `skipped` with the reason: it neither passed nor failed, and exit code 3 tells a CI so. The checks of a case
that cannot run have an `error`. A number without a threshold passes, with its value as output.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as Tree

from paceline.suite import wording
from paceline.suite.running import Answer, Checked, Result
from paceline.suite.verdict import Outcome

_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml(result: Result) -> str:
    """The document."""
    root = Tree.Element("testsuites", name=f"paceline suite {result.suite.key}")
    for subject in result.subjects:
        own = [answer for answer in result.answers if answer.subject is subject]
        checks = [(answer, checked) for answer in own for checked in answer.checks]
        parts = Tree.SubElement(root, "testsuite", name=_text(f"{result.suite.key}.{subject.text}"))
        properties = Tree.SubElement(parts, "properties")
        for name, value in (
            ("source", result.suite.source),
            ("over", result.over),
            ("runs", str(result.runs)),
        ):
            Tree.SubElement(properties, "property", name=name, value=_text(value))
        for answer, checked in checks:
            _testcase(parts, result, answer, checked)
        counted = {name: str(len(parts.findall(f"testcase/{tag}"))) for name, tag in _COUNTED.items()}
        parts.attrib |= {
            "tests": str(len(checks)),
            **counted,
            "time": f"{result.seconds / len(result.subjects):.3f}",
            "timestamp": str(result.made.provenance["time"])[:19],
        }
    # Jenkins' schema has `skipped` only in a testsuite.
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(part.attrib[name]) for part in root)))
    root.set("time", f"{result.seconds:.3f}")
    Tree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(root, encoding="unicode") + "\n"


_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def _testcase(parts: Tree.Element, result: Result, answer: Answer, checked: Checked) -> None:
    name = f"{result.suite.key}.{answer.subject.text}.{answer.case.key}"
    case = Tree.SubElement(
        parts, "testcase", classname=_text(name), name=_text(checked.check.label), time="0"
    )
    because = f"{checked.check.says}: {wording.ours(checked)}, {checked.verdict.because}"
    if answer.refused and answer.refused.applies:
        why = _text(answer.refused.reason)
        Tree.SubElement(case, "error", message=why, type="cannot-run").text = answer.command
    elif checked.verdict.outcome is Outcome.FAIL:
        failure = Tree.SubElement(case, "failure", message=_text(because), type="threshold")
        failure.text = _text(
            f"asked: {wording.required(checked)} ({checked.check.source})\nagain: {answer.command}"
        )
    elif checked.verdict.outcome is Outcome.UNDECIDED:
        Tree.SubElement(case, "skipped", message=_text(f"undecided: {because}"))
    output = f"{checked.check.says}\nmeasured: {wording.ours(checked)}\nasked: {wording.required(checked) or 'nothing'}"
    Tree.SubElement(case, "system-out").text = _text(f"{output}\nagain: {answer.command}")


def _text(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return _NO_XML.sub("?", text)
