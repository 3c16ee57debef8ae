"""Markdown as GitHub reads it, for Python-Markdown, which wants more blank lines and deeper indents."""

from __future__ import annotations

import re

from places import CODE

ITEM = re.compile(r"^( *)(?:[-*+]|\d{1,3}\.) +\S")
FIRST = re.compile(r"^ *(?:[-*+]|1\.) ")
FENCE = re.compile(r"^ *(```+|~~~+)")
RULE = re.compile(r"^\|[ :|-]+\|?$")


def translated(text: str) -> str:
    """The same document, such that Python-Markdown makes of it what GitHub does."""
    lines = text.split("\n")
    made: list[str] = []
    fence = ""
    in_list = False
    depths: list[int] = []  # columns at which the open lists' items begin
    for i, line in enumerate(lines):
        before = made[-1] if made else ""
        found = FENCE.match(line)
        if fence or found:
            # A fence ends with its own marks.
            fence = "" if fence and line.strip() == fence else fence or (found[1] if found else "")
            made.append(_deeper(line, depths) if in_list else line)
            continue
        item = ITEM.match(line)
        if item and (in_list or not before.strip() or FIRST.match(line)):
            column = len(item[1])
            if not in_list:
                if before.strip():
                    made.append("")
                depths = []
            while depths and depths[-1] > column:
                depths.pop()
            if not depths or depths[-1] < column:
                depths.append(column)
            in_list = True
            made.append(" " * 4 * (len(depths) - 1) + line.lstrip())
            continue
        if in_list and line.strip() and not line.startswith(" ") and not before.strip():
            in_list = False
            depths = []
        if in_list and line.startswith(" ") and not before.strip():
            line = _deeper(line, depths)  # noqa: PLW2901
        if line.startswith("|"):
            head = i + 1 < len(lines) and RULE.match(lines[i + 1])
            if head and before.strip():
                made.append("")
            # GitHub wants a pipe in a cell's code escaped, Python-Markdown does not.
            line = CODE.sub(lambda m: m[0].replace("\\|", "|"), line)  # noqa: PLW2901
        made.append(line)
    return "\n".join(made)


def _deeper(line: str, depths: list[int]) -> str:
    """A line that belongs to a list's item, four columns for each list that it lies in."""
    column = len(line) - len(line.lstrip())
    level = sum(1 for depth in depths if depth < column)
    inside = depths[level - 1] + 2 if level else 0
    return " " * (4 * level + max(column - inside, 0)) + line.lstrip() if line.strip() else line
