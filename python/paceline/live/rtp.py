"""Receivers and senders of plain RTP by their addresses: rtp://HOST:PORT."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from paceline import _core
from paceline.errors import PacelineError
from paceline.messages.argument_names import option

SCHEME = "rtp://"
PAYLOAD_TYPE = 96
"""The first dynamic payload type (RFC 3551 section 6)."""
TRANSPORT_ID = 1
"""The default ID of the extension with transport-wide numbers."""
INITIAL_RATE = 5.0
"""Packets a second before the first report: with 1500-byte packets slightly below the allowed rate."""

_KEYS = {
    "lda-plus": ("params.max_rate", "params.bottleneck"),
    "gcc": ("params.max_rate",),
    "nada": ("params.max_rate",),
    "ndtc": (),
    "scream": ("params.max_rate",),
    "scream-ericsson": ("params.max_rate",),
    "scream-libwebrtc": ("params.max_rate",),
}
"""The keys that limit the rate of each controller for plain RTP; for NDTC the session's bandwidth does."""
_OPTIONS = {"rtcpport": "rtcp_port", "localrtpport": "local_rtp_port", "localrtcpport": "local_rtcp_port"}
"""An address' options, by FFmpeg's names."""


def _mistaken(address: str, known: Iterable[str], what: str) -> PacelineError:
    options = "&".join(f"{name}={'ID' if name == 'twcc' else 'N'}" for name in sorted(known))
    return PacelineError(f"{address} is not {what}, with ?{options} after it if needed")


def _read(address: str, known: set[str], what: str) -> tuple[str | None, int, dict[str, int]]:
    """Host, port and numbers of an address; the host may be missing. Raises PacelineError."""
    mistaken = _mistaken(address, known, what)
    try:
        parts = urlsplit(address)
        more = parse_qsl(parts.query, strict_parsing=True) if parts.query else []
        numbers = {name: int(value) for name, value in more}
        host, port = parts.hostname, parts.port
    except ValueError:
        raise mistaken from None
    is_more = "#" in address or len(more) > len(numbers) or parts.path or parts.username is not None
    if is_more or not port or not known.issuperset(numbers) or not address.startswith(SCHEME):
        raise mistaken
    return host, port, numbers


def _check(address: str, ports: Iterable[int], numbers: Mapping[str, int]) -> None:
    """Raises PacelineError for an invalid port or extension ID."""
    for number in ports:
        if not 1 <= number <= 65535:
            raise PacelineError(f"{address}: port {number} must be 1 to 65535")
    if not 1 <= numbers.get("twcc", 1) <= 14:
        raise PacelineError(f"twcc={numbers['twcc']}: the ID of an extension must be 1 to 14 (RFC 8285)")


@dataclass(frozen=True, slots=True)
class Listening:
    """The address on which plain RTP arrives, and options about its sender."""

    host: str | None
    """An address of this host; None: all."""
    port: int
    local_rtcp_port: int
    rtcp_port: int | None
    """The sender's RTCP port; None: the one that its RTCP comes from."""
    transport_id: int | None
    """The ID of the extension with transport-wide numbers."""

    @staticmethod
    def parse(address: str) -> Listening:
        """Reads rtp://[HOST]:PORT, with optional ?twcc=ID&rtcpport=N&localrtcpport=N. Raises PacelineError."""
        host, port, numbers = _read(address, {"rtcpport", "localrtcpport", "twcc"}, "rtp://:PORT")
        local, peer = numbers.get("localrtcpport", port + 1), numbers.get("rtcpport")
        _check(address, [local, *([] if peer is None else [peer])], numbers)
        if local == port:
            raise PacelineError(f"{address}: RTCP needs a separate port here, as localrtcpport={port + 1}")
        return Listening(host, port, local, peer, numbers.get("twcc"))


@dataclass(frozen=True, slots=True)
class Receiver:
    """A receiver of plain RTP, and the ports of both sides: by default RTP has one, and RTCP the next."""

    host: str
    rtp_port: int
    rtcp_port: int
    local_rtp_port: int
    local_rtcp_port: int
    payload_type: int = PAYLOAD_TYPE
    transport_id: int | None = None
    """For a receiver with transport-wide feedback, the ID of the extension whose numbers it reads."""

    @staticmethod
    def parse(address: str) -> Receiver:
        """Reads rtp://HOST:PORT, with optional ?rtcpport=N&localrtpport=N&localrtcpport=N&pt=N&twcc=ID. Local ports
        default to those of the other side. Raises PacelineError."""
        host, port, numbers = _read(address, {*_OPTIONS, "pt", "twcc"}, "rtp://HOST:PORT")
        if not host:
            raise _mistaken(address, {*_OPTIONS, "pt", "twcc"}, "rtp://HOST:PORT")
        local = numbers.get("localrtpport", port)
        ports = {
            "rtp_port": port,
            "rtcp_port": port + 1,
            "local_rtp_port": local,
            "local_rtcp_port": local + 1,
            **{_OPTIONS[name]: value for name, value in numbers.items() if name in _OPTIONS},
        }
        _check(address, [*ports.values()], numbers)
        pt = _payload_type(numbers.get("pt", PAYLOAD_TYPE))
        return Receiver(host, payload_type=pt, transport_id=numbers.get("twcc"), **ports)

    def ports(self) -> tuple[str, int, int, int, int, int, int]:
        """The tuple that the core takes."""
        return (
            self.host,
            self.rtp_port,
            self.rtcp_port,
            self.local_rtp_port,
            self.local_rtcp_port,
            self.payload_type,
            TRANSPORT_ID if self.transport_id is None else self.transport_id,
        )


def _payload_type(number: int) -> int:
    if not 0 <= number <= 127:
        raise PacelineError(f"pt={number}: a payload type must be 0 to 127")
    return number


def limits(
    receiver: Receiver,
    controller: str,
    max_rate: str | None,
    app: str | None,
    changes: Mapping[str, Any] | None,
    *,
    plain: bool,
) -> dict[str, Any]:
    """The keys of a flow to a receiver that grants no rate and measures no bottleneck: `max_rate` is the maximum rate
    and LDA+'s R; the address determines the feedback. Keys of `changes` take precedence. The core refuses controllers
    that do not support it. Raises PacelineError, also if the request is not `plain`: such a receiver takes one flow
    from here, without a key."""
    if not plain or controller.startswith("kernel:"):
        raise PacelineError(
            "a receiver of plain RTP takes one flow of one Paceline controller, from here, without a key; its "
            "port is in rtp://HOST:PORT"
        )
    if controller not in _KEYS:
        return dict(changes or {})
    if max_rate is None:
        raise PacelineError(
            "a receiver of plain RTP grants no rate: limit the flow's rate, as "
            f"{option('max_rate', '2Mbit/s')}"
        )
    try:
        rate = _core.quantity(max_rate, "bit/s")
    except ValueError as error:
        raise PacelineError(f"{option('max_rate', max_rate)}: {error}") from None
    if not 1e3 <= rate <= 1e12:
        raise PacelineError(f"{option('max_rate', max_rate)}: must be 1 kbit/s to 1000 Gbit/s")
    own: dict[str, Any] = dict.fromkeys(_KEYS[controller], rate)
    if controller == "lda-plus":
        own["params.initial_rate"] = INITIAL_RATE
    else:
        own["rtp.bandwidth"] = f"{rate:.0f} bit/s"
        if app == "encoder":
            own["app.max_rate"] = f"{rate:.0f} bit/s"
        if receiver.transport_id is not None:
            own["rtp.feedback"] = "twcc"
    return {**own, **(changes or {})}
