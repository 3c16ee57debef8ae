"""qlog: what is written is what the drafts say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

CRATE = Path(__file__).parent.parent / "crates/qlog/tests"
SCHEMA = json.loads((CRATE / "schema.json").read_text())


def _validator(of: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(SCHEMA | {"$ref": f"#/$defs/{of}"})


def _records(path: Path) -> list[dict[str, Any]]:
    """The records of a JSON text sequence (RFC 7464)."""
    text = path.read_text()
    assert text.startswith("\x1e")
    assert text.endswith("\n")
    return [json.loads(record) for record in text.split("\x1e")[1:]]


def test_what_is_written_fits_the_drafts_definitions() -> None:
    # crates/qlog/tests/written.rs writes each event and each frame, and holds the file against what is written now.
    header, *events = _records(CRATE / "written.sqlog")
    _validator("Header").validate(header)
    event = _validator("Event")
    for record in events:
        event.validate(record)
    defined = {one["properties"]["name"]["const"] for one in SCHEMA["$defs"]["Event"]["oneOf"]}
    assert {record["name"] for record in events} == defined
    frames = {one["properties"]["frame_type"]["const"] for one in SCHEMA["$defs"]["Frame"]["oneOf"]}
    written = {frame["frame_type"] for record in events for frame in record["data"].get("frames", [])}
    assert written == frames


@pytest.mark.parametrize(
    "event",
    [
        {"time": 1.0, "name": "quic:packet_lost", "data": {"trigger": "bad_luck"}},
        {"time": 1.0, "name": "quic:recovery_metrics_updated", "data": {}},
        {"time": 1.0, "name": "recovery:metrics_updated", "data": {"min_rtt": 1}},
        {"time": "1", "name": "quic:congestion_state_updated", "data": {"new": "recovery"}},
        {"time": 1.0, "name": "quic:packets_acked", "data": {"packet_numbers": []}},
    ],
)
def test_the_schema_refuses_what_is_wrong(event: dict[str, Any]) -> None:
    assert not _validator("Event").is_valid(event)
