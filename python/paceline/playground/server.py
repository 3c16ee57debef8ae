"""Serves one page to the browser of this host, at an address with a secret in it.

It listens only on 127.0.0.1. A request must contain the secret (which a foreign page cannot guess), name this host by
its own names (a foreign name that resolves to 127.0.0.1 is refused), and be GET or HEAD. There is one file, read before
the first request, and a second address that redirects to it; no other path leads to a file.
"""

from __future__ import annotations

import contextlib
import gzip
import hmac
import re
import secrets
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer

HOST = "127.0.0.1"
_NAMES = (HOST, "localhost")
_TIMEOUT_S = 10
"""The time limit for a client's request."""

POLICY = "; ".join(
    [
        "default-src 'none'",
        # the page's inline scripts; WebAssembly is compiled there and in its workers, which are made of blobs
        "script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:",
        "style-src 'unsafe-inline'",
        "worker-src blob:",
        "img-src data: blob:",
        "font-src data:",
        "connect-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
"""The page's content security policy: it may make no requests."""


class PageServer(ThreadingHTTPServer):
    """Serves a page at `address` within the `with` block `running`. `opening` redirects there, with a fragment of the
    page: it is short, as systems require of an address to open. Raises OSError if the system gives no port."""

    daemon_threads = True
    # The port is a free one; on Windows this option would let another program take it too.
    allow_reuse_address = False

    def __init__(self, page: bytes, fragment: str = "") -> None:
        self.page = page
        self.fragment = fragment
        self.packed = gzip.compress(page, 6, mtime=0)
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, 0), _Handler)

    def server_bind(self) -> None:
        """Binds without looking up this host's name, unlike the base class."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    @property
    def address(self) -> str:
        """The page's address."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    @property
    def opening(self) -> str:
        """The short address that redirects to the page with its fragment."""
        return f"{self.address}open"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores clients that went away."""

    @contextlib.contextmanager
    def running(self) -> Iterator[PageServer]:
        """Answers requests within the block."""
        thread = threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            thread.join()
            self.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request, and closes: HTTP/1.0."""

    server: PageServer
    timeout = _TIMEOUT_S

    def version_string(self) -> str:
        """The Server header, without versions."""
        return "paceline"

    def log_message(self, *_: object) -> None:
        """Logs nothing to the terminal."""

    def parse_request(self) -> bool:
        """Reads a request's head; refuses requests that are not for this page."""
        if not super().parse_request():
            return False
        refusal = self._refusal()
        if refusal is None:
            return True
        self.send_response(refusal)
        if refusal is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def _refusal(self) -> HTTPStatus | None:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in {f"{n}:{self.server.server_port}" for n in _NAMES}:
            return HTTPStatus.FORBIDDEN
        if self.command not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED
        # compare in constant time, which reveals nothing about a partial match
        path, known = self._path().encode(), f"/{self.server.token}/"
        if not any(hmac.compare_digest(path, f"{known}{last}".encode()) for last in ("", "open")):
            return HTTPStatus.NOT_FOUND
        return None

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def do_GET(self) -> None:
        """Sends the page, or the redirect to it."""
        if self._path().endswith("/open"):
            self.send_response(HTTPStatus.FOUND)
            self.send_header("Location", f"/{self.server.token}/#{self.server.fragment}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        packed = accepts_gzip(",".join(self.headers.get_all("Accept-Encoding", [])))
        body = self.server.packed if packed else self.server.page
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        if self.command == "GET":
            with contextlib.suppress(OSError):  # the client closed the connection
                self.wfile.write(body)

    def do_HEAD(self) -> None:
        """Sends the page's head."""
        self.do_GET()

    def end_headers(self) -> None:
        """Ends the head of any answer, after the common headers."""
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()


def accepts_gzip(header: str) -> bool:
    """Whether Accept-Encoding allows gzip, by name or "*", with a weight above zero (RFC 9110, section 12.5.3)."""
    weights: dict[str, float] = {}
    for one in header.lower().split(","):
        name, _, parameters = one.partition(";")
        found = re.search(r"\bq\s*=\s*([\d.]+)", parameters)
        try:
            weights[name.strip()] = float(found[1]) if found else 1.0
        except ValueError:
            weights[name.strip()] = 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0
