"""The JSON Schemas of files: scenarios (from the core), and campaigns and paths, derived from it."""

from __future__ import annotations

import json
from typing import Any

from paceline import _core
from paceline.arguments import checked
from paceline.errors import PacelineError

KINDS = ("scenario", "campaign", "path")
"""The kinds of files with a schema."""

MAX_TESTS = 10_000
"""The limit on a campaign's tests."""


@checked()
def schema(of: str = "scenario") -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of scenario files, of campaigns ("campaign"), or of files for `paceline path`
    ("path"). Raises PacelineError."""
    scenario: dict[str, Any] = json.loads(_core.schema_json())
    match of:
        case "scenario":
            return scenario
        case "campaign":
            return _campaign(scenario)
        case "path":
            return _path(scenario)
    raise PacelineError(f'there is no schema of "{of}"; there are {", ".join(KINDS)}')


def _named(scenario: dict[str, Any], kind: str) -> dict[str, Any]:
    """The head of a kind's schema."""
    number = scenario["$id"].rsplit(":", 1)[1]
    return {
        "$schema": scenario["$schema"],
        "$id": f"urn:paceline:schema:{kind}:{number}",
        "title": f"Paceline {kind}",
    }


def _path(scenario: dict[str, Any]) -> dict[str, Any]:
    """A scenario's schema without the requirement of a duration and flows."""
    required = [key for key in scenario["required"] if key not in ("duration", "flow")]
    return {
        **scenario,
        **_named(scenario, "path"),
        "description": "A path that programs run over (`paceline path`): a scenario's links.",
        "properties": {
            **scenario["properties"],
            "topology": {
                "description": "Shape of the path.",
                "enum": ["dumbbell", "parking-lot"],
                "default": "dumbbell",
            },
        },
        "required": required,
    }


def _campaign(scenario: dict[str, Any]) -> dict[str, Any]:
    set_ = {
        "description": "Values of the scenario's keys, by their paths: `flow.media.cc`.",
        "type": "object",
        "additionalProperties": {"not": {"type": "null"}},
    }
    file = {"description": "A scenario file, relative to the campaign's.", "type": "string"}
    vary = {
        "description": "Paths of keys, each with its values; paths that vary together share a key, separated by "
        "commas, and each step is a list with a value for each.",
        "type": "object",
        "propertyNames": {"not": {"const": "seed"}},
        "additionalProperties": {"type": "array", "minItems": 1},
    }
    return {
        **_named(scenario, "campaign"),
        "description": "Scenarios that run in turn, scheme by scheme and case by case.",
        "type": "object",
        "properties": {
            "name": {"description": "Its name. Default: the file's.", "type": "string"},
            "description": {"description": "What it is for.", "type": "string", "default": ""},
            "scenario": {**file, "description": "The scenario of every case that names no other."},
            "tests": {
                "description": "How often each case runs with each scheme.",
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_TESTS,
                "default": 1,
            },
            "rest": {
                "description": "Between two runs in real time.",
                "$ref": "#/$defs/Span",
                "default": "0 s",
            },
            "scheme": {
                "description": "What is compared, by name.",
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {
                    "type": "object",
                    "properties": {"set": set_},
                    "additionalProperties": False,
                },
            },
            "case": {
                "description": "The conditions of the comparison, by name. Default: the scenario unchanged.",
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {
                    "type": "object",
                    "properties": {"scenario": file, "set": set_, "vary": vary},
                    "additionalProperties": False,
                },
            },
        },
        "required": ["scheme"],
        "anyOf": [
            {"required": ["scenario"]},
            {
                "properties": {"case": {"additionalProperties": {"required": ["scenario"]}}},
                "required": ["case"],
            },
        ],
        "additionalProperties": False,
        "$defs": {"Span": scenario["$defs"]["Span"]},
    }
