"""What `paceline send` is refused before anything is sent, in words that say what to do."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import paceline
from paceline.errors import LiveError, PacelineError, StorageError
from paceline.sending import listen, send
from paceline.spoken import by_command

CARRIED = r".*; quic://HOST takes newreno, reno, .*cubic, .*c4, .*copa$"
START = r"(: |if so, )start one on that host with `paceline serve --port P`, .* --key-file FILE or --open"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cc": "prague"}, r"^--cc: prague counts the packets that were marked" + CARRIED),
        ({"cc": "gcc", "app": "encoder"}, r"^--cc: gcc sets no window" + CARRIED),
        ({"cc": "udp", "rate": "2 Mbit/s"}, r"^--cc: udp sets no window" + CARRIED),
        ({"cc": "kernel:cubic"}, r"^--cc: kernel:cubic is the kernel's TCP" + CARRIED),
        ({"set": {"bundle.with": "x"}}, r"^--set bundle.with: in real time no flows share a connection"),
        (
            {"set": {"bundle": {"priority": 2}}, "flows": 2},
            r"^--set bundle: in real time no flows share a con",
        ),
    ],
)
def test_quic_takes_what_sets_a_window_and_stands_alone(options: dict[str, Any], says: str) -> None:
    """Nobody listens at the port: it is refused before."""
    with by_command(), pytest.raises(PacelineError, match=says):
        send("quic://127.0.0.1", port=1, **{"cc": "cubic"} | options)


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


def test_what_a_server_does_not_allow_is_said_with_what_it_does(tmp_path: Path) -> None:
    server = listen(None, 0, 5_000_000, 20.0, 4, None)
    port = int(server.address.rpartition(":")[2])
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(server.run)
        try:
            most = r"this server allows 5 Mbit/s, and `paceline serve --max-rate` raises that$"
            with pytest.raises(LiveError, match=most):
                send("127.0.0.1", "udp", rate="20 Mbit/s", direction="reverse", port=port)
            longest = r"this server allows 20000 ms, and `paceline serve --max-duration` raises that$"
            with pytest.raises(LiveError, match=longest):
                send("127.0.0.1", "cubic", duration_s=30, port=port)
        finally:
            server.stop()
        done.result()
