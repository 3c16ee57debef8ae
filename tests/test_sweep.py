"""Sweeps, runs and comparisons through the Python functions, with the simulator replaced by something instant where
only the machinery matters."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import paceline
from paceline import _core, axes
from paceline.errors import Interrupted, PacelineError, StorageError
from paceline.results.columns import TABLES
from paceline.results.results import Results, RunRecord
from paceline.results.store import Store
from paceline.results.subjects import metrics_in
from paceline.scenarios.scenario import assignments
from paceline.simulate import points
from paceline.simulate.points import Point, run_points, seeds_from
from paceline.simulate.workers import Threads
from paceline.sweeps.compare import Comparison, differences
from paceline.tables.comparison import verdict as words_of

TEXT = """
duration = "10 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "droptail", limit = "20 packets" }
[flow.media]
cc = "vegas"
count = 2
"""

Run = Callable[..., Any]


@pytest.fixture
def scenario() -> _core.Scenario:
    return paceline.parse(TEXT, name="small")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Replaces the simulator by one whose results depend on scenario and seed only; gives what was run."""
    made: list[tuple[str, int]] = []

    def run(scenario: _core.Scenario, seed: int, record: list[str], every: float, watch: Any) -> Any:
        made.append((scenario.to_toml(), seed))
        base = 4e6 if 'cc = "vegas"' in scenario.to_toml() else 3e6
        # Not a round number, so that it shows if a digit is lost; different delays shuffle the order of finishing.
        goodput = base + 1e5 * ((seed * 2654435761) % 97) / 97
        time.sleep(0.001 * (seed % 3))
        flow = {"flow": "media", "instance": 0, "cc": "x", "goodput_bps": goodput, "rtt_mean_s": None}
        summary = {"name": "small", "duration_s": 10.0, "flows": [flow], "engine": {"packets_sent": seed}}
        return SimpleNamespace(summary_json=json.dumps(summary), series=[])

    monkeypatch.setattr(_core, "run", run)
    return made


def same(a: Results, b: Results) -> None:
    for name in TABLES:
        assert_frame_equal(a.table(name), b.table(name), check_exact=True)


def test_one_and_two_workers_give_the_same(scenario: _core.Scenario, calls: list[Any]) -> None:
    vary = {"flow.media.cc": ["vegas", "newreno"]}
    one = paceline.sweep(scenario, vary, runs=8, workers=1)
    two = paceline.sweep(scenario, vary, runs=8, workers=2)
    same(one, two)
    assert one.flows.select("flow.media.cc", "seed").rows() == [
        (cc, seed) for cc in ("vegas", "newreno") for seed in range(1, 9)
    ]


def test_a_stopped_sweep_goes_on_and_ends_as_if_never_stopped(
    scenario: _core.Scenario, calls: list[Any], tmp_path: Path
) -> None:
    vary = {"flow.media.cc": ["vegas", "newreno"]}
    whole = paceline.sweep(scenario, vary, runs=6, out=tmp_path / "whole")

    def stop(done: float, _total: float) -> None:
        if done >= 5:
            raise KeyboardInterrupt

    calls.clear()
    with pytest.raises(Interrupted) as caught:
        paceline.sweep(scenario, vary, runs=6, out=tmp_path / "cut", workers=2, progress=stop)
    kept = len(list((tmp_path / "cut" / "runs").glob("*.json")))
    assert 5 <= caught.value.finished <= kept < 12
    assert not (tmp_path / "cut" / "flows.parquet").exists()

    calls.clear()
    resumed = paceline.sweep(scenario, vary, runs=6, out=tmp_path / "cut")
    assert len(calls) == 12 - kept
    same(resumed, whole)
    for name in ("flows.parquet", "flows.csv", "flows-statistics.csv", "runs.parquet"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    same(Results.read(tmp_path / "cut"), whole)


def test_more_runs_or_values_use_what_is_there(
    scenario: _core.Scenario, calls: list[Any], tmp_path: Path
) -> None:
    paceline.sweep(scenario, {"flow.media.cc": ["vegas"]}, runs=3, out=tmp_path)
    calls.clear()
    paceline.sweep(scenario, {"flow.media.cc": ["vegas", "newreno"]}, runs=4, out=tmp_path)
    assert len(calls) == 1 + 4


def test_another_sweep_is_not_resumed(scenario: _core.Scenario, calls: list[Any], tmp_path: Path) -> None:
    vary = {"flow.media.cc": ["vegas"]}
    paceline.sweep(scenario, vary, runs=2, out=tmp_path)
    changed = scenario.set("duration", "11 s")
    with pytest.raises(PacelineError, match="the scenario has changed"):
        paceline.sweep(changed, vary, runs=2, out=tmp_path)
    with pytest.raises(
        PacelineError, match=r"resume: it was over flow\.media\.cc, not flow\.media\.count\. Use"
    ):
        paceline.sweep(scenario, {"flow.media.count": [1]}, runs=2, out=tmp_path)
    with pytest.raises(PacelineError, match="other recordings"):
        paceline.sweep(scenario, vary, runs=2, out=tmp_path, record=["cwnd"])
    calls.clear()
    paceline.sweep(changed, vary, runs=2, out=tmp_path, fresh=True)
    assert len(calls) == 2
    assert len(list((tmp_path / "runs").glob("*.json"))) == 2


def test_runs_of_another_build_are_not_used_again(
    scenario: _core.Scenario, calls: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vary = {"flow.media.cc": ["vegas"]}
    paceline.sweep(scenario, vary, runs=2, out=tmp_path)
    points, store = [Point(scenario)], Store(tmp_path)
    run_points(points, [1, 2], store=store)
    calls.clear()
    run_points(points, [1, 2], store=store)
    assert not calls
    # The same version number, but somebody has changed a controller.
    monkeypatch.setattr(_core, "build", lambda: "0.1.0+changed")
    with pytest.raises(PacelineError, match="was rebuilt"):
        paceline.sweep(scenario, vary, runs=2, out=tmp_path)
    run_points(points, [1, 2], store=store)
    assert len(calls) == 2


def test_a_directory_of_something_else_is_left_alone(
    scenario: _core.Scenario, calls: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    for fresh in (False, True):
        with pytest.raises(PacelineError, match="not empty"):
            paceline.sweep(scenario, {"flow.media.cc": ["vegas"]}, out=tmp_path, fresh=fresh)
    paceline.run(scenario, out=tmp_path / "run")
    for fresh in (False, True):
        with pytest.raises(PacelineError, match="directory of a run"):
            paceline.sweep(scenario, {"flow.media.cc": ["vegas"]}, out=tmp_path / "run", fresh=fresh)


def test_a_damaged_run_is_run_again(scenario: _core.Scenario, calls: list[Any], tmp_path: Path) -> None:
    vary = {"flow.media.cc": ["vegas"]}
    first = paceline.sweep(scenario, vary, runs=2, out=tmp_path)
    victim = next((tmp_path / "runs").glob("*.json"))
    victim.write_text(victim.read_text()[:40])
    calls.clear()
    same(paceline.sweep(scenario, vary, runs=2, out=tmp_path), first)
    assert len(calls) == 1


def test_the_error_of_a_run_stops_the_others(
    scenario: _core.Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled = threading.Event()

    class Watch:
        progress = 0.5

        def cancel(self) -> None:
            cancelled.set()

    def run(_scenario: Any, seed: int, *_: Any) -> Any:
        if seed == 2:
            raise paceline.InternalError("Paceline has a defect: seed 2")
        assert cancelled.wait(10)
        raise paceline.Cancelled

    monkeypatch.setattr(_core, "run", run)
    monkeypatch.setattr(_core, "Watch", Watch)
    with pytest.raises(paceline.InternalError, match="seed 2"):
        run_points([Point(scenario)], [1, 2, 3], workers=2)


def test_what_cannot_be_stored_is_said_and_the_rest_is_kept(
    scenario: _core.Scenario, calls: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    real, count = store.put, [0]

    def put(key: str, run: RunRecord) -> RunRecord:
        count[0] += 1
        if count[0] > 3:
            raise StorageError("cannot write x: No space left on device")
        return real(key, run)

    monkeypatch.setattr(store, "put", put)
    with pytest.raises(StorageError, match="No space left"):
        run_points([Point(scenario)], list(range(8)), workers=1, store=store)
    assert len(list(store.runs.glob("*.json"))) == 3


@pytest.mark.parametrize(
    ("first", "runs", "what"), [(0, 0, "from 1 to"), (-1, 1, "seeds must be"), (2**63, 1, "seeds must be")]
)
def test_absurd_seeds_are_refused(first: int, runs: int, what: str) -> None:
    with pytest.raises(PacelineError, match=what):
        seeds_from(first, runs)


def test_absurd_requests_are_refused(scenario: _core.Scenario) -> None:
    with pytest.raises(PacelineError, match='cannot record "speed"'):
        paceline.run(scenario, record=["speed"])  # type: ignore[list-item]
    with pytest.raises(PacelineError, match="recording interval"):
        paceline.run(scenario, record=["cwnd"], record_every_s=0)
    with pytest.raises(PacelineError, match="workers"):
        paceline.run(scenario, workers=0)
    with pytest.raises(PacelineError, match="at least 2 runs"):
        paceline.compare(scenario, {"flow.media.cc": ["vegas", "newreno"]}, runs=1)
    with pytest.raises(PacelineError, match=r'record = .*a list of names, as \["cwnd"'):
        paceline.run(scenario, record="cwnd")  # type: ignore[arg-type]
    with pytest.raises(PacelineError, match=r'flow.media.cc must be a list: \["vegas"\]'):
        paceline.compare(scenario, {"flow.media.cc": "vegas"})
    with pytest.raises(PacelineError, match="two alternatives"):
        paceline.compare(scenario, {"flow.media.cc": ["vegas"]})


def test_a_comparison_finds_what_is_there(scenario: _core.Scenario, calls: list[Any]) -> None:
    vary = {"flow.media.cc": ["vegas", "newreno"]}
    comparison = paceline.compare(scenario, vary, runs=5, metrics=["goodput_bps", "rtt_mean_s"])
    goodput, rtt = comparison.table.to_dicts()
    # The stand-in adds the same noise under a seed: paired, the difference is exact.
    assert (goodput["first"], goodput["second"], goodput["n"]) == ("vegas", "newreno", 5)
    assert goodput["difference"] == pytest.approx(-1e6)
    assert goodput["low"] <= goodput["difference"] <= goodput["high"]
    assert goodput["real"] is True
    assert (rtt["n"], rtt["real"], rtt["p_holm"]) == (0, None, None)


def test_holm_counts_all_comparisons() -> None:
    rows = []
    for cc, shift in (("a", 0.0), ("b", 1.0), ("c", 1.1)):
        for seed, noise in enumerate((0.0, 0.3, -0.2, 0.1, 0.05)):
            summary = {"flows": [{"flow": "f", "instance": 0, "goodput_bps": shift + noise * (1 + shift)}]}
            rows.append(RunRecord(seed, summary, {}, {"cc": cc}))
    table = differences(Results(rows, {"vary": {"cc": ["a", "b", "c"]}}), ["goodput_bps"])
    assert table.select("first", "second").rows() == [("a", "b"), ("a", "c"), ("b", "c")]
    assert (table["p_holm"] >= table["p"]).all()
    assert table["p_holm"].min() == pytest.approx(3 * float(table["p"].min()))  # type: ignore[arg-type]


def test_the_verdict_speaks_of_what_is_not_shown_if_there_is_any() -> None:
    def verdict(shift: float, *flows: str) -> str:
        rows = []
        for cc, step in (("a", 0.0), ("b", shift)):
            for seed, noise in enumerate((0.0, 0.3, -0.2, 0.1, 0.05)):
                rates = [{"flow": f, "instance": 0, "goodput_bps": step + noise * (1 + step)} for f in flows]
                rows.append(RunRecord(seed, {"flows": rates}, {}, {"cc": cc}))
        results = Results(rows, {"vary": {"cc": ["a", "b"]}})
        return words_of(Comparison(differences(results, ["goodput_bps"]), results))

    assert verdict(1.0, "f") == (
        "1 of 1 difference is shown at 5 % after Holm's correction for their number, with 5 runs each."
    )
    assert "2 of 2 differences are shown" in verdict(1.0, "f", "g")
    assert verdict(0.0, "f") == "Nothing that was compared differs in any run, with 5 runs each."


def test_the_verdict_counts_what_holms_correction_counts() -> None:
    rows = []
    for cc, step in (("a", 0.0), ("b", 1.0)):
        for seed, noise in enumerate((0.0, 0.3, -0.2, 0.1, 0.05)):
            other = noise * (1 - 2 * step)
            flows = [("f", step + noise * (1 + step)), ("other", other), ("same", noise), ("too", noise)]
            row = [{"flow": name, "instance": 0, "goodput_bps": rate} for name, rate in flows]
            rows.append(RunRecord(seed, {"flows": row}, {}, {"cc": cc}))
    results = Results(rows, {"vary": {"cc": ["a", "b"]}})
    said = words_of(Comparison(differences(results, ["goodput_bps"]), results))
    assert said.startswith("1 of 2 differences are shown")
    assert said.endswith(" One that is not shown may be there. 2 more do not differ in any run.")


@pytest.mark.parametrize(("runs", "real"), [(2, None), (4, None), (5, True)])
def test_few_runs_show_no_difference(runs: int, real: bool | None) -> None:
    """Counts of two runs often differ by the same in both: Student's t is then as sure as can be."""
    rows = []
    for cc, timeouts in (("a", 1), ("b", 2)):
        for seed in range(runs):
            flow = {"flow": "f", "instance": 0, "timeouts": timeouts}
            rows.append(RunRecord(seed, {"flows": [flow]}, {}, {"cc": cc}))
    results = Results(rows, {"vary": {"cc": ["a", "b"]}})
    table = differences(results, ["timeouts"])
    assert (table["real"][0], table["difference"][0]) == (real, 1.0)
    said = words_of(Comparison(table, results))
    assert ("too few" in said) == (real is None), said


def test_a_flow_and_its_group_of_one_are_one_comparison() -> None:
    rows = []
    for cc, shift in (("a", 0.0), ("b", 1.0)):
        for seed, noise in enumerate((0.0, 0.3, -0.2, 0.1, 0.05)):
            rate = shift + noise * (1 + shift)
            flows = [
                {"flow": flow, "instance": k, "goodput_bps": rate}
                for flow, k in (("f", 0), ("g", 0), ("g", 1))
            ]
            groups = [
                {"group": flow, "flows": many, "goodput_bps": rate * many}
                for flow, many in (("f", 1), ("g", 2))
            ]
            rows.append(RunRecord(seed, {"flows": flows, "groups": groups}, {}, {"cc": cc}))
    results = Results(rows, {"vary": {"cc": ["a", "b"]}})

    def compared(*metrics: str) -> list[tuple[str, str]]:
        return differences(results, metrics).select("metric", "subject").rows()

    of_flows = [("flows.goodput_bps", "f"), ("flows.goodput_bps", "g")]
    assert compared("goodput_bps") == of_flows
    assert compared("flows.goodput_bps", "groups.goodput_bps") == [*of_flows, ("groups.goodput_bps", "g")]
    assert compared("groups.goodput_bps") == [("groups.goodput_bps", "f"), ("groups.goodput_bps", "g")]


def test_an_unknown_metric_is_named(scenario: _core.Scenario, calls: list[Any]) -> None:
    results = paceline.sweep(scenario, {"flow.media.cc": ["vegas"]}, runs=1)
    with pytest.raises(PacelineError, match=r'no metric "speed".*flows: goodput_bps'):
        metrics_in(results, ["speed"])
    assert metrics_in(results, ["flows.goodput_bps"]) == [("flows", "goodput_bps")]


def test_instances_are_averaged_within_a_run_before_comparing() -> None:
    rows = []
    for cc in ("a", "b"):
        for seed in (1, 2):
            flows = [{"flow": "f", "instance": i, "goodput_bps": float(i + seed)} for i in range(3)]
            rows.append(RunRecord(seed, {"flows": flows}, {}, {"cc": cc}))
    table = differences(Results(rows, {"vary": {"cc": ["a", "b"]}}), ["goodput_bps"])
    assert table["n"].to_list() == [2]
    assert table["first_mean"].to_list() == [2.5]


def test_progress_counts_up_to_the_end(scenario: _core.Scenario, calls: list[Any]) -> None:
    seen: list[tuple[float, float]] = []
    paceline.run(scenario, runs=4, progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 4)
    assert seen[-1] == (4, 4)


def test_progress_never_falls(scenario: _core.Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though a crew's share is an estimate: how long a batch takes, by how long the last took."""
    shares = iter([0.75, 0.5, 0.0])
    monkeypatch.setattr(Threads, "share", lambda _: next(shares))
    seen: list[float] = []
    making = points._Making([(Point(scenario), 1)], (), 0.1, None, None, lambda done, _: seen.append(done))
    for _ in range(3):
        making.report(Threads(1, making._make))
    assert seen == [0.75, 0.75, 0.75]


def test_manifests_say_where_numbers_come_from(
    scenario: _core.Scenario, calls: list[Any], tmp_path: Path
) -> None:
    paceline.run(scenario, seed=7, runs=2, out=tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["seeds"] == [7, 8]
    assert manifest["scenario"] == scenario.to_toml()
    assert manifest["versions"]["paceline"] == paceline.__version__
    assert set(manifest["host"]) >= {"platform", "cpu", "cores", "python"}
    assert pl.read_parquet(tmp_path / "flows.parquet")["seed"].to_list() == [7, 8]


SMALL = """
duration = "1 s"
[link.bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
[flow.a]
cc = "vegas"
"""


def test_values_that_are_one_number_and_two_words_stay_apart() -> None:
    found = paceline.sweep(SMALL, {"flow.a.group": ["1", "01"]}, runs=1)
    assert found.flows["flow.a.group"].to_list() == ["1", "01"]
    assert found.statistics("flows")["flow.a.group"].unique(maintain_order=True).to_list() == ["1", "01"]
    great = ["1", "18446744073709551616"]
    assert [label["flow.a.group"] for _, label in axes.combinations({"flow.a.group": great})] == great


def test_what_is_varied_may_be_a_column_already(tmp_path: Path) -> None:
    found = paceline.sweep(SMALL, {"profile": ["rfc", "linux"]}, runs=1, out=tmp_path / "x")
    assert found.statistics("flows")["profile"].unique(maintain_order=True).to_list() == ["rfc", "linux"]


def test_labels_of_recordings_have_one_type() -> None:
    found = paceline.sweep(SMALL, {"flow.a.group": ["1000000", "3000000000"]}, runs=1, record=("cwnd",))
    assert found.series("cwnd")["flow.a.group"].unique().sort().to_list() == [1_000_000, 3_000_000_000]


def test_what_is_set_in_another_spelling_is_set_too() -> None:
    with pytest.raises(PacelineError, match=r'flow."a".cc is set, and flow.a.cc is varied'):
        paceline.sweep(SMALL, {"flow.a.cc": ["vegas", "cubic"]}, set={'flow."a".cc': "newreno"})


def test_shards_that_were_extended_by_a_fraction_are_merged(tmp_path: Path) -> None:
    """1 becomes 1.0 beside 2.5."""
    at = "flow.a.params.alpha"
    for values in (["1", "2"], ["1", "2", "2.5"]):
        for k in (1, 2):
            paceline.sweep(SMALL, {at: values}, runs=2, out=tmp_path / str(k), shard=(k, 2))
    whole = paceline.merge([tmp_path / "1", tmp_path / "2"], out=tmp_path / "whole")
    assert whole.flows.equals(paceline.sweep(SMALL, {at: ["1", "2", "2.5"]}, runs=2).flows)


def test_seeds_that_were_added_are_in_the_manifest_and_no_shard(tmp_path: Path) -> None:
    with pytest.warns(paceline.PacelineWarning, match="as wide after 22 runs"):
        found = paceline.sweep(
            SMALL + "[flow.b]\n",
            {"flow.a.cc": ["vegas", "cubic"]},
            until="goodput_bps of a 0.001 %",
            most=22,
            out=tmp_path / "x",
        )
    back = Results.read(tmp_path / "x")
    assert back.manifest["seeds"] == found.manifest["seeds"] == list(range(1, 23))
    assert back.seeds == found.seeds
    with pytest.raises(PacelineError, match="is no shard: with"):
        paceline.merge([tmp_path / "x"], out=tmp_path / "y")


def test_the_last_value_of_a_path_is_set_last() -> None:
    said = ["flow.a.cc=vegas", 'flow.a={cc="cubic"}', "flow.a.cc=veno"]
    assert list(assignments(said).items()) == [("flow.a", '{cc="cubic"}'), ("flow.a.cc", "veno")]
