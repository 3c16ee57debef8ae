"""What a sweep varies: paths by themselves, and paths that go together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

import paceline
from paceline import _core, campaign
from paceline.axes import axes, axis, combinations, number
from paceline.errors import Interrupted, PacelineError
from paceline.results.columns import TABLES
from paceline.results.results import Results
from paceline.sweeps.sweep import grid, sweep

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
RATE, LIMIT, CC = "link.bottleneck.rate", "link.bottleneck.queue.limit", "flow.media.cc"
TOGETHER = {
    (RATE, LIMIT): [("1 Mbit/s", "10 packets"), ("2 Mbit/s", "20 packets"), ("4 Mbit/s", "20 packets")]
}


@pytest.fixture
def scenario() -> _core.Scenario:
    return paceline.parse(TEXT, name="small")


def test_a_grid_is_every_combination_and_valid_before_anything_runs(scenario: _core.Scenario) -> None:
    points = grid(scenario, {"flow.media.count": ["1", "3"], "flow.media.cc": ["vegas", "newreno"]})
    assert [p.labels for p in points] == [
        {"flow.media.count": 1, "flow.media.cc": "vegas"},
        {"flow.media.count": 1, "flow.media.cc": "newreno"},
        {"flow.media.count": 3, "flow.media.cc": "vegas"},
        {"flow.media.count": 3, "flow.media.cc": "newreno"},
    ]
    with pytest.raises(paceline.ScenarioError, match="count"):
        grid(scenario, {"flow.media.count": ["1", "-1"]})
    with pytest.raises(PacelineError, match="no value"):
        grid(scenario, {"flow.media.count": []})


def test_labels_are_numbers_only_if_all_are() -> None:
    assert [number(t) for t in ("5", "-0.5", "1e3", "5 ms", "0x10", "nan")] == [
        5,
        -0.5,
        1000.0,
        "5 ms",
        "0x10",
        "nan",
    ]


def test_axes_of_numbers_and_text(scenario: _core.Scenario) -> None:
    mixed = grid(
        scenario, {"link.bottleneck.loss": ['{kind="uniform",rate="1 %"}', '{kind="uniform",rate="2 %"}']}
    )
    assert all(isinstance(p.labels["link.bottleneck.loss"], str) for p in mixed)


def test_axes_split_at_commas_outside_of_brackets() -> None:
    assert axis("a.b=1, 2,3") == ("a.b", ["1", "2", "3"])
    assert axis('q={kind="red",limit="5 packets"},{kind="droptail"}')[1] == [
        '{kind="red",limit="5 packets"}',
        '{kind="droptail"}',
    ]
    assert axis('x=["0 s","1 s"],"a,b"')[1] == ['["0 s","1 s"]', '"a,b"']
    for wrong in ("a", "=1", "a=", "a=1,,2", "a=1,"):
        with pytest.raises(PacelineError):
            axis(wrong)
    with pytest.raises(PacelineError, match="more than once"):
        axis("a=1,1")
    with pytest.raises(PacelineError, match="varied twice"):
        axes(["a=1", "a=2"])
    with pytest.raises(PacelineError, match="seed"):
        axes(["seed=1,2"])
    with pytest.raises(PacelineError, match=r"a.queue.limit is varied before a.queue, which replaces it"):
        axes(["a.queue.limit=1,2", "a.queue={x=1},{x=2}"])
    assert len(axes(["a.queue={x=1},{x=2}", "a.queue.limit=1,2"])) == 2


def test_paths_that_go_together_are_written_with_colons() -> None:
    assert axis("a.b,c=1:x, 2:y") == (("a.b", "c"), [("1", "x"), ("2", "y")])
    assert axis('a,"b,c".d=[1,2]:"p:q",{x=1}:r') == (
        ("a", '"b,c".d'),
        [("[1,2]", '"p:q"'), ("{x=1}", "r")],
    )
    assert axis("a=1:2,3") == ("a", ["1:2", "3"]), "of one path a colon is part of the value"
    for wrong in ("a,b=1:2,3", "a,b=1,2", "a,b=1:2:3", "a,b=1:"):
        with pytest.raises(PacelineError, match="a value for each of a, b, with colons between: v:v"):
            axis(wrong)
    with pytest.raises(PacelineError, match="empty path"):
        axis("a,=1:2")
    with pytest.raises(PacelineError, match="1:2 more than once"):
        axis("a,b=1:2,1:2")
    with pytest.raises(PacelineError, match="b is varied twice"):
        axes(["a,b=1:2", "b=3"])
    with pytest.raises(PacelineError, match="a is varied twice"):
        axes(["a,a=1:2"])
    with pytest.raises(PacelineError, match="seed"):
        axes(["a,seed=1:2"])


def test_combinations_step_together_and_apart() -> None:
    assert [labels for _, labels in combinations({("a", "b"): [(1, "x"), (2, "y")], "c": ["u", "v"]})] == [
        {"a": 1, "b": "x", "c": "u"},
        {"a": 1, "b": "x", "c": "v"},
        {"a": 2, "b": "y", "c": "u"},
        {"a": 2, "b": "y", "c": "v"},
    ]
    with pytest.raises(
        PacelineError, match=r"a, b vary together: each step must be a tuple of 2 values, not \(1,\)"
    ):
        combinations({("a", "b"): [(1,)]})
    with pytest.raises(PacelineError, match="not '12'"):
        combinations({("a", "b"): ["12"]})
    with pytest.raises(PacelineError, match="a is varied twice"):
        combinations({("a", "b"): [(1, 2)], "a": [1]})
    with pytest.raises(PacelineError, match="seed"):
        combinations({"seed": [1]})


def test_a_sweep_over_paths_that_go_together(scenario: _core.Scenario, tmp_path: Path) -> None:
    results = paceline.sweep(scenario, {**TOGETHER, CC: ["vegas", "newreno"]}, runs=2, out=tmp_path / "out")
    assert results.axes == [RATE, LIMIT, CC]
    assert results.runs.select(RATE, LIMIT, CC).unique(maintain_order=True).rows() == [
        (rate, limit, cc) for rate, limit in TOGETHER[RATE, LIMIT] for cc in ("vegas", "newreno")
    ]
    # each point is what its labels say
    alone = paceline.run(scenario, runs=2, set={RATE: "4 Mbit/s", LIMIT: "20 packets"})
    mine = results.flows.filter((results.flows[RATE] == "4 Mbit/s") & (results.flows[CC] == "vegas"))
    assert mine["goodput_bps"].to_list() == alone.flows["goodput_bps"].to_list()
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["together"] == [[RATE, LIMIT]]
    assert list(manifest["vary"]) == [RATE, LIMIT, CC]
    assert Results.read(tmp_path / "out").flows.equals(results.flows)
    assert len(results.statistics("flows", measures=["goodput_bps"])) == 6 * 2


def test_a_stopped_sweep_goes_on_where_it_was(scenario: _core.Scenario, tmp_path: Path) -> None:
    whole = paceline.sweep(scenario, TOGETHER, runs=2)

    def stop(done: float, total: float) -> None:
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        paceline.sweep(scenario, TOGETHER, runs=2, out=tmp_path / "cut", workers=1, progress=stop)
    kept = len(list((tmp_path / "cut/runs").glob("*.json")))
    assert 2 <= kept < 6
    resumed = paceline.sweep(scenario, TOGETHER, runs=2, out=tmp_path / "cut")
    for name in TABLES:
        assert_frame_equal(resumed.table(name), whole.table(name), check_exact=True)
    with pytest.raises(PacelineError, match=r"Use another out, or fresh=True to start over"):
        paceline.sweep(scenario, {RATE: ["1 Mbit/s"]}, runs=2, out=tmp_path / "cut")


def test_a_comparison_of_alternatives_that_differ_in_two_keys(scenario: _core.Scenario) -> None:
    table = paceline.compare(scenario, TOGETHER, runs=2, metrics=["flows.goodput_bps"]).table
    assert table["first"].to_list()[0] == f"{RATE}=1 Mbit/s, {LIMIT}=10 packets"
    assert len(table) == 3
    with pytest.raises(PacelineError, match="two alternatives"):
        paceline.compare(scenario, {(RATE, LIMIT): [("1 Mbit/s", "10 packets")]})


def test_a_case_of_a_campaign_varies_too(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(TEXT)
    file = tmp_path / "c.toml"
    head = 'scenario = "one.toml"\n[scheme.tcp]\n[case.plain]\n[case.grown]\n'
    file.write_text(
        f'{head}set = {{ "duration" = "5 s" }}\n[case.grown.vary]\n'
        f'"{RATE},{LIMIT}" = [["1 Mbit/s", "10 packets"], ["4 Mbit/s", "40 packets"]]\n'
    )
    read = campaign.read(file)
    assert [point.labels["case"] for point in read.points] == [
        "plain",
        "grown, rate=1 Mbit/s, limit=10 packets",
        "grown, rate=4 Mbit/s, limit=40 packets",
    ]
    assert [point.scenario.duration_s for point in read.points] == [10.0, 5.0, 5.0]
    assert 'limit = "40 packets"' in read.points[2].scenario.to_toml()
    assert 'rate = "4 Mbit/s"' in read.points[2].scenario.to_toml()
    file.write_text(f'{head}vary = {{ "{RATE},{LIMIT}" = [["1 Mbit/s"]] }}\n')
    with pytest.raises(PacelineError, match=r"case.grown.vary: .* vary together"):
        campaign.read(file)


@pytest.mark.parametrize("varied", ["link.bottleneck.queue.limit", "link.bottleneck.queue"])
def test_what_is_set_is_not_varied_too(scenario: _core.Scenario, varied: str) -> None:
    values: dict[str, list[object]] = {
        "link.bottleneck.queue.limit": ["20 packets", "30 packets"],
        "link.bottleneck.queue": [{"limit": "20 packets"}, {"limit": "30 packets"}],
    }
    with pytest.raises(PacelineError, match=rf"limit is set, and {varied} is varied"):
        sweep(scenario, {varied: values[varied]}, runs=1, set={"link.bottleneck.queue.limit": "9 packets"})


def test_no_point_is_another_under_other_labels(scenario: _core.Scenario) -> None:
    """A queue that is replaced whole forgets the limit varied before it; one that comes first keeps it."""
    limits, queues = ["20 packets", "30 packets"], [{"kind": "droptail"}, {"kind": "codel"}]
    inner, outer = "link.bottleneck.queue.limit", "link.bottleneck.queue"
    with pytest.raises(PacelineError, match=r"limit is varied before .*, which replaces it"):
        grid(scenario, {inner: limits, outer: queues})
    assert len(grid(scenario, {outer: queues, inner: limits})) == 4
    rate = "link.bottleneck.rate"
    with pytest.raises(PacelineError, match=rf"^{rate}=1 Mbit/s and {rate}=1000 kbit/s give the same"):
        grid(scenario, {"link.bottleneck.delay": ["5 ms"], rate: ["1 Mbit/s", "1000 kbit/s"]})
