"""`paceline path` in real time: programs over emulated paths, and what is left of them however they end."""

from __future__ import annotations

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

import pytest

import paceline
from needs import require, unprivileged
from over_path import LINK, PACELINE, measured, run, steal, times
from realtime import conclusive

pytestmark = pytest.mark.realtime

NEAR, FAR, FAR6 = "198.18.0.1", "198.18.0.2", "fdac:e11e::2"


@pytest.fixture
def link(tmp_path: Path) -> str:
    file = tmp_path / "link.toml"
    file.write_text(LINK)
    return str(file)


@pytest.mark.parametrize("device", ["tun", "packet"])
def test_a_program_has_the_set_delay_and_its_own_streams(link: str, device: str) -> None:
    """A program of a user without privileges, which has those of its namespace's network alone. A longer path adds what
    it is longer by, whatever the host's processors take to wake, which both have alike."""
    require("namespaces", "ping")
    if device == "tun":
        require("tun")
    shorter = Path(link).with_name("shorter.toml")
    shorter.write_text(LINK.replace("20 ms", "5 ms"))
    line = "for peer in $PACELINE_PEER $PACELINE_PEER6; do ping -n -c 15 -i 0.05 $peer; done"
    line += "; id -u; grep CapEff /proc/self/status"

    def measure() -> tuple[list[tuple[str, dict[str, Any]]], float]:
        found = [
            measured("--device", device, str(path), "--", "sh", "-c", line, before=unprivileged())
            for path in (shorter, link)
        ]
        return found, max(steal(of_path) for _, of_path in found)

    def check(found: list[tuple[str, dict[str, Any]]]) -> None:
        for family in (1, 2):
            short, long = (times(text.split("PING")[family]) for text, _ in found)
            assert (len(short), len(long)) == (15, 15)
            # never early: a ping has at least 84 bytes, 0.067 ms at 10 Mbit/s each way
            assert min(short) > 10.13, short
            assert min(long) > 40.13, long
            assert abs(statistics.median(long) - statistics.median(short) - 30) < 0.5, (short, long)
            assert statistics.median(short) < 12, short
        text, of_path = found[1]
        assert of_path["path"]["devices"] == [device] * 2
        # 15 of each family and nothing else: no neighbour discovery, no router solicitation
        assert [row["entered"] for row in of_path["path"]["directions"]] == [30, 30]
        assert of_path["path"]["lost_before"] == [0, 0]
        uid, _, effective = text.split()[-3:]
        assert int(uid) == (1000 if os.geteuid() == 0 else os.geteuid())
        # CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW, and no more
        assert int(effective, 16) == 1 << 10 | 1 << 12 | 1 << 13

    conclusive(measure, check)
    if device == "packet":
        return
    variables = "echo $PACELINE_PEER $PACELINE_PEER6 $PACELINE_ADDRESS; cat; exit 7"
    done = subprocess.run(
        [PACELINE, "path", link, "--", "sh", "-c", variables],
        input="from stdin",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, f"{FAR} {FAR6} {NEAR}\nfrom stdin")
    assert "Emulator" in done.stderr
    # a reader that has had enough, of much
    line = f"{PACELINE} path {link} -- yes 2>/dev/null | head -c 30M | wc -c"
    piped = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert int(piped.stdout) == 30 << 20, "stdout is the command's alone"


def test_both_ends_know_when_the_clock_began_and_are_asked_to_end(link: str, tmp_path: Path) -> None:
    """One ping: the times of day before and after it, from the clock's beginning on, enclose its row of `delay`. With
    IPv4 alone no end has IPv6. And all that runs at an end is asked to end: children of a shell, which does not pass a
    signal on, and what the command has left running."""
    require("namespaces", "ping")
    out, near, now = tmp_path / "out", tmp_path / "near.txt", "date +%s.%N"
    addresses = "env | grep PACELINE_PEER; cat /proc/net/if_inet6"
    program = "sh -c 'trap \"echo whole; exit\" TERM; echo begun; while :; do sleep 0.05; done' 2> /dev/null"
    line = (
        f"{program} > {near} & {{ {addresses}; }} > {tmp_path}/addresses; {now};"
        f" ping -n -c 1 $PACELINE_PEER > {tmp_path}/ping; {now}; echo $PACELINE_START"
    )
    # The far command begins first; what the near one does lies well behind the clock's beginning.
    far_line = f"{addresses}; echo $PACELINE_START; {program}; true"
    done = subprocess.run(
        [PACELINE, "path", "--ipv4", "--out", str(out), "--far", far_line, link, "--", "sh", "-c", line],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PACELINE_PEER6": "of an outer path"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after, start = done.stdout.split()
    assert re.fullmatch(r"\d{10}\.\d{9}", start)
    far = (out / "far.txt").read_text()
    assert far.endswith(f"{start}\nbegun\nwhole\n")
    assert near.read_text() == "begun\nwhole\n"
    for said in (far, (tmp_path / "addresses").read_text()):
        assert re.findall(r"PACELINE_PEER\w*", said) == ["PACELINE_PEER"]
        assert "path0" not in said, "not even an address of the link"
    results = paceline.Results.read(out)
    assert results.manifest["report"]["start"] == start
    (row,) = results.series("delay").filter(direction="forward")["time_s"]
    # A row stands at the end of its interval of 20 ms; double precision has these times to 0.3 us.
    assert float(before) - float(start) < row < float(after) - float(start) + 0.02
    assert float(before) - float(start) > 1, "(the far command listens to nothing)"
    began = results.manifest["report"]["command_start_s"]
    assert 1 < began < row


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
    """Begins a path whose command says `ready` when it is there and has set its traps: see `ready`."""
    # What runs the tests may ignore signals, as `nohup` does, and its children with it.
    heeding = ["env", "--default-signal=HUP,INT,TERM"]
    command = [*heeding, PACELINE, "path", *words, link, "--", "sh", "-c", f"{trap}; echo ready; {script}"]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    BEGUN.append(started)
    return started


def ready(path: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """The path, when its command is there."""
    assert path.stdout
    assert path.stdout.readline() == "ready\n"
    return path


def until(condition: Callable[[], bool], seconds: float = 5) -> bool:
    """Whether it comes true within some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def test_a_signal_is_the_commands_and_nothing_is_left_of_it(link: str) -> None:
    """Paths side by side: each is signalled, and each of them ends as its command does."""
    require("namespaces")
    alone = begin(link, f"exec sleep {next(SECONDS)}")
    caught = begin(link, f"sleep {next(SECONDS)} & wait", trap="trap 'echo caught; exit 5' TERM")
    left = str(next(SECONDS))
    leaves = f"(setsid nohup sleep {left} >/dev/null 2>&1 &); setsid sleep {left} & sleep 0.2"
    leaving = begin(link, leaves)
    for path in (alone, caught, leaving):
        ready(path)
    alone.send_signal(signal.SIGTERM)
    caught.send_signal(signal.SIGTERM)
    _, said = alone.communicate(timeout=20)
    assert alone.returncode == 143, said
    assert "Emulator" in said
    out, _ = caught.communicate(timeout=20)
    # (what came with `ready` would be missing here; this comes after the signal)
    assert (out, caught.returncode) == ("caught\n", 5)
    _, said = leaving.communicate(timeout=20)
    assert leaving.returncode == 0, said
    assert not processes(left), "what a command leaves running ends with it"


@pytest.mark.long
def test_other_signals_and_one_that_is_ignored(link: str) -> None:
    require("namespaces")
    # (a shell lets its child have SIGINT alone)
    codes = {signal.SIGINT: 130, signal.SIGHUP: 129}
    alone = {number: begin(link, f"exec sleep {next(SECONDS)}") for number in codes}
    seconds = str(next(SECONDS))
    stubborn = begin(link, f"sleep {seconds}; sleep {seconds}", trap="trap '' TERM")
    for path in (*alone.values(), stubborn):
        ready(path)
    for number, path in alone.items():
        path.send_signal(number)
    stubborn.send_signal(signal.SIGTERM)
    for number, path in alone.items():
        _, said = path.communicate(timeout=20)
        assert path.returncode == codes[number], said
        assert "Emulator" in said
    with pytest.raises(subprocess.TimeoutExpired):
        stubborn.wait(timeout=0.5)
    # said twice it is meant
    stubborn.send_signal(signal.SIGTERM)
    _, said = stubborn.communicate(timeout=20)
    assert stubborn.returncode == 137
    assert "Emulator" in said
    assert not processes(seconds)
    done = run("--for", "200 ms", link, "--", "sleep", str(next(SECONDS)))
    assert done.returncode == 0
    assert "ended after its time" in done.stderr


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


@pytest.mark.long
def test_a_terminal_is_the_commands(link: str) -> None:
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
    # A shell has its job control.
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


def test_nothing_is_left_of_killed_paths_and_two_end_on_this_host_at_once(link: str) -> None:
    require("root", "tun", "ping")
    before = interfaces()
    seconds = str(next(SECONDS))
    script = f"echo $PACELINE_PEER; setsid nohup sleep {seconds} >/dev/null 2>&1 & sleep {seconds}"
    to_host, to_program = begin(link, script, "--far", "host"), begin(link, script, "--far", "sleep 72345")
    assert ready(to_host).stdout
    assert to_host.stdout
    peer = to_host.stdout.readline().strip()
    ready(to_program)
    assert until(lambda: len(processes(seconds)) == 4)
    own = {str((Path("/proc") / str(pid) / "ns" / "net").readlink()) for pid in processes(seconds)}
    devices = interfaces() - before
    assert (len(own), bool(devices)) == (2, True)
    assert own <= namespaces()
    line = "echo $PACELINE_PEER; ping -n -c 2 -i 0.2 $PACELINE_PEER"
    second = run("--far", "host", link, "--", "sh", "-c", line)
    for path in (to_host, to_program):
        path.send_signal(signal.SIGKILL)
        path.wait(timeout=10)
    assert second.returncode == 0, second.stderr
    assert peer != second.stdout.split()[0]
    assert [ms for ms in times(second.stdout) if 40 <= ms < 60] == times(second.stdout)
    assert until(lambda: not processes(seconds) and not processes("72345"))
    assert until(lambda: not namespaces() & own)
    assert until(lambda: not interfaces() & devices)
    assert not any(name.startswith("paceline") for name in interfaces())


@pytest.mark.long
def test_refusals_say_what_why_and_what_to_do(link: str, tmp_path: Path) -> None:
    require("root", "namespaces", "ping")
    for words, code, text in [
        ((link, "--", "no-such-program"), 127, "execve(2) was refused: No such file or directory (ENOENT)"),
        ((link, "--", str(tmp_path)), 126, "(EACCES)"),
        ((link, "--far", "echo broken >&2; exit 4", "--", "true"), 1, "ended at once, with exit code 4"),
    ]:
        done = run(*words)
        assert done.returncode == code, done.stderr
        assert text in done.stderr
        assert "Traceback" not in done.stderr
    with pytest.raises(paceline.PathError, match="ENOENT") as missing:
        paceline.path(link, ["no-such-program"])
    assert missing.value.exit_code == 127
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


def test_a_full_disk_takes_no_table(tmp_path: Path) -> None:
    """What was measured is printed, and then said to be written nowhere."""
    require("tmpfs", "namespaces")
    disk, out = tmp_path / "disk", tmp_path / "disk" / "out"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk], check=True)
    try:
        command = [PACELINE, "path", "wide-area", "--out", str(out)]
        ran = subprocess.run([*command, "--", "sleep", "0.5"], capture_output=True, text=True, check=False)
    finally:
        subprocess.run(["umount", disk], check=True)
    assert ran.returncode == 1, ran.stderr
    assert "Path (delay: median)" in ran.stderr
    assert "No space left on device" in ran.stderr
    assert "Written to" not in ran.stderr
