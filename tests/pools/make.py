"""Makes `pools.parquet`: what measures are in 1600 runs each of eleven short scenarios, for the test of coverage.

    .venv/bin/python tests/pools/make.py

Run it again when simulations change so much that the pools are no longer of this program; it takes some minutes.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

import paceline

RUNS = 1600
WHERE = Path(__file__).with_name("pools.parquet")

BROWSING = """
[flow.browsing]
count = 3
start = { uniform = ["0 s", "5 s"] }
rtt = { uniform = ["50 ms", "200 ms"] }
app = { kind = "web", gap = "2 s", mean_size = "100 kB", max_size = "5 MB" }
"""

SCENARIOS = {
    # A film that mostly keeps up, but for a run in three: late shares are small.
    "shared": """
duration = "35 s"
warmup = "5 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { limit = "60 packets" }
[flow.download]
cc = "newreno"
delays = true
start = { uniform = ["0 s", "3 s"] }
[flow.film]
cc = "newreno"
app = { kind = "stream", media_rate = "3 Mbit/s", length = "25 s" }
"""
    + BROWSING,
    # One that cannot: most of it is late.
    "starved": """
duration = "35 s"
warmup = "5 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { limit = "60 packets" }
[flow.download]
cc = "cubic"
[flow.film]
cc = "vegas"
app = { kind = "stream", media_rate = "2 Mbit/s", length = "25 s" }
"""
    + BROWSING,
    # One whose share of the link would do, and often does not.
    "halved": """
duration = "40 s"
warmup = "5 s"
[link.bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = { limit = "40 packets" }
[flow.download]
cc = "cubic"
[flow.film]
cc = "newreno"
start = { uniform = ["0 s", "3 s"] }
app = { kind = "stream", media_rate = "2 Mbit/s", length = "30 s" }
""",
    # A call beside a little web traffic: it freezes now and then.
    "call": """
duration = "35 s"
warmup = "5 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "25 ms"
queue = { limit = "200 ms" }
[flow.call]
cc = "nada"
delays = true
rtp = { feedback_interval = "100 ms", bandwidth = "2 Mbit/s" }
app = { kind = "encoder", frame_rate = 30, max_rate = "1.5 Mbit/s" }
[flow.browsing]
count = 2
start = { uniform = ["0 s", "5 s"] }
app = { kind = "web", gap = "3 s", mean_size = "60 kB", max_size = "1 MB" }
""",
    # A film that a download catches up with.
    "sofa": """
duration = "60 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { limit = "60 packets" }
[flow.film]
cc = "vegas"
app = { kind = "stream", media_rate = "3 Mbit/s", length = "50 s", buffer = "5 %" }
[flow.download]
cc = "cubic"
start = { uniform = ["8 s", "12 s"] }
""",
    # All kinds of media over a link that loses a packet now and then.
    "mixed": """
duration = "30 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { limit = "60 packets" }
loss = { kind = "uniform", rate = "0.05 %" }
[flow.film]
cc = "vegas"
app = { kind = "stream", media_rate = "2 Mbit/s", length = "20 s" }
[flow.call]
cc = "nada"
app = { kind = "encoder", frame_rate = 30, max_rate = "1.5 Mbit/s" }
[flow.voice]
cc = "udp"
delays = true
app = { kind = "voice" }
[flow.download]
cc = "newreno"
start = { uniform = ["0 s", "3 s"] }
""",
    # One alone on its link: slow start ends later in one run of ten.
    "alone": """
duration = "25 s"
warmup = "5 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { limit = "60 packets" }
[flow.film]
cc = "vegas"
app = { kind = "stream", media_rate = "1 Mbit/s", length = "60 s", buffer = "5 %" }
""",
    # A call that a page holds up now and then.
    "phone": """
duration = "25 s"
warmup = "5 s"
[link.bottleneck]
rate = "4 Mbit/s"
delay = "25 ms"
queue = { limit = "150 ms" }
[flow.call]
cc = "gcc"
delays = true
app = { kind = "encoder", frame_rate = 30, max_rate = "1.5 Mbit/s" }
[flow.browsing]
app = { kind = "web", gap = "3 s", mean_size = "200 kB", max_size = "5 MB" }
""",
    # A download alone, of which random losses decide.
    "lossy": """
duration = "25 s"
warmup = "5 s"
[link.bottleneck]
rate = "20 Mbit/s"
delay = "20 ms"
queue = { limit = "60 packets" }
loss = { kind = "uniform", rate = "0.1 %" }
[flow.download]
cc = "newreno"
""",
    # Downloads behind RED.
    "shares": """
duration = "25 s"
warmup = "5 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "red", limit = "100 packets", min_threshold = 15, max_threshold = 60, weight = 0.002 }
[flow.download]
cc = "sack"
count = 3
start = { uniform = ["0 s", "1 s"] }
[flow.smooth]
cc = "tfrc"
count = 2
start = { uniform = ["0 s", "1 s"] }
""",
    # A file over a link with random loss.
    "file": """
duration = "60 s"
[link.bottleneck]
rate = "8 Mbit/s"
delay = "20 ms"
loss = { kind = "uniform", rate = "1 %" }
[flow.file]
cc = "newreno"
app = { kind = "ftp", size = "2 MB" }
""",
}

POOLS = {
    "goodput": ("shared", "flows", "download", "goodput_bps"),
    "loss": ("shared", "flows", "download", "loss_rate"),
    "queue": ("shared", "queues", "bottleneck", "mean_packets"),
    "RTT": ("shared", "flows", "download", "rtt_mean_s"),
    "RTT 95 %": ("shared", "flows", "download", "rtt_p95_s"),
    "delay 50 %": ("shared", "flows", "download", "owd_p50_s"),
    "delay 99 %": ("shared", "flows", "download", "owd_p99_s"),
    "jitter": ("shared", "flows", "download", "jitter_s"),
    "widest gap": ("shared", "flows", "download", "interarrival_max_s"),
    "timeouts": ("halved", "flows", "film", "timeouts"),
    "queue of a call": ("call", "queues", "bottleneck", "mean_packets"),
    "utilisation": ("call", "queues", "bottleneck", "utilisation"),
    "late share, small": ("shared", "streams", "film", "late_share"),
    "late share, middle": ("halved", "streams", "film", "late_share"),
    "late share, large": ("starved", "streams", "film", "late_share"),
    "fill time": ("starved", "streams", "film", "fill_s"),
    "web goodput": ("shared", "flows", "browsing", "goodput_bps"),
    "web transfer time": ("shared", "flows", "browsing", "transfer_time_mean_s"),
    "web RTT": ("shared", "flows", "browsing", "rtt_mean_s"),
    "web loss": ("shared", "flows", "browsing", "loss_rate"),
    "web share": ("shared", "groups", "browsing", "share"),
    "web goodput, two": ("call", "flows", "browsing", "goodput_bps"),
    "freezes": ("call", "flows", "call", "freezes"),
    "frozen": ("call", "flows", "call", "freeze_s"),
    "complete frames": ("call", "flows", "call", "complete_share"),
    "frame delay 50 %": ("call", "flows", "call", "frame_delay_p50_s"),
    "frame delay 95 %": ("call", "flows", "call", "frame_delay_p95_s"),
    "call's delay 50 %": ("call", "flows", "call", "owd_p50_s"),
    "call's delay 95 %": ("call", "flows", "call", "owd_p95_s"),
    "call's RTT 50 %": ("call", "flows", "call", "rtt_p50_s"),
    "call's loss": ("call", "flows", "call", "loss_rate"),
    "fill time beside much": ("mixed", "streams", "film", "fill_s"),
    "film's time": ("sofa", "streams", "film", "duration_s"),
    "film's RTT": ("sofa", "flows", "film", "rtt_mean_s"),
    "film's RTT 95 %": ("sofa", "flows", "film", "rtt_p95_s"),
    "film's RTT 99 %": ("sofa", "flows", "film", "rtt_p99_s"),
    "film's goodput": ("mixed", "flows", "film", "goodput_bps"),
    "timeouts of a download": ("sofa", "flows", "download", "timeouts"),
    "resent beside media": ("mixed", "flows", "download", "packets_retransmitted"),
    "loss beside media": ("mixed", "flows", "download", "loss_rate"),
    "RTT beside media": ("mixed", "flows", "download", "rtt_mean_s"),
    "drops": ("mixed", "queues", "bottleneck", "drops_overflow"),
    "voice's loss": ("mixed", "flows", "voice", "packets_lost"),
    "voice's goodput": ("mixed", "flows", "voice", "goodput_bps"),
    "voice's delay 99 %": ("mixed", "flows", "voice", "owd_p99_s"),
    "least delay": ("mixed", "flows", "voice", "owd_min_s"),
    "call's RTT 99 %": ("mixed", "flows", "call", "rtt_p99_s"),
    "receiving ratio": ("sofa", "flows", "film", "receiving_ratio"),
    "completion time": ("file", "flows", "file", "transfer_time_mean_s"),
    "file's goodput": ("file", "flows", "file", "goodput_bps"),
    "file's loss": ("file", "flows", "file", "loss_rate"),
    "file's RTT": ("file", "flows", "file", "rtt_mean_s"),
    "goodput of a film alone": ("alone", "flows", "film", "goodput_bps"),
    "RTT of a film alone": ("alone", "flows", "film", "rtt_mean_s"),
    "queue of a film alone": ("alone", "queues", "bottleneck", "mean_packets"),
    "feedback": ("phone", "flows", "call", "feedback_share"),
    "goodput of a call": ("phone", "flows", "call", "goodput_bps"),
    "transfer time 50 %": ("shared", "flows", "browsing", "transfer_time_p50_s"),
    "goodput under loss": ("lossy", "flows", "download", "goodput_bps"),
    "RTT under loss": ("lossy", "flows", "download", "rtt_mean_s"),
    "RTT 50 % under loss": ("lossy", "flows", "download", "rtt_p50_s"),
    "queue under loss": ("lossy", "queues", "bottleneck", "mean_packets"),
    "queue's deviation": ("lossy", "queues", "bottleneck", "sd_packets"),
    "a full link": ("shared", "queues", "bottleneck", "utilisation"),
    "Jain's index": ("shares", "groups", "smooth", "jain"),
    "share of a group": ("shares", "groups", "download", "share"),
    "loss events": ("shares", "flows", "smooth", "loss_event_rate"),
}
"""What each pool is of: scenario, table, flow or link, measure. Instances of a flow are averaged within a run."""

ENDLESS = {"download", "smooth"}
"""The flows and groups that are transfers without an end."""
WITHOUT = {"alone", "phone", "call", "file"}
"""Scenarios without one, whose queues it does not fill."""


def endless(pool: str) -> bool:
    """Whether a pool is of transfers without an end, or of a queue that one fills."""
    scenario, table, of, _ = POOLS[pool]
    return of in ENDLESS if table != "queues" else scenario not in WITHOUT


def pools(runs: int = RUNS) -> pl.DataFrame:
    """A column for each pool, a row for each run."""
    results = {
        name: paceline.run(paceline.parse(text), seed=1, runs=runs) for name, text in SCENARIOS.items()
    }
    columns = {}
    for name, (scenario, table, of, measure) in POOLS.items():
        who = {"queues": "link", "groups": "group"}.get(table, "flow")
        rows = results[scenario].table(table).filter(pl.col(who) == of)
        if table == "queues":
            rows = rows.filter(direction="forward")
        values = rows.group_by("seed", maintain_order=True).agg(pl.col(measure).cast(pl.Float64).mean())
        columns[name] = values[measure].cast(pl.Float32)
    return pl.DataFrame(columns)


if __name__ == "__main__":
    made = pools()
    made.write_parquet(WHERE, compression="zstd", compression_level=19, statistics=False)
    print(made.describe())
    print(f"{WHERE}: {WHERE.stat().st_size / 1e3:.0f} kB")
