"""Reads the footer of a Parquet file before its tables: rows, and their uncompressed size.

The footer uses Thrift's compact protocol (Apache Parquet's `parquet.thrift`: FileMetaData and RowGroup); this reads
values by field number. Polars exposes none of it, and would allocate the memory first.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

_MAGIC = b"PAR1"
_MAX_FOOTER = 64 << 20
_MAX_DEPTH = 16
_FREE = 256 << 20
_MAX_EXPANSION = 400
"""The limit on a table's size in memory over its file's; recordings reach some tens. Tables up to `_FREE` bytes are
always allowed."""
_CELL = 8
"""Bytes of a number, or of a reference to a text, in memory."""


class DamagedError(ValueError):
    """Why a file cannot be read, in words."""


@dataclass(frozen=True)
class Footer:
    """A file's description of its table."""

    rows: int
    columns: int
    unpacked: int
    """Minimum bytes in memory."""


def footer(file: BinaryIO) -> Footer:
    """Reads an open file's footer and rewinds the file. Raises DamagedError if it is not a complete Parquet file, or if
    it would unpack to far more than its size on disk; OSError."""
    size = file.seek(0, os.SEEK_END)
    if size < 12:
        raise DamagedError("it is too short for a Parquet file")
    file.seek(size - 8)
    length, magic = struct.unpack("<I4s", file.read(8))
    if magic != _MAGIC:
        raise DamagedError("it does not end as a Parquet file")
    if length > min(size - 12, _MAX_FOOTER):
        raise DamagedError(f"its footer cannot have {length:,} bytes")
    file.seek(size - 8 - length)
    try:
        found = _of(_Reader(file.read(length)).struct())
    except (IndexError, TypeError, AttributeError, KeyError) as error:
        raise DamagedError("its footer cannot be read") from error
    file.seek(0)
    if found.unpacked > max(_FREE, _MAX_EXPANSION * size):
        raise DamagedError(
            f"its {found.rows:,} rows of {found.columns} columns take {found.unpacked / 1e9:,.1f} GB, and the file has "
            f"{size:,} bytes: no table compresses so well"
        )
    return found


def _of(metadata: dict[int, Any]) -> Footer:
    # FileMetaData: 2 schema (SchemaElement: 5 num_children, which columns have not), 3 num_rows, 4 row_groups
    rows, columns = metadata[3], sum(5 not in element for element in metadata[2])
    groups = metadata.get(4, [])
    if rows < 0 or rows != sum(group[3] for group in groups):
        raise DamagedError("its parts have another number of rows than its footer says")
    # RowGroup: 1 columns (ColumnChunk: 3 meta_data, of which 6 is total_uncompressed_size), 2 total_byte_size
    parts = (sum(max(0, chunk[3][6]) for chunk in group[1]) for group in groups)
    said = sum(max(group[2], part) for group, part in zip(groups, parts, strict=True))
    return Footer(rows, columns, max(said, rows * columns * _CELL))


class _Reader:
    """Reads values of Thrift's compact protocol. Raises IndexError at the end of data, DamagedError."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._depth = data, 0, 0

    def struct(self) -> dict[int, Any]:
        """A structure's fields by number."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise DamagedError("its footer is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._whole()
            fields[number] = self._value(head & 15)
        self._depth -= 1
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self._whole()
        if kind == 7:
            return self._bytes(8)
        read = {3: self._byte, 8: self._binary, 9: self._list, 10: self._list, 12: self.struct}.get(kind)
        if read is None:
            raise DamagedError("its footer has values of an unknown kind")
        return read()

    def _binary(self) -> bytes:
        return self._bytes(self._natural())

    def _list(self) -> list[Any]:
        head = self._byte()
        many = head >> 4 if head >> 4 < 15 else self._natural()
        kind = head & 15
        if many > len(self._data) - self._at:
            raise IndexError
        # booleans take a byte each in a list
        return [self._byte() == 1 if kind in (1, 2) else self._value(kind) for _ in range(many)]

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, many: int) -> bytes:
        if many > len(self._data) - self._at:
            raise IndexError
        self._at += many
        return self._data[self._at - many : self._at]

    def _natural(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 63:
                return value

    def _whole(self) -> int:
        value = self._natural()
        return (value >> 1) ^ -(value & 1)
