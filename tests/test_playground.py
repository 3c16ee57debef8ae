"""Links that open the playground: what they hold, that it is whole, and what is refused."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from urllib.parse import parse_qs

import pytest

import paceline
from paceline import playground
from paceline.errors import ArgumentError, PacelineError, StorageError

TEXT = """# a comment that stays
duration = "2 s"
[link.bottleneck]
rate = "1 Mbit/s"  # with ü
delay = "1 ms"
[flow.f]
"""
TRACED = TEXT.replace(
    'rate = "1 Mbit/s"',
    'rate_trace = { file = "one.txt", format = "seconds-mbit" }\nbackward.rate = "1 Mbit/s"',
)


def test_the_encoding_is_the_pages() -> None:
    """Raw deflate, base64url without padding: read back with nothing of ours, and the other way about."""
    words = parse_qs(playground.encoded('name = "a"\n', {}, 5), strict_parsing=True)
    (packed,) = words["toml"]
    assert words["runs"] == ["5"]
    assert (
        zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), -15) == b'name = "a"\n'
    )
    assert playground.read("playground.html#toml=K0ktLlGwVTBQMFSy5gIA&runs=5").text == 'test = 0 1";\n'


def test_a_link_holds_text_with_its_comments_and_seeds() -> None:
    fragment = playground.link(TEXT, runs=7)
    assert set(fragment) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=&")
    linked = playground.read(f"http://127.0.0.1:1/x/#{fragment}")
    assert (linked.text, linked.files, linked.runs, linked.preset) == (TEXT, {}, 7, None)
    assert "runs" not in playground.link(TEXT), "one is what the page does without it"


def test_a_link_holds_a_files_text_and_the_traces_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(TRACED)
    (tmp_path / "one.txt").write_text("0 1\n1 2\n")
    linked = playground.read(playground.link(tmp_path / "a.toml"))
    assert linked.text == TRACED
    assert linked.files == {"one.txt": "0 1\n1 2\n"}
    assert playground.read(playground.link(tmp_path / "a.toml", traces=False)).files == {}


def test_a_loaded_scenario_is_the_same_one_behind_its_link(tmp_path: Path) -> None:
    changed = paceline.load("examples/coffee-shop.toml", {"flow.film.cc": "cubic", "seed": 4})
    linked = playground.read(playground.link(changed, runs=2))
    assert paceline.parse(linked.text, name="coffee-shop").to_toml() == changed.to_toml()
    of_dict = playground.link(
        {"duration": "2 s", "flow": {"f": {}}, "link": {"bottleneck": {"rate": "1 Mbit/s", "delay": "1 ms"}}}
    )
    assert paceline.parse(playground.read(of_dict).text).flow_names() == ["f"]


def test_what_no_link_can_hold_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(TRACED)
    long = "".join(f"{n} {1 + (n * 7919 % 1013) / 1013}\n" for n in range(20_000))
    (tmp_path / "one.txt").write_text(long)
    with pytest.raises(
        playground.TooLongError, match=r"one\.txt has \d+ characters as a link: at most 64000"
    ) as raised:
        playground.link(tmp_path / "a.toml")
    assert raised.value.traces == ("one.txt",)
    with pytest.raises(PacelineError, match="a controller of your own"):
        playground.link("examples/own-controller.toml")
    with pytest.raises(ArgumentError, match="runs 0: must be 1 to 1000"):
        playground.link(TEXT, runs=0)
    with pytest.raises(paceline.ScenarioError, match="duration"):
        playground.link(TEXT.replace("2 s", "2 parsecs"))


@pytest.mark.parametrize(
    "link",
    [
        "toml=K0ktLlGwVTBQMFSy5g",  # cut off
        "toml=*",
        "toml=AAAA",
        "runs=many",
        f"files={playground._packed('[1]')}",
        f"files={playground._packed(json.dumps({'a': 1}))}",
    ],
)
def test_a_damaged_link_is_one(link: str) -> None:
    with pytest.raises(PacelineError, match="the link is damaged"):
        playground.read(link)


def test_a_link_that_unfolds_without_end_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playground, "_LARGEST", 1000)
    assert playground.read(f"toml={playground._packed('a' * 1000)}").text == "a" * 1000
    with pytest.raises(PacelineError, match="more than 1 MB"):
        playground.read(f"toml={playground._packed('a' * 1001)}")
    with pytest.raises(playground.TooLongError, match="larger than 1 MB"):
        playground.encoded("a" * 1001, {})


def test_presets_have_files_that_run_and_links(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = playground.presets()
    assert known
    own = [one.file for one in known.values() if one.file.parent.name == "presets"]
    assert sorted(own) == sorted(own[0].parent.glob("*.toml"))
    for preset in known.values():
        assert preset.question
        scenario = paceline.load(preset.file)
        assert playground.unplayable(scenario) is None
    assert playground.read(playground.of_preset("a b", 3)) == playground.Linked(runs=3, preset="a b")
    assert playground.of_page() == ""

    monkeypatch.setattr(playground, "folder", lambda _: tmp_path)
    for damaged in ('[{"name": "x"}]', "[3]", "3", "["):
        (tmp_path / "presets.json").write_text(damaged)
        with pytest.raises(StorageError, match="a list of tables with name, title and question"):
            playground.presets()
