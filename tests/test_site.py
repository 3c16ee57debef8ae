"""The documentation's site builds, every link in it leads somewhere, and no page loads anything from elsewhere."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import zlib
from base64 import urlsafe_b64decode
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

import paceline
from needs import require
from test_papers_page import probe

pytestmark = pytest.mark.page
ROOT = Path(__file__).resolve().parent.parent
LOADED = {
    "img": "src",
    "script": "src",
    "iframe": "src",
    "link": "href",
    "source": "src",
    "video": "src",
    "audio": "src",
}
"""What a page loads of itself."""


@dataclass
class Page(HTMLParser):
    """What a built page links to, loads and names."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    live: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.names |= {said[name] for name in ("id", "name") if name in said}
        if tag == "a" and "href" in said:
            self.links.append(said["href"])
        if tag in LOADED and LOADED[tag] in said and said.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(said[LOADED[tag]])
        if "data-live" in said:
            self.live.append(said["data-live"])


@cache
def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    return page


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "site/make.py", folder],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder.parent,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    require("zensical")
    folder = tmp_path_factory.mktemp("site") / "out"
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def pages(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if path.name not in ("playground.html", "404.html"))


def there(site: Path, page: Path, link: str) -> str | None:
    """What is wrong with a link of a page."""
    parts = urlsplit(link)
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if path.is_dir() or link.endswith("/"):
        path /= "index.html"
    name = page.relative_to(site)
    if not path.is_relative_to(site):
        return f"{name}: {link} leads out of the site"
    if not path.is_file():
        return f"{name}: {link} is not there"
    anchor = unquote(parts.fragment)
    if (
        anchor
        and path.suffix == ".html"
        and path.name != "playground.html"
        and anchor not in read(path).names
    ):
        return f"{name}: {link}: there is no such place in the page"
    return None


def test_every_link_leads_somewhere(site: Path) -> None:
    wrong = [
        there(site, page, link)
        for page in pages(site)
        for link in {*read(page).links, *read(page).loads}
        if not urlsplit(link).scheme
    ]
    found = sorted({w for w in wrong if w})
    assert not found, "\n".join(found[:40])
    assert len(wrong) > 1000, "the pages have changed their form: this test must follow"


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    outside = re.compile(r"(?:https?:)?//")
    for page in [*pages(site), site / "404.html"]:
        for link in read(page).loads:
            assert not outside.match(link), f"{page.relative_to(site)} loads {link}"
    for style in site.rglob("*.css"):
        found = re.search(r"(?:@import|url\()\s*['\"]?(?:https?:)?//[^)]*", style.read_text())
        assert not found, f"{style.relative_to(site)} loads {found and found[0]}"


def live_blocks() -> list[tuple[str, str]]:
    """The figures that documents ask for, as (document, what is recorded)."""
    live_kinds = re.compile(r'^```toml live="([^"]*)"|"live: ([^"]*)"\)$', flags=re.MULTILINE)
    return [
        (path.relative_to(ROOT).as_posix(), "".join(kinds))
        for path in sorted(ROOT.glob("docs/**/*.md"))
        for kinds in live_kinds.findall(path.read_text())
    ]


def built(site: Path, document: str) -> Path:
    name = document.removeprefix("docs/").removesuffix(".md").removesuffix("README")
    return site / name / "index.html"


def test_every_live_figure_has_its_pictures(site: Path) -> None:
    blocks = live_blocks()
    assert len(blocks) > 10
    for document in {document for document, _ in blocks}:
        wanted = sum(1 for other, _ in blocks if other == document)
        text = built(site, document).read_text()
        assert text.count('<figure class="live"') >= wanted, (
            f"{document}: a live figure is missing on its page"
        )
        assert 'toml live="' not in text, document
        sources = re.findall(r'src="([^"]*assets/figures/[^"]+)"', text)
        assert len(sources) >= 2 * wanted
        for source in sources:
            picture = (built(site, document).parent / source).read_text()
            assert "<svg" in picture
            assert "line2d" in picture, f"{document}: {source} shows no curve"


def test_every_controllers_golden_run_is_a_live_figure(site: Path) -> None:
    shown = "".join(page.read_text() for page in site.glob("controllers/*/index.html"))
    for scheme in paceline.controllers():
        assert f"assets/figures/golden-{scheme['name']}.svg" in shown, scheme["name"]


def test_the_addresses_of_live_figures_hold_their_scenarios() -> None:
    """An address is what the playground reads: the whole scenario, deflated."""
    require("zensical")
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import live, paceline;"
        "text = open(sys.argv[2]).read();"
        "scenario = paceline.load(sys.argv[2]);"
        "print(json.dumps([text, live.fragment(scenario, text)]))"
    )

    def said(name: str) -> tuple[str, str | None]:
        out = subprocess.check_output(
            [sys.executable, "-c", code, ROOT / "site", ROOT / "examples" / name], text=True
        )
        text, fragment = json.loads(out)
        return text, fragment

    def unpacked(packed: str) -> str:
        return zlib.decompress(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), -zlib.MAX_WBITS).decode()

    text, fragment = said("rate-trace.toml")
    assert fragment
    fields = parse_qs(fragment, strict_parsing=True)
    assert unpacked(fields["toml"][0]) == text
    assert json.loads(unpacked(fields["files"][0]))["traces/cell-up.txt"] == (
        (ROOT / "examples/traces/cell-up.txt").read_text()
    )
    # The browser has no controllers in Python.
    assert said("own-controller.toml")[1] is None


def test_live_figures_open_the_playground_where_it_is(site: Path) -> None:
    gallery = built(site, "docs/gallery.md")
    if not (site / "playground.html").exists():
        assert not read(gallery).live, "there is nothing to open"
        return
    assert read(gallery).live
    for address in read(gallery).live:
        assert html.unescape(address).startswith("../playground.html#embed=1&toml=")


def test_a_page_says_which_file_it_is_and_has_no_invented_edit_link(site: Path) -> None:
    text = built(site, "docs/measures.md").read_text()
    assert "<code>docs/measures.md</code>" in text
    settings = (ROOT / "site/zensical.toml").read_text()
    configured = re.search(r"^repo_url", settings, flags=re.MULTILINE)
    assert ('rel="edit"' in text) == bool(configured)
    assert paceline.__version__ in text


ANSWERS = {
    "how do I add ECN": "faq/#how-do-i-add-ecn links/ profiles/",
    "GCC vs NADA": "faq/#gcc-vs-nada calls/ tutorials/which-controller/",
    "live test my server": "faq/#how-do-i-live-test-my-server live/",
    "bufferbloat": "faq/#what-is-bufferbloat tutorials/queue-and-games/",
    "citing": "faq/#how-do-i-cite cite/",
    "units of rtt": "faq/#what-are-the-units measures/",
    "Windows": "faq/#windows install/",
    "python controller": "faq/#python-c-rust your-own-controller/",
    "jitter": "faq/#jitter links/ measures/",
    "wifi": "faq/#wifi wifi/",
    "install": "install/ faq/#how-do-i-install",
    "pip install": "install/ faq/#how-do-i-install",
    "bbr vs cubic": "faq/#bbr-vs-cubic controllers/bbr",
    "packet loss": "faq/#how-do-i-add-packet-loss links/",
    "wireshark": "faq/#how-do-i-open-the-packets capture/",
    "pcap": "faq/#how-do-i-open-the-packets capture/",
    "webrtc": "faq/#can-i-test-a-real-webrtc-call calls/ chromium/ controllers/gcc/",
    "starlink": "faq/#how-do-i-change-bandwidth links/",
    "seed": "faq/#seeds",
    "reproducible": "faq/#seeds decisions/same-bits/ papers/artefacts/",
    "bibtex": "faq/#how-do-i-cite cite/",
    "root": "faq/#root path-emulator/",
    "sudo": "faq/#root path-emulator/ kernel-cc/",
    "how many runs": "faq/#why-is-there-an-interval measures/ many-machines/",
    "ns-3": "faq/#how-does-it-compare-with-ns-2 speed/ wifi/ files/bench/",
    "mahimahi": "faq/#how-does-it-compare-with-mahimahi faq/#how-do-i-change links/",
    "dualpi2": "faq/#how-do-i-use-l4s links/ queues/ controllers/prague/ scenario/#kind--dualpi2",
    "plot a figure": "faq/#how-do-i-plot cli/",
    "reinforcement learning": "learning/ faq/#python-c-rust",
    "MoQ": "faq/#can-i-test-quic quic/",
    "router": "faq/#router gateway/",
    "goodput throughput": "faq/#what-is-the-difference-between-goodput measures/",
    "which queues": "faq/#which-queues links/",
    "csv": "faq/#csv links/ python/",
}
"""Newcomers' questions in their words, and the beginnings of the places that answer them."""


def missed(found: list[list[str]]) -> dict[str, list[str]]:
    """The questions whose first hit is no answer, with their first hits; `found` has the hits of each question."""
    return {
        question: hits[:3]
        for (question, answers), hits in zip(ANSWERS.items(), found, strict=True)
        if not hits or not hits[0].startswith(tuple(answers.split()))
    }


def test_a_newcomer_finds_the_answer_first(site: Path) -> None:
    require("node")
    (worker,) = site.glob("assets/javascripts/workers/search*.js")
    done = subprocess.run(
        ["node", Path(__file__).with_name("site_search.mjs"), worker, site / "search.json"],
        input="\n".join(ANSWERS),
        capture_output=True,
        text=True,
        check=True,
    )
    assert not missed(json.loads(done.stdout))


def test_a_page_of_something_else_and_no_page_are_no_answer() -> None:
    answered = [[answers.split()[0]] for answers in ANSWERS.values()]
    assert missed(answered) == {}
    first, second = list(ANSWERS)[:2]
    planted = [["changes/#added", *answered[0]], [], *answered[2:]]
    assert missed(planted) == {first: planted[0], second: []}


def test_search_knows_the_pages(site: Path) -> None:
    index = (site / "search.json").read_text()
    for word in ("goodput_bps", "fq-codel", "WindowController", "brakmo"):
        assert word.lower() in index.lower(), word


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    require("zensical")
    kept = tmp_path / "home/letters.txt"
    kept.parent.mkdir()
    kept.write_text("dear")
    done = build(kept.parent)
    assert done.returncode == 1
    assert "holds something else than a site" in done.stderr
    assert kept.read_text() == "dear"


def test_a_broken_figure_says_where_it_is(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from live import Figures;"
        "Figures(True).taken(sys.argv[2], 'docs/x.md', 'x.md')"
    )
    text = '```toml live="cwnd speed"\nduration = "1 s"\n```\n'
    done = subprocess.run(
        [sys.executable, "-c", code, ROOT / "site", text],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert "docs/x.md" in done.stderr
    assert 'live="cwnd speed"' in done.stderr


def test_figures_scroll_on_a_phone(tmp_path: Path) -> None:
    """Those of runs and of documents, in the site's own style sheet; the page itself does not."""
    require("chromium")
    for source in (
        "site/theme/assets/site.css",
        "docs/controllers/golden/vegas.svg",
        "docs/figures/film.svg",
    ):
        (tmp_path / Path(source).name).write_text((ROOT / source).read_text())
    page = tmp_path / "page.html"
    # As the theme has them: 20 px a rem, and pictures within their column.
    page.write_text(
        """<!doctype html><html style="font-size: 125%"><link rel="stylesheet" href="site.css">
<style>.md-typeset img { max-width: 100%; }</style><body class="md-typeset">
<figure class="live"><div class="picture"><img src="vegas.svg"></div></figure>
<p><img src="vegas.svg#only-light"></p><p><img src="film.svg"></p></body></html>"""
    )
    script = """
const widths = [...document.querySelectorAll("img")].map((img) => Math.round(img.getBoundingClientRect().width));
return [document.documentElement.scrollWidth, ...widths];
"""
    wide, run, picture, column = probe(page, tmp_path, script, width=400)
    assert wide == 400
    assert run == picture == 640, "letters of 9 px"
    assert column == 336, "as drawn"
    assert max(probe(page, tmp_path, script)) == 1200
