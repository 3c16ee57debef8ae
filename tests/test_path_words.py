"""What `paceline path` says of a path, of reports made up."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("paceline._core")

from paceline.cli import path


def report(lag: dict[str, float], *least: float | None) -> dict[str, Any]:
    """A report with this lag and these least delays of its directions."""
    return {
        "far_status": None,
        "without": [],
        "lost_before": [0, 0],
        "host": {"steal_share": 0.0},
        "lag": {"count": 1000, "p50_s": 1e-6, "p99_s": 2e-6, **lag},
        "directions": [{"delay_min_s": delay} for delay in least],
    }


@pytest.mark.parametrize(
    ("p99_s", "least", "large"),
    [
        (3e-3, (0.02, 0.02), True),
        (1.9e-3, (0.02, 0.02), False),  # below a tenth of the delay
        (3e-3, (0.2, 0.02), True),  # of the shorter direction
        (3e-3, (0.02, None), True),  # nothing came back
        (0.9e-3, (0.001, 0.001), False),  # a tenth of little
        (1.1e-3, (0.0, 0.0), True),
        (1.1e-3, (None, None), True),
    ],
)
def test_a_large_lag_is_noted(p99_s: float, least: tuple[float | None, ...], large: bool) -> None:
    notes = path.notes(report({"p99_s": p99_s}, *least))
    assert len(notes) == large
    assert all("chrt -f 1" in note for note in notes)


def test_a_lag_of_most_packets_is_said_once() -> None:
    (note,) = path.notes(report({"p50_s": 2e-3, "p99_s": 9e-3}, 0.02, 0.02))
    assert "half of the packets" in note
    assert path.notes(report({"count": 0, "p99_s": 1.0}, None)) == []
