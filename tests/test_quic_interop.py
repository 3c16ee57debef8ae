"""QUIC with a program of others, aioquic, over an emulated path: one of our controllers in quinn at one end."""

from __future__ import annotations

import datetime
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import paceline
from built import example
from needs import require
from over_path import LINK, direction, measured, steal
from realtime import conclusive

pytestmark = pytest.mark.realtime

ROOT = Path(__file__).parent.parent
AIOQUIC = f"{sys.executable} {ROOT / 'tests/aioquic_echo.py'}"
PORT = 4433
SIZE = 3_000_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `cert` and `key`, each as `.pem` and as `.der`."""
    require("aioquic", "namespaces")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    folder = tmp_path_factory.mktemp("certified")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
    builder = builder.public_key(key.public_key()).not_valid_before(now - day).not_valid_after(now + day)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    for end, form in (("pem", Encoding.PEM), ("der", Encoding.DER)):
        (folder / f"cert.{end}").write_bytes(certificate.public_bytes(form))
        (folder / f"key.{end}").write_bytes(key.private_bytes(form, PrivateFormat.PKCS8, NoEncryption()))
    return folder


@pytest.fixture(scope="module")
def echo() -> Path:
    """The program of `crates/quinn/examples/echo.rs`."""
    return example("echo")


@dataclass(frozen=True)
class Met:
    """What came of a connection: in the client's words, in the path's, and in the log of aioquic's end."""

    summary: dict[str, Any]
    path: dict[str, Any]
    logged: dict[str, Any]


# Of our side either role and one controller: every other fills a path in memory over quinn (crate live's tests).
@pytest.mark.parametrize(
    ("client", "server"),
    [("cubic", "aioquic"), pytest.param("aioquic", "cubic", marks=pytest.mark.long)],
)
def test_an_echo_crosses_a_path(client: str, server: str, files: Path, echo: Path, tmp_path: Path) -> None:
    """Datagrams go first, alone; then a stream fills both ways: 10 Mbit/s, 40 ms round trip, queues of 60 packets."""
    (tmp_path / "link.toml").write_text(LINK)
    log = tmp_path / "aioquic.qlog"
    if server == "aioquic":
        far = f"exec {AIOQUIC} serve 0.0.0.0 {PORT} {files}/cert.pem {files}/key.pem {log}"
        wait = f"until [ -e {log} ]; do sleep 0.05; done;"
    else:
        far = f"exec {echo} serve 0.0.0.0:{PORT} {server} {files}/cert.der {files}/key.der"
        wait = ""
    if client == "aioquic":
        near = f"exec {AIOQUIC} $PACELINE_PEER {PORT} {files}/cert.pem {SIZE} {log}"
    else:
        near = f"exec {echo} $PACELINE_PEER:{PORT} {client} {files}/cert.der {SIZE}"
    words = ("--ipv4", "--far", far, str(tmp_path / "link.toml"), "--", "sh", "-c", wait + near)

    def measure() -> tuple[Met, float]:
        log.unlink(missing_ok=True)
        said, path = measured(*words)
        (logged,) = paceline.qlog(log).flows.iter_rows(named=True)
        return Met(json.loads(said), path, logged), steal(path)

    def check(met: Met) -> None:
        summary = met.summary
        forward, backward = direction(met.path, "forward"), direction(met.path, "backward")
        assert summary["same"] == SIZE, "all bytes came back as they went"
        assert summary["datagrams"] == 50, "nothing else was on the path"
        # 40 ms, and twice a packet of a good 1000 bytes
        assert 0.0416 < summary["rtt_min_s"] < 0.046
        assert met.logged["rtt_min_s"] == pytest.approx(0.042, abs=0.002)
        assert met.logged["bytes_delivered"] == SIZE + 50_000, "in the direction of aioquic's end"
        # at best 2.5 s, and slow start
        assert 2.4 < summary["seconds"] < 4
        if client == "aioquic":
            return
        # what the end of ours counts is what the path has seen: all drops are losses, and all losses were dropped
        assert summary["sent"] == forward["entered"]
        assert 0 <= backward["delivered"] - summary["received"] <= 2, "what came after the end"
        assert summary["lost"] == forward["drops"]["overflow"] > 0
        assert 0.04 < summary["srtt_s"] < 0.12

    conclusive(measure, check)
