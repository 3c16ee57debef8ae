"""The command beside each point of a page gives the point's numbers, digit for digit."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paceline.cli import app
from paceline.files import paper_folders
from paceline.papers import loading
from paceline.scenarios.scenario import assignments, load
from paceline.simulate.points import run_points, seeds_from
from paceline.studies import measure, points
from paceline.studies.points import Place

RUNS = 2


@pytest.mark.parametrize("key", paper_folders.keys())
def test_every_command_means_its_point(key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The scenario that the command line makes is the scenario that was run, name and description apart."""
    monkeypatch.chdir(tmp_path)
    paper = loading.load(key)
    seen = 0
    for study in paper.studies.values():
        for place, _, _ in points.places(study):
            words = shlex.split(points.command(paper, study, place, RUNS))
            settings = assignments([words[i + 1] for i, word in enumerate(words) if word == "--set"])
            typed = load(words[2], settings).set("name", f'"{key}"').set("description", '""')
            assert typed.to_toml() == points.point(paper, study, place).scenario.to_toml(), place
            seen += 1
    assert seen > 50


@pytest.mark.parametrize(
    "place",
    [
        Place("basic", "vegas", "1 Mbit/s"),
        Place("background", "newreno", "1:3"),
        Place("queue", "vegas", "RED"),
    ],
)
def test_a_command_gives_the_numbers(place: Place) -> None:
    paper = loading.load("vegas-streaming")
    study = paper.studies[place.study]
    seeds = seeds_from(points.FIRST_SEED, RUNS)
    records = run_points([points.point(paper, study, place)], seeds)
    ours = measure.of_point(paper.metrics, [record.summary for record in records])

    words = shlex.split(points.command(paper, study, place, RUNS))
    ran = CliRunner().invoke(app, [*words[1:], "--json"])
    assert ran.exit_code == 0, ran.output
    theirs = measure.of_point(paper.metrics, json.loads(ran.stdout)["runs"])
    assert theirs == ours
    assert len(ours["throughput"]) == RUNS
    assert all(value > 0 for value in ours["throughput"])
