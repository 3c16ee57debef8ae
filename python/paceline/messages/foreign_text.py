"""Foreign text before a terminal, a log or a file has it: names and values of scenarios, manifests and tables, words of
other programs. What a terminal obeys, or what turns the direction of writing, is escaped."""

from __future__ import annotations

import json
import os
import re

_FORMAT = "\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
"""Characters that are not seen, or turn what stands beside them (Unicode's Bidi_Control among them)."""
_OBEYED = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_FORMAT}]")
_OF_A_LINE = re.compile(f"[\x00-\x1f\x7f-\x9f{_FORMAT}]")


def plain(text: str) -> str:
    """Text of several lines: all but newline and tabulator is escaped as in JSON (`\\u001b`, `\\u202e`), so that a JSON
    document stays the same document."""
    return _OBEYED.sub(_escaped, text)


def line(text: str) -> str:
    """Text that makes no further line: newlines are escaped too."""
    return _OF_A_LINE.sub(_escaped, text)


def is_encodable(name: str) -> bool:
    """Whether UTF-8 can write it: names of files and words of a command may hold any bytes, which Python has as
    halves of surrogate pairs."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def not_text(name: str) -> str:
    """What to say of a name that UTF-8 cannot write; its bytes are shown as `\\xff`."""
    shown = os.fsencode(name).decode(errors="backslashreplace") if os.name != "nt" else name
    return f"{line(shown)} is not UTF-8 text, in which results and messages name files; give it another name"


def _escaped(found: re.Match[str]) -> str:
    # DEL is ASCII, which JSON leaves
    return "\\u007f" if found[0] == "\x7f" else json.dumps(found[0])[1:-1]
