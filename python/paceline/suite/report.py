"""The report in Markdown: the source's requirements, section by section, and the measurements."""

from __future__ import annotations

from collections.abc import Iterable

from paceline.studies.study import World
from paceline.suite import wording
from paceline.suite.running import Answer, Result


def markdown(result: Result) -> str:
    """The whole report."""
    suite = result.suite
    names = ", ".join(f"`{subject.text}`" for subject in result.subjects)
    version = result.made.provenance["versions"]["paceline"]
    lines = [
        f"# {suite.title}",
        "",
        f"{suite.source}. {suite.summary}",
        "",
        f"Of {names}: {wording.summed(result)}. {result.runs} run{'s' if result.runs != 1 else ''} of each point"
        f"{' in real time over emulated paths' if result.world is World.EMULATED else ''}, seeds "
        f"{result.made.seeds[0]} to {result.made.seeds[-1]}, by Paceline {version}; "
        "numbers are means ± half of the 95 % interval. A case passes if the whole interval of each of its numbers is "
        "within what is asked, fails if one lies wholly beyond, and is undecided else; “every run” is held run by run.",
        "",
        f"    {result.command}",
    ]
    for section in suite.sections.values():
        lines += ["", f"## {section.key} {section.title}", "", section.asks]
        if section.later:
            lines += ["", f"Not answered by runs: {section.later}"]
        for case in suite.cases:
            if case.section == section.key:
                lines += ["", f"### {case.title}", ""]
                lines += [case.text, ""] if case.text else []
                lines += _case(result.of(case), several=len(result.subjects) > 1, kind=str(suite.kind))
    return "\n".join(lines) + "\n"


def _case(answers: list[Answer], *, several: bool, kind: str) -> Iterable[str]:
    yield _row([*([kind] if several else []), "", "measured", "asked", "verdict", "from"])
    yield _row(["---"] * (5 + several))
    for answer in answers:
        for checked in answer.checks:
            subject = [f"`{answer.subject.text}`"] if several else []
            found = "–" if answer.refused else ""
            yield _row(
                [
                    *subject,
                    f"{checked.check.says} ({checked.check.label})",
                    found or wording.ours(checked),
                    wording.required(checked) or "–",
                    f"{checked.verdict.outcome}: {checked.verdict.because}",
                    wording.sourced(checked.check.source) or "–",
                ]
            )
    yield ""
    for answer in answers:
        yield f"    {answer.command}"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
