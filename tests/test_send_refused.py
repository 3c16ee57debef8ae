"""What `paceline send` and flows of scenarios are refused before anything is sent, in words that say what to do."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import paceline
import ports
from paceline import realtime
from paceline.errors import LiveError, PacelineError, ScenarioError, StorageError
from paceline.live.keys import new_key
from paceline.live.send import listen, send
from paceline.messages.argument_names import by_command

CARRIED = r".*; quic://HOST takes newreno, reno, .*cubic, .*c4, .*copa$"
KEY = bytes(range(32))
START = r"(: |if so, )start one on that host with `paceline serve --port P`, .* --key-file FILE or --open"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cc": "prague"}, r"^--cc: prague counts the packets that were marked" + CARRIED),
        ({"cc": "gcc", "app": "encoder"}, r"^--cc: gcc sets no window" + CARRIED),
        ({"cc": "udp", "rate": "2 Mbit/s"}, r"^--cc: udp sets no window" + CARRIED),
        ({"cc": "kernel:cubic"}, r"^--cc: kernel:cubic is the kernel's TCP" + CARRIED),
        (
            {"set": {"bundle.with": "x"}},
            r"^--set bundle.with: flows cannot share a QUIC connection in real time",
        ),
        (
            {"set": {"bundle": {"priority": 2}}, "flows": 2},
            r"^--set bundle: flows cannot share a QUIC con",
        ),
    ],
)
def test_quic_takes_what_sets_a_window_and_stands_alone(options: dict[str, Any], says: str) -> None:
    """Nobody listens at the port: it is refused before."""
    with by_command(), pytest.raises(PacelineError, match=says):
        send("quic://127.0.0.1", port=1, **{"cc": "cubic"} | options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"cc": "gcc", "app": "encoder"},
            "gcc sets no window.* newreno, reno, .*, cubic, .*, bbr3, c4, .*copa$",
        ),
        ({"cc": "prague"}, "^cc: prague counts the packets that were marked" + CARRIED),
        ({"set": {"segment": "9000 B"}}, "segment: `9000 B` is more than .* has 1472 B at most"),
        ({"cc": "kernel:cubic"}, "does not go over QUIC"),
        ({"set": {"quic.handshake": "done"}}, "one-rtt"),
        ({"set": {"quic.carriage": "datagrams"}}, "needs every byte"),
        ({"max_rate": "1 Mbit/s"}, "rtp://"),
        ({"set": {"transport": "tcp"}}, "already selects QUIC: leave out one of them"),
        ({"host": "127.0.0.1:1", "set": {"transport": "quic"}}, "put quic:// before 127.0.0.1"),
        (
            {"direction": "reverse", "log_events": "events"},
            "logs the events of the controller",
        ),
    ],
)
def test_what_a_flow_over_quic_cannot_have(
    options: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole: dict[str, Any] = {"host": "quic://127.0.0.1:1", "duration_s": 0.2, **options}
    with pytest.raises((PacelineError, ScenarioError), match=says):
        send(**whole)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cc": "tfrx"}, r"no controller tfrx \(did you mean tfrc\?\)"),
        ({"set": {"params.phi": 2}}, r"^set params.phi: "),
        ({"cc": "tfrc", "app": "wev"}, r"^app: "),
        ({"cc": "udp", "rate": "2 apples"}, r"^rate: "),
        ({"host": "127.0.0.1:7", "port": 6}, "one of them"),
        ({"cc": "udp"}, 'rate="2Mbit/s"'),
        (
            {"cc": "tfrc", "rate": "1 Mbit/s"},
            r'^rate is the rate of cc="udp"; other controllers find their own',
        ),
        ({"cc": "kernel:reno", "app": "web"}, "bulk transfer"),
        ({"cc": "tfrc", "flows": 33}, "33 flows: must be 1 to 32 each way"),
        ({"cc": "tfrc", "duration_s": 0}, "0 s: a flow must last 1 ms to ten days"),
    ],
)
def test_mistakes_are_said_before_anything_is_sent(options: dict[str, Any], says: str) -> None:
    whole: dict[str, Any] = {"host": "127.0.0.1", "port": 1, **options}
    with pytest.raises((PacelineError, ScenarioError), match=says):
        send(**whole)


def test_mistakes_of_a_command_begin_with_its_option(tmp_path: Path) -> None:
    with by_command():
        with pytest.raises(ScenarioError, match=r"^--set params.phi: "):
            send("127.0.0.1", "newreno", set={"params.phi": 2}, port=1)
        with pytest.raises(
            PacelineError, match=r"^--rate is the rate of --cc udp; other controllers find their own"
        ):
            send("127.0.0.1", "tfrc", rate="1 Mbit/s", port=1)
    none = tmp_path / "key"
    none.write_text("a word\n")
    with pytest.raises(PacelineError, match="`paceline key FILE` makes one"):
        send("127.0.0.1", "tfrc", port=1, key_file=none)


@pytest.mark.parametrize(
    ("host", "folder", "says"),
    [
        ("127.0.0.1", "new", "only connections over QUIC are logged: put quic:// before 127.0.0.1"),
        ("quic://127.0.0.1", "full", "full is not empty: logs go to a new or empty folder"),
        ("quic://127.0.0.1", "full/file", "file is a file, and logs go to a folder"),
        ("quic://127.0.0.1", "full/file/in", "cannot make or write directory .*file/in: Not a directory"),
    ],
)
def test_mistakes_of_a_folder_of_logs_begin_with_its_option(
    tmp_path: Path, host: str, folder: str, says: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    with by_command(), pytest.raises((PacelineError, StorageError), match=rf"^--qlog: .*{says}"):
        send(host, port=1, qlog=tmp_path / folder)
    with pytest.raises((PacelineError, StorageError), match=r"^qlog: "):
        send(host, port=1, qlog=tmp_path / folder)


def test_so_do_those_of_a_simulated_run(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    text = """
duration = "1 s"
[link.bottleneck]
rate = "1 Mbit/s"
delay = "1 ms"
[flow.one]
cc = "cubic"
"""
    made = paceline.parse(text)
    with by_command(), pytest.raises(PacelineError, match=r"^--qlog: no flow is over QUIC"):
        paceline.run(made, qlog=tmp_path / "new")
    with pytest.raises(PacelineError, match=r"^qlog: .*full is not empty"):
        paceline.run(paceline.parse(f'{text}transport = "quic"'), qlog=tmp_path / "full")


@contextlib.contextmanager
def answering(*words: bytes) -> Iterator[int]:
    """The port of a program that says these words to who comes, or without any hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:

        def answer() -> None:
            met, _ = server.accept()
            with met:
                for word in words:
                    met.sendall(word)
                met.recv(1)

        done = threads.submit(answer)
        yield server.getsockname()[1]
        done.result(10)


def test_where_no_server_is_it_is_said_how_to_start_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for host in ("127.0.0.1", "quic://127.0.0.1"):
        none = (
            rf"^127.0.0.1 port {port}: Connection refused.* No `paceline serve` can be reached there{START}"
        )
        with pytest.raises(LiveError, match=none):
            send(host, "cubic", port=port)
    with pytest.raises(LiveError, match=r"^nowhere.invalid: (?!.*paceline serve)"):
        send("nowhere.invalid", "cubic")


def test_another_program_at_the_port_is_said_to_be_one() -> None:
    with (
        answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port,
        pytest.raises(LiveError, match=rf"^another program than `paceline serve` has the port, or .*{START}"),
    ):
        send("127.0.0.1", "cubic", port=port)
    with (
        answering() as port,
        pytest.raises(LiveError, match=rf"closed the connection .* another program than .*{START}"),
    ):
        send("127.0.0.1", "cubic", port=port)


def served(*bounds: Any) -> contextlib.AbstractContextManager[int]:
    """The port of a server with these bounds."""
    return ports.serving(listen(None, 0, *bounds))


def test_what_a_server_does_not_allow_is_said_with_what_it_does() -> None:
    with served(5_000_000, 20.0, 4, None) as port:
        limit = r"this server allows 5 Mbit/s, and `paceline serve --max-rate` raises that$"
        with pytest.raises(LiveError, match=limit):
            send("127.0.0.1", "udp", rate="20 Mbit/s", direction="reverse", port=port)
        longest = r"this server allows 20000 ms, and `paceline serve --max-duration` raises that$"
        with pytest.raises(LiveError, match=longest):
            send("127.0.0.1", "cubic", duration_s=30, port=port)


def test_both_ends_have_the_key_or_neither(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    for file in (right, wrong):
        new_key(file)
    right.write_text(f"paceline-key:{KEY.hex()}\n")
    with served(5_000_000, 20.0, 4, KEY) as port:
        with pytest.raises(LiveError, match="--key-file"):
            send("127.0.0.1", "tfrc", port=port)
        with pytest.raises(LiveError, match="not the server's"):
            send("127.0.0.1", "tfrc", port=port, key_file=wrong)
    with served(5_000_000, 20.0, 4, None) as port, pytest.raises(LiveError, match="the server has no key"):
        send("127.0.0.1", "tfrc", port=port, key_file=right)


def test_a_receiver_of_rtp_gets_nothing_of_a_flow_that_is_refused() -> None:
    alone = "one flow of one Paceline controller, from here, without a key"
    lda: dict[str, Any] = {"cc": "lda-plus", "max_rate": "1Mbit/s"}
    with ports.bound() as listens:
        mine = listens.getsockname()[1]
        there = f"rtp://127.0.0.1:{mine}?localrtpport={ports.free()}"
        taken = f"rtp://127.0.0.1:{mine}?localrtcpport={mine}&localrtpport={ports.free()}"
        cases: list[tuple[str, dict[str, Any], str]] = [
            (there, {"cc": "lda-plus"}, 'max_rate="2Mbit/s"'),
            (there, {"cc": "lda-plus", "max_rate": "2 apples"}, 'max_rate="2 apples"'),
            (there, {**lda, "flows": 2}, alone),
            (there, {**lda, "cc": "kernel:reno"}, alone),
            ("127.0.0.1", lda, "serve --max-rate"),
            (there, {**lda, "cc": "tfrc"}, "use lda-plus"),
            (there, {"cc": "nada", "app": "encoder"}, 'max_rate="2Mbit/s"'),
            (f"{there}&pt=72", lda, "RFC 5761"),
            ("rtp://239.1.1.1:5004", lda, "one receiver"),
            ("rtp://no-such-host.invalid:5004", lda, "no-such-host"),
            (taken, lda, "localrtpport"),
        ]
        for host, options, says in cases:
            with pytest.raises((PacelineError, ScenarioError, LiveError), match=says):
                send(host, **options)
        assert ports.waiting(listens) == []


BULK = """
duration = "8 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { limit = "60 packets" }
[flow.bulk]
cc = "newreno"
"""


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            'app = { kind = "web", request = {} }',
            r"flow.pages.app.request: requests are simulated: .* leave it out",
        ),
        ('quic = { handshake = "zero-rtt" }', r"flow.pages.quic.handshake: `zero-rtt` .* use `one-rtt`"),
        ('segment = "4000 B"', r"flow.pages.segment: `4000 B` is more than .* 1472 B at most"),
    ],
)
def test_what_no_real_connection_has_is_refused_before_it_runs(tmp_path: Path, more: str, says: str) -> None:
    file = tmp_path / "pages.toml"
    file.write_text(f'{BULK}transport = "quic"\n[flow.pages]\ncc = "cubic"\ntransport = "quic"\n{more}\n')
    for refused in (realtime.check, realtime.emulate):
        with pytest.raises(PacelineError, match=rf"pages.toml: {says}"):
            refused(paceline.load(file), 1)
    assert paceline.run(file).flows.height == 2


def test_tracks_are_refused() -> None:
    made = paceline.load(Path(__file__).parent.parent / "examples" / "quic-tracks.toml")
    said = "bundle: flows cannot share a QUIC connection in real time; leave `bundle` out"
    with pytest.raises(PacelineError, match=said):
        realtime.flows(made, 1)
    with pytest.raises(PacelineError, match=said):
        paceline.emulate(made)


def test_a_relay_is_refused() -> None:
    relay = '[flow.b]\nfrom = "right"\nto = "left"\napp = { kind = "relay", of = "a" }\n'
    voice = f'transport = "quic"\napp = {{ kind = "voice" }}\n{relay}'
    with pytest.raises(PacelineError, match=r"flow.b.app: relays run only in the simulator \(paceline run\)"):
        realtime.flows(paceline.parse(BULK.replace("[flow.bulk]", "[flow.a]") + voice), 1)


def test_logs_of_emulated_connections_have_a_folder_of_their_own_and_one_run(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    quic = paceline.parse(f'{BULK}transport = "quic"')
    cases: list[tuple[dict[str, Any], str]] = [
        ({"scenario": quic, "qlog": tmp_path / "full"}, "is not empty"),
        ({"scenario": quic, "qlog": tmp_path / "two", "runs": 2}, "qlog: a capture holds one run, not 2"),
        ({"scenario": paceline.parse(BULK), "qlog": tmp_path / "none"}, "no flow is over QUIC"),
    ]
    for options, says in cases:
        with pytest.raises(PacelineError, match=says):
            paceline.emulate(**options)
