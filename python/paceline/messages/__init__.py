"""What is said to a user: names of arguments, warnings, and the text of others before a terminal has it."""

from __future__ import annotations
