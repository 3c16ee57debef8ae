"""The JSON Schema, held by a validator that knows nothing of Paceline."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import paceline
import screen
from paceline import campaign

ROOT = Path(__file__).resolve().parent.parent
VALIDATOR = jsonschema.Draft202012Validator(paceline.schema())
CAMPAIGN = jsonschema.Draft202012Validator(paceline.schema("campaign"))
CAMPAIGNS = sorted(
    file for file in ROOT.glob("examples/campaigns/*.toml") if "scheme" in tomllib.loads(file.read_text())
)
PATHS = sorted((ROOT / "crates/live/profiles").glob("*.toml"))
SCENARIOS = sorted([*ROOT.glob("examples/*.toml"), *ROOT.glob("bench/scenarios/*.toml")])
MISTAKES = sorted((ROOT / "crates/scenario/tests/mistakes").glob("*.toml"))

# What a schema can tell. The rest follows from several keys at once, from a number behind a unit, or from a file.
FORMAL = re.compile(
    r"no such key|must be (a number|a text|a table|an array|true or false|one of)|`-?[\d.]+` must be from|: is required"
    r"|unit `|does not begin with a number|must not be negative|the unit is missing"
)
# Keys that only some scenarios need, which are rules and not the schema's.
RULES = re.compile(
    r"is required(:| \(or| in a| with the| where)|link\.(bottleneck|hop\d+): is required|params|`nan`|protection_rate"
)


def mistakes(file: Path) -> list[str]:
    """What the schema says against a scenario."""
    document: dict[str, Any] = tomllib.loads(file.read_text())
    return [error.message for error in VALIDATOR.iter_errors(document)]


@pytest.mark.parametrize("kind", ["scenario", "campaign", "path"])
def test_it_is_a_schema(kind: str) -> None:
    schema = paceline.schema(kind)
    VALIDATOR.check_schema(schema)
    assert schema["$id"] == f"urn:paceline:schema:{kind}:{paceline.__version__.rsplit('.', 1)[0]}"
    done = screen.paceline("schema", kind)
    assert json.loads(done.stdout) == schema


def test_there_is_no_other_schema() -> None:
    with pytest.raises(paceline.PacelineError, match="there are scenario, campaign, path"):
        paceline.schema("sweep")


@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: file.stem)
def test_every_campaign_of_ours_is_valid(file: Path) -> None:
    assert list(CAMPAIGN.iter_errors(tomllib.loads(file.read_text()))) == []


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ('scenario = "one.toml"\n[scheme.a]', True),
        ('[scheme.a]\n[case.b]\nscenario = "one.toml"\n[case.b.vary]\n"x,y" = [[1, 2]]', True),
        ("[scheme.a]", False),
        ('scenario = "one.toml"', False),
        ('scenario = "one.toml"\nscheme = {}', False),
        ('scenario = "one.toml"\n[scheme.a]\nsets = {}', False),
        ('scenario = "one.toml"\ntest = 3\n[scheme.a]', False),
        ('scenario = "one.toml"\ntests = 0\n[scheme.a]', False),
        ('scenario = "one.toml"\ntests = "3"\n[scheme.a]', False),
        ('scenario = "one.toml"\nrest = "5 sec"\n[scheme.a]', False),
        ('scenario = "one.toml"\n[scheme.a]\nset = "flow.media.cc=vegas"', False),
        ('scenario = "one.toml"\n[scheme.a]\n[case.b]\nvary = { "flow.media.cc" = [] }', False),
        ('scenario = "one.toml"\n[scheme.a]\n[case.b]\nvary = { seed = [1, 2] }', False),
        ('[scheme.a]\n[case.b]\nscenario = "one.toml"\n[case.c]', False),
    ],
)
def test_campaigns_are_valid_if_they_are_read(text: str, good: bool, tmp_path: Path) -> None:
    assert CAMPAIGN.is_valid(tomllib.loads(text)) == good
    shutil.copy(ROOT / "examples/campaigns/one-flow.toml", tmp_path / "one.toml")
    file = tmp_path / "campaign.toml"
    steps = '"link.bottleneck.rate,link.bottleneck.delay" = [["1 Mbit/s", "5 ms"]]'
    file.write_text(text.replace('"x,y" = [[1, 2]]', steps))
    if good:
        campaign.read(file)
    else:
        with pytest.raises(paceline.PacelineError):
            campaign.read(file)


@pytest.mark.parametrize("file", PATHS, ids=lambda file: file.stem)
def test_every_path_of_ours_is_valid(file: Path) -> None:
    validator = jsonschema.Draft202012Validator(paceline.schema("path"))
    document = tomllib.loads(file.read_text())
    assert list(validator.iter_errors(document)) == []
    assert not validator.is_valid({**document, "topology": "graph"})
    assert not validator.is_valid({**document, "links": {}})


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_every_scenario_of_ours_is_valid(file: Path) -> None:
    assert mistakes(file) == []


def formal(file: Path) -> bool:
    """Whether the schema can tell of a mistake in this file."""
    lines = file.with_suffix(".txt").read_text().splitlines()
    return any(FORMAL.search(line) and not RULES.search(line) for line in lines)


def test_it_refuses_every_mistake_of_form() -> None:
    of_form = [file for file in MISTAKES if not file.stem.startswith("syntax") and file.stem != "key-twice"]
    passed = [file.stem for file in of_form if formal(file) and not mistakes(file)]
    assert passed == []
    assert sum(formal(file) for file in of_form) > 30


@pytest.mark.parametrize(
    ("key", "text", "good"),
    [
        ("duration", "50 ms", True),
        ("duration", " 1.5e3ms ", True),
        ("duration", "+.5 s", True),
        ("duration", "1. min", True),
        ("duration", "1e-3 h", True),
        ("duration", "50", False),
        ("duration", "-5 s", False),
        ("duration", "5 msec", False),
        ("duration", "s", False),
        ("duration", "1,5 s", False),
        ("link.bottleneck.rate", "10 Mbit/s", True),
        ("link.bottleneck.rate", "10Mbps", True),
        ("link.bottleneck.rate", "1e1 MB/s", True),
        ("link.bottleneck.rate", "10 mbit/s", False),
        ("link.bottleneck.rate", "10 M", False),
        ("flow.media.segment", "1 KiB", True),
        ("flow.media.segment", "1 kB", True),
        ("flow.media.segment", "1 kb", False),
        ("link.bottleneck.loss.rate", "1 %", True),
        ("link.bottleneck.loss.rate", "1e-2", True),
        ("link.bottleneck.loss.rate", "1 percent", False),
        ("link.bottleneck.loss.rate", "-1 %", False),
    ],
)
def test_its_patterns_are_what_is_read(key: str, text: str, good: bool) -> None:
    document: dict[str, Any] = {
        "duration": "1 s",
        "link": {"bottleneck": {"rate": "1 Mbit/s", "loss": {"rate": "1 %"}}},
        "flow": {"media": {}},
    }
    *tables, last = key.split(".")
    table = document
    for name in tables:
        table = table[name]
    table[last] = text
    assert VALIDATOR.is_valid(document) == good
    toml = """
        duration = "1 s"
        link.bottleneck.rate = "1 Mbit/s"
        link.bottleneck.delay = "1 ms"
        link.bottleneck.loss.rate = "1 %"
        flow.media.segment = "1000 B"
    """
    changed = re.sub(
        rf"^( *{re.escape(key)} = ).*$", lambda found: f'{found[1]}"{text}"', toml, flags=re.MULTILINE
    )
    assert changed != toml or text == "1 %"
    if good:
        paceline.parse(changed)
    else:
        with pytest.raises(paceline.ScenarioError):
            paceline.parse(changed)


@pytest.mark.parametrize(
    ("flow", "good"),
    [
        ({"cc": "scream", "params": {"variant": "ericsson", "clock": 0.5}}, True),
        ({"cc": "scream", "params": {"variant": "ericsson", "mss": 1000}}, False),
        ({"cc": "scream", "params": {"mss": 1000}}, True),
        ({"cc": "scream", "params": {"variant": "draft", "clock": 0.5}}, False),
        ({"cc": "scream", "params": {"variant": "libwebrtc", "padding": False}}, True),
        ({"cc": "scream-ericsson", "params": {"clock": 0.5}}, True),
        ({"cc": "scream-ericsson", "params": {"mss": 1000}}, False),
        ({"cc": "scream", "params": {"variant": "erricson"}}, False),
        ({"cc": "scream", "params": {"variant": 1}}, False),
        ({"cc": "scream-ericsson", "params": {"variant": "ericsson"}}, True),
        ({"cc": "scream-ericsson", "params": {"variant": "draft"}}, False),
        ({"cc": "gcc", "params": {"variant": "draft"}}, False),
    ],
)
def test_there_are_these_variants_with_parameters_of_their_own(flow: dict[str, Any], good: bool) -> None:
    link = {"rate": "1 Mbit/s", "delay": "10 ms"}
    scenario = {"duration": "10 s", "link": {"bottleneck": link}, "flow": {"call": flow}}
    assert VALIDATOR.is_valid(scenario) is good
    params = ", ".join(f"{key} = {json.dumps(value)}" for key, value in flow["params"].items())
    text = f"""
        duration = "10 s"
        link.bottleneck = {{ rate = "1 Mbit/s", delay = "10 ms" }}
        flow.call = {{ cc = "{flow["cc"]}", params = {{ {params} }} }}
    """
    if good:
        paceline.parse(text)
    else:
        with pytest.raises(paceline.ScenarioError):
            paceline.parse(text)
