"""`paceline.send` without a network: places and names, what is asked of the core, and what is made of its answer.

What flows measure is tested in virtual time by crate live's tests (`crates/live/tests/session`), flows between two
processes in `test_send_realtime.py`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import paceline
from own_controllers import TWINS
from paceline import _core
from paceline.cli import app
from paceline.cli.send import now
from paceline.errors import LiveError, PacelineError
from paceline.live import send as send_module
from paceline.live.keys import new_key
from paceline.live.send import controller_of, place, send
from paceline.results.results import Results


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("there.example", ("there.example", 5050)),
        ("there.example:6000", ("there.example", 6000)),
        ("10.0.0.1:1", ("10.0.0.1", 1)),
        ("::1", ("::1", 5050)),
        ("[::1]", ("::1", 5050)),
        ("[fe80::1%eth0]:65535", ("fe80::1%eth0", 65535)),
    ],
)
def test_a_place_may_have_its_port(given: str, meant: tuple[str, int]) -> None:
    assert place(given) == meant
    assert place(given, meant[1]) == meant


@pytest.mark.parametrize(
    "given", ["", "there:", "there:port", "there:0", "there:65536", "http://there", "[::1", "a b", "[::1]:x"]
)
def test_what_is_no_place_is_said(given: str) -> None:
    with pytest.raises(PacelineError, match=r"HOST:PORT|must be 1 to 65535"):
        place(given)


def test_schemes_have_the_names_that_papers_give_them() -> None:
    for given in ("vegas", "tcp-vegas", "TCP/Vegas", "tcp_vegas"):
        assert controller_of(given) == "vegas"
    assert [controller_of(given) for given in ("LDA-Plus", "kernel:BBR")] == ["lda-plus", "kernel:BBR"]
    with pytest.raises(PacelineError, match=r"no controller tcp-yeah.*kernel:NAME"):
        controller_of("tcp-yeah")


def test_the_view_shows_rates_since_the_last_look() -> None:
    row = {
        "flow": "tfrc",
        "instance": 0,
        "forward": True,
        "time_s": 1.0,
        "packets": 10,
        "bytes": 125_000,
        "rtt_s": 0.05,
        "loss": 0.01,
        "figure": 1.0,
        "running": True,
        "over": False,
    }
    before: dict[tuple[str, int], tuple[float, int]] = {}
    first = now([row], before)
    assert [c.cells for c in first.columns if c.head == "rate"] == [["1 Mbit/s"]]
    second = now([{**row, "time_s": 2.0, "bytes": 375_000}], before)
    assert [c.cells for c in second.columns if c.head == "rate"] == [["2 Mbit/s"]]
    assert all(c.cells == [] for c in now([], {}).columns)


class Flows:
    """What stands in the core's place: what it was asked, and as its answer a simulated run's tables. Of each flow,
    `ends` says how it ended."""

    def __init__(self) -> None:
        self.requested: dict[str, Any] = {}
        self.ends: dict[str, Any] = {"sender_ended": "done", "receiver_ended": "done", "well": True}
        self.stopped = threading.Event()
        self.waits = False

    def send(self, host: str, port: int, flows: list[Any], *rest: Any, **more: Any) -> tuple[Any, str]:
        watch, key, logs = rest
        self.requested = {"host": host, "port": port, "flows": flows, "key": key, "logs": logs, **more}
        assert watch is self
        # one that goes on until it is told to stop
        assert not self.waits or self.stopped.wait(60)
        text = 'duration = "1 s"\n[link.bottleneck]\nrate = "1 Mbit/s"\ndelay = "5 ms"\n'
        kinds = dict.fromkeys(name for name, *_ in flows)
        text += "".join(
            f"[flow.{kind}]\ncount = {sum(kind == name for name, *_ in flows)}\n" for kind in kinds
        )
        (summary,) = paceline.run(paceline.parse(text)).summaries
        rows = [{"flow": name, "instance": instance, **self.ends} for name, instance, *_ in flows]
        output = SimpleNamespace(summary_json=json.dumps(summary), series=[])
        return output, json.dumps({"server": "", "host": {"steal_share": 0.0}, "flows": rows})

    def stop(self) -> None:
        self.stopped.set()

    def shown_json(self) -> str:
        return "[]"


@pytest.fixture
def flows(monkeypatch: pytest.MonkeyPatch) -> Iterator[Flows]:
    made = Flows()
    monkeypatch.setattr(_core, "send", made.send)
    monkeypatch.setattr(_core, "SendWatch", lambda: made)
    monkeypatch.setattr(send_module, "_POLL_S", 0.01)
    yield made
    made.stop()


def test_what_is_asked_for_is_each_flow(flows: Flows, tmp_path: Path) -> None:
    key = tmp_path / "key"
    new_key(key)
    key.write_text(f"paceline-key:{bytes(range(32)).hex()}\n")
    results = send(
        "127.0.0.1:7001",
        "TCP-Vegas",
        duration_s=1.5,
        direction="both",
        flows=2,
        set={"receive_window": 20},
        seed=5,
        key_file=key,
        log_events=tmp_path / "logs",
    )
    requested = flows.requested
    assert (requested["host"], requested["port"], requested["key"]) == ("127.0.0.1", 7001, bytes(range(32)))
    assert requested["logs"] == str(tmp_path / "logs")
    assert (tmp_path / "logs").is_dir()
    settings = [("cc", "vegas"), ("receive_window", "20")]
    names = [("vegas", 0, True), ("vegas", 1, True), ("vegas-back", 0, False), ("vegas-back", 1, False)]
    assert requested["flows"] == [
        (name, instance, settings, 1500, 5 + n, forward, None, None)
        for n, (name, instance, forward) in enumerate(names)
    ]
    manifest = results.manifest
    assert manifest["name"] == "vegas to and from 127.0.0.1"
    described = [manifest[key] for key in ("port", "cc", "direction", "seed")]
    assert described == [7001, "vegas", "both", 5]


def test_the_kernels_flow_has_no_settings(flows: Flows) -> None:
    send("127.0.0.1", "kernel:cubic", duration_s=1, direction="reverse", seed=1)
    assert flows.requested["flows"] == [("cubic", 0, [], 1000, 1, False, "cubic", None)]


def test_quic_is_a_setting_and_an_own_controller_goes_along(flows: Flows, tmp_path: Path) -> None:
    cc = f"python:{TWINS / 'reno_twin.py'}:RenoTwin"
    results = send("quic://127.0.0.1", cc, duration_s=1.0, seed=1, qlog=tmp_path / "logs")
    requested = flows.requested
    ((name, _, settings, *_),) = requested["flows"]
    assert (name, settings) == ("RenoTwin", [("cc", cc), ("transport", "quic")])
    assert len(requested["schemes"]) == 1
    assert requested["qlogs"] == str(tmp_path / "logs")
    assert results.manifest["name"] == f"{cc} over QUIC to 127.0.0.1"
    send("quic://127.0.0.1", direction="both", duration_s=1.0)
    assert [flow[0] for flow in flows.requested["flows"]] == ["newreno", "newreno-back"]
    with pytest.raises(PacelineError, match=r"can only run on this host"):
        send("127.0.0.1", cc, direction="both")


def test_results_are_kept_as_those_of_a_simulated_run(flows: Flows, tmp_path: Path) -> None:
    results = send("127.0.0.1", "tfrc", flows=2, out=tmp_path / "out")
    again = Results.read(tmp_path / "out")
    assert again.flows.equals(results.flows)
    assert again.flows.height == 2
    assert (again.manifest["kind"], again.manifest["interrupted"]) == ("live", False)
    assert [note["instance"] for note in again.manifest["notes"]["flows"]] == [0, 1]


def test_ctrl_c_keeps_what_is_done(flows: Flows, tmp_path: Path) -> None:
    flows.waits = True

    def pressed(rows: list[dict[str, Any]]) -> None:
        raise KeyboardInterrupt

    results = send("127.0.0.1", "tfrc", duration_s=50, out=tmp_path / "out", view=pressed)
    assert flows.stopped.is_set()
    assert results.manifest["interrupted"]
    assert json.loads((tmp_path / "out/manifest.json").read_text())["interrupted"]
    assert Results.read(tmp_path / "out").flows["bytes_delivered"][0] > 0


def invoked(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["send", "127.0.0.1", *map(str, words)])


def test_the_command_says_how_a_flow_ended_and_ends_with_it(flows: Flows, tmp_path: Path) -> None:
    fine = invoked("--cc", "tfrc", "--out", tmp_path / "out")
    assert (fine.exit_code, "did not end well" in fine.output) == (0, False), fine.output
    # lines break before a long path, and in it
    assert f"Writtento{tmp_path / 'out'}." in "".join(fine.output.split())
    flows.ends = {"sender_ended": "done", "receiver_ended": "stopped at 127.0.0.1, 2.0 s", "well": False}
    ill = invoked("--cc", "tfrc")
    said = " ".join(ill.output.split())
    assert ill.exit_code == 1
    assert "tfrc[0] did not end well. sender: done; receiver: stopped at 127.0.0.1, 2.0 s." in said
    flows.ends = {"sender_ended": "", "receiver_ended": "done", "well": False}
    assert "sender: unknown; receiver: done." in " ".join(invoked("--cc", "tfrc").output.split())
    cut = "its event log: File too large (os error 27)"
    flows.ends = {"sender_ended": "done", "receiver_ended": "done", "well": True, "log_cut": cut}
    short = invoked("--cc", "cubic", "--log-events", tmp_path / "events")
    assert short.exit_code == 1
    assert f"The log of cubic[0] ends before it: {cut}." in " ".join(short.output.split())
    document = json.loads(invoked("--cc", "cubic", "--json").output)
    assert document["live"]["flows"][0]["log_cut"] == cut


def test_the_command_ends_with_130_after_ctrl_c(flows: Flows, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*options: Any, **more: Any) -> Results:
        results = send(*options, **more)
        results.manifest["interrupted"] = True
        return results

    monkeypatch.setattr(send_module, "send", pressed)
    assert invoked("--cc", "tfrc").exit_code == 130
    document = invoked("--cc", "tfrc", "--json")
    assert document.exit_code == 130
    assert json.loads(document.output)["flows"][0]["goodput_bps"] > 0


def test_an_event_log_is_read_to_its_end_or_it_is_said_where_it_is_wrong() -> None:
    with pytest.raises(LiveError, match="no event log"):
        paceline.replay(__file__)
