"""The parts of a hunt: where it looks, what is worst, what is left of a find."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

import paceline
from paceline.errors import PacelineError
from paceline.hunts import hunt
from paceline.hunts.candidates import Outcome
from paceline.hunts.minimising import minimise
from paceline.hunts.objective import GREATEST, Goal
from paceline.hunts.ranges import Candidate, Range, apart, axes_of, over_of
from paceline.hunts.searching import Try, distinct, said
from paceline.hunts.stages import Found
from paceline.results.results import Results
from test_hunt import LINK


def span(text: str) -> Range:
    (axis,) = axes_of({"link.bottleneck.delay": text}, {})
    assert isinstance(axis, Range)
    return axis


# Where it looks.


@pytest.mark.parametrize(
    ("text", "logarithmic", "shown"),
    [
        ("5 ms..200 ms", True, ["5 ms", "31.6 ms", "200 ms"]),
        ("20 ms..60 ms", False, ["20 ms", "40 ms", "60 ms"]),
        ("40 ms..44 ms", False, ["40 ms", "42 ms", "44 ms"]),
        ("0 s..2 s", False, ["0 s", "1 s", "2 s"]),
        ("1 Mbit/s..1 Gbit/s", True, ["1 Mbit/s", "31.6 Mbit/s", "1 Gbit/s"]),
        ("1 ms..2 s", True, ["1 ms", "44.7 ms", "2 s"]),
        ("5..200 ms", True, ["5 ms", "31.6 ms", "200 ms"]),
        ("2 packets..200 packets", True, ["2 packets", "20 packets", "200 packets"]),
        ("1..9", False, ["1", "5", "9"]),
        ("0.5..2", False, ["0.5", "1.25", "2"]),
        ("0 %..5 %", False, ["0 %", "2.5 %", "5 %"]),
        ("40 B..60 B", False, ["40 B", "50 B", "60 B"]),
    ],
)
def test_a_range_says_its_values_in_its_units(text: str, logarithmic: bool, shown: list[str]) -> None:
    axis = span(text)
    assert axis.logarithmic == logarithmic
    assert [axis.at(0.0), axis.at(0.5), axis.at(1.0)] == shown
    assert axis.ends_text() == [shown[0], shown[2]]


@pytest.mark.parametrize(
    "text", ["5 ms..200 ms", "40 ms..44 ms", "1 Mbit/s..1 Gbit/s", "0 %..5 %", "3..3000"]
)
def test_values_are_short_within_the_range_and_where_they_were_asked_for(text: str) -> None:
    axis = span(text)
    for step in range(101):
        value = axis.at(step / 100)
        there = axis.place(value)
        assert there is not None
        assert 0 <= there <= 1
        assert abs(there - step / 100) < 0.06 if axis.whole else abs(there - step / 100) < 0.006
        assert sum(letter.isdigit() for letter in value.split()[0].lstrip("0.")) <= 4


def test_whole_numbers_stay_whole_and_beyond_the_range_values_go_on() -> None:
    assert {span("1..20").at(step / 50) for step in range(51)} == {str(n) for n in range(1, 21)}
    assert span("20 ms..60 ms").at(-0.5) == "0 ms"
    assert span("20 ms..60 ms").place("80 ms") == pytest.approx(1.5)
    assert span("20 ms..60 ms").place("vegas") is None
    assert span("5 ms..200 ms").rounder("197 ms") == "200 ms"


def test_options_read_as_those_of_a_sweep() -> None:
    texts = [
        "a.b=5 ms..200 ms",
        "c=x,y",
        "d,e=1:2,3:4",
        "f,g=1..9",
        "h=python:../mine.py:Mine,sack",
    ]
    assert over_of(texts) == {
        "a.b": "5 ms..200 ms",
        "c": ["x", "y"],
        ("d", "e"): [("1", "2"), ("3", "4")],
        ("f", "g"): "1..9",
        "h": ["python:../mine.py:Mine", "sack"],
    }
    both = axes_of(over_of(texts[2:4]), {})
    assert both[0].changes("3:4") == {"d": "3", "e": "4"}
    assert both[1].changes("7") == {"f": "7", "g": "7"}


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ({"a": "200 ms..5 ms"}, "low end must come first"),
        ({"a": "5 ms..5 ms"}, "low end must come first"),
        ({"a": "5 ms..20 packets"}, "must be quantities of one kind"),
        ({"a": "5 ms"}, "a range is LOW..HIGH"),
        ({"a": ["x"]}, "one value leaves nothing to search"),
        ({"a": 3}, "a range as"),
        ({"seed": "1..9"}, "seed cannot be varied"),
        ({"name": ["a", "b"]}, 'name": leave it out, since no result depends'),
        ({("link.x.delay", "description"): "1..9"}, 'description": leave it out, since no result depends'),
        ({"a.b": "1..9", "a": ["x", "y"]}, "is varied"),
        ({}, "nothing to search"),
    ],
)
def test_what_is_no_range_is_refused(over: dict[str, Any], says: str) -> None:
    with pytest.raises(PacelineError, match=says):
        axes_of(over, {})


def test_candidates_are_apart_by_the_axis_on_which_they_are_furthest() -> None:
    axes = axes_of({"a": "1 ms..100 ms", "b": ["x", "y"]}, {})
    assert apart(axes, ("1 ms", "x"), ("10 ms", "x")) == pytest.approx(0.5)
    assert apart(axes, ("1 ms", "x"), ("1 ms", "y")) == 1.0
    assert apart(axes, ("1 ms", "x"), ("none", "x")) == 1.0


# What is worst.


@pytest.fixture(scope="module")
def ran() -> Results:
    return paceline.run(LINK, workers=1)


def test_expressions_are_those_over_the_tables(ran: Results) -> None:
    (record,) = ran.records
    flows = {(row["flow"], row["instance"]): row for row in ran.flows.iter_rows(named=True)}
    mine, others = flows["mine", 0], [row for (name, _), row in flows.items() if name == "other"]
    assert Goal("flows.goodput_bps[mine]").of(record) == mine["goodput_bps"]
    assert Goal("goodput_bps[mine] / 1e6 - 1").of(record) == pytest.approx(mine["goodput_bps"] / 1e6 - 1)
    assert Goal("most(flows.rtt_mean_s)").of(record) == max(row["rtt_mean_s"] for row in flows.values())
    assert Goal('least(goodput_bps["other"])').of(record) == min(row["goodput_bps"] for row in others)
    forward = ran.queues.filter(ran.queues["direction"] == "forward")["mean_packets"][0]
    assert Goal("queues.mean_packets[bottleneck]").of(record) == forward
    assert Goal("queues.mean_packets[bottleneck backward]").of(record) < forward
    jain = ran.groups.filter(ran.groups["group"] == "other")["jain"][0]
    assert Goal("1 - groups.jain[other]").of(record) == pytest.approx(1 - jain)


def test_a_division_by_zero_is_the_greatest_and_what_is_null_has_no_value(ran: Results) -> None:
    (record,) = ran.records
    assert Goal("goodput_bps[mine] / 0").of(record) == GREATEST
    assert math.isnan(Goal("flows.frame_delay_p95_s[mine]").of(record))
    assert Goal("coalesce(flows.frame_delay_p95_s[mine], 10)").of(record) == 10


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("flows.goodputbps[mine]", "did you mean flows.goodput_bps"),
        ("goodput_bps[min]", "did you mean mine.*there are mine, other"),
        ("queues.mean_packets[other]", "there are bottleneck"),
        ("streams.late_share[mine]", "a run has no streams"),
        ("goodput_bps[other]", "has 2 rows.*mean, least or most"),
        ("flows.goodput_bps[mine", r'bracket is missing: "flows.goodput_bps\[mine" has "\[" without "\]"'),
        ("goodput_bps[mine / goodput_bps[other]", r'"goodput_bps\[mine /" has "\["'),
        ("1 - goodput_bps mine]", r'has "\]" without "\["'),
        ("log2(goodput_bps[mine], 2)", r"log2\(y\) takes 1 argument, not 2"),
        ("most", "is a function"),
        ("1 +", "invalid syntax"),
        ("sine(goodput_bps[mine])", "no function 'sine'"),
        ("3", "has no measure"),
        (" ", "is empty"),
    ],
)
def test_what_cannot_be_evaluated_is_named(text: str, says: str, ran: Results) -> None:
    with pytest.raises(PacelineError, match=says):
        Goal(text).check(ran.records[0])


def test_a_value_has_the_unit_of_its_measure() -> None:
    assert Goal("flows.goodput_bps[mine]").shown(2e6, 1e5) == "2.00 ± 0.10 Mbit/s"
    assert Goal("flows.goodput_bps[mine] / 1").shown(2.0, 0.1) == "2.00 ± 0.10"


# What is left of a find.


def left_of(find: Candidate, own: Sequence[str], stays: Any) -> tuple[Candidate, int]:
    axes = axes_of({"a": "1 ms..100 ms", "b": "0..100", "c": ["x", "y"]}, {})
    proposed = 0

    def stay(wanted: Sequence[tuple[int, Candidate]]) -> list[bool]:
        nonlocal proposed
        proposed += len(wanted)
        return [
            stays(*(value or mine for value, mine in zip(candidate, own, strict=True)))
            for _, candidate in wanted
        ]

    left: list[Candidate] = []
    minimise([find], axes, own, stay, left)
    return left[0], proposed


def test_only_what_a_find_needs_is_left_and_as_near_to_the_file_as_it_stays() -> None:
    own = ("10 ms", "5", "x")
    left, proposed = left_of(("90 ms", "80", "y"), own, lambda a, b, c: int(b) >= 20)
    assert left[0] is None
    assert left[2] is None
    assert 20 <= int(left[1] or 0) < 25
    assert proposed < 20


def test_of_two_values_either_of_which_does_one_is_left() -> None:
    left, _ = left_of(("90 ms", "80", "x"), ("10 ms", "5", "x"), lambda a, b, c: a != "10 ms" or int(b) > 50)
    assert sum(value is not None for value in left) == 1


def test_a_find_that_needs_all_of_it_stays_as_it_is() -> None:
    find = ("90 ms", "80", "y")
    assert left_of(find, ("10 ms", "5", "x"), lambda *now: now == find)[0] == find


def outcome(mean: float, crash: str | None = None) -> Outcome:
    return Outcome((math.nan,), (crash,), (1.0,)) if crash else Outcome((mean,), (), (0.0,))


def test_finds_differ_and_crashes_come_first_each_kind_once() -> None:
    axes = axes_of({"a": "0..100"}, {})
    tries = [
        Try((str(a),), outcome(float(a), crash))
        for a, crash in [
            (99, None),
            (98, None),
            (50, None),
            (10, None),
            (3, "IndexError: 7"),
            (4, "IndexError: 8"),
        ]
    ]
    found = distinct(tries, axes, min_mean=20.0, max_tries=5, min_distance=0.25)
    assert [one.candidate[0] for one in found] == ["3", "99", "50"]
    assert said(tries[4].outcome) == said(tries[5].outcome)


def test_of_two_kinds_of_failures_a_find_counts_its_own() -> None:
    find = Found(Try(("3",), outcome(0.0, "IndexError: 7")))
    both = Outcome(
        (math.nan, 1.0, math.nan, math.nan),
        ("ValueError: x", "IndexError: 8", "IndexError: 9"),
        (1.0, 0.0, 1.0, 1.0),
    )
    assert find.numbers(both) == (0.0, 0.0, 1.0, 1.0)
    assert find.level(both) == 0.5
    assert find.level(Outcome((), refused="no scenario")) == 0.0


def test_a_candidate_with_more_rows_than_the_file_ends_no_hunt(monkeypatch: pytest.MonkeyPatch) -> None:
    # as where the run fails that would have shown it before the search
    monkeypatch.setattr("paceline.hunts.stages.Stages._check_ends", lambda _: None)
    found = hunt(
        LINK,
        {"flow.mine.count": ["1", "3"], "link.bottleneck.delay": "10 ms..100 ms"},
        "flows.rtt_mean_s[mine]",
        tries=16,
        again=2,
        workers=1,
        set={"duration": "1 s"},
    )
    assert len(found.tried) == 16
    assert any("tries have no single value" in note and "has 3 rows" in note for note in found.notes)
    assert found.finds[0].is_checked
