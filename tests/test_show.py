"""Quantities and tables for people."""

from __future__ import annotations

import pytest

from paceline.cli.show import quantity


@pytest.mark.parametrize(
    ("measure", "mean", "half_width", "text"),
    [
        ("goodput_bps", 3_948_000.0, 120_000.0, "3.95 ± 0.12 Mbit/s"),
        ("goodput_bps", 3_948_000.0, None, "3.95 Mbit/s"),
        ("goodput_bps", 999.0, None, "999 bit/s"),
        ("goodput_bps", 0.0, None, "0 bit/s"),
        ("goodput_bps", 0.0, 0.0, "0 ± 0 bit/s"),
        ("goodput_bps", 1.5e9, 2e6, "1.5000 ± 0.0020 Gbit/s"),
        ("rtt_mean_s", 0.0543, None, "54.3 ms"),
        ("rtt_mean_s", 0.0001, 0.00002, "100 ± 20 µs"),
        ("fill_s", 12.0, None, "12 s"),
        ("fill_s", None, None, "-"),
        ("late_share", 0.081, 0.012, "8.1 ± 1.2 %"),
        ("loss_rate", 0.0, 0.0, "0 ± 0 %"),
        ("mean_packets", 28.286, None, "28.3"),
        ("mean_packets", 1e-6, None, "< 0.0001"),
        ("mean_packets", 100.0, 250.0, "100 ± 250"),
        ("jain", 0.9954, 0.0057, "0.9954 ± 0.0057"),
        ("jain", 0.98, 1e-6, "0.9800 ± < 0.0001"),
        ("jain", 1.0, None, "1"),
        ("packets_sent", 23_875.0, None, "23875"),
        ("packets_sent", 23_875.4, 2_055.2, "23875 ± 2055"),
        ("difference_bps", -967_000.0, None, "-967 kbit/s"),
        ("mean_bytes", 42_417.0, None, "42.4 kB"),
        ("timeouts", 9.999, None, "10.00"),
    ],
)
def test_quantities_have_units_and_sensible_digits(
    measure: str, mean: float | None, half_width: float | None, text: str
) -> None:
    assert quantity(measure, mean, half_width) == text
