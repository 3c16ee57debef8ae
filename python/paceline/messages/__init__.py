"""Messages to the user: names of arguments, warnings, and escaping of foreign text for terminals."""

from __future__ import annotations
