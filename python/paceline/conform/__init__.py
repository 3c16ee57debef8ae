"""`paceline.conform`: checks that every controller must pass, built in or your own, in Python, C or Rust.

Each check is a scenario that any controller of its kind should survive (loss, reordering, idle times, tiny and huge
paths, marks, a path that goes silent, ...) with a modest requirement; one sends it events with extreme numbers. A
failure leaves its scenario as a file that anyone can run. The bounds are Paceline's: far below what the built-in
controllers achieve.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline import _core, files, own_controllers
from paceline.arguments import checked
from paceline.conform.scenarios import CHECKS, Check, Run
from paceline.conform.time_limit import Allowance, TimeLimitError
from paceline.errors import ControllerError, InternalError, PacelineError
from paceline.messages.argument_names import meant
from paceline.results.results import RunRecord
from paceline.scenarios.scenario import Schemes
from paceline.simulate.limits import SEED_LIMIT_S
from paceline.simulate.points import Progress

EVENTS = 3000
"""The number of events in the check `extremes`."""
RATE_EVERY_S = 0.5

_BY_KEY = {check.key: check for check in CHECKS}

EXTREMES = "extremes"
SAME = "same-bits"
BOUNDS = "bounds"

_OTHERS = {
    EXTREMES: f"{EVENTS} events with extreme numbers: it decides nothing that no machine can use",
    SAME: "the same seed gives the same bits: its draws are its own stream's",
    BOUNDS: "each parameter at its least and its most: the run ends",
}


def checks() -> dict[str, str]:
    """The checks: names and requirements."""
    return {check.key: check.asks for check in CHECKS} | _OTHERS


@dataclass(frozen=True)
class Found:
    """The result of a check: what was wrong, by seed; nothing: it passes."""

    check: str
    asks: str
    wrong: Mapping[int, str] = field(default_factory=dict)
    slow: Mapping[int, str] = field(default_factory=dict)
    """The seeds that exceeded the time limit, and how far they were."""
    skipped: str = ""
    """Why it does not apply."""
    scenario: str = ""
    """The text of the scenario that shows the failure."""

    @property
    def passes(self) -> bool:
        """Whether nothing was wrong or too slow."""
        return not self.wrong and not self.slow


@checked()
def run(
    cc: str,
    *,
    checks: Sequence[str] = (),
    runs: int = 3,
    seed: int = 1,
    params: Mapping[str, Any] | None = None,
    schemes: Schemes | None = None,
    limit_s: float = SEED_LIMIT_S,
    each: Callable[[Found], None] | None = None,
    progress: Progress | None = None,
) -> list[Found]:
    """Runs the conformance checks on a controller, each check with `runs` seeds from `seed` on.

    A seed that takes longer than `limit_s` seconds is stopped: its check is slow, and no further seeds are tried.

    `cc` is a built-in controller, "python:FILE:CLASS", "library:FILE", or a name in `schemes`; `checks` names some of
    `paceline.conform.checks()`, by default all. `each` is called with each check's result. Raises ControllerError for
    what is not a controller, PacelineError for an unknown check, KeyboardInterrupt on Ctrl-C.
    """
    known = _all_checks()
    if unknown := [name for name in checks if name not in known]:
        raise PacelineError(f"there is no check {unknown[0]}; there are {', '.join(known)}")
    if not limit_s > 0:
        raise PacelineError(f"limit_s is {limit_s:g}: it must be more than 0 s")
    subject = Subject.of(cc, params or {}, schemes or {})
    wanted = list(checks) or list(known)
    found: list[Found] = []

    def waiting(share: float) -> None:
        if progress:
            progress(len(found) + share, len(wanted))

    for name in wanted:
        waiting(0.0)
        found.append(subject.check(name, Seeds(range(seed, seed + runs), limit_s, waiting)))
        if each:
            each(found[-1])
    waiting(0.0)
    return found


_all_checks = checks


@dataclass(frozen=True)
class Subject:
    """A controller under test."""

    cc: str
    about: Mapping[str, Any]
    """Its entry in `paceline.controllers()`."""
    own: _core.Scheme | None
    params: Mapping[str, Any]
    schemes: Schemes

    @classmethod
    def of(cls, cc: str, params: Mapping[str, Any], schemes: Schemes) -> Subject:
        """The controller of this name. Raises ControllerError, PacelineError."""
        own = None
        if cc in schemes:
            try:
                own = own_controllers.scheme(cc, schemes[cc])
            except ValueError as error:
                raise ControllerError(str(error)) from None
        elif own_controllers.is_own(cc):
            own = own_controllers.load(cc)
        built_in = {one["name"]: one for one in json.loads(_core.schemes())}
        if own is None and cc not in built_in:
            raise PacelineError(
                f"there is no controller {cc}{meant(cc, built_in)}; your own is python:FILE:CLASS or library:FILE, and "
                "`paceline controllers` lists the others"
            )
        about = built_in[cc] if own is None else json.loads(own.json())
        if about["machine"] == "udp":
            raise PacelineError(f"{cc} controls nothing, so no check applies to it")
        return cls(cc, about, own, params, schemes)

    def check(self, name: str, seeds: Seeds) -> Found:
        """The result of a check."""
        if name == EXTREMES:
            return self._extremes(seeds)
        if name == SAME:
            return self._same(seeds)
        if name == BOUNDS:
            return self._bounds(seeds)
        check = _BY_KEY[name]
        if self.about["machine"] not in check.machines:
            return Found(name, check.asks, skipped=f"is not of a controller on {self.about['machine']}")
        return self._scenario(check, seeds)

    def _scenario(self, check: Check, seeds: Seeds) -> Found:
        text = self._text(check)
        try:
            loaded = self._load(text)
        except PacelineError as error:
            if "flow.own" not in str(error):
                raise
            return Found(check.key, check.asks, skipped=str(error).partition("flow.own")[2].lstrip("."))

        def judged(seed: int, spend: Spend) -> str:
            output = spend(functools.partial(_core.run, loaded, seed, ["rate"], RATE_EVERY_S))
            run = Run(self.about["machine"], RunRecord.of(seed, output))
            return "; ".join(words for judge in check.judges if (words := judge(run)))

        return Found(check.key, check.asks, *seeds.each(judged), scenario=text)

    def _load(self, text: str) -> _core.Scenario:
        """The scenario, without warnings about settings that have no effect with this controller."""
        return _core.Scenario.parse(text, ".", "conform", [], list(self.schemes.items()))

    def _text(self, check: Check, params: Mapping[str, Any] | None = None) -> str:
        return check.text(self.cc, self.about["machine"], {**self.params, **(params or {})})

    def _extremes(self, seeds: Seeds) -> Found:
        if self.about["machine"] == "acks":
            return Found(EXTREMES, _OTHERS[EXTREMES], skipped="is not of a controller on acks")

        def judged(seed: int, spend: Spend) -> str:
            spend(lambda _: _core.extremes(self.cc, seed, EVENTS, self.own))
            return ""

        return Found(EXTREMES, _OTHERS[EXTREMES], *seeds.each(judged))

    def _same(self, seeds: Seeds) -> Found:
        text = self._text(_BY_KEY["loss"])
        loaded = self._load(text)

        def judged(seed: int, spend: Spend) -> str:
            first, again = (
                spend(functools.partial(_core.run, loaded, seed, [], RATE_EVERY_S)).summary_json
                for _ in range(2)
            )
            if first == again:
                return ""
            return "two runs of one seed differ: it draws from somewhere else, or reads a clock"

        return Found(SAME, _OTHERS[SAME], *seeds.each(judged), scenario=text)

    def _bounds(self, seeds: Seeds) -> Found:
        shown = []

        def judged(seed: int, spend: Spend) -> str:
            said = []
            for name, value in (
                (parameter["name"], value)
                for parameter in self.about["params"]
                for value in _extreme(parameter)
            ):
                text = self._text(_BY_KEY["alone"], {name: value})
                try:
                    loaded = self._load(text)
                    spend(functools.partial(_core.run, loaded, seed, [], RATE_EVERY_S))
                except (ControllerError, InternalError) as error:
                    said.append(f"{name} = {value}: {_words(error, seed)}")
                    shown.append(text)
                except TimeLimitError:
                    shown.append(text)
                    raise
                except PacelineError:
                    continue  # a value that is valid only together with others
            return "; ".join(said)

        skipped = "" if self.about["params"] else "it has no parameters"
        wrong, slow = Seeds(seeds.seeds[:1], seeds.limit_s, seeds.waiting).each(judged)
        return Found(BOUNDS, _OTHERS[BOUNDS], wrong, slow, skipped, next(iter(shown), ""))


Spend = Callable[[Callable[[_core.Watch], Any]], Any]
"""Runs a piece of work within its seed's time limit."""


@dataclass(frozen=True)
class Seeds:
    """The seeds of a check, each with a time limit."""

    seeds: Sequence[int]
    limit_s: float
    waiting: Callable[[float], None]
    """Called now and then with the share of the check that is done."""

    def each(self, judged: Callable[[int, Spend], str]) -> tuple[dict[int, str], dict[int, str]]:
        """The failures and the timeouts, by seed. It stops at the first timeout."""
        wrong: dict[int, str] = {}
        for tried, seed in enumerate(self.seeds):
            allowance = Allowance(self.limit_s)

            def spend(
                work: Callable[[_core.Watch], Any], allowance: Allowance = allowance, tried: int = tried
            ) -> Any:
                return allowance.spend(work, lambda share: self.waiting((tried + share) / len(self.seeds)))

            try:
                said = judged(seed, spend)
            except TimeLimitError as late:
                return wrong, {seed: str(late)}
            except (ValueError, ControllerError, InternalError) as error:
                said = _words(error, seed)
            if said:
                wrong[seed] = said
        return wrong, {}


def _words(error: Exception, seed: int) -> str:
    """The message of a run, without its name and seed."""
    text = str(error).strip()
    return text.partition(f", seed {seed}: ")[2] or text


def _extreme(parameter: Mapping[str, Any]) -> list[Any]:
    match parameter["kind"]:
        case "number":
            return [parameter["min"], parameter["max"]]
        case "whole":
            return [int(parameter["min"]), int(parameter["max"])]
        case "switch":
            return [True, False]
        case _:
            return list(parameter["names"])


def write(found: Sequence[Found], out: str | Path) -> list[Path]:
    """Writes the scenario of each check that does not pass to DIR/CHECK.toml; returns the files. Raises
    StorageError."""
    written = []
    for one in found:
        if not one.passes and one.scenario:
            path = Path(out) / f"{one.check}.toml"
            files.make_directory(path.parent)
            files.write_whole(path, one.scenario + "\n")
            written.append(path)
    return written
