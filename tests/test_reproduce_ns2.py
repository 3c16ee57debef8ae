"""The streaming paper's dumbbell held against ns-2.35: throughput of the stream and mean queue, over 10 seeds each."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from paceline.reproduce import loading, measure
from paceline.scenario import load
from paceline.sweep import Point, run_points, seeds_from

RUNS = 10
# ns-2's summaries (mean and half of the 95 % interval over 10 seeds): open-loop web traffic and 0-0.8 ms of send jitter
# over Figures 4 to 7, and other readings at the default point.
REFERENCE = list(
    csv.DictReader((Path(__file__).parent / "reference" / "ns2_streaming.csv").read_text().splitlines())
)
QUEUES = {
    "dt": '{ kind = "droptail", limit = "50 packets" }',
    "red515": "{ gentle = true, RED }",
    "red515ng": "{ gentle = false, RED }",
    "redauto": '{ kind = "red", limit = "50 packets", automatic = true, mode = "bytes", mean_packet = "1000 B" }',
}
RED = 'kind = "red", limit = "50 packets", min_threshold = 5, max_threshold = 15, weight = 0.002, max_p = 0.1'
ARRIVALS = {"open": "open", "think": "think", "thinkp": "think-persistent"}


def changes(row: dict[str, str]) -> dict[str, str]:
    """The settings that make default.toml (or loss.toml) the reference's scenario."""
    found = {
        "flow.ftp.count": row["nftp"],
        "flow.web.count": row["nhttp"],
        "flow.media.rtt": f"{row['rtt']} ms",
        "flow.web.app": f'{{ kind = "web", gap = "0.5 s", arrivals = "{ARRIVALS[row["http"]]}", '
        'mean_size = "50 kB", shape = 1.2 }',
        "link.bottleneck.queue": QUEUES[row["queue"]].replace("RED", RED),
    }
    if row["kind"] != "newreno":
        found |= {"flow.media.cc": "vegas", "flow.media.params": "{ alpha = 8, beta = 8 }"}
    if row["rttmode"] == "core":
        found["link.bottleneck.delay"] = f"{float(row['rtt']) / 2:g} ms"
    if float(row["loss"]) > 0:
        found["link.bottleneck.loss.rate"] = f"{100 * float(row['loss']):g} %"
    for flow in ("media", "ftp", "web"):
        found[f"flow.{flow}.delayed_ack"] = "off"
        found[f"flow.{flow}.send_overhead"] = f"{1000 * float(row['ovh']):g} ms"
        found[f"flow.{flow}.header"] = "40 B" if row["hdr"] == "1" else "0 B"
    return found


def name(row: dict[str, str]) -> str:
    keys = ("kind", "rtt", "loss", "nftp", "queue", "rttmode", "http", "hdr", "ovh")
    return " ".join(f"{key}={row[key]}" for key in keys)


def test_agrees_with_ns2() -> None:
    """Within 10 %, or within both 95 % intervals together."""
    paper = loading.load("vegas-streaming")
    files = [paper.folder / ("loss.toml" if float(row["loss"]) > 0 else "default.toml") for row in REFERENCE]
    points = [Point(load(file, changes(row))) for file, row in zip(files, REFERENCE, strict=True)]
    records = run_points(points, seeds_from(1, RUNS))
    wrong = []
    for i, row in enumerate(REFERENCE):
        own = measure.of_point(paper.metrics, [r.summary for r in records[i * RUNS : (i + 1) * RUNS]])
        for metric, column in (("throughput", "thr_mbps"), ("queue", "meanq")):
            ours, theirs = measure.mean(own[metric]), float(row[f"{column}_mean"])
            assert ours.mean is not None
            assert ours.half_width is not None
            bound = max(0.1 * theirs, math.hypot(ours.half_width, float(row[f"{column}_ci95"])))
            if abs(ours.mean - theirs) > bound:
                wrong.append(f"{name(row)}: {metric} {ours.mean:.3f}, ns-2 {theirs:.3f}, bound {bound:.3f}")
    assert len(REFERENCE) > 50
    assert not wrong, "\n".join(wrong)
