"""What each flow has of a link: the table, its statistics, and what people see of it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import paceline
from paceline.cli.documents import of_runs
from paceline.results.results import Results
from paceline.sweeps.compare import differences
from paceline.tables import summaries

TEXT = """
duration = "10 s"
[link.bottleneck]
rate = "4 Mbit/s"
delay = "10 ms"
queue = { limit = "20 packets" }
per_flow = true
[flow.bulk]
count = 2
[flow.call]
cc = "udp"
app = { kind = "cbr", rate = "400 kbit/s" }
"""
PARTS = ("arrivals", "departures", "departed_bytes", "drops_overflow", "marks", "mean_packets")


def test_the_table_has_each_flow_s_part_of_the_queue(tmp_path: Path) -> None:
    results = paceline.run(paceline.parse(TEXT), runs=2, out=tmp_path / "out")
    table = results.link_flows
    assert table.select("seed", "link", "direction", "flow", "instance").rows()[:3] == [
        (1, "bottleneck", "forward", "bulk", 0),
        (1, "bottleneck", "forward", "bulk", 1),
        (1, "bottleneck", "forward", "call", 0),
    ]
    assert len(table) == 6
    whole = results.queues.filter(direction="forward")
    for part in PARTS:
        sums = table.group_by("seed", maintain_order=True).agg(pl.col(part).sum())[part].to_list()
        assert sums == pytest.approx(whole[part].to_list(), rel=1e-9), part
    assert table.schema["arrivals"] == table.schema["drops_overflow"] == pl.Int64
    assert table.group_by("seed").agg(pl.col("queue_share").sum())["queue_share"].to_list() == pytest.approx(
        [1, 1]
    )
    read = Results.read(tmp_path / "out")
    assert read.link_flows.equals(table)
    # a directory from before there was such a table
    (tmp_path / "out/link_flows.parquet").unlink()
    assert len(Results.read(tmp_path / "out").link_flows) == 0


def test_people_see_it_if_it_is_asked_for() -> None:
    recorded = paceline.run(paceline.parse(TEXT))
    (table,) = [one for one in summaries.tables(recorded) if one.title == "Flows at links (packets)"]
    assert [column.head for column in table.columns][:4] == ["link, flow", "came", "crossed", "dropped"]
    assert list(table.columns[0].cells) == [
        "bottleneck forward, bulk[0]",
        "bottleneck forward, bulk[1]",
        "bottleneck forward, call",
    ]
    assert of_runs(recorded)["link_flows"][0]["flow"] == "bulk"
    unasked = paceline.run(paceline.parse(TEXT.replace("per_flow = true", "")))
    assert len(unasked.link_flows) == 0
    assert "link_flows" not in of_runs(unasked)
    assert all(one.title != "Flows at links (packets)" for one in summaries.tables(unasked))
    assert unasked.flows.equals(recorded.flows)


def test_several_runs_and_comparisons_have_it_too() -> None:
    results = paceline.sweep(paceline.parse(TEXT), {"link.bottleneck.rate": ["2 Mbit/s", "4 Mbit/s"]}, runs=2)
    assert len(results.statistics("link_flows", measures=["drop_share"])) == 6
    table = differences(results, ["link_flows.queue_share"])
    assert table["subject"].to_list() == ["bottleneck forward bulk", "bottleneck forward call"]
    summed = of_runs(paceline.run(paceline.parse(TEXT), runs=2))
    assert summed["link_flows"][2]["arrivals"]["n"] == 2
