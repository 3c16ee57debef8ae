"""The classes of a league: a scenario, what is drawn in it, and what counts. Files in `leagues/`, or your own."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paceline import files
from paceline.errors import PacelineError
from paceline.files import package_data
from paceline.leagues import traces
from paceline.leagues.drawing import Die, Drawn, Law, Quantity, law, mean_rate_bps
from paceline.messages.argument_names import meant

_ORDER = (
    "wired", "bufferbloat", "shallow", "lossy", "cellular", "satellite", "low-orbit", "wifi", "policer",
    "beside-cubic", "beside-itself", "media",
)  # fmt: skip
"""Their order on a page: alone on a link first, then beside others."""
MEDIA = "media"
"""The path of a draw for schemes that carry media: their maximum rate."""


@dataclass(frozen=True)
class Draw:
    """One scenario of a class, without schemes."""

    number: int
    """Its round, from 1."""
    scenario: Mapping[str, Any]
    """The scenario as `load` takes it."""
    drawn: Mapping[str, Drawn]
    """The drawn values, by path."""
    capacity_bps: float
    """The mean shared rate over the measured time."""
    peak_bps: float
    """The maximum shared rate."""
    media_bps: float | None
    """The maximum rate that the scheme's flow wants; None: unlimited."""
    fair_bps: float
    """The fair share of each flow that counts, at most."""


@dataclass(frozen=True)
class Class:
    """A class of scenarios."""

    key: str
    title: str
    text: str
    capacity: str
    """The path of the shared rate."""
    schemes: tuple[str, ...]
    """The flows that the scheme controls; the first is measured."""
    held: tuple[str, ...]
    """The flows whose goodput is compared with their fair share."""
    laws: Mapping[str, Law]
    scenario: Mapping[str, Any]
    source: str
    """The file."""

    @property
    def duration_s(self) -> float:
        """The duration of a run."""
        return Quantity.read(self.scenario["duration"]).value

    @property
    def warmup_s(self) -> float:
        """The time from which a run is measured."""
        return Quantity.read(self.scenario.get("warmup", "0 s")).value

    @property
    def wanders(self) -> bool:
        """Whether its rate wanders over time."""
        return any(one.wanders for one in self.laws.values())

    def draw(self, seed: int, number: int) -> Draw:
        """Draws its scenario of a round: the same for each scheme."""
        drawn: dict[str, Drawn] = {}
        scenario = copy.deepcopy(dict(self.scenario))
        for path, one in self.laws.items():
            drawn[path] = one.draw(Die(seed, self.key, path, number), drawn, self.duration_s)
            if path != MEDIA:
                _put(scenario, path, drawn[path])
        capacity, peak = self._capacity(scenario)
        counts = [flow.get("count", 1) for flow in scenario["flow"].values()]
        if not all(isinstance(count, int) and count > 0 for count in counts):
            raise PacelineError(f"count: must be whole numbers from 1, not {counts}")
        many = sum(counts)
        media = drawn.get(MEDIA)
        media_bps = media.value if isinstance(media, Quantity) else None
        fair = capacity / many
        return Draw(
            number,
            scenario,
            drawn,
            capacity,
            peak,
            media_bps,
            fair if media_bps is None else min(media_bps, fair),
        )

    def _capacity(self, scenario: Mapping[str, Any]) -> tuple[float, float]:
        """Mean and maximum of the shared rate. Raises PacelineError if it is not a rate."""
        found = _at(scenario, self.capacity)
        if isinstance(found, Mapping):
            return traces.mean_bps(found, self.warmup_s, self.duration_s), traces.peak_bps(found)
        if isinstance(found, list):
            peak = max(Quantity.read(step.get("rate")).value for step in found)
            return mean_rate_bps(found, self.warmup_s, self.duration_s), peak
        rate = Quantity.read(found)
        if rate.unit != "bit/s" or rate.value <= 0:
            raise PacelineError(f"capacity = {self.capacity!r}: {found} is not a rate")
        return rate.value, rate.value


def _at(scenario: Mapping[str, Any], path: str) -> Any:
    found: Any = scenario
    for key in path.split("."):
        if not isinstance(found, Mapping) or key not in found:
            raise PacelineError(f"capacity = {path!r}: the scenario has no such key")
        found = found[key]
    return found


def _put(scenario: dict[str, Any], path: str, drawn: Drawn) -> None:
    *tables, last = path.split(".")
    place = scenario
    for key in tables:
        place = place.setdefault(key, {})
        if not isinstance(place, dict):
            raise PacelineError(f"draw.{path}: {key} is a value, not a table")
    place[last] = drawn.written() if isinstance(drawn, Quantity) else drawn


def keys() -> list[str]:
    """The classes in the package."""
    there = sorted(path.stem for path in package_data.folder("leagues").glob("*.toml"))
    return [key for key in _ORDER if key in there] + [key for key in there if key not in _ORDER]


def find(named: Sequence[str]) -> list[Class]:
    """The classes with these names and files; without any, all in the package. Raises PacelineError."""
    known = keys()
    found = []
    for name in dict.fromkeys(named or known):
        if name in known:
            found.append(read(package_data.folder("leagues") / f"{name}.toml", f"leagues/{name}.toml"))
        elif Path(name).is_file():
            found.append(read(Path(name), name))
        else:
            raise PacelineError(
                f"no class {name!r}{meant(name, known)}: there are {', '.join(known)}; name your own by its "
                "file"
            )
    doubles = [one.key for one in found if sum(other.key == one.key for other in found) > 1]
    if doubles:
        raise PacelineError(f"two classes have the name {doubles[0]}: rename a file")
    return found


def read(file: Path, name: str) -> Class:
    """Reads a class from its file, which errors call `name`. Raises PacelineError."""
    try:
        table: dict[str, Any] = tomllib.loads(files.read_text(file))
    except tomllib.TOMLDecodeError as error:
        raise PacelineError(f"{name}: {error}") from None
    about, drawn = table.pop("class", None), table.pop("draw", None)
    if not isinstance(about, Mapping) or not isinstance(drawn, Mapping) or not drawn:
        raise PacelineError(f"{name}: a class needs the tables [class] and [draw] besides a scenario's")
    flow = table.get("flow")
    if (
        "duration" not in table
        or not isinstance(flow, Mapping)
        or not all(isinstance(one, Mapping) for one in flow.values())
    ):
        raise PacelineError(f"{name}: needs `duration` and a [flow.NAME] as a scenario does")
    about = dict(about)
    flows = list(flow)
    first = "test" if "test" in flows else flows[0]
    schemes = _flows(about.pop("schemes", [first]), flows, f"{name}: class.schemes")
    held = _flows(about.pop("held", [schemes[0]]), flows, f"{name}: class.held")
    try:
        title, text, capacity = (
            " ".join(str(about.pop(key)).split()) for key in ("title", "text", "capacity")
        )
    except KeyError as error:
        raise PacelineError(f"{name}: class needs {error.args[0]}") from None
    if about:
        raise PacelineError(f"{name}: class has no key {next(iter(about))!r}")
    laws = {path: law(given, f"{name}: draw.{path}") for path, given in drawn.items()}
    for path, one in laws.items():
        before = list(laws)[: list(laws).index(path)]
        if one.needs and one.needs not in before:
            raise PacelineError(f"{name}: draw.{path}: times = {one.needs!r} must be drawn before it")
        if path != MEDIA and "." not in path:
            raise PacelineError(f"{name}: draw.{path}: must be a path, as link.bottleneck.rate, or {MEDIA}")
    made = Class(file.stem, title, text, capacity, schemes, held, laws, table, name)
    try:
        made.draw(1, 1)
    except PacelineError as error:
        raise PacelineError(f"{name}: {error}") from None
    return made


def with_traces(classes: Sequence[Class], recorded: Sequence[Path]) -> list[Class]:
    """The classes, with a recorded trace drawn for each scenario instead of a wandering rate. Raises PacelineError if
    the rate wanders in none."""
    if not any(one.wanders for one in classes):
        raise PacelineError("--traces: in none of these classes does the rate wander (in cellular it does)")
    return [_traced(one, recorded) if one.wanders else one for one in classes]


def _traced(of: Class, recorded: Sequence[Path]) -> Class:
    def moved(path: str) -> str:
        return path.removesuffix("schedule") + "trace"

    laws = {
        moved(path) if one.wanders else path: traces.law(recorded) if one.wanders else one
        for path, one in of.laws.items()
    }
    wanders = of.capacity in of.laws and of.laws[of.capacity].wanders
    return replace(of, laws=laws, capacity=moved(of.capacity) if wanders else of.capacity)


def _flows(given: Any, flows: list[str], where: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not given or not set(given) <= set(flows):
        strange = [name for name in given if name not in flows] if isinstance(given, list) else []
        hint = f"{strange[0]!r} is none{meant(str(strange[0]), flows)}; " if strange else ""
        raise PacelineError(f"{where}: {hint}names of flows, of {', '.join(flows)}")
    return tuple(given)
