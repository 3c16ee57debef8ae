"""Directories of results that are damaged, or that somebody made to do harm: one error of ours comes out, in words."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shutil
import struct
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import paceline
from paceline import files
from paceline.axes import combinations
from paceline.errors import PacelineError, StorageError
from paceline.files import parquet, table_files
from paceline.results.results import Results
from paceline.results.store import Store

TEXT = """
duration = "1 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
[flow.media]
cc = "newreno"
"""
VARY: dict[Any, list[Any]] = {
    "flow.media.cc": ["newreno", "vegas"],
    ("link.bottleneck.rate", "link.bottleneck.delay"): [("2 Mbit/s", "10 ms"), ("3 Mbit/s", "7 ms")],
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, -(2**63) - 1, 2**64, 10**40, -1])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["../x", "cwnd", "flow.media.cc", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FEW = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    # each example writes a directory: to make one smaller takes minutes
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


def sweep(out: Path) -> Results:
    return paceline.sweep(
        paceline.parse(TEXT, name="small"), VARY, runs=1, record=["cwnd"], out=out, workers=1
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep, of which each test takes a copy."""
    place = tmp_path_factory.mktemp("damaged") / "whole"
    sweep(place)
    return place


def places(value: Any, before: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a document has values."""
    yield tuple(before)
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places(one, (*before, key))


def changed(document: Any, data: st.DataObject) -> Any:
    """The document with another value in a place of it, or without it."""
    place = data.draw(st.sampled_from(list(places(document))))
    value = data.draw(JSON)
    if not place:
        return value
    document = copy.deepcopy(document)
    around = document
    for key in place[:-1]:
        around = around[key]
    if data.draw(st.booleans()):
        around[place[-1]] = value
    else:
        del around[place[-1]]
    return document


def looked_at(directory: Path) -> None:
    """All that is made of a directory's tables; what is refused is refused in words."""
    with contextlib.suppress(PacelineError):
        results = Results.read(directory)
        for name in ("flows", "queues", "runs", "groups"):
            results.statistics(name)
        results.series("cwnd")
        repr(results)


def gone_on_with(directory: Path) -> None:
    """The same sweep again, and the merge of what it left."""
    with contextlib.suppress(PacelineError):
        sweep(directory)
    with contextlib.suppress(PacelineError):
        paceline.merge([directory], directory.parent / "merged", fresh=True)


@FEW
@given(data=st.data())
def test_whatever_a_manifest_says_one_error_of_ours_comes_out(
    whole: Path, tmp_path: Path, data: st.DataObject
) -> None:
    place = tmp_path / "copy"
    shutil.copytree(whole, place, dirs_exist_ok=True)
    document = changed(json.loads((whole / "manifest.json").read_text()), data)
    (place / "manifest.json").write_text(json.dumps(document))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        looked_at(place)
    gone_on_with(place)


@FEW
@given(data=st.data())
def test_whatever_a_run_says_one_error_of_ours_comes_out(
    whole: Path, tmp_path: Path, data: st.DataObject
) -> None:
    place = tmp_path / "copy"
    shutil.copytree(whole, place, dirs_exist_ok=True)
    run = min((place / "runs").glob("*.json"))
    run.write_text(json.dumps(changed(json.loads(run.read_text()), data)))
    gone_on_with(place)


@FEW
@given(at=st.floats(0, 1), byte=st.integers(0, 255), cut=st.booleans())
@pytest.mark.parametrize("name", ["manifest.json", "flows.parquet", "series-cwnd.parquet", "runs.parquet"])
def test_a_file_with_another_byte_or_an_early_end_is_refused_in_words(
    whole: Path, tmp_path: Path, name: str, at: float, byte: int, cut: bool
) -> None:
    place = tmp_path / "copy"
    shutil.copytree(whole, place, dirs_exist_ok=True)
    content = bytearray((whole / name).read_bytes())
    where = min(round(at * len(content)), len(content) - 1)
    content[where] = byte
    (place / name).write_bytes(content[:where] if cut else content)
    looked_at(place)


def refusal(directory: Path) -> str:
    with pytest.raises(StorageError) as found:
        Results.read(directory)
    return str(found.value)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ('{"seeds": ["one"]}', r"`seeds\[0\]`: Expected `int`, got `str`"),
        ('{"vary": ["x"]}', r"`vary`: Expected `object`, got `array`"),
        ('{"vary": {"a": [1]}, "together": [["a", "b"]]}', '`together` names "b", which is not in `vary`'),
        ('{"vary": {"a": [1], "b": [1, 2]}, "together": [["a", "b"]]}', "equally many values"),
        ("[" * 100_000, "it is nested too deeply"),
        (
            json.dumps({"vary": {f"flow.a.x{n}": list(range(10)) for n in range(24)}}),
            "`vary` makes more than 1,000,000 points",
        ),
        ("[]", "does not hold a JSON object"),
        ("{", "is damaged"),
    ],
)
def test_a_manifest_is_refused_with_its_file_its_key_and_what_it_may_be(
    whole: Path, tmp_path: Path, document: str, said: str
) -> None:
    place = tmp_path / "copy"
    shutil.copytree(whole, place)
    (place / "manifest.json").write_text(document)
    with pytest.raises(StorageError, match=f"manifest.json.*{said}"):
        Results.read(place)


def test_points_are_not_pooled_by_a_manifest_that_does_not_name_their_axis(
    whole: Path, tmp_path: Path
) -> None:
    place = tmp_path / "copy"
    shutil.copytree(whole, place)
    manifest = json.loads((place / "manifest.json").read_text())
    for axis in ["flow.media.cc", "link.bottleneck.rate"]:
        vary = {name: values for name, values in manifest["vary"].items() if name != axis}
        together = [names for names in manifest["together"] if axis not in names]
        (place / "manifest.json").write_text(json.dumps(manifest | {"vary": vary, "together": together}))
        assert f'manifest.json is damaged: `vary` lacks "{axis}"' in refusal(place)
    del manifest["vary"], manifest["together"]
    (place / "manifest.json").write_text(json.dumps(manifest))
    assert "manifest.json is damaged: `vary` lacks " in refusal(place)


def test_a_sweep_that_does_not_say_which_runs_it_has_is_not_merged(whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(whole, place)
    manifest = json.loads((place / "manifest.json").read_text())
    del manifest["seeds"]
    (place / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(
        StorageError, match=r"manifest\.json is damaged: Object missing required field `seeds`"
    ):
        paceline.merge([place], tmp_path / "merged")


def test_a_sweep_of_too_many_points_is_refused_before_they_are_made() -> None:
    with pytest.raises(
        PacelineError, match=r"make 1,000,000,000,000,000,000,000,000 combinations: at most 1,000,000"
    ):
        combinations({f"flow.a.x{n}": list(range(10)) for n in range(24)})


def test_a_summary_that_is_none_is_a_run_that_is_made_again(whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(whole, place)
    runs = sorted((place / "runs").glob("*.json"))
    whats = [[], {"flows": 3}, {"flows": [{"goodput_bps": "fast"}]}, {"flows": [[]]}]
    for path, what in zip(runs, whats, strict=True):
        kept = json.loads(path.read_text())
        path.write_text(json.dumps(kept | {"summary": what}))
    with pytest.raises(
        StorageError, match=r"runs/\w+\.json is damaged: `summary`: Expected `object`, got `array`"
    ):
        paceline.merge([place], tmp_path / "merged")
    sweep(place)
    for path in whole.glob("*.csv"):
        assert (place / path.name).read_bytes() == path.read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_among_the_runs_is_not_waited_for(whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(whole, place)
    first, *others = sorted((place / "runs").glob("*.json"))
    first.unlink()
    os.mkfifo(first)
    with pytest.raises(StorageError, match=r"it is a pipe \(FIFO\), and only regular files are read"):
        paceline.merge([place], tmp_path / "merged")
    series = place / "runs" / f"{others[0].stem}-cwnd.parquet"
    series.unlink()
    os.mkfifo(series)
    sweep(place)
    assert first.is_file()
    assert series.is_file()
    (place / "manifest.json").unlink()
    os.mkfifo(place / "manifest.json")
    with pytest.raises(PacelineError, match=r"manifest\.json"):
        Results.read(place)


def packed(path: Path, rows: int) -> None:
    """A Parquet file of one value again and again: it says of itself that it has `rows` rows."""
    pl.select(seed=pl.repeat(1, rows, dtype=pl.Int64)).write_parquet(path, row_group_size=rows)


def test_a_small_file_that_unpacks_to_gigabytes_is_not_read(tmp_path: Path) -> None:
    rows = 40_000_000
    packed(tmp_path / "x.parquet", rows)
    assert (tmp_path / "x.parquet").stat().st_size < 700_000
    for read in (table_files.read_parquet, table_files.check_parquet):
        with pytest.raises(
            StorageError, match=r"x\.parquet is damaged: its 40,000,000 rows of 1 columns take 0\.3 GB"
        ):
            read(tmp_path / "x.parquet")
    packed(tmp_path / "y.parquet", 1_000_000)
    assert len(table_files.read_parquet(tmp_path / "y.parquet")) == 1_000_000


def test_the_end_of_a_parquet_file_is_what_polars_wrote(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pl.DataFrame(
        {"a": range(1000), "b": [f"text {n}" for n in range(1000)], "c": [[n] for n in range(1000)]}
    )
    table.write_parquet(path, row_group_size=100, compression="uncompressed")
    with path.open("rb") as file:
        found = parquet.footer(file)
        assert file.tell() == 0
    assert (found.rows, found.columns) == (1000, 3)
    assert 16_000 < found.unpacked < path.stat().st_size
    for content in (b"", b"PAR1", b"PAR1" * 3, b"PAR1" + struct.pack("<I4s", 2**31, b"PAR1")):
        path.write_bytes(content)
        with pytest.raises(StorageError, match=r"x\.parquet is damaged"):
            table_files.check_parquet(path)


def test_a_text_that_is_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.json"
    with path.open("wb") as file:
        file.truncate(files.MAX_TEXT + 1)
    with pytest.raises(StorageError, match=r"it has 268,435,457 bytes, and the limit is 268,435,456"):
        files.read_json(path)


@pytest.mark.parametrize("pair", [("c*", "ca"), ("b[2]", "b2"), ("q?", "qa"), ("{x,y}", "x"), ("~", "home")])
def test_a_folder_with_letters_of_patterns_has_its_own_rows(
    tmp_path: Path, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    scenario = paceline.parse(TEXT, name="small")
    for name, seed in ((pair[1], 1), (pair[0], 100)):
        runs = paceline.run(scenario, runs=2, seed=seed, record=["cwnd"], out=name)
        assert runs.series("cwnd")["seed"].unique().sort().to_list() == [seed, seed + 1]
        found = Results.read(name)
        assert found.series("cwnd")["seed"].unique().sort().to_list() == [seed, seed + 1]
        assert found.seeds == [seed, seed + 1]
        again = Store(name)
        assert len(list(again.runs.glob("*.parquet"))) == 2
    # shards, whose runs are copied by name
    parts = [f"{pair[0]}-{k}" for k in (1, 2)]
    for k, part in enumerate(parts, 1):
        paceline.sweep(scenario, VARY, runs=1, record=["cwnd"], out=part, shard=(k, 2))
    merged = paceline.merge(parts, f"{pair[0]}-all")
    assert len(merged.series("cwnd").select("seed", *merged.axes).unique()) == 4
