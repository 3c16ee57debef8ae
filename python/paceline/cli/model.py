"""`paceline model`: throughput models as tables, JSON and figures."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

from paceline import _core
from paceline.cli import layout, show
from paceline.errors import PacelineError

BITS = 8
SEGMENT_BYTES = 1460.0
MOST_ROWS = 100_000
FORMATS = ("svg", "png", "pdf")


@dataclass(frozen=True)
class Option:
    """How a model's argument is written on the command line."""

    name: str
    unit: str = ""
    """Of quantities: "s", "B" or "bit/s"."""


OPTIONS = {
    "p": Option("--p"),
    "rate_bytes_per_s": Option("--rate", "bit/s"),
    "rtt_s": Option("--rtt", "s"),
    "gamma": Option("--gamma"),
    "base_rtt_s": Option("--base-rtt", "s"),
    "w_max_packets": Option("--w-max"),
    "theta1": Option("--theta1"),
    "theta2": Option("--theta2"),
    "beta_packets": Option("--beta"),
    "rto_s": Option("--rto", "s"),
    "packets_per_ack": Option("--packets-per-ack"),
    "segment_bytes": Option("--segment", "B"),
    "capacity_packets_per_s": Option("--capacity", "bit/s"),
    "backlog_packets": Option("--backlog"),
    "total_backlog_packets": Option("--total-backlog"),
}
RATES = ("rate_packets_per_s", "rate_bytes_per_s")


def _values(metavar: str, text: str) -> Any:
    return typer.Option(metavar=metavar, help=text, show_default=False)


def model(
    name: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="Which: see --list.", show_default=False)
    ] = None,
    *,
    listing: Annotated[bool, typer.Option("--list", help="List the models and their arguments.")] = False,
    p: Annotated[str | None, _values("LIST", "Loss event rates: 0.01 or 1%.")] = None,
    rate: Annotated[
        str | None, _values("LIST", "Rates: the loss rates at which a tfrc model has them.")
    ] = None,
    rtt: Annotated[str | None, _values("LIST", "Round-trip times.")] = None,
    gamma: Annotated[
        str | None, _values("LIST", "Mean window factors at a loss; else from the next five.")
    ] = None,
    base_rtt: Annotated[str | None, _values("LIST", "Least round-trip times.")] = None,
    w_max: Annotated[str | None, _values("LIST", "Largest windows in packets.")] = None,
    theta1: Annotated[
        str | None, _values("LIST", "Factors at a random loss. Default: 0.8, of tfrc-veno 0.95.")
    ] = None,
    theta2: Annotated[str | None, _values("LIST", "Factors at a loss by congestion. Default: 0.5.")] = None,
    beta: Annotated[str | None, _values("LIST", "Packets in the queue below which a loss is random.")] = None,
    rto: Annotated[
        str | None, _values("LIST", "First retransmission timeouts. Default: 4 round trips.")
    ] = None,
    packets_per_ack: Annotated[
        str | None, _values("LIST", "Packets per ACK; 2 with delayed ACKs. Default: 1.")
    ] = None,
    segment: Annotated[str | None, _values("LIST", "Segment sizes. Default: 1460 B.")] = None,
    capacity: Annotated[str | None, _values("LIST", "Rates of the bottleneck (vegas).")] = None,
    backlog: Annotated[str | None, _values("LIST", "Packets that a flow keeps in the queue (vegas).")] = None,
    total_backlog: Annotated[
        str | None, _values("LIST", "Packets that all flows keep there (vegas).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw a figure: .svg, .png or .pdf.", show_default=False),
    ] = None,
) -> None:
    """Say what throughput the models promise: Reno, Veno, TFRC, TFRC Veno, Vegas.

    A LIST is values between commas, or LOW..HIGH for 25 values evenly spaced on a
    logarithmic scale, or LOW..HIGH/N for N of them. All combinations are evaluated.

    \b
    Examples:
      paceline model --list
      paceline model tfrc --p 0.001,0.01,0.1 --rtt 50ms
      paceline model tfrc --rate 1Mbit/s,5Mbit/s --rtt 50ms
      paceline model reno --p 0.0001..0.1 --rtt 20ms,100ms \\
        --plot reno.svg
      paceline model veno --p 1% --rtt 120ms --base-rtt 100ms \\
        --w-max 20,40,80
      paceline model vegas --capacity 10Mbit/s --base-rtt 50ms \\
        --backlog 1,3 --total-backlog 16
    """
    if listing:
        _list(as_json)
        return
    known = {m["name"]: m for m in json.loads(_core.models())}
    if name is None:
        raise PacelineError("which model? `paceline model --list` has them")
    if name not in known:
        raise PacelineError(f'there is no model "{name}"; there are {", ".join(known)}')
    texts = {
        "p": p,
        "rate_bytes_per_s": rate,
        "rtt_s": rtt,
        "gamma": gamma,
        "base_rtt_s": base_rtt,
        "w_max_packets": w_max,
        "theta1": theta1,
        "theta2": theta2,
        "beta_packets": beta,
        "rto_s": rto,
        "packets_per_ack": packets_per_ack,
        "segment_bytes": segment,
        "capacity_packets_per_s": capacity,
        "backlog_packets": backlog,
        "total_backlog_packets": total_backlog,
    }
    given = {key: _list_of(OPTIONS[key], text) for key, text in texts.items() if text is not None}
    answer = Answer.of(known[name], given)
    if plot is not None:
        _draw(answer, plot)
    elif as_json:
        print(json.dumps(answer.as_json(), indent=2, ensure_ascii=False))
    else:
        answer.print()


def _list(as_json: bool) -> None:
    models = json.loads(_core.models())
    if as_json:
        print(json.dumps(models, indent=2, ensure_ascii=False))
        return
    console = layout.stdout()
    table = layout.plain()
    for head in ("model", "what", "needs", "takes"):
        table.add_column(head, overflow="fold")
    docs: dict[str, str] = {}
    for entry in models:
        needs = [OPTIONS[a["name"]].name for a in entry["arguments"] if a["default"] is None]
        takes = [OPTIONS[a["name"]].name for a in entry["arguments"] if a["default"] is not None]
        table.add_row(entry["name"], Text(entry["summary"]), Text(" ".join(needs)), Text(" ".join(takes)))
        for argument in entry["arguments"]:
            docs.setdefault(argument["name"], argument["doc"] + _default(argument))
    console.print(table)
    console.print()
    layout.say(
        console,
        "Of the tfrc models --rate in the place of --p gives the loss rate. Where --gamma is needed, --base-rtt and "
        "--w-max in its place give it.",
    )
    console.print()
    table = layout.plain()
    for head in ("option", "what"):
        table.add_column(head, overflow="fold")
    for name, doc in docs.items():
        table.add_row(Text(OPTIONS[name].name), Text(doc))
    console.print(table)


def _default(argument: dict[str, Any]) -> str:
    default = argument["default"]
    if default is None or default == "inf":
        return ""
    return f" (default {_text(argument['name'], default) if isinstance(default, float) else '4 round trips'})"


def _list_of(option: Option, text: str) -> list[float]:
    """The values of "1,2,3", "LOW..HIGH" and "LOW..HIGH/N"."""
    found: list[float] = []
    for part in text.split(","):
        low, dots, rest = part.partition("..")
        if not dots:
            found.append(_number(option, part))
            continue
        # a unit may hold a slash: only digits after it are a count
        high, slash, count = rest.rpartition("/")
        if not (slash and count.strip().isdigit()):
            high, count = rest, "25"
        ends = (_number(option, low), _number(option, high))
        if min(ends) <= 0 or not 2 <= int(count) <= MOST_ROWS:
            raise PacelineError(
                f"{option.name} {text}: a range wants ends above 0 and 2 to {MOST_ROWS} values"
            )
        found.extend(float(v) for v in np.geomspace(*ends, int(count)))
    return found


def _number(option: Option, text: str) -> float:
    text = text.strip()
    if not option.unit:
        try:
            return float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            raise PacelineError(f'{option.name}: "{text}" is not a number') from None
    try:
        return _core.quantity(text, option.unit)
    except ValueError as error:
        raise PacelineError(f"{option.name}: {error}") from None


@dataclass(frozen=True)
class Answer:
    """A model evaluated at all combinations of its arguments: columns of one length."""

    model: dict[str, Any]
    arguments: dict[str, np.ndarray]
    results: dict[str, np.ndarray]

    @staticmethod
    def of(entry: dict[str, Any], given: dict[str, list[float]]) -> Answer:
        """Fills in defaults and evaluates. Raises PacelineError."""
        inverse = "rate_bytes_per_s" in given
        takes = [a["name"] for a in entry["arguments"]]
        if inverse:
            if not entry["inverse"]:
                raise PacelineError(
                    f"{entry['name']} cannot be turned round: --rate goes with the tfrc models"
                )
            if "p" in given:
                raise PacelineError("give --p or --rate, not both: one follows from the other")
            takes[0] = "rate_bytes_per_s"
        factor = "gamma" in takes and "gamma" not in given
        behind = ["base_rtt_s", "w_max_packets", "theta1", "theta2", "beta_packets"] if factor else []
        sized = "segment_bytes" not in takes and (
            entry["results"][0] in RATES or "capacity_packets_per_s" in takes
        )
        allowed = {*takes, *behind, *(["segment_bytes"] if sized else [])}
        for key in given:
            if key not in allowed:
                options = ", ".join(OPTIONS[name].name for name in takes)
                raise PacelineError(f"{entry['name']} does not take {OPTIONS[key].name}; it takes {options}")
        wanted = [a["name"] for a in entry["arguments"] if a["default"] is None]
        wanted = [name for name in takes if name in wanted or name == "rate_bytes_per_s"]
        if factor:
            wanted = [name for name in wanted if name != "gamma"] + behind[:2]
        missing = [OPTIONS[name].name for name in wanted if name not in given]
        if missing:
            hint = " (or --gamma in place of --base-rtt and --w-max)" if factor else ""
            raise PacelineError(f"{entry['name']} needs {' and '.join(missing)}{hint}; see --list")

        order = [key for key in OPTIONS if key in given]
        rows = math.prod(len(given[key]) for key in order)
        if rows > MOST_ROWS:
            raise PacelineError(f"{rows} combinations are too many (at most {MOST_ROWS})")
        grid = zip(*itertools.product(*(given[key] for key in order)), strict=True)
        columns = {key: np.array(column) for key, column in zip(order, grid, strict=True)}
        segment = columns.get("segment_bytes", np.full(rows, SEGMENT_BYTES))
        for key in ("rate_bytes_per_s", "capacity_packets_per_s"):
            if key in columns:
                columns[key] = columns[key] / (BITS * (segment if key.endswith("packets_per_s") else 1))

        results: dict[str, np.ndarray] = {}
        if factor:
            law = next(m for m in json.loads(_core.models()) if m["name"] == "gamma")
            thetas = (
                {} if "theta1" in columns or "tfrc" not in entry["name"] else {"theta1": np.full(rows, 0.95)}
            )
            (results["gamma"],) = _evaluate(law, columns | thetas, rows)
        found = _evaluate(entry, columns | results, rows, takes, inverse=inverse)
        results |= dict(zip(["p"] if inverse else entry["results"], found, strict=True))
        return Answer(entry, columns, _with_bits(results, segment))

    def as_json(self) -> dict[str, Any]:
        """Rows of plain numbers; infinite ones are null."""
        columns = _with_bits(dict(self.arguments), None) | self.results
        lists = {
            name: [v if math.isfinite(v) else None for v in column.tolist()]
            for name, column in columns.items()
        }
        rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
        return {"model": self.model["name"], "source": self.model["source"], "rows": rows}

    def print(self) -> None:
        """A table of what varies; what does not stands above it."""
        arguments = _with_bits(dict(self.arguments), None)
        first = next(iter(arguments))
        varied = {key: column for key, column in arguments.items() if key == first or len(set(column)) > 1}
        fixed = [
            f"{_head(key)} {_text(key, column[0])}" for key, column in arguments.items() if key not in varied
        ]
        console = layout.stdout()
        layout.say(console, f"{self.model['summary']} ({self.model['source']})")
        if fixed:
            layout.say(console, ", ".join(fixed))
        columns = [
            layout.Column(_head(key), [_text(key, value) for value in column], repeat=key in varied)
            for key, column in (varied | self.results).items()
        ]
        layout.show(console, [layout.Layout("", columns)])


def _evaluate(
    entry: dict[str, Any],
    columns: dict[str, np.ndarray],
    rows: int,
    takes: list[str] | None = None,
    *,
    inverse: bool = False,
) -> list[np.ndarray]:
    """Evaluates the model on columns; those not given have their defaults. Raises PacelineError."""
    filled = []
    for argument, name in zip(
        entry["arguments"], takes or [a["name"] for a in entry["arguments"]], strict=True
    ):
        if name in columns:
            filled.append(columns[name])
        elif argument["default"] == "4 rtt_s":
            filled.append(4 * columns["rtt_s"])
        else:
            filled.append(np.full(rows, float(argument["default"])))
    try:
        found = _core.model(entry["name"], [c.astype("<f8").tobytes() for c in filled], inverse=inverse)
    except ValueError as error:
        raise PacelineError(_as_option(str(error))) from None
    return [np.frombuffer(column, dtype="<f8") for column in found]


def _as_option(message: str) -> str:
    """The core's message about an argument as one about the option, with the units of the command line."""
    name, equals, rest = message.partition(" = ")
    if name not in OPTIONS:
        return message
    bits = name == "rate_bytes_per_s"

    def readable(match: re.Match[str]) -> str:
        value = float(match["number"]) * (BITS if bits else 1)
        if match["before"]:  # what is named must itself be allowed
            value = _rounded(value, up=match["before"] == "at least ")
        return match["before"] + _text("rate_bps" if bits else name, value)

    number = r"(?P<number>-?[\d.]+(e[+-]?\d+)?)"
    rest = re.sub(rf"(?P<before>^|at most |at least ){number}(?=:|$)", readable, rest)
    return f"{OPTIONS[name].name}{equals}{rest}"


def _rounded(value: float, *, up: bool) -> float:
    """To three digits, never below (up) or above the value."""
    if value == 0 or not math.isfinite(value):
        return value
    digits = 2 - math.floor(math.log10(abs(value)))
    # powers of ten times the value differ from whole numbers by rounding
    scaled = round(value * 10.0**digits, 9)
    return float(f"{(math.ceil if up else math.floor)(scaled)}e{-digits}")


def _with_bits(columns: dict[str, np.ndarray], segment: np.ndarray | None) -> dict[str, np.ndarray]:
    """Rates in bit/s too, as everywhere else: of packets with their size, of bytes in their place."""
    found: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        if name == "rate_bytes_per_s":
            if segment is not None:
                found["rate_packets_per_s"] = column / segment
            found["rate_bps"] = BITS * column
        elif name == "rate_packets_per_s" and segment is not None:
            found |= {name: column, "rate_bps": BITS * segment * column}
        else:
            found[name] = column
    return found


HEADS = {
    "rtt_s": "RTT",
    "base_rtt_s": "base RTT",
    "rto_s": "RTO",
    "w_max_packets": "W_max",
    "packets_per_ack": "packets per ACK",
    "rate_packets_per_s": "packets/s",
    "capacity_packets_per_s": "capacity",
}


def _head(key: str) -> str:
    for end in ("_bps", "_bytes", "_packets", "_s"):
        if key not in HEADS and key.endswith(end):
            return key.removesuffix(end).replace("_", " ")
    return HEADS.get(key, key)


def _text(key: str, value: float) -> str:
    if key == "capacity_packets_per_s":
        return f"{value:.6g} packets/s"
    if key.endswith("_bytes"):
        return f"{value:g} B"
    if key.endswith("_bps") or (key.endswith("_s") and not key.endswith("_per_s")):
        return show.quantity(key, value)
    return f"{value:.4g}"


def _draw(answer: Answer, target: Path) -> None:
    from paceline.plots import curves, save

    form = target.suffix.lstrip(".").lower()
    if form not in FORMATS:
        raise PacelineError(f"--plot {target}: its name must end in .{', .'.join(FORMATS)}")
    arguments = _with_bits(dict(answer.arguments), None)
    several = [key for key, column in arguments.items() if len(set(column)) > 1]
    if not several:
        raise PacelineError("a figure wants several values of some argument, such as --p 0.001..0.1")
    result = next((r for r in ("rate_bps", *answer.results) if r in answer.results), "rate_bps")
    x, by = several[0], several[1:]
    names = [
        ", ".join(f"{_head(key)} {_text(key, arguments[key][i])}" for key in by)
        for i in range(len(arguments[x]))
    ]
    drawn = curves.figure(
        curves.Axis(_head(x), x, arguments[x]),
        curves.Axis(_head(result), result, answer.results[result]),
        names,
        f"{answer.model['summary']}\n{answer.model['source']}",
    )
    for path in save(drawn, target.with_suffix(""), (form,)):
        print(path)
