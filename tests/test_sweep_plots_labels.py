"""Figures of sweeps with labels of the user's, and with several measures."""

from __future__ import annotations

import pytest

import paceline
from paceline.errors import PacelineError
from paceline.results.results import Results, RunRecord
from test_sweep_plots import CC, DELAY, GRID, entries, swept


def test_labels_stand_in_place_of_names() -> None:
    results = swept(GRID, ("film", "web"))
    labels = {"vegas": "TCP Vegas", "film": "the film", "goodput_bps": "rate"}
    figure = results.plot("goodput_bps", by="cc", flow="film", labels=labels, xlabel="distance")
    assert entries(figure) == [["NewReno", "TCP Vegas"]]
    assert figure.axes[0].get_xlabel() == "distance (ms)"
    assert figure.axes[0].get_ylabel() == "rate (Mbit/s)"
    unnamed = results.plot("goodput_bps", by="cc", flow="film", labels={"film": "the film"})
    assert unnamed.axes[0].get_ylabel().replace("\n", " ") == "goodput of the film (Mbit/s)"
    with pytest.raises(PacelineError, match=r"cwnd is drawn over time: .*labels"):
        paceline.run("examples/loss.toml", record=("cwnd",)).plot("cwnd", labels=labels)


def test_several_measures_have_a_panel_each() -> None:
    records = [
        RunRecord(
            seed,
            {
                "flows": [
                    {"flow": "f", "instance": 0, "goodput_bps": 1e6 * delay + seed, "rtt_mean_s": delay / 1e3}
                ]
            },
            {},
            {DELAY: f"{delay} ms", CC: cc},
        )
        for delay in (1, 2)
        for cc in ("vegas", "cubic")
        for seed in (1, 2, 3)
    ]
    results = Results(records, {"vary": {DELAY: ["1 ms", "2 ms"], CC: ["vegas", "cubic"]}})
    figure = results.plot(["goodput_bps", "rtt_mean_s"])
    assert [axes.get_ylabel() for axes in figure.axes] == ["goodput (Mbit/s)", "mean RTT (ms)"]
    assert entries(figure)[0] == ["Vegas", "CUBIC"]
    assert [axes.get_ylim()[1] > 100 for axes in figure.axes] == [False, False], "each has a scale of its own"
