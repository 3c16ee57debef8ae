"""The extension module: scenarios, runs, models. Use `paceline.run` and other public functions, which build on it."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import final

from paceline.controller import MediaController as MediaController
from paceline.controller import Random as Random
from paceline.controller import RateController as RateController
from paceline.controller import WindowController as WindowController
from paceline.events import (
    Acked as Acked,
)
from paceline.events import (
    Arrivals as Arrivals,
)
from paceline.events import (
    Deflate as Deflate,
)
from paceline.events import (
    Delivery as Delivery,
)
from paceline.events import (
    Duplicate as Duplicate,
)
from paceline.events import (
    EcnEcho as EcnEcho,
)
from paceline.events import (
    Established as Established,
)
from paceline.events import (
    FrameWritten as FrameWritten,
)
from paceline.events import (
    Idle as Idle,
)
from paceline.events import (
    Interval as Interval,
)
from paceline.events import (
    Lost as Lost,
)
from paceline.events import (
    LostOne as LostOne,
)
from paceline.events import (
    MediaReport as MediaReport,
)
from paceline.events import (
    NoFeedback as NoFeedback,
)
from paceline.events import (
    PacketFate as PacketFate,
)
from paceline.events import (
    PacketSent as PacketSent,
)
from paceline.events import (
    PathView as PathView,
)
from paceline.events import (
    RateReport as RateReport,
)
from paceline.events import (
    Recovered as Recovered,
)
from paceline.events import (
    Repaired as Repaired,
)
from paceline.events import (
    Resumed as Resumed,
)
from paceline.events import (
    SessionStarted as SessionStarted,
)
from paceline.events import (
    Silence as Silence,
)
from paceline.events import (
    Started as Started,
)
from paceline.events import (
    Timeout as Timeout,
)
from paceline.events import (
    Undo as Undo,
)

@final
class CallLog:
    """The log of a call at one of its ends.

    A packet of RTP is a tuple: nanoseconds since the log's beginning, whether it was sent, SSRC, payload type, sequence
    number, timestamp, marker, bytes of payload, bytes of RTP header and padding, transport-wide number or None.
    """

    @staticmethod
    def rtc_event_log(data: bytes) -> CallLog:
        """Reads an event log of libwebrtc. Raises ValueError for any other data."""
    @staticmethod
    def of_packets(rtp: Sequence[_Rtp], rtcp: Sequence[tuple[int, bool, bytes]], overhead: int) -> CallLog:
        """Makes a log of a capture's packets, sorted by time; RTCP as nanoseconds, whether it was sent, its bytes;
        `overhead` is the bytes of the headers below RTP. Raises ValueError if it lasts longer than a week."""
    @property
    def began_ms(self) -> int | None:
        """Milliseconds since 1970 at the beginning; None if the log does not contain it."""
    @property
    def is_cut(self) -> bool:
        """Whether the log ends in the middle of a message."""
    @property
    def unread_rtcp(self) -> tuple[int, int]:
        """The number of RTCP packets that could not be read, and of all."""
    def rtp(self) -> list[_Rtp]:
        """The RTP packets."""
    def estimates(self) -> list[tuple[float, str, int]]:
        """The estimates of the end's own controller: seconds, its part ("delay", "loss", "scream"), bits a second."""
    def feedback(self) -> list[Series]:
        """The feedback on arrivals over time."""
    def reports(self) -> list[Series]:
        """The receivers' reports over time, a table for each source and direction."""
    def replay(self, scheme: str, params: Sequence[tuple[str, float]], every_s: float) -> list[Series]:
        """Replay the log to a scheme: its gauges, a row each `every_s`. Raises ValueError for an unknown scheme or
        parameter, or if the log lacks what the scheme needs."""

def qlog(files: Sequence[tuple[pathlib.Path, str]], every_s: float, name: str) -> tuple[RunOutput, str]:
    """Reads qlog files, each with the name of its flow; also returns JSON of `states` (the names of the numbers in the
    column `state`), `skipped`, `events` and `connections`. Raises ValueError for an invalid qlog, with its place, and
    OSError."""

_Rtp = tuple[int, bool, int, int, int, int, bool, int, int, int | None]

@final
class SendWatch:
    """A handle on `send` for another thread."""

    def __init__(self) -> None: ...
    def stop(self) -> None:
        """Ends the flows; their measurements are kept. A second call does not wait for the server's results."""
    def shown_json(self) -> str:
        """The flows' current state: a list of objects."""

@final
class ListenWatch:
    """A handle on `receive` for another thread."""

    def __init__(self) -> None: ...
    def stop(self) -> None:
        """Ends it soon; its measurements are kept."""
    def shown_json(self) -> str:
        """The streams' current state: a list of objects."""

def receive(
    bind: str,
    rtcp_port: int,
    watch: ListenWatch,
    peer_rtcp_port: int | None = None,
    feedback: str | None = None,
    transport_id: int = 1,
    for_s: float | None = None,
) -> tuple[RunOutput, str]:
    """Receives from a sender of plain RTP: `bind` is the address for RTP, `feedback` "twcc" or "rfc8888" in addition to
    reports, `for_s` the duration from the first packet on. Returns the measurements, and notes as JSON. Raises
    ValueError for an invalid address, LiveError if the system refuses something, InternalError."""

@final
class Server:
    """A server of flows. Raises LiveError if the system refuses it, ValueError for an invalid address."""

    def __init__(
        self,
        bind: str,
        max_rate_bps: int,
        max_duration_s: float,
        max_sessions: int,
        key: bytes | None = None,
        results: str | None = None,
        max_memory_bytes: int = 1_000_000_000,
        schemes: list[Scheme] = ...,
        qlogs: tuple[str, int, int] | None = None,
    ) -> None:
        """`qlogs` is a folder for QUIC logs, and the limits on their number and bytes."""
    @property
    def address(self) -> str:
        """The address on which it listens."""
    def run(self) -> None:
        """Serves until `stop`, without the interpreter lock. Raises LiveError, InternalError."""
    def stop(self) -> None:
        """Ends `run` soon."""
    def lines(self) -> list[str]:
        """The events since the last call, a line each."""

def keep_gateway_privileges() -> None:
    """Permanently drops all privileges of the calling thread that a gateway does not need (all but CAP_NET_ADMIN and
    CAP_BPF), also for threads that it starts afterwards. Raises LiveError if the system refuses it."""

class Gateway:
    """A gateway with its options as text (a JSON object). Raises ValueError for a mistake in them."""

    def __init__(self, words_json: str) -> None: ...
    def run(self) -> str:
        """Runs until it is stopped or its time is over, without the interpreter lock; once. Returns the report as JSON.

        Raises LiveError if the system refuses something, ValueError for an unknown interface.
        """
    def stop(self) -> None:
        """Ends `run` soon."""
    def shown(self) -> list[str]:
        """The intervals since the last call, each as JSON; at most the last hundred."""

def send(
    host: str,
    port: int,
    flows: list[tuple[str, int, list[tuple[str, str]], int, int, bool, str | None, str | None]],
    watch: SendWatch,
    key: bytes | None = None,
    logs: str | None = None,
    measure: tuple[int, int, int] | None = None,
    results: str | None = None,
    ports: int | None = None,
    beginning: str | None = None,
    schemes: list[Scheme] = ...,
    qlogs: str | None = None,
) -> tuple[RunOutput, str]:
    """Runs flows (name, instance, settings, ms, seed, whether sent from here, the kernel's congestion control, name
    within the bundle) to their end, without the interpreter lock; returns their measurements, and notes as JSON.
    `measure` is the measured interval (begin and end in ms) and the recording interval in us: the flows end with it,
    whatever is in progress. `results` is a folder in which the server leaves its measurements; `ports` is the first
    flow's port here, and each further flow has the next one; `beginning` is the pipe at which the path below waits for
    the flows to begin; `schemes` are schemes that are not compiled in; `qlogs` is a folder for logs of QUIC connections
    that begin here. Raises LiveError, ScenarioError, ControllerError, InternalError.
    """

def live_mistakes(
    flow: tuple[str, int, list[tuple[str, str]], int, int, bool, str | None, str | None],
    schemes: list[Scheme] = ...,
) -> list[tuple[str, str]]:
    """The mistakes in a flow between hosts: keys of its table, and what to do about each."""

def send_rtp(
    receiver: tuple[str, int, int, int, int, int, int],
    flow: tuple[str, int, list[tuple[str, str]], int, int, bool, str | None, str | None],
    watch: SendWatch,
    logs: str | None = None,
    schemes: list[Scheme] = ...,
) -> tuple[RunOutput, str]:
    """Runs a flow, as in `send`, to a receiver of plain RTP: host, its RTP and RTCP ports, the local ones, the payload
    type, the ID of transport-wide numbers. Raises LiveError, ScenarioError, InternalError.
    """

def replay(path: str) -> tuple[int, int, float, int]:
    """Runs an event log through a fresh session: inputs, datagrams, seconds. Raises LiveError at a difference."""

@final
class Scenario:
    """A validated scenario. Immutable: `set` returns a changed copy."""

    @staticmethod
    def load(
        path: str, values: list[tuple[str, str]] = ..., classes: list[tuple[str, type]] = ...
    ) -> Scenario:
        """Reads a TOML file and the trace files it names, after replacing some values. Raises ScenarioError."""
    @staticmethod
    def parse(
        text: str,
        base_dir: str,
        name: str,
        values: list[tuple[str, str]] = ...,
        classes: list[tuple[str, type]] = ...,
    ) -> Scenario:
        """Reads TOML text; trace files are looked up from `base_dir`. Raises ScenarioError."""
    def set(self, path: str, value: object) -> Scenario:
        """A copy with the value at the TOML path replaced: a number, a list, ..., or text, which is read as TOML if
        possible, else taken as text. Raises ScenarioError; ArgumentError for a value that no scenario can contain."""
    def set_all(self, values: Mapping[str, object] | Sequence[tuple[str, object]]) -> Scenario:
        """A copy with several values replaced, validated at the end. Raises as `set` does."""
    def __new__(
        cls,
        text: str,
        base_dir: str,
        name: str,
        traces: list[tuple[str, str]],
        classes: list[tuple[str, type]] = ...,
    ) -> Scenario:
        """Recreates a scenario from `__getnewargs__`, for pickles. Raises ScenarioError."""
    def __getnewargs__(
        self,
    ) -> tuple[str, str, str, list[tuple[str, str]], list[tuple[str, type]]]: ...
    def with_classes(self, classes: list[tuple[str, type]]) -> Scenario:
        """The same scenario with these classes as controllers that its flows name. Raises ScenarioError."""
    @property
    def file(self) -> str:
        """The file that it was read from, as errors name it."""
    @property
    def classes(self) -> list[tuple[str, type]]:
        """The classes that its flows name, besides those in files, by name."""
    @property
    def schemes(self) -> list[Scheme]:
        """The schemes that are not compiled in."""
    @property
    def in_python(self) -> bool:
        """Whether its runs call Python: in one process they then run one at a time."""
    def path_toml(self) -> str:
        """`to_toml` for a path without the flows."""
    def to_toml(self) -> str:
        """The scenario with every default filled in."""
    def identity(self) -> str:
        """`to_toml` without name and description, which affect no result."""
    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def ends(self) -> tuple[str, str] | None:
        """The first and the last node of the chain of links; None for a graph."""
    @property
    def instances(self) -> int:
        """The number of flows, each instance counted."""
    @property
    def rates_bps(self) -> float:
        """The sum of all links' rates, both ways, as far as they can be filled."""
    def core_seconds(self) -> float:
        """The approximate core seconds of a run, without recordings. Raises PacelineError for flows whose ends are not
        connected."""
    def unreal(self) -> str | None:
        """Why no real path supports its links; None if one can."""
    def starts(self, seed: int) -> list[tuple[str, int, int]]:
        """The start of each flow instance under a seed: name, instance, nanoseconds."""
    @property
    def warnings(self) -> list[str]:
        """Settings that have no effect, or hardly the intended one: a line each, with file, line and key."""
    @property
    def cut_short(self) -> list[str]:
        """Streams and transfers that the end of every run cuts off, in the same form."""
    @property
    def recordable(self) -> list[str]:
        """The kinds of series that its runs can record."""
    def flow_names(self) -> list[str]: ...
    def traces(self) -> list[tuple[str, str]]:
        """The trace files that links follow: name and text of each."""

@final
class Watch:
    """A handle on a run for another thread."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """Makes the run raise Cancelled soon."""
    @property
    def progress(self) -> float:
        """The finished share of the simulated time, 0 to 1."""

@final
class Series:
    """One recorded time series."""

    @property
    def table(self) -> str:
        """cwnd, queue, rate or playout."""
    @property
    def labels(self) -> dict[str, str]:
        """flow and instance, or link and direction."""
    @property
    def columns(self) -> dict[str, bytes]:
        """Little-endian 64-bit floats by column name; names end in the unit."""

@final
class RunOutput:
    """The measurements and recordings of a run."""

    @property
    def summary_json(self) -> str: ...
    @property
    def series(self) -> list[Series]: ...

@final
class TcpWatch:
    """Follows the kernel-TCP connections of other programs."""

    def __init__(
        self,
        whose: str,
        numbers: list[int],
        every_s: float,
        search_every_s: float,
        duration_s: float | None = None,
    ) -> None:
        """Lists the existing connections. `whose`: "all", "ports" or "processes" with their `numbers`, or "children":
        those of processes that descend from this one and begin from now on. Raises ProcessLookupError, PermissionError,
        OSError, ValueError.
        """
    def run(self, name: str) -> RunOutput:
        """Watches to the end, without the interpreter lock."""
    def stop(self) -> None:
        """Ends it at once."""
    def finish(self) -> None:
        """Ends it when the open connections have ended, within a second."""
    def view(self) -> str:
        """The followed connections, as JSON: time_s, connections, ended."""

@final
class HostWatch:
    """The host's state during something in real time."""

    def __init__(self) -> None:
        """Begins now. Raises OSError."""
    def report(self) -> str:
        """The state at the beginning and now, and the share of stolen time in between, as JSON. Raises OSError."""

def adopt_orphans(adopt: bool) -> None:
    """Makes orphaned descendant processes children of this process, or stops that. Raises OSError."""

def run(
    scenario: Scenario,
    seed: int,
    record: list[str],
    record_every_s: float,
    watch: Watch | None = None,
    pcap: tuple[str, list[str]] | None = None,
    qlog: str | None = None,
) -> RunOutput:
    """Runs to the end, without the interpreter lock. `pcap` is a file for the packets that leave and reach hosts, and
    the names of the hosts (none: all); `qlog` is a folder for QUIC logs. Raises Cancelled, InternalError, OSError,
    ScenarioError, ValueError.
    """

@final
class Path:
    """A path that has been read and validated."""

    @staticmethod
    def load(
        word: str, values: list[tuple[str, str]] = ..., seed: int | None = None, ports: int | None = None
    ) -> Path:
        """Reads the path of a profile, a file or "trace:UP,DOWN", after replacing some values. `ports`, if the file's
        flows cross it, is the near end's port of the first one. Raises ScenarioError."""
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def warnings(self) -> list[str]:
        """Settings of its links that have no effect, or hardly the intended one: a line each, with file, line and
        key."""

@final
class PathStop:
    """Ends paths from another thread."""

    def __init__(self) -> None: ...
    def stop(self) -> None:
        """Ends the programs of all paths that received this object, as SIGTERM would."""
    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""

@final
class PathOutput:
    """The result of a path."""

    @property
    def summary_json(self) -> str: ...
    @property
    def series(self) -> list[Series]: ...
    @property
    def status(self) -> int:
        """The command's exit code, or 128 plus the number of the signal that ended it."""
    def lost(self, port: int, from_near: bool, from_s: float, to_s: float) -> int:
        """Dropped data packets of the flow with `port` at the near end, sent from there or else to there, between
        `from_s` and `to_s`, instants of `time.monotonic`."""

def path_profiles() -> list[tuple[str, str, str]]:
    """The named paths: name, a sentence, TOML text."""

def run_path(
    path: Path,
    command: list[str],
    *,
    far: str | None = None,
    far_output: int = 2,
    host: bool = False,
    device: str = "any",
    limit_s: float | None = None,
    ipv4: bool = False,
    record_every_s: float | None = None,
    capture: tuple[str, int] | None = None,
    stop: PathStop | None = None,
    access_point: str | None = None,
    beginning: str | None = None,
) -> PathOutput:
    """Runs a command over a path until it ends, without the interpreter lock. `far` is a shell command at the far end,
    whose output goes to the descriptor `far_output`; `host`: the far end is this host. With `ipv4` the ends have no
    IPv6. `capture` is a file and the captured bytes per packet. Signals are forwarded to the command, unless `stop` is
    given, which ends it. `access_point` is a law with its settings, as "voap,beta=20ms". `beginning` is a pipe, created
    here, at which flows report that they begin: the path's time starts then. Raises PathError, InternalError,
    ValueError.
    """

def edit(text: str, changes: str) -> str:
    """Sets and removes keys in scenario text; comments, order and layout stay. `changes` is JSON: pairs of a path, as
    for `--set`, and a value; null removes the key. Raises ScenarioError."""

def schema_json() -> str:
    """The JSON Schema of scenario files."""

def schemes() -> str:
    """The registered schemes as JSON: name, summary, source, and parameters with default, range, unit and meaning."""

def build() -> str:
    """What results of this core depend on besides scenario and seed: its version, and a hash of its sources."""

def measures_json() -> str:
    """The measures by table, each with columns (name and type), unit, scatter and meaning, as JSON."""

def columns_json() -> str:
    """The measures and labels that the rows of each table can have: TABLE -> names."""

def version() -> str:
    """The version of the core, such as "0.1.0"; a build of the dev profile ends with "+dev"."""

def models() -> str:
    """The throughput models as JSON: name, summary, source, arguments with default and meaning, results, inverse."""

def model(name: str, columns: list[bytes], *, inverse: bool = False) -> list[bytes]:
    """Evaluates a model row by row. Columns in and out are little-endian 64-bit floats. Raises ValueError."""

def trace(text: str, name: str | None = None, /) -> tuple[str, float, list[float], list[float], list[float]]:
    """Reads a rate trace: its format, its duration (s), instants (s), at each instant the bytes of mahimahi's
    opportunities or the rate from then on (bit/s), and its latencies (s). Raises ValueError."""

def quantity(text: str, unit: str) -> float:
    """A quantity such as "50 ms" as a number of `unit`: "s", "B" or "bit/s". Raises ValueError."""

@final
class Scheme:
    """A scheme that is not compiled in."""

    def __new__(cls, of: type, description: str) -> Scheme:
        """Makes a scheme of a class, by its description as JSON: `paceline.own_controllers.describe`. Raises
        ValueError."""
    @staticmethod
    def library(path: pathlib.Path, controller: str | None, name: str) -> Scheme:
        """Makes a scheme of a controller in a shared library, whose code runs from now on. Raises ValueError."""
    def json(self) -> str:
        """Its description, as in `paceline.controllers()`."""
    @property
    def name(self) -> str:
        """Its name in scenarios."""

def extremes(cc: str, seed: int, events: int, own: Scheme | None = None) -> None:
    """Sends a fresh controller `events` events with extreme numbers. Raises ValueError for output outside the sender's
    range, ControllerError."""

def features() -> list[str]:
    """The names of a step's features, in order."""

@final
class Environments:
    """Several environments of one scenario, each with its own run: see `paceline.gym`."""

    def __new__(
        cls,
        scenario: Scenario,
        flow: str,
        acts: str,
        many: int = 1,
        step_s: float | None = None,
        step_segments: int | None = None,
        workers: int = 1,
        baseline: str | None = None,
    ) -> Environments:
        """Creates `many` environments of a scenario, in which the agent decides for `flow`: `acts` is "window" or
        "rate"; a step is `step_s` seconds or `step_segments` acknowledged segments; `workers` threads, including the
        caller's, each step a share of them. With a `baseline` the controller of that name drives the flow, and
        decisions have no effect. Raises ScenarioError, ValueError, and OSError if the system starts no thread."""
    @property
    def many(self) -> int:
        """The number of environments."""
    @property
    def duration_s(self) -> float:
        """The duration of a run."""
    def reset(self, which: list[int], seeds: list[int], told: object) -> None:
        """Begins runs in these environments with these seeds; writes into their rows of `told`, float64 of (many,
        features), the features at the flow's beginning. Raises ScenarioError, ControllerError, ValueError."""
    def step(self, decisions: object, told: object, ends: object) -> None:
        """Takes a step in each environment whose decision is not NaN: `decisions`, float64, in segments or bit/s.
        Writes `told`, and rows of `ends`, uint8 of (many, 2): whether the flow has sent all its data, and whether the
        run is over. Raises ControllerError; ValueError for an environment without a run."""
    def summary_json(self, place: int) -> str | None:
        """The summary of this environment's run, which is over or whose flow is done, as in `RunOutput`; this ends the
        run. None without such a run. Raises ControllerError, ValueError."""
    def close(self) -> None:
        """Ends the threads and releases the environments: any other call then raises ValueError."""
