"""Pages that no document is the source of: the landing page, the Python and Rust references, files' texts, presets."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import paceline
from places import ROOT, place

GROUPS = {
    "run": ("Run and compare", "run sweep compare merge load parse schema Scenario Batched"),
    "results": ("Results", "Results Comparison summarise cov jain_over_time"),
    "judge": ("Judge", "league hunt models controllers"),
    "own": (
        "Your own controller",
        "WindowController RateController MediaController parameter conform events",
    ),
    "live": (
        "In real time",
        "emulate call call_log send replay Replayed receive watch qlog path PathRun fit campaign realtime",
    ),
    "more": ("Statistics, suites and figures", "statistics interval axes suite plots"),
    "errors": (
        "Errors",
        "PacelineError ArgumentError ScenarioError ControllerError PathError StorageError UnwrittenError LiveError "
        "Interrupted Cancelled InternalError PacelineWarning",
    ),
}
"""The pages of the Python reference: file's name, title, public names."""

ELSEWHERE = {
    f"{kind}Controller": f"paceline.controller.{kind}Controller" for kind in ("Window", "Rate", "Media")
}
"""Names that stand in the extension module, which their stub tells of."""

HIGHLIGHTED = {
    ".py": "python",
    ".pyi": "python",
    ".rs": "rust",
    ".toml": "toml",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
}


def python_reference() -> dict[str, str]:
    """The pages of the package's public names, by their place. Raises LookupError for a name that has none."""
    made = {}
    told = {name for _, names in GROUPS.values() for name in names.split()}
    missing = sorted({*paceline.__all__} - told - {"__version__"})
    if missing:
        raise LookupError(f"site/pages.py: GROUPS has no place for paceline.{missing[0]}")
    for file, (title, names) in GROUPS.items():
        body = "\n".join(f"::: {ELSEWHERE.get(name, f'paceline.{name}')}\n" for name in names.split())
        made[f"reference/python/{file}.md"] = f"# {title}\n\n{body}"
    return made


def rust_reference(crates: set[str]) -> str:
    """The page that leads to the crates' documentation, as far as it is there."""
    rows = []
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        crate = manifest.parent.name
        main = next(p for n in ("lib.rs", "main.rs") if (p := manifest.parent / "src" / n).exists())
        about = re.match(r"(?://! .*\n)+", main.read_text())
        sentence = re.split(r"(?<=\.)\s", about[0].replace("//! ", "").replace("\n", " "))[0] if about else ""
        first = re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", sentence.strip())
        name = f"`paceline-{crate}`"
        library = f"paceline_{crate}"
        linked = f'<a href="../rust/{library}/index.html"><code>{name.strip("`")}</code></a>'
        rows.append(f"| {linked if library in crates else name} | {first} |")
    said = (
        "Each name leads to what `cargo doc` makes of the crate."
        if crates
        else "These pages were built without those of `cargo doc`; `./docs-site` adds them."
    )
    table = "\n".join(["| crate | what |", "|---|---|", *rows])
    return (
        "# Rust\n\nThe simulator is a workspace of crates; [contributing](../contributing.md#crates) says which "
        "uses which. "
        f"{said}\n\n{table}\n"
    )


def of_file(path: str) -> str:
    """The page of a file that is no document."""
    text = (ROOT / path).read_text()
    longest = max(map(len, re.findall(r"`{3,}", text)), default=2)
    marks = "`" * (longest + 1)
    kind = HIGHLIGHTED.get(Path(path).suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n\n# `{path}`\n\n{marks}{kind}\n{text.rstrip()}\n{marks}\n"


BACKGROUND = {
    "decisions/": "Decision",
    "changes/": "Changes",
    "roadmap/": "Roadmap",
    "known-limits/": "Known limits",
    "contributing/": "Contributing",
    "style/": "Contributing",
    "reference/python/": "API",
}
"""Pages that answer few questions of newcomers, and what their titles begin with in the search."""


def background_last(index: dict[str, Any]) -> dict[str, Any]:
    """The search's index with the kind of such pages before their titles: they come after pages whose title begins
    with what was asked for, and readers see what they are."""
    for item in index["items"]:
        for folder, kind in BACKGROUND.items():
            if item["location"].startswith(folder) and not item["title"].startswith(kind):
                item["title"] = f"{kind}: {item['title']}"
    return index


def of_folder(path: str) -> tuple[str, list[str]]:
    """The page of a folder without a README, and the files in it, to which it links; folders in it are named."""
    there = sorted(entry for entry in (ROOT / path).iterdir() if entry.name != "__pycache__")
    files = [entry.relative_to(ROOT).as_posix() for entry in there if entry.is_file()]
    here = place(path).rpartition("/")[0]
    rows = [f"- `{entry.name}/`" for entry in there if entry.is_dir()]
    rows += [f"- [{Path(file).name}]({place(file).removeprefix(here + '/')})" for file in files]
    listed = "\n".join(rows)
    return f"---\nsearch:\n  exclude: true\n---\n\n# `{path}`\n\n{listed}\n", files


def presets(shown: str) -> str:
    """The playground's presets as a part of the gallery, each with its question, what to try, and its picture; without
    those whose files are shown there already."""
    listed = ROOT / "web/presets/presets.json"
    if not listed.exists():
        return ""
    parts = ["\n## The playground's presets\n"]
    for preset in json.loads(listed.read_text()):
        file = preset.get("file") or f"web/presets/{preset['name']}.toml"
        if file in shown:
            continue
        there = paceline.load(ROOT / file).recordable
        kinds = [kind for kind in ("rate", "playout", "cwnd", "arrivals", "queue") if kind in there][:3]
        parts.append(
            f"### {preset['title']}\n\n{preset['question']} {preset.get('tryThis', '')}\n\n"
            f'[{preset["title"]}](../{file} "live: {" ".join(kinds)}")\n'
        )
    return "\n".join(parts)
