"""Tables in files: Parquet with units, and CSV."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import BinaryIO, cast

import polars as pl

from paceline import files
from paceline.errors import StorageError
from paceline.files import parquet
from paceline.files.arrow import FieldUnits
from paceline.messages.foreign_text import plain
from paceline.quantities import unit_of


class _ErrorKeeper(io.RawIOBase):
    """A file for Polars to write that keeps the system's error, which Polars replaces by its own."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        try:
            return self._file.write(cast(bytes, data))
        except OSError as error:
            self.error = error
            raise


def write_parquet(path: Path, table: pl.DataFrame | pl.LazyFrame) -> None:
    """Writes a table as Parquet, with each column's unit in its Arrow field's metadata; a lazy table is written in
    parts. Raises StorageError."""
    schema = table.collect_schema()
    units = {name: unit for name in schema if (unit := unit_of(name))}
    metadata = {"units": json.dumps(units)}
    if isinstance(table, pl.DataFrame):
        buffer = io.BytesIO()
        table.write_parquet(buffer, metadata=metadata, arrow_schema=FieldUnits(schema, units))
        files.write_whole(path, buffer.getvalue())
        return
    with files.whole(path) as file:
        keeper = _ErrorKeeper(file)
        try:
            table.sink_parquet(
                cast(BinaryIO, keeper), metadata=metadata, arrow_schema=FieldUnits(schema, units)
            )
        except pl.exceptions.PolarsError as error:
            if keeper.error is not None:
                raise keeper.error from error
            raise StorageError(f"cannot write {path}: {error}") from error


def write_csv(path: Path, table: pl.DataFrame) -> None:
    """Writes a table as CSV: numbers in full precision, texts with control characters escaped. Raises StorageError."""
    files.write_whole(path, plain(table.write_csv()))


def read_parquet(path: Path) -> pl.DataFrame:
    """Reads a table. Raises StorageError."""
    try:
        with files.opened(path) as file:
            parquet.footer(file)
            return pl.read_parquet(io.BytesIO(file.read()))
    except OSError as error:
        raise files.refused(path, error, "read") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, parquet.DamagedError) as error:
        raise StorageError(f"{path} is damaged: {error}") from error


def scan_parquet(path: Path) -> pl.LazyFrame:
    """A lazily read table; the path is never a pattern, whatever characters it has."""
    # Absolute: Polars would expand a "~" at the beginning.
    return pl.scan_parquet(path.absolute(), glob=False)


def check_parquet(path: Path) -> None:
    """Checks that a table exists and has a complete footer. Raises StorageError."""
    try:
        with files.opened(path) as file:
            parquet.footer(file)
    except OSError as error:
        raise files.refused(path, error, "read") from error
    except parquet.DamagedError as error:
        raise StorageError(f"{path} is damaged: {error}") from error
