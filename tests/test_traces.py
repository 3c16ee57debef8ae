"""`paceline trace`, and traces of rates as they are published: shown, converted, taken by links and by `path --fit`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import paceline
from paceline.cli import app
from paceline.errors import PacelineError
from paceline.scenarios import rate_traces

SABRE = """[{"duration_ms": 5000, "bandwidth_kbps": 1500, "latency_ms": 80},
 {"duration_ms": 5000, "bandwidth_kbps": 300, "latency_ms": 90},
 {"duration_ms": 10000, "bandwidth_kbps": 2500, "latency_ms": 70}]"""
SAME = {
    "json": SABRE,
    "csv": "duration_s,rate_mbps\n5,1.5\n5,0.3\n10,2.5\n",
    "iperf3": "[  5]   0.00-5.00   sec  938 KBytes  1.50 Mbits/sec  0.1 ms  0/9 (0%)\n"
    "[  5]   5.00-10.00  sec  188 KBytes  0.30 Mbits/sec  0.1 ms  0/9 (0%)\n"
    "[  5]  10.00-20.00  sec  3125 KBytes  2.50 Mbits/sec  0.1 ms  0/9 (0%)\n",
    "seconds-mbit": "0 1.5\n5 0.3\n10 2.5\n15 2.5\n",
}


def printed_json(path: Path, *words: str) -> dict[str, object]:
    done = CliRunner().invoke(app, ["trace", str(path), "--json", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("kind", SAME)
def test_one_network_in_each_format(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(SAME[kind])
    found = printed_json(path)
    assert {key: found[key] for key in ("format", "duration_s", "mean_bps", "min_bps", "max_bps")} == {
        "format": kind,
        "duration_s": 20.0,
        "mean_bps": pytest.approx(1.7e6),
        "min_bps": 3e5,
        "max_bps": 2.5e6,
    }
    assert ("latency_mean_s" in found) == (kind == "json")
    # and a link takes it
    (tmp_path / "link.toml").write_text(
        f'duration = "20 s"\n[link.bottleneck]\nrate_trace = {{ file = "trace", format = "{kind}" }}\ndelay = "5 ms"\n'
        'backward = { rate = "10 Mbit/s" }\n[flow.a]\ncc = "udp"\napp = { kind = "cbr", rate = "5 Mbit/s" }\n'
    )
    flow = paceline.run(tmp_path / "link.toml").flows.to_dicts()[0]
    assert flow["throughput_bps"] == pytest.approx(1.7e6, rel=0.01)
    assert (printed_json(path, "--format", kind) | {"file": 0}) == (found | {"file": 0})


@pytest.mark.parametrize("kind", SAME)
def test_there_and_back(kind: str, tmp_path: Path) -> None:
    path, other = tmp_path / "trace", tmp_path / "other"
    path.write_text(SAME[kind])
    for to in rate_traces.WRITTEN:
        done = CliRunner().invoke(app, ["trace", str(path), "--to", to, "--out", str(other)])
        assert done.exit_code == 0, done.output
        found = printed_json(other, "--every", "5s")
        assert (found["format"], found["duration_s"]) == (to, 20.0)
        assert found["rates_bps"] == pytest.approx([1.5e6, 3e5, 2.5e6, 2.5e6], abs=2 * 12_000 / 5)


def test_opportunities_at_zero_count_and_show(tmp_path: Path) -> None:
    """Some recordings begin at 0 ms; the trace begins again at its last line."""
    path = tmp_path / "trace"
    path.write_text("0\n5\n5\n12\n")
    found = printed_json(path, "--every", "6ms")
    assert (found["duration_s"], found["mean_bps"]) == (0.012, 4 * 12_000 / 0.012)
    assert found["rates_bps"] == pytest.approx([3 * 12_000 / 0.006, 12_000 / 0.006])
    said = CliRunner().invoke(app, ["trace", str(path), "--plot", str(tmp_path / "trace.svg")]).output
    assert "mahimahi, 12 ms" in said
    assert "▄   █    ▄" in said
    assert (tmp_path / "trace.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "json"], "--to json: must be csv or mahimahi"),
        (["--out", "x"], "--out x: it needs --to"),
        (["--format", "cvs"], 'format "cvs" is none of mahimahi'),
        (["--format", "json"], "trace: line 1: expected JSON"),
        (["--every", "1min"], "--every 1min: must be from a millionth of the trace's 20 s to all of it"),
    ],
)
def test_mistakes(words: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(SAME["csv"])
    done = CliRunner().invoke(app, ["trace", str(path), *words])
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())


def test_what_is_none_is_said(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    for text, said in [
        ("", "it is no trace that is read: lines of milliseconds"),
        ("time,rate\n0,1\n", "line 1: column `rate` has no unit"),
        ("0\n", "must repeat later"),
    ]:
        path.write_text(text)
        with pytest.raises(PacelineError, match=said):
            rate_traces.read(path)


def test_a_path_file_of_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    for kind, text in SAME.items():
        path.write_text(text)
        written = paceline.fit(path)
        link = tomllib.loads(written)["link"]["bottleneck"]
        steps = [(step["at"], step["rate"]) for step in link["rate_schedule"]]
        assert steps[:3] == [
            ("0.000 s", "1500000 bit/s"),
            ("5.000 s", "300000 bit/s"),
            ("10.000 s", "2500000 bit/s"),
        ]
        assert link["delay"] == ("35 ms" if kind == "json" else "20 ms")
    path.write_text("[]")
    with pytest.raises(PacelineError, match=r"nor a trace of rates: .* no entries"):
        paceline.fit(path)


RATES = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(0, 20_000).map(float)), min_size=1, max_size=8
).filter(lambda rows: any(rate > 500 for _, rate in rows))


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RATES)
def test_conversions_keep_what_a_link_carries(rows: list[tuple[int, float]]) -> None:
    text = "duration_ms,kbps\n" + "".join(f"{lasts},{rate}\n" for lasts, rate in rows)
    trace = rate_traces.of_text(text, "trace")
    bits = sum(lasts * rate for lasts, rate in rows)
    assert trace.mean_bps * trace.lasts_s == pytest.approx(bits, rel=1e-6)
    for written in (
        rate_traces.as_csv(trace),
        rate_traces.as_csv(trace, trace.lasts_s / 7),
        rate_traces.as_mahimahi(trace),
    ):
        again = rate_traces.of_text(written, "again")
        assert again.lasts_s == pytest.approx(trace.lasts_s, rel=1e-6)
        # a packet of mahimahi's, and the one at the end; rates in whole bits
        slack = 2 * 12_000 + 1e-3 * bits
        assert again.mean_bps * again.lasts_s == pytest.approx(bits, abs=slack)
    sums = np.cumsum(trace.rates_bps(trace.lasts_s / 5)) * trace.lasts_s / 5
    assert sums[-1] == pytest.approx(bits, rel=1e-6)
    assert trace.mean_between_bps(0, 3 * trace.lasts_s) == pytest.approx(trace.mean_bps, rel=1e-6)


@settings(deadline=None)
@given(st.text(alphabet='0123456789.,;[]{}": \n\tabekmpstw_/-', max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    for kind in (None, *rate_traces.FORMATS):
        try:
            found = rate_traces.of_text(text, "trace", kind)
        except PacelineError:
            continue
        assert found.lasts_s > 0
        assert np.isfinite(found.rates_bps(found.lasts_s / 3)).all()
