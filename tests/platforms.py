"""The same bits on every processor: golden runs and shipped examples, elsewhere and here.

    python tests/platforms.py TARGET         builds crates/bits for TARGET, runs it there and compares
    python tests/platforms.py TARGET NAME    prints what the run of this name gave there, as JSON, to see what differs

`./check --platforms` does the first for each. Exit code 1 if something differs, 3 if the machine lacks something, which
is said in words. `test_platforms.py` holds the kept hashes, tests/elsewhere/hashes.csv, on the processor at hand.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HASHES = ROOT / "tests/elsewhere/hashes.csv"
_GOLDEN = ROOT / "docs/controllers/golden"
_TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
_LACKS = 3
_OWN_LINKER = "rust-lld"


def cases() -> str:
    """What `paceline-bits` is asked: name, file and changes of each run. Every golden run, and every example whose
    controllers are the simulator's own."""
    lines = []
    default = _GOLDEN / "default.toml"
    flows = tomllib.loads(default.read_text())["flow"]
    for numbers in sorted(_GOLDEN.glob("*.csv")):
        own = numbers.with_suffix(".toml")
        changes = [] if own.exists() else [f'flow.{flow}.cc="{numbers.stem}"' for flow in flows]
        lines.append([f"golden/{numbers.stem}", _name(own if own.exists() else default), *changes])
    for path in sorted(ROOT.glob("examples/*.toml")):
        if not any(word in path.read_text() for word in ("python:", "library:")):
            lines.append([f"examples/{path.stem}", _name(path)])  # noqa: PERF401 (a loop reads better)
    return "".join("\t".join(line) + "\n" for line in lines)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def kept() -> dict[str, str]:
    """The hash of each run as it was blessed."""
    with HASHES.open(newline="") as file:
        return dict(csv.reader(file))


def hashes(command: list[str], text: str) -> dict[str, str]:
    """What the program, which `command` runs in the clone, gives for these cases."""
    return dict(csv.reader(_ran(command, text).splitlines()))


def differing(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """Where they are not the same, in words."""
    names = sorted(found.keys() | wanted.keys())
    return [
        f"{name}: {found.get(name, 'none')}, kept is {wanted.get(name, 'none')}"
        for name in names
        if found.get(name) != wanted.get(name)
    ]


def _ran(command: list[str], text: str = "", **environment: str) -> str:
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{ran.stderr}{ran.stdout}")
    return ran.stdout


@dataclass(frozen=True)
class Platform:
    """What it takes to build for a target, and to run there."""

    runner: str | None = None
    """The program that runs it here; `package` has it."""
    package: str = ""
    linker: str | None = None
    """What rustc links with. `linker_package` has it; `rust-lld` comes with Rust, and has to be asked for."""
    linker_package: str = ""
    suffix: str = ""

    def lacking(self, target: str) -> Iterator[str]:
        """What is not here."""
        libraries = subprocess.run(
            ["rustc", "--print", "target-libdir", "--target", target],
            capture_output=True,
            text=True,
            check=False,
        )
        if libraries.returncode != 0 or not Path(libraries.stdout.strip()).is_dir():
            yield f"Rust's libraries for {target} (rustup target add {target})"
        if self.linker and self.linker != _OWN_LINKER and shutil.which(self.linker) is None:
            yield f"{self.linker} (package {self.linker_package})"
        if self.runner and found(self.runner) is None:
            yield f"{self.runner} (package {self.package})"


# musl is linked whole, by rustc's own linker: nothing of the other system is needed to run it.
PLATFORMS = {
    "aarch64-unknown-linux-musl": Platform("qemu-aarch64", "qemu-user", linker=_OWN_LINKER),
    "wasm32-wasip1": Platform("node", "nodejs", suffix=".wasm"),
    "x86_64-pc-windows-gnu": Platform(
        "wine64", "wine64", "x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64", ".exe"
    ),
}


def found(program: str) -> str | None:
    """Where a program is; Debian's wine64 is not on the PATH."""
    return shutil.which(program) or shutil.which(program, path="/usr/lib/wine")


def built(target: str) -> Path:
    """The program for a target, as a release is built."""
    platform = PLATFORMS[target]
    named = f"CARGO_TARGET_{target.upper().replace('-', '_')}_LINKER"
    linker = {named: _OWN_LINKER} if platform.linker == _OWN_LINKER else {}
    command = ["cargo", "build", "--quiet", "--locked", "--release", "-p", "paceline-bits"]
    _ran([*command, "--target", target], **linker)
    return _TARGET / target / "release" / f"paceline-bits{platform.suffix}"


def runner(target: str, program: Path, where: Path) -> list[str]:
    """The command that runs the program here; `where` is a folder that is gone afterwards."""
    platform = PLATFORMS[target]
    assert platform.runner is not None
    command = found(platform.runner)
    assert command is not None
    if target == "wasm32-wasip1":
        return [command, "--no-warnings", str(ROOT / "tests/elsewhere/wasi.mjs"), str(program)]
    if target == "x86_64-pc-windows-gnu":
        return [command, str(_for_wine(program, where))]
    return [command, str(program)]


def _for_wine(program: Path, where: Path) -> Path:
    """The program beside a library that Debian 12's Wine lacks, and Rust's libraries ask for random numbers. What Wine
    takes for a disk lies in `where`."""
    os.environ.update(WINEPREFIX=str(where / "wine"), WINEDEBUG="-all")
    compiler = PLATFORMS["x86_64-pc-windows-gnu"].linker
    assert compiler is not None
    source, library = ROOT / "tests/elsewhere/bcryptprimitives.c", where / "bcryptprimitives.dll"
    _ran([compiler, "-shared", "-O2", "-o", str(library), str(source), "-ladvapi32"])
    return Path(shutil.copy(program, where))


def main(target: str, name: str | None = None) -> int:
    """Compares, or prints the run of this name."""
    if target not in PLATFORMS:
        print(f"there is no target '{target}': {', '.join(PLATFORMS)}", file=sys.stderr)
        return 2
    lacking = list(PLATFORMS[target].lacking(target))
    if lacking:
        print(f"needs {' and '.join(lacking)}")
        return _LACKS
    program = built(target)
    with tempfile.TemporaryDirectory() as where:
        command = runner(target, program, Path(where))
        if name is not None:
            print(_ran([*command, name], cases()), end="")
            return 0
        there = hashes(command, cases())
    wrong = differing(there, kept())
    print(
        *wrong, f"{target}: {len(there)} runs, {len(wrong)} of them with other bits than x86-64's", sep="\n"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
