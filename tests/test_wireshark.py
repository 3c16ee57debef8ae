"""The Wireshark dissector of TFRC over UDP, run in tshark over datagrams that the codec wrote."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tshark
from built import example
from needs import require
from tshark import fields

RECORD_HEADER, IP_UDP = 16, 28
NAMES = {
    "ecn": "flags.ecn",
    "several": "flags.several",
    "framed": "flags.frame",
    "last": "flags.last",
    "syn": "flags.syn",
    "push": "flags.push",
    "cwr": "flags.cwr",
    "ece": "flags.ece",
    "segment_ece": "flags.segment_ece",
    "ack_cwr": "flags.ack_cwr",
    "ae": "flags.ae",
    "windowed": "flags.window",
    "blocks": "flags.blocks",
}
"""Fields whose name in the dissector is not that in the capture's listing."""


def dissect(capture: Path) -> list[dict[str, Any]]:
    """tshark's view of each packet."""
    printed = tshark.tshark(capture, "-T", "json", "--no-duplicate-keys")
    return [packet["_source"]["layers"] for packet in json.loads(printed)]


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, float]]]:
    """A capture of the samples and of random messages, and what each holds."""
    folder = tmp_path_factory.mktemp("capture")
    capture, listing = folder / "tfrc.pcap", folder / "tfrc.jsonl"
    subprocess.run([example("tfrc_capture"), capture, listing], check=True)
    return capture, [json.loads(line) for line in listing.read_text().splitlines()]


def field(layer: dict[str, Any], name: str) -> str:
    """A field of the dissector, wherever it stands in the tree; the first, where there are several."""
    for key, value in layer.items():
        if key == f"paceline_tfrc.{name}" and not isinstance(value, dict):
            return str(value[0] if isinstance(value, list) else value)
        if isinstance(value, dict) and (found := field(value, name)):
            return found
    return ""


def test_every_field_is_what_the_codec_wrote(captured: tuple[Path, list[dict[str, float]]]) -> None:
    require("tshark")
    capture, expected = captured
    packets = dissect(capture)
    assert len(packets) == len(expected) > 300
    assert {e["type"] for e in expected} == set(range(1, 12))
    for number, (layers, wanted) in enumerate(zip(packets, expected, strict=True), start=1):
        layer = layers["paceline_tfrc"]
        assert "_ws.expert" not in json.dumps(layer), f"packet {number} was called malformed"
        assert (field(layer, "magic"), field(layer, "version")) == ("0x5054", "1")
        for name, value in wanted.items():
            found = field(layer, NAMES.get(name, name))
            assert found, f"packet {number} has no {name}"
            if isinstance(value, float):
                assert float(found) == pytest.approx(value, rel=1e-12), f"packet {number}: {name}"
            else:
                assert int(found, 0) == value, f"packet {number}: {name}"
        shown = {key for key in _names(layer) if key not in ("magic", "version", "flags", "reserved")}
        assert shown == {NAMES.get(name, name) for name in wanted}, f"packet {number}"


def _names(layer: dict[str, Any]) -> set[str]:
    found = set()
    for key, value in layer.items():
        if isinstance(value, dict):
            found |= _names(value)
        elif key.startswith("paceline_tfrc."):
            found.add(key.removeprefix("paceline_tfrc."))
    return found


def records(capture: Path) -> tuple[bytes, list[bytearray]]:
    """The capture's head, and its records."""
    data = capture.read_bytes()
    found, at = [], 24
    while at < len(data):
        length = RECORD_HEADER + struct.unpack_from("<I", data, at + 8)[0]
        found.append(bytearray(data[at : at + length]))
        at += length
    return data[:24], found


@pytest.mark.parametrize(
    ("kind", "offset", "bytes_"),
    [
        (1, 3, b"\x02"),
        (5, 3, b"\x01"),
        (5, 3, b"\x08"),
        (5, 3, b"\x10"),
        (6, 3, b"\x04"),
        (2, 3, b"\x02"),
        (1, 19, b"\x01"),
        (4, 18, b"\x01"),
        (5, 2, b"\x1c"),
        (7, 3, b"\x01"),
        (7, 8, b"\xff\xff\xff\xff"),
        (8, 8, b"\xff\xff\xff\xff"),
        (8, 20, b"\xff\xff\xff\xff"),
        (8, 24, b"\xff\xff\xff\xff"),
        (9, 3, b"\x01"),
        (9, 8, b"\xff\xff\xff\xff"),
        (10, 3, b"\x80"),
        (10, 3, b"\x01"),
        (11, 3, b"\x04"),
        (6, 28, struct.pack(">d", float("nan"))),
        (6, 28, struct.pack(">d", float("inf"))),
        (6, 28, struct.pack(">d", -0.0)),
        (6, 36, struct.pack(">d", 1.5)),
        (6, 36, struct.pack(">d", float("nan"))),
    ],
)
def test_what_the_codec_refuses_is_called_malformed(
    captured: tuple[Path, list[dict[str, float]]], tmp_path: Path, kind: int, offset: int, bytes_: bytes
) -> None:
    require("tshark")
    capture, expected = captured
    head, all_records = records(capture)
    record = all_records[next(i for i, e in enumerate(expected) if e["type"] == kind)]
    start = RECORD_HEADER + IP_UDP + offset
    record[start : start + len(bytes_)] = bytes_
    spoilt = tmp_path / "spoilt.pcap"
    spoilt.write_bytes(head + record)
    (layers,) = dissect(spoilt)
    assert "paceline_tfrc.malformed" in json.dumps(layers["paceline_tfrc"])


def test_other_datagrams_are_left_alone(
    captured: tuple[Path, list[dict[str, float]]], tmp_path: Path
) -> None:
    require("tshark")
    head, all_records = records(captured[0])
    for offset, byte in ((0, 0x51), (2, 0x25)):
        record = bytearray(all_records[0])
        record[RECORD_HEADER + IP_UDP + offset] = byte
        other = tmp_path / "other.pcap"
        other.write_bytes(head + record)
        (layers,) = dissect(other)
        assert "paceline_tfrc" not in layers


def test_rtp_and_rtcp(tmp_path: Path) -> None:
    """What the codec writes, as Wireshark reads it: every field of a compound packet with everything in it."""
    require("tshark")
    capture = tmp_path / "rtcp.pcap"
    subprocess.run([example("rtcp_capture"), capture], check=True)
    assert (
        fields(
            capture,
            "_ws.malformed || (_ws.expert && ip.checksum.status != 0)",
            "frame.number",
            "_ws.expert.message",
        )
        == []
    )
    lines = [
        line
        for line in tshark.tshark(capture, "-q", "-z", "rtp,streams").splitlines()
        if "0x00000002" in line
    ]
    (stream,) = lines
    assert " 98     2 (2.0%)" in stream, "packets and losses of data 1 to 100 without 7 and 8"
    header = fields(capture, "rtp.seq == 20", "rtp.ssrc", "rtp.p_type", "rtp.marker", "rtp.timestamp")
    assert header[0][:2] == ["0x00000002", "96"]
    assert header[0][2] in ("1", "True")
    assert header[0][3] == "18000"
    expected = {
        "pt": "200,202,207,204,204,204,205,205,203",
        "senderssrc": "0x00000002,0x00000002,0x00000002,0x00000002",
        "mediassrc": "0x00000003,0x00000003",
        "timestamp.ntp.msw": "2208988801",
        "timestamp.ntp.lsw": "2147483648",
        "timestamp.rtp": "5",
        "sender.packetcount": "6",
        "sender.octetcount": "7",
        "ssrc.fraction": "64",
        "ssrc.cum_nr": "-2",
        "ssrc.ext_high": "65543",
        "ssrc.jitter": "9",
        "ssrc.lsr": "3070566400",
        "ssrc.dlsr": "344064",
        "sdes.text": "a@host,end",
        "app.name": "PCLN,PCLN,PCLN",
        "app.subtype": "1,2,3",
        "app.data": "fffe000a,000000030000000000989680,000000030083126e",
        "rtpfb.fmt": "11,8",
        "fci": "00110003e0800000e08000007e818000,00010007000003e800000002001e000400050006",
        "xr.bt": "13",
        "xr.bl": "5",
        "length_check": "1",
    }
    (row,) = fields(capture, "rtcp.pt == 200", *(f"rtcp.{name}" for name in expected))
    assert ["1" if value == "True" else value for value in row] == list(expected.values())
    # RFC 8285's one-byte elements, from packet 51 on
    assert fields(capture, "rtp.seq == 50", "rtp.ext.profile") == [[""]]
    extension = fields(capture, "rtp.seq == 60", *(f"rtp.ext.{name}" for name in ("profile", "len")))
    assert extension == [["0xbede", "1"]]
    element = fields(capture, "rtp.seq == 60", *(f"rtp.ext.rfc5285.{name}" for name in ("id", "len", "data")))
    assert element == [["1", "2", "0018"]], "65500 on, modulo 2^16"
    deltas = [*range(20), 300, -2, 0, 1, 2, 0, 1]
    expected = {
        "pt": "205",
        "senderssrc": "0x00000003",
        "mediassrc": "0x00000002",
        "rtpfb.fmt": "15",
        "rtpfb.transportcc.baseseq": "65530",
        "rtpfb.transportcc.statuscount": "30",
        "rtpfb.transportcc.reftime": "66051",
        "rtpfb.transportcc.pktcount": "200",
        "rtpfb.transportcc.pktchunk": "8212,51733,38912",
        "rtpfb.transportcc.recv_delta": ",".join(
            f"0x{delta & 0xFFFF:0{2 if 0 <= delta < 256 else 4}x}" for delta in deltas
        ),
        "rtpfb.transportcc.recv_delta.padding": "0x0000",
        "length_check": "1",
    }
    (row,) = fields(capture, "rtcp.rtpfb.fmt == 15", *(f"rtcp.{name}" for name in expected))
    assert ["1" if value == "True" else value for value in row] == list(expected.values())
