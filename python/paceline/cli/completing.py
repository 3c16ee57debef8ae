"""Shell completion of the values of options and arguments. It imports nothing slow, and what cannot be read offers
nothing: a shell shows no errors here.

See the end of this file for the name of each kind of value in `options` and the commands.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from paceline import _core, files
from paceline.errors import PacelineError
from paceline.results.recordings import REAL_SERIES, SERIES

COMPLETE_VARIABLE = "_PACELINE_COMPLETE"
"""The variable in which a shell announces a completion."""

Offered = list[tuple[str, str]]
"""Words and their meanings."""


_before = ""
"""The part of the incomplete word that bash splits off: "flow.film.cc=" of flow.film.cc=ve."""


def prepare(environment: MutableMapping[str, str]) -> None:
    """Rejoins the words that bash splits at each "=", before a completion."""
    global _before  # noqa: PLW0603 (typer has no place for it)
    _before = ""
    if COMPLETE_VARIABLE not in environment:
        return
    # Typer would use Rich to look for markup in meanings, which is slow and removes "[CC]".
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    with contextlib.suppress(KeyError, ValueError):
        if environment[COMPLETE_VARIABLE] == "complete_bash":
            words, at = environment["COMP_WORDS"].split("\n"), int(environment["COMP_CWORD"])
            if at < len(words):
                words, _before = _joined(words[: at + 1])
                environment.update({"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)})


def _joined(words: list[str]) -> tuple[list[str], str]:
    """The words rejoined at "=", the last one after its last "=", and the part before that."""
    found: list[str] = []
    for n, word in enumerate(words):
        if found and (word == "=" or words[n - 1] == "="):
            found[-1] += word
        else:
            found.append(word)
    if "=" not in words[-2:]:
        return found, ""
    before, equals, last = found.pop().rpartition("=")
    if before.startswith("-"):
        option, _, before = before.partition("=")
        found.append(option)
    return [*found, last], before and before + equals


def _offer(words: Callable[[Any, str], Iterable[tuple[str, str]]]) -> Callable[[Any, str], Offered]:
    """Filters words by the prefix of the incomplete one, in typer's format."""

    def complete(ctx: Any, incomplete: str) -> Offered:
        whole = _before + incomplete
        try:
            found = [(word, what) for word, what in words(ctx, whole) if word.startswith(whole)]
        except (PacelineError, OSError, ValueError, LookupError, TypeError, AttributeError):
            return []
        return [(word.removeprefix(_before), what) for word, what in found if word != _before]

    return complete


def _listed(words: Callable[[Any, str], Iterable[tuple[str, str]]]) -> Callable[[Any, str], Offered]:
    """Completes a list: after each comma a word that is not there yet."""

    def parts(ctx: Any, incomplete: str) -> Iterator[tuple[str, str]]:
        before, comma, _ = incomplete.rpartition(",")
        for word, what in words(ctx, incomplete):
            if word not in before.split(","):
                yield before + comma + word, what

    return _offer(parts)


def _schemes() -> Offered:
    return [(one["name"], one["summary"]) for one in json.loads(_core.schemes()) if "variant_of" not in one]


def _examples(_ctx: Any, _incomplete: str) -> Offered:
    from paceline.scenarios.examples import examples

    return list(examples().items())


def _scenarios(ctx: Any, incomplete: str) -> Iterator[tuple[str, str]]:
    """The package's scenarios, and files beside them with the same prefix; the shell completes all other files."""
    from paceline.files.package_data import FOLDERS, folder

    tops = [top for top in FOLDERS if incomplete and f"{top}/".startswith(incomplete.partition("/")[0])]
    for top in tops:
        root = folder(top)
        paths = {path.relative_to(root) for path in root.rglob("*.toml")}
        if Path(top).is_dir():
            paths |= {path.relative_to(top) for path in Path(top).rglob("*.toml")}
        for path in sorted(paths, key=lambda path: (len(path.parts), path)):
            of_campaigns = path.parts[0] == "campaigns"
            if of_campaigns is (ctx.command.name == "campaign") or ctx.command.name == "check":
                yield f"{top}/{path.as_posix()}", ""
    if tops:
        yield from ((path, "") for path in _files(incomplete))


def _files(incomplete: str) -> list[str]:
    """Files and folders in the current folder with this prefix."""
    if "/" in incomplete:
        return []
    return [f"{path}/" if path.is_dir() else str(path) for path in Path().iterdir()]


def _presets(ctx: Any, incomplete: str) -> Iterator[tuple[str, str]]:
    from paceline.playground import presets

    yield from ((one.name, one.title) for one in presets().values())
    yield from _scenarios(ctx, incomplete)


def _papers(_ctx: Any, _incomplete: str) -> Offered:
    from paceline.files.paper_folders import keys

    return [(key, "") for key in keys()]


def _suites(_ctx: Any, _incomplete: str) -> Offered:
    from paceline.suite.suite_folders import keys

    return [(key, "") for key in keys()]


def _table(path: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(files.read_text(path))


def _figures(ctx: Any, _incomplete: str) -> Offered:
    """The figures of the paper on the command line, or of all."""
    from paceline.files.paper_folders import FIGURES, find, keys

    given = ctx.params.get("paper")
    studies = [
        one
        for key in ([given] if given else keys())
        for one in _table(find(key)[0] / FIGURES)["study"].values()
    ]
    return [
        (one["figure"], one["title"]) for one in {one["figure"]: one for one in reversed(studies)}.values()
    ]


def _readings(ctx: Any, _incomplete: str) -> Offered:
    """The readings of the paper on the command line."""
    from paceline.files.paper_folders import READINGS, find

    return [(one["key"], one["title"]) for one in _table(find(ctx.params["paper"])[0] / READINGS)["reading"]]


def _cases(ctx: Any, _incomplete: str) -> Offered:
    from paceline.suite.suite_folders import SUITE, find

    return [(one["key"], one["title"]) for one in _table(find(ctx.params["name"])[0] / SUITE).get("case", [])]


def _schema() -> Any:
    return json.loads(_core.schema_json())["$defs"]


def _meaning(of: Mapping[str, Any]) -> str:
    """The first line of a schema's description."""
    return str(of.get("description", "")).partition("\n")[0]


def _queues(_ctx: Any, _incomplete: str) -> Offered:
    kinds = _schema()["Queue"]["oneOf"]
    return [(one["properties"]["kind"]["const"], _meaning(one)) for one in kinds]


def _flow_keys(ctx: Any, _incomplete: str) -> Iterator[tuple[str, str]]:
    """KEY= for a flow's keys, those of its tables, and its controller's parameters."""
    named = _schema()
    for key, value in named["FlowTable"]["properties"].items():
        references = [one["$ref"] for one in (value, *value.get("anyOf", [])) if "$ref" in one]
        parts = [named[reference.rpartition("/")[2]].get("properties") for reference in references]
        if parts and parts[0]:
            yield from ((f"{key}.{part}=", _meaning(one)) for part, one in parts[0].items())
        elif key not in ("cc", "params"):
            yield f"{key}=", _meaning(value)
    for one in json.loads(_core.schemes()):
        if one["name"] == ctx.params.get("cc"):
            yield from ((f"params.{part['name']}=", part.get("doc", "")) for part in one["params"])


def _classes(_ctx: Any, _incomplete: str) -> Offered:
    from paceline.files.package_data import folder

    return [(path.stem, _table(path)["class"]["title"]) for path in sorted(folder("leagues").glob("*.toml"))]


def _laws(ctx: Any, _incomplete: str) -> Offered:
    """Laws of an access point: `gateway` has their settings as options, `path` after their names."""
    voap = ("voap", "by the delay")
    if ctx.command.name == "gateway":
        return [voap, ("sap-law", "by the capacity")]
    return [voap, ("sap-law,capacity=", "by the capacity"), ("window=", "a fixed window")]


def _profiles(_ctx: Any, _incomplete: str) -> Offered:
    return [(name, what) for name, what, _ in _core.path_profiles()]


def _file_of(ctx: Any) -> dict[str, Any]:
    """The table of the file on the command line, or of the path's profile."""
    from paceline.files.package_data import find

    given = next((ctx.params[key] for key in ("file", "what", "path") if key in ctx.params), None)
    if ctx.command.name == "path":
        for name, _, text in _core.path_profiles():
            if name == given:
                import tomllib

                return tomllib.loads(text)
    return _table(Path(find(str(given))))


def _leaves(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The paths of a file with their values; each flow's controller too, which is often omitted."""
    if before.startswith("flow.") and before.count(".") == 2 and "cc" not in table:
        yield f"{before}cc", None
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{key}.")
        elif not isinstance(value, list) or not any(isinstance(one, Mapping) for one in value):
            yield f"{before}{key}", value


def _values(path: str, now: Any) -> Offered:
    """The values of a key; other than for controllers and switches, its current value."""
    if path.rpartition(".")[2] == "cc":
        return _schemes()
    if isinstance(now, bool):
        return [("true", ""), ("false", "")]
    # A shell word has no spaces, and a quantity needs none.
    return [] if now is None or isinstance(now, list) else [(str(now).replace(" ", ""), "as it is")]


def _assigned(ctx: Any, incomplete: str) -> Iterator[tuple[str, str]]:
    """PATH=VALUE: the file's paths, and once only one is left, its values."""
    path, equals, _ = incomplete.partition("=")
    leaves = [
        (key, now) for key, now in _leaves(_file_of(ctx)) if (key == path if equals else key.startswith(path))
    ]
    if len(leaves) == 1:
        key, now = leaves[0]
        yield from ((f"{key}={value}", what) for value, what in _values(key, now) or [("", "")])
    else:
        yield from ((f"{key}=", "" if now is None else f"now {now}") for key, now in leaves)


def _varied(ctx: Any, incomplete: str) -> Iterator[tuple[str, str]]:
    """PATH=V1,V2,...: after each comma another value."""
    path, equals, text = incomplete.partition("=")
    before, comma, _ = text.rpartition(",")
    if not equals or not comma:
        yield from _assigned(ctx, incomplete)
        return
    for key, now in _leaves(_file_of(ctx)):
        if key == path:
            for value, what in _values(key, now):
                if value not in before.split(","):
                    yield f"{path}={before},{value}", what


def _runs(ctx: Any) -> list[Path]:
    return [Path(run) for run in ctx.params["runs"]]


def _measures(ctx: Any, _incomplete: str) -> Iterator[tuple[str, str]]:
    """The measures of a sweep's runs, as in `Results.plot`: of flows by name, of others as TABLE.MEASURE."""
    kept = [path for run in _runs(ctx) for path in (run / "runs").glob("*.json")]
    summary = files.read_json(kept[0])["summary"]
    for table, rows in summary.items():
        if isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows):
            names = dict.fromkeys(name for row in rows for name in _numbers(row))
            yield from ((name if table == "flows" else f"{table}.{name}", "") for name in names)


def _numbers(row: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """The columns of a row that are measures; {"drops": {"overflow": 3}} is drops_overflow."""
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{before}{key}_")
        elif isinstance(value, int | float) and key not in ("seed", "instance"):
            yield before + key


def _axes(ctx: Any, _incomplete: str) -> Iterator[tuple[str, str]]:
    """The paths that a sweep varies."""
    for run in _runs(ctx):
        manifest = files.read_json(run / "manifest.json")
        yield from ((path, "") for path in manifest["vary"])


def _kinds(ctx: Any, _incomplete: str) -> Iterator[tuple[str, str]]:
    """The recordings of the runs."""
    found = {path.stem.removeprefix("series-") for run in _runs(ctx) for path in run.glob("series-*.parquet")}
    yield from ((kind, "") for kind in sorted(found))


def _recordings(ctx: Any, _incomplete: str) -> Offered:
    return [(kind, "") for kind in (REAL_SERIES if ctx.command.name == "emulate" else SERIES)]


scheme = _offer(lambda _ctx, _incomplete: _schemes())
schemes = _listed(lambda _ctx, _incomplete: _schemes())
example, scenario, preset = _offer(_examples), _offer(_scenarios), _offer(_presets)
paper, suite, profile = _offer(_papers), _offer(_suites), _offer(_profiles)
assigned, varied = _offer(_assigned), _offer(_varied)
recording = _listed(_recordings)
measure, axis, axes, recorded = _offer(_measures), _offer(_axes), _listed(_axes), _listed(_kinds)
figure, case, queue, flow_key = _offer(_figures), _offer(_cases), _offer(_queues), _offer(_flow_keys)
reading = _offer(_readings)
classes, law = _listed(_classes), _offer(_laws)
