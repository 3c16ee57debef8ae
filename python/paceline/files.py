"""Files written whole or not at all, and the manifest that says where numbers come from. Tables: `table_files`."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from paceline import _core
from paceline.errors import PacelineError, StorageError


def refused(path: Path, error: OSError, deed: str = "write") -> StorageError:
    """The error for a system's refusal to `deed` the path. To name a file that is not there is a mistake of the
    request, as with scenarios."""
    told = StorageError(f"cannot {deed} {path}: {error.strerror or error}")
    if deed == "read" and isinstance(error, FileNotFoundError):
        told.exit_code = PacelineError.exit_code
    return told


def make_directory(path: Path) -> None:
    """Makes a directory and its parents, and checks that it can be written. Raises StorageError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise refused(path, error, "make or write directory") from error


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write that takes the place of `path` at the end, and goes if that fails. Raises StorageError."""
    # The process in the name: two at work in one directory do not disturb each other.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise refused(path, error) from error
        raise


def write_whole(path: Path, content: bytes | str) -> None:
    """Writes a file whole: a reader sees the old content or all of the new. Raises StorageError."""
    with whole(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def copy_whole(path: Path, to: Path) -> None:
    """Copies a file; `to` is there when all of it is. Raises StorageError."""
    with whole(to) as temporary:
        shutil.copyfile(path, temporary)


def remove(path: Path) -> None:
    """Removes a file if it is there. Raises StorageError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise refused(path, error, "remove") from error


def read_text(path: Path) -> str:
    """Reads UTF-8 text. Raises StorageError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise refused(path, error, "read") from error
    except UnicodeDecodeError as error:
        raise StorageError(f"cannot read {path}: it is not UTF-8 text ({error.reason})") from error


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object. Raises StorageError."""
    try:
        value = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise StorageError(f"{path} is damaged (line {error.lineno}: {error.msg})") from error
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
    """Versions of Paceline and of what its numbers pass through."""
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
