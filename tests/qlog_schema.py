"""The drafts' definitions of qlog, and the records of a log that is to fit them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

CRATE = Path(__file__).parent.parent / "crates/qlog/tests"
SCHEMA = json.loads((CRATE / "schema.json").read_text())


def validator(of: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(SCHEMA | {"$ref": f"#/$defs/{of}"})


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a JSON text sequence (RFC 7464)."""
    text = path.read_text()
    assert text.startswith("\x1e")
    assert text.endswith("\n")
    return [json.loads(record) for record in text.split("\x1e")[1:]]
