"""Files written whole or not at all, Parquet with units, and the manifest that says where numbers come from."""

from __future__ import annotations

import contextlib
import errno
import io
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

import polars as pl

from paceline import _core
from paceline.arrow import FieldUnits
from paceline.errors import PacelineError, StorageError
from paceline.quantities import unit_of


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
def _whole(path: Path) -> Iterator[Path]:
    """A file to write that takes the place of `path` at the end, and goes if that fails. Raises StorageError."""
    # The process in the name: two at work in one directory do not disturb each other.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException as error:
        # Polars does not say it.
        full = isinstance(error, pl.exceptions.PolarsError) and shutil.disk_usage(path.parent).free < 1 << 20
        with contextlib.suppress(OSError):
            temporary.unlink()
        if full:
            raise refused(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) from error
        if isinstance(error, OSError):
            raise refused(path, error) from error
        if isinstance(error, pl.exceptions.PolarsError):
            raise StorageError(f"cannot write {path}: {error}") from error
        raise


def write_whole(path: Path, content: bytes | str) -> None:
    """Writes a file whole: a reader sees the old content or all of the new. Raises StorageError."""
    with _whole(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def copy_whole(path: Path, to: Path) -> None:
    """Copies a file; `to` is there when all of it is. Raises StorageError."""
    with _whole(to) as temporary:
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


def write_parquet(path: Path, table: pl.DataFrame | pl.LazyFrame) -> None:
    """Writes a table as Parquet, each column's unit in the metadata of its Arrow field; one that is lazy passes through
    in parts. Raises StorageError."""
    schema = table.collect_schema()
    units = {name: unit for name in schema if (unit := unit_of(name))}
    metadata = {"units": json.dumps(units)}
    if isinstance(table, pl.DataFrame):
        buffer = io.BytesIO()
        table.write_parquet(buffer, metadata=metadata, arrow_schema=FieldUnits(schema, units))
        write_whole(path, buffer.getvalue())
        return
    with _whole(path) as temporary:
        table.sink_parquet(temporary, metadata=metadata, arrow_schema=FieldUnits(schema, units))


def write_csv(path: Path, table: pl.DataFrame) -> None:
    """Writes a table as CSV, numbers in full precision. Raises StorageError."""
    write_whole(path, table.write_csv())


def read_parquet(path: Path) -> pl.DataFrame:
    """Reads a table. Raises StorageError."""
    try:
        return pl.read_parquet(io.BytesIO(path.read_bytes()))
    except OSError as error:
        raise refused(path, error, "read") from error
    except pl.exceptions.PolarsError as error:
        raise StorageError(f"{path} is damaged: {error}") from error


def check_parquet(path: Path) -> None:
    """Whether a table is there and whole, as far as its end tells. Raises StorageError."""
    try:
        pl.read_parquet_schema(path)
    except OSError as error:
        raise refused(path, error, "read") from error
    except pl.exceptions.PolarsError as error:
        raise StorageError(f"{path} is damaged: {error}") from error


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
