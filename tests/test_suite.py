"""`paceline suite`: a small suite of the user's own, from its file to verdicts, page, report and JUnit XML."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import polars as pl
import pytest
from typer.testing import CliRunner

import screen
from paceline.cli import app
from paceline.errors import InternalError, Interrupted
from paceline.results.store import Store
from paceline.studies import reproduction
from paceline.suite import junit, loading, running, suite_folders
from paceline.suite.suite import Kind, Subject
from paceline.suite.suite_folders import SuiteError
from paceline.suite.verdict import Outcome
from small_paper import GOODPUT
from test_papers_page import probe

SCENARIO = """
duration = "4 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "droptail", limit = "20 packets" }
[flow.media]
"""
WEB = SCENARIO.replace("[flow.media]", '[flow.media]\napp = { kind = "web" }')
SUITE = (
    """
[suite]
title = "A <small> suite"
source = "Nobody & others"
summary = "Of little."
tests = "scheme"
default = ["newreno"]
runs = 5
"""
    + GOODPUT
    + """
[metric.window]
label = "Greatest window"
table = "cwnd"
match = { flow = "media" }
field = "cwnd_packets"
rows = "most"
[metric.grown]
label = "When the window passed 10 packets"
unit = "s"
table = "cwnd"
match = { flow = "media" }
field = "time_s"
rows = "first"
while = { field = "cwnd_packets", above = 10 }
[metric.peak]
label = "Highest rate"
unit = "Mbit/s"
table = "rate"
match = { flow = "media" }
field = "goodput_bps"
rows = "most"
scale = 1e-6
[section."1"]
title = "Use"
asks = "Is the link used?"
[section."2"]
title = "What no run answers"
asks = "Is it well written?"
later = "a matter of its text."
[[case]]
key = "used"
section = "1"
title = "The link is used"
scenario = "one.toml"
of = ["flow.media"]
beside = [{ key = "all-vegas", label = "Vegas", set = { "flow.media.cc" = "vegas" } }]
axis = { label = "Rate", unit = "Mbit/s", path = "link.bottleneck.rate", values = ["1 Mbit/s", "2 Mbit/s"], x = [1, 2] }
plot = [
    { key = "used", title = "Goodput", metric = "goodput" },
    { key = "used-spread", title = "Runs", metric = "goodput", over = "goodput", kind = "ellipses" },
]
[[case.check]]
label = "goodput"
says = "Something <gets> through"
ours = 'goodput["{scheme}", "2 Mbit/s"]'
unit = "Mbit/s"
least = 0.1
source = "ours: more than nothing"
[[case.check]]
label = "every run"
says = "Something gets through in every run"
ours = 'goodput["{scheme}", "1 Mbit/s"]'
unit = "Mbit/s"
least = 0.01
rule = "worst"
source = "Nobody, section 1"
[[case.check]]
label = "by Vegas"
says = "By Vegas's"
ours = 'mean(goodput["{scheme}"] / goodput["all-vegas"])'
[[case]]
key = "windows"
section = "1"
title = "A window"
scenario = "one.toml"
of = ["flow.media"]
record = ["cwnd", "rate"]
record_every = 0.1
[[case.check]]
label = "rate"
says = "The highest rate of a tenth of a second"
ours = 'peak["{scheme}"]'
unit = "Mbit/s"
[[case.check]]
label = "window"
says = "The greatest window"
ours = 'window["{scheme}"]'
[[case.check]]
label = "grown at"
says = "When it had grown"
ours = 'grown["{scheme}"]'
unit = "s"
[[case]]
key = "pages"
section = "1"
title = "Pages"
scenario = "web.toml"
of = ["flow.media"]
[[case.check]]
label = "goodput"
says = "Pages come"
ours = 'goodput["{scheme}"]'
most = 100
source = "ours: it is a number"
"""
)
PAUSES = 'then = { "flow.media.app" = { kind = "ftp", limited = [{ from = "{at}", to = "{at + 99}" }] } }'
FAILS = SUITE.replace("least = 0.1", "least = 3")
OPEN = SUITE.replace("least = 0.1", "least = GOODPUT")


def folder(path: Path, text: str = SUITE) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "suite.toml").write_text(text)
    (path / "one.toml").write_text(SCENARIO)
    (path / "web.toml").write_text(WEB)
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("suites") / "small")


@pytest.fixture(scope="module")
def done(small: Path) -> running.Result:
    suite = loading.load(str(small))
    return running.run(
        suite, running.subjects_of(suite, ["cubic", "tfrc", "vegas:alpha=2,beta=4"]), workers=2
    )


def invoke(*words: object) -> Any:
    return CliRunner().invoke(app, ["suite", *map(str, words)], catch_exceptions=False)


def test_each_case_of_each_scheme_has_a_verdict(done: running.Result) -> None:
    outcomes = {(a.case.key, a.subject.text): a.outcome for a in done.answers}
    assert outcomes == {
        ("used", "cubic"): Outcome.PASS,
        ("used", "tfrc"): Outcome.PASS,
        ("used", "vegas:alpha=2,beta=4"): Outcome.PASS,
        ("windows", "cubic"): Outcome.NUMBER,
        # TFRC has no congestion window to record.
        ("windows", "tfrc"): Outcome.UNDECIDED,
        # Vegas' window never passes 10 packets here.
        ("windows", "vegas:alpha=2,beta=4"): Outcome.UNDECIDED,
        ("pages", "cubic"): Outcome.PASS,
        ("pages", "tfrc"): Outcome.UNDECIDED,
        ("pages", "vegas:alpha=2,beta=4"): Outcome.PASS,
    }
    refused = next(a for a in done.answers if a.refused)
    assert refused.refused is not None
    assert "`web` needs every byte" in refused.refused.reason
    assert {c.ours for c in refused.checks} == {None}
    assert done.exit_code == 3


def test_the_numbers_are_those_of_the_runs(done: running.Result, small: Path) -> None:
    answer = next(a for a in done.answers if a.case.key == "used" and a.subject.text == "cubic")
    goodput = answer.checks[0]
    words = answer.command.split()
    assert words[:2] == ["paceline", "suite"]
    from paceline import run

    mine = run(small / "one.toml", seed=1, runs=5, set={"flow.media.cc": "cubic"}).flows
    values = (mine.filter(flow="media")["goodput_bps"] / 1e6).to_list()
    assert list(goodput.each) == pytest.approx(values)
    assert goodput.ours is not None
    assert goodput.ours.mean == pytest.approx(sum(values) / 5)
    ratio = answer.checks[2]
    assert ratio.ours is not None
    assert ratio.verdict.outcome is Outcome.NUMBER


def test_recordings_say_when_something_held(done: running.Result) -> None:
    answer = next(a for a in done.answers if a.case.key == "windows" and a.subject.text == "cubic")
    peak, highest, grown = (check.ours for check in answer.checks)
    assert peak is not None
    assert (peak.mean or 0) > 1.9, "what waited behind a hole comes at once"
    assert highest is not None
    assert grown is not None
    assert (highest.mean or 0) > 10
    assert 0 < (grown.mean or 0) < 4


def test_a_second_call_runs_nothing(small: Path, tmp_path: Path) -> None:
    first = invoke(small, "--out", tmp_path / "out", "--json")
    assert first.exit_code == 0
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out/runs").iterdir()}
    again = invoke(small, "--out", tmp_path / "out", "--json")
    assert json.loads(first.stdout) == json.loads(again.stdout)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out/runs").iterdir()} == before
    assert "of them there from before" in again.stderr
    found = json.loads(first.stdout)
    assert found["counts"] == {"pass": 2, "fail": 0, "undecided": 0, "number": 1}
    assert found["cases"][0]["checks"][0]["least"] == 0.1
    assert found["cases"][0]["checks"][0]["most"] is None
    assert found["cases"][0]["checks"][1]["rule"] == "worst"


def test_exit_codes_say_what_came_out(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    suite = loading.load(str(small))
    result = running.run(suite, running.subjects_of(suite, []))
    mean = next(c.ours.mean for c in result.answers[0].checks if c.ours)
    assert invoke(small, "--out", out).exit_code == 0
    assert invoke(small, "--out", out, "--scheme", "tfrc").exit_code == 3
    assert invoke(folder(tmp_path / "bad", FAILS), "--out", tmp_path / "bad-out").exit_code == 1
    undecided = invoke(
        folder(tmp_path / "open", OPEN.replace("GOODPUT", repr(mean))), "--out", tmp_path / "open-out"
    )
    assert undecided.exit_code == 3
    assert "more runs would tell" in " ".join(undecided.stdout.split())
    assert invoke(small, "--out", out, "--scheme", "cubik").exit_code == 2
    # One run has no interval, and nothing passes by it but what is held run by run.
    one = invoke(small, "--out", out, "--runs", 1, "--json")
    assert one.exit_code == 3
    verdicts = [c["verdict"] for c in json.loads(one.stdout)["cases"][0]["checks"]]
    assert verdicts == ["undecided", "pass", "number"]


def test_the_table_has_a_row_for_each_number(small: Path, tmp_path: Path) -> None:
    shown = invoke(small, "--out", tmp_path, "--case", "used").stdout
    assert re.search(r"used +goodput +[\d.]+ ± [\d.]+ Mbit/s +at least 0.1 Mbit/s +pass", shown)
    assert re.search(r"every run +.* every run +pass", shown)
    assert "1 of 1 case passes" in shown
    assert "windows" not in shown


def test_the_page_and_the_report_say_what_is_asked_and_by_whom(small: Path, tmp_path: Path) -> None:
    invoke(small, "--out", tmp_path, "--scheme", "cubic", "--scheme", "tfrc", "--junit", tmp_path / "j.xml")
    text = (tmp_path / "index.html").read_text()
    assert "A &lt;small&gt; suite" in text
    assert "Something &lt;gets&gt; through" in text
    assert "Ours: more than nothing" in text
    assert "From Nobody, section 1" in text
    assert "Not answered by runs: a matter of its text." in text
    assert "cannot run" in text
    assert f"--case used</code>" in text  # noqa: F541
    assert '<td><a class="verdict pass" href="#used">pass</a></td>' in text, "a cell opens its series"
    assert 'data-plot="used"' in text
    assert 'data-plot="used-spread"' in text
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text), "it asks nobody for anything"
    report = (tmp_path / "report.md").read_text()
    assert "## 1 Use" in report
    assert "| `cubic` | Something <gets> through (goodput) |" in report
    assert "Not answered by runs: a matter of its text." in report
    assert (tmp_path / "figures" / "figure-used.png").is_file()
    assert pl.read_csv(tmp_path / "tables" / "points.csv").height > 4


def test_the_page_fits_a_phone(small: Path, tmp_path: Path) -> None:
    invoke(small, "--out", tmp_path / "out", "--scheme", "cubic", "--scheme", "vegas:alpha=2,beta=4")
    script = """
document.querySelectorAll("details").forEach((part) => { part.open = OPEN; });
const page = document.documentElement;
return [page.scrollWidth, document.documentElement.dataset.drawn];
"""
    for opened in ("false", "true"):
        wide, drawn = probe(
            tmp_path / "out" / "index.html", tmp_path, script.replace("OPEN", opened), width=400
        )
        assert wide <= 400, f"it flows over, opened: {opened}"
        assert drawn == "2"


def test_junit_is_what_readers_of_it_expect(done: running.Result) -> None:
    root = Tree.fromstring(junit.xml(done))
    assert root.tag == "testsuites"
    suites = root.findall("testsuite")
    assert [s.get("name") for s in suites] == ["small.cubic", "small.tfrc", "small.vegas:alpha=2,beta=4"]
    for suite in suites:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases)) == "7"
        for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert suite.get(name) == str(len(suite.findall(f"testcase/{tag}")))
        assert re.fullmatch(r"\d+\.\d{3}", suite.get("time") or "")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp") or "")
        names = [(case.get("classname"), case.get("name")) for case in cases]
        assert len(set(names)) == len(names), "Jenkins tells them apart by these"
        # What a test is has at most one of the three, before its output.
        for case in cases:
            tags = [child.tag for child in case]
            assert tags in (["system-out"], *([tag, "system-out"] for tag in ("failure", "error", "skipped")))
    tfrc = suites[1]
    refused = [error.get("message") or "" for error in tfrc.findall("testcase/error")]
    assert refused
    assert all(message.startswith(str(done.suite.place)) for message in refused)
    assert all("undecided" in (s.get("message") or "") for s in tfrc.findall("testcase/skipped"))
    assert int(tfrc.get("skipped") or 0) == 2


def test_junit_has_a_failure_with_its_numbers(tmp_path: Path) -> None:
    bad = folder(tmp_path / "bad", FAILS)
    assert invoke(bad, "--out", tmp_path / "out", "--junit", tmp_path / "junit.xml").exit_code == 1
    root = Tree.fromstring((tmp_path / "junit.xml").read_text())
    (failure,) = root.findall("testsuite/testcase/failure")
    assert root.get("failures") == "1"
    assert "no part of the interval is at least 3" in (failure.get("message") or "")
    assert "asked: at least 3 Mbit/s (ours: more than nothing)" in (failure.text or "")
    assert "--case used" in (failure.text or "")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("cubic", (("flow.test.cc", "cubic"),)),
        (
            "vegas: alpha = 2 ,beta=4",
            (("flow.test.cc", "vegas"), ("flow.test.params.alpha", "2"), ("flow.test.params.beta", "4")),
        ),
        ("cubic:profile=rfc", (("flow.test.cc", "cubic"), ("flow.test.profile", "rfc"))),
    ],
)
def test_a_scheme_may_have_values_of_its_own(text: str, values: tuple[tuple[str, str], ...]) -> None:
    assert Subject.parse(Kind.SCHEME, text).settings(("flow.test",)) == values


def test_a_queue_is_put_into_links() -> None:
    queue = Subject.parse(Kind.QUEUE, "codel:target=10 ms")
    assert queue.settings(("link.a", "link.b.backward")) == (
        ("link.a.queue.kind", "codel"),
        ("link.a.queue.target", "10 ms"),
        ("link.b.backward.queue.kind", "codel"),
        ("link.b.backward.queue.target", "10 ms"),
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nowhere",), r"no suite 'nowhere': there are .*rfc7928, rfc9743"),
        (("rfc9743", "--scheme", "cubik"), r"--scheme cubik: no case can run with it.*did you mean `cubic`"),
        (("rfc9743", "--scheme", "cubic:"), r"--scheme cubic:: after the name and a colon write KEY=VALUE"),
        (("rfc9743", "--scheme", "cubic:beta=7"), r"--scheme cubic:beta=7: no case can run with it.*beta"),
        (("rfc9743", "--queue", "codel"), r"--queue codel: rfc9743 tests a scheme: --scheme"),
        (("rfc7928", "--scheme", "cubic"), r"--scheme cubic: rfc7928 tests a queue: --queue"),
        (("rfc7928", "--queue", "codle"), r"--queue codle: no case can run with it.*codel"),
        (("rfc9743", "--case", "bloat"), r"rfc9743 has no case 'bloat'; there are .*bufferbloat"),
        (("rfc9743", "--runs", "0"), r"--runs 0: 1 to 1000"),
        (
            (),
            r"which suite\? There are bbr, c4, calls, libwebrtc-gcc, libwebrtc-scream, rfc7928, rfc9743, rmcat",
        ),
    ],
)
def test_a_mistake_is_named(words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = invoke(*words, *(["--out", tmp_path / "out"] if words else []))
    assert done.exit_code == 2
    assert re.search(says, " ".join(done.stderr.split())), done.stderr


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('tests = "scheme"', 'tests = "queues"', r"suite.tests: must be scheme or queue, not 'queues'"),
        (
            'section = "1"\ntitle = "Pages"',
            'section = "3"\ntitle = "Pages"',
            r"case pages.section: no section '3'",
        ),
        ('scenario = "web.toml"', 'scenario = "wob.toml"', r"case pages: no scenario file wob.toml"),
        ('source = "ours: more than nothing"', "", r"check\[0\]: needs source"),
        (
            'label = "by Vegas"',
            'label = "by Vegas"\nsource = "ours"',
            r"check\[2\]: a rule and a source need a threshold",
        ),
        ("least = 0.1", "least = 2\nmost = 1", r"check\[0\]: least 2 must not exceed most 1"),
        ('rule = "worst"', 'rule = "best"', r"check\[1\].rule: must be interval or worst, not 'best'"),
        ('goodput["all-vegas"]', 'goodput["vegas"]', r"check by-vegas: study used has no series 'vegas'"),
        ('goodput["{scheme}", "2 Mbit/s"]', 'gooput["{scheme}"]', r"check goodput: no metric gooput"),
        (
            'later = "a matter of its text."',
            "",
            r"section 2: no case answers it, and `later` does not say why",
        ),
        (
            'record = ["cwnd", "rate"]',
            'record = "cwn"',
            r"case windows.record: must be one of cwnd, .*, not 'cwn'",
        ),
        (
            'record = ["cwnd", "rate"]',
            'record = ["cwnd", "cwnd"]',
            r"case windows.record: recording 'cwnd' is given twice",
        ),
        ("above = 10 }", "above = 10, below = 2 }", r"metric.grown.while: needs one of is, above and below"),
        ("above = 10 }", "above = 10, nth = -1 }", r"metric.grown.while.nth: must be 0"),
        (
            'field = "goodput_bps"',
            'field = "goodput_bps"\nto = 5',
            r"metric.goodput.to: is for recordings only",
        ),
        (
            'field = "goodput_bps"',
            'field = "goodput_bps"\nrows = "share"',
            r"goodput.rows: share is for recordings only",
        ),
        ("runs = 5", "runs = 0", r"suite.runs: must be 1 to 1000, not 0"),
        (
            'key = "windows"',
            'key = "windows"\nat = "grown"',
            r"case windows: `at` is an instant and `then`",
        ),
        ('key = "windows"', f'key = "windows"\nat = "grwn"\n{PAUSES}', r"case windows.at: no metric 'grwn'"),
        (
            'key = "windows"',
            'key = "windows"\nat = "grown"\nthen = { "duration" = "3 s" }',
            r"case windows.then: names the instant nowhere",
        ),
        (
            'key = "windows"',
            f'key = "windows"\nat = "grown"\n{PAUSES.replace("{at}", "{at - 1}")}',
            r"case windows.then: \{at\} or .*, not \{at - 1\}",
        ),
        (
            'key = "used"',
            f'key = "used"\nat = "grown"\n{PAUSES}',
            r"case used.at: grown is measured in a recording",
        ),
        ('key = "pages"', 'key = "used"', r"case 'used' is given twice"),
        ("least = 0.1", "leest = 0.1", r"check\[0\]: unknown leest"),
    ],
)
def test_a_mistake_in_a_suite_is_named_with_its_place(
    before: str, after: str, says: str, tmp_path: Path
) -> None:
    assert before in SUITE
    with pytest.raises(SuiteError.__base__, match=says):  # type: ignore[arg-type]
        loading.load(str(folder(tmp_path / "s", SUITE.replace(before, after, 1))))


def test_an_expression_of_several_levels_says_which(tmp_path: Path) -> None:
    text = SUITE.replace('goodput["{scheme}", "2 Mbit/s"]', 'goodput["{scheme}"]', 1)
    suite = loading.load(str(folder(tmp_path / "s", text)))
    with pytest.raises(ValueError, match="has 2 values, one for each level"):
        running.run(suite, running.subjects_of(suite, []))


def test_check_looks_at_suites_too(small: Path, tmp_path: Path) -> None:
    done = screen.paceline("check", small / "suite.toml")
    assert (done.returncode, done.stdout) == (0, "1 file: 0 errors, 0 warnings\n")
    bad = folder(tmp_path / "bad", SUITE.replace('default = ["newreno"]', 'default = ["tfrc"]'))
    done = screen.paceline("check", bad / "suite.toml")
    assert done.returncode == 2
    assert "case pages, tfrc:" in done.stdout
    done = screen.paceline("run", small / "suite.toml")
    assert "this is a suite: `paceline suite" in done.stderr


def test_a_suite_that_was_stopped_goes_on_where_it_was(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = loading.load(str(small))
    subjects = running.subjects_of(suite, ["cubic"])
    store = Store(tmp_path)

    def stops(done: float, total: float) -> None:
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stop:
        running.run(suite, subjects, workers=1, store=store, progress=stops)
    assert stop.value.finished >= 2
    kept = set(store.runs.iterdir())
    assert kept
    whole = running.run(suite, subjects, workers=1, store=store)
    assert kept < set(store.runs.iterdir())
    fresh = running.run(suite, subjects, workers=2)
    assert [a.checks for a in whole.answers] == [a.checks for a in fresh.answers]


def test_ctrl_c_leaves_a_folder_that_the_same_command_takes_up(small: Path, tmp_path: Path) -> None:
    from paceline.suite import writing

    suite = loading.load(str(small))
    out = tmp_path / "out"
    out.mkdir()
    writing.begin(suite, running.subjects_of(suite, []), 3, out)
    Store(out)
    assert invoke(small, "--out", out).exit_code == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    done = invoke(small, "--out", other)
    assert done.exit_code == 2
    assert "holds no suite" in done.stderr


def test_a_run_with_a_defect_leaves_the_other_cases_alone(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = loading.load(str(small))
    real = reproduction.run

    def breaks(paper: Any, **more: Any) -> Any:
        if "used" in paper.studies:
            raise InternalError("a defect")
        return real(paper, **more)

    monkeypatch.setattr(reproduction, "run", breaks)
    result = running.run(suite, running.subjects_of(suite, ["cubic"]))
    outcomes = {answer.case.key: answer.outcome for answer in result.answers}
    assert outcomes == {"used": Outcome.UNDECIDED, "windows": Outcome.NUMBER, "pages": Outcome.PASS}
    assert "it cannot run: a defect" in result.answers[0].checks[0].verdict.because
    assert result.exit_code == 3


@pytest.mark.parametrize("key", [key for key in suite_folders.keys() if loading.load(key).cases])  # noqa: SIM118
def test_every_case_of_a_suite_runs_and_gives_its_numbers(key: str) -> None:
    suite = loading.load(key)
    subjects = running.subjects_of(suite, [])
    _, refused = running.plan(suite, subjects)
    assert refused == {}
    result = running.run(suite, subjects, runs=2)
    missing = [
        (answer.case.key, checked.check.key)
        for answer in result.answers
        for checked in answer.checks
        if checked.ours is None or checked.ours.mean is None
    ]
    assert missing == []
    judged = [c.check for a in result.answers for c in a.checks if c.check.threshold is not None]
    assert all(re.match(r"ours: \w|RFC \d+|draft-\w|libwebrtc, \w", check.source) for check in judged)


@pytest.mark.parametrize(("key", "near"), [("libwebrtc-gcc", None), ("libwebrtc-scream", "2000-50")])
def test_libwebrtcs_own_scenarios_pass_with_its_own_controllers(key: str, near: str | None) -> None:
    suite = loading.load(key)
    result = running.run(suite, running.subjects_of(suite, []))
    found = {answer.case.key: answer.outcome for answer in result.answers}
    # 1525 ± 40 of 60 runs, where one of libwebrtc's asks for 1500
    assert found.pop(near or "", Outcome.UNDECIDED) in (Outcome.PASS, Outcome.UNDECIDED)
    assert found == dict.fromkeys((case.key for case in suite.cases if case.key != near), Outcome.PASS)


def test_what_was_known_to_fail_fails() -> None:
    suite = loading.load("rfc9743").only(["jitter", "no-feedback", "satellite"])
    result = running.run(suite, running.subjects_of(suite, ["cubic", "vegas", "rap"]), runs=10)
    failed = {(a.case.key, a.subject.text) for a in result.answers if a.outcome is Outcome.FAIL}
    # Vegas takes a delay that varies for a queue; RAP does not back off; neither fills a satellite's path as CUBIC.
    assert failed == {
        ("jitter", "vegas"),
        ("no-feedback", "rap"),
        ("satellite", "vegas"),
        ("satellite", "rap"),
    }


def test_nodes_that_thin_acknowledgements_police_and_mark_are_borne() -> None:
    suite = loading.load("rfc9743").only(["few-acks", "l4s", "policer", "flood"])
    result = running.run(suite, running.subjects_of(suite, ["cubic", "prague", "bbr3"]), runs=5)
    assert [(a.case.key, a.subject.text) for a in result.answers if a.outcome is Outcome.FAIL] == []
