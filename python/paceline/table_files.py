"""Tables in files: Parquet with units, and CSV."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from paceline import files
from paceline.arrow import FieldUnits
from paceline.errors import StorageError
from paceline.quantities import unit_of


@contextlib.contextmanager
def _written(path: Path) -> Iterator[Path]:
    """As `files.whole`, for what Polars writes itself."""
    with files.whole(path) as temporary:
        try:
            yield temporary
        except pl.exceptions.PolarsError as error:
            # Polars does not say it.
            if shutil.disk_usage(path.parent).free < 1 << 20:
                raise files.refused(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) from error
            raise StorageError(f"cannot write {path}: {error}") from error


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
    with _written(path) as temporary:
        table.sink_parquet(temporary, metadata=metadata, arrow_schema=FieldUnits(schema, units))


def write_csv(path: Path, table: pl.DataFrame) -> None:
    """Writes a table as CSV, numbers in full precision. Raises StorageError."""
    files.write_whole(path, table.write_csv())


def read_parquet(path: Path) -> pl.DataFrame:
    """Reads a table. Raises StorageError."""
    try:
        return pl.read_parquet(io.BytesIO(path.read_bytes()))
    except OSError as error:
        raise files.refused(path, error, "read") from error
    except pl.exceptions.PolarsError as error:
        raise StorageError(f"{path} is damaged: {error}") from error


def check_parquet(path: Path) -> None:
    """Whether a table is there and whole, as far as its end tells. Raises StorageError."""
    try:
        pl.read_parquet_schema(path)
    except OSError as error:
        raise files.refused(path, error, "read") from error
    except pl.exceptions.PolarsError as error:
        raise StorageError(f"{path} is damaged: {error}") from error
