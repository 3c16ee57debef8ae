"""`paceline serve`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Annotated

import typer

from paceline import _core
from paceline.cli.options import span
from paceline.errors import PacelineError
from paceline.live.keys import read_key
from paceline.results.recordings import PORT

LOGS = (1000, 1_000_000_000)
"""The limits on files and bytes of QUIC logs that clients can make a server write."""


def serve(
    port: Annotated[int, typer.Option("--port", metavar="P", help="TCP and UDP port.")] = PORT,
    bind: Annotated[
        str | None,
        typer.Option(
            "--bind",
            metavar="A",
            help="Listen at this address only. Default: all addresses with a key or --open, else 127.0.0.1.",
            show_default=False,
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="Serve clients that have this key (`paceline key`).",
            show_default=False,
        ),
    ] = None,
    everybody: Annotated[bool, typer.Option("--open", help="Serve everybody, without a key.")] = False,
    max_rate: Annotated[
        str, typer.Option("--max-rate", metavar="RATE", help="Maximum rate of a flow.")
    ] = "1Gbit/s",
    max_duration: Annotated[
        str, typer.Option("--max-duration", metavar="SPAN", help="Maximum duration of a flow.")
    ] = "3600s",
    max_sessions: Annotated[
        int, typer.Option("--max-sessions", metavar="N", help="Maximum number of flows at a time.")
    ] = 64,
    max_memory: Annotated[
        str,
        typer.Option("--max-memory", metavar="SIZE", help="Maximum memory for flows and recordings."),
    ] = "1GB",
    qlog: Annotated[
        Path | None,
        typer.Option(
            "--qlog",
            metavar="DIR",
            help="Folder for logs of QUIC connections (qlog); at most 1000 files and 1 GB.",
            show_default=False,
        ),
    ] = None,
    duration: Annotated[
        str,
        typer.Option("--for", metavar="SPAN", help="Duration. Default: until Ctrl-C.", show_default=False),
    ] = "",
) -> None:
    """Answer `paceline send`: receive its flows, and send flows on request.

    Without --key-file or --open it serves this host alone. It sends only to clients that proved to own their
    address, and before that never more bytes than it received.

    \b
    Examples:
      paceline serve --bind 127.0.0.1 --port 0 --for 1s
      paceline serve --bind 127.0.0.1 --port 0 --max-rate 20Mbit/s --for 1s
      paceline serve --bind 127.0.0.1 --port 0 --qlog out/served --for 1s
    """
    from paceline.live.send import for_logs, listen

    key = None if key_file is None else read_key(key_file)
    try:
        rate = _core.quantity(max_rate, "bit/s")
    except ValueError as error:
        raise PacelineError(f"--max-rate {max_rate}: {error}") from None
    try:
        memory = _core.quantity(max_memory, "B")
    except ValueError as error:
        raise PacelineError(f"--max-memory {max_memory}: {error}") from None
    longest = span(max_duration, "--max-duration")
    for option, value, right, allowed in (
        ("--max-rate", max_rate, 8 <= rate <= 1e12, "8 bit/s to 1 Tbit/s"),
        ("--max-duration", max_duration, 0 < longest <= 864_000, "must be above 0, up to ten days"),
        ("--max-sessions", max_sessions, 1 <= max_sessions <= 4096, "1 to 4096"),
        ("--max-memory", max_memory, 16e6 <= memory <= 1e12, "16 MB to 1 TB"),
        ("--port", port, 0 <= port < 65_536, "must be 0 to 65535; 0 selects a free port"),
    ):
        if not right:
            raise PacelineError(f"{option} {value}: {allowed}")
    if qlog is not None:
        for_logs(qlog, shared=True)
    server = listen(
        bind,
        port,
        int(rate),
        longest,
        max_sessions,
        key,
        strangers=everybody,
        memory=int(memory),
        qlogs=None if qlog is None else (str(qlog), *LOGS),
    )
    until = span(duration, "--for") if duration else None
    print(f"paceline: serves on {server.address}, TCP and UDP; Ctrl-C ends", file=sys.stderr, flush=True)
    if key is None and not everybody:
        alone = "this host alone is served; others by --key-file FILE (`paceline key` makes one) or --open"
        print(f"paceline: {alone}", file=sys.stderr, flush=True)
    with ThreadPoolExecutor(1, "paceline-serve") as threads:
        done = threads.submit(server.run)
        try:
            while not done.done() and (until is None or until > 0):
                step = 0.2 if until is None else min(0.2, until)
                wait([done], step)
                until = None if until is None else until - step
                for line in server.lines():
                    print(line, file=sys.stderr, flush=True)
        finally:
            server.stop()
    done.result()
