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


class _Told(io.RawIOBase):
    """A file that Polars writes to, which keeps the system's own error: Polars makes another of it."""

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
    """Writes a table as Parquet, each column's unit in the metadata of its Arrow field; one that is lazy passes through
    in parts. Raises StorageError."""
    schema = table.collect_schema()
    units = {name: unit for name in schema if (unit := unit_of(name))}
    metadata = {"units": json.dumps(units)}
    if isinstance(table, pl.DataFrame):
        buffer = io.BytesIO()
        table.write_parquet(buffer, metadata=metadata, arrow_schema=FieldUnits(schema, units))
        files.write_whole(path, buffer.getvalue())
        return
    with files.whole(path) as file:
        told = _Told(file)
        try:
            table.sink_parquet(
                cast(BinaryIO, told), metadata=metadata, arrow_schema=FieldUnits(schema, units)
            )
        except pl.exceptions.PolarsError as error:
            if told.error is not None:
                raise told.error from error
            raise StorageError(f"cannot write {path}: {error}") from error


def write_csv(path: Path, table: pl.DataFrame) -> None:
    """Writes a table as CSV, numbers in full precision; texts as they are printed. Raises StorageError."""
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
    """A table that is read when it is needed; the path is no pattern, whatever letters are in it."""
    # Absolute: a "~" at the begin would be another folder.
    return pl.scan_parquet(path.absolute(), glob=False)


def check_parquet(path: Path) -> None:
    """Whether a table is there and whole, as far as its end tells. Raises StorageError."""
    try:
        with files.opened(path) as file:
            parquet.footer(file)
    except OSError as error:
        raise files.refused(path, error, "read") from error
    except parquet.DamagedError as error:
        raise StorageError(f"{path} is damaged: {error}") from error
