"""`paceline emulate` without its path: what is asked of the ends, and what is made of what they and the path leave.

Flows over an emulated path are in `crates/live/src/endpoint/worlds` (in virtual time) and in `test_emulate_real.py`.
"""

from __future__ import annotations

import errno
import io
import math
import os
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import paceline
from paceline import files, realtime
from paceline.cli import app
from paceline.errors import PacelineError, UnwrittenError
from paceline.results.results import RunRecord
from stand_in import LINK, stand_in


def scenario(text: str) -> paceline.Scenario:
    return paceline.parse(LINK + text)


def test_flows_are_asked_for_with_their_ways_instances_and_kernels() -> None:
    requested = realtime.flows(
        scenario(
            '[flow.a]\ncount = 2\ncc = "tfrc"\n[flow.b]\nfrom = "right"\nto = "left"\nkernel = true\nstop = "4 s"\n'
            '[flow.c]\ncc = "cubic"\nkernel = true\n'
        ),
        3,
    )
    assert [
        (name, instance, number, forward, kernel)
        for name, instance, _, number, _, forward, kernel, _ in requested
    ] == [
        ("a", 0, 6000, True, None),
        ("a", 1, 6000, True, None),
        ("b", 0, 4000, False, "reno"),
        ("c", 0, 6000, True, "cubic"),
    ]
    assert len({seed for *_, seed, _, _, _ in requested}) == 4
    assert ("cc", "tfrc") in requested[0][2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[flow.a]\naccess.receiver.loss = "1 %"\n', "flow.a.access: in real time there are no access links"),
        ('topology = "graph"\n', "not a graph"),
    ],
)
def test_what_no_real_path_has_is_refused(text: str, said: str) -> None:
    if "graph" in text:
        graph = LINK.replace(
            "[link.bottleneck]", 'topology = "graph"\n[link.bottleneck]\nbetween = ["x", "y"]'
        )
        made = paceline.parse(graph + '[flow.a]\nfrom = "x"\nto = "y"\n')
    else:
        made = scenario(text)
    with pytest.raises(PacelineError, match=said):
        realtime.flows(made, 1)
    with pytest.raises(PacelineError, match=said):
        paceline.emulate(made)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ('loss = { rate = "1 %", except = ["a"] }', "link.bottleneck.loss.except: a path in real time"),
        ('backward = { loss = { rate = "1 %", only = ["a"] } }', "link.bottleneck.backward.loss.only"),
        ("per_flow = true", "link.bottleneck.per_flow"),
    ],
)
def test_links_that_tell_flows_apart_are_refused(key: str, said: str) -> None:
    made = paceline.parse(LINK.replace("[link.bottleneck]", f"[link.bottleneck]\n{key}") + "[flow.a]\n")
    with pytest.raises(PacelineError, match=said):
        paceline.emulate(made)
    realtime.flows(made, 1)  # over a real path the links are not used


def test_each_instance_starts_when_it_would_in_the_simulator() -> None:
    made = scenario(
        '[flow.a]\ncount = 3\nstart = ["0 s", "2 s", "500 ms"]\n[flow.b]\nstart = { uniform = ["0 s", "1 s"] }\n'
    )
    starts = [dict(settings)["start"] for _, _, settings, *_ in realtime.flows(made, 3)]
    assert starts[:3] == ["0 ns", "2000000000 ns", "500000000 ns"]
    (drawn,) = paceline.run(made, seed=3).flows.filter(flow="b")["start_s"]
    assert float(starts[3].removesuffix(" ns")) / 1e9 == pytest.approx(drawn, abs=1e-9)
    assert 0 < drawn < 1


def test_a_parking_lot_from_a_template_is_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    lot = 'duration = "3 s"\ntopology = "parking-lot"\nhops = 3\n[link.hop]\nrate = "2 Mbit/s"\ndelay = "5 ms"\n'
    made = paceline.parse(lot + '[flow.a]\n[flow.b]\nfrom = "r3"\nto = "r0"\n')
    assert made.ends == ("r0", "r3")
    assert [forward for *_, forward, _, _ in realtime.flows(made, 1)] == [True, False]
    part = paceline.parse(lot + '[flow.a]\nto = "r2"\n')
    with pytest.raises(PacelineError, match="between r0 and r3"):
        realtime.flows(part, 1)
    stand_in(monkeypatch)
    run = realtime.emulate(made, 1)
    assert [(flow["from"] == "here", flow["goodput_bps"] > 1e5) for flow in run.summary["flows"]] == [
        (True, True),
        (False, True),
    ]
    assert len(run.summary["queues"]) == 6


def test_a_run_is_the_flows_and_the_path_together(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    made = scenario('[flow.a]\ncc = "tfrc"\n[flow.b]\nfrom = "right"\nto = "left"\nkernel = true\n')
    run = realtime.emulate(made, 3, ("rate", "queue"))
    assert (run.seed, run.summary["seed"]) == (3, 3)
    assert (run.summary["name"], run.summary["path"]["lag"]["count"]) == ("scenario", 200)
    assert set(run.series) == {"rate", "queue"}, "what was asked for of all that ends record"
    assert "seed" not in run.series["queue"].columns
    assert [(flow["flow"], flow["cc"], flow["profile"]) for flow in run.summary["flows"]] == [
        ("a", "tfrc", "linux"),
        ("b", "reno", "kernel"),
    ]
    assert all("began_s" not in flow for flow in run.summary["notes"]["flows"]), "of no use to anybody else"
    queues = [(queue["direction"], "delay_mean_s" in queue) for queue in run.summary["queues"]]
    assert queues == [("forward", True), ("backward", True)]
    assert "queue" not in realtime.emulate(made, 3, ("rate",)).series


class Full(files.Disk):
    """A disk with room for nothing but what stands in a folder of its own."""

    def __init__(self, results: Path) -> None:
        self._results = results

    def create(self, path: Path) -> io.RawIOBase:
        if path.is_relative_to(self._results):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return super().create(path)


def test_what_was_measured_is_shown_where_it_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It cannot be measured again: `call` goes through the same door."""
    stand_in(monkeypatch)
    (tmp_path / "a.toml").write_text(LINK + "[flow.a]\n")
    out = tmp_path / "out"
    monkeypatch.setattr(files, "DISK", Full(out))
    done = CliRunner().invoke(app, ["emulate", str(tmp_path / "a.toml"), "--out", str(out)])
    assert done.exit_code == 1
    assert "Mbit/s" in done.stdout
    assert "Written to" not in done.stdout
    with pytest.raises(UnwrittenError, match="No space left on device") as failed:
        paceline.emulate(tmp_path / "a.toml", out=out)
    assert isinstance(failed.value.ran, paceline.Results)
    assert failed.value.ran.flows["goodput_bps"][0] > 1e6


def test_a_warm_up_is_left_out_of_measures_and_not_of_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    warm = paceline.parse('warmup = "3 s"\n' + LINK + '[flow.a]\n[flow.b]\ncc = "tfrc"\n')
    run = realtime.emulate(warm, 1, ("rate",))
    assert (run.summary["warmup_s"], run.summary["duration_s"], run.summary["measured_s"]) == (3.0, 6.0, 3.0)
    rates = run.series["rate"]
    assert rates.filter(pl.col("time_s") < 1)["flow"].n_unique() == 2
    for flow in run.summary["flows"]:
        own = rates.filter(pl.col("flow") == flow["flow"], pl.col("time_s") > 3.05)
        assert math.isclose(own["goodput_bps"].mean(), flow["goodput_bps"], rel_tol=0.03)  # type: ignore[arg-type]
        # the bins of half a second after the warm-up, not slow start's
        whole = paceline.run(warm).flows.filter(flow=flow["flow"])
        assert flow["goodput_cov"] == pytest.approx(whole["goodput_cov"][0], abs=0.02)
        assert flow["startup_s"] is None or flow["startup_s"] >= 3


def test_a_flow_s_losses_are_what_the_path_dropped_while_it_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drops = {20_000: [0.5, 2.9, 2.95, 3.05, 5.0], 20_001: [6.01], 20_002: [4.0]}
    stand_in(monkeypatch, drops=drops)
    warm = paceline.parse('warmup = "2900 ms"\n' + LINK + '[flow.a]\n[flow.b]\nfrom = "right"\nto = "left"\n')
    a, b = realtime.emulate(warm, 1).summary["flows"]
    assert (a["packets_lost"], b["packets_lost"]) == (4, 0)
    assert a["loss_rate"] == 4 / a["packets_sent"]
    assert b["loss_rate"] == 0


@pytest.mark.parametrize("every_s", [0.1, 0.5])
def test_recordings_have_the_interval_that_was_asked_for(
    every_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch)
    made = scenario('[flow.a]\ncc = "tfrc"\n[flow.b]\n')
    run = realtime.emulate(made, 1, ("rate", "cwnd", "losses"), every_s)
    fine = realtime.emulate(made, 1, ("rate", "losses"), 0.1)
    for flow in ("a", "b"):
        rates, all_rates = (each.series["rate"].filter(flow=flow) for each in (run, fine))
        assert rates["time_s"].diff().drop_nulls().median() == pytest.approx(every_s)
        moved = [
            (of["goodput_bps"] * of["time_s"].diff().fill_null(of["time_s"][0])).sum()
            for of in (rates, all_rates)
        ]
        assert moved[0] == pytest.approx(moved[1])
        sent = [each.series["losses"].filter(flow=flow)["packets_sent"].sum() for each in (run, fine)]
        assert sent[0] == sent[1] > 100


def test_a_flow_of_which_nothing_arrived_is_a_failure() -> None:
    end = {"well": False, "sender_ended": "there is no vegas", "receiver_ended": None}
    notes = {"flows": [{"flow": "a", "instance": 0, **end}]}

    def run(delivered: int | None) -> RunRecord:
        flows = [{"flow": "a", "instance": 0, "bytes_delivered": delivered}]
        return RunRecord(1, {"flows": flows, "notes": notes})

    realtime.check_moved(run(1), "one")
    for nothing in (0, None):
        with pytest.raises(PacelineError, match=r"nothing of flow a\[0\] arrived. sender: there is no vegas"):
            realtime.check_moved(run(nothing), "one")


def test_runs_that_fail_have_no_rows_and_no_run_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, fails=dict.fromkeys((1, 3), "there is no vegas"))
    with pytest.warns(UserWarning, match="scenario, in real time: there is no vegas; the run is left out"):
        found = paceline.emulate(scenario("[flow.a]\n"), runs=3)
    assert found.seeds == [2]
    assert [set(notes) for notes in found.manifest["notes"]] == [{"server", "host", "flows"}]
    with (
        pytest.warns(UserWarning, match="no vegas; the run is left out"),
        pytest.raises(PacelineError, match="no run ended well") as error,
    ):
        paceline.emulate(scenario("[flow.a]\n"), seed=3)
    assert error.value.exit_code == 1


def test_both_ways_and_several_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    text = '[flow.a]\ncount = 2\ncc = "tfrc"\n[flow.b]\nfrom = "right"\nto = "left"\nkernel = true\n'
    results = paceline.emulate(scenario(text), record=("rate",), out=tmp_path / "out")
    assert results.flows.select("flow", "instance").rows() == [("a", 0), ("a", 1), ("b", 0)]
    assert (results.flows["goodput_bps"] > 2e5).all()
    read = paceline.Results.read(tmp_path / "out")
    assert read.manifest["kind"] == "emulation"
    assert read.series("rate")["flow"].unique(maintain_order=True).to_list() == ["a", "b"]
    assert read.queues["direction"].to_list() == ["forward", "backward"]


@pytest.mark.parametrize("lag_s", [1e-6, 2e-3])
def test_the_command_says_that_a_run_was_disturbed(
    lag_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, lag_s=lag_s)
    file = tmp_path / "one.toml"
    file.write_text(LINK + "[flow.a]\n")
    said = CliRunner().invoke(app, ["emulate", str(file)], catch_exceptions=False)
    assert said.exit_code == 0, said.output
    assert ("The run was disturbed: the emulator was" in " ".join(said.output.split())) == (lag_s > 1e-3)


def test_rates_vary_within_the_time_of_their_flow() -> None:
    """The bins of a flow that starts and stops are its own, as a simulated run has them."""
    times = [0.5 * n for n in range(1, 21)]
    rates = [1e6 * (1 + n % 2) if 4 < t <= 8 else 0.0 for n, t in enumerate(times)]
    table = pl.DataFrame({"flow": "a", "instance": 0, "time_s": times, "goodput_bps": rates})
    table = table.with_columns(send_rate_bps=pl.col("goodput_bps"))
    found = realtime._of_rates(table, 0.5, 2.0, {("a", 0): (4.0, 8.0)})["a", 0]
    assert found["startup_s"] == pytest.approx(1.0 if rates[8] < 1.35e6 else 0.5)
    assert found["goodput_cov"] == found["send_rate_cov"] == pytest.approx(1 / 3)
    whole = realtime._of_rates(table, 0.5, 2.0, {("a", 0): (0.0, 10.0)})["a", 0]["goodput_cov"]
    assert whole is not None
    assert whole > 0.9
