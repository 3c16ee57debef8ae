"""`paceline emulate`: a scenario's flows in real time over its links, beside the same simulated."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

import paceline
from needs import require
from paceline import realtime
from paceline.errors import PacelineError
from paceline.results import RunRecord
from realtime import conclusive

LINK = """
duration = "6 s"
profile = "linux"
rate_bin = "500 ms"
[link.bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = { limit = "40 packets" }
"""


def table(text: str) -> dict[str, object]:
    return tomllib.loads(paceline.parse(LINK + text).to_toml())


def test_flows_are_asked_for_with_their_ways_instances_and_kernels() -> None:
    asked = realtime.flows(
        table(
            '[flow.a]\ncount = 2\ncc = "tfrc"\n[flow.b]\nfrom = "right"\nto = "left"\nkernel = true\nstop = "4 s"\n'
            '[flow.c]\ncc = "cubic"\nkernel = true\n'
        ),
        3,
    )
    assert [
        (name, instance, number, forward, kernel) for name, instance, _, number, _, forward, kernel in asked
    ] == [
        ("a", 0, 6000, True, None),
        ("a", 1, 6000, True, None),
        ("b", 0, 4000, False, "reno"),
        ("c", 0, 6000, True, "cubic"),
    ]
    assert len({seed for *_, seed, _, _ in asked}) == 4
    assert ("cc", "tfrc") in asked[0][2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[flow.a]\nstart = { uniform = ["0 s", "1 s"] }\n', "flow.a.start"),
        ('topology = "graph"\n', "not a graph"),
    ],
)
def test_what_no_real_path_has_is_refused(text: str, said: str) -> None:
    if "graph" in text:
        graph = LINK.replace(
            "[link.bottleneck]", 'topology = "graph"\n[link.bottleneck]\nbetween = ["x", "y"]'
        )
        made = tomllib.loads(paceline.parse(graph + '[flow.a]\nfrom = "x"\nto = "y"\n').to_toml())
    else:
        made = table(text)
    with pytest.raises(PacelineError, match=said):
        realtime.flows(made, 1)


@pytest.mark.parametrize(
    ("what", "flow", "off"),
    [
        ("kernel", "[flow.a]\nkernel = true\n", 0.05),
        ("tfrc", '[flow.a]\ncc = "tfrc"\n', 0.05),
        ("udp", '[flow.a]\ncc = "udp"\napp = { kind = "cbr", rate = "1 Mbit/s" }\n', 0.02),
    ],
)
def test_the_same_in_both_worlds(what: str, flow: str, off: float) -> None:
    require("namespaces")
    scenario = paceline.parse(LINK + flow, name=what)
    simulated = paceline.run(scenario).flows

    def measure() -> tuple[RunRecord, float]:
        run = realtime.emulate(scenario, 1, ("rate", "queue"))
        return run, run.summary["path"]["host"]["steal_share"]

    def check(run: RunRecord) -> None:
        (real,) = run.summary["flows"]
        assert set(run.series) == {"rate", "queue"}
        assert math.isclose(real["goodput_bps"], simulated["goodput_bps"][0], rel_tol=off), real
        assert real["goodput_cov"] is not None

    conclusive(measure, check)


def test_both_ways_and_several_at_once(tmp_path: Path) -> None:
    require("namespaces")
    text = '[flow.a]\ncount = 2\ncc = "tfrc"\n[flow.b]\nfrom = "right"\nto = "left"\nkernel = true\n'
    results = paceline.emulate(paceline.parse(LINK + text), record=("rate",), out=tmp_path / "out")
    assert results.flows.select("flow", "instance").rows() == [("a", 0), ("a", 1), ("b", 0)]
    assert (results.flows["goodput_bps"] > 2e5).all()
    read = paceline.Results.read(tmp_path / "out")
    assert read.series("rate")["flow"].unique(maintain_order=True).to_list() == ["a", "b"]
    assert read.queues["direction"].to_list() == ["forward", "backward"]
