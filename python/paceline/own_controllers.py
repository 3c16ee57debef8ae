"""Your own controllers: Python classes, and functions of shared libraries.

    class Mine(paceline.WindowController): ...           # in mine.py
    cc = "python:mine.py:Mine"                           # in a scenario beside it
    paceline.run("x.toml", schemes={"mine": Mine})       # or by a name of your choice

`find` makes a scheme of what a flow's `cc` names; docs/your-own-controller.md lists a class's attributes.
Naming a file runs its code.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import inspect
import json
import linecache
import marshal
import math
import re
import sys
import traceback
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline import _core, files
from paceline._core import MediaController, RateController, WindowController
from paceline.arguments import NAMES, NUMBER, TEXT, Kind, checked
from paceline.errors import ArgumentError, ControllerError

PYTHON = "python:"
LIBRARY = "library:"
_OF_FILE = re.compile(r"^(?:python:(.+\.py):\w+|library:([^:]+)(?::[\w.+-]+)?)$")

_RECOVERIES = ("sack", "newreno", "reno", "tahoe", "rack")
_NEEDS = ("deliveries", "pacing", "rate_leads", "l4s")
_ECN = ("off", "classic", "dctcp", "accurate")
_UNITS = {"": "", "packets": "packets", "segments": "packets", "bytes": "bytes", "s": "s", "bit/s": "bps"}

_OPTIONAL = (("on_delivery", 2), ("on_lost", 2), ("on_marks", 3), ("on_timer", 1), ("on_begin", 1))
ROUND_TRIP = "round trip"
"""The value of a class's `every` for `on_interval` once a round trip; other values are seconds."""

_SCHEMES: dict[tuple[str, object], _core.Scheme] = {}
"""Schemes by name and class; they live as long as the process."""
_LIBRARIES: dict[tuple[str, tuple[str, str, str]], _core.Scheme] = {}
"""Schemes by a library's name, and its path, hash and controller."""
_MODULES: dict[tuple[str, str], types.ModuleType] = {}
"""Modules by a file's path and text."""


@checked(
    default=Kind("a number, True or False, or a name", lambda _: True),
    least=NUMBER,
    most=NUMBER,
    unit=TEXT,
    doc=TEXT,
    choices=NAMES,
)
def parameter(
    default: Any,
    least: float | None = None,
    most: float | None = None,
    *,
    unit: str = "",
    doc: str = "",
    choices: Sequence[str] | None = None,
) -> Any:
    """A dataclass field that scenarios set (`params`): a number from `least` to `most` in `unit` (an integer if
    `default` is one), a switch (True or False), or one of `choices`. Raises ArgumentError."""
    about: dict[str, Any] = {"doc": doc, "unit": unit or "1", "default": default}
    match default:
        case bool():
            about["kind"] = "switch"
        case str():
            if not choices or default not in choices:
                raise ArgumentError(f"parameter({default!r}): give choices, the allowed names")
            about |= {"kind": "choice", "choices": list(choices)}
        case int() | float():
            if least is None or most is None or not least <= default <= most:
                raise ArgumentError(
                    f"parameter({default!r}): give least and most, finite numbers with the default between them"
                )
            if not (math.isfinite(least) and math.isfinite(most)):
                raise ArgumentError(f"parameter({default!r}): {least} to {most} is not a finite range")
            whole = isinstance(default, int)
            about |= {"kind": "whole" if whole else "number", "least": least, "most": most}
        case _:
            raise ArgumentError(
                f"parameter({default!r}): must be a number, True, False, or a name with choices"
            )
    return dataclasses.field(default=default, metadata={"paceline": about})


def find(
    cc: str, base: str, known: Mapping[str, str], given: type | None
) -> tuple[_core.Scheme, list[tuple[str, str]]]:
    """The scheme of that name, and the files it depends on as names and texts, which travel with the scenario.

    `given` is the class registered under that name, if any; otherwise the name says where the class lies, with files
    relative to `base`. `known` are texts that were read before. Raises ValueError, which says what is wrong.
    """
    if given is not None:
        return scheme(cc, given), [(f"class of {cc}", _source(given))]
    if cc.startswith(LIBRARY):
        return _of_library(cc, base, known)
    place, _, name = cc.removeprefix(PYTHON).rpartition(":")
    if not place or not name:
        raise ValueError(f"`{cc}` is not of the form python:FILE:CLASS, as python:mine.py:Mine")
    if place.endswith(".py"):
        module, text = _of_file(cc, where(base, place), known.get(place))
    else:
        module = _imported(cc, place)
        text = _text_of(module)
    return scheme(cc, _class_in(module, name, cc)), [(place, text)]


def load(cc: str, base: str = ".") -> _core.Scheme:
    """The scheme that "python:FILE:CLASS" or "library:FILE" names. Raises ControllerError."""
    try:
        return find(cc, base, {}, None)[0]
    except ValueError as error:
        raise ControllerError(str(error)) from None


def include() -> Path:
    """The folder of paceline.h, the header for controllers in shared libraries."""
    return Path(__file__).resolve().parent / "include"


def named(text: str) -> str:
    """A controller's name as scenarios write it, also for FILE.py:CLASS, FILE.py with one class, and FILE.so. Raises
    ControllerError."""
    if is_own(text):
        return text
    place, _, name = text.partition(":")
    if place.endswith((".so", ".dylib", ".dll")):
        return LIBRARY + text
    if not place.endswith(".py"):
        return text
    if name:
        return PYTHON + text
    try:
        module, _ = _of_file(text, where(".", place))
    except ValueError as error:
        raise ControllerError(str(error)) from None
    classes = _classes(module)
    if len(classes) != 1:
        many = ", ".join(classes) or "none"
        raise ControllerError(f"{text}: name one of its controllers, as {place}:CLASS; it has {many}")
    return f"{PYTHON}{place}:{classes[0]}"


def function(place: str, name: str) -> Any:
    """The object of that name in a file FILE.py or a module. Raises ValueError."""
    is_file = place.endswith(".py")
    module = _of_file(place, where(".", place))[0] if is_file else _imported(place, place)
    found = getattr(module, name, None)
    if not callable(found):
        raise ValueError(f"there is no function {name} in it")
    return found


def file_of(text: str) -> str:
    """The file that the name of your own controller gives; another text unchanged."""
    found = _OF_FILE.match(text)
    return text if found is None else found[1] or found[2]


def where(base: str, place: str) -> Path:
    """A file that a scenario names: relative to the scenario's folder, else to the current directory, as commands
    name it."""
    path = Path(base, place)
    return (path if path.exists() or not Path(place).exists() else Path(place)).absolute()


def is_own(cc: str) -> bool:
    """Whether the name gives the place of a controller that is not compiled in."""
    return cc.startswith((PYTHON, LIBRARY))


def short(cc: str) -> str:
    """The name that a flow takes from its controller: the class or library of your own, another name unchanged."""
    return Path(cc.rpartition(":")[2]).stem if is_own(cc) else cc


def scheme(name: str, cls: type) -> _core.Scheme:
    """A scheme of that name whose controllers are objects of the class. Raises ValueError."""
    if (made := _SCHEMES.get((name, cls))) is None:
        about = describe(name, cls)
        made = _SCHEMES[name, cls] = _core.Scheme(cls, json.dumps(about))
    return made


def describe(name: str, cls: type) -> dict[str, Any]:
    """Describes a class as a scheme needs it, without creating an object. Raises ValueError."""
    who = f"`{name}`: class {getattr(cls, '__name__', cls)}"
    if not (isinstance(cls, type) and issubclass(cls, WindowController | RateController | MediaController)):
        raise ValueError(
            f"{who} must derive from paceline.WindowController, paceline.RateController or paceline.MediaController"
        )
    if name in {one["name"] for one in json.loads(_core.schemes())}:
        raise ValueError(f"`{name}` is the name of a built-in controller: choose another")
    about: dict[str, Any] = {
        "name": name,
        "summary": _summary(cls),
        "source": str(getattr(cls, "source", "") or f"class {cls.__name__}"),
        "parameters": _parameters(who, cls),
        "gauges": _gauges(who, cls),
    }
    if issubclass(cls, WindowController):
        about |= {"machine": "tcp", **_of_window(who, cls)}
    elif issubclass(cls, RateController):
        about |= {"machine": "tfrc"}
    else:
        about |= {"machine": "rtp", **_of_media(who, cls)}
    _method(who, cls, "on_feedback" if about.get("every") is None else "on_interval", 2)
    for optional, many in _OPTIONAL:
        if hasattr(cls, optional):
            _method(who, cls, optional, many)
    return about


def _method(who: str, cls: type, name: str, many: int) -> None:
    method = getattr(cls, name, None)
    words = {1: "path", 2: "event, path", 3: "acked, marked, path"}[many]
    if not callable(method):
        raise ValueError(f"{who} lacks the method {name}(self, {words})")
    try:
        inspect.signature(method).bind(None, *[None] * many)
    except TypeError:
        raise ValueError(f"{who}: {name} must take (self, {words})") from None


def _summary(cls: type) -> str:
    doc = cls.__dict__.get("__doc__") or ""
    # `dataclass` sets the signature as the docstring of a class without one.
    first = "" if doc.startswith(f"{cls.__name__}(") else doc.strip().partition("\n\n")[0]
    return " ".join(first.split()).rstrip(".") or cls.__name__


def _parameters(who: str, cls: type) -> list[dict[str, Any]]:
    if not dataclasses.is_dataclass(cls):
        return []
    found = []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        about = field.metadata.get("paceline")
        if about is None and isinstance(field.default, bool):
            about = {"kind": "switch", "default": field.default, "doc": "", "unit": "1"}
        if about is None:
            raise ValueError(
                f"{who}: field {field.name} has no range: write paceline.parameter(DEFAULT, LEAST, MOST), or "
                "field(init=False) if it is not a parameter"
            )
        if hasattr(WindowController, field.name) or hasattr(MediaController, field.name):
            raise ValueError(
                f"{who}: field {field.name} has the name of a controller's output: choose another"
            )
        found.append({"name": field.name, **about})
    return found


def _gauges(who: str, cls: type) -> dict[str, str]:
    gauges = getattr(cls, "gauges", {})
    if not isinstance(gauges, Mapping) or not all(isinstance(name, str) for name in gauges):
        raise ValueError(
            f'{who}: gauges must be a dict of attributes and their units, as {{"queueing": "s"}}'
        )
    wrong = [name for name, unit in gauges.items() if unit not in _UNITS]
    if wrong:
        raise ValueError(
            f"{who}: gauges[{wrong[0]!r}] is {gauges[wrong[0]]!r}: the unit must be one of "
            + ", ".join(repr(unit) for unit in _UNITS)
        )
    return {name: _UNITS[unit] for name, unit in gauges.items()}


def _one_of(who: str, cls: type, name: str, allowed: Sequence[str]) -> str:
    value = getattr(cls, name, allowed[0])
    if value not in allowed:
        raise ValueError(f"{who}: {name} is {value!r}, and must be one of {', '.join(map(repr, allowed))}")
    return str(value)


def _number(who: str, cls: type, name: str, minimum: float, maximum: float) -> float | None:
    value = getattr(cls, name, None)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
        raise ValueError(f"{who}: {name} is {value!r}, and must be a number from {minimum:g} to {maximum:g}")
    return float(value)


def _of_window(who: str, cls: type) -> dict[str, Any]:
    needs = getattr(cls, "needs", ())
    if isinstance(needs, str) or (wrong := [need for need in needs if need not in _NEEDS]):
        shown = needs if isinstance(needs, str) else wrong[0]
        raise ValueError(f"{who}: needs has {shown!r}: it must be a tuple of {', '.join(map(repr, _NEEDS))}")
    every = getattr(cls, "every", None)
    if every is not None and every != ROUND_TRIP:
        every = _number(who, cls, "every", 0.0001, 100.0)
    # Delivery-rate samples come from the sender that detects losses by time (RACK).
    needs = list(needs) + (["deliveries"] if every is not None else [])
    usual = "rack" if needs and needs != ["l4s"] else _RECOVERIES[0]
    recovery = _one_of(who, cls, "recovery", (usual, *(one for one in _RECOVERIES if one != usual)))
    if usual == "rack" and recovery != usual:
        raise ValueError(f'{who}: {", ".join(needs)} requires recovery = "rack"')
    return {
        "recovery": recovery,
        "needs": needs,
        "every": every,
        "ecn": _one_of(who, cls, "ecn", _ECN),
    }


def _of_media(who: str, cls: type) -> dict[str, Any]:
    switches = {name: bool(getattr(cls, name, False)) for name in ("tells_sending", "even", "l4s")}
    timer = _number(who, cls, "timer_s", 0.001, 10.0)
    if timer is not None:
        _method(who, cls, "on_timer", 1)
    silence = _number(who, cls, "silence", 0, 1000)
    return {
        **switches,
        "feedback": _one_of(who, cls, "feedback", ("arrivals", "reports")),
        "feedback_format": _one_of(who, cls, "feedback_format", ("rfc8888", "twcc")),
        "feedback_interval_s": _number(who, cls, "feedback_interval_s", 0.001, 10.0),
        "timer_s": timer,
        "burst_s": _number(who, cls, "burst_s", 0.0, 1.0),
        "silence": None if silence is None else int(silence),
    }


def _read(cc: str, path: Path) -> str:
    try:
        with files.opened(path) as file:
            return file.read().decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ValueError(f"`{cc}`: {path} cannot be read: {why}") from None


def _of_file(cc: str, path: Path, text: str | None = None) -> tuple[types.ModuleType, str]:
    """The module of a file, and its text, which is read unless it was before."""
    if text is None:
        text = _read(cc, path)
    return _module(cc, str(path), text), text


def _module(cc: str, path: str, text: str) -> types.ModuleType:
    """The module that executes a file's text; it can import modules beside the file."""
    if (made := _MODULES.get((path, text))) is not None:
        return made
    known = hashlib.sha256(f"{path}:{text}".encode()).hexdigest()[:16]
    module = types.ModuleType(f"paceline_own_{known}")
    module.__file__ = path
    # Tracebacks show the text that ran, even if the file has changed since.
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(Path(path).parent))
    try:
        with contextlib.redirect_stdout(sys.stderr):  # keep what it prints out of the results
            exec(compile(text, path, "exec"), module.__dict__)  # noqa: S102 (the file is named to be run)
    except Exception as error:
        del sys.modules[module.__name__]
        raise ValueError(f"`{cc}` cannot be loaded:\n{_traceback_text(error, path)}") from None
    finally:
        sys.path.remove(str(Path(path).parent))
    _MODULES[path, text] = module
    return module


def _traceback_text(error: Exception, path: str) -> str:
    """An exception as Python prints it, from the file on."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((n for n, frame in enumerate(frames) if frame.filename == path), len(frames))
    lines = traceback.format_list(frames[first:]) + traceback.format_exception_only(error)
    return "".join(lines).rstrip()


def _imported(cc: str, name: str) -> types.ModuleType:
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except ImportError as error:
        raise ValueError(
            f"`{cc}`: there is no module {name} ({error}); a file is named with its .py, as python:mine.py:Mine"
        ) from None


def _text_of(module: types.ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return f"module {module.__name__}"


def _classes(module: types.ModuleType) -> list[str]:
    """The controllers that a module defines."""
    return [
        key
        for key, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, WindowController | RateController | MediaController)
        and value.__module__ == module.__name__
    ]


def _class_in(module: types.ModuleType, name: str, cc: str) -> type:
    found = getattr(module, name, None)
    if isinstance(found, type):
        return found
    own = _classes(module)
    raise ValueError(
        f"`{cc}`: there is no class {name} in it" + (f"; there is {', '.join(own)}" if own else "")
    )


def _source(cls: type) -> str:
    """What tells a class from another of the same name: its module's text, or the code of a class typed in."""
    module = sys.modules.get(cls.__module__)
    if module is not None and getattr(module, "__file__", None):
        return _text_of(module)
    code = hashlib.sha256()
    for key, value in sorted(vars(cls).items()):
        function = getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType):
            code.update(key.encode() + marshal.dumps(function.__code__))
        elif isinstance(value, int | float | str | tuple):
            code.update(f"{key}={value!r}".encode())
    return f"code {code.hexdigest()}"


def _of_library(cc: str, base: str, known: Mapping[str, str]) -> tuple[_core.Scheme, list[tuple[str, str]]]:
    """The scheme of a shared library, with the file's hash in place of a text: libraries are not copied."""
    place, _, name = cc.removeprefix(LIBRARY).partition(":")
    path = where(base, place)
    try:
        with files.opened(path) as file:
            digest = f"sha256 {hashlib.sha256(file.read()).hexdigest()}"
    except OSError as error:
        raise ValueError(f"`{cc}`: {path} cannot be read: {error.strerror}") from None
    if known.get(place, digest) != digest:
        raise ValueError(f"`{cc}`: {path} is not the library that the scenario was loaded with")
    key = (str(path), digest, name)
    if (made := _LIBRARIES.get((cc, key))) is None:
        if any(other[:2] != key[:2] and other[0] == key[0] for _, other in _LIBRARIES):
            raise ValueError(
                f"`{cc}`: {path} has changed, but this process has the old version loaded and cannot unload it: "
                "restart"
            )
        made = _LIBRARIES[cc, key] = _core.Scheme.library(path, name or None, cc)
    return made, [(place, digest)]
