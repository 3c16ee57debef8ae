"""Addresses as users write them: whatever the text is, it is one or there are words about it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paceline.errors import PacelineError
from paceline.live.rtp import Receiver
from paceline.live.send import place

PARTS = st.sampled_from(
    [
        "rtp://",
        "h",
        "[",
        "]",
        "::1",
        ":",
        "5004",
        "@",
        "/",
        "?",
        "&",
        "=",
        "%",
        "#",
        "pt",
        "rtcpport",
        "localrtpport",
        "0",
        "-1",
        "65536",
        "99999999999",
    ]
)
TEXT = st.one_of(st.text(max_size=30), st.lists(PARTS, max_size=12).map("".join))


@settings(max_examples=1000, deadline=None)
@given(TEXT)
@example("h:5004?pt=1&pt=2")
@example("h:5004#pt=97")
@example("[::1%lo]:5004?pt=\u0663")
def test_a_receiver_of_plain_rtp(text: str) -> None:
    with contextlib.suppress(PacelineError):
        receiver = Receiver.parse(f"rtp://{text}")
        host, *ports, payload = receiver.ports()
        assert host
        assert not set(host) & set("/?#@")
        assert all(1 <= port <= 65_535 for port in ports)
        assert 0 <= payload <= 127
        # nothing that was said is passed over
        assert "#" not in text
        assert all(text.count(f"{option}=") <= 1 for option in ("pt", "localrtpport"))


@settings(max_examples=1000, deadline=None)
@given(TEXT, st.sampled_from([0, 1, 4711, 70_000]))
def test_a_server(text: str, port: int) -> None:
    with contextlib.suppress(PacelineError):
        host, number = place(text, port)
        assert host
        assert 1 <= number <= 65_535


def test_addresses_of_receivers_of_rtp() -> None:
    assert Receiver.parse("rtp://there.example:5004") == Receiver("there.example", 5004, 5005, 5004, 5005)
    assert Receiver.parse("rtp://[::1]:6000?localrtpport=7000") == Receiver("::1", 6000, 6001, 7000, 7001)
    named = "rtp://10.0.0.1:6000?rtcpport=6010&localrtcpport=7010&pt=33"
    assert Receiver.parse(named) == Receiver("10.0.0.1", 6000, 6010, 6000, 7010, 33)


@pytest.mark.parametrize(
    "address",
    [
        "rtp://host",
        "rtp://:5004",
        "rtp://host:5004/path",
        "rtp://host:port",
        "rtp://host:5004?what=1",
        "rtp://host:5004?rtcpport=x",
        "rtp://me@host:5004",
        "rtp://host:5004?rtcpport=0",
        "rtp://host:65535",
        "rtp://host:5004?pt=200",
        "rtp://host:5004?twcc=15",
        "rtp://[::1:5004",
    ],
)
def test_what_is_no_address_of_a_receiver_of_rtp_is_said(address: str) -> None:
    with pytest.raises(PacelineError, match=r"rtp://HOST:PORT|must be 1 to 65535|payload type|1 to 14"):
        Receiver.parse(address)
