"""Keys that a server and its clients share: 32 random bytes, not to be guessed, in a file for its owner alone."""

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
    """Makes a file with a new key, for its owner alone. Raises PacelineError if a file is there, StorageError."""
    text = f"{_HEAD}{secrets.token_hex(LENGTH)}\n"
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except FileExistsError:
        raise PacelineError(
            f"{path} is there already, and a key is not replaced: name another file, or remove it"
        ) from None
    except OSError as error:
        raise files.refused(path, error) from error


def read_key(path: Path) -> bytes:
    """The key that `new_key` left in a file. Raises StorageError, PacelineError if it is none or others may read it."""
    found = _FORM.fullmatch(files.read_text(path))
    if found is None:
        raise PacelineError(f"{path} holds no key of Paceline: `paceline key FILE` makes one, for both ends")
    state = path.stat()
    # as ssh has it; what somebody else keeps for this user is his affair, and Windows has no such rights
    own = hasattr(os, "getuid") and stat.S_ISREG(state.st_mode) and state.st_uid == os.getuid()
    if own and state.st_mode & 0o077:
        raise PacelineError(
            f"{path} is open to other users, and a key is for its owner alone: chmod 600 {path}"
        )
    return bytes.fromhex(found[1])
