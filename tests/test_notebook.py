"""What Python users of other habits expect: notebooks, pandas, scenarios as text or dicts, mistakes by name."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest

import paceline
from paceline import notebook
from paceline.cli.layout import Column, Layout
from paceline.errors import PacelineError

TEXT = """
duration = "2 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "droptail", limit = "20 packets" }
[flow.media]
cc = "newreno"
"""


class Cells(HTMLParser):
    """The cells of all tables, row by row, and what is open at the end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.mark.parametrize("runs", [1, 3])
def test_results_show_as_html(runs: int) -> None:
    results = paceline.run(TEXT, runs=runs)
    cells = Cells(results._repr_html_())
    assert not cells.open
    heads, flow = cells.rows[:2]
    assert heads[:3] == ["flow", "cc", "goodput"]
    assert flow[:2] == ["media", "newreno"]
    goodput = results.flows["goodput_bps"].mean()
    assert isinstance(goodput, float)
    assert float(flow[2].split()[0]) == pytest.approx(goodput / 1e6, rel=0.01)
    assert all(len(row) > 1 for row in cells.rows)


def test_sweeps_and_comparisons_show_as_html() -> None:
    vary = {"link.bottleneck.delay": ["10 ms", "40 ms"]}
    sweep = Cells(paceline.sweep(TEXT, vary, runs=2)._repr_html_())
    assert sweep.rows[0][:2] == ["delay", "flow"]
    assert [row[0] for row in sweep.rows[1:3]] == ["10 ms", "40 ms"]
    comparison = paceline.compare(TEXT, vary, runs=2)
    text = comparison._repr_html_()
    assert Cells(text).rows[0][:4] == ["metric", "of", "10 ms", "40 ms"]
    assert "differences are shown" in text


def test_what_is_no_markup_is_escaped() -> None:
    layout = Layout("a < b", [Column("<i>", ["1 & 2"])], note="x > y")
    text = notebook.tables([layout], ["</table>"])
    assert Cells(text).rows == [["<i>"], ["1 & 2"]]
    assert "<i>" not in text
    assert text.count("</table>") == 1


def test_text_and_dicts_are_scenarios() -> None:
    from_text = paceline.load(TEXT)
    flow = {"cc": "newreno"}
    queue = {"kind": "droptail", "limit": "20 packets"}
    link = {"bottleneck": {"rate": "2 Mbit/s", "delay": "10 ms", "queue": queue}}
    assert paceline.load({"duration": "2 s", "link": link, "flow": {"media": flow}}) == from_text
    # A mistake in what is replaced counts, one that is replaced does not.
    assert paceline.load(TEXT.replace('"2 s"', '"two"'), {"duration": "2 s"}) == from_text
    with pytest.raises(paceline.ScenarioError, match="durration"):
        paceline.load({"durration": "2 s"})
    with pytest.raises(PacelineError, match="None is not a value"):
        paceline.load({"duration": None})


@pytest.mark.parametrize("seed", [[1, 2, 3], "1", 1.0])
def test_a_seed_is_one_number(seed: Any) -> None:
    with pytest.raises(PacelineError, match=r"the seed is one whole number, the first, and runs=K takes K"):
        paceline.run(TEXT, seed=seed)
    with pytest.raises(PacelineError, match="the seed is one whole number"):
        paceline.run(TEXT, runs=seed)


def test_pandas_alone_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in of pandas, that takes columns as it does: what is there must not need pyarrow."""
    results = paceline.run(TEXT)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    table = results.to_pandas("flows")
    assert list(table) == results.flows.columns
    assert table["goodput_bps"].tolist() == results.flows["goodput_bps"].to_list()
    assert table["flow"].tolist() == ["media"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(PacelineError, match="pip install pandas"):
        results.to_pandas("flows")


def test_a_notebook_shows_progress_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert notebook.progress("runs") is None
    shown: list[str] = []

    def show(bar: str, display_id: bool) -> SimpleNamespace:
        assert display_id
        shown.append(bar)
        return SimpleNamespace(update=shown.append)

    display = SimpleNamespace(HTML=str, display=show)
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(notebook, "_AFTER_S", 0.0)
    monkeypatch.setattr(notebook, "_EVERY_S", 0.0)
    paceline.run(TEXT, runs=3)
    assert shown[-1] == ""
    assert re.match(r'<progress value="\d\.\d+" max="3\.000"></progress> \d of 3 runs, 0 s', shown[0])
