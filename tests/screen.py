"""Commands as they are typed, and what they print: in this process where that is all a test asks, for a process of its
own takes half a second to begin; in a shell where the line has more of a shell's than words, or the command is about
processes."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from paceline import cli

OF_PROCESSES = frozenset(
    ["call", "emulate", "explore", "gateway", "kernel-cc", "path", "receive", "send", "serve", "watch"]
)
"""Commands that make namespaces, run programs or wait for a signal."""
_SHELLS = re.compile(r"[$`|&;<>*?#~(){}]|\n(?!$)")


@dataclass(frozen=True)
class Said:
    """What a command printed on the screen, stdout and stderr as they came, and its exit code."""

    text: str
    code: int


def said(line: str, where: Path, environment: Mapping[str, str], *, all_here: bool = False) -> Said:
    """What a line prints that is typed in a folder; with `all_here` one of `OF_PROCESSES` has no process of its own
    either. No traceback is ever printed."""
    words = words_of(line, all_here)
    done = _typed(line, where, environment) if words is None else here(words, where, environment)
    assert "Traceback" not in done.text, done.text
    return done


def words_of(line: str, all_here: bool = False) -> list[str] | None:
    """The words after "paceline" of a line that needs no shell, nor, without `all_here`, a process; None of others."""
    joined = line.replace("\\\n", " ").strip()
    unquoted = re.sub(r"\"[^\"$`]*\"|'[^']*'", "", joined)
    if not joined.startswith("paceline ") or _SHELLS.search(unquoted):
        return None
    words = shlex.split(joined)[1:]
    of_processes = not {"--help", "--list"} & {*words} and (words[:1] or [""])[0] in OF_PROCESSES
    return words if all_here or not (of_processes or "emulator" in words) else None


def _typed(line: str, where: Path, environment: Mapping[str, str]) -> Said:
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=where,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return Said(done.stdout, done.returncode)


def here(words: Sequence[str], where: Path, environment: Mapping[str, str]) -> Said:
    """What the command line prints in this process, as if it were called in a folder with these words."""
    screen = _stream()
    code = _run(words, where, environment, screen, screen)
    return Said(_written(screen), code)


def paceline(
    *arguments: object, where: Path | None = None, stdin: str | bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command in this process, in a folder, its environment that of the tests and this one."""
    words = [str(argument) for argument in arguments]
    out, err = _stream(), _stream()
    with mock.patch.object(sys, "stdin", _stream(stdin)):
        code = _run(words, where or Path.cwd(), {**os.environ, **environment}, out, err)
    return subprocess.CompletedProcess(words, code, _written(out), _written(err))


def _stream(content: str | bytes = b"") -> io.TextIOWrapper[io.BytesIO]:
    held = io.BytesIO(content.encode() if isinstance(content, str) else content)
    return io.TextIOWrapper(held, encoding="utf-8", write_through=True)


def _written(stream: io.TextIOWrapper[io.BytesIO]) -> str:
    return stream.buffer.getvalue().decode()


def _run(
    words: Sequence[str], where: Path, environment: Mapping[str, str], out: io.TextIOBase, err: io.TextIOBase
) -> int:
    """The exit code of the command line, called with these words."""
    with _called(where, environment), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.app(list(words), prog_name="paceline")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


@contextlib.contextmanager
def _called(where: Path, environment: Mapping[str, str]) -> Iterator[None]:
    with (
        contextlib.chdir(where),
        mock.patch.dict(os.environ, environment, clear=True),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        with mock.patch.multiple(warnings, formatwarning=warnings.formatwarning, showwarning=_shown):
            # pytest keeps warnings to itself, and would not show them
            cli.say_warnings()
            yield


def _shown(
    message: Warning | str, category: type[Warning], name: str, line: int, *_: object, **__: object
) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, name, line))
