"""`paceline path`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline import files
from paceline.cli import completing, documents
from paceline.cli.options import Set, span
from paceline.cli.unwritten import measured
from paceline.emulator import fitting
from paceline.errors import PacelineError, PathError
from paceline.quantities import quantity
from paceline.scenarios.examples import free
from paceline.scenarios.scenario import assignments
from paceline.tables import layout
from paceline.tables.layout import Column, Layout

if TYPE_CHECKING:
    from paceline.emulator import paths


REASONS = (
    "overflow",
    "policed",
    "early",
    "forced",
    "delay",
    "loss",
    "outage",
    "corrupt",
    "malformed",
    "memory",
    "device",
)
"""Reasons for drops, in a table's order; others follow."""


def path(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PROFILE|FILE",
            autocompletion=completing.profile,
            help="A profile (--list), a path file (TOML), or trace:UP,DOWN.",
            show_default=False,
        ),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND...", help="Program to run at the near end.", show_default=False),
    ] = None,
    far: Annotated[
        str | None,
        typer.Option(
            "--far",
            metavar="COMMAND",
            help="Shell command to run at the far end; host: the far end is this host. Default: none; the far end "
            "answers pings.",
            show_default=False,
        ),
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="SPAN", help="End COMMAND after this time.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="N", help="Seed of the path. Default: the file's.", show_default=False
        ),
    ] = None,
    set_: Set = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for tables, queues and delays over time, and the far command's output.",
            show_default=False,
        ),
    ] = None,
    pcap: Annotated[
        Path | None,
        typer.Option(
            "--pcap",
            metavar="FILE",
            help="Write the packets at both ends to this file (pcapng).",
            show_default=False,
        ),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm",
            autocompletion=completing.law,
            metavar="NAME",
            help="Lower TCP's windows as an access point before the queue towards COMMAND: voap, "
            "sap-law,capacity=RATE or window=SIZE; with settings: voap,beta=20ms.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="KIND",
            help="tun; packet (veth and packet sockets); any: tun if available.",
        ),
    ] = "any",
    fit: Annotated[
        Path | None,
        typer.Option(
            "--fit",
            metavar="FILE",
            help="Print a path file of the network that FILE was recorded on (with --out: write it). FILE is a "
            "capture of TCP at one end, or the output of ping, iperf3 -J or irtt -o.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="With --fit: replace an existing file.")] = False,
    ipv4: Annotated[
        bool, typer.Option("--ipv4", help="IPv4 only, for programs that try IPv6 first.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON document instead of tables; on stderr, except with --list."
        ),
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the profiles.")] = False,
    shown: Annotated[
        str | None,
        typer.Option(
            "--show",
            metavar="PROFILE",
            help="Print a profile's file.",
            show_default=False,
            autocompletion=completing.profile,
        ),
    ] = None,
) -> None:
    """Run a program over an emulated path, in real time.

    COMMAND and the program at the far end run in separate network namespaces, joined by a path made of the
    simulator's links. Their environment has PACELINE_PEER, the other end's address (198.18.0.2 for COMMAND);
    PACELINE_PEER6, its IPv6 address (fdac:e11e::2); and PACELINE_START, the time of day at which the path's clock
    began.

    COMMAND keeps its output and exit code. A report on the path follows on stderr.

    \b
    Examples:
      paceline path --list
      paceline path --show umts > mine.toml
      paceline path wide-area -- ping -c 3 198.18.0.2
      paceline path umts --far "iperf3 -s -1" --out out/umts -- \\
          iperf3 -c 198.18.0.2 -C cubic -R -t 3
      paceline path lte --set link.bottleneck.delay=80ms --for 2s -- \\
          ping 198.18.0.2
      paceline path wide-area -- ping -c 3 198.18.0.2 > ping.txt
      paceline path --fit ping.txt --out fitted.toml
    """
    from paceline.emulator import paths

    of_run = {
        "PROFILE": path,
        "COMMAND": command,
        "--far": far,
        "--for": for_,
        "--seed": seed,
        "--set": set_,
        "--pcap": pcap,
        "--algorithm": algorithm,
        "--device": device != "any",
        "--ipv4": ipv4,
    }
    if listing:
        _alone("--list", of_run | {"--out": out, "--fit": fit, "--force": force, "--show": shown})
        _list(as_json=as_json)
        return
    if shown is not None:
        _alone("--show", of_run | {"--out": out, "--fit": fit, "--force": force, "--json": as_json})
        print(_profile(shown), end="")
        return
    if fit is not None:
        _alone("--fit", of_run | {"--json": as_json})
        _fit(fit, out, force=force)
        return
    if force:
        raise PacelineError("--force needs --fit: leave it out")
    if path is None:
        raise PacelineError("which path? `paceline path --list` has the profiles")
    if not command:
        raise PacelineError(
            f"give a command to run over the path, as in `paceline path {path} -- ping -c 3 198.18.0.2`"
        )
    if device not in ("any", "tun", "packet"):
        raise PacelineError(f"--device {device}: must be any, tun or packet")
    ran, failed = measured(
        lambda: paths.path(
            path,
            command,
            far=far,
            device=device,  # type: ignore[arg-type] # checked above
            ipv4=ipv4,
            for_s=None if for_ is None else span(for_, "--for"),
            seed=seed,
            set=assignments(set_ or []),
            out=out,
            pcap=pcap,
            algorithm=algorithm,
        )
    )
    _report(ran, as_json=as_json, out=None if failed else out, pcap=pcap)
    if failed is not None:
        raise failed
    failure = ran.report.get("failure")
    if failure:
        raise PathError(f"the path ended early: {failure}")
    code = 0 if ran.report["limited"] and ran.status in (128 + 15, 128 + 9) else ran.status
    if code:
        raise typer.Exit(code)


def _alone(option: str, others: Mapping[str, object]) -> None:
    """Raises PacelineError for arguments that an option does not use."""
    given = [name for name, value in others.items() if value is not None and value is not False]
    if given:
        raise PacelineError(f"{option} runs nothing over a path: leave out {', '.join(given)}")


def _fit(recording: Path, out: Path | None, *, force: bool) -> None:
    """Prints the path file of a recording, or writes it."""
    if out is not None:
        free(out, force=force)
    text = fitting.fit(recording)
    if out is None:
        print(text, end="")
        return
    files.write_whole(out, text)
    layout.say(layout.stdout(), f"Written to {out}.")


def _list(*, as_json: bool) -> None:
    from rich.text import Text

    from paceline.emulator import paths

    if as_json:
        listed = [{"name": name, "summary": summary} for name, (summary, _) in paths.profiles().items()]
        print(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    console = layout.stdout()
    table = layout.plain()
    for head in ("profile", "what"):
        table.add_column(head, overflow="fold")
    for name, (summary, _) in paths.profiles().items():
        table.add_row(name, Text(summary))
    console.print(table)


def _profile(name: str) -> str:
    from paceline.emulator import paths

    known = paths.profiles()
    if name not in known:
        raise PacelineError(f'there is no profile "{name}"; there are {", ".join(known)}')
    return known[name][1]


def _report(ran: paths.PathRun, *, as_json: bool, out: Path | None, pcap: Path | None) -> None:
    """Prints the path's report on stderr, because stdout is COMMAND's."""
    from paceline.tables import summaries

    if as_json:
        (summary,) = ran.results.summaries
        documents.say({**summary, "versions": files.versions()}, sys.stderr)
        return
    console = layout.stderr()
    if not console.is_terminal:
        console = layout.stderr(layout.stdout().width)
    report = ran.report
    layout.say(console, f"\n{headline(report)}\n\n")
    layout.show(console, [*directions(report), *summaries.tables(ran.results), emulator(report)])
    for note in notes(report):
        layout.say(console, f"\n{note}")
    if out:
        layout.say(console, f"\nWritten to {out}.")
    if pcap:
        layout.say(console, f"\nPackets written to {pcap}.")


def headline(report: Mapping[str, Any]) -> str:
    """One line that summarises the run."""
    lasted = quantity("duration_s", report["duration_s"])
    how = "ended after its time" if report["limited"] else f"exit code {report['status']}"
    return f"{report['name']}: seed {report['seed']}, {lasted}, {how}"


def directions(report: Mapping[str, Any]) -> list[Layout]:
    """The fate of the packets of each direction."""
    rows = report["directions"]
    reasons = [r for r in REASONS if any(row["drops"].get(r) for row in rows)]
    reasons += sorted({r for row in rows for r, n in row["drops"].items() if n} - {*REASONS})
    rates = [row["delivered_bytes"] * 8 / report["duration_s"] for row in rows]
    columns = [
        Column("direction", [row["direction"] for row in rows], right=False, repeat=True),
        Column("packets", [str(row["entered"]) for row in rows]),
        Column("delivered", [str(row["delivered"]) for row in rows]),
        *(Column(reason, [str(row["drops"].get(reason, 0)) for row in rows]) for reason in reasons),
        Column("rate", [quantity("rate_bps", rate) for rate in rates]),
        Column("delay", [_delay(row, "p50_s") for row in rows]),
        Column("delay 99 %", [_delay(row, "p99_s") for row in rows]),
    ]
    return [Layout("Path (delay: median)", columns)]


def _delay(row: Mapping[str, Any], measure: str) -> str:
    """A direction's delay; empty if nothing was delivered."""
    return quantity(measure, row["delay"][measure] if row["delivered"] else None)


def emulator(report: Mapping[str, Any]) -> Layout:
    """The emulator's accuracy."""
    lag = report["lag"]
    names = (("lag", "p50_s"), ("lag 99 %", "p99_s"), ("lag worst", "max_s"))
    columns = [
        *(Column(name, [quantity(key, lag[key] if lag["count"] else None)]) for name, key in names),
        Column("steal", [quantity("share", report["host"]["steal_share"])]),
        Column("devices", ["/".join(dict.fromkeys(report["devices"]))]),
    ]
    return Layout("Emulator (lag: how late packets left, median)", columns)


def notes(report: Mapping[str, Any]) -> list[str]:
    """Notes for the reader."""
    from paceline.emulator import paths

    found = []
    if report["far_status"] is not None:
        found.append(f"The far command ended before COMMAND, with exit code {report['far_status']}.")
    reasons = dict.fromkeys(entry["why"] for entry in report["without"])
    found += [f"Note: {why}." for why in reasons]
    lost = sum(report["lost_before"])
    if lost:
        found.append(
            f"Note: the kernel dropped {lost} packets before the emulator read them: it was too slow."
        )
    capture = report.get("capture") or {}
    if capture.get("missing"):
        found.append(
            f"Note: {capture['missing']} packets are missing from the capture: the disk was too slow."
        )
    if capture.get("failure"):
        found.append(f"Note: the capture is not whole: {capture['failure']}.")
    point = report.get("access_point")
    if point:
        mean = quantity("delay_s", point["delay_mean_s"])
        found.append(
            f"The access point lowered {point['lowered']} windows of {point['most_flows']} flows; longest waits {mean} "
            "in the mean."
        )
    if report["host"]["steal_share"] > paths.STEAL:
        found.append(
            "Note: others took more than 1 % of the processors' time: what was measured is inconclusive."
        )
    lag = report["lag"]
    if lag["count"] and lag["p50_s"] > paths.LATE_S:
        found.append(
            f"Note: half of the packets left more than {quantity('p50_s', lag['p50_s'])} late: this host is too "
            "busy for the path, or idle states wake it late."
        )
    elif lag["count"] and lag["p99_s"] > max(paths.LATE_S, paths.LATE_SHARE * _unloaded(report)):
        found.append(
            f"Note: 1 % of the packets left more than {quantity('p99_s', lag['p99_s'])} late, on a path that "
            f"takes {quantity('delay_min_s', _unloaded(report))} without load: delays and their variation are "
            "this host's too. End what else runs here, or begin as root with `chrt -f 1` before `paceline`."
        )
    return found


def _unloaded(report: Mapping[str, Any]) -> float:
    """The path's one-way delay without load, in seconds: the minimum of any packet, in the shorter direction."""
    delays = [row["delay_min_s"] for row in report["directions"] if row["delay_min_s"] is not None]
    return min(delays, default=0.0)
