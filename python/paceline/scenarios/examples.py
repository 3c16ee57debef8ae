"""The package's examples, by name, and a template scenario."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from paceline import files, own_controllers
from paceline.errors import PacelineError
from paceline.files.package_data import folder
from paceline.messages.argument_names import meant, option


def examples() -> dict[str, str]:
    """The first sentence of each example's file, by name. Names are paths without ".toml"."""
    root = folder("examples")
    names = [path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.toml")]
    # Examples in a folder come last.
    names.sort(key=lambda name: (name.count("/"), name))
    return {name: sentence(files.read_text(root / f"{name}.toml")) for name in names}


def sentence(text: str) -> str:
    """The first sentence of the comment at the head of a file."""
    comment: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    first, end, _ = " ".join(comment).partition(". ")
    return first + end.rstrip()


def copy_example(name: str, out: Path | None = None, *, force: bool = False) -> list[Path]:
    """Copies an example to `out`, by default NAME.toml, with the files that it names; returns the written files.

    Replaces existing files only with `force`. Raises PacelineError, StorageError.
    """
    known = examples()
    wanted = name.removeprefix("examples/").removesuffix(".toml")
    if wanted not in known:
        raise PacelineError(
            f'there is no example "{name}"{meant(wanted, known)}; `paceline examples` lists all'
        )
    source = folder("examples") / f"{wanted}.toml"
    target = out or Path(f"{wanted}.toml")
    copies = {target: source} | {target.parent / name: source.parent / name for name in named(source)}
    for path in copies:
        free(path, force=force)
    for path, original in copies.items():
        files.make_directory(path.parent)
        files.write_whole(path, original.read_bytes())
    return list(copies)


def named(path: Path) -> list[str]:
    """The files beside it that a scenario or a campaign names, recursively."""
    found = []
    for text in map(own_controllers.file_of, _texts(tomllib.loads(files.read_text(path)))):
        if (path.parent / text).is_file():
            found.append(text)
            if text.endswith(".toml"):
                found += named(path.parent / text)
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def begin(name: str, *, force: bool = False) -> Path:
    """Writes a commented scenario of two flows as NAME.toml. Raises PacelineError if the file exists and `force` is not
    given, StorageError."""
    path = Path(f"{name.removesuffix('.toml')}.toml")
    free(path, force=force)
    files.make_directory(path.parent)
    files.write_whole(path, resources.files("paceline").joinpath("starter.toml").read_text(encoding="utf-8"))
    return path


def free(path: Path, *, force: bool) -> None:
    """Raises PacelineError if the file exists and may not be replaced."""
    if path.exists() and not force:
        raise PacelineError(f"{path} exists already: {option('force', True)} replaces it")


def dissector() -> str:
    """Wireshark's dissector for TFRC over UDP, in Lua. Raises StorageError."""
    return files.read_text(folder("tools") / "wireshark" / "paceline_tfrc.lua")
