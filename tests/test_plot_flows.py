"""`paceline plot --flow`: figures over time of some of the flows."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import paceline
from paceline.cli import app
from paceline.errors import PacelineError

SCENARIO = """
duration = "4 s"
[link.bottleneck]
rate = "8 Mbit/s"
delay = "10 ms"
queue = { limit = "30 packets" }
[flow.film]
cc = "vegas"
app = { kind = "stream", media_rate = "1 Mbit/s", length = "2 s" }
[flow.pair]
cc = "cubic"
transport = "quic"
count = 2
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a film and two alike, with the logs of these."""
    where = tmp_path_factory.mktemp("run")
    paceline.run(
        paceline.parse(SCENARIO), record=("cwnd", "queue", "playout"), out=where / "out", qlog=where / "logs"
    )
    return where


def plot(*words: object) -> tuple[set[str], str]:
    """The names of the SVGs that the command writes, and what it says to stderr."""
    done = CliRunner().invoke(app, ["plot", *map(str, words)])
    return {Path(line).name for line in done.stdout.split() if line.endswith(".svg")}, done.stderr


def test_figures_are_of_the_flows_that_are_named(run: Path) -> None:
    drawn, _ = plot(run / "out", "--flow", "film")
    assert drawn == {f"plot-film-{kind}.svg" for kind in ("cwnd", "playout", "gauges")}
    drawn, _ = plot(run / "out", "--flow", "film,pair[1]")
    assert drawn == {f"plot-film-pair[1]-{kind}.svg" for kind in ("cwnd", "playout", "gauges")}
    text = (run / "out" / "plot-film-pair[1]-cwnd.svg").read_text()
    assert ("pair[1]" in text, "pair[0]" in text) == (True, False)
    assert "pair" not in (run / "out" / "plot-film-pair[1]-playout.svg").read_text()
    drawn, _ = plot(run / "out", "--flow", "pair", "--kind", "cwnd", "--out", run / "two.svg")
    assert drawn == {"two.svg"}
    assert "pair[0]" in (run / "two.svg").read_text()


def test_one_of_several_has_its_own_name_and_colour(run: Path) -> None:
    results = paceline.Results.read(run / "out")
    colours = [line.get_color() for line in results.plot("cwnd").axes[0].lines]
    (alone,) = results.plot("cwnd", flow="pair[1]").axes
    legend = alone.get_legend()
    assert legend is not None
    assert legend.get_texts()[0].get_text() == "pair[1]"
    assert alone.lines[0].get_color() == colours[2]
    with pytest.raises(PacelineError, match=r"cwnd of flow pair\[2\]: flows recorded: film, pair"):
        results.plot("cwnd", flow="pair[2]")


def test_logs_have_flows_too(run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    drawn, said = plot(run / "logs", "--flow", "pair.1-client")
    assert "logs-pair.1-client-cwnd.svg" in drawn, said
    text = (tmp_path / "logs-pair.1-client-cwnd.svg").read_text()
    assert "pair.0-client" not in text.replace("pair.0-client, pair.0-server", "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--flow", "fim"], "--flow fim: no recording has this flow; {run} has film, pair"),
        (["--flow", "film", "--kind", "queue"], "queue of flow film: this recording is not about flows"),
        (["--flow", "pair", "--kind", "playout"], "playout of flow pair: flows recorded: film"),
        (["--flow", "film", "--kind", "occupancy"], "--flow: occupancy is about queues, not flows"),
    ],
)
def test_a_flow_that_is_not_there_is_told_which_are(run: Path, words: list[str], says: str) -> None:
    drawn, said = plot(run / "out", *words)
    assert (drawn, said) == (set(), f"paceline: {says.format(run=run / 'out')}\n")
