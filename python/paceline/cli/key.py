"""`paceline key`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paceline.live import keys
from paceline.tables import layout


def key(
    file: Annotated[
        Path,
        typer.Argument(metavar="[FILE]", help="File to write. Default: paceline.key.", show_default=False),
    ] = Path("paceline.key"),
) -> None:
    """Make a key that `serve` and `send` share.

    The file holds 32 random bytes as text; only its owner can read it. Everyone with a copy can use the server and can
    verify it, so copy the file to the other host over a secure channel, such as scp. An existing file is not replaced.

    \b
    Examples:
      paceline key
      paceline key there.key
    """
    keys.new_key(file)
    layout.say(
        layout.stdout(),
        f"Written to {file}. With a copy on each host: paceline serve --key-file {file}, and paceline send HOST "
        f"--cc tfrc --key-file {file}",
    )
