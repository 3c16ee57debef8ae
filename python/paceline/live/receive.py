"""`paceline.receive`: receives plain RTP from other programs, and gives feedback."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

from paceline import _core
from paceline.arguments import CALL, SECONDS, TEXT, checked
from paceline.errors import LiveError, PacelineError
from paceline.live import linux, rtp
from paceline.live.real_runs import kept, live_record, live_results
from paceline.live.send import View, attended
from paceline.results.results import Results
from paceline.results.store import claim

FEEDBACK = ("reports", "twcc", "rfc8888")
"""The kinds of feedback: RTP's reports, or also each packet's arrival."""


@checked(address=TEXT, feedback=TEXT, duration_s=SECONDS, view=CALL)
def receive(
    address: str,
    *,
    feedback: str | None = None,
    duration_s: float | None = None,
    out: str | Path | None = None,
    view: View | None = None,
) -> Results:
    """Receives RTP that other programs send to `address`, "rtp://:5004", and gives feedback.

    `feedback` is "reports" (RTP's own, one a second), "twcc" (transport-wide feedback; the address has the ID of the
    extension: "rtp://:5004?twcc=5") or "rfc8888"; default: "twcc" if the address has an ID, else "reports". The address
    may also have `localrtcpport`, on which RTCP arrives (default: the next port), and `rtcpport`, on which the sender
    receives it. The first host with two packets in sequence is the sender, and each of its ports gets separate reports;
    feedback is at most a twentieth of the received traffic. Each stream is a flow, with the recording `rate`. It ends
    when all streams have sent BYE or none has sent for 30 s, `duration_s` after the first packet, or on Ctrl-C; the
    result is what was measured by then. Raises LiveError, NeedsLinux, PacelineError, StorageError.
    """
    linux.needed("receiving from a network")
    where = rtp.Listening.parse(address)
    kind_named = feedback or ("reports" if where.transport_id is None else "twcc")
    if kind_named not in FEEDBACK:
        raise PacelineError(f"feedback {kind_named!r}: must be {', '.join(FEEDBACK[:-1])} or {FEEDBACK[-1]}")
    if kind_named == "twcc" and where.transport_id is None:
        raise PacelineError(f"twcc needs the ID of its extension in the address, as {address}?twcc=5")
    if duration_s is not None and not 0.1 <= duration_s <= 864_000:
        raise PacelineError(f"duration_s = {duration_s:g} s: must be 0.1 s to ten days")
    with claim(out, "live"):
        watch = _core.ListenWatch()
        kind = None if kind_named == "reports" else kind_named
        output, notes, interrupted = attended(lambda: _listen(where, kind, duration_s, watch), watch, view)
        more = {
            "address": address,
            "feedback": kind_named,
            "interrupted": interrupted,
            "notes": json.loads(notes),
        }
        results = live_results([live_record(output)], "live", f"RTP at {address}", more)
        kept(results, out)
        return results


def _listen(
    where: rtp.Listening, feedback: str | None, duration_s: float | None, watch: _core.ListenWatch
) -> tuple[_core.RunOutput, str]:
    """Listens at the address; without one, at all addresses (IPv6's socket takes IPv4 too; without IPv6, IPv4's)."""
    addresses = ["[::]", "0.0.0.0"]  # noqa: S104 (feedback is at most a twentieth of the received traffic)
    if where.host is not None:
        try:
            ip = ipaddress.ip_address(where.host)
        except ValueError:
            raise PacelineError(f"{where.host} is not an IP address of this host") from None
        addresses = [f"[{ip}]" if ip.version == 6 else str(ip)]
    for n, address in enumerate(addresses):
        try:
            return _core.receive(
                f"{address}:{where.port}",
                where.local_rtcp_port,
                watch,
                where.rtcp_port,
                feedback,
                where.transport_id or rtp.TRANSPORT_ID,
                duration_s,
            )
        except LiveError as error:
            if n + 1 == len(addresses) or "in use" in str(error):
                raise
    raise LiveError("there is no address to listen on")
