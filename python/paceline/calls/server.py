"""The HTTP server at each end of the path: serves the page to its browser, and stores the browser's measurements.

Only offers and answers cross the path: the near end's server forwards those of its page to the far end's server, which
stores both.
"""

from __future__ import annotations

import http.server
import json
import os
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PORT = 8000
DIAL_S = 2.0
"""How long before its start a call's offer and answer are exchanged. If it were much earlier, the receiver would give
up on the sender."""
_HOLD_S = 20.0
"""How long a request for an offer or answer waits for it."""


class Server(http.server.ThreadingHTTPServer):
    """The server of one end ("near" or "far"), with its files in `where`. `zero` is the time of day at which the
    scenario begins."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, where: Path, end: str, zero: float) -> None:
        super().__init__(("", PORT), Handler)
        self.where, self.end, self.zero = where, end, zero
        self.plan = json.loads((where / "plan.json").read_text())
        self.ready = threading.Event()
        """Set when the page has prepared all its calls."""
        self.box: dict[str, bytes] = {}
        self.changed = threading.Condition()
        self._waits = {call["name"] for call in self.plan["calls"]}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores requests that a browser left behind when it ended."""

    def got_ready(self, call: str) -> None:
        """Notes that the page has prepared a call."""
        self._waits.discard(call)
        if not self._waits:
            self.ready.set()

    def instant(self, call: str, when: str) -> float:
        """The time of day of a call's offer, start or stop."""
        (one,) = [one for one in self.plan["calls"] if one["name"] == call]
        at = one["stop_s"] if when == "stop" else one["start_s"]
        return float(self.zero + at - (DIAL_S if when == "offer" else 0))

    def append(self, name: str, line: str) -> None:
        """Appends to one of this end's files."""
        with self.changed, (self.where / f"{self.end}-{name}").open("a") as file:
            file.write(line + "\n")


class Handler(http.server.BaseHTTPRequestHandler):
    """Handles the page's requests: see page.html."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        """Returns the page, the plan, an instant to wait for, or a message from the other end's page."""
        url = urlsplit(self.path)
        if url.path == "/":
            self._answer(200, Path(__file__).with_name("page.html").read_bytes(), "text/html")
        elif url.path == "/plan":
            self._answer(200, json.dumps(self.server.plan).encode())
        elif url.path == "/until":
            query = parse_qs(url.query)
            until = self.server.instant(query["call"][0], query["when"][0])
            time.sleep(max(0.0, until - time.time()))
            self._answer(200)
        elif url.path.startswith("/box/"):
            self._from_box(url.path)
        else:
            self._answer(404)

    def do_POST(self) -> None:
        """Stores what the page sends."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/box/"):
            self._to_box(body)
        elif self.path == "/rows":
            for row in json.loads(body):
                self.server.append("rows.jsonl", json.dumps(row))
        elif self.path == "/ready":
            self.server.got_ready(json.loads(body))
        elif self.path == "/note":
            self.server.append("notes.txt", json.loads(body))
        self._answer(200)

    def _from_box(self, name: str) -> None:
        if self.server.end == "near":
            return self._answer(*_of_peer(name, None))
        with self.server.changed:
            self.server.changed.wait_for(lambda: name in self.server.box, _HOLD_S)
            found = self.server.box.get(name)
        return self._answer(204 if found is None else 200, found or b"")

    def _to_box(self, body: bytes) -> None:
        if self.server.end == "near":
            _of_peer(self.path, body)
            return
        with self.server.changed:
            self.server.box[self.path] = body
            self.server.changed.notify_all()

    def _answer(self, code: int, body: bytes = b"", kind: str = "application/json") -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
        """Logs nothing: stderr belongs to the user."""


def _of_peer(name: str, body: bytes | None) -> tuple[int, bytes]:
    """The far end's server's response; 204 if it gives none."""
    url = f"http://{os.environ['PACELINE_PEER']}:{PORT}{name}"
    try:
        with urllib.request.urlopen(url, body, timeout=_HOLD_S + 10) as answer:
            return answer.status, answer.read()
    except (OSError, urllib.error.URLError):
        return 204, b""
