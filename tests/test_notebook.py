"""What Python users of other habits expect: notebooks, pandas, scenarios as text or dicts, mistakes by name."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbclient
import nbformat
import numpy as np
import polars as pl
import pytest

import paceline
import paceline.campaign
import paceline.plots
from paceline import models
from paceline.errors import ArgumentError, PacelineError
from paceline.messages import notebook_progress
from paceline.plots.style import Shown, described
from paceline.results.recordings import SERIES
from paceline.tables import notebook
from paceline.tables.layout import Column, Layout

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
    comparison = paceline.compare(TEXT, vary, runs=5)
    text = comparison._repr_html_()
    assert Cells(text).rows[0][:4] == ["metric", "of", "10 ms", "40 ms"]
    assert "differences are shown" in text


def test_what_is_no_markup_is_escaped() -> None:
    layout = Layout("a < b", [Column("<i>", ["1 & 2"])], note="x > y")
    text = notebook.tables([layout], ["</table>"])
    assert Cells(text).rows == [["<i>"], ["1 & 2"]]
    assert "<i>" not in text
    assert text.count("</table>") == 1


def test_a_wide_table_scrolls_without_the_notebook() -> None:
    text = notebook.tables([Layout("all", [Column("x", ["1"])], note="said")], [])
    assert text.startswith('<div style="overflow-x:auto">\n<table>')
    assert "</table>\n</div>\n<p>said</p>" in text


def test_a_figure_says_what_it_shows() -> None:
    results = paceline.sweep(TEXT, {"link.bottleneck.delay": ["10 ms", "40 ms"]}, runs=2, record=["cwnd"])
    figure = results.plot("goodput_bps", flow=["media"])
    assert isinstance(figure, Shown)
    alt = str(figure._repr_png_()[1]["alt"])
    assert "goodput (Mbit/s) over bottleneck delay (ms)" in alt
    alt = described(results.plot("cwnd"))
    assert alt.startswith("congestion window (packets); ")
    assert "delay = 10 ms, seed 1: media, in flight, ssthresh" in alt


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


@pytest.mark.parametrize("seed", [[1, 2, 3], "1", 1.0, True])
def test_a_seed_is_one_number(seed: Any) -> None:
    with pytest.raises(PacelineError, match=r"seed = .* one whole number, the first, and runs=K takes K"):
        paceline.run(TEXT, seed=seed)
    with pytest.raises(PacelineError, match=r"runs = .*: it must be a whole number"):
        paceline.run(TEXT, runs=seed)


RATES = pl.DataFrame({"seed": [1], "time_s": [0.1]})
MISTAKES: list[tuple[str, Callable[[Any], Any]]] = [
    (
        r"set = \['flow.media.cc=vegas'\]: .* a dict of TOML paths",
        lambda p: p.run(TEXT, set=["flow.media.cc=vegas"]),
    ),
    (r"set = \{1: 2\}: .* a dict of TOML paths", lambda p: p.sweep(TEXT, {}, set={1: 2})),
    ("changes = 3: .* a dict of TOML paths", lambda p: p.load(TEXT, 3)),
    ("record_every_s = '20 ms': .* a number, in seconds", lambda p: p.run(TEXT, record_every_s="20 ms")),
    ("record = 'cwnd': .* a list of names", lambda p: p.run(TEXT, record="cwnd")),
    ("record = None: .* a list of names", lambda p: p.run(TEXT, record=None)),
    ("workers = '2': .* a whole number from 1", lambda p: p.run(TEXT, workers="2")),
    ("workers must be at least 1, not 0", lambda p: p.run(TEXT, workers=0)),
    ("progress = True: .* a function", lambda p: p.run(TEXT, progress=True)),
    ("out = 3: .* a path", lambda p: p.run(TEXT, out=3)),
    ("pcap_at = 'sink': .* a list of names", lambda p: p.run(TEXT, pcap="x", pcap_at="sink")),
    ("scenario = None: .* the path of a file, TOML text, a dict", lambda p: p.run(None)),
    ("scenario = None", lambda p: p.sweep(None, {"flow.media.cc": ["vegas"]})),
    ("scenario = None", lambda p: p.compare(None, {"flow.media.cc": ["vegas", "newreno"]})),
    ("scenario = None", lambda p: p.emulate(None)),
    ("scenario = 3", lambda p: p.load(3)),
    (
        r"text = \{'duration': '2 s'\}.*`paceline.load` also takes a dict",
        lambda p: p.parse({"duration": "2 s"}),
    ),
    (
        r"vary = \['flow.media.cc'\]: .* a dict of TOML paths and lists",
        lambda p: p.sweep(TEXT, ["flow.media.cc"]),
    ),
    (r"flow.media.cc must be a list, as \[1, 2\], not 3", lambda p: p.compare(TEXT, {"flow.media.cc": 3})),
    (r"flow.media.cc must be a list: \[.vegas.\]", lambda p: p.sweep(TEXT, {"flow.media.cc": "vegas"})),
    ("flow.media.cc: None is not a value", lambda p: p.run(TEXT, set={"flow.media.cc": None})),
    ("flow.media.cc: None is not a value", lambda p: p.parse(TEXT).set("flow.media.cc", None)),
    ("flow.media.cc: <object.* is not a value", lambda p: p.parse(TEXT).set_all({"flow.media.cc": object()})),
    ("runs must be from 1 to", lambda p: p.run(TEXT, runs=0)),
    ("must lie between 1e-6 and 1e6", lambda p: p.run(TEXT, record=["cwnd"], record_every_s=0)),
    ('direction "up" must be', lambda p: p.send("localhost", direction="up")),
    ("say what to watch: one of port, pid, command, or everything=True", lambda p: p.watch(duration_s=1)),
    ("two lists of equal length", lambda p: p.statistics.ratio_of_means([1.0], [1.0, 2.0])),
    ("which cannot be negative", lambda p: p.statistics.jain([-1.0])),
    (r"shard = 2: .* as \(1, 4\) for", lambda p: p.sweep(TEXT, {"seed": [1]}, shard=2)),
    ("fresh = 'yes': .* True or False", lambda p: p.merge(["a"], "b", fresh="yes")),
    ("directories = 'a': .* a list of directories", lambda p: p.merge("a", "b")),
    ("metrics = 'jain': .* a list of names", lambda p: p.compare(TEXT, {}, metrics="jain")),
    ("cc = None: .* text", lambda p: p.send("localhost", None)),
    ("duration_s = '2 s': .* a number, in seconds", lambda p: p.send("localhost", duration_s="2 s")),
    ("rate = 2000000.0: .* text with a unit", lambda p: p.send("localhost", "udp", rate=2e6)),
    ("port = '80': .* a whole number, or a list of such", lambda p: p.watch(port="80")),
    ("command = 'ping': .* a list of words", lambda p: p.path("wide-area", "ping")),
    ("ipv4 = 4: .* True or False", lambda p: p.path("wide-area", ["true"], ipv4=4)),
    (
        r"path has no argument access_point \(did you mean algorithm\?\)",
        lambda p: p.path("wide-area", ["true"], access_point="voap"),
    ),
    ("path = None: .* a path", lambda p: p.fit(None)),
    ("rates = .*: .* a Polars table", lambda p: p.cov({"time_s": [1]}, 0.5)),
    ("bin_s = '1 s'", lambda p: p.cov(RATES, "1 s")),
    ("flows = 'film': .* a list of names", lambda p: p.jain_over_time(RATES, 0.5, "film")),
    ("by = 'flow': .* a list of names", lambda p: p.summarise(RATES, "flow")),
    (
        "measures: flow is not numerical",
        lambda p: p.summarise(RATES.with_columns(flow=pl.lit("a")), [], ["flow"]),
    ),
    ("confidence = 3: it must lie between", lambda p: p.summarise(RATES, [], confidence=3)),
    ("seeds must be between 0 and .*, not -1", lambda p: p.path("wide-area", ["true"], seed=-1)),
    ("for_s = -1 is not in", lambda p: p.path("wide-area", ["true"], for_s=-1)),
    ("ports = -3: it must be from 1 to", lambda p: p.path("wide-area", ["true"], ports=-3)),
    ("p = 1000.*: it must be a number", lambda p: p.models.reno(10**400, 0.1)),
    ("directory = None", lambda p: p.Results.read(None)),
    (r"name = \['flows'\]: .* text", lambda p: p.Results([], {}).table(["flows"])),
    ("y = 3: .* text", lambda p: p.Results([], {}).plot(3)),
    ("rtt_s = -1: it must be in", lambda p: p.models.tfrc(0.1, rtt_s=-1)),
    ("rtt_s = '50 ms': it must be a number, or an array", lambda p: p.models.reno(0.1, "50 ms")),
    ("p = None: it must be a number, or an array", lambda p: p.models.veno_window(None, 0.5)),
    (r"timeout_term = \[\]: it must be plain or", lambda p: p.models.tfrc(0.1, 0.1, timeout_term=[])),
    (r"shapes \(2,\), \(3,\) cannot be broadcast", lambda p: p.models.tfrc([0.1, 0.2], [0.1, 0.2, 0.3])),
    (
        r"run has no argument sets \(did you mean set\?\); it has scenario, seed",
        lambda p: p.run(TEXT, sets={}),
    ),
    ("run: missing a required argument: 'scenario'; its arguments are", lambda p: p.run()),
    ("campaign = 'x.toml': .* as `paceline.campaign.read` gives", lambda p: p.campaign.run("x.toml")),
    ("figure = 'f.svg': .* a figure", lambda p: p.plots.save("f.svg", "f.svg")),
]


@pytest.mark.parametrize(("said", "call"), MISTAKES, ids=[said for said, _ in MISTAKES])
def test_a_mistake_in_a_call_names_the_argument_and_what_it_may_be(
    said: str, call: Callable[[Any], Any]
) -> None:
    with pytest.raises(ArgumentError, match=said):
        call(paceline)


def test_every_public_function_with_arguments_is_checked() -> None:
    for place, names in ((paceline, paceline.__all__), (models, dir(models))):
        for name in names:
            found = getattr(place, name)
            if name.startswith("_") or name == "checked" or not inspect.isfunction(found):
                continue
            ours = found.__module__.startswith("paceline")
            assert not ours or hasattr(found, "__wrapped__") or not inspect.signature(found).parameters, name


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    seed: Any = np.int64(3)
    every_s: Any = np.float32(0.5)
    results = paceline.run(TEXT, seed=seed, record_every_s=every_s, out=tmp_path / "out")
    assert results.seeds == [3]


def test_values_of_numpy_polars_and_lists_are_values() -> None:
    count, delay = "flow.media.count", "link.bottleneck.delay"
    wanted = paceline.load(TEXT, {count: 2})
    assert paceline.load(TEXT, {count: np.int64(2)}) == wanted
    loaded = paceline.parse(TEXT)
    assert loaded.set(count, 2) == loaded.set(count, np.int64(2)) == loaded.set(count, "2")
    assert loaded.set_all({count: 2}) == loaded.set_all([(count, 2)]) == loaded.set(count, 2)
    assert loaded.set("flow.media.ecn", np.bool_(True)) == loaded.set("flow.media.ecn", "true")
    several: list[Any] = [np.arange(1, 3), (1, 2), pl.Series([1, 2]), range(1, 3), [np.int64(1), 2]]
    for values in several:
        results = paceline.sweep(TEXT, {count: values}, runs=1)
        assert results.runs[count].to_list() == [1, 2]
    pairs = np.array([[1, 5], [2, 6]])
    together = paceline.sweep(TEXT, {(count, "flow.media.initial_window"): pairs}, runs=1)
    assert together.runs["flow.media.initial_window"].to_list() == [5, 6]
    assert paceline.sweep(TEXT, {delay: np.array(["10 ms", "20 ms"])}, runs=1).runs[delay].to_list() == [
        "10 ms",
        "20 ms",
    ]


def test_a_warning_points_at_the_users_line() -> None:
    odd = TEXT.replace("[flow.media]", "[flow.media]\necn = true")
    calls: list[Callable[[], Any]] = [
        lambda: paceline.load(odd),
        lambda: paceline.parse(odd),
        lambda: paceline.run(odd, record=["playout"]),
        lambda: paceline.sweep(odd, {"flow.media.cc": ["vegas", "newreno"]}, runs=1),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            call()
        assert caught
        assert {warning.filename for warning in caught} == {__file__}
        texts = [str(warning.message) for warning in caught]
        assert len(texts) == len(set(texts)), "once for a line"


def test_every_recording_stands_in_the_words_of_run() -> None:
    words = re.findall(r"\w+", paceline.run.__doc__ or "")
    assert [kind for kind in SERIES if kind not in words] == []


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
    assert notebook_progress.progress("runs") is None
    shown: list[str] = []

    def show(bar: str, display_id: bool) -> SimpleNamespace:
        assert display_id
        shown.append(bar)
        return SimpleNamespace(update=shown.append)

    display = SimpleNamespace(HTML=str, display=show)
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(notebook_progress, "_AFTER_S", 0.0)
    monkeypatch.setattr(notebook_progress, "_EVERY_S", 0.0)
    paceline.run(TEXT, runs=3)
    assert shown[-1] == ""
    assert re.match(r'<progress value="\d\.\d+" max="3\.000"></progress> \d of 3 runs, 0 s', shown[0])


@pytest.fixture
def own_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel and no settings of the user's."""
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))


@pytest.mark.usefixtures("own_kernels")
def test_the_notebook_among_the_examples_runs_and_shows_tables_and_pictures(tmp_path: Path) -> None:
    path = Path(__file__).parent.parent / "examples" / "notebook.ipynb"
    book = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code), "it is kept without outputs"
    client = nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    for cell in code:
        shown = [set(output.data) for output in cell.outputs if output.output_type == "execute_result"]
        drawn = ".plot(" in cell.source
        assert len(shown) == 1, cell.source
        assert ("image/png" if drawn else "text/html") in shown[0], (cell.source, shown)
    assert ">gentle<" in code[-1].outputs[-1].data["text/html"], "the class of a cell led the film"


def test_results_draw_what_they_recorded() -> None:
    results = paceline.run(TEXT, runs=2, record=("cwnd", "queue"))
    for seed in (None, 2):
        axes = results.plot("cwnd", flow="media", seed=seed).axes[0]
        drawn = results.series("cwnd").filter(seed=seed or 1)
        assert axes.get_title(loc="left").endswith(f"seed {seed or 1}")
        assert np.asarray(axes.lines[0].get_ydata())[-1] == drawn["cwnd_packets"][-1]
    assert results.plot("queue").axes[0].lines
    assert results.plot("gauges").axes[0].lines
    for arguments, words in [
        ({"y": "rate"}, r'rate was not recorded: run again with record=\("rate",\)'),
        ({"y": "cwnd", "flow": "film"}, "cwnd of flow film: flows recorded: media"),
        ({"y": "queue", "flow": "media"}, "queue of flow media: this recording is not about flows"),
        ({"y": "cwnd", "seed": 9}, "no run with seed 9; there are 1, 2"),
        ({"y": "cwnd", "x": "delay"}, "cwnd is drawn over time: x, by"),
    ]:
        with pytest.raises(PacelineError, match=words):
            results.plot(**arguments)  # type: ignore[arg-type]
    sweep = paceline.sweep(TEXT, {"link.bottleneck.delay": ["10 ms", "20 ms"]}, runs=1, record=["cwnd"])
    assert len(sweep.plot("cwnd").axes) == 2, "a panel per point"
