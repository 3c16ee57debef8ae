"""tshark over a capture, without a user's own plugins and preferences."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DISSECTOR = ROOT / "tools" / "wireshark" / "paceline_tfrc.lua"
RTP = ("-d", "udp.port==5004,rtp", "-d", "udp.port==5005,rtcp")
CHECKSUMS = ("-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")


def tshark(capture: Path, *options: str) -> str:
    """What tshark prints, with the project's dissector and checksums looked at."""
    run = subprocess.run(
        ["tshark", "-X", f"lua_script:{DISSECTOR}", "-r", str(capture), *RTP, *CHECKSUMS, *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(capture.parent), "XDG_CONFIG_HOME": str(capture.parent)},
    )
    assert run.returncode == 0, run.stderr
    assert "Lua:" not in run.stderr, run.stderr
    return run.stdout


def fields(capture: Path, filter_: str, *names: str, options: tuple[str, ...] = ()) -> list[list[str]]:
    """These fields of each packet that passes the filter; a field that is not there is "", several are "a,b"."""
    wanted = [option for name in names for option in ("-e", name)]
    printed = tshark(capture, "-Y", filter_, "-T", "fields", *wanted, *options)
    return [line.split("\t") for line in printed.splitlines()]


def counts(capture: Path, *filters: str) -> list[int]:
    """Packets that pass each of the filters, which have no commas: the file is read once."""
    printed = tshark(capture, "-q", "-z", ",".join(("io,stat,0", *filters)))
    (row,) = [line for line in printed.splitlines() if "<>" in line]
    frames = [int(number) for number in re.findall(r"\| +(\d+)", row.partition("<>")[2])[::2]]
    assert len(frames) == len(filters), printed
    return frames


def count(capture: Path, filter_: str) -> int:
    """Packets that pass the filter."""
    return counts(capture, filter_)[0]
