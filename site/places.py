"""Where a file of the repository lies on the site, and links mended accordingly."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PICTURES = {".png", ".svg"}
NAMED = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "docs/README.md": "documents.md",
    "papers/README.md": "reproductions/index.md",
    "examples/README.md": "examples.md",
    "docs/queues/README.md": "queues.md",
}
"""Files with a place that their path does not say. A section of the navigation takes an `index.md` for its own page."""

LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=(?:\s+\"[^\"]*\")?\))")
REFERENCE = re.compile(r"(?<=^\[)([^\]\n]+\]:[ \t]*)(\S+)", flags=re.MULTILINE)
ATTRIBUTE = re.compile(r"(?<=\b)(src|href)=\"([^\"]+)\"")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#|//")
FENCE = re.compile(r"^(?P<tick>```+|~~~+).*?^(?P=tick)[ \t]*$", flags=re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`)", flags=re.DOTALL)


def place(path: str) -> str:
    """The file of the pages' folder that shows a file or folder of the repository (its path, from the root)."""
    if path in NAMED:
        return NAMED[path]
    if path.startswith("docs/"):
        return _index(path.removeprefix("docs/"))
    if path.startswith("papers/") and path.count("/") == 2 and path.endswith("/README.md"):
        return f"reproductions/{path.split('/')[1]}.md"
    if path.endswith(".md"):
        return _index(f"files/{path}")
    ending = "/index.md" if (ROOT / path).is_dir() else ".md" if shown(path) else ""
    return f"files/{path}{ending}"


def shown(path: str) -> bool:
    """Whether a file that is no Markdown gets a page that shows its text; others are handed out as they are."""
    if Path(path).suffix in PICTURES | {".ipynb", ".csv"}:
        return False
    try:
        (ROOT / path).read_text()
    except UnicodeDecodeError:
        return False
    return True


def _index(path: str) -> str:
    folder, name = posixpath.split(path)
    return posixpath.join(folder, "index.md") if name == "README.md" else path


def up(page: str) -> str:
    """From the address of a page ("a/b.md" is served as a/b/) to the site's root: "" or "../" times."""
    if posixpath.basename(page) == "index.md":
        return "../" * page.count("/")
    return "../" * (page.count("/") + 1)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Markdown with all that is no code changed."""
    return _around(FENCE, text, lambda prose: _around(CODE, prose, change))


def _around(kept: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    parts = []
    at = 0
    for found in kept.finditer(text):
        parts += [change(text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*parts, change(text[at:])])


def mended(text: str, source: str, page: str, met: Callable[[str], None]) -> str:
    """The Markdown of `source` (a path from the root) with its links as the page `page` needs them.

    `met` is told of each file or folder of the repository that is linked to. Raises LookupError for a link to nothing.
    """

    def target(link: str) -> str:
        if ELSEWHERE.match(link):
            return link
        path, mark, anchor = link.partition("#")
        full = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        there = ROOT / full
        if not there.exists() or full.startswith(".."):
            raise LookupError(f"{source}: links to {link}, which is not there")
        if there.is_dir() and (there / "README.md").exists():
            full = f"{full}/README.md"
        met(full)
        return os.path.relpath(place(full), posixpath.dirname(page) or ".") + mark + anchor

    def change(prose: str) -> str:
        prose = LINK.sub(lambda m: target(m[1]), prose)
        prose = REFERENCE.sub(lambda m: m[1] + target(m[2]), prose)
        return ATTRIBUTE.sub(lambda m: f'{m[1]}="{target(m[2])}"', prose)

    # A code span may be the text of a link, so that only its target lies outside of code.
    return outside_code(text, change)
