"""The command `paceline`: one file per command, each a thin wrapper of the Python function of the same name.

Tables for people and JSON go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 the system refused
something (full disk, no permission) or Paceline has a defect, 2 a mistake in the request, 130 interrupted.
"""

from __future__ import annotations

import ast
import codecs
import contextlib
import importlib
import importlib.util
import io
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from paceline import _core
from paceline.cli import completing
from paceline.cli.help import RENAMED, WIDTH, Command, spared
from paceline.errors import ControllerError, CutShortWarning, PacelineError, ScenarioError
from paceline.messages import streams
from paceline.messages.argument_names import by_command
from paceline.messages.foreign_text import is_encodable, not_text
from paceline.threads import THREADS

GROUPS: dict[str, dict[str, str]] = {
    "Simulate": {
        "init": "examples",
        "examples": "examples",
        "check": "check",
        "run": "run",
        "explore": "explore",
        "sweep": "sweep",
        "merge": "merge",
        "plot": "plot",
    },
    "Compare and judge": {
        "compare": "compare",
        "reproduce": "reproduce",
        "suite": "suite",
        "league": "league",
        "hunt": "hunt",
        "conform": "conform",
        "campaign": "campaign",
    },
    "Real time": {
        "path": "path",
        "emulate": "emulate",
        "call": "call",
        "call-log": "call_log",
        "serve": "serve",
        "send": "send",
        "receive": "receive",
        "key": "key",
        "watch": "watch",
        "gateway": "gateway",
        "kernel-cc": "kernel_cc",
    },
    "Look up": {
        "controllers": "describe",
        "model": "model",
        "trace": "trace",
        "schema": "describe",
        "include": "describe",
        "dissector": "examples",
    },
}
"""Each command and the module of its function, grouped by purpose, in the order of `--help`."""

COMMANDS = {name: module for group in GROUPS.values() for name, module in group.items()}

RUNNING = ("path", "watch")
"""Commands that run a program, whose words follow "--"."""

SETTINGS: dict[str, dict[str, Any]] = {"watch": {"allow_interspersed_args": False}}


class Commands(Mapping[str, Any]):
    """The commands by name, each imported on access."""

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __getitem__(self, name: str) -> Any:
        module = importlib.import_module(f"{__name__}.{COMMANDS[name]}")
        function = getattr(module, name.replace("-", "_"))
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        alone.command(name, cls=getattr(module, "PARSED", Command), context_settings=SETTINGS.get(name))(
            function
        )
        return typer.main.get_command(alone)


class Guarded(TyperGroup):
    """Turns exceptions of any command into one clear message on stderr and an exit code."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        commands: Any = Commands()
        self.commands = commands

    def get_params(self, ctx: Any) -> list[Any]:
        """The options before a command."""
        return spared(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Lists each command with its complete first sentence, which would be cut otherwise."""
        widest = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                # Left columns of equal width in all groups, so that the texts align.
                formatter.write_dl([(name.ljust(widest), first_sentence(name)) for name in group])

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """The commands with this prefix, without importing them: a shell waits for this."""
        real = self.commands
        self.commands = {name: TyperCommand(name, help=first_sentence(name)) for name in COMMANDS}
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self.commands = real

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command for these words. Raises PacelineError for one that was renamed."""
        if args and (now := RENAMED.get(args[0])) is not None:
            raise PacelineError(f"there is no command {args[0]}; did you mean `paceline {now}`?")
        # the program that is run has its own words
        ours = args[: args.index("--")] if "--" in args and args[0] in RUNNING else args
        for word in ours:
            if not is_encodable(word):
                raise PacelineError(not_text(word))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            with by_command():
                result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except PacelineError as error:
            raise fail(_lines(error), error.exit_code) from None
        except KeyboardInterrupt as stop:
            raise fail(str(stop) or "Stopped.", 130) from None
        except OSError as error:
            raise refused(error) from None
        except UnicodeEncodeError as error:
            # a name from this folder or another, not from the command line
            if is_encodable(str(error.object)):
                raise
            raise fail(not_text(str(error.object)), PacelineError.exit_code) from None
        return result


def first_sentence(name: str) -> str:
    """The first paragraph of a command's help, on one line; its module is parsed, not imported."""
    spec = importlib.util.find_spec(f"{__name__}.{COMMANDS[name]}")
    loader: Any = spec and spec.loader
    for node in ast.parse(loader.get_source(f"{__name__}.{COMMANDS[name]}")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name.replace("-", "_"):
            return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    raise LookupError(name)


def _lines(error: PacelineError) -> str:
    """The lines of an error. A newline in a name or value must not look like a new line of the message; for scenarios
    the core escapes it."""
    said = str(error)
    return said if isinstance(error, ScenarioError | ControllerError) else said.replace("\n", "\n  ")


def fail(message: str, code: int) -> typer.Exit:
    """Prints the error on stderr; raising the result ends the command with the code."""
    text = f"paceline: {message}"
    with contextlib.suppress(OSError):
        if sys.stderr.isatty():
            from paceline.tables import layout

            layout.say(layout.stderr(), text)
        else:
            # One line, as tools that parse it expect.
            print(text, file=sys.stderr)
    return typer.Exit(code)


def refused(error: OSError) -> typer.Exit:
    """Prints the system's refusal, except if the reader of the output closed the pipe (`paceline schema | head`)."""
    # What is still buffered cannot be written; without this the interpreter would complain about it at exit.
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return typer.Exit(0)
    name = f"{error.filename}: " if error.filename else "writing the output: "
    return fail(f"{name}{error.strerror or error}", 1)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"paceline {_core.version()}")
        raise typer.Exit


app = typer.Typer(
    cls=Guarded,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH},
)


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A workbench for the congestion control of streaming and real-time media."""


_PLAIN = "paceline-plain"
_IN_ASCII = {"±": "+-", "→": "->", "µ": "u", "×": "x", "–": "-", "−": "-", "…": "...", "≤": "<=", "≥": ">="}


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Replaces characters that the terminal's encoding lacks: by another spelling, else by \\uXXXX, as in JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(c) or json.dumps(c)[1:-1] for c in missing), error.end


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def say_warnings() -> None:
    """Prints warnings on stderr in the format of errors."""
    # notices of the runs repeat it; `check`, which runs nothing, shows it nevertheless
    warnings.simplefilter("ignore", CutShortWarning)
    warnings.formatwarning = lambda message, *_, **__: f"paceline: warning: {message}\n"


def main() -> None:
    """The entry point of the command `paceline`."""
    # SIGTERM is handled like Ctrl-C: running simulations are stopped, finished ones stay.
    signal.signal(signal.SIGTERM, _terminated)
    # So is SIGHUP, unless it is ignored (nohup).
    hangup = getattr(signal, "SIGHUP", None)  # not on Windows
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        signal.signal(hangup, _terminated)
    say_warnings()
    codecs.register_error(_PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in (
            "strict",
            "surrogateescape",
            "backslashreplace",
        ):
            stream.reconfigure(errors=_PLAIN)
    completing.prepare(os.environ)
    with streams.standing():
        _run()


def _run() -> None:
    """Runs the command of this process, and exits."""
    try:
        app(prog_name="paceline")
    except KeyboardInterrupt:
        # before the command itself had begun, or again while it ended
        _leave(fail("Stopped.", 130).exit_code)
    except SystemExit as end:
        _leave(end.code)
    except OSError as error:
        # help and version are printed before a command begins
        _leave(refused(error).exit_code)


def _leave(code: str | int | None) -> NoReturn:
    """Ends the process, even if a cancelled run does not end: the interpreter alone would wait for it."""
    if any(thread.name.startswith(THREADS) for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code if isinstance(code, int) else 1)
    raise SystemExit(code)
