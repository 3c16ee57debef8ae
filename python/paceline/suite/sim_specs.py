"""The specifications of picoquic's simulator (`sim_specs`), each read into a case.

Source: the format of private-octopus/picoquic (`picohttp/picoquic_ns.c`, its `pico_sim`), a key, a colon and a value a
line; times are microseconds, rates Gbit/s. What stands wrongly is an error that names file, line, key and range. What
is right but cannot be carried here makes a case that is not run, with the reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paceline.reproduce.paper import Level, Settings
from paceline.suite.suite import Case, Check
from paceline.suite.verdict import Rule, Threshold
from paceline.suite.where import SuiteError

MOST_FILES, MOST_BYTES, MOST_STEPS = 1000, 65536, 1000
_HOUR_US = 3600 * 10**6
_MINUTE_US = 60 * 10**6

SCHEMES = {
    "c4": "c4",
    "bbr": "bbr3",
    "bbr1": "bbr",
    "cubic": "cubic",
    "newreno": "newreno",
    "prague": "prague",
}
"""What picoquic's controllers are called here."""
_SUSPENDED = "1 bit/s"
"""A rate of 0 suspends a link there."""


@dataclass(frozen=True)
class Phase:
    """What a link is for a time: its rates."""

    us: int
    up_gbps: float
    down_gbps: float


@dataclass
class _Entries:
    """The lines of a file by key; errors name file, line and key."""

    name: str
    found: dict[str, tuple[int, str]]

    def error(self, key: str, said: str) -> SuiteError:
        return SuiteError(f"{self.name}, line {self.found[key][0]}: {key}: {said}")

    def text(self, key: str) -> str:
        return self.found[key][1] if key in self.found else ""

    def whole(self, key: str, least: int, most: int, default: int = 0) -> int:
        if not self.text(key):
            return default
        value = self.text(key)
        # int() takes other scripts' digits, and more of them than it likes
        if not re.fullmatch(r"[0-9]{1,18}", value) or not least <= int(value) <= most:
            raise self.error(key, f"a whole number from {least} to {most}, not {value[:60]!r}")
        return int(value)

    def rate(self, key: str) -> float:
        value = self.text(key)
        if not value:
            return 0.0
        gbps = _rate(value)
        if gbps is None:
            raise self.error(key, f"a rate in Gbit/s from 0 to 1000, not {value[:60]!r}")
        return gbps


def _rate(text: str) -> float | None:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,15})?|\.[0-9]{1,15}", text):
        return None
    return float(text) if float(text) <= 1000 else None


_KNOWN = frozenset(
    [
        "main_cc_algo",
        "main_cc_options",
        "main_start_time",
        "main_scenario_text",
        "nb_connections",
        "background_cc_algo",
        "background_cc_options",
        "background_start_time",
        "background_scenario_text",
        "main_target_time",
        "data_rate_in_gbps",
        "data_rate_up_in_gbps",
        "latency",
        "jitter",
        "wifi_jitter",
        "queue_delay_max",
        "l4s_max",
        "seed_cwin",
        "seed_rtt",
        "icid",
        "qlog_dir",
        "qperf_log",
        "media_stats_start",
        "media_latency_average",
        "media_latency_max",
        "media_excluded",
        "link_scenario",
    ]
)
_NEEDED = ("main_cc_algo", "main_scenario_text", "main_target_time")
_FOR_EVER = 10**18


def cases(folder: Path, section: str) -> tuple[Case, ...]:
    """A case for each file `*.txt` of a folder, in the order of their names. Raises SuiteError."""
    if not folder.is_dir():
        raise SuiteError(f"--specs {folder}: no such folder")
    paths = sorted(path for path in folder.iterdir() if path.suffix == ".txt" and path.is_file())
    if not 1 <= len(paths) <= MOST_FILES:
        raise SuiteError(f"--specs {folder}: 1 to {MOST_FILES} specifications (*.txt), not {len(paths)}")
    return tuple(case(path, section) for path in paths)


def case(path: Path, section: str) -> Case:
    """Reads a specification. Raises SuiteError."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", path.stem):
        raise SuiteError(f"{path}: its name is the case's: letters, digits, '-', '_' and '.'")
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SuiteError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise SuiteError(f"{path}: more than {MOST_BYTES} bytes: no specification")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: not UTF-8 at byte {error.start}") from None
    return read(text, str(path), path.stem, section)


def read(text: str, name: str, key: str, section: str) -> Case:
    """The case that a specification's text makes. Raises SuiteError that names `name` and the line."""
    entries = _entries(text, name)
    target_us = entries.whole("main_target_time", 1, _HOUR_US)
    why: list[str] = []
    settings = _flows(entries, why) + _link(entries, target_us, why)
    two = entries.whole("nb_connections", 1, 5, 1) > 1
    target_s = target_us / 1e6
    label = f"{entries.text('main_cc_algo')}, {_rate_of(entries):g} Gbit/s" + (
        f", beside {entries.text('background_cc_algo')}" if two else ""
    )
    return Case(
        key=key,
        section=section,
        title=label,
        text="",
        scenario="two.toml" if two else "one.toml",
        settings=() if why else (*settings, ("duration", f"{_duration_s(target_us)} s")),
        change=None,
        tables=("flow.test",),
        beside=(),
        levels=(Level("", 0.0, ()),),
        axis_label="",
        axis_unit="",
        plots=(),
        checks=tuple(
            Check(
                key=key,
                label=label,
                says=says,
                ours='time["{scheme}"]',
                unit="s",
                threshold=Threshold(most=target_s, rule=rule),
                source=source,
            )
            for key, label, says, rule, source in (
                (
                    "worst",
                    "end, worst",
                    "The transfer is over in time in every run",
                    Rule.WORST,
                    f"{Path(name).name}: main_target_time",
                ),
                (
                    "mean",
                    "end, mean",
                    "The transfer is over in time on the average",
                    Rule.INTERVAL,
                    "ours: the same time, held against the 95 % interval of the mean",
                ),
            )
        ),
        record=(),
        record_every_s=0.5,
        seconds=0.02,
        refused="; ".join(why),
    )


def _entries(text: str, name: str) -> _Entries:
    entries = _Entries(name, {})
    for n, line in enumerate(map(str.strip, text.split("\n")), 1):
        if not line or line.startswith("#"):
            continue
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not re.fullmatch(r"[a-z0-9_]{1,60}", key):
            raise SuiteError(f"{name}, line {n}: KEY: VALUE, not {line[:60]!r}")
        if key in entries.found:
            raise SuiteError(
                f"{name}, line {n}: {key}: stands there already, in line {entries.found[key][0]}"
            )
        entries.found[key] = (n, value)
    for key in _NEEDED:
        if not entries.text(key):
            raise SuiteError(f"{name}: needs {key}")
    return entries


# ---- The connections


def _flows(entries: _Entries, why: list[str]) -> Settings:
    why += [f"{key}: not known here" for key in entries.found if key not in _KNOWN]
    connections = entries.whole("nb_connections", 1, 5, 1)
    if connections > 2:
        why.append(f"nb_connections: {connections}; one background connection at most")
    settings = _flow(entries, "main", "test", why)
    if connections > 1:
        for key in ("background_cc_algo", "background_scenario_text"):
            if not entries.text(key):
                raise SuiteError(f"{entries.name}: needs {key}: there are {connections} connections")
        settings += _flow(entries, "background", "other", why)
    for key in ("seed_cwin", "seed_rtt"):
        if entries.whole(key, 0, 10**12) > 0:
            why.append(f"{key}: careful resume, a window remembered, is not here")
    for key in ("media_stats_start", "media_latency_average", "media_latency_max"):
        entries.whole(key, 0, _HOUR_US)
    return settings


def _flow(entries: _Entries, who: str, flow: str, why: list[str]) -> Settings:
    algorithm = entries.text(f"{who}_cc_algo")
    if not re.fullmatch(r"[\w.+-]{1,40}", algorithm):
        raise entries.error(f"{who}_cc_algo", f"the name of a controller, not {algorithm[:60]!r}")
    if algorithm not in SCHEMES:
        why.append(
            f"{who}_cc_algo: {algorithm}: there is no such controller here; there are {', '.join(SCHEMES)}"
        )
    if options := entries.text(f"{who}_cc_options"):
        why.append(
            f"{who}_cc_options: {options[:40]}: what it means to picoquic's controller is not known here"
        )
    start_us = entries.whole(f"{who}_start_time", 0, _HOUR_US)
    ends_us = _duration_s(entries.whole("main_target_time", 1, _HOUR_US)) * 10**6
    if start_us >= ends_us:
        why.append(f"{who}_start_time: {start_us} us is after the end of the run here, {ends_us} us")
    size = _transfer(entries, f"{who}_scenario_text", why)
    return (
        (f"flow.{flow}.cc", SCHEMES.get(algorithm, "")),
        (f"flow.{flow}.start", f"{start_us} us"),
        (f"flow.{flow}.app.size", f"{size} B"),
    )


def _transfer(entries: _Entries, key: str, why: list[str]) -> int:
    """The bytes of the one transfer of a connection: `=b1:*1:397:10000000;`, a request of 397 bytes for the rest."""
    parts = [part.strip() for part in entries.text(key).split(";") if part.strip()]
    media, size = [], 0
    for part in parts:
        words = part.removeprefix("=").split(":")
        batch = re.fullmatch(r"\w{1,20}(:\*1)?:([0-9]{1,12}):([0-9]{1,15})", part.removeprefix("="))
        if batch and len(parts) == 1:
            size = int(batch[3])
        elif batch or re.fullmatch(r"\*[0-9]{1,9}", words[1] if len(words) > 1 else ""):
            why.append(f"{key}: {part[:40]}: one transfer alone is carried")
        elif len(words) > 2 and re.fullmatch(r"[ads][0-9]{1,5}", words[1]):
            media.append(words[0][:20])
        else:
            raise entries.error(
                key, f"a transfer (=b1:*1:397:10000000;) or streams of media, not {part[:60]!r}"
            )
    if not parts or (size == 0 and not media and not why):
        raise entries.error(key, "a transfer of 1 byte or more")
    if media:
        why.append(
            f"{key}: {', '.join(media)}: streams of media of different priority in one connection, and their delays "
            "frame by frame, are not here"
        )
    return max(size, 1)


def _duration_s(target_us: int) -> int:
    """Long enough for one that comes far too late."""
    return math.ceil(3 * target_us / 1e6 + 10)


# ---- The link


def _rate_of(entries: _Entries) -> float:
    return entries.rate("data_rate_in_gbps") or 0.01


def _link(entries: _Entries, target_us: int, why: list[str]) -> Settings:
    down = _rate_of(entries)
    up = entries.rate("data_rate_up_in_gbps") or down
    phases, own = _phases(entries, up, down, why)
    latency_us = entries.whole("latency", 0, _MINUTE_US)
    queue_us = entries.whole("queue_delay_max", 0, _MINUTE_US)
    if own is not None:
        latency_us, queue_us = own
    if latency_us == 0:
        why.append("latency: 0, or none: a path without delay is not here")
    if entries.whole("l4s_max", 0, _MINUTE_US) > 0:
        why.append("l4s_max: the simulator's DualPI2 is not that of RFC 9332")
    horizon_us = _duration_s(target_us) * 10**6
    settings: Settings = (
        ("link.bottleneck.delay", f"{latency_us} us"),
        ("link.bottleneck.queue", _queue(queue_us, down, suspended=any(p.down_gbps == 0 for p in phases))),
        ("link.bottleneck.rate_schedule", _schedule(entries, phases, horizon_us, lambda p: p.down_gbps)),
    )
    if any(phase.up_gbps != phase.down_gbps for phase in phases):
        back = _schedule(entries, phases, horizon_us, lambda p: p.up_gbps)
        settings += (
            ("link.bottleneck.backward.rate_schedule", back),
            (
                "link.bottleneck.backward.queue",
                _queue(queue_us, up, suspended=any(p.up_gbps == 0 for p in phases)),
            ),
        )
    jitter_us = entries.whole("jitter", 0, _MINUTE_US)
    if entries.whole("wifi_jitter", 0, 1) and jitter_us > 0:
        wifi = f'{{ kind = "bad-wifi", average = "{jitter_us} us" }}'
        settings += (
            ("link.bottleneck.delay_variation", wifi),
            ("link.bottleneck.backward.delay_variation", wifi),
        )
    elif jitter_us > 0:
        why.append("jitter: without wifi_jitter its law is the normal one, which is not here")
    return settings


def _queue(limit_us: int, gbps: float, *, suspended: bool) -> str:
    if limit_us == 0:
        return '{ kind = "unlimited" }'
    # While it is suspended, what its rate sends in that time still has room.
    limit = f"{max(1, round(limit_us * gbps * 125))} B" if suspended else f"{limit_us} us"
    return f'{{ kind = "droptail", limit = "{limit}" }}'


def _schedule(entries: _Entries, phases: list[Phase], horizon_us: int, rate: Callable[[Phase], float]) -> str:
    """The phases in turn, again and again."""
    steps: list[tuple[int, str]] = []
    at_us = i = 0
    while at_us < horizon_us:
        phase = phases[i % len(phases)]
        said = f"{round(rate(phase) * 1e9)} bit/s" if rate(phase) * 1e9 >= 1 else _SUSPENDED
        if not steps or steps[-1][1] != said:
            steps.append((at_us, said))
        at_us, i = at_us + phase.us, i + 1
        if i > MOST_STEPS:
            raise entries.error("link_scenario", f"more than {MOST_STEPS} phases in {horizon_us} us")
    return "[" + ", ".join(f'{{ at = "{at} us", rate = "{said}" }}' for at, said in steps) + "]"


def _phases(
    entries: _Entries, up: float, down: float, why: list[str]
) -> tuple[list[Phase], tuple[int, int] | None]:
    """The phases of the link, and the latency and queue that a list of its own gives them."""
    word = entries.text("link_scenario") or "none"
    whole, half, none = (up, down), (up / 2, down / 2), (0.0, 0.0)
    named = {
        "none": [Phase(_FOR_EVER, *whole)],
        "black_hole": [Phase(2_000_000, *whole), Phase(2_000_000, *none), Phase(_FOR_EVER, *whole)],
        "drop_and_back": [Phase(1_500_000, *whole), Phase(2_000_000, *half), Phase(_FOR_EVER, *whole)],
        "low_and_up": [Phase(2_500_000, *half), Phase(_FOR_EVER, *whole)],
        "wifi_fade": [Phase(_FOR_EVER, *whole)],
        "wifi_suspension": [Phase(1_800_000, *whole), Phase(200_000, *none)],
    }
    if word == "wifi_fade":
        why.append("link_scenario: wifi_fade: a jitter that changes at an instant is not here")
    if word in named:
        return named[word], None
    return _list(entries, word, list(named), up, down, why)


def _list(
    entries: _Entries, text: str, named: list[str], up: float, down: float, why: list[str]
) -> tuple[list[Phase], tuple[int, int]]:
    phases, others = [], []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        first, *words = part.split(":")
        if not re.fullmatch(r"[0-9]{1,12}", first) or int(first) == 0:
            known = ", ".join(named)
            raise entries.error(
                "link_scenario",
                f"{known}, or phases MICROSECONDS:U0.01:D0.01:L15000:Q100000;..., not {part[:60]!r}",
            )
        rates, numbers = {"U": 0.0, "D": down}, dict.fromkeys("LQJSBPW", 0)
        for word in words:
            letter, value = word[:1], word[1:]
            rate = _rate(value) if letter in rates else None
            if letter in rates and rate is not None:
                rates[letter] = rate or rates[letter]
            elif letter in numbers and re.fullmatch(r"[0-9]{0,8}", value) and (value or letter == "W"):
                numbers[letter] = int(value or 1)
                if letter in "LQJ" and numbers[letter] > _MINUTE_US:
                    raise entries.error("link_scenario", f"{word}: at most {_MINUTE_US} us")
            else:
                raise entries.error(
                    "link_scenario",
                    f"U and D (Gbit/s, 0 to 1000), L, Q and J (us), S, B, P (whole numbers) and W, not {word[:40]!r}",
                )
        # without a rate up it is the file's, and without that one the phase's own down
        up_here = rates["U"] or (up if entries.text("data_rate_up_in_gbps") else rates["D"])
        phases.append(Phase(int(first), up_here, rates["D"]))
        others.append(numbers)
    if not phases:
        raise entries.error("link_scenario", "needs a phase")
    said = {"L": "a latency", "Q": "a queue", "J": "a jitter"}
    for letter, what in said.items():
        if len({numbers[letter] for numbers in others}) > 1:
            why.append(f"link_scenario: {what} ({letter}) that changes at an instant is not here")
    if any(numbers["J"] for numbers in others) and len({numbers["J"] for numbers in others}) == 1:
        why.append("link_scenario: a jitter (J) of a list is not here")
    if any(numbers[letter] for numbers in others for letter in "BPS"):
        why.append("link_scenario: losses in bursts (B, P) and L4S (S) are not here")
    return phases, (others[0]["L"], others[0]["Q"])
