"""Chromium's calls over an emulated path, and what is made of a scenario for them and of their statistics."""

from __future__ import annotations

import json
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import paceline
from needs import require
from paceline import _core, realtime
from paceline.calls import browser, camera, ends, plan, tables
from paceline.calls import call as call_module
from paceline.cli import app
from paceline.errors import PacelineError
from paceline.results.results import Results
from paceline.scenarios.scenario import load
from realtime import conclusive
from stand_in import stand_in

DROP_S, STOP_S = 10.0, 17.0
CALL = """
name = "drop"
duration = "17 s"

[link.bottleneck]
rate_schedule = [{ at = "0 s", rate = "1 Mbit/s" }, { at = "10 s", rate = "400 kbit/s" }]
delay = "50 ms"
queue = { kind = "droptail", limit = "37500 B" }
backward = { rate = "100 Mbit/s", queue = { kind = "droptail", limit = "1000 packets" } }

[flow.call]
cc = "gcc"
rtp = { bandwidth = "1.5 Mbit/s", feedback = "twcc" }
app = { kind = "encoder", min_rate = "30 kbit/s", max_rate = "1.5 Mbit/s" }
"""


def resolved(text: str) -> dict[str, Any]:
    return tomllib.loads(paceline.parse(text).to_toml())


@pytest.mark.realtime
@pytest.mark.long
def test_chromium_uses_a_path_and_obeys_a_drop(tmp_path: Path) -> None:
    """Bounds that hold on a busy machine, whose own delays a browser takes for queues: single rates do not."""
    require("namespaces", "chromium")
    numbers = iter(range(3))

    def measure() -> tuple[Results, float]:
        out = tmp_path / str(next(numbers))
        found = paceline.call(paceline.parse(CALL), out=out, event_logs=tmp_path / "events")
        return found, found.records[0].summary["notes"]["host"]["steal_share"]

    def check(found: Results) -> None:
        (flow,) = found.flows.iter_rows(named=True)
        assert (flow["flow"], flow["cc"], flow["profile"]) == ("call", "gcc", "chromium")
        assert flow["cpu_limited_share"] == 0, (
            "the processor limited the encoder: this says nothing of the path"
        )
        rates = found.series("rate")
        late = rates.filter(pl.col("time_s").is_between(5.0, DROP_S))["goodput_bps"].mean()
        assert isinstance(late, float)
        assert 0.4e6 < late < 1e6, "bit/s of 1 Mbit/s"
        gauges = found.series("rtcp")
        soon = gauges.filter(pl.col("time_s").is_between(DROP_S, DROP_S + 4))["allowed_bps"].min()
        assert isinstance(soon, float)
        assert soon < 0.4e6, "bit/s, after a drop to 400 kbit/s"
        after = rates.filter(pl.col("time_s").is_between(DROP_S + 1, STOP_S))["goodput_bps"].mean()
        assert isinstance(after, float)
        assert 0.1e6 < after < 0.4e6
        queue = found.series("queue").filter(direction="forward")
        drained = queue.filter(pl.col("time_s").is_between(DROP_S + 0.2, DROP_S + 6))["delay_s"].min()
        assert isinstance(drained, float)
        assert drained < 0.02, "the queue that the drop made is gone for a moment"
        # The instants are those of the scenario: the drop makes a queue when it comes, and not before.
        worst = queue.filter(pl.col("delay_s") == pl.col("delay_s").max())["time_s"][0]
        assert DROP_S < worst < DROP_S + 5

    conclusive(measure, check)
    # The browsers' own logs can be read, at both ends; up to 5 s at the end are not written yet when a browser ends.
    near, far = (
        paceline.call_log(tmp_path / "events" / f"seed-1-{end}-1.rtceventlog") for end in ("near", "far")
    )
    assert sum(near.flows["packets_sent"]) > 0.6 * sum(far.flows["packets_delivered"]) > 200
    allowed = near.series("rtcp")["allowed_bps"].min()
    assert isinstance(allowed, float)
    assert allowed < 0.4e6
    assert near.series("feedback").height > 50
    # What was written is a run directory as others.
    again = Results.read(tmp_path / "0")
    assert again.manifest["kind"] == "call"
    assert again.series("rate").height > 50


def test_a_path_of_a_call_begins_earlier() -> None:
    table = resolved(CALL)
    moved = tomllib.loads(plan.path(table, 14.0))
    assert "flow" not in moved
    steps = moved["link"]["bottleneck"]["rate_schedule"]
    assert [_core.quantity(step["at"], "s") for step in steps] == [0.0, 24.0]
    assert moved["link"]["bottleneck"]["queue"] == table["link"]["bottleneck"]["queue"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"flow.call.count": 2}, "flow.call: a Chromium call must be one flow"),
        ({"flow.call.from": "right", "flow.call.to": "left"}, "flow.call: a Chromium call must be one flow"),
        ({"flow.call.cc": "nada", "flow.call.rtp": {"bandwidth": "1 Mbit/s"}}, '0 flows with cc = "gcc"'),
    ],
)
def test_what_no_real_call_can_be(change: dict[str, Any], said: str) -> None:
    table = tomllib.loads(load(paceline.parse(CALL), change).to_toml())
    with pytest.raises(PacelineError, match=said):
        plan.calls(table)


def test_instants_that_are_not_moved_are_refused() -> None:
    outage = {"link.bottleneck.outage": [{"from": "1 s", "to": "2 s"}]}
    table = tomllib.loads(load(paceline.parse(CALL), outage).to_toml())
    with pytest.raises(PacelineError, match=r"link.bottleneck.outage: a real call begins 14 s after"):
        plan.path(table, 14.0)


def test_finished_calls_are_kept_on_ctrl_c_and_the_same_command_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = stand_in(monkeypatch, stops=[2], lag_s=1e-5)
    monkeypatch.setattr(browser, "find", lambda: "chromium")
    monkeypatch.setattr(browser, "version", lambda _: "Chromium 1")
    (tmp_path / "call.toml").write_text(
        CALL.replace("17 s", "1 s").replace('"10 s"', '"0.5 s"').replace("10 s", "0.5 s")
    )
    out = tmp_path / "out"
    command = ["call", str(tmp_path / "call.toml"), "--runs", "3", "--out", str(out)]
    stopped = CliRunner().invoke(app, command)
    assert stopped.exit_code == 130
    assert f"Stopped. 1 of 3 runs had finished; they are kept in {out}" in " ".join(stopped.stderr.split())
    assert len(list((out / "runs").glob("*.json"))) == 1
    path.stops = []
    went_on = CliRunner().invoke(app, command)
    assert (went_on.exit_code, path.made) == (0, [1, 2, 3]), went_on.output
    assert "Seed 3: packets left 10.0 µs late in the median" in went_on.output
    kept = Results.read(out)
    assert (kept.manifest["kind"], kept.manifest["browser"], kept.seeds) == ("call", "Chromium 1", [1, 2, 3])
    assert kept.recorded() == ["queue", "rate", "rtcp"]


def test_flows_that_are_no_calls_are_handed_to_both_ends(tmp_path: Path) -> None:
    beside = paceline.parse(CALL + '\n[flow.download]\ncc = "cubic"\n')
    planned = call_module._planned(beside, "chromium", None, 20.0)
    assert planned.lead_s == 22.0
    call_module._prepare(tmp_path, planned, beside.duration_s, call_module.RECORD_EVERY_S)
    handed = realtime.read_scenario(tmp_path / ends.OTHERS)
    assert [flow[0] for flow in realtime.flows(handed, 1)] == ["download"]


def test_a_host_without_a_browser_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PacelineError, match=r"needs Chromium.*package chromium"):
        browser.find()


def test_the_camera_shows_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        camera.write(tmp_path / name, 32, 18, 5)
    one = (tmp_path / "one").read_bytes()
    assert one == (tmp_path / "two").read_bytes()
    frame = len(b"FRAME\n") + 32 * 18 * 3 // 2
    assert len(one) == len(b"YUV4MPEG2 W32 H18 F5:1 Ip A1:1 C420jpeg\n") + 5 * camera.LASTS_S * frame


def rows(end: str, counter: str, per_s: float) -> list[dict[str, Any]]:
    other = {"near": "packetsSent", "far": "packetsReceived"}[end]
    return [
        {"call": "call", "at": 100 + t, f"transport_{counter}": per_s * t, f"transport_{other}": 100 * t}
        for t in (0.5, 1.0, 1.5, 2.0, 2.1)
    ]


def test_rows_become_the_tables_of_a_run(tmp_path: Path) -> None:
    file = tmp_path / "near-rows.jsonl"
    lines = [json.dumps(row) for row in rows("near", "bytesSent", 1000.0)]
    lines.insert(1, json.dumps({"call": "another", "at": 101}))
    file.write_text("\n".join(lines) + '\n{"call": "call", "at": 1')  # the last line was cut
    near = tables.rows(file, "call", 100.0, 1.9)
    assert [row["time_s"] for row in near] == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.1])
    far = [{**row, "time_s": row["at"] - 100} for row in rows("far", "bytesReceived", 800.0)]
    rate = tables.rate(near, far, 0.0)
    assert rate["goodput_bps"].to_list() == pytest.approx([0.0] + [6400.0] * 5)
    assert rate["send_rate_bps"].to_list() == pytest.approx([0.0] + [8000.0] * 5)
    call = {"name": "call", "start_s": 0.0, "stop_s": 2.1}
    flow = tables.flow(call, near, far, warmup_s=1.0)
    assert flow["goodput_bps"] == pytest.approx(6400.0)
    assert flow["throughput_bps"] == pytest.approx(6400.0 + 100 * 48 * 8)
    assert flow["packets_sent"] == 110
    assert flow["loss_rate"] is None
    assert flow["rtt_mean_s"] is None


def test_rows_that_a_busy_host_gave_at_once_are_no_rate() -> None:
    """Counters 0.3 ms apart made rates of 58 and 127 Mbit/s."""
    times = [0.2, 0.4, 0.9, 0.9003, 0.95, 1.2, 1.2001]
    far = [{"time_s": at, "transport_bytesReceived": 1e5 * at + 2e3 * n} for n, at in enumerate(times)]
    rate = tables.rate([], far, 0.0)
    assert rate["time_s"].to_list() == [0.0, 0.2, 0.4, 0.9, 1.2]
    assert rate["goodput_bps"].to_list()[1:] == pytest.approx(
        [0.8e6, 0.8e6 + 8 * 2e3 / 0.2, 0.8e6 + 8 * 2e3 / 0.5, 0.8e6 + 8 * 6e3 / 0.3]
    )


def test_a_call_whose_encoder_had_no_processor_is_disturbed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A browser says of each row what limits its encoder."""
    stand_in(monkeypatch, lag_s=1e-5)
    monkeypatch.setattr(browser, "find", lambda: "chromium")
    monkeypatch.setattr(browser, "version", lambda _: "Chromium 1")
    whole = tables.flow

    def limited(*of: Any) -> dict[str, Any]:
        return whole(*of) | {"cpu_limited_share": 0.68}

    (tmp_path / "call.toml").write_text(
        CALL.replace("17 s", "1 s").replace('"10 s"', '"0.5 s"').replace("10 s", "0.5 s")
    )
    command = ["call", str(tmp_path / "call.toml")]
    assert "disturbed" not in CliRunner().invoke(app, command).output
    monkeypatch.setattr(tables, "flow", limited)
    said = " ".join(CliRunner().invoke(app, command).output.split())
    assert "It was disturbed: the processor limited the encoder of call in 68 % of the call." in said


def test_how_long_browsers_may_take_has_a_range_and_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for ready in (0.5, 601.0):
        with pytest.raises(PacelineError, match=f"ready_s = {ready:g}: must be 1 s to 600 s"):
            paceline.call(paceline.parse(CALL), ready_s=ready)

    class Never:
        def __init__(self, *_: Any) -> None:
            self.ready = threading.Event()

    monkeypatch.setattr(ends, "Server", Never)
    monkeypatch.setattr(browser, "start", lambda *_: None)
    monkeypatch.setenv("PACELINE_START", str(time.time() - 5))
    with pytest.raises(SystemExit):
        ends.near(str(tmp_path), "chromium", "1", "0.2", "4.5")
    said = (tmp_path / ends.FAILED).read_text()
    assert "not ready 4.5 s after" in said
    assert "--ready-within 60s (in Python ready_s=60)" in said
