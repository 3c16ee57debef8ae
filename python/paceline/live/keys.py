"""Keys shared by a server and its clients: 32 random bytes, in a file that only its owner can read."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from paceline import files
from paceline.errors import PacelineError

LENGTH = 32
"""Bytes of a key."""

_HEAD = "paceline-key:"
_FORM = re.compile(rf"{_HEAD}([0-9a-f]{{{2 * LENGTH}}})\s*")


def new_key(path: Path) -> None:
    """Writes a new key to a new file that only its owner can read. Raises PacelineError if it exists, StorageError."""
    text = f"{_HEAD}{secrets.token_hex(LENGTH)}\n"
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except FileExistsError:
        raise PacelineError(
            f"{path} exists already, and keys are never overwritten: name another file, or remove it"
        ) from None
    except OSError as error:
        raise files.refused(path, error) from error


def read_key(path: Path) -> bytes:
    """Reads a key from `new_key`. Raises StorageError; PacelineError if it is invalid or others may read the file."""
    found = _FORM.fullmatch(files.read_text(path))
    if found is None:
        raise PacelineError(f"{path} is not a Paceline key: `paceline key FILE` makes one, for both ends")
    state = path.stat()
    # As in ssh: only files of this user are checked, and Windows has no such permissions.
    own = hasattr(os, "getuid") and stat.S_ISREG(state.st_mode) and state.st_uid == os.getuid()
    if own and state.st_mode & 0o077:
        raise PacelineError(f"{path} is readable by other users, and a key must be private: chmod 600 {path}")
    return bytes.fromhex(found[1])
