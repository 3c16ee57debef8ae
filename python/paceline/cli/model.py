"""`paceline model`: throughput models as tables, JSON and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline import _core
from paceline.cli.model_notation import OPTIONS, head_of, list_of, text_of
from paceline.errors import PacelineError
from paceline.tables import layout

if TYPE_CHECKING:
    from paceline.cli.model_evaluation import Answer


def _values(metavar: str, text: str) -> Any:
    return typer.Option(metavar=metavar, help=text, show_default=False)


def model(
    name: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="Model: see --list.", show_default=False)
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
    """Compute the throughput that models predict: Reno, Veno, TFRC, TFRC Veno, Vegas.

    A LIST is values between commas, LOW..HIGH for 25 values evenly spaced on a
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
    from paceline.cli.model_evaluation import Answer

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
    given = {key: list_of(OPTIONS[key], text) for key, text in texts.items() if text is not None}
    answer = Answer.of(known[name], given)
    if plot is not None:
        _draw(answer, plot)
    elif as_json:
        print(json.dumps(answer.as_json(), indent=2, ensure_ascii=False))
    else:
        answer.print()


def _list(as_json: bool) -> None:
    from rich.text import Text

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
    return (
        f" (default {text_of(argument['name'], default) if isinstance(default, float) else '4 round trips'})"
    )


def _draw(answer: Answer, target: Path) -> None:
    from paceline.cli.model_evaluation import with_bits
    from paceline.plots import curves, save
    from paceline.plots.style import FORMATS

    form = target.suffix.lstrip(".").lower()
    if form not in FORMATS:
        raise PacelineError(f"--plot {target}: its name must end in .{', .'.join(FORMATS)}")
    arguments = with_bits(dict(answer.arguments), None)
    several = [key for key, column in arguments.items() if len(set(column)) > 1]
    if not several:
        raise PacelineError("a figure needs several values of some argument, such as --p 0.001..0.1")
    result = next((r for r in ("rate_bps", *answer.results) if r in answer.results), "rate_bps")
    x, by = several[0], several[1:]
    names = [
        ", ".join(f"{head_of(key)} {text_of(key, arguments[key][i])}" for key in by)
        for i in range(len(arguments[x]))
    ]
    drawn = curves.figure(
        curves.Axis(head_of(x), x, arguments[x]),
        curves.Axis(head_of(result), result, answer.results[result]),
        names,
        f"{answer.model['summary']}\n{answer.model['source']}",
    )
    for path in save(drawn, target):
        print(path)
