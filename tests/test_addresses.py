"""Addresses as users write them: whatever the text is, it is one or there are words about it."""

from __future__ import annotations

import contextlib

from hypothesis import example, given, settings
from hypothesis import strategies as st

from paceline.errors import PacelineError
from paceline.rtp import Receiver
from paceline.sending import place

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
