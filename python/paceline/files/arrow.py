"""Units in the metadata of Arrow fields: a schema that Polars writes into Parquet.

Polars has no field metadata, but takes it through Arrow's C data interface, which this module implements.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping

import polars as pl


class _ArrowSchema(ctypes.Structure):
    """`struct ArrowSchema` of the Arrow C data interface."""


_RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(_ArrowSchema))

_ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_ArrowSchema))),
    ("dictionary", ctypes.POINTER(_ArrowSchema)),
    ("release", _RELEASE),
    ("private_data", ctypes.c_void_p),
]

_NAME = b"arrow_schema"


def _capsule_pointer(capsule: object) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, _NAME))


def _encoded(pairs: Mapping[str, str]) -> bytes:
    out = struct.pack("=i", len(pairs))
    for key, value in pairs.items():
        for text in (key.encode(), value.encode()):
            out += struct.pack("=i", len(text)) + text
    return out


class FieldUnits:
    """The Arrow schema of a table; each named column's field has the metadata {"unit": ...}."""

    def __init__(self, schema: pl.Schema, units: Mapping[str, str]) -> None:
        self._schema = schema
        # The schema points into these buffers, which live as long as this object.
        self._metadata = [
            ctypes.create_string_buffer(_encoded({"unit": units[name]})) if name in units else None
            for name in schema
        ]

    def __arrow_c_schema__(self) -> object:
        capsule: object = self._schema.__arrow_c_schema__()
        schema = _ArrowSchema.from_address(_capsule_pointer(capsule))
        for i, buffer in enumerate(self._metadata):
            if buffer is not None:
                schema.children[i].contents.metadata = ctypes.addressof(buffer)
        return capsule
