"""The specifications of picoquic's simulator (`sim_specs`), each read into a case.

Source: the format of private-octopus/picoquic (`picohttp/picoquic_ns.c`, its `pico_sim`): a key, a colon and a value
per line; times in microseconds, rates in Gbit/s. An invalid entry is an error that names file, line, key and range. A
valid but unsupported one makes a case that does not run, with the reason.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from paceline import files
from paceline.studies.study import Level, Settings
from paceline.suite import sim_link, sim_media
from paceline.suite.sim_entries import Entries
from paceline.suite.suite import Case, Check
from paceline.suite.suite_folders import SuiteError
from paceline.suite.verdict import Rule, Threshold

MAX_FILES, MAX_BYTES = 1000, 65536
_HOUR_US = 3600 * 10**6

SCHEMES = {
    "c4": "c4",
    "bbr": "bbr3",
    "bbr1": "bbr",
    "cubic": "cubic",
    "newreno": "newreno",
    "prague": "prague",
}
"""Paceline's names of picoquic's controllers."""


_KNOWN_KEYS = frozenset(
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


def cases(folder: Path, section: str) -> tuple[Case, ...]:
    """A case for each file `*.txt` of a folder, sorted by name. Raises SuiteError."""
    if not folder.is_dir():
        raise SuiteError(f"--specs {folder}: no such folder")
    paths = sorted(path for path in folder.iterdir() if path.suffix == ".txt" and path.is_file())
    if not 1 <= len(paths) <= MAX_FILES:
        raise SuiteError(f"--specs {folder}: 1 to {MAX_FILES} specifications (*.txt), not {len(paths)}")
    return tuple(case(path, section) for path in paths)


def case(path: Path, section: str) -> Case:
    """Reads a specification. Raises SuiteError."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", path.stem):
        raise SuiteError(
            f"{path}: the file name becomes the case's key: use letters, digits, '-', '_' and '.'"
        )
    try:
        with files.opened(path) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SuiteError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise SuiteError(f"{path}: more than {MAX_BYTES} bytes: this is not a specification")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: not UTF-8 at byte {error.start}") from None
    return read(text, str(path), path.stem, section)


def read(text: str, name: str, key: str, section: str) -> Case:
    """The case of a specification's text. Raises SuiteError, which names `name` and the line."""
    entries = _entries(text, name)
    target_us = entries.whole("main_target_time", 1, _HOUR_US)
    why: list[str] = []
    media = _media(entries)
    if media:
        return _media_case(entries, media, target_us, name, key, section)
    horizon_us = _duration_s(target_us) * 10**6
    settings = _flows(entries, why) + sim_link.settings(entries, horizon_us, why)
    two = entries.whole("nb_connections", 1, 5, 1) > 1
    target_s = target_us / 1e6
    label = f"{entries.text('main_cc_algo')}, {sim_link.rate_down(entries):g} Gbit/s" + (
        f", beside {entries.text('background_cc_algo')}" if two else ""
    )
    checks = tuple(
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
    )
    settings = (*settings, ("duration", f"{_duration_s(target_us)} s"))
    return _made(key, section, label, "two.toml" if two else "one.toml", settings, checks, why)


def _made(
    key: str,
    section: str,
    title: str,
    scenario: str,
    settings: Settings,
    checks: tuple[Check, ...],
    why: list[str],
) -> Case:
    """The case of a specification; it is refused for what the simulator does not support."""
    return Case(
        key=key,
        section=section,
        title=title,
        text="",
        scenario=scenario,
        settings=() if why else settings,
        change=None,
        tables=("flow.test",),
        beside=(),
        levels=(Level("", 0.0, ()),),
        axis_label="",
        axis_unit="",
        plots=(),
        checks=checks,
        record=(),
        record_every_s=0.5,
        refused="; ".join(why),
    )


def _media(entries: Entries) -> list[sim_media.Media]:
    """The media streams of the main connection; empty if it carries anything else."""
    parts = [part.strip() for part in entries.text("main_scenario_text").split(";") if part.strip()]
    found = [sim_media.read(part) for part in parts]
    streams = [media for media in found if media is not None]
    return streams if len(streams) == len(parts) else []


def _media_case(
    entries: Entries, media: list[sim_media.Media], target_us: int, name: str, key: str, section: str
) -> Case:
    why: list[str] = []
    _known(entries, why)
    if entries.whole("nb_connections", 1, 5, 1) > 1:
        why.append("nb_connections: media beside another connection are not supported")
    scenario = sim_media.SCENARIOS.get(len(media), "")
    if not scenario:
        why.append(f"main_scenario_text: {len(media)} streams of media; only three or four are supported")
        media, scenario = media[:3], sim_media.SCENARIOS[3]
    scheme = _scheme(entries, "main", why)
    settings = sim_media.settings(entries, media, scheme, target_us) + sim_link.settings(
        entries, target_us, why
    )
    file = Path(name).name
    latency_us = sim_link.latency_us(entries, entries.whole("media_stats_start", 0, _HOUR_US))
    checks = [
        Check(
            key=what,
            label=label,
            says=says,
            ours=f'{metric}["{{scheme}}"]',
            unit="ms",
            threshold=Threshold(most=(entries.whole(limit, 1, _HOUR_US) - latency_us) / 1e3, rule=Rule.WORST),
            source=f"{file}: {limit} less the latency, which picoquic counts twice",
        )
        for what, label, says, metric, limit in (
            (
                "average",
                "delay, mean",
                "No stream's mean delay is greater, in any run",
                "delay",
                "media_latency_average",
            ),
            ("greatest", "delay, greatest", "No frame is later, in any run", "latest", "media_latency_max"),
        )
        if entries.text(limit)
    ]
    checks.append(
        Check(
            key="complete",
            label="frames come or given up",
            says="Every frame that is not given up has come in time, in every run",
            ours='accounted["{scheme}"]',
            unit="",
            threshold=Threshold(least=1.0, rule=Rule.WORST),
            source=f"{file}: main_target_time",
        )
    )
    label = f"{entries.text('main_cc_algo')}, {sim_link.rate_down(entries):g} Gbit/s, {len(media)} streams of media"
    return _made(key, section, label, scenario, settings, tuple(checks), why)


def _entries(text: str, name: str) -> Entries:
    entries = Entries(name, {})
    for n, line in enumerate(map(str.strip, text.split("\n")), 1):
        if not line or line.startswith("#"):
            continue
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not re.fullmatch(r"[a-z0-9_]{1,60}", key):
            raise SuiteError(f"{name}, line {n}: must be KEY: VALUE, not {line[:60]!r}")
        if key in entries.found:
            raise SuiteError(f"{name}, line {n}: {key} is given twice, first in line {entries.found[key][0]}")
        entries.found[key] = (n, value)
    for key in _NEEDED:
        if not entries.text(key):
            raise SuiteError(f"{name}: needs {key}")
    return entries


# ---- The connections


def _known(entries: Entries, why: list[str]) -> None:
    """Appends to `why` the unknown keys and what connections do not support."""
    why += [f"{key}: not known here" for key in entries.found if key not in _KNOWN_KEYS]
    for key in ("seed_cwin", "seed_rtt"):
        if entries.whole(key, 0, 10**12) > 0:
            why.append(f"{key}: careful resume (a remembered window) is not supported")


def _flows(entries: Entries, why: list[str]) -> Settings:
    _known(entries, why)
    connections = entries.whole("nb_connections", 1, 5, 1)
    if connections > 2:
        why.append(f"nb_connections: {connections}; at most one background connection is supported")
    settings = _flow(entries, "main", "test", why)
    if connections > 1:
        for key in ("background_cc_algo", "background_scenario_text"):
            if not entries.text(key):
                raise SuiteError(f"{entries.name}: needs {key}: there are {connections} connections")
        settings += _flow(entries, "background", "other", why)
    for key in ("media_stats_start", "media_latency_average", "media_latency_max"):
        entries.whole(key, 0, _HOUR_US)
    return settings


def _scheme(entries: Entries, who: str, why: list[str]) -> str:
    """The controller of a connection; appends to `why` if it is unsupported."""
    algorithm = entries.text(f"{who}_cc_algo")
    if not re.fullmatch(r"[\w.+-]{1,40}", algorithm):
        raise entries.error(f"{who}_cc_algo", f"must be the name of a controller, not {algorithm[:60]!r}")
    if algorithm not in SCHEMES:
        why.append(f"{who}_cc_algo: {algorithm}: no such controller; there are {', '.join(SCHEMES)}")
    options = entries.text(f"{who}_cc_options")
    # C4 options had a meaning in versions before the draft's; picoquic's current C4 reads none.
    if options and not (algorithm == "c4" and re.fullmatch(r"[A-Za-z]{1,40}", options)):
        why.append(f"{who}_cc_options: {options[:40]}: unknown option of picoquic's controller")
    return SCHEMES.get(algorithm, "")


def _flow(entries: Entries, who: str, flow: str, why: list[str]) -> Settings:
    scheme = _scheme(entries, who, why)
    start_us = entries.whole(f"{who}_start_time", 0, _HOUR_US)
    ends_us = _duration_s(entries.whole("main_target_time", 1, _HOUR_US)) * 10**6
    if start_us >= ends_us:
        why.append(f"{who}_start_time: {start_us} us is after the end of the run, {ends_us} us")
    size = _transfer(entries, f"{who}_scenario_text", why)
    return (
        (f"flow.{flow}.cc", scheme),
        (f"flow.{flow}.start", f"{start_us} us"),
        (f"flow.{flow}.app.size", f"{size} B"),
    )


def _transfer(entries: Entries, key: str, why: list[str]) -> int:
    """The bytes of a connection's single transfer: `=b1:*1:397:10000000;` is a 397-byte request for the rest."""
    parts = [part.strip() for part in entries.text(key).split(";") if part.strip()]
    media, size = [], 0
    for part in parts:
        words = part.removeprefix("=").split(":")
        batch = re.fullmatch(r"\w{1,20}(:\*1)?:([0-9]{1,12}):([0-9]{1,15})", part.removeprefix("="))
        if batch and len(parts) == 1:
            size = int(batch[3])
        elif batch or re.fullmatch(r"\*[0-9]{1,9}", words[1] if len(words) > 1 else ""):
            why.append(f"{key}: {part[:40]}: only one transfer is supported")
        elif len(words) > 2 and re.fullmatch(r"[ads][0-9]{1,5}", words[1]):
            media.append(words[0][:20])
        else:
            raise entries.error(
                key, f"must be a transfer (=b1:*1:397:10000000;) or streams of media, not {part[:60]!r}"
            )
    if not parts or (size == 0 and not media and not why):
        raise entries.error(key, "must be a transfer of 1 byte or more")
    if media:
        why.append(
            f"{key}: {', '.join(media)}: media streams of different priority in one connection, with delays per "
            "frame, are not supported"
        )
    return max(size, 1)


def _duration_s(target_us: int) -> int:
    """Long enough for a run that finishes far too late."""
    return math.ceil(3 * target_us / 1e6 + 10)
