"""The manual page that a wheel installs says what the program says of itself."""

from __future__ import annotations

import os
import re
import subprocess

import manual
from needs import require
from paceline import cli

BLESS = os.environ.get("PACELINE_BLESS") == "1"


def test_the_page_is_what_the_program_says() -> None:
    fresh = manual.page()
    if BLESS:
        manual.PAGE.write_text(fresh)
    assert manual.PAGE.read_text() == fresh, "PACELINE_BLESS=1 writes it anew"


def test_the_page_can_be_read() -> None:
    require("groff")
    command = ["groff", "-man", "-Tutf8", "-ww", "-rLL=80n", str(manual.PAGE)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    plain = re.sub(r"\x1b\[[\d;]*m|.\x08", "", shown.stdout)
    flat = " ".join(plain.split())
    for name in cli.COMMANDS:
        assert f"paceline {name} " in flat
        assert " ".join(cli.first_sentence(name).split()) in flat
    assert "paceline model veno --p 1% --rtt 120ms" in flat
    assert "--record KIND,..." in flat
    lines = [line.strip() for line in plain.splitlines()]
    assert "--vary flow.film.cc=newreno,vegas,cubic" in lines, "lines of examples stay lines"


def test_a_point_at_the_beginning_is_no_request() -> None:
    assert manual._text(".so a-b's \\n") == "\\&.so a\\-b\\(aqs \\en"
