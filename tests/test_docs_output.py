"""What the documents print is what the program prints, and the examples of every `--help` run.

A ```console block holds commands, each after "$ " (with a backslash at the end of a line that goes on), and what they
print on a screen of 80 columns; "..." as the last line stands for the rest. The blocks of a document run one after the
other in a directory that has `examples`, `papers` and `suites` in it, and each file that the document shows under its
name (a ```toml block whose first line is "# NAME.toml: ...", or a ```python one likewise). After a change of the output

    PACELINE_BLESS=1 .venv/bin/python -m pytest tests/test_docs_output.py

writes what it is now into the documents; the difference is then to be read.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import paceline
from dev_package import PROGRAM
from needs import require
from paceline import _core, cli, playground
from paceline.live import kernel_cc
from screen import said
from stand_in import stand_in

ROOT = Path(__file__).resolve().parent.parent
BLESS = os.environ.get("PACELINE_BLESS") == "1"
COLUMNS = 80
BLOCK = re.compile(r"^```console\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
SCENARIO = re.compile(
    r"^```(?:toml|python)[^\n]*\n# ([\w-]+\.(?:toml|py))(.*?)^```", flags=re.DOTALL | re.MULTILINE
)

UNSTEADY = (
    # How long it took, and will take.
    (r"(It took|about) \d[\d.]* (s|min|h)\b", r"\1 N s"),
    # Versions of jq differ in how they write numbers.
    (r"(?<=: )(\d+)\.0(?=,?$)", r"\1"),
    (r"\d+\.\d{12,}", lambda found: f"{float(found[0]):.12g}"),
)
"""What may differ from machine to machine, and what it is replaced by on both sides."""


def documents() -> list[Path]:
    """Those that print what a command says."""
    there = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("papers/**/*.md"))]
    return [path for path in there if BLOCK.search(path.read_text())]


def place(where: Path) -> dict[str, str]:
    """Makes a directory as after cloning, and the environment of a screen of 80 columns."""
    for name in ("examples", "papers", "suites", "leagues"):
        (where / name).symlink_to(ROOT / name)
    command = PROGRAM
    (where / "paceline").symlink_to(command)
    kept = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "LC_ALL")}
    path = f"{command.parent}:{os.environ['PATH']}"
    return {**kept, "PATH": path, "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "LANG": "C.UTF-8"}


def steady(text: str) -> list[str]:
    """The lines without what differs from machine to machine, and without spaces at their ends."""
    for pattern, instead in UNSTEADY:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return [line.rstrip() for line in text.rstrip("\n").split("\n")]


def entries(block: str) -> list[tuple[str, str]]:
    """The commands of a block as they stand there, and the text after each."""
    parts = re.split(r"^(\$ (?:.*\\\n)*.*\n)", block, flags=re.MULTILINE)
    assert not parts[0], f"a console block begins with a command: {parts[0]!r}"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def printed(command: str, where: Path, environment: dict[str, str]) -> str:
    """What a command prints on the screen."""
    if "jq" in command:
        require("jq")
    return said(command.removeprefix("$ "), where, environment).text


def shortened(out: str, shown: str) -> str:
    """What a document that shows this would show of a new output: as many lines, if it leaves out the rest."""
    lines = [line.rstrip() for line in out.rstrip("\n").split("\n")] if out else []
    kept = shown.rstrip("\n").split("\n")
    if kept[-1] == "..." and len(lines) >= len(kept):
        lines = [*lines[: len(kept) - 1], "..."]
    # An empty line between commands is the document's.
    gap = "\n" if shown.endswith("\n\n") else ""
    return "".join(f"{line}\n" for line in lines) + gap


@pytest.mark.parametrize("path", documents(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_documents_print_what_the_program_prints(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    environment = place(tmp_path)
    for name, body in SCENARIO.findall(text):
        (tmp_path / name).write_text(f"# {name}{body}")

    def now(block: re.Match[str]) -> str:
        parts = []
        for command, shown in entries(block[1]):
            out = shortened(printed(command, tmp_path, environment), shown)
            # What only a machine has changed is left as it was.
            parts += [command, shown if steady(out) == steady(shown) else out]
        return "```console\n" + "".join(parts) + "```"

    fresh = BLOCK.sub(now, text)
    if BLESS:
        path.write_text(fresh)
    assert fresh.split("\n") == text.split("\n") or BLESS, (
        "the program prints something else (PACELINE_BLESS=1 writes it here)"
    )


COMMANDS = (
    "init",
    "examples",
    "dissector",
    "run",
    "explore",
    "sweep",
    "merge",
    "compare",
    "plot",
    "reproduce",
    "model",
    "schema",
    "controllers",
    "include",
    "conform",
    "league",
    "hunt",
    "watch",
    "serve",
    "send",
    "receive",
    "key",
    "path",
    "trace",
    "gateway",
    "kernel-cc",
    "campaign",
    "suite",
    "check",
    "emulate",
    "call",
    "call-log",
)


def help_of(command: str, environment: dict[str, str], where: Path) -> str:
    return printed(f"paceline {command} --help", where, environment)


@pytest.fixture
def served() -> Iterator[int]:
    """The port of a server on the loopback interface."""
    server = _core.Server("127.0.0.1:0", 10**9, 60.0, 16)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(server.run)
        try:
            yield int(server.address.rpartition(":")[2])
        finally:
            server.stop()


def test_the_help_lists_every_command(tmp_path: Path) -> None:
    _, _, listed = help_of("", place(tmp_path), tmp_path).partition("Show this message and exit.")
    assert set(re.findall(r"^  ([a-z-]+)  +\S", listed, flags=re.MULTILINE)) == set(COMMANDS)
    assert re.findall(r"^(\S.*):$", listed, flags=re.MULTILINE) == list(cli.GROUPS)


IN_REAL_TIME = ("call", "gateway", "path", "receive", "send", "serve", "watch")
"""Commands whose examples wait for packets."""

STOOD_IN = ("campaign", "emulate")
"""Commands whose runs over an emulated path something stands for here: tests/stand_in.py."""


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in IN_REAL_TIME])
def test_every_command_has_help_with_examples_that_run(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = place(tmp_path)
    if command in STOOD_IN:
        stand_in(monkeypatch)
        monkeypatch.setattr("paceline.campaign._rest", lambda *_: 0.0)  # between runs that take no time
    examples_run(command, examples_of(command, tmp_path, environment), tmp_path, environment)


@pytest.mark.realtime
@pytest.mark.parametrize("commands", [("call",), IN_REAL_TIME[1:]], ids=["call", "others"])
def test_examples_in_real_time_run(commands: tuple[str, ...], tmp_path: Path, served: int) -> None:
    """As short as they can be: here it is whether their words are taken."""
    for command in commands:
        where = tmp_path / command
        where.mkdir()
        environment = place(where)
        lines = examples_of(command, where, environment)
        here = [re.sub(r" send (\S*127\.0\.0\.1) ", rf" send \1 --port {served} ", line) for line in lines]
        if command != "receive":  # which waits for its sender
            here = [re.sub(r"--for \d+s", "--for 300ms", line) for line in here]
        here = [re.sub(r" -R -t \d+", " -R -t 1", line) for line in here]
        here = [line.replace(" ping -c 3 ", " ping -i 0.2 -c 3 ") for line in here]
        examples_run(command, here, where, environment)


SPECIFICATION = """main_cc_algo: c4
main_scenario_text: =b1:*1:397:500000;
main_target_time: 3000000
data_rate_in_gbps: 0.01
latency: 10000
queue_delay_max: 40000
"""


SENDER = 'paceline send "rtp://127.0.0.1:5004?localrtpport=6004" --cc lda-plus --max-rate 500kbit/s --for 1s'


def log_a_call(path: Path) -> None:
    """A log of the kind that its name says."""
    if path.suffix == ".pcapng":
        call = 'cc = "gcc"\napp = { kind = "encoder" }\n'
        paceline.run(paceline.parse(BRIEF_LINK + f"[flow.call]\n{call}"), pcap=path)
    else:
        log = "chromium.rtceventlog" if path.suffix == ".bin" else "webrtc_internals_dump.gz"
        shutil.copy(ROOT / "tests/calls" / log, path)


def briefly(words: list[str]) -> str:
    """What makes an example short that would take minutes, or go on until Ctrl-C."""
    given = set(words)
    match words[1]:
        case "reproduce" if "--list" not in given:
            return " --runs 1" if "--figure" in given else " --figure 3 --runs 1"
        case "suite" if "--specs" in given:
            return " --runs 5"
        case "suite" if "--over" in given:
            return " --list"  # in real time it may be undecided too
        case "suite" if not {"--list", "--case"} & given:
            return f" --runs 5 --case {'wired' if words[2] == 'rfc9743' else 'flood'}"
        case "explore" if "--list" not in given:
            return " --no-open --for 10ms"
    return " --tries 8 --runs 1 --again 2" if words[1] == "hunt" else ""


def examples_of(command: str, where: Path, environment: dict[str, str]) -> list[str]:
    """The lines that a command's help has as examples."""
    text = help_of(command, environment, where)
    assert max(map(len, text.split("\n"))) <= COLUMNS, text
    assert "<" not in text.replace("JSON > ", ""), f"a metavar of {command} is raw: {text}"
    examples = re.search(r"^  Examples?.*:\n((?:    .*\n)+)", text, flags=re.MULTILINE)
    assert examples, f"{command} --help has no examples"
    return re.split(r"(?<!\\)\n", examples[1].strip())


def examples_run(command: str, lines: list[str], where: Path, environment: dict[str, str]) -> None:
    """The examples of a command's help run, one after the other in a folder."""
    for line in lines:
        words = shlex.split(line.replace("\\\n", " "))
        assert words[:2] == ["paceline", command] or command in ("plot", "merge"), line
        if command == "path" and "--" in words:
            require("namespaces", "ping", "iperf3")
        if command == "kernel-cc":
            require("struct_ops")
            if "load" in words and kernel_cc.known(words[3]) in kernel_cc.available():
                kernel_cc.unload(words[3])  # a run of the tests that was killed left it
        if command == "gateway":
            require("netns")
            # An interface in a namespace of its own, which ends with the command.
            made = "ip link add lan0 type veth peer name sta0; ip link set lan0 up;"
            line = f"unshare --net sh -c {shlex.quote(f'{made} {line}')}"  # noqa: PLW2901
        brief = briefly(words)
        if words[1] == "suite" and "--specs" in words:
            (where / "sim_specs").mkdir()
            (where / "sim_specs/one.txt").write_text(SPECIFICATION)
        elif command == "call":
            require("namespaces", "chromium")
            brief = ' --set "duration=4 s" --ready-within 60s'
        elif command == "call-log":
            log_a_call(where / words[2])
        elif words[1] in ("watch", "plot") and words[2].endswith("qlog"):
            shutil.copy(ROOT / "crates/qlog/tests/written.sqlog", where / words[2])
        elif command == "receive":
            line = f"(sleep 1; {SENDER} >/dev/null 2>&1) & {line}"  # noqa: PLW2901
        # Nothing is fetched from elsewhere.
        here = re.sub(r" -- curl .*", " -- true", line)
        done = said(f"{here}{brief}", where, environment, all_here=command in (*IN_REAL_TIME, *STOOD_IN))
        if command == "explore" and "--list" not in words and playground.page() is None:
            assert "playground" in done.text, "what to do where the page was not built"
            continue
        assert done.code == 0, f"{line}: {done.text}"


BRIEF_LINK = """
duration = "8 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
"""
WIDE = """
duration = "8 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "red", limit = "20 packets" }
loss = { kind = "uniform", rate = "6 %" }
[flow.a-medium-of-some-length]
count = 3
app = { kind = "stream", media_rate = "900 kbit/s", length = "2 s", playout = "stall" }
[flow.web]
app = { kind = "web" }
"""


@pytest.mark.parametrize("columns", [COLUMNS, 60, 200])
def test_nothing_is_wider_than_the_terminal_or_cut(columns: int, tmp_path: Path) -> None:
    environment = place(tmp_path) | {"COLUMNS": str(columns)}
    (tmp_path / "wide.toml").write_text(WIDE)
    link, flow = "link.bottleneck", "flow.a-medium-of-some-length"
    vary = f'--vary "{link}.delay=10 ms,50 ms" --vary {flow}.cc=newreno,vegas'
    commands = {
        "run wide.toml": ["a-medium-of-some-length[2]", "goodput", "timeouts", "utilisation", "Jain index"],
        "run wide.toml --runs 3 --out out/run": ["±", "a-medium-of-some-length[2]", "stalled", "Jain index"],
        f"sweep wide.toml {vary} --runs 2 --out out/sweep": [
            "50 ms",
            "vegas",
            "utilisation",
            f"cc: {flow}.cc",
        ],
        f"compare wide.toml {vary} --runs 5": ["not shown", "fill time", "difference"],
        f"compare wide.toml --vary {flow}.cc=newreno,vegas --runs 5"
        " --metric flows.goodput_bps --metric groups.goodput_bps": ["groups.goodput_bps"],
        "model --list": ["veno-square-root", "--total-backlog", "4 round trips"],
        "model veno --p 1% --rtt 120ms --base-rtt 100ms --w-max 20,40 --rto 1s,2s": [
            "packets/s",
            "0.635",
            "RTO",
        ],
        "controllers": ["selective", "RFC 9438"],
        "controllers vegas": ["alpha", "fewer than this", "0 to 1000"],
        "reproduce --list": ["vegas-streaming", "claims", "Streaming without cross traffic"],
        "suite rfc9743 --case wired --runs 5 --out out/suite": [
            "packets lost",
            "at least 16 Mbit/s",
            "1 of 1 case passes",
        ],
        "suite rfc7928 --list --case loads": ["least utilisation", "at least 90 %"],
        "reproduce --list --figure 7": ["another 33 %"],
        "reproduce vegas-streaming --figure 5 --runs 2 --out out/paper": ["agree", "out/paper/index.html"],
    }
    for command, words in commands.items():
        done = said(f"paceline {command}", tmp_path, environment)
        assert done.code == 0, done.text
        flat = re.sub(r"\s+", "", done.text)
        for word in words:
            # A word that is broken over two lines is there as well; what was cut is not.
            assert re.sub(r"\s+", "", word) in flat or columns < COLUMNS, (
                f"{command}: no {word!r} in\n{done.text}"
            )
        assert "…" not in done.text, done.text
        too_wide = [line for line in done.text.split("\n") if len(line) > columns]
        assert not too_wide, f"{command}: {too_wide}"


def test_a_wide_terminal_has_one_table_of_flows(tmp_path: Path) -> None:
    environment = place(tmp_path)
    (tmp_path / "wide.toml").write_text(WIDE)
    for columns, tables in {80: 2, 200: 1}.items():
        shown = printed("paceline run wide.toml", tmp_path, environment | {"COLUMNS": str(columns)})
        flows = shown[shown.index("Flows") : shown.index("Streams")]
        assert len(re.findall(r"^flow ", flows, flags=re.MULTILINE)) == tables
        found = json.loads(printed("paceline run wide.toml --json", tmp_path, environment))
        assert str(found["flows"][0]["packets_sent"]) in flows
