"""aioquic's side of `crates/quinn/examples/echo.rs`: an echo over a stream and datagrams, as server and as client.

    python tests/aioquic_echo.py serve HOST PORT CERTIFICATE KEY LOG
    python tests/aioquic_echo.py HOST PORT CERTIFICATE BYTES LOG

LOG is where the connection's qlog goes; the server makes it, empty, once it listens. The client says what came back,
as the other's does.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from collections import deque
from pathlib import Path

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import DatagramFrameReceived, QuicEvent, StreamDataReceived
from aioquic.quic.logger import QuicLogger

DATAGRAMS = (50, 1000)
PATIENCE_S = 1.0


class Echo(QuicConnectionProtocol):
    """Answers whatever comes."""

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, DatagramFrameReceived):
            self._quic.send_datagram_frame(event.data)
        elif isinstance(event, StreamDataReceived):
            self._quic.send_stream_data(event.stream_id, event.data, event.end_stream)
        self.transmit()


class Client(QuicConnectionProtocol):
    """Keeps what comes back."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.datagrams: deque[bytes] = deque()
        self.received = bytearray()
        self.news = asyncio.Event()
        self.whole = asyncio.Event()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, DatagramFrameReceived):
            self.datagrams.append(event.data)
            self.news.set()
        elif isinstance(event, StreamDataReceived):
            self.received += event.data
            if event.end_stream:
                self.whole.set()

    async def answer(self, datagram: bytes) -> bool:
        """Whether it comes back."""
        self.news.clear()
        self._quic.send_datagram_frame(datagram)
        self.transmit()
        try:
            await asyncio.wait_for(self.news.wait(), PATIENCE_S)
        except TimeoutError:
            return False
        return self.datagrams.popleft() == datagram

    async def echo(self, content: bytes) -> int:
        """How many bytes of it come back, if they are the same."""
        self._quic.send_stream_data(self._quic.get_next_available_stream_id(), content, end_stream=True)
        self.transmit()
        await self.whole.wait()
        return len(self.received) if self.received == content else 0


def configuration(is_client: bool, logger: QuicLogger) -> QuicConfiguration:
    return QuicConfiguration(
        is_client=is_client, alpn_protocols=["echo"], max_datagram_frame_size=65536, quic_logger=logger
    )


async def answer(host: str, port: int, certificate: str, key: str, log: str) -> None:
    logger = QuicLogger()
    ours = configuration(False, logger)
    ours.load_cert_chain(certificate, key)
    server = await serve(host, port, configuration=ours, create_protocol=Echo)
    Path(log).touch()
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    await over.wait()
    server.close()
    Path(log).write_text(json.dumps(logger.to_dict()))


async def run_client(host: str, port: int, certificate: str, size: int, log: str) -> None:
    logger = QuicLogger()
    ours = configuration(True, logger)
    ours.load_verify_locations(certificate)
    ours.server_name = "localhost"
    async with connect(host, port, configuration=ours, create_protocol=Client) as end:
        assert isinstance(end, Client)
        trips, answered = [], 0
        for number in range(DATAGRAMS[0]):
            left = time.monotonic()
            if await end.answer(number.to_bytes(4, "big").ljust(DATAGRAMS[1], bytes([number]))):
                answered += 1
                trips.append(time.monotonic() - left)
        content, began = random.Random(1).randbytes(size), time.monotonic()
        same = await end.echo(content)
        seconds = time.monotonic() - began
    Path(log).write_text(json.dumps(logger.to_dict()))
    summary = {"same": same, "seconds": seconds, "datagrams": answered, "rtt_min_s": min(trips, default=0.0)}
    print(json.dumps(summary))


if __name__ == "__main__":
    first, *words = sys.argv[1:]
    if first == "serve":
        asyncio.run(answer(words[0], int(words[1]), *words[2:]))
    else:
        asyncio.run(run_client(first, int(words[0]), words[1], int(words[2]), words[3]))
