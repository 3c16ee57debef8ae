"""`paceline path`: real programs over emulated paths, and what is left of them however they end."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import paceline
from needs import require, unprivileged
from over_path import FIRST, IPERF3, LINK, PACELINE, direction, measured, run, steal, summary
from realtime import conclusive

pytestmark = pytest.mark.realtime

NEAR, FAR, FAR6 = "198.18.0.1", "198.18.0.2", "fdac:e11e::2"
HEADERS = 52
"""Of a segment of the kernel's TCP: IPv4, TCP, time stamps."""


@pytest.fixture
def link(tmp_path: Path) -> str:
    file = tmp_path / "link.toml"
    file.write_text(LINK)
    return str(file)


def times(text: str) -> list[float]:
    """The round-trip times that ping prints, in ms."""
    return [float(ms) for ms in re.findall(r"time=([\d.]+) ms", text)]


@pytest.mark.parametrize("device", ["tun", "packet"])
def test_ping_takes_the_set_delay(link: str, device: str) -> None:
    require("namespaces", "ping")
    if device == "tun":
        require("tun")

    def measure() -> tuple[tuple[str, dict[str, Any]], float]:
        line = "for peer in $PACELINE_PEER $PACELINE_PEER6; do ping -n -c 15 -i 0.05 $peer; done"
        found = measured("--device", device, link, "--", "sh", "-c", line)
        return found, steal(found[1])

    def check(found: tuple[str, dict[str, Any]]) -> None:
        text, of_path = found
        four, six = text.split("PING")[1:]
        for family in (four, six):
            assert len(times(family)) == 15, family
            assert abs(statistics.median(times(family)) - 40) < 1, family
        assert of_path["path"]["devices"] == [device] * 2
        # 15 of each family and nothing else: no neighbour discovery, no router solicitation
        assert [row["entered"] for row in of_path["path"]["directions"]] == [30, 30]
        assert of_path["path"]["lost_before"] == [0, 0]

    conclusive(measure, check)


@pytest.mark.parametrize("cc", ["reno", "cubic", "bbr"])
def test_kernel_tcp_fills_the_path(link: str, cc: str) -> None:
    require("namespaces", "iperf3", cc)

    def measure() -> tuple[float, float]:
        line = f"{IPERF3} -C {cc} -t 4 -O 1"
        text, found = measured("--far", "iperf3 -s -1", link, "--", "sh", "-c", line)
        return json.loads(text)["end"]["sum_received"]["bits_per_second"], steal(found)

    def check(rate: float) -> None:
        payload = 10e6 * (1500 - HEADERS) / 1500
        assert 0.95 * payload < rate < 1.02 * payload

    conclusive(measure, check)


def test_a_filled_queue_is_as_deep_as_set(link: str) -> None:
    """Datagrams at 1.3 times the rate: what is lost, how long what is left waits, and what is recorded over time."""
    require("namespaces", "iperf3", "ping")

    def measure() -> tuple[tuple[dict[str, Any], str, dict[str, Any]], float]:
        # iperf3 speaks first; the pings begin when the queue is full. iperf3 sends at each millisecond, and a ping's
        # interval is whole milliseconds: one that once finds no room may never find any, so there are several.
        pings = "for _ in 1 2 3 4 5 6; do ping -n -c 5 -i 0.05 -W 0.2 $PACELINE_PEER >&2; done"
        line = f"{IPERF3} -u -b 13M -l 1472 -t 5 & sleep 1.5; {pings}; wait"
        done = run("--json", "--far", "iperf3 -s -1", link, "--", "sh", "-c", line, before=FIRST)
        assert done.returncode == 0, done.stderr
        found = summary(done)
        return (json.loads(done.stdout), done.stderr, found), steal(found)

    def check(of_all: tuple[dict[str, Any], str, dict[str, Any]]) -> None:
        datagrams, text, found = of_all
        (queue,) = [q for q in found["queues"] if q["direction"] == "forward"]
        assert queue["max_packets"] == 60
        # one that finds 59 waiting may find another one's transmission begun
        assert 59 * 1500 * 8 / 10e6 < queue["delay_max_s"] <= 60 * 1500 * 8 / 10e6
        # Little's law: the packets that wait in the mean are those that come in a mean wait
        rate = queue["departures"] / found["end_s"]
        assert abs(queue["mean_packets"] / rate / queue["delay_mean_s"] - 1) < 0.02
        assert times(text), text
        # 60 packets of 1500 bytes at 10 Mbit/s, and the delays of both ways
        assert abs(statistics.median(times(text)) - (60 * 1500 * 8 / 10e6 * 1e3 + 40)) < 4, text
        received = datagrams["end"]["sum_received"]
        assert abs(received["bits_per_second"] / (10e6 * 1472 / 1500) - 1) < 0.05
        forward = direction(found, "forward")
        assert forward["drops"]["overflow"] == queue["drops"]["overflow"] > 500
        assert (
            forward["entered"] == forward["delivered"] + sum(forward["drops"].values()) + forward["in_flight"]
        )

    conclusive(measure, check)


def test_losses_are_those_that_were_set_and_counted(tmp_path: Path) -> None:
    require("namespaces", "ping")
    file = tmp_path / "lossy.toml"
    file.write_text(LINK.replace('"20 ms"', '"1 ms"') + 'loss = { kind = "uniform", rate = "10 %" }\n')
    text, found = measured(str(file), "--", "ping", "-n", "-q", "-c", "600", "-i", "0.004", "-W", "1", FAR)
    sent, answered = map(int, re.findall(r"(\d+) packets transmitted, (\d+) received", text)[0])
    forward, backward = direction(found, "forward"), direction(found, "backward")
    lost = [forward["drops"].get("loss", 0), backward["drops"].get("loss", 0)]
    assert forward["entered"] == sent == 600
    assert sent - answered == sum(lost)
    assert lost[1] == 0, "the way back loses nothing unless it is told to"
    # four standard deviations of a binomial count
    assert abs(lost[0] - 60) < 4 * (600 * 0.1 * 0.9) ** 0.5
    again, _ = measured(
        "--seed", "1", str(file), "--", "ping", "-n", "-c", "40", "-i", "0.01", "-W", "1", FAR
    )
    other, _ = measured(
        "--seed", "1", str(file), "--", "ping", "-n", "-c", "40", "-i", "0.01", "-W", "1", FAR
    )
    answers = [re.findall(r"icmp_seq=(\d+)", said) for said in (again, other)]
    assert answers[0] == answers[1], "the same seed loses the same packets"


def test_each_direction_has_its_own_rate(tmp_path: Path) -> None:
    require("namespaces", "iperf3")
    file = tmp_path / "adsl.toml"
    file.write_text(LINK.replace('"20 ms"', '"5 ms"') + 'backward = { rate = "2 Mbit/s" }\n')

    def measure() -> tuple[list[float], float]:
        line = f"{IPERF3} -C cubic -t 3 -O 1; sleep 0.2; {IPERF3} -C cubic -t 3 -O 1 -R"
        text, found = measured("--far", "iperf3 -s", str(file), "--", "sh", "-c", line)
        # two documents, one after the other
        parts = [json.loads(part) for part in re.split(r"(?<=^\})\n(?=\{)", text, flags=re.MULTILINE)]
        return [part["end"]["sum_received"]["bits_per_second"] for part in parts], steal(found)

    def check(rates: list[float]) -> None:
        for rate, set_rate in zip(rates, (10e6, 2e6), strict=True):
            payload = set_rate * (1500 - HEADERS) / 1500
            assert 0.93 * payload < rate < 1.05 * payload, rates

    conclusive(measure, check)


def test_of_no_packets_no_delay_is_known(link: str) -> None:
    require("namespaces")
    report = paceline.path(link, ["true"], ipv4=True).report
    empty = [
        each for each in (report["lag"], *(way["delay"] for way in report["directions"])) if not each["count"]
    ]
    assert empty
    for lateness in empty:
        assert {value for key, value in lateness.items() if key != "count"} == {None}


def test_the_commands_own_code_and_output(link: str) -> None:
    require("namespaces")
    for line, code in {"exit 0": 0, "exit 7": 7, "kill -9 $$": 137, "kill -TERM $$": 143}.items():
        assert run(link, "--", "sh", "-c", line).returncode == code
    megabytes = "dd if=/dev/zero bs=1M count=30 status=none"
    much = subprocess.run(
        [PACELINE, "path", link, "--", "sh", "-c", megabytes], capture_output=True, timeout=60, check=False
    )
    assert len(much.stdout) == 30 << 20, "stdout is the command's alone"
    variables = "echo $PACELINE_PEER $PACELINE_PEER6 $PACELINE_ADDRESS; cat"
    done = subprocess.run(
        [PACELINE, "path", link, "--", "sh", "-c", variables],
        input="from stdin",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == f"{FAR} {FAR6} {NEAR}\nfrom stdin"
    assert "Emulator" in done.stderr
    # a reader that has had enough
    line = f"{PACELINE} path {link} -- yes 2>/dev/null | head -n 1"
    piped = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert piped.stdout == "y\n"


def test_mistakes_are_named(link: str, tmp_path: Path) -> None:
    require("namespaces")
    for words, code, text in [
        ((link,), 2, "what is to be run over the path?"),
        ((link, "ping", "-c", "1"), 2, 'what is to be run stands after "--"'),
        ((), 2, "which path?"),
        (("umtz", "--", "true"), 2, "`umtz` is neither a profile"),
        ((link, "--set", "link.bottleneck.delai=1ms", "--", "true"), 2, "delai"),
        ((link, "--for", "soon", "--", "true"), 2, "--for soon"),
        ((link, "--device", "tap", "--", "true"), 2, "any, tun, packet"),
        (("--show", "umtz"), 2, "there are wide-area"),
        ((link, "--", "no-such-program"), 127, "execve(2) was refused: No such file or directory (ENOENT)"),
        ((link, "--", str(tmp_path)), 126, "(EACCES)"),
        ((link, "--far", "echo broken >&2; exit 4", "--", "true"), 1, "ended at once, with exit code 4"),
        ((link, "--far", "/no/such", "--", "true"), 1, "ended at once, with exit code 127"),
        ((link, "--pcap", str(tmp_path / "no" / "x"), "--", "true"), 1, "cannot write"),
    ]:
        done = run(*words)
        assert done.returncode == code, done.stderr
        assert text in done.stderr
        assert "Traceback" not in done.stderr


def test_what_is_no_file_of_text_is_refused(tmp_path: Path) -> None:
    """A pipe that nobody writes to would be waited for without end; and nothing of a file is told that is no trace."""
    pipe, key, named = tmp_path / "pipe", tmp_path / "key", tmp_path / "named.toml"
    os.mkfifo(pipe)
    key.write_text("secret 17 0123456789abcdef\n")
    for file, part in (
        (pipe, "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
        (tmp_path, "cannot be read: "),
        (key, "line 1: expected"),
    ):
        for text in (
            f'rate_trace = {{ file = "{file}" }}\nbackward = {{ rate = "1 Mbit/s" }}',
            f'rate_trace = {{ file = "{file}", format = "seconds-mbit" }}\nbackward = {{ rate = "1 Mbit/s" }}',
            f'rate = "1 Mbit/s"\n[flow.a]\ncc = "udp"\napp = {{ kind = "video-trace", file = "{file}" }}',
        ):
            named.write_text(f"[link.bottleneck]\n{text}\n")
            with pytest.raises(paceline.ScenarioError) as refused:
                paceline.path(named, ["true"])
            assert part in str(refused.value)
            assert "secret" not in str(refused.value)
    done = subprocess.run(
        [PACELINE, "path", str(pipe), "--", "true"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2, done
    assert "is not a regular file" in done.stderr


def test_the_far_command_is_there_first_and_ends_with_the_other(link: str, tmp_path: Path) -> None:
    require("namespaces", "iperf3")
    out = tmp_path / "out"
    far = "trap 'echo asked to end; exit 0' TERM; echo up; iperf3 -s & wait"
    done = run("--out", str(out), "--far", far, link, "--", "sh", "-c", f"{IPERF3} -t 1")
    assert done.returncode == 0, done.stderr + done.stdout
    said = (out / "far.txt").read_text()
    assert said.startswith("up\n")
    assert "asked to end\n" in said
    # What it had not flushed.
    assert "the server has terminated" in said
    done = run("--far", "sleep 1.3; exit 3", link, "--", "sleep", "1.8")
    assert "The far command ended before COMMAND, with exit code 3." in done.stderr


def test_a_run_directory_can_be_read_and_plotted(link: str, tmp_path: Path) -> None:
    require("namespaces", "iperf3")
    out, capture = tmp_path / "out", tmp_path / "path.pcapng"
    line = f"{IPERF3} -C cubic -t 2"
    words = ("--out", str(out), "--pcap", str(capture), "--far", "iperf3 -s -1", link, "--", "sh", "-c", line)
    assert run(*words).returncode == 0
    results = paceline.Results.read(out)
    assert results.manifest["kind"] == "path"
    assert results.manifest["report"]["status"] == 0
    forward = results.queues.filter(direction="forward").row(0, named=True)
    queue = results.series("queue").filter(direction="forward", link="bottleneck")
    assert queue["time_s"].is_sorted()
    assert len(queue) > 100
    assert (
        queue["length_packets" if "length_packets" in queue.columns else queue.columns[-1]].max() is not None
    )
    assert 0.3 < forward["utilisation"] <= 1
    delay = results.series("delay").filter(direction="forward")["delay_mean_s"]
    assert 0.02 < delay.min() < delay.max() < 0.02 + 60 * 1500 * 8 / 10e6 + 0.005  # type: ignore[operator]
    drawn = subprocess.run(
        [PACELINE, "plot", str(out), "--out", str(tmp_path / "figures")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert drawn.returncode == 0, drawn.stderr
    assert capture.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"


SECONDS = iter(range(71001, 72000))
"""How long programs of tests sleep: nobody else sleeps so long, so that they are found."""


def processes(mark: str) -> list[int]:
    """The numbers of the processes whose command line has this word."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(entry.name))
    return found


BEGUN: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def _end_what_was_begun() -> Iterator[None]:
    yield
    while BEGUN:
        with BEGUN.pop() as path:
            path.kill()


def begin(link: str, script: str, *words: str, trap: str = ":") -> subprocess.Popen[str]:
    """Begins a path whose command says `ready` when it is there and has set its traps."""
    # What runs the tests may ignore signals, as `nohup` does, and its children with it.
    heeding = ["env", "--default-signal=HUP,INT,TERM"]
    command = [*heeding, PACELINE, "path", *words, link, "--", "sh", "-c", f"{trap}; echo ready; {script}"]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    BEGUN.append(started)
    assert started.stdout
    assert started.stdout.readline() == "ready\n"
    return started


def until(condition: Callable[[], bool], seconds: float = 5) -> bool:
    """Whether it comes true within some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def test_a_signal_is_the_commands_and_the_summary_is_written(link: str) -> None:
    require("namespaces")
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
        # (a shell lets its child have SIGINT alone)
        path = begin(link, f"exec sleep {next(SECONDS)}")
        path.send_signal(number)
        _, said = path.communicate(timeout=20)
        assert path.returncode == code, said
        assert "Emulator" in said
    path = begin(link, f"sleep {next(SECONDS)} & wait", trap="trap 'echo caught; exit 5' TERM")
    path.send_signal(signal.SIGTERM)
    out, _ = path.communicate(timeout=20)
    # (what came with `ready` would be missing here; this comes after the signal)
    assert (out, path.returncode) == ("caught\n", 5)


def test_a_command_that_does_not_end_is_killed(link: str) -> None:
    require("namespaces")
    seconds = next(SECONDS)
    path = begin(link, f"sleep {seconds}; sleep {seconds}", trap="trap '' TERM")
    path.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        path.wait(timeout=1)
    # said twice it is meant
    path.send_signal(signal.SIGTERM)
    _, said = path.communicate(timeout=20)
    assert path.returncode == 137
    assert "Emulator" in said
    assert not processes(str(seconds))
    began = time.monotonic()
    done = run("--for", "500 ms", link, "--", "sleep", str(next(SECONDS)))
    assert done.returncode == 0
    assert "ended after its time" in done.stderr
    assert time.monotonic() - began < 20


def on_terminal(words: list[str], dialogue: list[tuple[bytes, bytes]]) -> tuple[int, bytes]:
    """Runs a program on a terminal of its own: waits for a text, types an answer; its exit code and all it said."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(words[0], words)
    said = b""
    end = time.monotonic() + 30
    try:
        while time.monotonic() < end:
            while dialogue and dialogue[0][0] in said:
                os.write(terminal, dialogue.pop(0)[1])
            if select.select([terminal], [], [], 1)[0]:
                said += os.read(terminal, 65536)
        os.kill(pid, signal.SIGKILL)
    except OSError:
        # the last that had the terminal has ended
        pass
    finally:
        os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def test_ctrl_c_reaches_the_command(link: str) -> None:
    require("namespaces")
    seconds = str(next(SECONDS))
    sleeps = [PACELINE, "path", link, "--", "sh", "-c", f"echo re''ady; exec sleep {seconds}"]
    code, said = on_terminal(sleeps, [(b"ready", b"\x03")])
    assert code == 130, said
    assert b"Emulator" in said
    assert not processes(seconds)
    # A program that has a use for it goes on; paceline with it.
    script = "trap 'echo ca''ught' INT; echo re''ady; while read -r line; do echo got $line; done; exit 3"
    code, said = on_terminal(
        [PACELINE, "path", link, "--", "bash", "-c", script],
        [(b"ready", b"\x03"), (b"caught", b"word\n"), (b"got word", b"\x04")],
    )
    assert code == 3, said
    assert b"Emulator" in said


def test_a_shell_has_its_job_control(link: str) -> None:
    require("namespaces")
    dialogue = [
        (b"$ ", b"sh -c 'echo be$((1))gun; exec sleep 7777'\n"),
        (b"be1gun", b"\x03"),
        (b"^C", b"echo st$((1))ill; exit 4\n"),
    ]
    shell = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
    code, said = on_terminal(["/usr/bin/env", "PS1=$ ", PACELINE, "path", link, "--", *shell], dialogue)
    assert code == 4, said
    assert b"st1ill" in said
    assert b"cannot set terminal" not in said
    assert b"Emulator" in said


def interfaces() -> set[str]:
    return {line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]}


def namespaces() -> set[str]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.add(str((entry / "ns" / "net").readlink()))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("far", ["sleep 72345", "host"])
def test_nothing_is_left_of_a_killed_path(link: str, far: str) -> None:
    require("namespaces")
    if far == "host":
        require("root", "tun")
    before = interfaces()
    seconds = str(next(SECONDS))
    script = f"setsid nohup sleep {seconds} >/dev/null 2>&1 & sleep {seconds}"
    path = begin(link, script, "--far", far)
    assert until(lambda: len(processes(seconds)) == 2)
    own = {str((Path("/proc") / str(pid) / "ns" / "net").readlink()) for pid in processes(seconds)}
    devices = interfaces() - before
    assert len(own) == 1
    assert own <= namespaces()
    path.send_signal(signal.SIGKILL)
    path.wait(timeout=10)
    assert until(lambda: not processes(seconds) and not processes("72345"))
    assert until(lambda: not namespaces() & own)
    assert until(lambda: not interfaces() & devices)
    if far == "host":
        assert devices


def test_what_a_command_leaves_running_ends_with_it(link: str) -> None:
    require("namespaces")
    seconds = str(next(SECONDS))
    daemon = f"(setsid nohup sleep {seconds} >/dev/null 2>&1 &); setsid sleep {seconds} & sleep 0.2"
    assert run(link, "--", "sh", "-c", daemon).returncode == 0
    assert not processes(seconds)


def test_two_paths_end_on_this_host_at_once(link: str) -> None:
    require("root", "tun", "ping")
    first = begin(link, f"echo $PACELINE_PEER; exec sleep {next(SECONDS)}", "--far", "host")
    assert first.stdout
    peer = first.stdout.readline().strip()
    second = run(
        "--far", "host", link, "--", "sh", "-c", "echo $PACELINE_PEER; ping -n -c 2 -i 0.2 $PACELINE_PEER"
    )
    first.terminate()
    first.communicate(timeout=20)
    assert peer != second.stdout.split()[0]
    assert second.returncode == 0
    assert [ms for ms in times(second.stdout) if 40 <= ms < 60] == times(second.stdout)
    assert not any(name.startswith("paceline") for name in interfaces())


@pytest.mark.parametrize("device", ["tun", "packet"])
def test_a_user_without_privileges(link: str, device: str) -> None:
    require("namespaces", "ping", "iperf3")
    if device == "tun":
        require("tun")
    line = (
        f"ping -n -c 4 -i 0.1 $PACELINE_PEER >&2 && ping -n -c 4 -i 0.1 $PACELINE_PEER6 >&2 && {IPERF3} -t 2"
    )
    words = ("--json", "--device", device, "--far", "iperf3 -s -1", link, "--", "sh", "-c", line)
    done = run(*words, before=unprivileged())
    assert done.returncode == 0, done.stderr + done.stdout
    assert [ms for ms in times(done.stderr) if 40 <= ms < 60] == times(done.stderr)
    assert len(times(done.stderr)) == 8
    assert json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] > 3e6
    assert summary(done)["path"]["devices"] == [device] * 2


def test_who_one_is_stays_the_same(link: str) -> None:
    require("namespaces")
    done = run(link, "--", "sh", "-c", "id -u; grep CapEff /proc/self/status", before=unprivileged())
    uid, _, effective = done.stdout.split()
    assert int(uid) == (1000 if os.geteuid() == 0 else os.geteuid())
    # CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW, and no more
    assert int(effective, 16) == 1 << 10 | 1 << 12 | 1 << 13


def test_refusals_say_what_why_and_what_to_do(link: str) -> None:
    require("root", "namespaces", "ping")
    # Without the device there is a veth pair, and a word about it.
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "sh"]
    done = run(link, "--", "ping", "-n", "-c", "1", FAR, before=hidden)
    assert done.returncode == 0
    flat = " ".join(done.stderr.split())
    assert "open(/dev/net/tun) was refused: No such file or directory (ENOENT)" in flat
    assert "modprobe tun" in flat
    assert "packet" in flat
    done = run("--device", "tun", link, "--", "true", before=hidden)
    assert done.returncode == 1
    assert "end of the path: open(/dev/net/tun) was refused" in done.stderr
    # On the host's own side it takes real privileges.
    done = run("--far", "host", link, "--", "true", before=unprivileged())
    assert done.returncode == 1
    assert re.search(
        r"the far end of the path: ioctl\(TUNSETIFF\) was refused: .* \(EPERM\)\..*as root", done.stderr
    )
    # A system that allows no user namespaces.
    none = (
        'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    )
    done = run(link, "--", "true", before=["unshare", "--user", "--map-root-user", "sh", "-c", none, "sh"])
    assert done.returncode == 1
    assert "CLONE_NEWUSER" in done.stderr
    assert "(ENOSPC). The limit of namespaces is reached (user.max_user_namespaces is 0" in done.stderr


def test_python_has_it_too(link: str) -> None:
    require("namespaces", "ping")
    ran = paceline.path(
        link, ["ping", "-n", "-q", "-c", "5", "-i", "0.1", FAR], set={"link.bottleneck.delay": "5 ms"}
    )
    assert ran.status == 0
    assert [row["entered"] for row in ran.report["directions"]] == [5, 5]
    assert isinstance(ran.results.queues, pl.DataFrame)
    with pytest.raises(paceline.PathError, match="ENOENT") as missing:
        paceline.path(link, ["no-such-program"])
    assert missing.value.exit_code == 127
    with pytest.raises(paceline.PacelineError, match="no command"):
        paceline.path(link, [])
