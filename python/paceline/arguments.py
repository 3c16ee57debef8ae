"""The allowed arguments of the Python API, defined in one place: `checked` validates each call.

A name has the same meaning in all functions; a function with another meaning passes it to `checked`. A function itself
checks what only it can know, such as a range or the available names.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from paceline._core import Scenario
from paceline.errors import ArgumentError, PacelineError
from paceline.messages.argument_names import meant
from paceline.messages.foreign_text import is_encodable, not_text
from paceline.simulate.executor_like import Batched

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """What an argument may be: a description, a test, and a conversion from NumPy's numbers."""

    words: str
    holds: Callable[[Any], bool]
    plain: Callable[[Any], Any] | None = None

    def or_several(self) -> Kind:
        """One of these, or a list of them."""
        return Kind(
            f"{self.words}, or a list of such",
            lambda v: self.holds(v) or (_is_list(v) and all(map(self.holds, v))),
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _is_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: _is_list(value) and all(map(holds, value))


def _is_vary(value: Any) -> bool:
    def is_key(key: Any) -> bool:
        return isinstance(key, str) or (isinstance(key, tuple) and all(map(_is_text, key)))

    # `axes.read` reports what is wrong with the values.
    return isinstance(value, Mapping) and all(map(is_key, value))


def plain(value: Any) -> Any:
    """NumPy, Polars and pandas numbers, texts and lists as Python's own; other values unchanged."""
    for name in ("tolist", "to_list"):
        if callable(method := getattr(value, name, None)):
            return method()
    return value


def _is_array(value: Any) -> bool:
    import numpy as np  # noqa: PLC0415 (what a model takes; --help does without)

    try:
        np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return value is not None and not isinstance(value, str | bytes)


TEXT = Kind("text", _is_text)
WHOLE = Kind("a whole number", _is_whole, operator.index)
NUMBER = Kind("a number", _is_number, float)
SECONDS = Kind("a number, in seconds", _is_number, float)
FLAG = Kind("True or False", lambda v: isinstance(v, bool))
PLACE = Kind("a path: text or a Path", _is_path)
NAMES = Kind('a list of names, as ["name"]', _is_list_of(_is_text))
CALL = Kind("a function", callable)
TABLE = Kind("a Polars table (polars.DataFrame)", lambda v: hasattr(v, "partition_by"))
ARRAY = Kind("a number, or an array of numbers", _is_array)

KINDS: dict[str, Kind] = {
    "again": WHOLE,
    "algorithm": TEXT,
    "app": TEXT,
    "base_dir": PLACE,
    "bin_s": SECONDS,
    "budget_s": SECONDS,
    "by": NAMES,
    "campaign": Kind("a campaign, as `paceline.campaign.read` gives it", lambda v: hasattr(v, "points")),
    "classes": NAMES,
    "delay_weight": NUMBER,
    "entrants": NAMES,
    "rounds": WHOLE,
    "traces": PLACE,
    "executor": Kind(
        'a concurrent.futures.Executor, or a name as "dask=ADDRESS"',
        lambda v: isinstance(v, Executor | str | Batched),
    ),
    "cc": TEXT,
    "changes": Kind(
        'a dict of TOML paths and their values, as {"flow.media.cc": "vegas"}',
        lambda v: isinstance(v, Mapping) and all(map(_is_text, v)),
    ),
    "column": TEXT,
    "command": Kind('a list of words, as ["ping", "-c", "3", "198.18.0.2"]', _is_list_of(_is_path)),
    "confidence": NUMBER,
    "device": TEXT,
    "direction": TEXT,
    "directories": Kind('a list of directories, as ["first", "second"]', _is_list_of(_is_path)),
    "directory": PLACE,
    "dots_per_inch": NUMBER,
    "duration_s": SECONDS,
    "each": CALL,
    "every_s": SECONDS,
    "everything": FLAG,
    "far": TEXT,
    "figure": Kind("a figure of matplotlib", lambda v: hasattr(v, "savefig")),
    "finds": WHOLE,
    "flow": TEXT.or_several(),
    "flows": WHOLE,
    "formats": NAMES,
    "for_s": SECONDS,
    "fresh": FLAG,
    "from_s": SECONDS,
    "host": TEXT,
    "ipv4": FLAG,
    "keep": NUMBER,
    "key_file": PLACE,
    "event_logs": PLACE,
    "ready_s": SECONDS,
    "log": PLACE,
    "log_events": PLACE,
    "max_rate": Kind('text with a unit, as "2 Mbit/s"', _is_text),
    "measures": NAMES,
    "labels": Kind(
        'a dict of names and what to print in place of them, as {"vegas": "TCP Vegas"}',
        lambda v: isinstance(v, Mapping) and all(_is_text(text) for pair in v.items() for text in pair),
    ),
    "limit_s": SECONDS,
    "metrics": NAMES,
    "kind": TEXT,
    "name": TEXT,
    "of": TEXT,
    "out": PLACE,
    "rtp_logs": PLACE,
    "over": TEXT,
    "path": PLACE,
    "beginning": PLACE,
    "pcap": PLACE,
    "pcap_at": NAMES,
    "qlog": PLACE,
    "pid": WHOLE.or_several(),
    "port": WHOLE,
    "ports": WHOLE,
    "progress": CALL,
    "rate": Kind('text with a unit, as "2 Mbit/s"', _is_text),
    "rates": TABLE,
    "checks": NAMES,
    "params": Kind(
        'a dict of parameters and their values, as {"alpha": 2}',
        lambda v: isinstance(v, Mapping) and all(map(_is_text, v)),
    ),
    "schemes": Kind(
        'a dict of names and classes of controllers, as {"mine": Mine}',
        lambda v: (
            isinstance(v, Mapping) and all(map(_is_text, v)) and all(isinstance(c, type) for c in v.values())
        ),
    ),
    "record": Kind('a list of names, as ["cwnd", "queue"]', _is_list_of(_is_text)),
    "record_every_s": Kind("a number, in seconds, as 0.02", _is_number, float),
    "runs": Kind("a whole number from 1; they take the seeds from `seed` on", _is_whole, operator.index),
    "scenario": Kind(
        "a scenario: the path of a file, TOML text, a dict of it, or a loaded one",
        lambda v: _is_path(v) or isinstance(v, Scenario | Mapping),
    ),
    "search_every_s": SECONDS,
    "seed": Kind(
        "one whole number, the first, and runs=K takes K of them from there on", _is_whole, operator.index
    ),
    "shard": Kind(
        "two whole numbers, as (1, 4) for the first of four",
        lambda v: isinstance(v, tuple | list) and len(v) == 2 and all(map(_is_whole, v)),
    ),
    "table": TEXT,
    "tests": WHOLE,
    "text": Kind("TOML text; `paceline.load` also takes a dict, or the path of a file", _is_text),
    "to": TEXT,
    "to_s": SECONDS,
    "endless": CALL,
    "tries": WHOLE,
    "until": Kind('text as "goodput_bps 1 %", or a list of such', lambda v: _is_text(v) or _is_list(v)),
    "most": Kind("a whole number from 20", _is_whole, operator.index),
    "vary": Kind(
        'a dict of TOML paths and lists of values, as {"flow.media.cc": ["newreno", "vegas"]}', _is_vary
    ),
    "view": CALL,
    "width": TEXT,
    "worst": TEXT,
    "workers": Kind("a whole number from 1", _is_whole, operator.index),
    "x": TEXT,
    "xlabel": TEXT,
    "y": TEXT.or_several(),
}
"""By argument name, in all functions unless they override it. An argument whose default is None may also be None.
"""
KINDS["set"] = KINDS["changes"]

RENAMED = {"access_point": "algorithm"}
"""Former names of arguments."""


def checked(**others: Kind) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Makes a function raise ArgumentError for invalid arguments, by the kinds in `KINDS` or `others`; a plain
    PacelineError from the function also becomes an ArgumentError. Defining a function with an argument that has no kind
    fails."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        names = [name for name in signature.parameters if name not in ("self", "cls")]
        kinds = {name: others.get(name) or KINDS[name] for name in names if name not in _UNCHECKED}

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise ArgumentError(_unfit(function.__name__, names, kwargs, str(error))) from None
            for name, kind in kinds.items():
                if name not in bound.arguments:
                    continue
                value = bound.arguments[name]
                if not ((value is None and signature.parameters[name].default is None) or kind.holds(value)):
                    raise ArgumentError(f"{name} = {_shown(value)}: it must be {kind.words}")
                if kind is PLACE or kind is KINDS["scenario"]:
                    _check_place(value)
                if kind.plain is not None and not isinstance(value, int | float | None):
                    bound.arguments[name] = kind.plain(value)
            try:
                return function(*bound.args, **bound.kwargs)
            except UnicodeEncodeError as error:
                if is_encodable(str(error.object)):
                    raise
                raise ArgumentError(not_text(str(error.object))) from error
            except PacelineError as error:
                if type(error) is not PacelineError:
                    raise
                # A mistake in the request is a mistake in the arguments.
                raise ArgumentError(*error.args).with_traceback(error.__traceback__) from error.__cause__

        return call

    return decorate


_UNCHECKED = frozenset(["runner", "stop", "timeout_term"])
"""Arguments that users do not write, or whose few values the function itself checks."""


def _check_place(value: Any) -> None:
    """Raises ArgumentError for a path that UTF-8 cannot encode."""
    if isinstance(value, str | os.PathLike) and not is_encodable(os.fsdecode(value)):
        raise ArgumentError(not_text(os.fsdecode(value)))


def _unfit(function: str, names: Sequence[str], given: Mapping[str, Any], why: str) -> str:
    """The message for a call with too few, too many or unknown arguments."""
    for name in given:
        if name not in names:
            renamed = RENAMED.get(name)
            hint = f" (did you mean {renamed}?)" if renamed in names else meant(name, names)
            return f"{function} has no argument {name}{hint}; it has {', '.join(names)}"
    return f"{function}: {why}; its arguments are {', '.join(names)}"


def _shown(value: Any) -> str:
    return " ".join(reprlib.repr(value).split())
