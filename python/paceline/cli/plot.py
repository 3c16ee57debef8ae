"""`paceline plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli import completing
from paceline.cli.options import kinds
from paceline.errors import PacelineError
from paceline.results.recordings import GAUGES, SERIES
from paceline.tables import layout

if TYPE_CHECKING:
    from paceline.plots.occupancy import Histogram
    from paceline.results.results import Results


def plot(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Run directories (--out of run, sweep or watch), QUIC logs (qlog, also .gz) or folders of them, "
            "or files of gateway --out. With --y: a sweep's directory.",
            show_default=False,
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            autocompletion=completing.recorded,
            metavar="KIND,...",
            help="cwnd, rate, rtcp, sequence, losses, acks, tfrc, kernel, qlog, queue, playout, arrivals, frames, "
            "airtime, windows, gauges, occupancy. Default: all that were recorded.",
            show_default=False,
        ),
    ] = "",
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="The run with this seed. Default: the first run.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Name of the figure. A suffix .svg, .png or .pdf selects the format; without one, SVG and PNG. "
            "Default: in RUN; for logs, in the current folder.",
            show_default=False,
        ),
    ] = None,
    y: Annotated[
        str,
        typer.Option(
            "--y",
            autocompletion=completing.measure,
            metavar="MEASURE,...",
            help="Draw these measures of a sweep, such as goodput_bps or queues.mean_packets, over the varied "
            "values; a panel each.",
            show_default=False,
        ),
    ] = "",
    x: Annotated[
        str | None,
        typer.Option(
            "--x",
            autocompletion=completing.axis,
            metavar="PATH",
            help="Horizontal axis: a varied path or its last part, flow, link or group. Default: the first varied "
            "path with quantities.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            autocompletion=completing.axes,
            metavar="PATH,...",
            help="A curve for each value of these paths; other paths get panels. Default: all paths but --x.",
            show_default=False,
        ),
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option(
            "--flow",
            metavar="NAME,...",
            help="Only these flows; one instance of several: web[3].",
            show_default=False,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="OLD=NEW",
            help="Print NEW for a value, a flow, a measure or a path of a sweep; repeatable.",
            show_default=False,
        ),
    ] = None,
    xlabel: Annotated[
        str,
        typer.Option(
            "--xlabel",
            metavar="TEXT",
            help="Name of the horizontal axis; its unit follows.",
            show_default=False,
        ),
    ] = "",
    width: Annotated[
        str | None,
        typer.Option(
            "--width",
            metavar="WIDTH",
            help="column (3.5 in), page (7.16 in), or a length such as 4in or 10cm. Default: column.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Plot what runs recorded over time, or what a sweep measured.

    Without --y: a figure per kind of recording with a panel per run, the controllers' internal values (gauges), and how
    full queues were (occupancy). With --y: a measure of a sweep over the values that it varied.

    \b
    Examples:
      paceline run examples/coffee-shop.toml --record cwnd,queue --out out/coffee
      paceline plot out/coffee
      paceline plot out/coffee --kind cwnd --out cwnd.pdf
      paceline plot out/coffee --flow film
      paceline plot server.sqlog
      paceline sweep examples/coffee-shop.toml --runs 5 --out out/sweep \\
          --vary "link.bottleneck.delay=10 ms,50 ms" \\
          --vary flow.film.cc=newreno,vegas
      paceline plot out/sweep --y goodput_bps --flow film --out goodput.pdf
      paceline plot out/sweep --x delay --y rtt_p95_s --by cc --width page
      paceline plot out/sweep --y goodput_bps,rtt_mean_s --flow film \\
          --label "vegas=TCP Vegas" --xlabel "one-way delay"
    """
    from paceline.results.results import Results

    _refuse_others(runs)
    if y or x or by or width or label or xlabel:
        if kind or seed is not None or len(runs) > 1 or not y:
            raise PacelineError(
                "--y MEASURE draws a measure of one sweep, with --x, --by, --label, --xlabel and --width; --kind and "
                "--seed are for recordings"
            )
        _measures(runs[0], kinds(y), x, by, flow, _labels(label or []), xlabel, width, out)
        return

    from paceline.live.qlog import flow_of, is_log, qlog
    from paceline.plots import gateway, occupancy, recorded, save
    from paceline.plots.style import FORMATS, target

    files = [path for path in runs if path.is_file() and not is_log(path)]
    for path in files:
        named, forms = target(out) if out and len(runs) == 1 else (path.with_suffix(""), FORMATS[:2])
        for written in save(gateway.figure(gateway.read(path), path.name), named, forms):
            print(written)
    runs = [path for path in runs if path not in files]
    if not runs:
        return
    logs = [path for path in runs if _logs(path)]
    # All logs are one run, because they may share a clock.
    directories = {
        path: qlog(logs) if path in logs else Results.read(path) for path in runs if path not in logs[1:]
    }
    flows = kinds(flow or "")
    wanted = _figures_to_draw(directories, kinds(kind), flows, seed)
    if not wanted:
        if logs:
            raise PacelineError(f"{runs[0]} has no values over time")
        measures = next((f"; or draw a measure of {p}: --y" for p, r in directories.items() if r.axes), "")
        raise PacelineError(
            f"{runs[0]} recorded nothing over time: run with --record {','.join(SERIES)}{measures}"
        )
    # A folder of logs is shared with others' figures only if it has nothing else in it.
    beside = Path(flow_of(logs[0].resolve())) if runs[0] in logs else runs[0] / "plot"
    if flows:
        # beside the figures of all flows, not instead of them
        beside = beside.with_name("-".join([beside.name, *(name.replace("/", "-") for name in flows)]))
    base, formats = target(out) if out else (beside, FORMATS[:2])
    for name, own in wanted.items():
        if name == "occupancy":
            drawn = occupancy.figure(histograms(directories))
        else:
            drawn = recorded.figure(directories, name, seed, own)
        named = base if out and len(wanted) == 1 else base.with_name(f"{base.name}-{name}")
        for path in save(drawn, named, formats):
            print(path)


def _logs(path: Path) -> bool:
    """Whether it is a log, or a folder that is no run directory but has logs in it."""
    from paceline.files.file_kinds import is_run
    from paceline.live.qlog import is_log

    if not path.is_dir():
        return is_log(path)
    return not is_run(path) and any(map(is_log, path.iterdir()))


def _refuse_others(runs: list[Path]) -> None:
    """Raises PacelineError for scenarios, missing paths, and folders of neither a run nor logs."""
    from paceline.files.file_kinds import inside, is_run
    from paceline.live.qlog import is_log

    for path in runs:
        if path.suffix == ".toml":
            raise PacelineError(
                f"{path} is a scenario, and a plot needs recordings: `paceline run {path} --record cwnd "
                "--out DIR`, then `paceline plot DIR`"
            )
        if not path.exists() and not is_log(path):
            raise PacelineError(f"{path}: there is no such file or folder")
        if path.is_dir() and not is_run(path) and not _logs(path):
            near = inside(path, lambda one: is_run(one) or is_log(one))
            hint = f"; there are {near}" if near else " (`paceline run` makes one with --out)"
            raise PacelineError(f"the folder {path} is not a run directory, and has no log in it{hint}")


def _labels(given: list[str]) -> dict[str, str]:
    """The replacements of OLD=NEW. Raises PacelineError."""
    if wrong := [pair for pair in given if not pair.partition("=")[0] or "=" not in pair]:
        raise PacelineError(f'--label {wrong[0]}: write OLD=NEW, such as "vegas=TCP Vegas"')
    return {old: new for old, _, new in (pair.partition("=") for pair in given)}


def _measures(
    run: Path,
    measures: list[str],
    x: str | None,
    by: str | None,
    flow: str | None,
    labels: dict[str, str],
    xlabel: str,
    width: str | None,
    out: Path | None,
) -> None:
    """Draws measures of a sweep, and prints notes for the figure's caption."""
    from paceline.plots import chart, save, style, sweeps, wording
    from paceline.results.results import Results

    curves, flows = (None if text is None else kinds(text) for text in (by, flow))
    drawn = sweeps.charts(Results.read(run), measures, x, curves, flows, labels, xlabel)
    figure = chart.figure(drawn, width or "column")
    name = "-".join(one.measure for one in drawn)
    for path in save(figure, out or run / f"plot-{name}", dots_per_inch=style.PRINT_DOTS_PER_INCH):
        print(path)
    notes = dict.fromkeys(note for one in drawn for note in wording.notes(one))
    layout.say(layout.stdout(), "\n".join(notes))


def _figures_to_draw(
    directories: dict[Path, Results], named: list[str], flows: list[str], seed: int | None
) -> dict[str, list[str]]:
    """The kinds of figures to draw, those `named` or all that exist, each with its flows."""
    from paceline.plots import KINDS, occupancy, recorded

    known = (*KINDS, "gauges", "occupancy")
    unknown = [kind for kind in named if kind not in known]
    if unknown:
        raise PacelineError(f'no kind of figure "{unknown[0]}"; there are {", ".join(known)}')
    if named:
        if flows and "occupancy" in named:
            raise PacelineError("--flow: occupancy is about queues, not flows")
        return dict.fromkeys(named, flows)

    def own(*kinds: str) -> list[str]:
        """The flows of which every run recorded one of the kinds."""
        recorded_by = (
            (flow, [any(recorded.has_values(r, k, [flow]) for k in kinds) for r in directories.values()])
            for flow in flows
        )
        return [flow for flow, every in recorded_by if all(every)]

    every = {k: own(k) for k in KINDS if any(recorded.has_values(r, k) for r in directories.values())}
    found = {kind: mine for kind, mine in every.items() if mine or not flows}
    nowhere = [flow for flow in flows if not any(flow in mine for mine in found.values())]
    if every and nowhere:
        path, results = next(iter(directories.items()))
        raise PacelineError(
            f"--flow {nowhere[0]}: no recording has this flow; {path} has {recorded.listed(results.flows)}"
        )
    of_gauges = own(*GAUGES)
    if (of_gauges or not flows) and _has_gauges(directories, seed, of_gauges):
        found["gauges"] = of_gauges
    if not flows and any(occupancy.measured(r) for r in directories.values()):
        found["occupancy"] = []
    return found


def _has_gauges(directories: dict[Path, Results], seed: int | None, flows: list[str]) -> bool:
    """Whether all runs recorded gauges, one has a value, and there are few enough to lie side by side."""
    from paceline.plots.gauges import MAX_RUNS, gauges
    from paceline.plots.recorded import panels

    if not all(any(kind in GAUGES for kind in r.recorded()) for r in directories.values()):
        return False
    found = panels(directories, "gauges", seed, flows)
    # a receiver's log has no gauges
    return len(found) <= MAX_RUNS and bool(gauges(found))


def histograms(directories: dict[Path, Results]) -> list[Histogram]:
    """The histograms of all run directories, over all of their seeds."""
    from paceline.plots import occupancy

    several = len(directories) > 1
    label = {
        path: f"{results.manifest.get('name', path.name)} ({path})" for path, results in directories.items()
    }
    return [
        one
        for path, results in directories.items()
        for one in occupancy.histograms(results, label[path] if several else "")
    ]
