"""`paceline.send`: flows of Paceline's controllers, UDP and the kernel's TCP between this host and a server."""

from __future__ import annotations

import ipaddress
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from paceline import _core, files, own_controllers
from paceline.arguments import checked
from paceline.errors import LiveError, PacelineError, ScenarioError, StorageError
from paceline.live import linux, rtp
from paceline.live.keys import read_key
from paceline.live.real_runs import kept, live_record, live_results
from paceline.messages.argument_names import meant, option
from paceline.results.recordings import PORT
from paceline.results.results import Results
from paceline.results.store import claim
from paceline.scenarios.scenario import toml_value

QUIC = "quic://"
"""The prefix of a server for flows over QUIC."""
KERNEL = "kernel:"
"""The prefix of the kernel's congestion controls."""

_POLL_S = 0.5

_Flow = tuple[str, int, list[tuple[str, str]], int, int, bool, str | None, str | None]
"""A flow as the core takes it."""

View = Callable[[list[dict[str, Any]]], None]
"""Called twice a second with each flow's state: flow, instance, forward, time_s, packets, bytes, rtt_s, figure, ..."""


_PLACE = re.compile(r"(?:\[(?P<six>[^\]\s]+)\]|(?P<name>[^:/\s\[\]]+))(?::(?P<port>\d{1,9}))?")


def place(host: str, port: int = PORT) -> tuple[str, int]:
    """Host and port of HOST, HOST:PORT, [IPV6]:PORT or an IPv6 address; `port` is the separate argument. Raises
    PacelineError."""
    found = _PLACE.fullmatch(host)
    if found is None and not _is_ipv6(host):
        raise PacelineError(
            f"{host!r} must be HOST, HOST:PORT or [IPV6]:PORT, optionally after quic://, or rtp://HOST:PORT"
        )
    name, within = (host, None) if found is None else (found["six"] or found["name"], found["port"])
    number = port if within is None else int(within)
    if within is not None and port not in {PORT, number}:
        raise PacelineError(f"{host} and {option('port', port)}: give only one of them")
    if not 1 <= number <= 65_535:
        raise PacelineError(f"{host}: port {number} must be 1 to 65535")
    return name, number


def _is_ipv6(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).version == 6
    except ValueError:
        return False


def controller_of(cc: str) -> str:
    """The name of a registered controller, without the "tcp-" or "TCP/" of papers and ns-2; "kernel:NAME" unchanged.
    Raises PacelineError."""
    if cc.startswith(KERNEL) or own_controllers.is_own(cc):
        return cc
    known: list[str] = [entry["name"] for entry in json.loads(_core.schemes())]
    plain = re.sub(r"^tcp[-/]", "", cc.lower().replace("_", "-"))
    for name in (cc, plain):
        if name in known:
            return name
    raise PacelineError(
        f"there is no controller {cc}{meant(plain, known)}; `paceline controllers` lists those there are, and "
        "kernel:NAME is a congestion control of the kernel's TCP"
    )


@checked()
def send(
    host: str,
    cc: str = "newreno",
    *,
    duration_s: float = 10.0,
    direction: str = "forward",
    flows: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    app: str | None = None,
    rate: str | None = None,
    max_rate: str | None = None,
    port: int = PORT,
    seed: int | None = None,
    key_file: str | Path | None = None,
    log_events: str | Path | None = None,
    qlog: str | Path | None = None,
    out: str | Path | None = None,
    view: View | None = None,
) -> Results:
    """Sends to `paceline serve` on `host` for `duration_s` seconds, or from there (`direction` "reverse"), or both.

    `host` may include its port (HOST:PORT, [IPV6]:PORT), and begin with "quic://" for flows over QUIC, each with its
    own connection, under any controller that sets a window. `cc` is one of `paceline.controllers()`, also with "tcp-"
    before it, or "kernel:NAME" for a congestion control of the kernel's TCP. `set` replaces keys of the flow's table in
    a scenario ("params.c", "profile"), `app` names its application, `rate` is that of "udp". A `host`
    "rtp://HOST:PORT" is a receiver of plain RTP instead of `paceline serve` (`rtp.Receiver`): it takes one flow of
    lda-plus, or of a media controller if it reports arrivals, no faster than `max_rate`; only its reports tell about
    the receiving side.

    Ctrl-C ends the flows, and the result is what they have measured; the manifest's `interrupted` says so, and its
    `notes` tell how each flow ended. `log_events` is a folder for the flows' event logs, which `paceline.replay` runs
    again; over QUIC, only of flows that are sent from here. `qlog`, a new or empty folder, gets a log of each QUIC
    connection as seen from this end, for `paceline.qlog`. With `out` all results are also written there.

    Raises LiveError, NeedsLinux, PacelineError, ScenarioError, StorageError.
    """
    linux.needed("sending over a network")
    if direction not in ("forward", "reverse", "both"):
        raise PacelineError(f'direction "{direction}" must be forward, reverse or both')
    if not 1 <= flows <= 32:
        raise PacelineError(f"{flows} flows: must be 1 to 32 each way")
    if not 0.001 <= duration_s <= 864_000:
        raise PacelineError(f"{duration_s:g} s: a flow must last 1 ms to ten days")
    with claim(out, "live"):
        _make_folders(host, direction, log_events, qlog)
        key = None if key_file is None else read_key(Path(key_file))
        controller = controller_of(cc)
        first = secrets.randbits(62) if seed is None else seed
        logs = None if log_events is None else str(log_events)
        watch, over_quic = _core.SendWatch(), False
        if host.startswith(rtp.SCHEME):
            plain = direction == "forward" and flows == 1 and key is None and port == PORT
            set = rtp.limits(rtp.Receiver.parse(host), controller, max_rate, app, set, plain=plain)  # noqa: A001
        else:
            over_quic = host.startswith(QUIC)
            host, port = _server(host.removeprefix(QUIC), port, max_rate)
        _check_transport(host, set or {}, over_quic=over_quic)
        settings = _settings(controller, set, app, rate)
        if over_quic:
            settings.append(("transport", "quic"))
        requested = _flows(controller, settings, direction, flows, duration_s, first)
        schemes = [own_controllers.load(controller)] if own_controllers.is_own(controller) else []
        if over_quic:
            _check_carried(controller, requested[0], schemes)
        if schemes and direction != "forward":
            raise PacelineError(
                f"{controller} can only run on this host: the server sends with built-in controllers only"
            )
        work = _work(host, port, requested, watch, key, logs, schemes, None if qlog is None else str(qlog))
        try:
            output, notes, interrupted = attended(work, watch, view)
        except ScenarioError as error:
            raise ScenarioError(_at_options(str(error), app, rate)) from None
        record = live_record(output)
        more = {
            "host": host,
            "port": port,
            "cc": controller,
            "direction": direction,
            "seed": first,
            "interrupted": interrupted,
            "notes": json.loads(notes),
        }
        way = f"{'over QUIC ' if over_quic else ''}{'and '.join(_words(direction))}"
        results = live_results([record], "live", f"{controller} {way}{host}", more)
        kept(results, out)
        return results


def attended(
    work: Callable[[], tuple[_core.RunOutput, str]],
    watch: _core.SendWatch | _core.ListenWatch,
    view: View | None,
) -> tuple[_core.RunOutput, str, bool]:
    """Does the work in a thread, shows its state meanwhile, and stops it on Ctrl-C; returns its result, and whether it
    was stopped."""
    interrupted = False
    with ThreadPoolExecutor(1, "paceline-flows") as threads:
        done = threads.submit(work)
        while not done.done():
            try:
                wait([done], _POLL_S)
                if view is not None:
                    view(json.loads(watch.shown_json()))
            except KeyboardInterrupt:
                interrupted = True
                watch.stop()
    output, notes = done.result()
    return output, notes, interrupted


def cut_logs(notes: Mapping[str, Any]) -> list[str]:
    """The flows in `notes` whose log is incomplete, and why."""
    return [
        f"The log of {flow['flow']}[{flow['instance']}] ends before it: {flow['log_cut']}."
        for flow in notes["flows"]
        if "log_cut" in flow
    ]


def _check_transport(host: str, changes: Mapping[str, Any], *, over_quic: bool) -> None:
    """Raises PacelineError if `set` contradicts the prefix of `host`, which decides whether flows go over QUIC, or
    wants something that no real QUIC connection supports."""
    transport = changes.get("transport")
    if over_quic and transport not in (None, "quic"):
        raise PacelineError(
            f"{option('set')} transport: {QUIC}HOST already selects QUIC: leave out one of them"
        )
    if not over_quic and transport == "quic":
        raise PacelineError(f"{option('set')} transport: put {QUIC} before {host} for flows over QUIC")
    bundle = next((key for key in changes if key.split(".")[0] == "bundle"), None)
    if over_quic and bundle is not None:
        raise PacelineError(
            f"{option('set')} {bundle}: flows cannot share a QUIC connection in real time: leave it out, and each has "
            "its own connection and controller; `paceline run` simulates flows that share one"
        )


def check_flows(flows: Sequence[_Flow], schemes: Sequence[_core.Scheme]) -> None:
    """Raises PacelineError for what flows between hosts do not support. Kernel flows are not checked."""
    for flow in flows:
        name, instance, *_, kernel, _ = flow
        if instance == 0 and kernel is None:  # other instances are the same
            for key, mistake in _core.live_mistakes(flow, list(schemes)):
                raise PacelineError(f"flow.{name}.{key}: {mistake}")


def _check_carried(controller: str, flow: _Flow, schemes: list[_core.Scheme]) -> None:
    """Raises PacelineError for a controller that real QUIC does not support."""
    if controller.startswith(KERNEL):
        why = "is the kernel's TCP, which does not go over QUIC"
    else:
        mistakes = dict(_core.live_mistakes(flow, schemes))
        if "transport" in mistakes:
            why = "sets no window, by which QUIC sends"
        elif "cc" in mistakes:
            why = mistakes["cc"].removesuffix(": choose another")
        else:
            return
    raise PacelineError(f"{option('cc')}: {controller} {why}; {QUIC}HOST takes {', '.join(_carried())}")


def _carried() -> list[str]:
    """The controllers that real QUIC supports."""
    names: list[str] = [entry["name"] for entry in json.loads(_core.schemes())]
    return [
        name
        for name in names
        if not _core.live_mistakes(
            _flows(name, [("cc", name), ("transport", "quic")], "forward", 1, 1.0, 1)[0]
        )
    ]


def _server(host: str, port: int, max_rate: str | None) -> tuple[str, int]:
    if max_rate is not None:
        raise PacelineError(
            f"{option('max_rate')} is for rtp://HOST:PORT; `paceline serve --max-rate` sets a server's"
        )
    return place(host, port)


def _at_options(text: str, app: str | None, rate: str | None) -> str:
    """Mistakes in a flow's table, attributed to the options that set its keys."""
    options = {"cc": option("cc"), "for": option("duration_s"), "": ""}
    if app is not None:
        options |= dict.fromkeys(("app", "app.kind"), option("app"))
    if rate is not None:
        options |= dict.fromkeys(("app", "app.rate"), option("rate"))

    def said(found: re.Match[str]) -> str:
        key = found["key"] or found["own"] or ""
        where = options.get(key, f"{option('set')} {key}")
        return f"{where}: " if where else ""

    keys = r"(?:(?:flow\.live(?:\.(?P<key>[^:\s]+))?|(?P<own>cc|for|profile|count|app)): )?"
    return re.sub(rf"^live(?::\d+)*: {keys}", said, text, flags=re.MULTILINE)


def _work(
    host: str,
    port: int,
    wanted: list[_Flow],
    watch: _core.SendWatch,
    key: bytes | None,
    logs: str | None,
    schemes: list[_core.Scheme],
    qlogs: str | None,
) -> Callable[[], tuple[_core.RunOutput, str]]:
    """The function that sends the flows to their end."""
    if host.startswith(rtp.SCHEME):
        receiver = rtp.Receiver.parse(host).ports()
        return lambda: _core.send_rtp(receiver, wanted[0], watch, logs, schemes)
    return lambda: _core.send(host, port, wanted, watch, key, logs, schemes=schemes, qlogs=qlogs)


def _make_folders(host: str, direction: str, log_events: str | Path | None, qlog: str | Path | None) -> None:
    """Creates the folders of event logs and of QUIC logs. Raises PacelineError if there would be no logs."""
    if log_events is not None:
        if host.startswith(QUIC) and direction == "reverse":
            raise PacelineError(
                f"{option('log_events')} logs the events of the controller at the flow's sender, which is the server "
                "here: send from here, or both ways"
            )
        files.make_directory(Path(log_events))
    if qlog is not None:
        if not host.startswith(QUIC):
            instead = "leave it out" if "://" in host else f"put {QUIC} before {host}, or leave it out"
            raise PacelineError(f"{option('qlog')}: only connections over QUIC are logged: {instead}")
        for_logs(Path(qlog))


def for_logs(folder: Path, *, shared: bool = False) -> Path:
    """The folder of QUIC logs, created if necessary. Raises PacelineError if it has other files, unless it is `shared`,
    or if it cannot be created."""
    if folder.exists() and not folder.is_dir():
        raise PacelineError(f"{option('qlog')}: {folder} is a file, and logs go to a folder")
    try:
        files.make_directory(folder)
    except StorageError as error:
        raise StorageError(f"{option('qlog')}: {error}") from None
    if not shared and any(folder.iterdir()):
        raise PacelineError(f"{option('qlog')}: {folder} is not empty: logs go to a new or empty folder")
    return folder


def _words(direction: str) -> Sequence[str]:
    return {"forward": ["to "], "reverse": ["from "], "both": ["to ", "from "]}[direction]


def _settings(
    controller: str, changes: Mapping[str, Any] | None, app: str | None, rate: str | None
) -> list[tuple[str, str]]:
    """The keys of the flow's table with their values."""
    if controller.startswith(KERNEL):
        if changes or app or rate:
            raise PacelineError(
                "a flow of the kernel's TCP is a bulk transfer: leave out "
                f"{option('set')}, {option('app')} and {option('rate')}"
            )
        return []
    if (rate is not None) != (controller == "udp" and app is None):
        raise PacelineError(
            f"datagrams without a controller need a rate: {option('rate', '2Mbit/s')}"
            if rate is None
            else f"{option('rate')} is the rate of {option('cc', 'udp')}; other controllers find their own"
        )
    settings = [("cc", controller)]
    if app is not None:
        settings.append(("app.kind", app))
    if rate is not None:
        settings.append(("app", toml_value({"kind": "cbr", "rate": rate})))
    return settings + [(path, toml_value(value)) for path, value in (changes or {}).items()]


def _flows(
    controller: str, settings: list[tuple[str, str]], direction: str, flows: int, duration_s: float, seed: int
) -> list[_Flow]:
    kernel = controller.removeprefix(KERNEL) if controller.startswith(KERNEL) else None
    name = kernel or own_controllers.short(controller)
    ways = [(True, name)] if direction != "reverse" else []
    if direction != "forward":
        ways.append((False, name if direction == "reverse" else f"{name}-back"))
    number = round(duration_s * 1000)
    every = [(forward, flow, instance) for forward, flow in ways for instance in range(flows)]
    return [
        (flow, instance, settings, number, (seed + n) % 2**62, forward, kernel, None)
        for n, (forward, flow, instance) in enumerate(every)
    ]


def listen(
    bind: str | None,
    port: int,
    rate: int,
    longest: float,
    sessions: int,
    key: bytes | None,
    results: str | None = None,
    *,
    strangers: bool = False,
    memory: int = 1_000_000_000,
    schemes: Sequence[_core.Scheme] = (),
    qlogs: tuple[str, int, int] | None = None,
) -> _core.Server:
    """A server at the address. Without one, it listens at all addresses if there is a key or it is open to `strangers`
    (IPv6's socket takes IPv4 too; without IPv6, IPv4's), else at 127.0.0.1. Limits: the maximum rate of a flow (bit/s),
    the longest flow (s), concurrent flows and their memory in bytes. `results` is a folder for its measurements;
    `qlogs` is a folder for QUIC logs, with the limits on files and bytes, including earlier servers'. Raises LiveError,
    NeedsLinux, and PacelineError, also if strangers can reach the address but are not admitted."""
    linux.needed("serving flows")
    if key is not None and strangers:
        raise PacelineError("--key-file admits holders of the key, --open everybody: give only one of them")
    everywhere = ["[::]", "0.0.0.0"]  # noqa: S104 (a server serves)
    if bind is None:
        addresses = everywhere if strangers or key is not None else ["127.0.0.1"]
    else:
        try:
            ip = ipaddress.ip_address(bind)
        except ValueError:
            raise PacelineError(f"--bind {bind} is not an IP address") from None
        if not (strangers or key is not None or ip.is_loopback):
            raise PacelineError(
                f"--bind {bind}: others can reach this address, so say who may connect: --key-file FILE admits holders "
                "of the key (`paceline key` makes one), --open everybody"
            )
        addresses = [f"[{bind}]" if ip.version == 6 else bind]
    for n, address in enumerate(addresses):
        try:
            return _core.Server(
                f"{address}:{port}", rate, longest, sessions, key, results, memory, list(schemes), qlogs
            )
        except LiveError as error:
            if n + 1 == len(addresses) or "in use" in str(error):
                hint = (
                    "; another program has the port: --port P takes another one"
                    if "in use" in str(error)
                    else ""
                )
                raise LiveError(f"{error}{hint}") from None
    raise LiveError("there is no address to listen on")
