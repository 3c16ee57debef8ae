"""The command `paceline`: one file per command, each a thin face of the Python function of the same name.

Tables for people and JSON go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 the system refused
something (full disk, no permission) or Paceline has a defect, 2 a mistake of the request, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from paceline import _core
from paceline.cli.compare import compare
from paceline.cli.describe import schema, schemes
from paceline.cli.plot import plot
from paceline.cli.reproduce import reproduce
from paceline.cli.run import run
from paceline.cli.sweep import sweep
from paceline.errors import PacelineError


class Guarded(TyperGroup):
    """Turns what goes wrong in any command into one clear message on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except (PacelineError, _core.ScenarioError) as error:
            raise fail(str(error), getattr(error, "exit_code", 2)) from None
        except _core.InternalError as error:
            raise fail(str(error), 1) from None
        except KeyboardInterrupt:
            raise fail("Stopped.", 130) from None
        except BrokenPipeError:
            # Whoever read the output has had enough, as in `paceline schema | head`.
            _abandon_stdout()
            raise typer.Exit(0) from None
        except OSError as error:
            _abandon_stdout()
            name = f"{error.filename}: " if error.filename else "writing the output: "
            raise fail(f"{name}{error.strerror or error}", 1) from None
        return result


def fail(message: str, code: int) -> typer.Exit:
    """Says the error on stderr; the exception ends the command with the code."""
    with contextlib.suppress(OSError):
        print(f"paceline: {message}", file=sys.stderr)
    return typer.Exit(code)


def _abandon_stdout() -> None:
    # What is still buffered cannot be written; without this the interpreter would complain about it at its end.
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(wanted: bool) -> None:
    if wanted:
        print(f"paceline {_core.version()}")
        raise typer.Exit


app = typer.Typer(
    cls=Guarded,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A workbench for the congestion control of streaming and real-time media."""


app.command()(run)
app.command()(sweep)
app.command()(compare)
app.command()(plot)
app.command()(reproduce)
app.command()(schema)
app.command()(schemes)


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """The entry point of the command `paceline`."""
    # A polite kill is treated like Ctrl-C: running simulations are stopped, finished ones stay.
    signal.signal(signal.SIGTERM, _terminated)
    app(prog_name="paceline")
