"""`paceline explore`: an address for this host alone, what it serves, and what is refused."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import re
import signal
import socket
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from needs import require
from paceline import playground
from paceline.cli import app, explore
from paceline.playground.server import PageServer, accepts_gzip

PAGE = b"<!doctype html><title>the page</title>" + b" " * 1000


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer(PAGE).running() as running:
        yield running


def request(
    server: PageServer, method: str = "GET", path: str | None = None, host: str | None = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    with contextlib.closing(connection):
        connection.putrequest(method, path or f"/{server.token}/", skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", f"127.0.0.1:{server.server_port}" if host is None else host)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer, answer.read()


def test_the_page_is_served_with_what_keeps_it_to_itself(server: PageServer) -> None:
    answer, body = request(server)
    assert (answer.status, body) == (200, PAGE)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Server"] == "paceline"
    policy = answer.headers["Content-Security-Policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "worker-src blob:" in policy
    assert not [one for one in policy if "http" in one or "*" in one or "'self'" in one], (
        "no request to anywhere"
    )
    assert request(server, host=f"LOCALHOST:{server.server_port}")[0].status == 200
    head, nothing = request(server, "HEAD")
    assert (head.status, nothing, head.headers["Content-Length"]) == (200, b"", str(len(PAGE)))


def test_it_is_packed_for_those_who_take_that(server: PageServer) -> None:
    answer, body = request(server, Accept_Encoding="br, gzip;q=0.5")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == PAGE
    assert len(body) < 200
    plain, body = request(server, Accept_Encoding="gzip;q=0, br")
    assert (plain.headers["Content-Encoding"], body) == (None, PAGE)
    assert plain.headers["Vary"] == answer.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    ("header", "packed"),
    [
        ("", False),
        ("gzip", True),
        ("*", True),
        ("*, gzip;q=0", False),
        ("GZIP ; q=1.0", True),
        ("gzip;q=x", True),
    ],
)
def test_what_accept_encoding_says(header: str, packed: bool) -> None:
    assert accepts_gzip(header) is packed


def test_a_request_without_the_secret_gets_nothing(server: PageServer) -> None:
    wrong = server.token[:-1] + ("a" if server.token[-1] != "a" else "b")
    paths = [
        "/",
        "/favicon.ico",
        f"/{wrong}/",
        f"/{server.token}",
        f"/{server.token}/x",
        f"/{server.token}//",
    ]
    for path in [*paths, f"/{server.token}/../{server.token}/", "/etc/passwd"]:
        answer, body = request(server, path=path)
        assert (answer.status, body) == (404, b""), path
    assert len(server.token) >= 32
    assert PageServer(PAGE).token != server.token
    assert request(server, path=f"/{server.token}/?x=1")[0].status == 200


def test_names_of_elsewhere_that_lead_here_get_nothing(server: PageServer) -> None:
    """A name that its owner has made to mean 127.0.0.1, so that his pages could read this one (DNS rebinding)."""
    port = server.server_port
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        "",
        f"127.0.0.1:{port}.",
    ):
        answer, body = request(server, host=host)
        assert (answer.status, body) == (403, b""), host
    assert request(server, host=f"127.0.0.1:{port}", hOST="evil.example")[0].status == 403, (
        "two are one too many"
    )
    assert request(server, host=f"127.0.0.1:{port}")[0].status == 200


def test_a_short_address_leads_to_the_fragment() -> None:
    fragment = playground.encoded("x" * 100, {}, 2)
    with PageServer(PAGE, fragment).running() as running:
        answer, body = request(running, path=f"/{running.token}/open")
        assert (answer.status, body) == (302, b"")
        assert answer.headers["Location"] == f"/{running.token}/#{fragment}"
        assert running.opening == f"http://127.0.0.1:{running.server_port}/{running.token}/open"
        assert request(running, path=f"/{running.token}/opens")[0].status == 404


def test_nothing_but_reading(server: PageServer) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get"):
        answer, body = request(server, method)
        assert (answer.status, answer.headers["Allow"], body) == (405, "GET, HEAD", b""), method


def test_it_is_at_this_host_alone_and_bears_nonsense(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    for nonsense in (
        b"\0\xff\r\n\r\n",
        "GET /é HTTP/1.0\r\n\r\n".encode(),
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 70_000,
        b"",
    ):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as raw:
            with contextlib.suppress(OSError):
                raw.sendall(nonsense)
            raw.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                assert PAGE not in raw.makefile("rb").read()
    assert request(server)[0].status == 200


def test_its_port_is_free_again_at_the_end() -> None:
    with PageServer(PAGE).running() as running:
        port = running.server_port
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=5)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page, where the package has one."""
    page = tmp_path / "page.html"
    page.write_bytes(PAGE)
    monkeypatch.setattr(playground, "page", lambda: page)
    return page


def test_the_address_alone_is_printed_and_opens_the_file(built: Path) -> None:
    words = ["explore", "examples/rate-trace.toml", "--runs", "5", "--no-open", "--for", "10 ms"]
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 0, said.output
    assert said.stderr == ""
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32,}/#toml=[\w-]+&files=[\w-]+&runs=5\n", said.stdout)
    linked = playground.read(said.stdout.strip())
    assert linked.text == Path("examples/rate-trace.toml").read_text()
    assert set(linked.files) == {"traces/cell.down", "traces/cell-up.txt"}


def test_a_preset_and_changes_are_opened(built: Path) -> None:
    def opened(*words: str, code: int = 0, given: str | None = None) -> str:
        said = CliRunner().invoke(app, ["explore", *words, "--no-open", "--for", "1 ms"], input=given)
        assert said.exit_code == code, said.output
        return said.stdout.strip() if code == 0 else said.stderr

    name = next(iter(playground.presets()))
    assert opened().endswith("/")
    assert opened("--runs", "2").endswith("/#runs=2")
    assert opened(name).endswith(f"/#preset={name}")
    assert "seed = 12" in playground.read(opened(name, "--seed", "12")).text
    changed = opened("examples/coffee-shop.toml", "--set", "flow.film.cc=cubic")
    assert 'cc = "cubic"' in playground.read(changed).text
    text = Path("examples/loss.toml").read_text()
    assert playground.read(opened("-", given=text)).text == text

    assert f"neither a file nor a preset (did you mean {name}?)" in opened(name[:-1], code=2)
    assert "`paceline explore --list`" in opened("zzzz", code=2)
    assert "there-is-none.toml" in opened("there-is-none.toml", code=2)
    assert "a controller of your own" in opened("examples/own-controller.toml", code=2)
    assert "name its file" in opened("--seed", "3", code=2)
    assert "flow.film.cc" in opened("examples/coffee-shop.toml", "--set", "flow.film.cc=cubbic", code=2)
    assert "runs 0: must be 1 to 1000" in opened("--runs", "0", code=2)


def test_traces_that_are_too_long_are_asked_for(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playground, "LONGEST", 1500)
    with pytest.warns(match=r"drop onto the page traces/cell\.down, traces/cell-up\.txt"):
        said = CliRunner().invoke(app, ["explore", "examples/rate-trace.toml", "--no-open", "--for", "1 ms"])
    assert playground.read(said.stdout.strip()).files == {}
    monkeypatch.setattr(playground, "LONGEST", 100)
    said = CliRunner().invoke(app, ["explore", "examples/coffee-shop.toml", "--no-open", "--for", "1 ms"])
    assert said.exit_code == 2
    assert "as a link: at most 100" in said.stderr


def test_the_browser_is_opened_where_there_is_one(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def take(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", take)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    said = CliRunner().invoke(app, ["explore", "--runs", "2", "--for", "1 ms"])
    assert "no browser could be opened here; open this in one" in said.stderr
    assert said.stderr.endswith("/#runs=2\n")
    assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    said = CliRunner().invoke(app, ["explore", "--runs", "2", "--for", "1 ms"])
    assert "the playground is open" in said.stderr
    (url,) = opened
    assert url.endswith("/open"), "some systems open no long address; this one leads to it"
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    assert "open this in one" in CliRunner().invoke(app, ["explore", "--for", "1 ms"]).stderr


def test_a_package_without_the_page_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playground, "page", lambda: None)
    said = CliRunner().invoke(app, ["explore"])
    assert said.exit_code == 1
    assert "`rustup target add wasm32-unknown-unknown`" in said.stderr, "this is a clone"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install node 20 or newer and npm (`node` and `npm` are not there)" in explore.missing(tmp_path)
    assert str(tmp_path / "web" / "build") in explore.missing(tmp_path)
    assert "built without the playground" in explore.missing(None)


def test_the_list_has_each_preset_and_its_question(monkeypatch: pytest.MonkeyPatch) -> None:
    said = " ".join(CliRunner().invoke(app, ["explore", "--list"]).stdout.split())
    for preset in playground.presets().values():
        assert f"{preset.name} " in said
        assert preset.question.split()[0] in said


def test_a_signal_ends_it(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(PAGE)
    code = (
        "import sys, pathlib\nfrom paceline import playground\n"
        f"playground.page = lambda: pathlib.Path({str(page)!r})\n"
        "sys.argv = ['paceline', 'explore', '--no-open']\n"
        "from paceline.cli import main\nmain()\n"
    )
    for by in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as running:
            assert running.stdout is not None
            assert running.stdout.readline().startswith("http://127.0.0.1:")
            began = time.monotonic()
            running.send_signal(by)
            _, said = running.communicate(timeout=30)
            assert (running.returncode, said) == (130, "paceline: Stopped.\n")
            assert time.monotonic() - began < 10


PROBE = b"""<!doctype html><title>p</title><p id=said></p><script>
const empty = "new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])";
const say = (word) => { document.getElementById("said").textContent += ` ${word}!`; };
WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => say("compiled"));
const code = `WebAssembly.compile(${empty}).then(() => postMessage("in-a-worker"))`;
new Worker(URL.createObjectURL(new Blob([code]))).onmessage = (event) => { say(event.data); clearInterval(spin); };
// The browser's clock jumps where the page waits; a worker needs time that passes.
const spin = setInterval(() => { for (let n = 0, x = 1; n < 3e7; n++) x = (x * 7) % 1009; }, 200);
fetch("/elsewhere").catch(() => say("no-request"));
say(location.hash.slice(1));
</script>"""


@pytest.mark.page
def test_a_browser_lets_the_page_compute_and_nothing_else() -> None:
    require("chromium")
    with PageServer(PROBE, "fragment").running() as running:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
        shown = subprocess.run(
            [*command, "--dump-dom", running.opening],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    (said,) = re.findall(r"<p id=\"said\">(.*?)</p>", shown)
    assert set(said.split()) == {"compiled!", "in-a-worker!", "no-request!", "fragment!"}
