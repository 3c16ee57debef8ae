"""Escapes foreign text for terminals, logs and files: names and values from scenarios, manifests and tables, and output
of other programs. Control characters, and characters that change the writing direction, are escaped."""

from __future__ import annotations

import json
import os
import re

_FORMAT = "\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
"""Invisible characters, and those that change the direction of neighbouring text (Unicode's Bidi_Control included)."""
_OBEYED = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_FORMAT}]")
_OF_A_LINE = re.compile(f"[\x00-\x1f\x7f-\x9f{_FORMAT}]")


def plain(text: str) -> str:
    """Escapes text of several lines as in JSON (`\\u001b`, `\\u202e`), except newlines and tabs, so that a JSON
    document stays the same document."""
    return _OBEYED.sub(_escaped, text)


def line(text: str) -> str:
    """Escapes text so that it stays on one line: newlines too."""
    return _OF_A_LINE.sub(_escaped, text)


def is_encodable(name: str) -> bool:
    """Whether UTF-8 can encode it: file names and command-line words may hold any bytes, which Python represents as
    surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def not_text(name: str) -> str:
    """The message for a name that UTF-8 cannot encode; its bytes are shown as `\\xff`."""
    shown = os.fsencode(name).decode(errors="backslashreplace") if os.name != "nt" else name
    return f"{line(shown)} is not UTF-8 text, in which results and messages name files; give it another name"


def _escaped(found: re.Match[str]) -> str:
    # DEL is ASCII, so JSON does not escape it
    return "\\u007f" if found[0] == "\x7f" else json.dumps(found[0])[1:-1]
