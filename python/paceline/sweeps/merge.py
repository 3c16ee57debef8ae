"""Merges a sweep's runs from several directories, for example shards run on several machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline import files
from paceline.arguments import checked
from paceline.axes import combinations, short, varied
from paceline.errors import PacelineError
from paceline.messages.argument_names import option
from paceline.results import manifests
from paceline.results.results import Results, RunRecord
from paceline.results.store import Kept, Store, check_kind, unlike

_Runs = dict[tuple[str, int], tuple[Store, str]]
"""By point (its labels as JSON) and seed: the store of the finished run, and its key."""


@checked()
def merge(directories: Sequence[str | Path], out: str | Path, *, fresh: bool = False) -> Results:
    """Merges directories of the same sweep into one sweep in `out`, with all its tables; they stay unchanged.

    They must have the same scenario, Paceline version, values and seeds. Raises PacelineError if they do not, or if a
    run is missing from all of them; StorageError.
    """
    if not directories:
        raise PacelineError("there is nothing to merge: name the directories of the shards")
    places = [Path(one) for one in directories]
    if any(place.resolve() == Path(out).resolve() for place in places):
        raise PacelineError(
            f"{out} is one of the shards, which merging leaves unchanged: give another directory for the whole sweep"
        )
    manifest, runs = _read(places[0])
    for place in places[1:]:
        other, more = _read(place)
        _check_same(places[0], manifest, place, other)
        runs |= more
    points = [labels for _, labels in combinations(varied(manifest))]
    wanted = [(labels, seed) for labels in points for seed in manifest["seeds"]]
    missing = [(labels, seed) for labels, seed in wanted if _name(labels, seed) not in runs]
    if missing:
        names = short(list(manifest["vary"]))
        first = ", ".join(f"{names[path]}={value}" for path, value in missing[0][0].items())
        raise PacelineError(
            f"{len(missing)} of {len(wanted)} runs are in none of these directories, the first of {first}, seed "
            f"{missing[0][1]}: run the missing shards, or resume those that were stopped"
        )
    what = {key: value for key, value in manifest.items() if key != "shard"}
    with Kept(what, out, fresh=fresh) as kept:
        assert kept.store is not None
        records = [
            _take(*runs[_name(labels, seed)], kept.store, manifest, labels, seed) for labels, seed in wanted
        ]
        return kept.results(records)


def _read(directory: Path) -> tuple[dict[str, Any], _Runs]:
    """The manifest of a sweep, and its finished runs."""
    manifest = check_kind(directory, "sweep") if directory.is_dir() else None
    if manifest is None:
        raise PacelineError(f"{directory} holds no sweep: `paceline sweep --out {directory}` makes one")
    manifests.check_sweep(directory / "manifest.json", manifest)
    if "until" in manifest:
        raise PacelineError(
            f"{directory} is no shard: with {option('until')} each point gets the seeds that it needs, in one sweep"
        )
    store = Store(directory, to_write=False)
    runs = {}
    for path in sorted(store.runs.glob("*.json")):
        kept = manifests.run(path)
        if "labels" in kept:
            runs[_name(kept["labels"], kept["seed"])] = (store, path.stem)
    return manifest, runs


def _name(labels: Mapping[str, Any], seed: int) -> tuple[str, int]:
    return json.dumps(labels, sort_keys=True), seed


def _check_same(first: Path, one: Mapping[str, Any], second: Path, other: Mapping[str, Any]) -> None:
    why = unlike(one, other)
    for key in ("vary", "together", "seeds"):
        if why is None and one.get(key) != other.get(key):
            why = f"`{key}` of their manifests differ"
    if why:
        raise PacelineError(f"{first} and {second} are not parts of one sweep: {why}")


def _take(
    store: Store, key: str, to: Store, manifest: Mapping[str, Any], labels: Mapping[str, Any], seed: int
) -> RunRecord:
    """Copies a run to `to`. Raises PacelineError if it is damaged."""
    run = store.get(key, seed, manifest["record"])
    if run is None:
        raise PacelineError(
            f"{store.runs / key}.json is damaged: remove it, and repeat the command of its shard"
        )
    # Write the summary last: it marks the run as finished.
    for path in [*store.series(key, list(run.series)).paths.values(), store.runs / f"{key}.json"]:
        files.copy_whole(path, to.runs / path.name)
    kept = to.get(key, seed, manifest["record"])
    assert kept is not None
    return RunRecord(seed, kept.summary, kept.series, dict(labels))
