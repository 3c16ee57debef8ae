"""Guesses a file's kind from its first bytes, for messages about an unexpected file."""

from __future__ import annotations

import itertools
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path

from paceline.emulator.fitting.frames import PCAP, PCAPNG
from paceline.files import opened, refused

BEGIN = 1 << 16
"""The bytes of a file that are examined."""
_LETTERS = 40
"""The limit on a text's letters in a message."""
_MAX_NAMED = 4
"""The number of files that a message names."""
_MAX_CHECKED = 1000
_GZIP = b"\x1f\x8b"
_SEPARATOR = b"\x1e"
"""The separator before each record of a JSON text sequence (RFC 7464, 2.2)."""
_OF_QLOG = (b'"qlog_version"', b'"file_schema"')
"""Fields in the first object of each qlog: one up to draft 0.4, the other since."""
_EVENTS = b"PCLNEV"


def begin(path: Path) -> bytes:
    """The first bytes of a file, at most `BEGIN`, uncompressed if it is gzip. Raises StorageError."""
    try:
        with opened(path) as file:
            packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            if not packed:
                return file.read(BEGIN)
            # everything that can be uncompressed of a truncated file
            return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(file.read(BEGIN), BEGIN)
    except OSError as error:
        raise refused(path, error, "read") from error
    except zlib.error:
        return b""


def is_qlog(start: bytes) -> bool:
    """Whether a file with these first bytes is a qlog: a JSON object, or a sequence of them, with its fields."""
    plain = start.removeprefix(BOM_UTF8).lstrip(_SEPARATOR + b" \t\r\n")
    return plain.startswith(b"{") and any(field in start for field in _OF_QLOG)


def inside(folder: Path, fits: Callable[[Path], bool]) -> str:
    """The matching files in a folder and its subfolders, as many as a message names: "a, b and 3 more"; empty if none
    was found within the search limit."""
    try:
        near = itertools.chain(sorted(folder.glob("*")), sorted(folder.glob("*/*")))
        found = [str(path) for path in itertools.islice(near, _MAX_CHECKED) if fits(path)]
    except OSError:
        return ""
    rest = len(found) - _MAX_NAMED
    return ", ".join(found[:_MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def is_run(path: Path) -> bool:
    """Whether it is a run directory."""
    return (path / "manifest.json").is_file()


def seems(path: Path) -> str:
    """The guessed kind of a file, and what reads it if Paceline does: "it was taken for ...". Raises StorageError."""
    start = begin(path)
    plain = start.removeprefix(BOM_UTF8).lstrip(b" \t\r\n")
    fields = "without qlog_version or file_schema in its first 64 KiB"
    kinds = (
        (path.stat().st_size == 0, "it is empty"),
        (not plain, "nothing in it can be read"),
        (start.startswith(_EVENTS), "it is an event log (--log-events), which paceline.replay runs again"),
        (
            start[:4] == PCAPNG or start[:4] in PCAP,
            "it is a capture of packets: `paceline call-log` reads the RTP in it",
        ),
        (start.startswith(b"PAR1"), "it is a Parquet table: name the run directory that it is in"),
        (path.name == "manifest.json", f"it is a manifest: name the run directory, {path.parent}"),
        (plain.startswith(_SEPARATOR), f"it was taken for a JSON text sequence {fields}"),
        (plain[:1] in {b"{", b"["}, f"it was taken for JSON {fields}"),
        (b"\0" in start or not _is_text(plain), "it was taken for a binary file, of an unknown kind"),
    )
    known = (said for is_so, said in kinds if is_so)
    return next(known, f'it was taken for text, which begins "{_first_line(plain)}"')


def _is_text(start: bytes) -> bool:
    """Whether it is UTF-8, possibly truncated within a character."""
    return "\ufffd" not in start.decode(errors="replace")[:-3]


def _first_line(start: bytes) -> str:
    """The first line, shortened for a message, without control characters."""
    lines = start.decode(errors="replace").splitlines() or [""]
    first = "".join(letter if letter.isprintable() else " " for letter in lines[0])
    return first if len(first) <= _LETTERS else f"{first[:_LETTERS]}..."
