"""`paceline suite c4`: specifications of picoquic's simulator, of our own writing, from file to verdict; and junk."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paceline.cli import app
from paceline.scenarios.scenario import load
from paceline.studies.measure import of_run
from paceline.suite import loading, sim_specs
from paceline.suite.suite import Case
from paceline.suite.suite_folders import SuiteError, find

ONE = """main_cc_algo: c4
main_start_time: 0
main_scenario_text: =b1:*1:397:500000;
nb_connections: 1
main_target_time: 3000000
data_rate_in_gbps: 0.01
latency: 10000
queue_delay_max: 40000
icid: 0102
qlog_dir: logs"""
TWO = ONE.replace("nb_connections: 1", "nb_connections: 2") + (
    "\nbackground_cc_algo: bbr\nbackground_start_time: 500000\nbackground_scenario_text: =b1:*1:397:2000000;"
)


def read(text: str) -> Case:
    return sim_specs.read(text, "x.txt", "x", "1")


def settings(text: str) -> dict[str, str]:
    case = read(text)
    assert not case.refused
    # what it sets is a scenario
    load(find("c4")[0] / case.scenario, dict(case.settings))
    return dict(case.settings)


def changed(key: str, value: str) -> str:
    """ONE with a key that says something else, or more."""
    kept = [line for line in ONE.split("\n") if not line.startswith(f"{key}:")]
    return "\n".join([*kept, f"{key}: {value}"])


def test_a_specification_becomes_a_scenario() -> None:
    found = settings(ONE)
    assert found["flow.test.cc"] == "c4"
    assert found["flow.test.app.size"] == "500000 B"
    assert found["link.bottleneck.delay_schedule"] == '[{ at = "0 us", delay = "10000 us" }]'
    assert found["link.bottleneck.queue"] == '{ kind = "droptail", limit = "40000 us" }'
    assert found["link.bottleneck.rate_schedule"] == '[{ at = "0 us", rate = "10000000 bit/s" }]'
    case = read(ONE)
    assert case.scenario == "one.toml"
    assert [
        (c.threshold and c.threshold.most, c.threshold and str(c.threshold.rule)) for c in case.checks
    ] == [
        (3.0, "worst"),
        (3.0, "interval"),
    ]


def test_a_background_connection_has_its_own() -> None:
    found = settings(TWO)
    assert read(TWO).scenario == "two.toml"
    assert (found["flow.other.cc"], found["flow.other.start"]) == ("bbr3", "500000 us")


@pytest.mark.parametrize(
    ("scenario", "rates"),
    [
        ("low_and_up", [(0, 5e6), (2.5e6, 10e6)]),
        ("drop_and_back", [(0, 10e6), (1.5e6, 5e6), (3.5e6, 10e6)]),
        ("black_hole", [(0, 10e6), (2e6, 1), (4e6, 10e6)]),
        ("1000000:U0.002:D0.002:L15000;9000000:U0.01:D0.01:L15000", [(0, 2e6), (1e6, 10e6), (10e6, 2e6)]),
    ],
)
def test_a_link_that_varies(scenario: str, rates: list[tuple[float, float]]) -> None:
    found = settings(changed("link_scenario", scenario))["link.bottleneck.rate_schedule"]
    steps = [
        (float(at), float(rate)) for at, rate in re.findall(r'at = "(\d+) us", rate = "(\d+) bit/s"', found)
    ]
    assert steps[: len(rates)] == rates


def test_a_suspended_link_keeps_its_room_and_comes_again() -> None:
    found = settings(changed("link_scenario", "wifi_suspension"))
    assert found["link.bottleneck.queue"] == '{ kind = "droptail", limit = "50000 B" }'
    assert found["link.bottleneck.rate_schedule"].count('"1 bit/s"') > 5


def test_wifi_jitter_is_on_both_ways_and_rates_may_differ() -> None:
    found = settings(changed("jitter", "7000") + "\nwifi_jitter: 1\ndata_rate_up_in_gbps: 0.002")
    wifi = '{ kind = "bad-wifi", average = "7000 us" }'
    assert (
        found["link.bottleneck.delay_variation"] == found["link.bottleneck.backward.delay_variation"] == wifi
    )
    assert "2000000 bit/s" in found["link.bottleneck.backward.rate_schedule"]


def test_delays_and_limits_that_change_come_again() -> None:
    found = settings(changed("link_scenario", "1000000:L15000:Q100000;60000000:L100000:Q200000"))
    assert found["link.bottleneck.delay_schedule"] == (
        '[{ at = "0 us", delay = "15000 us" }, { at = "1000000 us", delay = "100000 us" }]'
    )
    assert found["link.bottleneck.queue"] == '{ kind = "droptail", limit = "100000 us" }'
    assert found["link.bottleneck.limit_schedule"] == '[{ at = "1000000 us", limit = "200000 us" }]'
    again = settings(changed("link_scenario", "1000000:L15000;2000000:L20000:Q5000"))
    assert again["link.bottleneck.queue"] == '{ kind = "droptail", limit = "1000 GB" }'
    assert [int(at) for at in re.findall(r'at = "(\d+) us", delay', again["link.bottleneck.delay_schedule"])][
        :5
    ] == [0, 1_000_000, 3_000_000, 4_000_000, 6_000_000]
    assert again["link.bottleneck.limit_schedule"].startswith(
        '[{ at = "1000000 us", limit = "5000 us" }, { at = "3000000 us", limit = "1000 GB" }'
    )


def test_a_jitter_that_changes() -> None:
    found = settings(changed("link_scenario", "wifi_fade"))
    fair, bad = (f'{{ kind = "bad-wifi", average = "{us} us" }}' for us in (999, 12000))
    steps = [(0, fair), (1_000_000, bad), (3_000_000, fair)]
    entries = [f'{{ at = "{at} us", variation = {wifi} }}' for at, wifi in steps]
    schedule = f"[{', '.join(entries)}]"
    for link in ("link.bottleneck", "link.bottleneck.backward"):
        assert found[f"{link}.delay_variation_schedule"] == schedule
    assert re.findall(r'"(\d+) bit/s"', found["link.bottleneck.rate_schedule"]) == [
        "10000000",
        "9000000",
        "10000000",
    ]
    ends = settings(changed("link_scenario", "1000000:L15000:J2000:W;90000000:L15000"))
    assert ends["link.bottleneck.delay_variation_schedule"].endswith(', { at = "1000000 us" }]')
    # in a list it is the phase's own, of which there is none
    assert "link.bottleneck.delay_variation" not in settings(
        changed("link_scenario", "1000000:L15000") + "\njitter: 7000\nwifi_jitter: 1"
    )


def test_bursts_of_losses_are_counted_out_both_ways() -> None:
    text = changed(
        "link_scenario", "1000000:U0.01:D0.02:L5;2000000:U0.01:D0.02:L5:B2:P18;16000000:U0.01:D0.02:L5"
    )
    # 3 s are 19 s long here, the last phase's end; what comes again begins at 20 s
    found = settings(text)
    for link, within in (("link.bottleneck", 1_288_490), ("link.bottleneck.backward", 2_576_980)):
        assert found[f"{link}.loss"] == (
            f'{{ kind = "periodic", pass = 19, lose = 2, within = "{within} ns", '
            'during = [{ from = "1000000 us", to = "3000000 us" }] }'
        )


def test_without_a_limit_there_is_none() -> None:
    assert settings(changed("queue_delay_max", ""))["link.bottleneck.queue"] == '{ kind = "unlimited" }'


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("main_cc_algo", "dcubic"),
        ("main_cc_options", "D3"),
        ("main_scenario_text", "=a1:d50:p2:S:n250:80;=vlow:s30:p4:S:n150:3750:G30:I37500;"),
        ("main_scenario_text", "=b1:*3:397:5000;"),
        ("main_scenario_text", "=b1:*1:397:5000;=b2:*1:397:5000;"),
        ("seed_cwin", "100000"),
        ("seed_rtt", "1"),
        ("l4s_max", "1200"),
        ("jitter", "999"),
        ("link_scenario", "1000000:L15000:J999"),
        ("link_scenario", "1000000:L15000:S1200"),
        ("link_scenario", "1000000:L15000:B2:P18;1000000:L15000:B3:P18"),
        ("link_scenario", "1000000:D0.01:L15000:B2:P18;1000000:D0.02:L15000:B2:P18"),
        ("never_heard_of", "1"),
    ],
)
def test_what_cannot_be_carried_is_not_run_and_says_so(key: str, value: str) -> None:
    refused = read(changed(key, value)).refused
    assert refused.startswith(f"{key}: "), refused


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("main_target_time", "0", "1 to 3600000000"),
        ("main_target_time", "soon", "1 to 3600000000"),
        ("main_target_time", "٣", "1 to 3600000000"),
        ("main_target_time", "9" * 5000, "1 to 3600000000"),
        ("latency", "-1", "0 to 60000000"),
        ("queue_delay_max", "1e3", "0 to 60000000"),
        ("data_rate_in_gbps", "nan", "0 to 1000"),
        ("data_rate_in_gbps", "1001", "0 to 1000"),
        ("data_rate_up_in_gbps", "-0.1", "0 to 1000"),
        ("wifi_jitter", "2", "0 to 1"),
        ("nb_connections", "6", "1 to 5"),
        ("main_start_time", "9999999999999", "0 to 3600000000"),
        ("main_cc_algo", "c4; rm", "the name of a controller"),
        ("main_scenario_text", "hello", "a transfer"),
        ("main_scenario_text", "=b1:*1:397:0;", "1 byte or more"),
        ("main_scenario_text", ";", "1 byte or more"),
        ("link_scenario", "sometimes", "black_hole"),
        ("link_scenario", "0:U1", "MICROSECONDS"),
        ("link_scenario", ";", "needs a phase"),
        ("link_scenario", "1000:X5", "U and D"),
        ("link_scenario", "1000:U1001", "U and D"),
        ("link_scenario", "1000:L99999999", "at most 60000000"),
        ("link_scenario", "1000:L1:B1000001", "at most 1000000 packets"),
        ("link_scenario", "1:U0.01;1:U0.02", "more than 1000 phases"),
        ("seed_cwin", "much", "0 to 1000000000000"),
    ],
)
def test_a_mistake_names_file_line_key_and_range(key: str, value: str, said: str) -> None:
    text = changed(key, value)
    line = next(n for n, words in enumerate(text.split("\n"), 1) if words.startswith(f"{key}:"))
    with pytest.raises(SuiteError) as caught:
        read(text)
    assert str(caught.value).startswith(f"x.txt, line {line}: {key}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.txt: needs main_cc_algo"),
        ("main_cc_algo", "x.txt, line 1: must be KEY: VALUE"),
        ("\n: c4", "x.txt, line 2: must be KEY: VALUE"),
        (f"{ONE}\nlatency: 1", "x.txt, line 11: latency is given twice, first in line 7"),
        (ONE.replace("nb_connections: 1", "nb_connections: 2"), "x.txt: needs background_cc_algo"),
    ],
)
def test_a_file_that_is_none_says_why(text: str, said: str) -> None:
    with pytest.raises(SuiteError, match=re.escape(said)):
        read(text)


def test_junk_is_an_error_and_no_traceback() -> None:
    """Two thousand specifications with letters changed: each is a case, or an error that names the file."""
    draw = random.Random(1)
    letters = ":;=*.-0123456789UDLQJBPSWab \n\t\0é٣"
    outcomes = set()
    for _ in range(2000):
        text = list(
            TWO
            + draw.choice(
                [
                    "",
                    "\nlink_scenario: 1000000:U0.01:D0.02:L5:Q7:J9:B2:P3:W;900:L6;",
                    "\nlink_scenario: black_hole",
                ]
            )
        )
        for _ in range(draw.randint(1, 8)):
            at = draw.randrange(len(text))
            text[at : at + draw.randint(0, 3)] = draw.choices(letters, k=draw.randint(0, 3))
        try:
            outcomes.add("undecided" if read("".join(text)).refused else "case")
        except SuiteError as error:
            outcomes.add("error" if str(error).startswith("x.txt") else str(error))
    assert outcomes == {"undecided", "case", "error"}


def test_folders_that_hold_no_specifications(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="no such folder"):
        loading.load("c4", tmp_path / "none")
    with pytest.raises(SuiteError, match=re.escape("1 to 1000 specifications (*.txt), not 0")):
        loading.load("c4", tmp_path)
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(SuiteError, match="not UTF-8 at byte 0"):
        loading.load("c4", tmp_path)
    (tmp_path / "a.txt").write_bytes(b"#" * 70_000)
    with pytest.raises(SuiteError, match="more than 65536 bytes"):
        loading.load("c4", tmp_path)
    with pytest.raises(SuiteError, match="has its own cases"):
        loading.load("bbr", tmp_path)


def test_the_command_runs_judges_and_says_what_it_could_not(tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "easy.txt").write_text(ONE)
    (specs / "never.txt").write_text(changed("main_target_time", "100000"))
    (specs / "fades.txt").write_text(changed("link_scenario", "wifi_fade"))
    (specs / "normal.txt").write_text(changed("jitter", "999"))
    words = ["suite", "c4", "--specs", str(specs), "--runs", "5", "--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1, done.output
    cases = {case["case"]: case for case in json.loads(done.stdout)["cases"]}
    assert {key: case["verdict"] for key, case in cases.items()} == {
        "easy": "pass",
        "never": "fail",
        "fades": "pass",
        "normal": "undecided",
    }
    worst, mean = cases["easy"]["checks"]
    # 500 kB at 10 Mbit/s take 0.41 s of payload, after a handshake of 20 ms
    assert all(0.43 < value < 1.0 for value in worst["runs"])
    assert (worst["rule"], mean["rule"], worst["source"]) == (
        "worst",
        "interval",
        "easy.txt: main_target_time",
    )
    assert "jitter is normally distributed" in cases["normal"]["cannot_run"]
    assert f"--specs {specs}" in cases["easy"]["command"]


def test_another_scheme_takes_the_main_controller_s_place(tmp_path: Path) -> None:
    (tmp_path / "easy.txt").write_text(ONE)
    suite = loading.load("c4", tmp_path)
    from paceline.suite import running

    compiled, refused = running.plan(suite, running.subjects_of(suite, ["as-specified", "cubic"]))
    assert not refused
    own, cubic = compiled.studies["easy"].series
    assert dict(own.settings)["flow.test.cc"] == "c4"
    assert dict(cubic.settings)["flow.test.cc"] == "cubic"


def test_without_a_folder_it_asks_for_one() -> None:
    done = CliRunner().invoke(app, ["suite", "c4"])
    assert done.exit_code == 2
    assert "c4 takes its cases from files: --specs DIR" in " ".join(done.stderr.split())


def test_a_folder_of_which_none_can_be_carried_is_undecided(tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "normal.txt").write_text(changed("jitter", "999"))
    done = CliRunner().invoke(app, ["suite", "c4", "--specs", str(specs), "--out", str(tmp_path / "out")])
    assert done.exit_code == 3, done.output
    assert "jitter is normally distributed" in " ".join(done.stdout.split())


MEDIA = changed(
    "main_scenario_text",
    "=a1:d50:p2:S:n90:80;=vlow:s30:p4:S:n60:3750:G30:I37500;=vmid:s30:p6:S:n60:6250:G30:I62500:D250000;",
) + (
    "\nmedia_stats_start: 200000\nmedia_latency_average: 47000\nmedia_latency_max: 160000\nmedia_excluded: vmid"
)


def test_streams_of_media_are_tracks_of_one_connection() -> None:
    case, found = read(MEDIA), settings(MEDIA)
    assert case.scenario == "media.toml"
    # the stream that lasts longest leads, and what has the lower number there has the greater priority here
    assert [found[f"flow.{flow}.bundle.priority"] for flow in ("second", "test", "third")] == [
        "254",
        "252",
        "250",
    ]
    assert 'rate = "1170000 bit/s"' in found["flow.test.app"]
    assert "key_size = 10.0" in found["flow.test.app"]
    assert 'packet = "68 B", interval = "0.020000000 s"' in found["flow.second.app"]
    assert 'deadline = "250000 us"' in found["flow.third.quic"]
    assert [found[f"flow.{flow}.group"] for flow in ("test", "second", "third")] == [
        "media",
        "media",
        "excluded",
    ]
    assert (found["flow.test.start"], found.get("flow.test.stop")) == ("30000 us", None)
    assert ("frames = 60 " in found["flow.test.app"], "packets = 90 " in found["flow.second.app"]) == (
        True,
        True,
    )
    # less the latency of 10 ms
    assert [c.threshold.most for c in case.checks if c.threshold][:2] == [37.0, 150.0]


def test_what_lacks_of_a_stream_is_not_made_up_by_another() -> None:
    check = next(check for check in read(MEDIA).checks if check.key == "complete")
    metrics = loading.load("c4").metrics

    def holds(*streams: tuple[int, int, int]) -> bool:
        names = ("frames_sent", "frames_complete", "frames_reset")
        rows = [{"group": "media", **dict(zip(names, counts, strict=True))} for counts in streams]
        left_out = {"group": "excluded", "frames_sent": 9, "frames_complete": 0, "frames_reset": 0}
        found = of_run(metrics, {"flows": [*rows, left_out]})
        assert check.threshold is not None
        return check.threshold.holds(found[check.ours.removesuffix('["{scheme}"]')])

    assert holds((90, 90, 0), (60, 58, 2), (60, 60, 0))
    # two of the first lack, as many as were given up of the second
    assert not holds((60, 58, 0), (60, 58, 2))
    assert not holds((90, 89, 0))
    # thirds have no float
    assert holds((3, 2, 1), (49, 48, 1))


def test_four_streams_have_a_scenario_of_their_own() -> None:
    streams = "=vmid:s30:p6:S:n60:6250:G30:I62500:D250000;"
    assert streams in MEDIA
    four = MEDIA.replace(streams, streams + "=high:s30:p8:S:n75:8000:G150:I64000:D250000;")
    case, found = read(four), settings(four)
    assert case.scenario == "media-four.toml"
    # it lasts longest, so it leads
    assert [found[f"flow.{flow}.bundle.priority"] for flow in ("test", "second", "third", "fourth")] == [
        "248",
        "254",
        "252",
        "250",
    ]
    assert "key_size = 8.0" in found["flow.test.app"]
    five = four.replace("=high:", "=higher:s30:p9:S:n9:80:G3:I90;=high:")
    assert "5 streams of media; only three or four are supported" in read(five).refused


def test_letters_that_c4_does_not_read_change_nothing() -> None:
    assert not read(changed("main_cc_options", "D")).refused
    of_bbr = changed("main_cc_algo", "bbr") + "\nmain_cc_options: T70"
    assert read(of_bbr).refused.startswith("main_cc_options: T70")


@pytest.mark.parametrize(
    ("of", "to"),
    [("n90:80", "n0:80"), (":G30:I37500", ""), ("I62500", "I9"), ("n90:80", "n90:12")],
)
def test_other_streams_are_refused(of: str, to: str) -> None:
    assert of in MEDIA
    assert "main_scenario_text" in read(MEDIA.replace(of, to)).refused
