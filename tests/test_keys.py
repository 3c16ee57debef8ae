"""Key files, and whom a server lets in without one."""

from __future__ import annotations

import json
import re
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from paceline.errors import PacelineError, StorageError
from paceline.live.keys import new_key, read_key
from paceline.live.send import listen

HOSTILE = "no\x1b[2J\n\u202e"
SHOWN = r"no\u001b[2J\n\u202e"


def test_a_new_key_is_its_owners_alone(tmp_path: Path) -> None:
    one, another = tmp_path / "one", tmp_path / "another"
    for path in (one, another):
        new_key(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert re.fullmatch(r"paceline-key:[0-9a-f]{64}\n", path.read_text())
        assert len(read_key(path)) == 32
    assert read_key(one) != read_key(another)
    before = one.read_text()
    with pytest.raises(PacelineError, match="exists already"):
        new_key(one)
    assert one.read_text() == before
    with pytest.raises(StorageError, match="cannot write"):
        new_key(tmp_path / "none" / "key")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    new_key(path)
    path.chmod(mode)
    with pytest.raises(PacelineError, match=f"chmod 600 {path}"):
        read_key(path)
    path.chmod(0o400)
    assert read_key(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a password of eight and more\n",
        "0" * 64,
        "paceline-key:" + "0" * 63,
        "paceline-key:" + "0" * 66,
        "paceline-key:" + "x" * 64,
    ],
)
def test_what_is_no_key_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(PacelineError, match="`paceline key FILE` makes one"):
        read_key(path)


def _listening(bind: str | None, key: bytes | None, *, strangers: bool) -> str:
    server = listen(bind, 0, 10**6, 1.0, 1, key, strangers=strangers)
    server.stop()
    server.run()
    return server.address.rpartition(":")[0]


def test_strangers_are_served_only_when_asked_for() -> None:
    key = bytes(32)
    assert _listening(None, None, strangers=False) == "127.0.0.1"
    assert _listening("127.0.0.2", None, strangers=False) == "127.0.0.2"
    for bind in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(PacelineError, match=rf"--bind {bind}: .*--key-file FILE.*`paceline key`.*--open"):
            _listening(bind, None, strangers=False)
    everywhere = ("[::]", "0.0.0.0")
    assert _listening(None, key, strangers=False) in everywhere
    assert _listening(None, None, strangers=True) in everywhere
    assert _listening("0.0.0.0", None, strangers=True) == "0.0.0.0"
    with pytest.raises(PacelineError, match="one of them"):
        _listening(None, key, strangers=True)


def _ran(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paceline", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_serve_says_whom_it_serves(tmp_path: Path) -> None:
    said = _ran("serve", "--port", "0", "--for", "0.1s").stderr
    assert "serves on 127.0.0.1:" in said
    assert "this host alone is served; others by --key-file FILE (`paceline key` makes one) or --open" in said
    refused = _ran("serve", "--bind", "0.0.0.0", "--port", "0", "--for", "0.1s")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    path = tmp_path / "key"
    said = " ".join(_ran("key", str(path)).stdout.split())
    assert f"Written to {path}. With a copy on each host: paceline serve --key-file {path}" in said
    for more in (["--open"], ["--key-file", str(path)]):
        said = _ran("serve", "--port", "0", "--for", "0.1s", *more).stderr
        assert "serves on" in said
        assert "alone" not in said


def _framed(message: object) -> bytes:
    text = json.dumps(message, ensure_ascii=False).encode()
    return len(text).to_bytes(4, "big") + text


@pytest.fixture
def hostile() -> Iterator[int]:
    """The port of a server that refuses all, in words for a terminal."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            with listener.accept()[0] as stream:
                stream.recv(1 << 16)
                stream.sendall(_framed({"say": "refused", "why": HOSTILE}))

        thread = threading.Thread(target=refuse)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_a_hostile_servers_words_do_not_reach_the_terminal(hostile: int) -> None:
    ran = _ran("send", f"127.0.0.1:{hostile}", "--cc", "tfrc", "--for", "1s")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == f"paceline: the server refused: {SHOWN}\n"


def test_a_hostile_clients_words_do_not_reach_the_servers_log() -> None:
    command = [sys.executable, "-m", "paceline", "serve", "--port", "0", "--for", "3s"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        where = int(server.stderr.readline().partition(" on ")[2].partition(",")[0].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", where)) as stream:
            stream.sendall(_framed({"say": HOSTILE}))
            stream.recv(1 << 16)
        said: Sequence[str] = server.stderr.readlines()
    assert any(line.startswith("127.0.0.1: ") and SHOWN in line for line in said), said
    assert all(line.rstrip("\n").isprintable() for line in said), said
