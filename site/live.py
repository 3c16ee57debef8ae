"""Live figures: what Markdown says of one, and the HTML that a page has in its place.

    ```toml live="cwnd queue" title="Two TCPs share a link"       a scenario in the page
    [Two TCPs](../examples/x.toml "live: cwnd queue")             one of a file, as a paragraph of its own
    ![...](golden/vegas.svg)                                      a controller's golden run

Each becomes a picture of a real run, made when the site is built. With the playground beside it a button puts the
scenario itself there, to be played with.
"""

from __future__ import annotations

import base64
import html
import json
import posixpath
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import drawn
import paceline
from places import ROOT, place, up

FENCE = re.compile(
    r'^```toml live="(?P<kinds>[^"]*)"(?: title="(?P<title>[^"]*)")?[ \t]*\n(?P<text>.*?)^```[ \t]*$',
    re.M | re.S,
)
LINKED = re.compile(r'^\[(?P<title>[^\]]+)\]\((?P<file>[^)\s]+\.toml) "live: (?P<kinds>[^"]*)"\)$', re.M)
GOLDEN = re.compile(r"^!\[(?P<title>[^\]]*)\]\((?P<file>golden/(?P<scheme>[\w-]+)\.svg)\)$", re.M)
GOLDEN_FOLDER = "docs/controllers/golden"

PARKED = re.compile(r"^@@live (\d+)@@$", re.M)

MAX_FILES_BYTES = 48_000
"""More than this of trace files is no address."""


@dataclass
class Figures:
    """The figures of the site: their scenarios by the name of the picture, drawn when all are known."""

    playground: bool
    """Whether the built playground lies at the site's root."""
    wanted: dict[str, tuple[paceline.Scenario, list[str]]] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    """Pictures that are there already, by name."""
    files: list[str] = field(default_factory=list)
    """Scenarios' files that figures link to."""
    parked: list[str] = field(default_factory=list)
    """The HTML of the figures so far: links and Markdown are mended without it."""

    def set_in(self, text: str) -> str:
        """A page's text with the figures where `taken` left their places."""
        return PARKED.sub(lambda found: self.parked[int(found[1])], text)

    def taken(self, text: str, source: str, page: str) -> str:
        """The Markdown of a page with a mark in the place of each of its live figures. Raises LookupError."""

        def of_fence(found: re.Match[str]) -> str:
            return self._run(found["text"], f"{posixpath.dirname(source)}", found, page)

        def of_file(found: re.Match[str]) -> str:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found["file"]))
            self.files.append(path)
            return self._run((ROOT / path).read_text(), posixpath.dirname(path), found, page, path)

        def of_golden(found: re.Match[str]) -> str:
            return self._golden(found["scheme"], found["title"], page)

        try:
            text = LINKED.sub(of_file, FENCE.sub(of_fence, text))
            return GOLDEN.sub(of_golden, text) if source.startswith("docs/controllers/") else text
        except (LookupError, OSError, paceline.PacelineError) as error:
            raise LookupError(f"{source}: {error}") from None

    def _run(self, text: str, folder: str, found: re.Match[str], page: str, path: str | None = None) -> str:
        kinds = drawn.recorded(found["kinds"].split())
        named = re.match(r"# ([\w-]+)\.toml\b", text)
        name = Path(path).stem if path else named[1] if named else "scenario"
        scenario = paceline._core.Scenario.parse(text, str(ROOT / folder), name)
        picture = drawn.key(scenario, kinds)
        self.wanted[picture] = (scenario, kinds)
        return self._html(picture, found["title"] or name, text, scenario, page, path)

    def _golden(self, scheme: str, title: str, page: str) -> str:
        own = ROOT / GOLDEN_FOLDER / f"{scheme}.toml"
        text = (own if own.exists() else own.with_name("default.toml")).read_text()
        if not own.exists():
            # The scenario of all, with this controller: what its second line says.
            text = text.replace("# cc is replaced by the controller's name.\n", "").replace(
                '"newreno"', f'"{scheme}"'
            )
        scenario = paceline._core.Scenario.parse(text, str(own.parent), f"golden-{scheme}")
        picture = f"golden-{scheme}"
        self.given[picture] = own.with_suffix(".svg").read_text()
        return self._html(picture, title, text, scenario, page)

    def _html(
        self,
        picture: str,
        title: str,
        text: str,
        scenario: paceline.Scenario,
        page: str,
        path: str | None = None,
    ) -> str:
        # A page's own links count from its file, and are mended for its address; the button's is not known for a link.
        root = "../" * page.count("/")
        alt = html.escape(title)
        address = fragment(scenario, text) if self.playground else None
        open_at = f"{root}playground.html#{address}"
        tools = ""
        if address is not None:
            embedded = html.escape(f"{up(page)}playground.html#embed=1&{address}")
            tools = (
                '<button type="button" class="md-button md-button--primary" '
                f'data-live="{embedded}">Try it live</button>'
                f'<a class="open" href="{html.escape(open_at)}">open in the playground</a>'
            )
        # What readers are asked to save is shown, what lies in a file folded.
        shown = "" if path or picture.startswith("golden") else " open"
        file = f'<a href="{root}{place(path)}">{html.escape(path)}</a>' if path else ""
        made = f"""
<figure class="live" markdown="0">
<div class="picture">
<img class="only-light" loading="lazy" src="{root}assets/figures/{picture}.svg" alt="{alt}">
<img class="only-dark" loading="lazy" src="{root}assets/figures/{picture}-dark.svg" alt="{alt}">
</div>
<figcaption>{alt}</figcaption>
<p class="tools">{tools}{file}</p>
</figure>

<details class="scenario" markdown="1"{shown}>
<summary>The scenario</summary>

```toml
{text.rstrip()}
```

</details>
"""
        self.parked.append(made)
        return f"@@live {len(self.parked) - 1}@@"


def fragment(scenario: paceline.Scenario, text: str) -> str | None:
    """What the playground's address says of a scenario; None where it cannot have it: a controller of one's own, or
    trace files too long for an address."""
    if scenario.schemes:
        return None
    files = dict(scenario.__getnewargs__()[3])
    if sum(map(len, files.values())) > MAX_FILES_BYTES:
        return None
    said = {"toml": packed(text)}
    if files:
        said["files"] = packed(json.dumps(files))
    return urlencode(said)


def packed(text: str) -> str:
    """Text as the playground's address has it: raw deflate, base64url without padding."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.urlsafe_b64encode(squeeze.compress(text.encode()) + squeeze.flush()).decode().rstrip("=")
