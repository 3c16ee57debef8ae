"""`paceline trace`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli import documents
from paceline.cli.options import AsJson, span
from paceline.errors import PacelineError
from paceline.quantities import quantity
from paceline.tables import layout

if TYPE_CHECKING:
    from paceline.scenarios.rate_traces import Trace

_BARS = " ▁▂▃▄▅▆▇█"


def trace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Trace file.", show_default=False)],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="F",
            help="mahimahi, seconds-mbit, csv, json or iperf3. Default: detected.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        str,
        typer.Option(
            "--every",
            metavar="SPAN",
            help="Interval over which rates are averaged. Default: a sixtieth of the trace, at least 1s.",
            show_default=False,
        ),
    ] = "",
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="F", help="Convert it to csv or mahimahi.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Output file. Default: stdout.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw the trace to this file (.svg, .png, .pdf).",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a trace of rates (length, mean, minimum and maximum), or convert it.

    It reads what `rate_trace` reads: mahimahi's opportunities, lines of seconds and Mbit/s, tables whose header names
    columns and units, JSON of players' simulators and of iperf3, and iperf3's text.

    \b
    Examples:
      paceline trace examples/traces/cell.down
      paceline trace examples/traces/cell-up.txt --to mahimahi --out out/cell.up
      paceline trace examples/traces/cell.down --plot out/cell.svg
    """
    from paceline import files
    from paceline.scenarios import rate_traces

    if to is None and out is not None:
        raise PacelineError(f"--out {out}: it needs --to, csv or mahimahi")
    if to is not None and to not in rate_traces.WRITTEN:
        raise PacelineError(f"--to {to}: must be {' or '.join(rate_traces.WRITTEN)}")
    found = rate_traces.read(file, format_)
    step = span(every, "--every") if every else None
    if step is not None and not found.lasts_s / 1e6 <= step <= found.lasts_s:
        raise PacelineError(
            f"--every {every}: must be from a millionth of the trace's {found.lasts_s:g} s to all of it"
        )
    if to is not None:
        try:
            text = rate_traces.as_csv(found, step) if to == "csv" else rate_traces.as_mahimahi(found)
        except PacelineError as error:
            raise PacelineError(f"{file}: {error}") from None
        if out is None:
            print(text, end="")
            return
        files.make_directory(out.parent)
        files.write_whole(out, text)
    if plot is not None:
        _draw(found, step or found.step_s(), plot)
    _say(file, found, step or found.step_s(), as_json=as_json)
    if not as_json:
        for written in (out, plot):
            if written is not None:
                layout.say(layout.stdout(), f"\nWritten to {written}.")


def _say(file: Path, found: Trace, step_s: float, *, as_json: bool) -> None:
    """Prints the trace, as a table and bars, or as JSON."""
    rates = found.rates_bps(step_s)
    entry: dict[str, Any] = {
        "file": str(file),
        "format": found.format,
        "duration_s": found.lasts_s,
        "mean_bps": found.mean_bps,
        "min_bps": float(rates.min()),
        "max_bps": float(rates.max()),
        "every_s": step_s,
    }
    if len(found.latencies_s):
        entry["latency_mean_s"] = float(found.latencies_s.mean())
    if as_json:
        documents.say(entry | {"rates_bps": rates.tolist()})
        return
    console = layout.stdout()
    layout.say(
        console,
        f"{file.name}: {found.format}, {quantity('duration_s', found.lasts_s)}; rates over "
        f"{quantity('every_s', step_s)}\n\n",
    )
    columns = [
        layout.Column(head, [quantity(key, entry[key])])
        for head, key in (("mean", "mean_bps"), ("least", "min_bps"), ("greatest", "max_bps"))
    ]
    if "latency_mean_s" in entry:
        columns.append(layout.Column("latency", [quantity("latency_mean_s", entry["latency_mean_s"])]))
    layout.show(console, [layout.Layout("Trace", columns)])
    layout.say(console, f"\n{_bars(rates.tolist(), console.width)}")


def _bars(rates: list[float], width: int) -> str:
    """A bar for each rate, or for the mean of several, scaled to the maximum."""
    many = -(-len(rates) // max(1, width - 1))
    means = [sum(rates[at : at + many]) / len(rates[at : at + many]) for at in range(0, len(rates), many)]
    maximum = max(means)
    return "".join(_BARS[round(rate / maximum * 8) if maximum > 0 else 0] for rate in means)


def _draw(found: Trace, step_s: float, to: Path) -> None:
    import matplotlib as mpl

    from paceline.plots.style import RC, Shown, line_of, save

    rates = found.rates_bps(step_s)
    edges = [min(found.lasts_s, step_s * number) for number in range(len(rates) + 1)]
    with mpl.rc_context(RC):
        figure = Shown(figsize=(6.4, 2.6), layout="constrained")
        axes = figure.add_subplot()
        axes.stairs(rates / 1e6, edges, baseline=None, color=line_of(0)["color"])
        axes.set(xlabel="time (s)", ylabel="rate (Mbit/s)", xlim=(0, found.lasts_s))
        axes.set_ylim(bottom=0)
        save(figure, to)
