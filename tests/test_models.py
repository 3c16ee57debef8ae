"""Throughput models from Python and from the command line, against the formulas written out with NumPy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paceline
from paceline import _core, models
from paceline.cli import main

P = np.geomspace(1e-6, 1.0, 40)
RTT = np.array([[0.01], [0.1], [0.5]])

Done = tuple[int, str, str]
Command = Callable[..., Done]


def padhye(p: np.ndarray, rtt: np.ndarray, rto: np.ndarray, b: float, w_max: float) -> Any:
    """PFTK in full, at p < 1, as it is printed."""
    window = (2 + b) / (3 * b) + np.sqrt(8 * (1 - p) / (3 * b * p) + ((2 + b) / (3 * b)) ** 2)
    backoff = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6

    def q(w: Any) -> Any:
        three = (1 - p) ** 3
        share = (1 - three) * (1 + three * (1 - (1 - p) ** (w - 3))) / (1 - (1 - p) ** w)
        return np.where(w <= 3, 1, np.minimum(1, share))

    def rate(w: Any, rounds: Any) -> Any:
        sent = (1 - p) / p + w + q(w) / (1 - p)
        return sent / (rtt * rounds + q(w) * rto * backoff / (1 - p))

    free = rate(window, b / 2 * window + 1)
    bound = rate(np.full_like(window, w_max), b / 8 * w_max + (1 - p) / (p * w_max) + 2)
    return np.where(window < w_max, free, bound)


@pytest.mark.parametrize(("b", "w_max"), [(1, 1e9), (2, 1e9), (2, 20.0)])
def test_reno_is_the_printed_formula(b: float, w_max: float) -> None:
    p = P[P < 1]
    expected = padhye(p, RTT, 5 * RTT, b, w_max)
    found = models.reno(p, RTT, rto_s=5 * RTT, packets_per_ack=b, w_max_packets=w_max)
    assert found.shape == (3, p.size)
    # 1 - (1-p)^w loses digits in the formula as printed
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_approximations_are_the_printed_formulas() -> None:
    b, w_max, g = 2, 30, 0.8
    roots = RTT * np.sqrt(2 * b * P / 3)
    timeouts = 4 * RTT * np.minimum(1, 3 * np.sqrt(3 * b * P / 8)) * P * (1 + 32 * P**2)
    reno = np.minimum(w_max / RTT, 1 / (roots + timeouts))
    found = models.reno_approximate(P, RTT, packets_per_ack=b, w_max_packets=w_max)
    np.testing.assert_allclose(found, reno, rtol=1e-12)

    roots = RTT * np.sqrt(2 * b * (1 - g) * P / (1 + g))
    timeouts = 4 * RTT * np.minimum(1, 3 * np.sqrt(b * (1 - g**2) * P / 2)) * P * (1 + 32 * P**2)
    veno = np.minimum(w_max / RTT, 1 / (roots + timeouts))
    found = models.veno_approximate(P, RTT, g, packets_per_ack=b, w_max_packets=w_max)
    np.testing.assert_allclose(found, veno, rtol=1e-12)


def test_tfrc_is_that_of_the_rfc() -> None:
    plain = 1000 / (RTT * np.sqrt(2 * P / 3) + 4 * RTT * 3 * np.sqrt(3 * P / 8) * P * (1 + 32 * P**2))
    np.testing.assert_allclose(models.tfrc(P, RTT, segment_bytes=1000), plain, rtol=1e-12)
    np.testing.assert_allclose(models.tfrc_veno(P, RTT, 0.5, segment_bytes=1000), plain, rtol=1e-12)
    share = np.minimum(1, 3 * np.sqrt(3 * P / 8))
    ns2 = 1000 / (RTT * np.sqrt(2 * P / 3) + 4 * RTT * share * P * (1 + 32 * P**2))
    found = models.tfrc(P, RTT, segment_bytes=1000, timeout_term="at-most-one")
    np.testing.assert_allclose(found, ns2, rtol=1e-12)


def test_veno_with_half_is_reno() -> None:
    np.testing.assert_allclose(models.veno(P, RTT, 0.5), models.reno(P, RTT), rtol=1e-12)
    # equation (15) for small p, and equation (14) through E[W]
    small = models.veno_duplicates(1e-14, 0.1, 0.8)
    np.testing.assert_allclose(small, models.veno_square_root(1e-14, 0.1, 0.8), rtol=1e-6)
    window = models.veno_window(P, 0.8)
    expected = ((1 - P) / P + window) / (0.1 * (0.2 * window + 1))
    np.testing.assert_allclose(models.veno_duplicates(P, 0.1, 0.8), expected, rtol=1e-12)


def test_gamma_lies_between_the_thetas() -> None:
    rtt = np.array([0.1, 0.12, 0.2, 10.0])
    found = models.gamma(rtt, 0.1, 40)
    np.testing.assert_allclose(found, [0.8, 0.5 + 0.3 * 3 * 0.12 / (0.02 * 40), 0.545, 0.5 + 0.3 * 30 / 396])
    assert models.gamma(0.1, 0.1, np.inf, theta1=0.95) == 0.95
    assert models.gamma(0.2, 0.1, np.inf) == 0.5


def test_vegas_shares_by_backlogs() -> None:
    near, far = (models.vegas(1250, rtt, own, 6) for rtt, own in ((0.02, 2), (0.2, 4)))
    assert float(near.rate_packets_per_s + far.rate_packets_per_s) == pytest.approx(1250)
    np.testing.assert_allclose(far.window_packets, far.rate_packets_per_s * (0.2 + far.queueing_delay_s))


@given(
    p=st.floats(-12, 0).map(lambda e: 10**e),
    rtt=st.floats(1e-4, 10),
    gamma=st.floats(0, 0.99),
    term=st.sampled_from(["plain", "at-most-one"]),
)
def test_the_loss_rate_comes_back(p: float, rtt: float, gamma: float, term: models.TimeoutTerm) -> None:
    rate = models.tfrc_veno(p, rtt, gamma, timeout_term=term)
    assert models.tfrc_loss_rate(rate, rtt, gamma, timeout_term=term) == pytest.approx(p, rel=1e-9)


def test_broadcasting() -> None:
    single = models.tfrc(0.01, 0.1)
    assert single.shape == ()
    assert f"{single:.1f}" == f"{float(single):.1f}"
    assert models.tfrc([], 0.1).shape == (0,)
    assert models.veno(np.ones((4, 1, 1)) / 10, [0.1, 0.2], [[0.5], [0.6], [0.7]]).shape == (4, 3, 2)
    grid = models.reno(P[None, ::2], RTT)  # neither contiguous nor of one shape
    assert grid[2, 3] == models.reno(P[6], 0.5)
    assert models.reno(np.int32(1), np.float32(0.5)) == models.reno(1.0, 0.5)
    whole = models.tfrc(P, 0.1)
    whole[0] = 0.0  # the caller's own
    with pytest.raises(ValueError, match="broadcast"):
        models.tfrc([0.1, 0.2], [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: models.reno(0, 0.1), r"p = 0: it must be in \(0, 1\]"),
        (lambda: models.reno([0.1, 1.5], 0.1), r"p = 1.5: it must be in \(0, 1\]"),
        (lambda: models.reno(np.nan, 0.1), "p = NaN"),
        (lambda: models.tfrc(0.1, 0), r"rtt_s = 0: it must be in \[1e-15, 1e15\] s"),
        (lambda: models.tfrc(0.1, 0.1, rto_s=-1), "rto_s = -1"),
        (lambda: models.tfrc(0.1, 0.1, segment_bytes=0), "segment_bytes = 0"),
        (lambda: models.veno(0.1, 0.1, 1), r"gamma = 1: it must be in \[0, 1\)"),
        (
            lambda: models.reno(0.1, 0.1, packets_per_ack=0.5),
            r"packets_per_ack = 0.5: it must be in \[1, 1e6\]",
        ),
        (lambda: models.reno(0.1, 0.1, w_max_packets=0), "w_max_packets = 0: it must be at least 1 packet"),
        (lambda: models.gamma(0.1, 0.2, 10), "base_rtt_s = 0.2: it must be at most 0.1"),
        (lambda: models.gamma(0.1, 0.1, 10, theta1=0.4), "theta1 = 0.4: it must be at least 0.5"),
        (lambda: models.gamma(0.1, 0.1, 10, beta_packets=0), "beta_packets = 0"),
        (lambda: models.tfrc_loss_rate(1e-3, 0.1), "rate_bytes_per_s = 0.001: it must be at least"),
        (lambda: models.vegas(1250, 0.1, 3, 2), "total_backlog_packets = 2: it must be at least 3"),
    ],
)
def test_mistakes_name_argument_value_and_range(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_the_core_refuses_what_is_no_model() -> None:
    with pytest.raises(ValueError, match="there is no model `x`"):
        _core.model("x", [])
    with pytest.raises(ValueError, match="wants 5 columns"):
        _core.model("reno", [b""])
    with pytest.raises(ValueError, match="has no inverse"):
        _core.model("reno", [], inverse=True)
    with pytest.raises(ValueError, match="unit = furlong"):
        _core.quantity("1 furlong", "furlong")


def test_every_model_has_a_function_and_a_place_on_the_page() -> None:
    page = (Path(__file__).resolve().parent.parent / "docs" / "models.md").read_text()
    for entry in json.loads(_core.models()):
        name = entry["name"]
        assert hasattr(models, name.removesuffix("-ns2").replace("-", "_")), name
        assert f"`{name}`" in page, f"docs/models.md does not name {name}"


LONG_PIPE = """
duration = "220 s"
warmup = "20 s"
[link.bottleneck]
rate = "200 Mbit/s"
delay = "50 ms"
queue = {{ limit = "2000 packets" }}
loss = {{ kind = "uniform", rate = {p} }}
[flow.a]
cc = "{cc}"
min_rto = "200 ms"
"""


@pytest.mark.parametrize(("cc", "gamma"), [("newreno", 0.5), ("veno", 0.8)])
@pytest.mark.parametrize("p", [0.001, 0.003])
def test_the_simulator_does_what_the_models_say(cc: str, gamma: float, p: float) -> None:
    """Where nothing is lost but by chance, and queues stay short."""
    runs = 4
    flows = paceline.run(paceline.parse(LONG_PIPE.format(p=p, cc=cc)), runs=runs).flows
    rate = flows["packets_sent"].sum() / (200 * runs)
    # The window grows by what is acknowledged, whatever the number of ACKs: b is 1.
    model = models.veno(p, flows["rtt_mean_s"].to_numpy().mean(), gamma, rto_s=0.4)
    assert rate == pytest.approx(float(model), rel=0.06)


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in this process: exit code, stdout, stderr."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: object) -> Done:
        monkeypatch.setattr("sys.argv", ["paceline", "model", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return int(end.value.code or 0), out, err

    return call


def test_the_command_prints_a_table(here: Command) -> None:
    code, out, err = here("tfrc", "--p", "0.001,1%", "--rtt", "50ms", "--segment", "1000B")
    assert (code, err) == (0, "")
    assert "RFC 5348" in out
    assert "RTT 50 ms, segment 1000 B" in out
    assert re.search(r"0\.001 .*767\.7 .*6\.14 Mbit/s", out)
    assert re.search(r"0\.01 .*224\.7 .*1\.80 Mbit/s", out)


def test_the_command_prints_json(here: Command) -> None:
    code, out, _ = here("reno", "--p", "0.001..0.1/3", "--rtt", "20ms,100ms", "--json")
    rows = json.loads(out)["rows"]
    assert code == 0
    assert [(round(r["p"], 9), r["rtt_s"]) for r in rows] == [
        (p, rtt) for p in (0.001, 0.01, 0.1) for rtt in (0.02, 0.1)
    ]
    for row in rows:
        expected = float(models.reno(row["p"], row["rtt_s"]))
        assert row["rate_packets_per_s"] == pytest.approx(expected)
        assert row["rate_bps"] == pytest.approx(expected * 1460 * 8)


def test_the_command_turns_tfrc_round(here: Command) -> None:
    _, out, _ = here("tfrc", "--rate", "1234.6 bit/s,1.2345678Mbit/s", "--rtt", "100ms", "--json")
    rates = [row["rate_bps"] for row in json.loads(out)["rows"]]
    assert rates == pytest.approx([1234.6, 1234567.8], rel=1e-12), "no whole bits a second"
    _, out, _ = here("tfrc", "--rate", "1Mbit/s", "--rtt", "50ms", "--json")
    (row,) = json.loads(out)["rows"]
    assert row["rate_bps"] == 1e6
    assert float(models.tfrc(row["p"], 0.05)) * 8 == pytest.approx(1e6)


def test_the_command_finds_gamma(here: Command) -> None:
    for name, theta1 in (("veno", 0.8), ("tfrc-veno", 0.95)):
        path = ("--rtt", "120ms", "--base-rtt", "100ms", "--w-max", "60")
        _, out, _ = here(name, "--p", "0.01", *path, "--json")
        (row,) = json.loads(out)["rows"]
        assert row["gamma"] == pytest.approx(float(models.gamma(0.12, 0.1, 60, theta1=theta1)))


def test_the_command_knows_vegas(here: Command) -> None:
    capacity = ("--capacity", "10Mbit/s", "--segment", "1000B")
    _, out, _ = here("vegas", *capacity, "--base-rtt", "50ms", "--backlog", 2, "--total-backlog", 8, "--json")
    (row,) = json.loads(out)["rows"]
    assert row["rate_bps"] == pytest.approx(2.5e6)
    assert row["queueing_delay_s"] == pytest.approx(8 / 1250)


def test_the_command_draws(here: Command, tmp_path: Path) -> None:
    target = tmp_path / "reno.svg"
    arguments = ("reno", "--p", "0.0001..0.1", "--rtt", "20ms,100ms", "--plot", target)
    code, out, _ = here(*arguments)
    assert (code, out.strip()) == (0, str(target))
    drawn = target.read_text()
    assert "rate (Mbit/s)" in drawn
    assert "RTT 100 ms" in drawn
    here(*arguments)
    assert target.read_text() == drawn, "the same figure has the same bytes"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["renoo", "--p", "0.1"], 'there is no model "renoo"'),
        ([], "which model?"),
        (["reno", "--p", "0.1"], "reno needs --rtt"),
        (["veno", "--p", "0.1", "--rtt", "1s"], "needs --base-rtt and --w-max (or --gamma"),
        (["tfrc", "--p", "2", "--rtt", "1s"], "--p = 2: it must be in (0, 1]"),
        (["tfrc", "--p", "1.0001", "--rtt", "1s"], "--p = 1.0001: it must be in (0, 1]"),
        (["tfrc", "--p", "x", "--rtt", "1s"], '--p: "x" is not a number'),
        (["tfrc", "--p", "0.1", "--rtt", "50"], "the unit is missing"),
        (["tfrc", "--p", "0.1", "--rtt", "1s", "--gamma", "0.5"], "tfrc does not take --gamma"),
        (["tfrc", "--p", "0.1", "--rate", "1Mbit/s", "--rtt", "1s"], "not both"),
        (["reno", "--rate", "1Mbit/s", "--rtt", "1s"], "only the tfrc models take --rate"),
        (["tfrc", "--rate", "1bit/s", "--rtt", "50ms"], "--rate = 1 bit/s: it must be at least 961 bit/s"),
        (
            ["gamma", "--rtt", "1s", "--base-rtt", "2s", "--w-max", 9],
            "--base-rtt = 2 s: it must be at most 1 s",
        ),
        (["tfrc", "--p", "0..1", "--rtt", "1s"], "a range needs ends above 0"),
        (["tfrc", "--p", "0.1..1/999999", "--rtt", "1s"], "2 to 100000 values"),
        (["tfrc", "--p", "0.1", "--rtt", "1s", "--plot", "x.svg"], "several values"),
        (["tfrc", "--p", "0.1,1", "--rtt", "1s", "--plot", "x.gif"], "must end in .svg"),
    ],
)
def test_the_command_says_what_is_wrong(here: Command, arguments: list[str], message: str) -> None:
    code, out, err = here(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_the_command_lists_the_models(here: Command) -> None:
    _, out, _ = here("--list")
    for entry in json.loads(_core.models()):
        assert f"\n{entry['name']} " in out
    _, out, _ = here("--list", "--json")
    assert json.loads(out) == json.loads(_core.models())


def test_masked_values_are_not_looked_at() -> None:
    p = np.ma.masked_array([0.01, -5.0, np.nan, 0.1], mask=[False, True, True, False])
    rtt = np.ma.masked_array([[0.1], [0.0]], mask=[[False], [True]])
    found = models.tfrc(p, rtt_s=rtt)
    assert isinstance(found, np.ma.MaskedArray)
    assert np.ma.getmaskarray(found).tolist() == [[False, True, True, False], [True] * 4]
    assert found.compressed().tolist() == models.tfrc([0.01, 0.1], rtt_s=0.1).tolist()
    with pytest.raises(ValueError, match="-5"):
        models.tfrc(np.ma.masked_array([0.01, -5.0], mask=[True, False]), rtt_s=0.1)
    assert not isinstance(models.tfrc(0.01, rtt_s=0.1), np.ma.MaskedArray)
