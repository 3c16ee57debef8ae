"""Builds the site: python site/make.py FOLDER [--rust FOLDER-OF-CARGO-DOC]. `./docs-site` calls it.

Documents are copied to build/pages as Zensical wants them; it builds build/site, which is then put at FOLDER whole.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import drawn
import paceline
import pages
from dialect import translated
from live import Figures
from places import ROOT, mended, outside_code, place, shown

HERE = ROOT / "site"
BUILD = HERE / "build"
PAGES = BUILD / "pages"
CACHE = BUILD / "figures"
PLAYGROUND = ROOT / "python/paceline/playground.html"
MARK = "scenario.schema.json"
"""A file that every site of ours has at its root."""
PICTURE = "docs/figures/playground-{}.png"
PICTURES = re.compile(
    r'<picture><source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)"><img src="([^"]+)"([^>]*)></picture>'
)
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\.svg\)")
NAV_FOLDER = re.compile(r'"([\w/-]+)/\.\.\."')
PLAY = '<a class="md-button md-button--primary" href="playground.html">Open the playground</a>'
LANDING_SCENARIO = "examples/coffee-shop.toml"


class Site:
    """What is on the site, as it is gathered."""

    def __init__(self, crates: set[str]) -> None:
        self.figures = Figures(playground=PLAYGROUND.exists())
        self.crates = crates
        self.todo: list[str] = []
        self.done: set[str] = set()
        self.dark = {
            place(path.relative_to(ROOT).as_posix())
            for path in ROOT.glob("docs/**/*.svg")
            if drawn.of_matplotlib(path.read_text())
        }
        """Pictures that have a dark one beside them."""

    def meet(self, path: str) -> None:
        """Files that pages link to are on the site too."""
        if path not in self.done:
            self.done.add(path)
            self.todo.append(path)

    def gather(self) -> None:
        """Writes all pages, and copies what they show."""
        for path in sorted(ROOT.glob("docs/**/*.md")):
            self.meet(path.relative_to(ROOT).as_posix())
        for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
            self.meet(name)
        self.meet(LANDING_SCENARIO)
        while self.todo:
            self.put(self.todo.pop())
        for name, text in pages.python_reference().items():
            write(name, text)
        write("reference/rust.md", pages.rust_reference(self.crates))
        write("index.md", self.landing())
        (PAGES / MARK).write_text(json.dumps(paceline.schema()))

    def put(self, path: str) -> None:
        """One file or folder of the repository."""
        where = place(path)
        file = ROOT / path
        if file.is_dir():
            text, files = pages.of_folder(path)
            write(where, text)
            for each in files:
                self.meet(each)
        elif file.suffix == ".md":
            write(where, self.document(file.read_text(), path, where))
        elif shown(path):
            write(where, with_source(pages.of_file(path), path))
        else:
            (PAGES / where).parent.mkdir(parents=True, exist_ok=True)
            svg = file.read_text() if file.suffix == ".svg" else ""
            if drawn.of_matplotlib(svg):
                (PAGES / where).write_text(drawn.light(svg))
                (PAGES / where).with_name(f"{file.stem}-dark.svg").write_text(drawn.dark(svg))
            else:
                shutil.copy(file, PAGES / where)

    def document(self, text: str, path: str, where: str) -> str:
        """A document as the site has it."""
        if path == "docs/gallery.md":
            text += pages.presets(text)
        # GitHub goes by the system's scheme, the site by its own button.
        text = PICTURES.sub(r'<img class="only-light" src="\2"\3><img class="only-dark" src="\1"\3>', text)
        text = self.figures.taken(text, path, where)
        for file in self.figures.files:
            self.meet(file)
        text = mended(text, path, where, self.meet)
        if path == "docs/playground.md" and self.figures.playground:
            text = text.replace("\n\n", f"\n\n<p>{PLAY}</p>\n\n", 1)
        text = translated(outside_code(text, self.in_both_lights(where)))
        return with_source(self.figures.set_in(text), path)

    def in_both_lights(self, page: str) -> Callable[[str], str]:
        """Shows figures of matplotlib's as they are for light pages, and for dark ones."""

        def both(found: re.Match[str]) -> str:
            alt, name = found[1], found[2]
            if posixpath.normpath(posixpath.join(posixpath.dirname(page), f"{name}.svg")) not in self.dark:
                return found[0]
            return f"![{alt}]({name}.svg#only-light)![{alt}]({name}-dark.svg#only-dark)"

        return lambda prose: IMAGE.sub(both, prose)

    def landing(self) -> str:
        """The first page, with the playground's picture, or a run's where there is none."""
        text = (HERE / "landing.md").read_text()
        figure = f'[A film, some browsing and a download share a line]({LANDING_SCENARIO} "live: rate queue")'
        said = {
            "play": PLAY if self.figures.playground else "",
            "primary": "" if self.figures.playground else " md-button--primary",
            "picture": self.front_picture(),
            "figure": figure,
            "schemes": str(len(paceline.controllers())),
            "papers": str(len(list(ROOT.glob("papers/*/README.md")))),
        }
        for name, value in said.items():
            text = text.replace("{{" + name + "}}", value)
        return self.figures.set_in(self.figures.taken(text, "README.md", "index.md"))

    def front_picture(self) -> str:
        """The playground's picture; until a script has made it, a controller's golden run."""
        alt = "The playground: sliders, and the curves of every flow"
        pictures = {light: PICTURE.format(light) for light in ("light", "dark")}
        pictures = {light: file for light, file in pictures.items() if (ROOT / file).exists()}
        if pictures:
            for file in pictures.values():
                self.put(file)
            one = next(iter(pictures.values()))
            shown = {light: place(pictures.get(light, one)) for light in ("light", "dark")}
        else:
            self.put("docs/controllers/golden/cubic.svg")
            alt = "Two flows of CUBIC on a link: their windows, their goodputs, the queue"
            shown = {"light": "controllers/golden/cubic.svg", "dark": "controllers/golden/cubic-dark.svg"}
        images = "".join(
            f'<img class="only-{light}" src="{src}" alt="{alt}">' for light, src in shown.items()
        )
        if self.figures.playground and pictures:
            images = f'<a href="playground.html" title="Open the playground">{images}</a>'
        return f'<div class="picture">{images}</div>'

    def draw(self) -> None:
        """The pictures of the live figures: from the cache, or from runs."""
        CACHE.mkdir(parents=True, exist_ok=True)
        folder = PAGES / "assets/figures"
        folder.mkdir(parents=True, exist_ok=True)
        missing = {
            name: what for name, what in self.figures.wanted.items() if not (CACHE / f"{name}.svg").exists()
        }
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as workers:
            drawings = {name: workers.submit(drawn.draw, *what) for name, what in missing.items()}
            for name, drawing in drawings.items():
                (CACHE / f"{name}.svg").write_text(drawing.result())
        pictures = {name: (CACHE / f"{name}.svg").read_text() for name in self.figures.wanted}
        for name, svg in {**pictures, **self.figures.given}.items():
            (folder / f"{name}.svg").write_text(drawn.light(svg))
            (folder / f"{name}-dark.svg").write_text(drawn.dark(svg))
        for old in CACHE.glob("*.svg"):
            if old.stem not in self.figures.wanted:
                old.unlink()
        print(f"site: {len(pictures)} figures of runs, {len(missing)} of them new", file=sys.stderr)


def write(page: str, text: str) -> None:
    """A file of the pages' folder."""
    path = PAGES / page
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def with_source(text: str, path: str) -> str:
    """A page that says which file of the repository it is."""
    said = f"source: {path}\n"
    return f"---\n{said}{text[4:]}" if text.startswith("---\n") else f"---\n{said}---\n\n{text}"


def title_of(page: Path) -> str:
    """A page's title without the name in code that follows it."""
    found = re.search(r"^# (.+)$", page.read_text(), flags=re.MULTILINE)
    return re.sub(r": `.*|`", "", found[1]) if found else page.stem


def settings() -> str:
    """zensical.toml with what it leaves open. Raises LookupError for a document that the navigation does not have."""
    text = (HERE / "zensical.toml").read_text()

    def of_folder(found: re.Match[str]) -> str:
        folder = PAGES / found[1]
        entries = {
            title_of(p): p.relative_to(PAGES).as_posix() for p in folder.glob("*.md") if p.name != "index.md"
        }
        order = (
            [title for title, _ in pages.GROUPS.values()]
            if found[1] == "reference/python"
            else sorted(entries)
        )
        return ", ".join(f"{{ {_quoted(title)} = {_quoted(entries[title])} }}" for title in order)

    for path in sorted(ROOT.glob("docs/*.md")):
        if f'"{place(f"docs/{path.name}")}"' not in text:
            raise LookupError(f"site/zensical.toml: nav has no place for docs/{path.name}")
    open_keys = {
        "docs_dir": PAGES.name,
        "site_dir": "site",
        "copyright": f"Paceline {paceline.__version__}, Apache-2.0 or MIT",
        "extra.version_shown": paceline.__version__,
    }
    lines = "".join(f"{key} = {_quoted(value)}\n" for key, value in open_keys.items())
    text = text.replace("[project]\n", f"[project]\n{lines}", 1)
    text = text.replace(
        "[project.theme]\n", f"[project.theme]\ncustom_dir = {_quoted(str(HERE / 'theme'))}\n", 1
    )
    paths = f"[project.plugins.mkdocstrings.handlers.python]\npaths = [{_quoted(str(ROOT / 'python'))}]\n\n"
    text = text.replace("[project.plugins.mkdocstrings", f"{paths}[project.plugins.mkdocstrings", 1)
    return NAV_FOLDER.sub(of_folder, text)


def _quoted(text: str) -> str:
    return json.dumps(text)


def main() -> int:
    """Builds; the exit code."""
    arguments = argparse.ArgumentParser(description="Builds the documentation's site.")
    arguments.add_argument("folder", type=Path, help="where the site is put; what is there is replaced")
    arguments.add_argument(
        "--rust", type=Path, help="the folder that cargo doc made, if it is to be there too"
    )
    given = arguments.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        # all that run at the same time build in the same folder, so one after the other
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build(given.folder, given.rust)


def build(to: Path, rust: Path | None) -> int:
    """Builds the site into a folder, with what cargo doc made if that is to be there too; the exit code."""
    try:
        refuse_others(to)
        crates = {p.parent.name for p in rust.glob("paceline_*/index.html")} if rust else set()
        shutil.rmtree(PAGES, ignore_errors=True)
        site = Site(crates)
        site.gather()
        site.draw()
        (BUILD / "zensical.toml").write_text(settings())
    except (LookupError, paceline.PacelineError) as error:
        print(f"docs-site: {error}", file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", "zensical.toml"]
    done = subprocess.run(command, cwd=BUILD, check=False)
    if done.returncode != 0:
        return done.returncode
    made = BUILD / "site"
    index = made / "search.json"
    index.write_text(json.dumps(pages.background_last(json.loads(index.read_text()))))
    if site.figures.playground:
        shutil.copy(PLAYGROUND, made)
    if rust:
        shutil.copytree(rust, made / "rust", dirs_exist_ok=True)
    replace(to, made)
    return 0


def refuse_others(folder: Path) -> None:
    """Raises LookupError for a folder that holds something else than a site: what is there would be deleted."""
    if not folder.exists() or (folder / MARK).exists():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise LookupError(
            f"{folder}: holds something else than a site; name a new folder, an empty one or a site's"
        )


def replace(folder: Path, made: Path) -> None:
    """Puts the site in place of the one that a folder holds."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(made, folder)


if __name__ == "__main__":
    sys.exit(main())
