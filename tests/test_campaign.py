"""Campaigns: what a file may say, the order of runs, resuming, and the tables."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

import paceline
from paceline import _core, campaign
from paceline.cli import app
from paceline.cli.campaign import win_said, wins
from paceline.errors import Interrupted, PacelineError
from paceline.results.results import RunRecord

SCENARIO = """
duration = "4 s"
rate_bin = "500 ms"
[link.bottleneck]
rate = "4 Mbit/s"
delay = "10 ms"
[flow.media]
count = 2
"""

CAMPAIGN = """
name = "small"
scenario = "one.toml"
tests = 2
rest = "0.2 s"
[scheme.tcp]
set = { "flow.media.cc" = "newreno" }
[scheme.tfrc]
set = { "flow.media.cc" = "tfrc" }
[case.wide]
[case.narrow]
set = { "link.bottleneck.rate" = "1 Mbit/s" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "one.toml").write_text(SCENARIO)
    path = tmp_path / "small.toml"
    path.write_text(CAMPAIGN)
    return path


class Machine:
    """Stands for a real path: simulates, and remembers what it was asked for and when."""

    def __init__(self, ends_after: int | None = None) -> None:
        self.requested: list[tuple[str, str, int]] = []
        self.times: list[float] = []
        self.ends_after = ends_after

    def __call__(
        self, scenario: _core.Scenario, seed: int, record: Sequence[str], every_s: float
    ) -> RunRecord:
        if self.ends_after is not None and len(self.requested) == self.ends_after:
            raise KeyboardInterrupt
        text = scenario.to_toml()
        rate = "narrow" if 'rate = "1 Mbit/s"' in text else "wide"
        self.requested.append((rate, "tfrc" if 'cc = "tfrc"' in text else "tcp", seed))
        self.times.append(time.monotonic())
        return RunRecord.of(seed, _core.run(scenario, seed, list(record), every_s))


def test_a_simulated_campaign_is_a_sweep_over_cases_and_schemes(file: Path, tmp_path: Path) -> None:
    results = campaign.run(campaign.read(file), out=tmp_path / "out")
    assert results.axes == ["case", "scheme"]
    of = results.flows.select("case", "scheme", "seed").unique(maintain_order=True).rows()
    assert of[:3] == [("wide", "tcp", 1), ("wide", "tcp", 2), ("wide", "tfrc", 1)]
    assert len(of) == 8
    again = paceline.run(
        paceline.parse(SCENARIO), seed=2, set={"flow.media.cc": "tfrc", "link.bottleneck.rate": "1 Mbit/s"}
    )
    mine = results.flows.filter(case="narrow", scheme="tfrc", seed=2)
    assert mine["goodput_bps"].to_list() == again.flows["goodput_bps"].to_list()
    read = paceline.Results.read(tmp_path / "out")
    assert read.flows.equals(results.flows)
    assert read.series("rate")["case"].unique(maintain_order=True).to_list() == ["wide", "narrow"]


def test_schemes_take_turns_within_each_test_with_a_rest_between(file: Path) -> None:
    machine = Machine()
    results = campaign.run(campaign.read(file), over="path", runner=machine)
    once = [("wide", "tcp"), ("wide", "tfrc"), ("narrow", "tcp"), ("narrow", "tfrc")]
    assert machine.requested == [(*what, test) for test in (1, 2) for what in once]
    gaps = [b - a for a, b in zip(machine.times, machine.times[1:], strict=False)]
    assert min(gaps) >= 0.2
    assert results.flows["seed"].to_list()[:4] == [1, 1, 2, 2]


def test_a_stopped_campaign_goes_on_where_it_was(file: Path, tmp_path: Path) -> None:
    read = campaign.read(file)
    with pytest.raises(Interrupted, match="3 of 8"):
        campaign.run(read, over="path", runner=Machine(ends_after=3), out=tmp_path / "out")
    rest = Machine()
    campaign.run(read, over="path", runner=rest, out=tmp_path / "out")
    assert len(rest.requested) == 5
    with pytest.raises(PacelineError, match="runs over something else"):
        campaign.run(read, over="another", runner=Machine(), out=tmp_path / "out")


def test_a_run_that_fails_costs_no_other_and_is_tried_again(file: Path, tmp_path: Path) -> None:
    class Fragile(Machine):
        def __call__(
            self, scenario: _core.Scenario, seed: int, record: Sequence[str], every_s: float
        ) -> RunRecord:
            run = super().__call__(scenario, seed, record, every_s)
            if self.requested[-1] == ("wide", "tfrc", 2):
                raise PacelineError("the other end is gone")
            return run

    read = campaign.read(file)
    with pytest.warns(UserWarning, match="the other end is gone; the run is left out"):
        results = campaign.run(read, over="path", runner=Fragile(), out=tmp_path / "out")
    assert results.flows.filter(case="wide", scheme="tfrc")["seed"].unique().to_list() == [1]
    assert results.flows.filter(case="narrow")["seed"].n_unique() == 2
    again = Machine()
    whole = campaign.run(read, over="path", runner=again, out=tmp_path / "out")
    assert again.requested == [("wide", "tfrc", 2)]
    assert whole.flows.filter(case="wide", scheme="tfrc")["seed"].n_unique() == 2


def test_wins_are_counted_test_by_test(file: Path) -> None:
    results = campaign.run(campaign.read(file), tests=3)
    means = results.flows.group_by("case", "scheme", "seed", maintain_order=True).agg(
        pl.col("goodput_bps").mean()
    )
    by = {(c, s, n): g for c, s, n, g in means.rows()}
    above = sum(by["wide", "tfrc", n] > by["wide", "tcp", n] for n in (1, 2, 3))
    assert win_said(wins(results)[0]) == f"wide, media: tfrc above tcp in {above} of 3 tests"


def test_json_has_the_cases_by_scheme_and_the_wins(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        app(["campaign", str(file), "--tests", "3", "--out", str(tmp_path / "out"), "--json"])
    found = json.loads(capfd.readouterr().out)
    results = campaign.run(campaign.read(file), tests=3)
    assert found["wins"] == wins(results)
    assert (found["name"], found["over"], found["seeds"]) == ("small", "simulator", [1, 2, 3])
    points = [tuple(point["at"].values()) for point in found["points"]]
    assert points == list(dict.fromkeys(results.flows.select("case", "scheme").rows()))
    for point in found["points"]:
        mine = results.flows.filter(**point["at"]).group_by("seed").agg(pl.col("goodput_bps").mean())
        assert point["flows"][0]["goodput_bps"]["mean"] == pytest.approx(mine["goodput_bps"].mean())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tests = 2", "tests = 0", r"small.toml.tests: must be 1 to 10000, not 0"),
        ('rest = "0.2 s"', 'rest = "soon"', r"small.toml.rest: .*soon"),
        ("[case.wide]", "[case.wide]\nduration = 3", r"case.wide: unknown duration"),
        ('scenario = "one.toml"', "", "scenario is missing"),
        ("flow.media.cc", "flow.medium.cc", r"medium"),
        (CAMPAIGN[CAMPAIGN.index("[scheme.tcp]") : CAMPAIGN.index("[case.wide]")], "", "needs scheme"),
        ("[scheme.tcp]", "[shceme.tcp]", "needs at least one|unknown shceme"),
    ],
)
def test_mistakes_name_file_and_key(file: Path, old: str, new: str, said: str) -> None:
    assert old in CAMPAIGN
    file.write_text(CAMPAIGN.replace(old, new, 1))
    with pytest.raises((PacelineError, paceline.ScenarioError), match=said):
        campaign.read(file)


def test_a_scenario_in_the_place_of_a_campaign_is_told_from_one(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(SCENARIO)
    with pytest.raises(
        PacelineError, match=r"one.toml: this is a scenario.*examples/campaigns/wide-area.toml"
    ):
        campaign.read(tmp_path / "one.toml")
