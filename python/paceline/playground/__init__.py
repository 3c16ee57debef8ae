"""The playground: one HTML page that runs a scenario in the browser, and the links that open a scenario in it.

The link's parameters follow the page's "#", as for `URLSearchParams`, and no server sees them: `preset=NAME`, or
`toml=`, the whole scenario, with `files=`, its traces (a JSON object of texts), and `runs=K`, the number of seeds, from
the scenario's own on. Scenario and files are UTF-8, deflated without a header (RFC 1951), in base64url without padding
(RFC 4648, section 5).
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from paceline import _core, files
from paceline.arguments import FLAG, checked
from paceline.errors import ArgumentError, PacelineError, StorageError
from paceline.files.package_data import find, folder
from paceline.scenarios.scenario import ScenarioLike, load

NAME = "playground.html"
"""The page's file name, in the package and beside the pages that link to it."""
LONGEST = 64_000
"""The limit on characters of a link; browsers accept some more."""
MAX_RUNS = 1000
_LARGEST = 1_000_000
"""The limit on bytes that a part of a link may decompress to, as the page has it."""


class TooLongError(PacelineError):
    """A scenario with traces that does not fit into a link."""

    def __init__(self, message: str, traces: tuple[str, ...]) -> None:
        super().__init__(message)
        self.traces = traces
        """The names of the traces; without them the scenario may fit."""


@dataclass(frozen=True)
class Linked:
    """The content of a link."""

    text: str = ""
    """The scenario as TOML; "" for a preset, or for the page alone."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The scenario's traces that the link contains: name and text."""
    runs: int = 1
    preset: str | None = None


@dataclass(frozen=True)
class Preset:
    """A scenario that the page offers."""

    name: str
    title: str
    question: str
    """The question that it answers."""
    file: Path
    """Its scenario: the playground's own, an example, or a point of a paper."""


def page() -> Path | None:
    """The built page; None if it was not built."""
    path = Path(__file__).resolve().parents[1] / NAME
    return path if path.is_file() else None


def presets() -> dict[str, Preset]:
    """The presets by name, in the page's order. Raises StorageError if they are not installed, or damaged."""
    path = folder("web/presets") / "presets.json"
    try:
        listed: Any = json.loads(files.read_text(path))
        found = [Preset(one["name"], one["title"], one["question"], _file(one)) for one in listed]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path}: must be a list of tables with name, title and question") from error
    return {one.name: one for one in found}


def _file(preset: Mapping[str, str]) -> Path:
    elsewhere = preset.get("file")
    if elsewhere is None:
        return folder("web/presets") / f"{preset['name']}.toml"
    top, _, rest = elsewhere.partition("/")
    return folder(top) / rest


@checked(traces=FLAG)
def link(scenario: ScenarioLike, *, runs: int = 1, traces: bool = True) -> str:
    """The fragment that opens the playground at a scenario, "toml=...&runs=5", to follow `playground.html#`.

    `scenario` is as in `paceline.run`; comments of a file or text are kept. The page's numbers are those of
    `paceline run` with as many `runs`. Without `traces` the files that the scenario names are left out, and the page
    asks for them. Raises ScenarioError, TooLongError, and PacelineError for a scenario with your own controllers.
    """
    loaded = load(scenario)
    if why := unplayable(loaded):
        raise PacelineError(why)
    return encoded(_text(scenario, loaded), dict(loaded.traces()) if traces else {}, runs)


def _text(scenario: ScenarioLike, loaded: _core.Scenario) -> str:
    """The original text, or else the resolved TOML."""
    if isinstance(scenario, str | Path):
        text = str(scenario)
        return text if "\n" in text else files.read_text(Path(find(text)))
    return loaded.__getnewargs__()[0]


def unplayable(scenario: _core.Scenario) -> str | None:
    """Why a browser cannot run a scenario: it has controllers that are not built in. None if it can."""
    if not scenario.schemes:
        return None
    return (
        f"{scenario.name} has a controller of your own, in Python or C, and the playground has only built-in ones: "
        "`paceline run` runs it"
    )


def encoded(text: str, traces: Mapping[str, str], runs: int = 1) -> str:
    """The fragment of a scenario's text and traces; only its size is checked. Raises ArgumentError for `runs`,
    TooLongError."""
    parts = {"toml": text}
    if traces:
        parts["files"] = json.dumps(dict(traces), ensure_ascii=False, separators=(",", ":"))
    for part in parts.values():
        if len(part.encode()) > _LARGEST:
            of = f" with {', '.join(traces)}" if traces else ""
            raise TooLongError(
                f"the scenario{of} is larger than 1 MB: the playground opens no such link", tuple(traces)
            )
    found = _with_runs({name: _packed(part) for name, part in parts.items()}, runs)
    if len(found) > LONGEST:
        of = f" with {', '.join(traces)}" if traces else ""
        raise TooLongError(
            f"the scenario{of} has {len(found)} characters as a link: at most {LONGEST} are possible",
            tuple(traces),
        )
    return found


def of_preset(name: str, runs: int = 1) -> str:
    """The fragment that opens a preset. Raises ArgumentError for `runs`."""
    return _with_runs({"preset": name}, runs)


def of_page(runs: int = 1) -> str:
    """The fragment of the page without a scenario, "" for one run. Raises ArgumentError for `runs`."""
    return _with_runs({}, runs)


def _with_runs(words: dict[str, str], runs: int) -> str:
    if not 1 <= runs <= MAX_RUNS:
        raise ArgumentError(f"runs {runs}: must be 1 to {MAX_RUNS}")
    return urlencode(words | ({"runs": str(runs)} if runs > 1 else {}))


def read(link: str) -> Linked:
    """The content of a link: the whole address, or the part after its "#". Raises PacelineError for a damaged link, and
    for one that unpacks to more than 1 MB."""
    words = dict(parse_qsl(link.rpartition("#")[2], keep_blank_values=True))
    try:
        text = _unpacked(words.get("toml", ""))
        traces = json.loads(_unpacked(words["files"])) if "files" in words else {}
        runs = int(words.get("runs", "1"))
    except (binascii.Error, zlib.error, ValueError) as error:
        raise PacelineError(f"the link is damaged, or was cut off: {error}") from None
    if not isinstance(traces, dict) or not all(isinstance(one, str) for one in traces.values()):
        raise PacelineError("the link is damaged: `files` must be a table of texts")
    return Linked(text, traces, runs, words.get("preset"))


def _packed(text: str) -> str:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    whole = deflate.compress(text.encode()) + deflate.flush()
    return base64.urlsafe_b64encode(whole).decode().rstrip("=")


def _unpacked(text: str) -> str:
    if not text:
        return ""
    whole = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    found = inflate.decompress(whole, _LARGEST + 1)
    if len(found) > _LARGEST:
        raise PacelineError("the link unpacks to more than 1 MB: no scenario of that size is opened")
    if not inflate.eof:
        raise ValueError("its compressed data are truncated")
    return found.decode()
