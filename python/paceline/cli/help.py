"""The output of `--help`: plain text with examples that can be copied as they stand."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import typer
from typer.core import TyperCommand

# Typer's own help uses boxes, breaks commands apart, and changes between versions.
WIDTH = 80

# A mistake on the command line; typer does not export its name.
USAGE_ERROR: Any = typer.BadParameter.__base__


RENAMED = {"--access-point": "--algorithm", "--controller": "--cc", "schemes": "controllers"}
"""Former names of command-line words."""

ALIASES = {
    "--repeats": "--runs",
    "--repeat": "--runs",
    "--repetitions": "--runs",
    "--iterations": "--runs",
    "--replications": "--runs",
    "--output": "--out",
    "--outdir": "--out",
    "--duration": "--for",
    "--time": "--for",
    "--jobs": "--workers",
    "--threads": "--workers",
    "--scheme": "--cc",
    "--algorithm": "--cc",
    "--congestion": "--cc",
    "--measure": "--metric",
    "--format": "--json",
}
"""Other tools' names for options."""


def spared(parameters: Iterable[Any]) -> list[Any]:
    """Lets parameters without a value, and those of a line being completed, skip type conversion: for a value typer
    imports pydantic, which takes longer than the rest of `--help`."""
    found = list(parameters)
    for parameter in found:
        if not isinstance(parameter.process_value, functools.partial):
            parameter.process_value = functools.partial(_processed, parameter, parameter.process_value)
    return found


def _processed(parameter: Any, real: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    if ctx.resilient_parsing:
        return value
    if value is not None or parameter.required or parameter.multiple or parameter.nargs != 1:
        return real(ctx, value)
    return None if parameter.callback is None else parameter.callback(ctx, parameter, None)


class Command(TyperCommand):
    """A command whose help has a usage line, text, examples, arguments and options, in this order."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Arguments and options, including --help."""
        return spared(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the words; an unknown option may belong to the user's command, which must follow "--"."""
        words = list(args)
        if ctx.resilient_parsing and words and words[-1] in self._with_values(ctx):
            # The line ends before a value being completed: without the option the rest can be parsed.
            return super().parse_args(ctx, words[:-1])
        try:
            return super().parse_args(ctx, args)
        except USAGE_ERROR as error:
            if "--" not in words and any("-- " in metavar(p) for p in arguments(self, ctx)):
                error.message += '; the command to run follows "--", with its options'
            if meant := self._meant(ctx, getattr(error, "option_name", ""), words):
                error.possibilities = []
                error.message += f" (did you mean {meant}?)"
            if "valid integer" in error.message:  # typer's wording
                error.message = "it must be a whole number, such as 10"
            raise

    def _with_values(self, ctx: Any) -> set[str]:
        """The options that take a value."""
        options = [p for p in self.get_params(ctx) if p.param_type_name == "option" and not p.is_flag]
        return {word for p in options for word in p.opts}

    def _meant(self, ctx: Any, name: str, words: list[str]) -> str | None:
        """This command's equivalent of an unknown option."""
        there = {word for p in self.get_params(ctx) for word in p.opts}
        for names in (RENAMED, ALIASES):
            if names.get(name) in there:
                return names[name]
        of_scenario = any(metavar(p) == "FILE" for p in arguments(self, ctx)) and "--set" in there
        if name not in ("--cc", "--controller") or not of_scenario:
            return None
        # A controller is set per flow of a scenario.
        after = next((word for before, word in itertools.pairwise(words) if before == name), "")
        value = next((w.partition("=")[2] for w in words if w.startswith(f"{name}=")), after)
        if not value or value.startswith("-"):
            value = "vegas"
        option = "--vary" if "," in value and "--vary" in there else "--set"
        return f"{option} flow.NAME.cc={value}"

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line after the command. A user's command comes last, after "--"."""
        words = [*(metavar(p) for p in arguments(self, ctx)), "[OPTIONS]"]
        return sorted(words, key=lambda word: "-- " in word)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Lists arguments and options, each with its help."""
        named = [(metavar(p), p.help or "") for p in arguments(self, ctx)]
        options = [p for p in self.get_params(ctx) if p.param_type_name == "option"]
        # Left columns of equal width in both lists, so that the texts align.
        for title, rows in (("Arguments", named), ("Options", [option(p, ctx) for p in options])):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=26)


def arguments(command: TyperCommand, ctx: Any) -> list[Any]:
    """The arguments of a command."""
    return [p for p in command.get_params(ctx) if p.param_type_name == "argument"]


def metavar(argument: Any) -> str:
    """An argument's name in the usage line."""
    return str(argument.metavar or argument.name.upper())


def option(parameter: Any, ctx: Any) -> tuple[str, str]:
    """The names of an option with its value's, and its help with its default."""
    names = ", ".join(sorted(parameter.opts, key=len))
    takes = "" if parameter.is_flag else f" {parameter.metavar or 'VALUE'}"
    text = parameter.help or ""
    if parameter.required:
        text += " Required."
    elif not parameter.is_flag and parameter.default not in (None, "", (), []) and parameter.show_default:
        value = parameter.default
        text += f" Default: {f'{value:g}' if isinstance(value, float) else value}."
    return names + takes, text
