"""Results as tables for people: quantities with units, and with 95 % half widths for several runs."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from paceline.interval import Interval, Kind, interval
from paceline.quantities import decimals_of, quantity, round_up, scale
from paceline.results.columns import IDENTITY
from paceline.results.results import Results
from paceline.tables.layout import Column, Layout

MAX_ROWS = 30
MAX_NOTICES = 4
"""The limit on notices of one kind."""

_DROPS = [
    ("drops_overflow", "overflow"),
    ("drops_early", "early"),
    ("drops_forced", "forced"),
    ("drops_delay", "delay"),
    ("drops_loss", "loss"),
    ("drops_outage", "outage"),
    ("drops_policed", "policed"),
]
_COLUMNS: dict[str, list[tuple[str, str]]] = {
    "flows": [
        ("goodput_bps", "goodput"),
        ("loss_rate", "loss"),
        ("rtt_mean_s", "RTT"),
        ("rtt_p95_s", "RTT 95 %"),
        ("cwnd_mean_packets", "cwnd"),
        ("packets_sent", "sent"),
        ("packets_retransmitted", "resent"),
        ("timeouts", "timeouts"),
        ("transfers_completed", "transfers"),
        ("transfers_unfinished", "unfinished"),
    ],
    "frames": [
        ("frames_sent", "frames"),
        ("frames_complete", "came whole"),
        ("complete_share", "complete"),
        ("reset_share", "reset"),
        ("dropped_share", "dropped"),
        ("frame_delay_p50_s", "delay"),
        ("frame_delay_p95_s", "delay 95 %"),
        ("freezes", "freezes"),
        ("freeze_s", "frozen"),
    ],
    "arrivals": [
        ("owd_p50_s", "delay"),
        ("owd_p95_s", "delay 95 %"),
        ("owd_p99_s", "delay 99 %"),
        ("jitter_s", "jitter"),
        ("interarrival_max_s", "widest gap"),
        ("voice_mos", "MOS"),
    ],
    "streams": [
        ("throughput_bps", "throughput"),
        ("began", "began"),
        ("fill_s", "fill time"),
        ("late_share", "late"),
        ("late_packets", "late packets"),
        ("stall_share", "stalled"),
        ("stalls", "stalls"),
        ("stall_s", "in all"),
        ("discarded_packets", "discarded"),
        ("undelivered_share", "undelivered"),
        ("duration_s", "lasted"),
    ],
    "queues": [
        ("mean_packets", "mean"),
        ("sd_packets", "sd"),
        ("max_packets", "max"),
        ("delay_mean_s", "wait"),
        ("delay_max_s", "wait max"),
        ("utilisation", "utilisation"),
        *_DROPS,
        ("drops_retries", "retries"),
        ("marks", "marks"),
    ],
    "link_flows": [
        ("arrivals", "came"),
        ("departures", "crossed"),
        ("drop_share", "dropped"),
        ("mean_packets", "mean queue"),
        ("queue_share", "of the queue"),
        *_DROPS,
        ("marks", "marks"),
    ],
    "interfaces": [
        ("airtime_share", "airtime"),
        ("attempts", "attempts"),
        ("collision_rate", "collided"),
        ("retries", "retries"),
        ("frame_errors", "errors"),
        ("given_up", "given up"),
    ],
    "groups": [
        ("flows", "flows"),
        ("jain", "Jain index"),
        ("friendliness", "friendliness"),
        ("goodput_bps", "goodput"),
        ("share", "share"),
        ("flow_goodput_sd_bps", "sd of flows"),
    ],
}
"""Measures and their headings; in a narrow terminal the first stand in the first table."""
_OF_ONE_RUN = {"packets_sent", "late_packets", "frames_sent"}
"""Counts that are shown for a single run; for means over several runs shares are clearer."""
_IF_NONZERO = {"late_share", "stall_share"}
"""Shown whenever they have a value, even zero: a stream has one of the two."""
_ALWAYS = {
    "goodput_bps",
    "rtt_mean_s",
    "fill_s",
    "mean_packets",
    "sd_packets",
    "jain",
    "loss_rate",
    "complete_share",
    "frame_delay_p50_s",
    "frame_delay_p95_s",
    "freezes",
}


def tables(results: Results) -> list[Layout]:
    """The tables of one scenario's runs; those without rows are left out."""
    titles = {
        "flows": "Flows",
        "frames": "Frames",
        "arrivals": "Arrivals (one-way delay)",
        "streams": "Streams",
        "queues": "Queues (packets)",
        "link_flows": "Flows at links (packets)",
        "interfaces": "Wi-Fi",
        "groups": "Groups",
    }
    found = [_table(results, name, title) for name, title in titles.items()]
    return [table for table in found if table is not None]


def notices(results: Results) -> list[str]:
    """The notices on the tables, a paragraph each; for several runs also how many each applies to."""
    total, columns = len(results.runs), ["text", "runs", "cases", "of"]
    said = []
    for alike in results.notices.partition_by("kind", maintain_order=True):
        for text, runs, cases, of in alike.head(MAX_NOTICES).select(columns).iter_rows():
            said.append(f"Note: {text}{_how_many(runs, total, cases, of)}")
        if len(alike) > MAX_NOTICES:
            said.append(f"Note: {len(alike) - MAX_NOTICES} more notices of this kind; --out writes all.")
    return said


def _how_many(runs: int, total: int, cases: int | None, of: int | None) -> str:
    """How many runs, and how many of the named items in them, a notice applies to."""
    parts = [] if cases is None else [f"counted: {cases}" if of is None else f"{cases} of {of}"]
    if runs < total:
        parts.append(f"in {runs} of {total} runs" if parts else f"{runs} of {total} runs")
    return f" ({', '.join(parts)})" if parts else ""


def rows(results: Results, name: str) -> pl.DataFrame:
    """The rows of a table for people: "frames" are the flows with an encoder; "arrivals" those whose delays were
    measured; any other is the results' own. Columns that older results lack are derived from others if possible."""
    if name == "streams":
        streams = results.streams
        known = "began" in streams.columns or "fill_s" not in streams.columns
        return streams if known else streams.with_columns(pl.col("fill_s").is_not_null().alias("began"))
    if name not in ("frames", "arrivals"):
        return results.table(name)
    flows = results.table("flows")
    if name == "arrivals":
        # Real flows have only jitter, since their ends' clocks differ. A flow without arrivals has only the silence.
        kinds = ("owd_p50_s", "jitter_s", "interarrival_max_s")
        there = [measure for measure in kinds if measure in flows.columns]
        return flows.filter(pl.any_horizontal(pl.col(there).is_not_null())) if there else flows.clear()
    # For a flow whose sender is gone, only what its receiver measures.
    there = [measure for measure in ("frames_sent", "frames_complete") if measure in flows.columns]
    if not there:
        return flows.clear()
    frames = flows.filter(pl.any_horizontal(pl.col(there).is_not_null()))
    if "complete_share" in frames.columns or len(there) < 2:
        return frames
    share = pl.col("frames_complete") / pl.when(pl.col("frames_sent") > 0).then(pl.col("frames_sent"))
    return frames.with_columns(share.alias("complete_share"))


def _table(results: Results, name: str, title: str) -> Layout | None:
    data = rows(results, name)
    if name == "groups" and "flows" in data.columns and "friendliness" not in data.columns:
        # A group of one flow repeats the table of flows.
        data = data.filter(pl.col("flows").max().over("group") > 1)
    if data.is_empty():
        return None
    who = ["flow", "instance", "cc"] if name in ("flows", "frames", "arrivals") else list(IDENTITY[name])
    several = len(results.records) > 1
    parts = data.partition_by(who, maintain_order=True)
    shown = parts[:MAX_ROWS]
    lonely = _lonely(data) if "instance" in who else set()
    first = {
        "queues": "link",
        "link_flows": "link, flow",
        "interfaces": "interface",
        "groups": "group",
        "streams": "stream",
    }.get(name, "flow")
    columns = [Column(first, [_who(part, name, lonely) for part in shown], right=False, repeat=True)]
    if name == "flows":
        columns.append(Column("cc", [str(part["cc"][0]) for part in shown], right=False))
    measures = [
        (measure, head)
        for measure, head in _COLUMNS[name]
        if worth(data, measure) and not (several and measure in _OF_ONE_RUN)
    ]
    met: list[Interval] = []
    for measure, head in measures:
        cells = []
        for part in shown:
            # The number of a group's flows is fixed, not measured.
            if several and measure != "flows":
                met.append(interval(measure, part[measure].to_list(), results.endless(part)))
                cells.append(said(measure, met[-1]) + of_how_many(met[-1].n, len(part)))
            else:
                cells.append(_of_one(measure, part))
        columns.append(Column(head, cells))
    rest = len(parts) - len(shown)
    notes = [f"and {rest} more: --json and --out give all"] if rest else []
    if name == "streams":
        notes += never_began(data)
    notes += explained(met)
    return Layout(title, columns, note="\n".join(notes))


def never_began(streams: pl.DataFrame) -> list[str]:
    """A line with the number of streams, shown or not, that never began to play; none if all did."""
    never = 0 if "began" not in streams.columns else int((~streams["began"]).sum())
    return [f"{never} of {len(streams)} streams never began to play"] if never else []


def worth(data: pl.DataFrame, measure: str) -> bool:
    """Whether a column is informative: rarely used ones are left out while all values are zero or missing, and `began`
    while all streams began."""
    if measure not in data.columns:
        return False
    if measure == "began":
        return not data[measure].all()
    if measure == "frames_complete":
        # the share is clearer, if it is known
        return _some_unknown(data, "frames_sent") and data[measure].null_count() < len(data)
    if measure in _IF_NONZERO:
        return data[measure].null_count() < len(data)
    return measure in _ALWAYS or any(v not in (None, 0) for v in data[measure])


def _some_unknown(data: pl.DataFrame, measure: str) -> bool:
    return measure not in data.columns or data[measure].null_count() > 0


def _lonely(data: pl.DataFrame) -> set[str]:
    """Flows that have a single instance, which then needs no number."""
    counts = data.group_by("flow").agg(pl.col("instance").n_unique())
    return {flow for flow, n in counts.iter_rows() if n == 1}


def _who(part: pl.DataFrame, name: str, lonely: set[str]) -> str:
    if name == "queues":
        return f"{part['link'][0]} {part['direction'][0]}"
    if name == "interfaces":
        return f"{part['cell'][0]}.{part['interface'][0]}"
    if name == "groups":
        return str(part["group"][0])
    flow = str(part["flow"][0])
    flow = flow if flow in lonely else f"{flow}[{part['instance'][0]}]"
    return f"{part['link'][0]} {part['direction'][0]}, {flow}" if name == "link_flows" else flow


def _of_one(measure: str, rows: pl.DataFrame) -> str:
    """The value of one run."""
    value = rows[measure][0]
    if measure == "began":
        return "yes" if value else "no"
    return quantity(measure, value)


def said(measure: str, found: Interval) -> str:
    """The summary of a measure over several runs, for people; `explained` explains the notation."""
    if found.kind is Kind.T:
        if found.half_width is not None:
            return quantity(measure, found.mean, found.half_width)
        return _between(measure, found.mean, found.low, found.high, "()")
    if found.kind is Kind.MEDIAN:
        return _between(measure, found.median, found.median_low, found.median_high, "[]") + (
            f", mean {quantity(measure, found.mean)}" if found.apart else ""
        )
    text = quantity(measure, found.mean)
    if found.kind is Kind.RUNS:
        return f"{text}, {_of_runs(measure, found)}"
    return f"{text}, no interval" if found.n > 1 else text


def _of_runs(measure: str, found: Interval) -> str:
    """How many runs differ from the usual value."""
    others = found.others or 0
    if others == 0:
        return f"all {found.n}"
    if found.usual == 0:
        return f"{others} of {found.n} not 0"
    usual = quantity(measure, found.usual)
    at = "alike" if usual == quantity(measure, found.mean) else f"at {usual}"
    return f"{found.n - others} of {found.n} {at}"


def _between(measure: str, middle: float | None, low: float | None, high: float | None, brackets: str) -> str:
    """A mean or a median with its interval, which it need not be in the middle of: "0.52 (0 to 1.30) %"."""
    middle, low, high = (value or 0.0 for value in (middle, low, high))
    factor, unit = scale(measure, max(abs(middle), abs(high)))
    middle, low, high = middle / factor, low / factor, high / factor
    decimals = decimals_of(high - low)
    # Keep a lower end above 0 from being rounded to 0.
    low, high = -round_up(-low, decimals) or low, round_up(high, decimals)
    between, first, last = (_rounded(value, decimals) for value in (middle, low, high))
    return f"{between} {brackets[0]}{first} to {last}{brackets[1]} {unit}".rstrip()


def _rounded(value: float, decimals: int) -> str:
    """A number rounded so that a nonzero value is not shown as zero."""
    text = f"{value:.{decimals}f}"
    if value == 0:
        return "0"
    return text if float(text) else f"< {10.0**-decimals:.{decimals}f}"


def explained(found: Sequence[Interval]) -> list[str]:
    """Explanations of cells other than mean ± half width, a line for each kind that occurs."""
    lines = []
    counted = sorted({(i.n, i.others, i.others_low, i.others_high) for i in found if i.kind is Kind.RUNS})
    if counted:
        each = [
            f"{others or 'none'} of {n} seen, {100 * (low or 0):.2g} to {100 * (high or 0):.2g} % of all"
            for n, others, low, high in counted
        ]
        lines.append(f"runs that differ from most (exact, 99 %): {'; '.join(each)}")
    if any(i.kind is Kind.T and i.half_width is None for i in found):
        lines.append("(a to b): the 95 % interval of the mean, cut at what cannot be")
    if any(i.kind is Kind.MEDIAN for i in found):
        lines.append(
            "m [a to b]: the median, and where it lies at 95 % or more; an interval of the mean would not hold"
        )
    if any(i.kind is Kind.NONE and i.n > 1 for i in found):
        lines.append(
            "no interval: too few runs; 6 or more give one of the median, 10 or more one of an unskewed mean"
        )
    return lines


def of_how_many(there: int, rows: int) -> str:
    """The count that a mean over fewer values than rows shows: 12.3 ± 0.4 s (8 of 10)."""
    return f" ({there} of {rows})" if 0 < there < rows else ""
