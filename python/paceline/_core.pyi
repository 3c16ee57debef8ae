"""The extension module: scenarios, runs, models. Use `paceline.run` and its kin, which stand on it."""

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
    """What has been logged of a call at one of its ends.

    A packet of RTP is a tuple: nanoseconds from the log's beginning on, whether it left, SSRC, payload type, number,
    timestamp, marker, bytes of payload, bytes of RTP's header and padding, transport-wide number or None.
    """

    @staticmethod
    def rtc_event_log(data: bytes) -> CallLog:
        """Reads an event log of libwebrtc. Raises ValueError for what is none."""
    @staticmethod
    def of_packets(rtp: Sequence[_Rtp], rtcp: Sequence[tuple[int, bool, bytes]], overhead: int) -> CallLog:
        """Of the packets of a capture in the order of their times; RTCP as nanoseconds, whether it left, its bytes;
        `overhead` is the bytes of the headers below RTP. Raises ValueError if it lasts longer than a week."""
    @property
    def began_ms(self) -> int | None:
        """Milliseconds since 1970 at the beginning; None if the log does not tell."""
    @property
    def is_cut(self) -> bool:
        """Whether it ends in the middle of a message."""
    @property
    def unread_rtcp(self) -> tuple[int, int]:
        """Packets of RTCP that could not be read, and all."""
    def rtp(self) -> list[_Rtp]:
        """The packets of RTP."""
    def estimates(self) -> list[tuple[float, str, int]]:
        """What the end's own controller thought: seconds, its part ("delay", "loss", "scream"), bits a second."""
    def feedback(self) -> list[Series]:
        """The feedback on arrivals over time."""
    def reports(self) -> list[Series]:
        """The receivers' reports over time, a table for each source and way."""
    def replay(self, scheme: str, params: Sequence[tuple[str, float]], every_s: float) -> list[Series]:
        """What a scheme would have thought of it: its gauges, a row each `every_s`. Raises ValueError for a scheme or a
        parameter that there is not, or where the log has not what the scheme goes by."""

def qlog(files: Sequence[tuple[pathlib.Path, str]], every_s: float, name: str) -> tuple[RunOutput, str]:
    """Reads qlog files, each with the name of its flow; also JSON of `states` (the names of the numbers in the column
    `state`), `skipped`, `events` and `connections`. Raises ValueError for what is no qlog, with its place, and
    OSError."""

_Rtp = tuple[int, bool, int, int, int, int, bool, int, int, int | None]

@final
class SendWatch:
    """A handle on `send` from another thread."""

    def __init__(self) -> None: ...
    def stop(self) -> None:
        """Ends the flows; what they have measured is kept. Called again, the server's results are not waited for."""
    def shown_json(self) -> str:
        """What the flows show now: a list of objects."""

@final
class ListenWatch:
    """A handle on `receive` from another thread."""

    def __init__(self) -> None: ...
    def stop(self) -> None:
        """Ends it soon; what it has measured is kept."""
    def shown_json(self) -> str:
        """What the streams show now: a list of objects."""

def receive(
    bind: str,
    rtcp_port: int,
    watch: ListenWatch,
    peer_rtcp_port: int | None = None,
    feedback: str | None = None,
    transport_id: int = 1,
    for_s: float | None = None,
) -> tuple[RunOutput, str]:
    """Hears a sender of plain RTP: `bind` is where RTP comes to, `feedback` "twcc" or "rfc8888" beside reports, `for_s`
    how long from the first packet on. Gives what was measured, and notes as JSON. Raises ValueError for what is no
    address, LiveError where the system refuses something, InternalError."""

@final
class Server:
    """A server of flows. Raises LiveError where the system refuses it, ValueError for what is no address."""

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
        """`qlogs` is a folder for the logs of connections over QUIC, how many files and how many bytes of them there
        may be."""
    @property
    def address(self) -> str:
        """Where it listens."""
    def run(self) -> None:
        """Serves until `stop`, without the interpreter lock. Raises LiveError, InternalError."""
    def stop(self) -> None:
        """Ends `run` soon."""
    def lines(self) -> list[str]:
        """What has happened since this was last asked."""

def keep_gateway_privileges() -> None:
    """Gives up, for good, all privileges of the calling thread that a gateway does not need (all but CAP_NET_ADMIN and
    CAP_BPF), and of those that it starts afterwards. Raises LiveError where the system refuses it."""

class Gateway:
    """A gateway of its options as they are written (a JSON object). Raises ValueError for a mistake in them."""

    def __init__(self, words_json: str) -> None: ...
    def run(self) -> str:
        """Runs until it is stopped or its time is over, without the interpreter lock; once. Gives the report as JSON.

        Raises LiveError where the system refuses something, ValueError for an interface that is not there.
        """
    def stop(self) -> None:
        """Ends `run` soon."""
    def shown(self) -> list[str]:
        """The intervals since this was last asked, each as JSON; at most the last hundred."""

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
    """Runs flows (name, instance, settings, ms, seed, whether from here, the kernel's congestion control) to their end,
    without the interpreter lock; gives what they measured, and notes as JSON. `measure` is from when to when, in ms,
    they are measured, and how often they record, in us: they end then, whatever is under way. `results` is a folder in
    which the server leaves what it measures; `ports` the port here of the first flow, of which each other one has the
    next; `beginning` the pipe at which the path below waits for them to begin; `schemes` what flows may name that is
    not compiled in; `qlogs` a folder for the logs of connections over QUIC that begin here. Raises LiveError,
    ScenarioError, ControllerError, InternalError.
    """

def live_mistakes(
    flow: tuple[str, int, list[tuple[str, str]], int, int, bool, str | None, str | None],
    schemes: list[Scheme] = ...,
) -> list[tuple[str, str]]:
    """What is wrong with a flow between hosts: keys of its table, and what to do about each."""

def send_rtp(
    receiver: tuple[str, int, int, int, int, int, int],
    flow: tuple[str, int, list[tuple[str, str]], int, int, bool, str | None, str | None],
    watch: SendWatch,
    logs: str | None = None,
    schemes: list[Scheme] = ...,
) -> tuple[RunOutput, str]:
    """Runs a flow, as `send` has them, to a receiver of plain RTP: host, its ports of RTP and RTCP, those here, the
    payload type, the ID of transport-wide numbers. Raises LiveError, ScenarioError, InternalError.
    """

def replay(path: str) -> tuple[int, int, float, int]:
    """Runs an event log through a fresh session: inputs, datagrams, seconds. Raises LiveError where it differs."""

@final
class Scenario:
    """A validated scenario. Immutable: `set` gives a changed copy."""

    @staticmethod
    def load(
        path: str, values: list[tuple[str, str]] = ..., classes: list[tuple[str, type]] = ...
    ) -> Scenario:
        """Reads a TOML file and the trace files it names, some values replaced first. Raises ScenarioError."""
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
        """A copy with the value at the TOML path replaced: a number, a list, ..., or text, read as TOML, else taken as
        text. Raises ScenarioError, ArgumentError for what no scenario can hold."""
    def set_all(self, values: Mapping[str, object] | Sequence[tuple[str, object]]) -> Scenario:
        """A copy with several values replaced, checked when all are. Raises as `set` does."""
    def __new__(
        cls,
        text: str,
        base_dir: str,
        name: str,
        traces: list[tuple[str, str]],
        classes: list[tuple[str, type]] = ...,
    ) -> Scenario:
        """What `__getnewargs__` gives, for pickles. Raises ScenarioError."""
    def __getnewargs__(
        self,
    ) -> tuple[str, str, str, list[tuple[str, str]], list[tuple[str, type]]]: ...
    def with_classes(self, classes: list[tuple[str, type]]) -> Scenario:
        """The same with these classes for controllers that its flows name. Raises ScenarioError."""
    @property
    def file(self) -> str:
        """The file that it was read from, as mistakes name it."""
    @property
    def classes(self) -> list[tuple[str, type]]:
        """The classes that its flows name beside those of files, by name."""
    @property
    def schemes(self) -> list[Scheme]:
        """The schemes that are not compiled in."""
    @property
    def in_python(self) -> bool:
        """Whether runs of it call Python: those of one process then take turns."""
    def path_toml(self) -> str:
        """`to_toml` for a path on which its flows are not run."""
    def to_toml(self) -> str:
        """The scenario with every default filled in."""
    def identity(self) -> str:
        """The same without name and description, of which no result depends."""
    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def ends(self) -> tuple[str, str] | None:
        """The first and the last node of the chain of links; None of a graph."""
    @property
    def instances(self) -> int:
        """How many flows it has, each instance counted."""
    @property
    def rates_bps(self) -> float:
        """The rates of all links, both ways, as far as they can be filled."""
    def core_seconds(self) -> float:
        """About how many core seconds a run takes, what is recorded left out. Raises PacelineError for flows whose ends
        are not connected."""
    def unreal(self) -> str | None:
        """Why no real path can have its links."""
    def starts(self, seed: int) -> list[tuple[str, int, int]]:
        """When each flow instance starts under a seed: name, instance, nanoseconds."""
    @property
    def warnings(self) -> list[str]:
        """What it says to no effect, or hardly the one that is meant: a line each, with file, line and key."""
    @property
    def cut_short(self) -> list[str]:
        """Streams and transfers that the end of each of its runs cuts off, likewise."""
    @property
    def recordable(self) -> list[str]:
        """The series that a run of it can record."""
    def flow_names(self) -> list[str]: ...
    def traces(self) -> list[tuple[str, str]]:
        """The trace files that links follow: name and text of each."""

@final
class Watch:
    """A handle on a run from another thread."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """Makes the run raise Cancelled soon."""
    @property
    def progress(self) -> float:
        """The share of the simulated time done, 0 to 1."""

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
    """What a run measured and recorded."""

    @property
    def summary_json(self) -> str: ...
    @property
    def series(self) -> list[Series]: ...

@final
class TcpWatch:
    """The kernel-TCP connections of other programs, followed."""

    def __init__(
        self,
        whose: str,
        numbers: list[int],
        every_s: float,
        search_every_s: float,
        duration_s: float | None = None,
    ) -> None:
        """Lists the connections that are there. `whose`: "all", "ports" or "processes" with their `numbers`, or
        "children": those of processes that descend from this one and begin from now on. Raises ProcessLookupError,
        PermissionError, OSError, ValueError.
        """
    def run(self, name: str) -> RunOutput:
        """Watches to the end, without the interpreter lock."""
    def stop(self) -> None:
        """Ends it at once."""
    def finish(self) -> None:
        """Ends it when the open connections have ended, within a second."""
    def view(self) -> str:
        """What is being followed, as JSON: time_s, connections, ended."""

@final
class HostWatch:
    """The host's state while something runs in real time."""

    def __init__(self) -> None:
        """Begins now. Raises OSError."""
    def report(self) -> str:
        """The state at the beginning and now, and the share of stolen time in between, as JSON. Raises OSError."""

def adopt_orphans(adopt: bool) -> None:
    """Has processes that lose their parent become children of this one, or no longer. Raises OSError."""

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
    the names of the hosts (none: all); `qlog` a folder for the logs of connections over QUIC. Raises Cancelled,
    InternalError, OSError, ScenarioError, ValueError.
    """

@final
class Path:
    """A path that has been read and checked."""

    @staticmethod
    def load(
        word: str, values: list[tuple[str, str]] = ..., seed: int | None = None, ports: int | None = None
    ) -> Path:
        """The path of a profile, a file or "trace:UP,DOWN", some values replaced first. `ports`, if the file's flows go
        over it: the near end's port of the first. Raises ScenarioError."""
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def warnings(self) -> list[str]:
        """What its links say to no effect, or hardly the one that is meant: a line each, with file, line and key."""

@final
class PathStop:
    """Ends paths from another thread."""

    def __init__(self) -> None: ...
    def stop(self) -> None:
        """Ends the programs of all paths that were given this, as SIGTERM would."""
    @property
    def stopped(self) -> bool:
        """Whether it was called."""

@final
class PathOutput:
    """What came of a path."""

    @property
    def summary_json(self) -> str: ...
    @property
    def series(self) -> list[Series]: ...
    @property
    def status(self) -> int:
        """The command's exit code, or 128 and the number of the signal that ended it."""
    def lost(self, port: int, from_near: bool, from_s: float, to_s: float) -> int:
        """Packets of data of the flow with `port` at the near end, sent from there or else to there, that the path
        dropped from `from_s` to `to_s`, times of `time.monotonic`."""

def path_profiles() -> list[tuple[str, str, str]]:
    """The paths that have names: name, a sentence, TOML text."""

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
    """Runs a command over a path until it ends, without the interpreter lock. `far` is a line for a shell at the far
    end, whose output goes to the descriptor `far_output`; `host`: the far end is this host. With `ipv4` the ends have
    no IPv6. `capture` is a file and how many bytes of a packet are kept. Signals are the command's meanwhile; with
    `stop`, which ends it, they are left alone. `access_point` is a law in a word, as "voap,beta=20ms". `beginning` is a
    pipe that is made, at which flows say that they begin: the path's time begins then. Raises PathError,
    InternalError, ValueError.
    """

def schema_json() -> str:
    """The JSON Schema of scenario files."""

def schemes() -> str:
    """The registered schemes as JSON: name, summary, source, and parameters with default, range, unit and meaning."""

def build() -> str:
    """What the results of this core depend on beside scenario and seed: its version, and a hash of its sources."""

def measures_json() -> str:
    """The measures by table, each with columns (name and type), unit, scatter and meaning, as JSON."""

def columns_json() -> str:
    """The measures and labels that the rows of each table can have: TABLE -> names."""

def version() -> str:
    """The version of the core, "0.1.0" say; a build of the dev profile ends with "+dev"."""

def models() -> str:
    """The throughput models as JSON: name, summary, source, arguments with default and meaning, results, inverse."""

def model(name: str, columns: list[bytes], *, inverse: bool = False) -> list[bytes]:
    """Evaluates a model row by row. Columns in and out are little-endian 64-bit floats. Raises ValueError."""

def trace(text: str, name: str | None = None, /) -> tuple[str, float, list[float], list[float], list[float]]:
    """What a trace of rates says: its format, how long it lasts (s), instants (s), at each the bytes of mahimahi's
    opportunities or the rate from then on (bit/s), and the latencies that it tells (s). Raises ValueError."""

def quantity(text: str, unit: str) -> float:
    """A quantity such as "50 ms" as a number of `unit`: "s", "B" or "bit/s". Raises ValueError."""

@final
class Scheme:
    """A scheme that is not compiled in."""

    def __new__(cls, of: type, description: str) -> Scheme:
        """Of a class, by its description as JSON: `paceline.own_controllers.describe`. Raises ValueError."""
    @staticmethod
    def library(path: pathlib.Path, controller: str | None, name: str) -> Scheme:
        """Of a controller in a shared library, whose code runs from now on. Raises ValueError."""
    def json(self) -> str:
        """What it is, as `paceline.controllers()` has it."""
    @property
    def name(self) -> str:
        """As scenarios name it."""

def extremes(cc: str, seed: int, events: int, own: Scheme | None = None) -> None:
    """Tells a fresh controller so many events with extreme numbers. Raises ValueError for what no machine can use,
    ControllerError."""

def features() -> list[str]:
    """The names of what a step of an environment tells, in order."""

@final
class Environments:
    """Several environments of one scenario, each with a run of its own: see `paceline.gym`."""

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
        """`many` of a scenario, in which the agent decides for `flow`: `acts` "window" or "rate", each `step_s` seconds
        or `step_segments` acknowledged segments; `workers` threads, the caller's among them, keep a share each and step
        it. With a `baseline` the controller of that name drives the flow, and decisions are of no effect. Raises
        ScenarioError, ValueError, and OSError where the system starts no thread."""
    @property
    def many(self) -> int:
        """How many there are."""
    @property
    def duration_s(self) -> float:
        """How long a run is."""
    def reset(self, which: list[int], seeds: list[int], told: object) -> None:
        """Begins runs in these with these seeds; their rows of `told`, float64 of (many, features), are what is known
        when the flow begins. Raises ScenarioError, ControllerError, ValueError."""
    def step(self, decisions: object, told: object, ends: object) -> None:
        """A step in each, but for those whose decision is not a number: `decisions`, float64, in segments or bit/s.
        Rows of `ends`, uint8 of (many, 2): whether the flow has sent all, and whether the run is over. Raises
        ControllerError, ValueError for one that has no run."""
    def summary_json(self, place: int) -> str | None:
        """What was measured of the run of this environment, which is over, or whose flow is done, as `RunOutput` has
        it; it ends the run. None without such a run. Raises ControllerError, ValueError."""
    def close(self) -> None:
        """Ends the threads and lets go of the environments: all else raises ValueError then."""
