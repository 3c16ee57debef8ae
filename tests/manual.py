"""The manual page of the command `paceline`, made of what `--help` says; `test_manual.py` writes and holds it."""

from __future__ import annotations

import re
import textwrap
import tomllib
from pathlib import Path

from paceline import cli
from paceline.cli import help as words

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "python/data/data/share/man/man1/paceline.1"
"""Where maturin takes it from: what lies in `data` goes beside `bin` of an environment."""

_VERBATIM = "\b"
_EXIT = {
    "0": "Done.",
    "1": "The system refused something (full disk, no permission), or Paceline has a defect.",
    "2": "A mistake in the scenario or in the options; nothing has run.",
    "130": "Stopped by Ctrl-C or a TERM signal; finished runs in --out are kept.",
}


def page() -> str:
    """The page in roff, with the macros of man(7)."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    callback = cli.app.registered_callback
    about = (callback and callback.callback and callback.callback.__doc__) or ""
    lines = [
        r".\" Made of `paceline --help` by a test: PACELINE_BLESS=1 python -m pytest tests/test_manual.py",
        f'.TH PACELINE 1 "" "Paceline {version}" "User Commands"',
        # no hyphens and no spaces but the program's own
        ".nh",
        ".ad l",
        ".SH NAME",
        *_lines(f"paceline - {about[0].lower()}{about[1:].rstrip('.')}"),
        ".SH SYNOPSIS",
        ".B paceline",
        "COMMAND [ARGUMENTS] [OPTIONS]",
        ".SH DESCRIPTION",
        *_lines(about),
        *_lines("What follows is what each command prints with --help."),
        ".SH COMMANDS",
    ]
    for name in cli.COMMANDS:
        lines += _command(name)
    lines.append(".SH EXIT STATUS")
    for code, means in _EXIT.items():
        lines += [".TP", f".B {code}", *_lines(means)]
    return "\n".join(lines) + "\n"


def _command(name: str) -> list[str]:
    command = cli.Commands()[name]
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(["paceline", name, *command.collect_usage_pieces(context)])
    lines = [f'.SS "{_text(usage)}"']
    for n, paragraph in enumerate(command.help.split("\n\n")):
        if paragraph.startswith(_VERBATIM):
            head, *rest = textwrap.dedent(paragraph.removeprefix(_VERBATIM)).strip("\n").split("\n")
            example = textwrap.dedent("\n".join(rest)).split("\n")
            lines += [".PP", *_lines(head), ".PP", ".RS 2", ".nf", *map(_text, example), ".fi", ".RE"]
        else:
            # The heading stands in for the first break.
            lines += [".PP"] * (n > 0) + _lines(paragraph)
    rows = [(words.metavar(p), p.help or "") for p in words.arguments(command, context)]
    options = (p for p in command.get_params(context) if p.param_type_name == "option" and p.name != "help")
    rows += [words.option(p, context) for p in options]
    for left, right in rows:
        lines += [".TP", f".B {_text(left)}", *_lines(right)]
    return lines


def _lines(text: str) -> list[str]:
    """A paragraph, in lines that can be read as they are."""
    broken = textwrap.wrap(" ".join(text.split()), 78, break_long_words=False, break_on_hyphens=False)
    return [_text(line) for line in broken]


def _text(text: str) -> str:
    """Text as roff prints it as it is, so that it can be copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return re.sub(r"^\.", r"\\&.", escaped)
