"""Ports of this host for tests."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def bound(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """A socket at the port, which never waits; without one at any."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    made.setblocking(False)
    return made


def pair() -> tuple[socket.socket, socket.socket]:
    """Sockets at a port and the next one, as RTP and RTCP have them."""
    while True:
        one = bound()
        try:
            return one, bound(one.getsockname()[1] + 1)
        except OSError:
            one.close()


def free() -> int:
    """A port that is free, and the next one."""
    one, other = pair()
    with one, other:
        return int(one.getsockname()[1])


def is_taken(port: int) -> bool:
    """Whether somebody has it; to bind it would keep out who is about to."""
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    return any(int(line.split()[1].partition(":")[2], 16) == port for line in lines)


def wait_until_taken(port: int) -> None:
    """Until a program that was started listens there."""
    until = time.monotonic() + 40
    while not is_taken(port):
        assert time.monotonic() < until, f"nobody listens at {port}"
        time.sleep(0.02)


def waiting(made: socket.socket) -> list[bytes]:
    """The datagrams that have come."""
    found = []
    while True:
        try:
            found.append(made.recv(2048))
        except BlockingIOError:
            return found


@contextlib.contextmanager
def serving(server: Any) -> Iterator[int]:
    """The port of what `listen` gave, which runs on a thread of its own: another program would take seconds to begin on
    a busy host."""
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(server.run)
        try:
            yield int(server.address.rpartition(":")[2])
        finally:
            server.stop()
        done.result()
