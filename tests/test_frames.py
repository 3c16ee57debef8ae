"""The recording `frames`: what becomes of an encoder's frames over time.

That of a flow between hosts is tested by crate live (`tests/session/tables.rs`)."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

import paceline
from paceline import realtime
from paceline.cli import app
from paceline.plots import KINDS, figure
from paceline.plots.timeline import Panel

CALL = """
duration = "8 s"
warmup = "2 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "60 ms"
outage = [{ from = "4 s", to = "5 s" }]
[flow.beside]
cc = "udp"
app = { kind = "cbr", rate = "100 kbit/s" }
[flow.call]
cc = "gcc"
start = "2 s"
stop = "7 s"
app = { kind = "encoder", max_rate = "1 Mbit/s" }
"""


def weighted(rows: pl.DataFrame) -> float:
    """The mean delay of the frames of all rows."""
    known = rows.filter(pl.col("frames") > 0)
    return float(np.average(known["frame_delay_s"], weights=known["frames"]))


def test_rows_are_those_of_the_calls_and_sum_to_the_flows_measures(tmp_path: Path) -> None:
    paceline.run(paceline.parse(CALL), record=("frames",), record_every_s=0.1, out=tmp_path)
    results = paceline.Results.read(tmp_path)
    rows = results.series("frames")
    assert rows.columns == [
        *("seed", "flow", "instance", "time_s"),
        *("frames", "frame_delay_s", "frame_delay_max_s", "picture_age_s"),
    ]
    assert rows["flow"].unique().to_list() == ["call"]
    (call,) = results.flows.filter(flow="call").to_dicts()
    assert rows["frames"].sum() == call["frames_complete"] > 80
    assert math.isclose(weighted(rows), call["frame_delay_mean_s"], rel_tol=1e-6)
    assert max(rows["picture_age_s"].to_list()) > 0.8
    assert rows.filter(pl.col("frames") == 0)["frame_delay_s"].is_nan().all()


def test_only_encoders_have_frames_to_record() -> None:
    silent = paceline.parse(CALL.replace('app = { kind = "encoder", max_rate = "1 Mbit/s" }', ""))
    assert "frames" in paceline.parse(CALL).recordable
    assert "frames" not in silent.recordable
    said = "no frames is recorded: it needs a flow whose app is an encoder"
    with pytest.warns(paceline.PacelineWarning, match=said):
        assert paceline.run(silent, record=("frames",)).recorded() == []


def test_the_command_line_records_and_draws_them(tmp_path: Path) -> None:
    file, out, figure_at = tmp_path / "call.toml", tmp_path / "out", tmp_path / "call.svg"
    file.write_text(CALL)

    def invoked(*words: object) -> Result:
        return CliRunner().invoke(app, [str(word) for word in words])

    run = ("run", file, "--record-every", "100ms", "--out", out, "--record")
    assert invoked(*run, "rate").exit_code == 0
    refused = invoked("plot", out, "--kind", "frames")
    assert refused.exit_code == 2
    assert "did not record frames: run again with --record frames" in " ".join(refused.output.split())
    assert invoked(*run, "frames").exit_code == 0
    done = invoked("plot", out, "--kind", "frames", "--out", figure_at)
    assert done.output.split() == [str(figure_at)]
    assert figure_at.stat().st_size > 5000


def test_a_figure_has_delays_in_milliseconds_and_of_a_lone_call_how_long_the_picture_stood() -> None:
    values = {
        "frames": [1.0, 0.0, 2.0],
        "frame_delay_s": [0.05, math.nan, 0.07],
        "picture_age_s": [0.01, 0.4, 0.02],
    }
    data = pl.DataFrame({"flow": "call", "instance": 0, "time_s": [0.1, 0.2, 0.3], **values})
    (axes,) = figure(KINDS["frames"], [Panel("one", data)]).axes
    delay, stands = axes.lines
    assert np.asarray(delay.get_xdata()).tolist() == [0.1, 0.3]
    assert np.asarray(delay.get_ydata()).tolist() == pytest.approx([50, 70])
    assert np.asarray(stands.get_ydata()).tolist() == pytest.approx([math.nan, 400, math.nan], nan_ok=True)
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["call", "picture stands"]
    smooth = data.with_columns(picture_age_s=pl.lit(0.14))
    assert len(figure(KINDS["frames"], [Panel("one", smooth)]).axes[0].lines) == 1
    two = pl.concat([data, data.with_columns(instance=data["instance"] + 1)])
    assert len(figure(KINDS["frames"], [Panel("two", two)]).axes[0].lines) == 2


def test_rows_at_longer_intervals_keep_frames_and_their_delays() -> None:
    data = pl.DataFrame(
        {
            "flow": "call",
            "instance": 0,
            "time_s": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
            "frames": [1.0, 3.0, 0.0, 0.0, 0.0, 2.0],
            "frame_delay_s": [0.1, 0.2, None, None, None, 0.4],
            "frame_delay_max_s": [0.1, 0.3, None, None, None, 0.5],
            "picture_age_s": [0.01, 0.02, 0.12, 0.22, 0.32, 0.03],
        }
    )
    rows = realtime._thinned("frames", data, 0.2)
    assert rows["time_s"].to_list() == [0.2, 0.4, 0.6]
    assert rows["frames"].to_list() == [4, 0, 2]
    assert rows["frame_delay_s"].to_list() == [pytest.approx(0.175), None, 0.4]
    assert rows["frame_delay_max_s"].to_list() == [0.3, None, 0.5]
    assert rows["picture_age_s"].to_list() == [0.02, 0.22, 0.03]
