"""Makes the pictures of the README from real runs: `docs/figures/make.py [NAME...]`, by default all.

    playground      the page at a preset, light and dark; it must be built (web/build)
    reproduction    the head of the page of `paceline reproduce vegas-streaming`, light and dark
    compare         what the README's `paceline compare` prints in a terminal

Chromium shows the pages, asked through a pipe. What is written is at most 250 kB each.
"""

from __future__ import annotations

import base64
import fcntl
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from paceline import playground

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PRESET = "film"
"""The preset that the picture of the playground shows; the first one, where there is none of that name."""
COMPARE = "compare sofa.toml --vary flow.film.cc=vegas,cubic --runs 10"
"""The README's command, over the README's scenario."""
COLUMNS = 80
MAX_BYTES = 250_000
_SETTLED_S, _LONGEST_S = 2.0, 60.0
TERMINAL = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <style>

    .{unique_id}-matrix {{
        font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace;
        font-size: {char_height}px;
        line-height: {line_height}px;
        font-variant-east-asian: full-width;
    }}

    .{unique_id}-title {{
        font-size: 18px;
        font-weight: bold;
        font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace;
    }}

    {styles}
    </style>

    <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
    </defs>

    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""
"""rich's picture of a terminal without its fonts, which a browser would fetch."""


class Browser:
    """A headless Chromium, by its DevTools protocol over a pipe: JSON, each message ended by a zero."""

    def __init__(self, profile: Path) -> None:
        program = shutil.which("chromium")
        if program is None:
            sys.exit("the pictures need Chromium (package chromium)")
        theirs, self._to = os.pipe()
        self._from, ours = os.pipe()
        # high numbers: 3 and 4, which Chromium reads and writes, may be among those that the system gave
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (theirs, ours)]
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]
        quiet = ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"]
        self._process = os.posix_spawn(
            program,
            [program, *words, *quiet, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, high[0], 3),
                (os.POSIX_SPAWN_DUP2, high[1], 4),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
        for fd in (theirs, ours, *high):
            os.close(fd)
        self._read = b""
        self._last_id = 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What Chromium answers. Exits if it says that something is wrong."""
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": parameters}
        if getattr(self, "_session", ""):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._read:
                more = os.read(self._from, 1 << 16)
                if not more:
                    sys.exit("Chromium has ended")
                self._read += more
            one, _, self._read = self._read.partition(b"\0")
            answer: dict[str, Any] = json.loads(one)
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    sys.exit(f"Chromium: {method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def picture(self, url: str, scheme: str, width: int, height: int) -> bytes:
        """The page as PNG, once it has been the same for some time."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + _LONGEST_S
        before, since = b"", time.monotonic()
        while True:
            time.sleep(0.25)
            now = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
            if now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > _SETTLED_S:
                return now
            if time.monotonic() > deadline:
                sys.exit(f"{url.partition('#')[0]} has not come to rest within {_LONGEST_S:g} s")

    def close(self) -> None:
        """Ends it."""
        os.kill(self._process, signal.SIGTERM)
        os.waitpid(self._process, 0)
        os.close(self._to)
        os.close(self._from)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a profile that goes with it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        found = Browser(Path(profile))
        try:
            yield found
        finally:
            found.close()


def small(png: bytes) -> bytes:
    """The same with a palette, of fewer colours where it would be too large."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    for colours in (256, 128, 64):
        buffer = io.BytesIO()
        image.quantize(colours, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
        if buffer.tell() <= MAX_BYTES:
            return buffer.getvalue()
    sys.exit(f"a picture has {buffer.tell()} bytes: at most {MAX_BYTES} are meant")


def both(name: str, url: str, width: int, height: int) -> None:
    """Writes a page's picture, light and dark."""
    with browser() as shown:
        for scheme in ("light", "dark"):
            path = HERE / f"{name}-{scheme}.png"
            path.write_bytes(small(shown.picture(url, scheme, width, height)))
            print(f"{path}: {path.stat().st_size} bytes")


def make_playground() -> None:
    """The playground at a preset."""
    page = playground.page()
    if page is None:
        sys.exit("the playground is not built: call web/build")
    known = playground.presets()
    preset = PRESET if PRESET in known else next(iter(known))
    both("playground", f"{page.as_uri()}#{playground.of_preset(preset)}", 1280, 860)


def make_reproduction() -> None:
    """The head of a paper's page, with its key figure."""
    with tempfile.TemporaryDirectory() as out:
        command = ["reproduce", "vegas-streaming", "--simulated", "--out", out]
        subprocess.run([sys.executable, "-m", "paceline", *command], check=True)  # noqa: S603 (ours)
        both("reproduction", (Path(out) / "index.html").as_uri(), 1280, 760)


def printed() -> str:
    """What the README's comparison prints in a terminal, with its colours."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    scenario = re.search(r"^```toml\n(# sofa\.toml.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert scenario, "README.md shows sofa.toml"
    assert f"paceline {COMPARE}" in text, "README.md has the command"
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    colours = {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    # the folder is another one in the end
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sofa.toml").write_text(scenario[1], encoding="utf-8")
        command = [sys.executable, "-m", "paceline", *shlex.split(COMPARE)]
        ran = subprocess.run(  # noqa: S603 (ours)
            command, cwd=folder, env=environment | colours, capture_output=True, text=True, check=True
        )
    return ran.stdout


def terminal(shown: str) -> str:
    """A terminal as SVG, with the fonts of whoever reads it: none is fetched."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bold green"), f"paceline {COMPARE}"), soft_wrap=True)
    console.print(Text.from_ansi(shown.rstrip("\n")))
    svg = console.export_svg(
        title="paceline compare", theme=SVG_EXPORT_THEME, code_format=TERMINAL, unique_id="compare"
    )
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


def make_compare() -> None:
    """The comparison in a terminal."""
    path = HERE / "compare.svg"
    path.write_text(terminal(printed()), encoding="utf-8")
    print(f"{path}: {path.stat().st_size} bytes")


MAKES: dict[str, Callable[[], None]] = {
    "playground": make_playground,
    "reproduction": make_reproduction,
    "compare": make_compare,
}


def main(names: list[str]) -> None:
    """Makes these pictures, or all."""
    if unknown := [name for name in names if name not in MAKES]:
        sys.exit(f"there is no picture {', '.join(unknown)}: there are {', '.join(MAKES)}")
    for name in names or MAKES:
        MAKES[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
