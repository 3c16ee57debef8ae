"""Writes a path file from measurements."""

from __future__ import annotations

import textwrap

from paceline.emulator.fitting.measurements import MAX_BPS, Measured
from paceline.errors import PacelineError
from paceline.quantities import figures

DELAY_S = 0.02
"""The one-way delay if none was measured."""
RATE_BPS = 100e6
"""The rate if none was measured: fast compared with most access links."""
QUEUE = "100 ms"
"""The queue's limit if none was measured, as time at the rate."""
PACKET = 1500


def path_file(found: Measured, name: str) -> str:
    """The TOML of a path; `name` is the recording's. Raises PacelineError for a network that no path supports."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in name)
    said = [f"Fitted to {shown}: {found.how}.", *found.notes]
    rate = found.rate_bps
    if rate is None:
        rate = max(RATE_BPS, 2 * found.min_rate_bps)
        said.append(f"Assumed: the rate ({figures(rate / 1e6, 6)} Mbit/s), which nothing here tells.")
    if not 1 <= rate <= MAX_BPS:
        raise PacelineError(f"a rate of {rate:g} bit/s is outside a path's range")
    if any(share and float(figures(share * 100, 4)) >= 100 for share in (found.loss, found.loss_back)):
        raise PacelineError("nearly everything was lost: a path that loses 100 % carries nothing")
    there, back = _delays(found, said)
    limit = _limit(found, rate, said)
    if found.loss is None:
        said.append("Assumed: nothing is lost but what finds the queue full.")
    said.append(
        "Assumed: the way back has the same rate and queue, and loses nothing unless it says so below."
    )
    lines = [
        f"# {line}" for sentence in said for line in textwrap.wrap(sentence, 118, break_on_hyphens=False)
    ]
    lines += ['name = "fitted"', "", "[link.bottleneck]"]
    if found.rates:
        steps = ",\n".join(
            f'    {{ at = "{at:.3f} s", rate = "{bps:.0f} bit/s" }}' for at, bps in found.rates
        )
        lines.append(f"rate_schedule = [\n{steps},\n]")
    else:
        lines.append(f'rate = "{figures(rate / 1e3, 4)} kbit/s"')
    lines += [
        f'delay = "{figures(there * 1e3, 4)} ms"',
        f'queue = {{ kind = "droptail", limit = "{limit}" }}',
    ]
    if found.loss:
        lines.append(f'loss = {{ kind = "uniform", rate = "{figures(found.loss * 100, 4)} %" }}')
    behind = [] if back == there else [f'delay = "{figures(back * 1e3, 4)} ms"']
    if found.loss_back:
        behind.append(f'loss = {{ kind = "uniform", rate = "{figures(found.loss_back * 100, 4)} %" }}')
    if behind:
        lines.append(f"backward = {{ {', '.join(behind)} }}")
    return "\n".join(lines) + "\n"


def _delays(found: Measured, said: list[str]) -> tuple[float, float]:
    if found.delays_s is not None:
        return found.delays_s
    if found.rtt_min_s is None:
        said.append(f"Assumed: the delay, {DELAY_S * 1e3:g} ms each way, which nothing here tells.")
        return DELAY_S, DELAY_S
    said.append(f"Assumed: each way takes half of the shortest round trip, {found.rtt_min_s * 1e3:.4g} ms.")
    return found.rtt_min_s / 2, found.rtt_min_s / 2


def _limit(found: Measured, rate: float, said: list[str]) -> str:
    if found.rtt_max_s is None or found.rtt_min_s is None:
        said.append(f"Assumed: the queue takes {QUEUE} at the rate; no full one was seen.")
        return QUEUE
    wait = found.rtt_max_s - found.rtt_min_s
    said.append(
        f"The queue is what the longest round trips ({found.rtt_max_s * 1e3:.4g} ms) say: {wait * 1e3:.4g} ms."
    )
    size = max(PACKET, round(wait * rate / 8))
    return f"{size} B"
