"""Atomic file writes, and the provenance in manifests. Tables: `table_files`."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

from paceline import _core
from paceline.errors import PacelineError, StorageError


class Disk:
    """The calls that change a disk. Everything that is written of results passes through `DISK`: a test replaces it by
    one that is full, writes partially, or stops between two calls."""

    def make_directory(self, path: Path) -> None:
        """Creates a directory and its parents, and checks that it is writable."""
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass

    def create(self, path: Path) -> io.RawIOBase:
        """Opens a new file, or truncates an old one."""
        return io.FileIO(path, "w")

    def rename(self, path: Path, to: Path) -> None:
        """Atomically replaces one file by another."""
        path.replace(to)

    def remove(self, path: Path) -> None:
        """Removes a file if it exists."""
        path.unlink(missing_ok=True)


DISK = Disk()
_PART = ".part"
MAX_TEXT = 256 << 20
"""The limit on bytes of a text or JSON document that is read completely."""
_KINDS = (
    (stat.S_ISFIFO, "a pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def refused(path: Path, error: OSError, deed: str = "write") -> StorageError:
    """The error for a system's refusal to `deed` the path. A missing or unreadable file is a mistake in the request, as
    for scenarios."""
    failure = StorageError(f"cannot {deed} {path}: {error.strerror or error}")
    if deed == "read" and isinstance(error, FileNotFoundError | IsADirectoryError | IrregularError):
        failure.exit_code = PacelineError.exit_code
    return failure


class IrregularError(OSError):
    """The path is not a regular file. It is an `OSError`, so that code that opens files handles it."""


def check_regular(path: Path) -> None:
    """Raises IrregularError for a pipe, socket or device: opening a pipe waits for a writer. Other problems appear when
    the file is opened."""
    _check_mode(path.stat().st_mode)


def _check_mode(mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    kind = next((name for fits, name in _KINDS if fits(mode)), "no file")
    raise IrregularError(errno.EINVAL, f"it is {kind}, and only regular files are read")


def opened(path: Path) -> BinaryIO:
    """Opens a user's file for reading; only regular files are allowed. Raises OSError, which `refused` converts."""
    check_regular(path)
    # Another file may have replaced it since: do not block on it.
    file = os.fdopen(
        os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb"
    )
    try:
        _check_mode(os.fstat(file.fileno()).st_mode)
    except OSError:
        file.close()
        raise
    return file


def read_bytes(path: Path, max_bytes: int = MAX_TEXT) -> bytes:
    """A file's content. Raises StorageError, also for more than `max_bytes`."""
    try:
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            content = file.read(max_bytes + 1) if size <= max_bytes else b""
    except OSError as error:
        raise refused(path, error, "read") from error
    if max(size, len(content)) > max_bytes:
        raise StorageError(
            f"cannot read {path}: it has {max(size, len(content)):,} bytes, and the limit is {max_bytes:,}"
        )
    return content


def make_directory(path: Path) -> None:
    """Creates a directory and its parents, and checks that it is writable. Raises StorageError."""
    try:
        DISK.make_directory(path)
    except OSError as error:
        raise refused(path, error, "make or write directory") from error


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write that replaces `path` at the end, and is removed on failure. Raises StorageError."""
    # The name contains the process ID, so that two processes in one directory do not collide.
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_PART}")
    try:
        with io.BufferedWriter(DISK.create(temporary)) as file:
            yield file
        DISK.rename(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            DISK.remove(temporary)
        if isinstance(error, OSError):
            raise refused(path, error) from error
        raise


def write_whole(path: Path, content: bytes | str) -> None:
    """Writes a file atomically: a reader sees the old content or all of the new. Raises StorageError."""
    # A file name in the text may have bytes that UTF-8 cannot encode.
    encoded = content.encode(errors="replace") if isinstance(content, str) else content
    with whole(path) as file:
        file.write(encoded)


def copy_whole(path: Path, to: Path) -> None:
    """Copies a file atomically to `to`. Raises StorageError."""
    with whole(to) as file, opened(path) as old:
        shutil.copyfileobj(old, file)


def remove(path: Path) -> None:
    """Removes a file if it exists. Raises StorageError."""
    try:
        DISK.remove(path)
    except OSError as error:
        raise refused(path, error, "remove") from error


def is_part(path: Path) -> bool:
    """Whether it is a partial file that `whole` left when its process was killed."""
    return path.name.startswith(".") and path.name.endswith(_PART)


def read_text(path: Path) -> str:
    """Reads UTF-8 text. Raises StorageError."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise StorageError(f"cannot read {path}: it is not UTF-8 text ({error.reason})") from error


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object. Raises StorageError."""
    import msgspec  # noqa: PLC0415 (a command that reads no JSON does without)

    try:
        value = msgspec.json.decode(read_bytes(path))
    except (msgspec.DecodeError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise StorageError(f"{path} is damaged: {said}") from error
    if not isinstance(value, dict):
        raise StorageError(f"{path} does not hold a JSON object")
    return value


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of Paceline and of the libraries that its numbers pass through."""
    found = {"paceline": _core.version(), "python": platform.python_version()}
    for library in ("polars", "numpy", "matplotlib"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    return found


def provenance() -> dict[str, Any]:
    """Versions, host and time, as a manifest holds them."""
    return {
        "versions": versions(),
        "host": {
            "platform": platform.platform(),
            "machine": platform.machine(),
            "cpu": _processor(),
            "cores": os.cpu_count(),
            "python": sys.version.split()[0],
        },
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write_json(path: Path, value: object) -> None:
    """Writes JSON, readable and with every digit. Raises StorageError."""
    write_whole(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
