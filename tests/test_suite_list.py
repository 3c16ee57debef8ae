"""What `suite --list` says of a suite, and how messages name the package's own."""

from __future__ import annotations

import pytest

import screen
from own_controllers import ROOT
from paceline.errors import PacelineWarning
from paceline.studies import reproduction
from paceline.suite import loading, running


def test_the_cases_of_a_suite_come_with_its_source() -> None:
    shown = screen.said("paceline suite calls --list", ROOT, {})
    assert shown.text.partition("case ")[0].split("\n")[-4:-2] == [
        "calls: Calls over fifteen networks",
        "Source: Paceline",
    ]


def test_warnings_name_the_packages_suites_as_commands_do() -> None:
    compiled, _ = running.plan(chosen := loading.load("calls"), running.subjects_of(chosen, ["gcc"]))
    with pytest.warns(PacelineWarning, match=r"^suites/calls/beside\.toml: flow\.test\.ecn"):
        reproduction.plan(compiled, 1)
