"""Directories of several runs: one command at a time, what is kept when stopped, shards and their merge."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import paceline
from paceline import _core
from paceline.errors import Interrupted, PacelineError
from paceline.results.columns import IDENTITY, TABLES
from paceline.results.results import OnDisk, Results, RunRecord
from paceline.results.store import Store, alone_in

TEXT = """
duration = "2 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "droptail", limit = "20 packets" }
[flow.media]
cc = "newreno"
app = { kind = "stream", media_rate = "1 Mbit/s", length = "1 s" }
"""
VARY: dict[Any, list[Any]] = {
    "flow.media.cc": ["newreno", "vegas"],
    ("link.bottleneck.rate", "link.bottleneck.delay"): [("2 Mbit/s", "10 ms"), ("3 Mbit/s", "7 ms")],
}
ROOT = Path(__file__).parent.parent


@pytest.fixture
def scenario() -> paceline.Scenario:
    return paceline.parse(TEXT, name="small")


def stop_at(runs: int) -> Any:
    """Progress that ends a command as Ctrl-C does."""

    def progress(done: float, _total: float) -> None:
        if done >= runs:
            raise KeyboardInterrupt

    return progress


def same_files(a: Path, b: Path) -> None:
    names = sorted(p.name for p in a.iterdir() if p.suffix in (".parquet", ".csv"))
    assert names == sorted(p.name for p in b.iterdir() if p.suffix in (".parquet", ".csv"))
    assert len(names) > 2 * len(TABLES)
    for name in names:
        assert (a / name).read_bytes() == (b / name).read_bytes(), name


def test_a_directory_is_one_commands_at_a_time(scenario: paceline.Scenario, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom paceline.results.store import alone_in\n"
        "with alone_in(pathlib.Path(sys.argv[1])): print('in', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
        in_use = "is in use: another paceline command writes there"
        with pytest.raises(PacelineError, match=in_use):
            paceline.sweep(scenario, VARY, runs=1, out=tmp_path)
        for runs in (1, 2):
            with pytest.raises(PacelineError, match=in_use):
                paceline.run(scenario, runs=runs, out=tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == [".lock"]
        other.communicate("", timeout=30)
    # One that was killed leaves nothing that stays shut.
    paceline.sweep(scenario, VARY, runs=1, out=tmp_path)


def test_recordings_of_a_sweep_are_on_disk_and_not_in_memory(
    scenario: paceline.Scenario, tmp_path: Path
) -> None:
    here = paceline.sweep(scenario, VARY, runs=2, record=["cwnd", "rate"])
    kept = paceline.sweep(scenario, VARY, runs=2, record=["cwnd", "rate"], out=tmp_path)
    assert all(isinstance(record.series, OnDisk) for record in kept.records)
    for kind in ("cwnd", "rate"):
        written = pl.read_parquet(tmp_path / f"series-{kind}.parquet")
        assert len(written) > 100
        assert_frame_equal(written, here.series(kind), check_exact=True)
        assert_frame_equal(kept.series(kind), here.series(kind), check_exact=True)


def test_runs_that_were_stopped_are_kept_and_gone_on_with(
    scenario: paceline.Scenario, tmp_path: Path
) -> None:
    with pytest.raises(Interrupted, match="they are kept in"):
        paceline.run(scenario, runs=6, record=["cwnd"], out=tmp_path, workers=1, progress=stop_at(3))
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*.json")}
    assert 3 <= len(kept) < 6
    again = paceline.run(scenario, runs=6, record=["cwnd"], out=tmp_path)
    now = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*.json")}
    assert len(now) == 6
    assert kept.items() <= now.items()
    assert_frame_equal(again.flows, paceline.run(scenario, runs=6).flows, check_exact=True)
    # Another scenario takes the directory over, as a single run does, and nothing of the first stays.
    changed = scenario.set("duration", "3 s")
    paceline.run(changed, runs=2, out=tmp_path)
    assert len(list((tmp_path / "runs").glob("*.json"))) == 2
    assert not (tmp_path / "series-cwnd.parquet").exists()
    assert (Results.read(tmp_path).runs["duration_s"] == 3).all()


def test_ctrl_c_is_a_keyboard_interrupt(scenario: paceline.Scenario) -> None:
    """A loop over scenarios that goes on after errors does not go on after it."""
    assert not issubclass(Interrupted, Exception)
    with pytest.raises(KeyboardInterrupt, match=r"Stopped\. [1-3] of 4 runs had finished; they are not kept"):
        paceline.run(scenario, runs=4, workers=1, progress=stop_at(1))


def test_a_file_with_another_name_goes_on_with_its_runs(tmp_path: Path) -> None:
    first, second = tmp_path / "draft.toml", tmp_path / "final.toml"
    first.write_text(TEXT)
    paceline.sweep(first, VARY, runs=1, out=tmp_path / "out")
    kept = sorted((tmp_path / "out" / "runs").iterdir())
    first.rename(second)
    second.write_text('description = "the same"\n' + TEXT)
    results = paceline.sweep(second, VARY, runs=2, out=tmp_path / "out")
    assert set(kept) < set((tmp_path / "out" / "runs").iterdir())
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 2 * len(kept)
    assert {summary["name"] for summary in results.summaries} == {"final"}


@pytest.mark.skipif(not (ROOT / "crates").is_dir(), reason="these are not the sources")
def test_the_core_is_known_by_its_sources_and_not_by_its_build() -> None:
    crates = ROOT / "crates"
    faces = {"python", "web"}  # they hand results on, and make none
    files = [
        p for p in crates.glob("*/src/**/*") if p.is_file() and p.relative_to(crates).parts[0] not in faces
    ]
    number = 0xCBF29CE484222325
    for file in sorted(files, key=lambda p: p.relative_to(crates).as_posix()):
        name = file.relative_to(crates).as_posix().encode()
        for byte in name + file.read_bytes().replace(b"\r", b""):
            number = (number ^ byte) * 0x100000001B3 % 2**64
    version, _, sources = _core.build().partition("+")
    assert version == _core.version().removesuffix("+dev")
    assert sources == f"{number:016x}"


def test_shards_make_the_sweep_of_one_machine(scenario: paceline.Scenario, tmp_path: Path) -> None:
    whole = paceline.sweep(scenario, VARY, runs=3, record=["cwnd"], out=tmp_path / "whole")
    places = [tmp_path / f"shard{k}" for k in (1, 2, 3)]
    for k, place in enumerate(places, 1):
        part = paceline.sweep(scenario, VARY, runs=3, record=["cwnd"], out=place, shard=(k, 3))
        assert len(part.runs) == 4
        assert not list(place.glob("*.parquet"))
        assert len(set(part.runs.select(whole.axes).rows())) > 1, "each shard has runs of several points"
    merged = paceline.merge(places, tmp_path / "merged")
    same_files(tmp_path / "merged", tmp_path / "whole")
    for name in TABLES:
        assert_frame_equal(merged.table(name), whole.table(name), check_exact=True)
    # What was merged goes on as any sweep does.
    more = paceline.sweep(scenario, VARY, runs=4, record=["cwnd"], out=tmp_path / "merged")
    assert len(more.runs) == 16


def test_shards_are_not_merged_into_one_of_them(scenario: paceline.Scenario, tmp_path: Path) -> None:
    places = [tmp_path / f"shard{k}" for k in (1, 2)]
    for k, place in enumerate(places, 1):
        paceline.sweep(scenario, VARY, runs=1, out=place, shard=(k, 2))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for fresh in (False, True):
        with pytest.raises(PacelineError, match=r"shard2 is one of the shards, .* give another directory"):
            paceline.merge(places, tmp_path / "shard1" / ".." / "shard2", fresh=fresh)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("name", "said"), [("x.jpg", r"paceline plot DIR --out FILE.*\.svg, \.png or \.pdf"), ("x.csv", "--json")]
)
def test_a_directory_of_results_has_no_name_of_a_file(
    scenario: paceline.Scenario, tmp_path: Path, name: str, said: str
) -> None:
    for runs in (1, 2):
        with pytest.raises(PacelineError, match=f"{name}: results need a directory.*{said}"):
            paceline.run(scenario, runs=runs, out=tmp_path / name)
    assert not list(tmp_path.iterdir())
    (tmp_path / name).mkdir()
    paceline.run(scenario, out=tmp_path / name)


def test_a_missing_or_foreign_shard_is_named(scenario: paceline.Scenario, tmp_path: Path) -> None:
    first, second, other = (tmp_path / name for name in ("first", "second", "other"))
    paceline.sweep(scenario, VARY, runs=2, out=first, shard=(1, 2))
    with pytest.raises(PacelineError, match=r"first holds shard 1 of 2 of a sweep: when all shards are done"):
        paceline.Results.read(first)
    with pytest.raises(Interrupted):
        paceline.sweep(scenario, VARY, runs=2, out=second, shard=(2, 2), workers=1, progress=stop_at(2))
    left = 4 - len(list((second / "runs").glob("*.json")))
    assert left >= 1
    with pytest.raises(PacelineError, match=rf"{left} of 8 runs are in none of these .*cc=\w+, .*seed \d"):
        paceline.merge([first, second], tmp_path / "out")
    paceline.sweep(scenario.set("duration", "3 s"), VARY, runs=2, out=other, shard=(2, 2))
    with pytest.raises(
        PacelineError, match=r"first and .*other are not parts of one sweep: the scenario has"
    ):
        paceline.merge([first, other], tmp_path / "out")
    paceline.sweep(scenario, VARY, runs=3, out=tmp_path / "three", shard=(2, 2))
    with pytest.raises(PacelineError, match="`seeds` of their manifests differ"):
        paceline.merge([first, tmp_path / "three"], tmp_path / "out")
    with pytest.raises(PacelineError, match="holds no sweep"):
        paceline.merge([first, tmp_path / "nothing"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("shard", [(0, 2), (3, 2), (1, 0)])
def test_a_shard_that_is_none_is_refused(
    scenario: paceline.Scenario, shard: tuple[int, int], tmp_path: Path
) -> None:
    with pytest.raises(PacelineError, match=f"no shard {shard[0]} of {shard[1]}"):
        paceline.sweep(scenario, VARY, shard=shard, out=tmp_path)
    with pytest.raises(PacelineError, match="give out"):
        paceline.sweep(scenario, VARY, shard=(1, 2))


def test_a_varied_duration_is_no_measure_of_a_stream(scenario: paceline.Scenario) -> None:
    results = paceline.sweep(scenario, {"duration": ["2 s", "3 s"]}, runs=2)
    assert results.numbers == {"duration": "set_duration_s"}
    assert results.streams["set_duration_s"].to_list() == [2, 2, 3, 3]
    assert (results.streams["duration_s"] < 2).all()
    assert "set_duration_s" not in results.statistics("streams")["measure"]


def test_a_kept_run_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    store, table = Store(tmp_path), pl.DataFrame({"flow": ["a"], "time_s": [0.5]})
    kept = store.put("k", RunRecord(3, {"flows": []}, {"cwnd": table}, {"x": 1}))
    found = store.get("k", 3, ["cwnd"])
    assert found is not None
    assert found.labels == {"x": 1}
    assert list(found.series) == list(kept.series) == ["cwnd"]
    assert_frame_equal(found.series["cwnd"], table)
    (tmp_path / "runs" / "k-cwnd.parquet").write_bytes(b"PAR1 torn")
    assert store.get("k", 3, ["cwnd"]) is None


def test_a_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), alone_in(tmp_path):
        _ = 1 / 0
    with alone_in(tmp_path):
        pass


def test_scenarios_pickle_copy_and_compare(tmp_path: Path) -> None:
    (tmp_path / "lte.csv").write_text("0 3\n0.5 1\n")
    text = TEXT.replace(
        'rate = "2 Mbit/s"',
        'rate_trace = { file = "lte.csv", format = "seconds-mbit", end = "hold" }\nbackward = { rate = "2 Mbit/s" }',
    )
    file = tmp_path / "traced.toml"
    file.write_text(text)
    one = paceline.load(file)
    (tmp_path / "lte.csv").unlink()
    for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert other == one
        assert hash(other) == hash(one)
        assert other.traces() == one.traces() != []
        assert_frame_equal(paceline.run(other).flows, paceline.run(one).flows, check_exact=True)
    assert one != one.set("seed", "7")
    assert one.set("seed", "7").set("seed", "1") == one
    assert one != object()


def test_the_core_says_which_measures_there_are(scenario: paceline.Scenario) -> None:
    columns = json.loads(_core.columns_json())
    results = paceline.run(scenario)
    for name in TABLES:
        there = set(results.table(name).columns) - {"seed"}
        missing = set(columns[name]) - there - set(IDENTITY[name])
        assert there <= set(columns[name]), name
        if len(results.table(name)):
            assert {
                c for c in missing if not c.startswith(("occupancy_", "friendliness", "l4s_", "classic_"))
            } == set(), name
